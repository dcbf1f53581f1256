// Products of vectors, matrices and batches of them. Transposed operands are read through their strides, never copied.
#include "kernels/cpu/matmul.h"

#include <cmath>
#include <ostream>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "ops/inference.h"

namespace rush {

namespace {

/// Sizes written 2x3, as messages about products do; made only where a message is.
struct ShapeText {
  const Tensor& x;
};
std::ostream& operator<<(std::ostream& out, const ShapeText& text) {
  const char* between = "";
  for (int64_t s : text.x.sizes()) {
    out << between << s;
    between = "x";
  }
  return out;
}
ShapeText shape_text(const Tensor& x) { return {x}; }

/// The C++ name of an element type, which some messages use.
std::string_view element_name(DType t) {
  constexpr std::string_view names[] = {"bool",  "unsigned char", "signed char",         "short",
                                        "int",   "int64_t",       "c10::Half",           "c10::BFloat16",
                                        "float", "double",        "c10::complex<float>", "c10::complex<double>"};
  return names[size_t(t)];
}

void check_numbers(std::string_view kernel, const Tensor& x) {
  check<NotImplementedError>(x.dtype() != kBool, "\"", kernel, "\" not implemented for 'Bool'");
}

void check_multiply(const Tensor& a, const Tensor& b) {
  check(a.sizes()[1] == b.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (", shape_text(a), " and ",
        shape_text(b), ")");
}

void check_batches(const Tensor& a, const Tensor& b) {
  check(a.dim() == 3, "batch1 must be a 3D tensor");
  check(b.dim() == 3, "batch2 must be a 3D tensor");
  check(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1],
        "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes()[0], ", ", a.sizes()[2],
        "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "].");
  check(a.dtype() == b.dtype(), "expected scalar type ", scalar_name(a.dtype()), " but found ", scalar_name(b.dtype()));
}

void check_vectors(const Tensor& a, const Tensor& b) {
  check(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  check(a.dtype() == b.dtype(), "expected both vectors to have same dtype, but found ", scalar_name(a.dtype()), " and ",
        scalar_name(b.dtype()));
  check_numbers("dot", a);
  check(a.numel() == b.numel(), "inconsistent tensor size, expected tensor ", a.sizes(), " and src ", b.sizes(),
        " to have the same number of elements, but got ", a.numel(), " and ", b.numel(), " elements respectively");
}

void check_expands(const Tensor& x, Ints target) {
  check(x.dim() <= int64_t(target.size()), "expand(", x.sizes(), ", size=", target, "): the number of sizes provided (",
        target.size(), ") must be greater or equal to the number of dimensions in the tensor (", x.dim(), ")");
  const size_t lead = target.size() - size_t(x.dim());
  for (size_t d = 0; d < size_t(x.dim()); ++d)
    check(x.sizes()[d] == target[lead + d] || x.sizes()[d] == 1, "The expanded size of the tensor (", target[lead + d],
          ") must match the existing size (", x.sizes()[d], ") at non-singleton dimension ", lead + d,
          ".  Target sizes: ", target, ".  Tensor sizes: ", x.sizes());
}

/// Matrix rows and columns as the last two dimensions, with the batch before them.
cpu::Matrices matrices(const Tensor& x) {
  const size_t d = size_t(x.dim());
  return {x, x.strides()[d - 2], x.strides()[d - 1], d > 2 ? x.strides()[d - 3] : 0};
}
cpu::Matrices column(const Tensor& x) { return {x, x.strides()[0], 1}; }

/// Fills `out` with what `beta` multiplies, unless that is nothing.
void put_addend(Tensor& out, const Tensor& x, const Scalar& beta) {
  if (beta.to_complex() != 0.0)
    cpu::copy(out, alias(x, out.sizes(), broadcast_strides(x.sizes(), x.strides(), out.sizes()), x.storage_offset()));
}

/// g * conj(s), which is g itself for 1.
Tensor scaled(const Tensor& g, const Scalar& s) {
  if (s == Scalar(1)) return g;
  return g * Tensor(s.is_complex() ? Scalar(std::conj(s.to_complex())) : s);
}

/// x as a matrix of rows, with all dimensions but the last in one.
Tensor rows(const Tensor& x) {
  return x.dim() == 2 ? x : reshape(x, {x.numel() / std::max<int64_t>(x.size(-1), 1), x.size(-1)});
}

Dims without_last(const Tensor& x) { return Dims(x.sizes().begin(), x.sizes().end() - 1); }

/// Checks that the factors have no imaginary part where the result has none.
void check_real(const DType result, const Scalar& beta, const Scalar& alpha) {
  for (const Scalar* s : {&beta, &alpha})
    check(!s->is_complex() || is_complex(result) || s->to_complex().imag() == 0, "value cannot be converted to type ",
          element_name(result), " without overflow");
}

void check_factors(const DType result, const Scalar& beta, const Scalar& alpha) {
  check_real(result, beta, alpha);
  if (is_integral(result)) {
    check(beta.is_int(), "For integral input tensors, argument beta must not be a floating point number.");
    check(alpha.is_int(), "For integral input tensors, argument alpha must not be a floating point number.");
  }
}

}  // namespace

OP_DEFINE(mm){{
    .doc = R"(The product of two matrices.

Shape: self (m, k), mat2 (k, n); the result is (m, n). Dtype: any but bool, the same for both; half types sum in float32.
Errors: RuntimeError where the shapes cannot be multiplied or the dtypes differ.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check(a.dim() == 2, "self must be a matrix, got ", a.dim(), "-D tensor");
          check(b.dim() == 2, "mat2 must be a matrix, got ", b.dim(), "-D tensor");
          check_multiply(a, b);
          check(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: ", element_name(a.dtype()),
                " != ", element_name(b.dtype()));
          check_numbers("addmm_impl_cpu_", a);
          return Meta{{a.sizes()[0], b.sizes()[1]}, a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b) {
      cpu::product(out, a.sizes()[0], b.sizes()[1], a.sizes()[1], matrices(a), matrices(b));
    }},
    .saves = "self if mat2, mat2 if self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{needs_grad(0) ? mm(g, adjoint(b)) : Tensor(), needs_grad(1) ? mm(adjoint(a), g) : Tensor()};
        },
    .autocast = Autocast::half,
    .onnx = "MatMul(self, mat2)",
}};

OP_DEFINE(bmm){{
    .doc = R"(The products of two batches of matrices, one by one. An expanded batch is not copied.

Shape: self (b, m, k), mat2 (b, k, n); the result is (b, m, n). Dtype: any but bool, the same for both.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check_batches(a, b);
          check_numbers("bmm", a);
          return Meta{{a.sizes()[0], a.sizes()[1], b.sizes()[2]}, a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b) {
      cpu::batched_product(out, a.sizes()[0], a.sizes()[1], b.sizes()[2], a.sizes()[2], matrices(a), matrices(b));
    }},
    .saves = "self if mat2, mat2 if self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{needs_grad(0) ? bmm(g, adjoint(b)) : Tensor(), needs_grad(1) ? bmm(adjoint(a), g) : Tensor()};
        },
    .autocast = Autocast::half,
    .onnx = "MatMul(self, mat2)",
}};

OP_DEFINE(mv){{
    .doc = R"(The product of a matrix and a vector.

Shape: self (n, m), vec (m); the result is (n). Dtype: any but bool, the same for both.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer =
        [](const Tensor& a, const Tensor& v) {
          check(a.dim() == 2 && v.dim() == 1, "vector + matrix @ vector expected, got 1, ", a.dim(), ", ", v.dim());
          check(a.sizes()[1] == v.sizes()[0], "size mismatch, got input (", a.sizes()[0], "), mat (", shape_text(a),
                "), vec (", v.sizes()[0], ")");
          check(a.dtype() == v.dtype(), "input tensors must have the same dtype, but got ", scalar_name(a.dtype()),
                " and ", scalar_name(v.dtype()));
          check_numbers("addmv_impl_cpu", a);
          return Meta{{a.sizes()[0]}, a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& v) {
      cpu::product(out, a.sizes()[0], 1, a.sizes()[1], matrices(a), column(v));
    }},
    .saves = "self if vec, vec if self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& v) {
          return Grads{needs_grad(0) ? outer(g, conj(v)) : Tensor(), needs_grad(1) ? mv(adjoint(a), g) : Tensor()};
        },
    .autocast = on_cuda(Autocast::half),
    .onnx = "MatMul(self, vec)",
}};

OP_DEFINE(dot){{
    .doc = R"(The sum of the products of two vectors' elements; nothing is conjugated.

Shape: both (n); the result is (). Dtype: any but bool, the same for both.
Errors: RuntimeError where shapes or dtypes differ.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check_vectors(a, b);
          return Meta{{}, a.dtype()};
        },
    .kernel = {cpu::dot},
    .saves = "self if tensor, tensor if self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{needs_grad(0) ? g * conj(b) : Tensor(), needs_grad(1) ? g * conj(a) : Tensor()};
        },
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(vdot){{
    .doc = R"(The dot product of two vectors with the first one conjugated.

Shape: both (n); the result is (). Errors: RuntimeError where shapes or dtypes differ.)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          check_vectors(a, b);
          return dot(conj(a), b);
        },
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(matmul){{
    .doc = R"(The matrix product of two tensors, by their number of dimensions.

Two vectors: their dot product. Two matrices: their product. A vector first counts as a row, a vector second as a column,
and that dimension is left out of the result. With more than two dimensions, the last two are matrices and the ones
before are batches, which broadcast.

Shape: self (..., m, k), other (..., k, n); the result is (..., m, n). Dtype: any but bool, the same for both.
Errors: RuntimeError where shapes or dtypes do not fit, or for a 0-dim tensor.)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          const int64_t da = a.dim(), db = b.dim();
          check(da > 0 && db > 0, "both arguments to matmul need to be at least 1D, but they are ", da, "D and ", db,
                "D");
          if (da <= 2 && db <= 2) {
            if (da == 2) return db == 2 ? mm(a, b) : mv(a, b);
            return db == 2 ? squeeze(mm(unsqueeze(a, 0), b), 0) : dot(a, b);
          }
          if (db <= 2 && a.size(-1) > 0) {  // a batch of rows times one matrix is one long product
            Dims sizes = without_last(a);
            if (db == 1) return view(mv(rows(a), b), sizes);
            sizes.push_back(b.sizes()[1]);
            return view(mm(rows(a), b), sizes);
          }
          const Tensor left = da == 1 ? unsqueeze(a, 0) : a, right = db == 1 ? unsqueeze(b, 1) : b;
          const Dims &sa = left.sizes(), &sb = right.sizes();
          const Ints last_a(sa.end() - 2, 2), last_b(sb.end() - 2, 2);
          Dims batch = broadcast(Ints(sa).slice(0, sa.size() - 2), Ints(sb).slice(0, sb.size() - 2));
          const int64_t count = product(batch);
          const auto batched = [&](const Tensor& x, Ints matrix) {
            Dims sizes = batch;
            sizes.push_back(matrix[0]);
            sizes.push_back(matrix[1]);
            const Tensor whole = Ints(x.sizes()) == Ints(sizes) ? x : expand(x, sizes);
            return whole.dim() == 3 ? whole : reshape(whole, {count, matrix[0], matrix[1]});
          };
          const Tensor result = bmm(batched(left, last_a), batched(right, last_b));
          if (da > 1) batch.push_back(last_a[0]);
          if (db > 1) batch.push_back(last_b[1]);
          return Ints(batch) == Ints(result.sizes()) ? result : view(result, batch);
        },
    .autocast = Autocast::half,
    .onnx = "MatMul(self, other)",
}};

namespace {

Meta linear_meta(const Tensor& x, const Tensor& w, const Tensor& bias) {
  check(x.dim() > 0 && w.dim() > 0, "both arguments to linear need to be at least 1D, but they are ", x.dim(), "D and ",
        w.dim(), "D");
  check(w.dim() <= 2, "weight must have at most 2 dimensions, got shape ", w.sizes());
  const int64_t in = x.size(-1), out = w.dim() == 2 ? w.sizes()[0] : 1;
  check(w.size(-1) == in, "mat1 and mat2 shapes cannot be multiplied (", x.numel() / std::max<int64_t>(in, 1), "x", in,
        " and ", w.size(-1), "x", out, ")");
  check(x.dtype() == w.dtype(), "expected m1 and m2 to have the same dtype, but got: ", element_name(x.dtype()),
        " != ", element_name(w.dtype()));
  check(!bias.defined() || bias.dtype() == x.dtype(), "self and mat2 must have the same dtype, but got ",
        scalar_name(bias.defined() ? bias.dtype() : kBool), " and ", scalar_name(x.dtype()));
  check_numbers("addmm_impl_cpu_", x);
  Meta meta{without_last(x), x.dtype()};
  if (w.dim() == 2) meta.sizes.push_back(out);
  if (bias.defined()) check_expands(bias, meta.sizes);
  return meta;
}

void linear_kernel(Tensor& out, const Tensor& x, const Tensor& w, const Tensor& bias, cpu::Clamp clamp = {}) {
  const int64_t in = x.size(-1), outs = w.dim() == 2 ? w.sizes()[0] : 1;
  const int64_t m = outs ? out.numel() / outs : 0;
  if (out.numel() == 0) return;
  Tensor flat = x;
  if (x.dim() > 2 && !x.is_contiguous()) {
    flat = allocate({x.sizes(), x.dtype(), x.device(), {}});
    cpu::copy(flat, x);
  }
  // Of more than two dimensions the rows lie together; where one has size 1, its stride may say anything.
  const int64_t row = flat.dim() > 2 ? in : flat.dim() == 2 ? flat.stride(-2) : 0;
  const int64_t step = flat.dim() > 2 ? 1 : flat.stride(-1);
  const bool fused = bias.defined() && bias.dim() == 1 && bias.sizes()[0] == outs && bias.is_contiguous();
  if (bias.defined() && !fused) put_addend(out, bias, 1);
  cpu::product(out, m, outs, in, {flat, row, step}, {w, w.stride(-1), w.dim() == 2 ? w.strides()[0] : 0, 0, true}, 1,
               bias.defined() && !fused ? 1 : 0, fused ? bias : Tensor(), clamp);
}

}  // namespace

OP_DEFINE(linear){{
    .doc = R"(``input @ weight.T + bias``.

Shape: input (..., in), weight (out, in) or (in), bias (out) or None; the result is (..., out), or (...) for a weight of
one dimension. Dtype: any but bool, the same for all.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer = linear_meta,
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& w, const Tensor& bias) {
      linear_kernel(out, x, w, bias);
    }},
    .saves = "input if weight, weight if input",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& w, const Tensor&) {
          Grads grads(3);
          if (needs_grad(2)) grads[2] = g;
          if (!needs_grad(0) && !needs_grad(1)) return grads;    // neither is saved
          if (w.defined() ? w.dim() == 1 : x.dim() > g.dim()) {  // a weight of one dimension
            if (needs_grad(0)) grads[0] = unsqueeze(g, -1) * conj(w);
            if (needs_grad(1)) grads[1] = mv(adjoint(rows(x)), reshape(g, {-1}));
          } else {
            const Tensor flat =
                g.numel() || g.dim() == 2 ? rows(g) : reshape(g, {product(without_last(g)), g.size(-1)});
            if (needs_grad(0)) {
              const Tensor gx = mm(flat, conj(w));
              Dims sizes = g.sizes();
              sizes[sizes.size() - 1] = w.sizes()[1];
              grads[0] = g.dim() == 2 ? gx : view(gx, sizes);
            }
            if (needs_grad(1))
              grads[1] = mm(t(flat), conj(x.dim() == 2 ? x : reshape(x, {flat.sizes()[0], x.size(-1)})));
          }
          return grads;
        },
    .autocast = Autocast::half,
    .onnx = "Gemm(input, weight, bias, transB=1)",
}};

Tensor fused_linear(const Tensor& x, const Tensor& w, const Tensor& bias, double low, double high) {
  for (const Tensor* t : {&x, &w, &bias})
    if (t->defined())
      check<NotImplementedError>(t->device().is_cpu() && is_floating(t->dtype()),
                                 "fused_linear: only for floating dtypes on the CPU, but got ", name_of(t->dtype()),
                                 " on ", t->device());
  const Meta meta = linear_meta(x, w, bias);
  Tensor out = empty(meta.sizes, meta.dtype);
  linear_kernel(out, x, w, bias, {low, high});
  return out;
}

OP_DEFINE(bilinear){{
    .doc = R"(``y[..., o] = sum over i, j of input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]``.

Shape: input1 (..., i), input2 (..., j), weight (o, i, j), bias (o) or None; the result is (..., o).
Errors: RuntimeError where shapes do not fit.)",
    .composite =
        [](const Tensor& a, const Tensor& b, const Tensor& w, const Tensor& bias) {
          check(a.dim() == b.dim(), "bilinear(): input dimensions do not match: got ", a.dim(), " and ", b.dim());
          for (int64_t d = 0; d + 1 < a.dim(); ++d)
            check(a.sizes()[d] == b.sizes()[d], "bilinear(): input batch dimensions do not match at dim ", d, ": got ",
                  a.sizes()[d], " and ", b.sizes()[d]);
          check(a.size(-1) == w.size(1), "bilinear(): input1 size does not match weight size: got ", a.size(-1),
                " but expected ", w.size(1));
          check(b.size(-1) == w.size(2), "bilinear(): input2 size does not match weight size: got ", b.size(-1),
                " but expected ", w.size(2));
          check(!bias.defined() || bias.size(0) == w.size(0), "bilinear(): bias size does not match weight size: got ",
                bias.defined() ? bias.size(0) : 0, " but expected ", w.size(0));
          if (is_floating(a.dtype()) && a.itemsize() == 2) {  // both sums in float
            const Tensor wide = bias.defined() ? cast(bias, kFloat32) : bias;
            return cast(bilinear(cast(a, kFloat32), cast(b, kFloat32), cast(w, kFloat32), wide), a.dtype());
          }
          Dims sizes = without_last(a);
          const int64_t n = product(sizes), o = w.size(0), i = w.size(1), j = w.size(2);
          // (o, n, j): input1 by every weight[o], then summed against input2
          const Tensor left = matmul(reshape(a, {1, n, i}), w);
          Tensor y = t(sum(left * reshape(b, {1, n, j}), Ints({2}), false, left.dtype()));
          if (bias.defined()) y = y + bias;
          sizes.push_back(o);
          return reshape(y, sizes);
        },
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(addmm){{
    .doc = R"(``beta * self + alpha * (mat1 @ mat2)``; self is not read where beta is 0.

Shape: mat1 (m, k), mat2 (k, n), self broadcasts to (m, n), which is the result's.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer =
        [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          check(a.dim() == 2, "mat1 must be a matrix, got ", a.dim(), "-D tensor");
          check(b.dim() == 2, "mat2 must be a matrix, got ", b.dim(), "-D tensor");
          check_multiply(a, b);
          check(self.dtype() == b.dtype(), "self and mat2 must have the same dtype, but got ",
                scalar_name(self.dtype()), " and ", scalar_name(b.dtype()));
          check(a.dtype() == b.dtype(), "mat1 and mat2 must have the same dtype, but got ", scalar_name(a.dtype()),
                " and ", scalar_name(b.dtype()));
          check_numbers("addmm_impl_cpu_", a);
          check_real(a.dtype(), beta, alpha);
          Meta meta{{a.sizes()[0], b.sizes()[1]}, a.dtype()};
          check_expands(self, meta.sizes);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
      put_addend(out, self, beta);
      cpu::product(out, a.sizes()[0], b.sizes()[1], a.sizes()[1], matrices(a), matrices(b), alpha, beta);
    }},
    .saves = "mat1 if mat2, mat2 if mat1",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          return Grads{needs_grad(0) ? scaled(g, beta) : Tensor(),
                       needs_grad(1) ? scaled(mm(g, adjoint(b)), alpha) : Tensor(),
                       needs_grad(2) ? scaled(mm(adjoint(a), g), alpha) : Tensor()};
        },
    .in_place = true,
    .autocast = Autocast::half,
    .onnx = "Gemm(mat1, mat2, self, alpha=alpha, beta=beta)",
}};

OP_DEFINE(addmv){{
    .doc = R"(``beta * self + alpha * (mat @ vec)``; self is not read where beta is 0.

Shape: mat (n, m), vec (m), self broadcasts to (n), which is the result's.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer =
        [](const Tensor& self, const Tensor& a, const Tensor& v, Scalar beta, Scalar alpha) {
          check(a.dim() == 2 && v.dim() == 1 && self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(),
                ", ", a.dim(), ", ", v.dim());
          check(a.sizes()[1] == v.sizes()[0] && (self.numel() == 1 || self.numel() == a.sizes()[0]),
                "size mismatch, got input (", self.numel(), "), mat (", shape_text(a), "), vec (", v.sizes()[0], ")");
          check(a.dtype() == v.dtype() && self.dtype() == a.dtype(), "input tensors must have the same dtype, but got ",
                scalar_name(self.dtype()), ", ", scalar_name(a.dtype()), ", and ", scalar_name(v.dtype()));
          check_numbers("addmv_impl_cpu", a);
          check_real(a.dtype(), beta, alpha);
          return Meta{{a.sizes()[0]}, a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& self, const Tensor& a, const Tensor& v, Scalar beta, Scalar alpha) {
      put_addend(out, self, beta);
      cpu::product(out, a.sizes()[0], 1, a.sizes()[1], matrices(a), column(v), alpha, beta);
    }},
    .saves = "mat if vec, vec if mat",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& a, const Tensor& v, Scalar beta, Scalar alpha) {
          return Grads{needs_grad(0) ? scaled(g, beta) : Tensor(),
                       needs_grad(1) ? scaled(outer(g, conj(v)), alpha) : Tensor(),
                       needs_grad(2) ? scaled(mv(adjoint(a), g), alpha) : Tensor()};
        },
    .in_place = true,
    .autocast = on_cuda(Autocast::half),
}};

OP_DEFINE(addr){{
    .doc = R"(``beta * self + alpha * outer(vec1, vec2)``; self is not read where beta is 0. For bools, or and and.

Shape: vec1 (n), vec2 (m), self broadcasts to (n, m), which is the result's. Dtypes promote.
Errors: RuntimeError where shapes do not fit.)",
    .composite =
        [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          check(a.dim() == 1, "Expected 1-D argument vec1, but got ", a.dim(), "-D");
          check(b.dim() == 1, "Expected 1-D argument vec2, but got ", b.dim(), "-D");
          check_expands(self, {a.sizes()[0], b.sizes()[0]});
          const DType result = promote_tensors(self, a, b);
          check_factors(result, beta, alpha);
          if (result == kBool) {
            Tensor product = outer(a, b);
            if (!alpha.to<bool>()) product = zeros_like(product);
            return beta.to<bool>() ? bitwise_or(product, self) : product;
          }
          const Tensor product =
              outer(scaled(a, alpha.is_complex() ? Scalar(std::conj(alpha.to_complex())) : alpha), b);
          if (beta.to_complex() == 0.0) return product.dtype() == result ? product : cast(product, result);
          return add(product, beta == Scalar(1) ? self : self * Tensor(beta));
        },
    .in_place = true,
    .autocast = on_cuda(Autocast::half),
}};

OP_DEFINE(addbmm){{
    .doc = R"(``beta * self + alpha * sum over i of (batch1[i] @ batch2[i])``; self is not read where beta is 0.

Shape: batch1 (b, m, k), batch2 (b, k, n), self broadcasts to (m, n), which is the result's.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .composite =
        [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          check_batches(a, b);
          // the sum over the batch is part of the sum within one product
          const int64_t m = a.sizes()[1], n = b.sizes()[2], k = a.sizes()[0] * a.sizes()[2];
          return addmm(self, reshape(permute(a, {1, 0, 2}), {m, k}), reshape(b, {k, n}), beta, alpha);
        },
    .in_place = true,
    .autocast = Autocast::half,
}};

OP_DEFINE(baddbmm){{
    .doc = R"(``beta * self + alpha * (batch1 @ batch2)``; self is not read where beta is 0.

Shape: batch1 (b, m, k), batch2 (b, k, n), self broadcasts to (b, m, n), which is the result's.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .infer =
        [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          check_batches(a, b);
          Meta meta{{a.sizes()[0], a.sizes()[1], b.sizes()[2]}, a.dtype()};
          check(self.dtype() == a.dtype(), "Input dtypes must be the same, got: input ", name_of(self.dtype()),
                ", batch1: ", name_of(a.dtype()), ", batch2: ", name_of(b.dtype()));
          check_expands(self, meta.sizes);
          check_numbers("baddbmm", a);
          check_real(a.dtype(), beta, alpha);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
      put_addend(out, self, beta);
      cpu::batched_product(out, a.sizes()[0], a.sizes()[1], b.sizes()[2], a.sizes()[2], matrices(a), matrices(b), alpha,
                           beta);
    }},
    .saves = "batch1 if batch2, batch2 if batch1",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
          return Grads{needs_grad(0) ? scaled(g, beta) : Tensor(),
                       needs_grad(1) ? scaled(bmm(g, adjoint(b)), alpha) : Tensor(),
                       needs_grad(2) ? scaled(bmm(adjoint(a), g), alpha) : Tensor()};
        },
    .in_place = true,
    .autocast = Autocast::half,
}};

OP_DEFINE(outer){{
    .doc = R"(``result[i, j] = self[i] * vec2[j]``.

Shape: self (n), vec2 (m); the result is (n, m). Dtypes promote.
Errors: RuntimeError for tensors of other than one dimension.)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          check(a.dim() == 1, "Expected 1-D argument self, but got ", a.dim(), "-D");
          check(b.dim() == 1, "Expected 1-D argument vec2, but got ", b.dim(), "-D");
          return unsqueeze(a, 1) * b;
        },
}};

OP_DEFINE(ger){{
    .doc = R"(Another name of outer.)",
    .composite = [](const Tensor& a, const Tensor& b) { return outer(a, b); },
}};

OP_DEFINE(inner){{
    .doc = R"(Sums of products along the last dimension of both; with a 0-dim tensor the plain product.

Shape: self (..., k), other (*, k); the result is (..., *).
Errors: RuntimeError where the last dimensions differ.)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          check(a.dtype() == b.dtype(), "both inputs should have same dtype");
          if (a.dim() == 0 || b.dim() == 0) return a * b;
          check(a.size(-1) == b.size(-1), "the last dimension must match on both input tensors but got shapes ",
                a.sizes(), " and ", b.sizes());
          return tensordot(a, b, Ints({-1}), Ints({-1}));
        },
}};

OP_DEFINE(kron){{
    .doc = R"(The Kronecker product: each element of self times the whole of other, laid out as blocks.

Shape: sizes multiply dimension by dimension, aligned at the last. Dtypes promote.)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          const size_t n = size_t(std::max(a.dim(), b.dim()));
          Dims sa(2 * n, 1), sb(2 * n, 1), sizes(n, 1);
          for (size_t d = 0; d < n; ++d) {  // a at even places, b at odd ones
            const int64_t i = int64_t(d) - int64_t(n);
            if (-i <= a.dim()) sa[2 * d] = a.size(i);
            if (-i <= b.dim()) sb[2 * d + 1] = b.size(i);
            sizes[d] = sa[2 * d] * sb[2 * d + 1];
          }
          return reshape(reshape(a, sa) * reshape(b, sb), sizes);
        },
}};

OP_DEFINE(tensordot){{
    .doc = R"(Sums products over pairs of dimensions, one of each tensor.

Shape: what is left of the first tensor's dimensions, then of the second's.
Errors: RuntimeError where paired dimensions differ in size.)",
    .composite =
        [](const Tensor& x, const Tensor& y, Ints dims_x, Ints dims_y) {
          check(dims_x.size() == dims_y.size(), "both dimension lists should have same length");
          check(x.dtype() == y.dtype(), "both inputs should have same dtype");
          Tensor a = x, b = y;
          const Dims da = wrap_dims(dims_x, a.dim()), db = wrap_dims(dims_y, b.dim());
          int64_t k = 1;
          for (size_t i = 0; i < da.size(); ++i) {
            const int64_t na = a.size(da[i]), nb = b.size(db[i]);
            if (nb == 1) {
              a = sum(a, Ints(da[i]), true, a.dtype());
            } else if (na == 1) {
              b = sum(b, Ints(db[i]), true, b.dtype());
            } else {
              check(na == nb, "contracted dimensions need to match, but first has size ", na, " in dim ", dims_x[i],
                    " and second has size ", nb, " in dim ", dims_y[i]);
              k *= na;
            }
          }
          Dims order_a, order_b = db, sizes;
          int64_t m = 1, n = 1;
          const auto contains = [](const Dims& dims, int64_t d) {
            return std::find(dims.begin(), dims.end(), d) != dims.end();
          };
          for (int64_t d = 0; d < a.dim(); ++d)
            if (!contains(da, d)) order_a.push_back(d), sizes.push_back(a.sizes()[d]), m *= a.sizes()[d];
          for (int64_t d : da) order_a.push_back(d);
          for (int64_t d = 0; d < b.dim(); ++d)
            if (!contains(db, d)) order_b.push_back(d), sizes.push_back(b.sizes()[d]), n *= b.sizes()[d];
          return reshape(mm(reshape(permute(a, order_a), {m, k}), reshape(permute(b, order_b), {k, n})), sizes);
        },
    .autocast = on_cuda(Autocast::widest),
}};

namespace {

/// Cheapest order of multiplying a chain, by the cost of scalar products: the split of each stretch [i][j]. Of equally
/// cheap ones PyTorch takes the first, but of three matrices multiplies the first two first.
std::vector<std::vector<size_t>> best_splits(const std::vector<int64_t>& sizes) {
  const size_t n = sizes.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = __builtin_inf();
      for (size_t s = i; s < j; ++s) {
        const double c = cost[i][s] + cost[s + 1][j] + double(sizes[i]) * double(sizes[s + 1]) * double(sizes[j + 1]);
        if (c < cost[i][j] || (n == 3 && c == cost[i][j])) cost[i][j] = c, split[i][j] = s;
      }
    }
  }
  return split;
}

Tensor multiply_chain(const std::vector<Tensor>& m, const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return m[i];
  const size_t s = split[i][j];
  return mm(multiply_chain(m, split, i, s), multiply_chain(m, split, s + 1, j));
}

}  // namespace

OP_DEFINE(linalg_multi_dot){{
    .doc = R"(The product of a chain of matrices in the order that needs the fewest multiplications.

Shape: the first may be a vector (a row) and the last one too (a column); these dimensions are left out of the result.
Errors: RuntimeError for fewer than two tensors or where shapes do not fit.)",
    .composite =
        [](Tensors list) {
          const size_t n = list.size();
          check(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
          std::vector<Tensor> chain(list.begin(), list.end());
          const bool row = chain[0].dim() == 1, column = chain[n - 1].dim() == 1;
          check(row || chain[0].dim() == 2, "multi_dot(): the first tensor must be 1D or 2D but got ", chain[0].dim(),
                "D");
          check(column || chain[n - 1].dim() == 2, "multi_dot(): the last tensor must be 1D or 2D but got ",
                chain[n - 1].dim(), "D");
          if (row) chain[0] = unsqueeze(chain[0], 0);
          if (column) chain[n - 1] = unsqueeze(chain[n - 1], 1);
          std::vector<int64_t> sizes{chain[0].sizes()[0]};
          for (size_t i = 0; i < n; ++i) {
            check(chain[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", chain[i].dim(), "D");
            check(chain[i].dtype() == chain[0].dtype(), "multi_dot(): all tensors must have be the same dtype");
            check(sizes.back() == chain[i].sizes()[0] || i == 0, "multi_dot(): tensors ", i - 1, " and ", i,
                  " with shapes ", list[i ? i - 1 : 0].sizes(), " and ", list[i].sizes(), " cannot be multiplied");
            sizes.push_back(chain[i].sizes()[1]);
          }
          Tensor result = multiply_chain(chain, best_splits(sizes), 0, n - 1);
          if (column) result = squeeze(result, 1);
          if (row) result = squeeze(result, 0);
          return result;
        },
    .autocast = on_cuda(Autocast::half),
}};

OP_DEFINE(linalg_vecdot){{
    .doc = R"(Dot products along ``dim``, with x conjugated and the other dimensions broadcast.

Shape: the broadcast shape without ``dim``. Errors: RuntimeError where shapes or dtypes do not fit.)",
    .composite =
        [](const Tensor& x, const Tensor& y, int64_t dim) {
          check((x.is_floating_point() || x.is_complex()) && (y.is_floating_point() || y.is_complex()),
                "linalg.vecdot: Expected a floating point or complex tensor as input. Got ", scalar_name(x.dtype()));
          check(x.dtype() == y.dtype(), "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
                scalar_name(x.dtype()), " and y of type ", scalar_name(y.dtype()), " instead");
          if (x.dim() == 1 && y.dim() == 1 && x.size(0) == y.size(0)) return vdot(x, y);
          return sum(conj(x) * y, Ints(dim));
        },
    .autocast = Autocast::half,
}};

OP_DEFINE(linalg_cross){{
    .doc = R"(Cross products of vectors of three elements along ``dim``; the other dimensions broadcast.

Errors: RuntimeError where ``dim`` has not size 3 or the shapes do not broadcast.)",
    .composite =
        [](const Tensor& a, const Tensor& b, int64_t dim) {
          check(a.dim() == b.dim(), "linalg.cross: inputs must have the same number of dimensions.");
          check(a.dtype() == b.dtype(), "expected scalar type ", scalar_name(a.dtype()), " but found ",
                scalar_name(b.dtype()));
          check(a.size(dim) == 3 && b.size(dim) == 3, "linalg.cross: inputs dimension ", dim,
                " must have length 3. Got ", a.size(dim), " and ", b.size(dim));
          const Dims sizes = broadcast(a.sizes(), b.sizes());
          const int64_t d = wrap_dim(dim, a.dim());
          const auto turned = [&](const Tensor& x, int64_t by) {
            std::vector<Tensor> at(size_t(d) + 1);
            at.back() = allocate({{3}, kInt64, x.is_meta() ? kMeta : kCPU});
            for (int64_t i = 0; i < 3 && !x.is_meta(); ++i) at.back().data<int64_t>()[i] = (i + by) % 3;
            return index(x, at);
          };
          const Tensor x = expand(a, sizes), y = expand(b, sizes);
          return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1);
        },
}};

OP_DEFINE(cross){{
    .doc = R"(Cross products of vectors of three elements along ``dim``, by default the first dimension of size 3.

Errors: RuntimeError where there is no such dimension or the shapes do not broadcast.)",
    .composite =
        [](const Tensor& a, const Tensor& b, OptInt dim) {
          if (!dim) {
            const Dims& sizes = a.sizes();
            dim = std::find(sizes.begin(), sizes.end(), 3) - sizes.begin();
            check(*dim < a.dim(), "no dimension of size 3 in input");
          }
          return linalg_cross(a, b, *dim);
        },
    .autocast = on_cuda(Autocast::widest),
}};

namespace {

// Note [Einsum]. A label is a letter or a dimension under "..."; each gets a number. Operands are permuted to have all
// labels, first those of the result in its order, then the summed ones, with size 1 where an operand has none. Then
// they are multiplied from left to right, by bmm where labels that no later operand has are summed.
struct Equation {
  std::vector<std::vector<int>> operands;  // labels of each dimension; kEllipsis stands for several
  std::vector<int> result;
  bool has_result = false;
};
constexpr int kEllipsis = -1, kLetters = 52;

int letter_number(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
char letter_of(int label) { return char(label < 26 ? 'A' + label : 'a' + label - 26); }

Equation parse_equation(std::string_view text, size_t count) {
  Equation e;
  e.operands.emplace_back();
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::vector<int>& to = e.has_result ? e.result : e.operands.back();
    if (c == ' ') continue;
    if (c == '.') {
      const std::string where = e.has_result ? "the output" : "operand " + std::to_string(e.operands.size() - 1);
      check(text.substr(i, 3) == "...", "einsum(): found '.' for ", where, " that is not part of any ellipsis");
      check(!ellipsis, "einsum(): found '.' for ", where, " for which an ellipsis was already found");
      ellipsis = true;
      to.push_back(kEllipsis);
      i += 2;
    } else if (c == ',' && !e.has_result) {
      e.operands.emplace_back();
      ellipsis = false;
      check(e.operands.size() <= count, "einsum(): fewer operands were provided than specified in the equation");
    } else if (c == '-' && !e.has_result && text.substr(i, 2) == "->") {
      e.has_result = true;
      ellipsis = false;
      ++i;
    } else {
      check((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "einsum(): invalid subscript given at index ", i,
            " in the equation string, subscripts must be in [a-zA-Z]");
      to.push_back(letter_number(c));
    }
  }
  check(e.operands.size() >= count, "einsum(): more operands were provided than specified in the equation");
  return e;
}

/// The sum over `dims` of a * b, where both have all dimensions (of size 1 where they have none) and sums keep theirs.
Tensor sum_of_products(Tensor a, Tensor b, const Dims& dims) {
  const auto summed = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  Dims batch, left, right, inner, only_a, only_b;
  for (int64_t d = 0; d < a.dim(); ++d) {
    const bool in_a = a.sizes()[d] != 1, in_b = b.sizes()[d] != 1;
    if (summed(d))
      (in_a && in_b ? inner : in_a ? only_a : only_b).push_back(d);
    else
      (in_a && in_b ? batch : in_a ? left : right).push_back(d);
  }
  if (!only_a.empty()) a = sum(a, only_a, true);
  if (!only_b.empty()) b = sum(b, only_b, true);
  if (inner.empty()) return a * b;
  if (a.dtype() != b.dtype()) {  // sums of integers have become int64
    const DType common = promote_tensors(a, b);
    a = cast(a, common);
    b = cast(b, common);
  }
  const auto arrange = [&](const Tensor& x, const Dims& first, const Dims& second) {
    Dims order;
    Dims sizes{1, 1, 1};
    const Dims* groups[] = {&batch, &first, &second};
    std::vector<bool> used(size_t(x.dim()));
    for (size_t i = 0; i < 3; ++i)
      for (int64_t d : *groups[i]) order.push_back(d), sizes[i] *= x.sizes()[d], used[size_t(d)] = true;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (!used[size_t(d)]) order.push_back(d);
    return reshape(permute(x, order), sizes);
  };
  const Tensor product = bmm(arrange(a, left, inner), arrange(b, inner, right));
  Dims sizes, back(size_t(a.dim()));
  int64_t at = 0;
  for (const Dims* group : {&batch, &left, &right, &inner, &only_a, &only_b}) {
    for (int64_t d : *group) {
      back[size_t(d)] = at++;
      sizes.push_back(group == &batch || group == &left ? a.sizes()[d] : group == &right ? b.sizes()[d] : 1);
    }
  }
  return permute(reshape(product, sizes), back);
}

}  // namespace

OP_DEFINE(einsum){{
    .doc = R"(Sums of products in Einstein's notation: ``einsum("bij,bjk->bik", a, b)``.

Each letter names a dimension; letters that the result does not have are summed over. "..." stands for any number of
dimensions, which broadcast. Without "->", the result has the letters that occur once, in alphabetic order. A letter twice
within one operand takes its diagonal.

Errors: RuntimeError where the equation is malformed or sizes do not fit.)",
    .composite =
        [](std::string_view text, Tensors tensors) {
          check(!tensors.empty(), "einsum(): must provide at least one operand");
          const Equation e = parse_equation(text, tensors.size());
          const size_t n = tensors.size();
          int64_t ellipsis = 0;
          std::array<int, kLetters> occurs{};
          for (size_t o = 0; o < n; ++o) {
            const auto& labels = e.operands[o];
            const bool open = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
            const int64_t named = int64_t(labels.size()) - open, dims = tensors[o].dim();
            check(open ? named <= dims : named == dims, "einsum(): the number of subscripts in the equation (", named,
                  ") ", open ? "is more than" : "does not match", " the number of dimensions (", dims, ") for operand ",
                  o, open ? "" : " and no ellipsis was given");
            if (open) ellipsis = std::max(ellipsis, dims - named);
            for (int l : labels)
              if (l != kEllipsis) ++occurs[size_t(l)];
          }
          // the place of each label among the dimensions of the permuted operands
          std::array<int64_t, kLetters> place;
          place.fill(-1);
          int64_t first_ellipsis = -1, kept = 0;
          if (e.has_result) {
            for (int l : e.result) {
              if (l == kEllipsis) {
                first_ellipsis = kept;
                kept += ellipsis;
                continue;
              }
              check(place[size_t(l)] < 0, "einsum(): output subscript ", letter_of(l),
                    " appears more than once in the output");
              check(occurs[size_t(l)] > 0, "einsum(): output subscript ", letter_of(l),
                    " does not appear in the equation for any input operand");
              place[size_t(l)] = kept++;
            }
          } else {
            first_ellipsis = 0;
            kept = ellipsis;
            for (size_t l = 0; l < kLetters; ++l)
              if (occurs[l] == 1) place[l] = kept++;
          }
          int64_t total = kept;
          if (first_ellipsis < 0) first_ellipsis = total, total += ellipsis;
          for (size_t l = 0; l < kLetters; ++l)
            if (occurs[l] && place[l] < 0) place[l] = total++;

          std::vector<Tensor> operands(n);
          Dims seen(size_t(total), 1);
          std::vector<size_t> last_use(size_t(total), 0);
          for (size_t o = 0; o < n; ++o) {
            const Tensor& x = tensors[o];
            const auto& labels = e.operands[o];
            Dims sizes(size_t(total), 1), strides(size_t(total), 0), own(size_t(total), -1);
            bool repeats = false;
            int64_t d = 0;
            const int64_t covered = x.dim() - (int64_t(labels.size()) - 1);
            const auto put = [&](int64_t at, int64_t dim, int label) {
              const size_t p = size_t(at);
              if (own[p] >= 0) {
                check(sizes[p] == x.sizes()[dim], "einsum(): subscript ", letter_of(label), " is repeated for operand ",
                      o, " but the sizes don't match, ", x.sizes()[dim], " != ", sizes[p]);
                repeats = true;
              }
              own[p] = dim;
              sizes[p] = x.sizes()[dim];
              strides[p] += x.strides()[dim];
            };
            for (int l : labels) {
              if (l == kEllipsis)
                for (int64_t i = 0; i < covered; ++i, ++d) put(first_ellipsis + ellipsis - covered + i, d, l);
              else
                put(place[size_t(l)], d++, l);
            }
            for (size_t p = 0; p < size_t(total); ++p) {
              if (own[p] < 0) continue;
              const auto label = std::find(place.begin(), place.end(), int64_t(p));
              if (sizes[p] != 1 && seen[p] != 1 && sizes[p] != seen[p]) {
                if (label == place.end())
                  raise("einsum(): dimension ", int64_t(p) - first_ellipsis, " covered by ellipsis in operand ", o,
                        " has size ", sizes[p], " which does not broadcast with previously seen ellipsis with size ",
                        seen[p], " for the respective dimension");
                raise("einsum(): subscript ", letter_of(int(label - place.begin())), " has size ", sizes[p],
                      " for operand ", o, " which does not broadcast with previously seen size ", seen[p]);
              }
              if (sizes[p] != 1) seen[p] = sizes[p];
              last_use[p] = o;
            }
            if (repeats) {
              operands[o] = as_strided(x, sizes, strides, x.storage_offset());
            } else {
              Dims order;
              for (int64_t dim : own)
                if (dim >= 0) order.push_back(dim);
              operands[o] = reshape(permute(x, order), sizes);
            }
          }
          Tensor result = operands[0];
          const auto to_sum = [&](size_t o) {  // a single element is not summed, which would make small integers int64
            Dims now;
            for (int64_t d = kept; d < total; ++d)
              if (last_use[size_t(d)] == o && (result.size(d) != 1 || operands[o].size(d) != 1)) now.push_back(d);
            return now;
          };
          const Dims alone = to_sum(0);
          if (!alone.empty()) result = sum(result, alone, true);
          for (size_t o = 1; o < n; ++o) result = sum_of_products(result, operands[o], to_sum(o));
          Dims sizes(result.sizes().begin(), result.sizes().begin() + kept);
          return reshape(result, sizes);
        },
    .autocast = on_cuda(Autocast::half),
}};

OP_DEFINE(pdist){{
    .doc = R"(Distances by the p-norm between all pairs of rows, those of the first row first.

Shape: (n, k); the result is (n (n - 1) / 2). Dtype: floating.
Errors: RuntimeError for another number of dimensions or a negative p.)",
    .composite =
        [](const Tensor& x, double p) {
          check(x.dim() == 2, "pdist only supports 2D tensors, got: ", x.dim(), "D");
          check(x.is_floating_point(), "pdist only supports floating-point dtypes");
          check(p >= 0, "pdist only supports non-negative p values");
          const int64_t n = x.size(0);
          const Tensor pairs = triu_indices(n, n, 1, kInt64, {}, x.device());
          const Tensor first = index_select(x, 0, select(pairs, 0, 0)),
                       second = index_select(x, 0, select(pairs, 0, 1));
          return linalg_vector_norm(first - second, Scalar(p), Ints({-1}));
        },
}};

OP_DEFINE(cdist){{
    .doc = R"(Distances by the p-norm between all rows of x1 and of x2.

Shape: x1 (..., m, k), x2 (..., n, k), batches broadcast; the result is (..., m, n). Dtype: floating, the same for both.
Errors: RuntimeError where shapes or dtypes do not fit or p is negative.)",
    .infer =
        [](const Tensor& a, const Tensor& b, double p) {
          check<NotImplementedError>(a.is_floating_point(),
                                     "cdist only supports floating-point dtypes, X1 got: ", scalar_name(a.dtype()));
          check(a.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", a.dim(), "D");
          check(b.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", b.dim(), "D");
          check(a.size(-1) == b.size(-1), "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
                " X2: ", b.size(-1));
          check(p >= 0, "cdist only supports non-negative p values");
          check(a.dtype() == b.dtype(), "expected scalar type ", scalar_name(a.dtype()), " but found ",
                scalar_name(b.dtype()));
          Dims sizes =
              broadcast(Ints(a.sizes()).slice(0, size_t(a.dim()) - 2), Ints(b.sizes()).slice(0, size_t(b.dim()) - 2));
          sizes.push_back(a.size(-2));
          sizes.push_back(b.size(-2));
          return Meta{sizes, a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b, double p) {
      if (out.numel() == 0) return;
      const Ints batch = Ints(out.sizes()).slice(0, size_t(out.dim()) - 2);
      const auto whole = [&](const Tensor& x) {
        Dims sizes = batch;
        sizes.push_back(x.size(-2));
        sizes.push_back(x.size(-1));
        return reshape(expand(x, sizes), {product(batch), x.size(-2), x.size(-1)});
      };
      cpu::cdist(out, whole(a), whole(b), p);
    }},
    .saves = "x1, x2, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& a, const Tensor& b, double p) {
          const Tensor zero = zeros({}, g.dtype());
          if (p == 2) {  // the sums over pairs are products of matrices
            const Tensor w = where(result == zero, zero, g / result);
            return Grads{a * sum(w, Ints({-1}), true) - matmul(w, b),
                         b * unsqueeze(sum(w, Ints({-2})), -1) - matmul(transpose(w, -2, -1), a)};
          }
          const Tensor difference = unsqueeze(a, -2) - unsqueeze(b, -3), d = unsqueeze(result, -1);
          Tensor slope = sign(difference);
          if (p == 0) {
            slope = slope * zero;
          } else if (std::isinf(p)) {
            slope = where(abs(difference) == d, slope, zero);
          } else if (p != 1) {
            const Tensor power = slope * pow(abs(difference) / d, p - 1);
            slope = where(logical_or(d == zero, difference == zero), zero, power);
          }
          const Tensor pairs = unsqueeze(g, -1) * slope;
          return Grads{sum(pairs, Ints({-2})), -sum(pairs, Ints({-3}))};
        },
    .autocast = Autocast::fp32,
}};

}  // namespace rush
