// Linear algebra. A few operators over kernels, with gradients by the textbook (Giles 2008, "Collected matrix
// derivative results", and its sources for each decomposition); the rest is made of them. Everything takes batches of
// matrices.
#include "kernels/cpu/linalg.h"

#include <cmath>
#include <limits>

#include "ops/common.h"

namespace rush {

namespace {

// ---- checks and small helpers ----

void check_matrix(const Tensor& a, std::string_view name) {
  check(a.dim() >= 2, name, ": The input tensor A must have at least 2 dimensions.");
}

void check_square(const Tensor& a, std::string_view name) {
  check_matrix(a, name);
  check(a.size(-1) == a.size(-2), name, ": A must be batches of square matrices, but they are ", a.size(-2), " by ",
        a.size(-1), " matrices");
}

void check_inexact(const Tensor& a, std::string_view name) {
  check<NotImplementedError>(!is_integral(a.dtype()), name,
                             ": Expected a floating point or complex tensor as input. Got ", scalar_name(a.dtype()));
  check<NotImplementedError>(size_of(real_of(a.dtype())) >= 4, name, ": Low precision dtypes not supported. Got ",
                             scalar_name(a.dtype()));
}

Dims batch_of(const Tensor& a) { return Dims(a.sizes().begin(), a.sizes().end() - 2); }

Dims with(Dims batch, std::initializer_list<int64_t> more) {
  for (int64_t n : more) batch.push_back(n);
  return batch;
}

Tensor swapped(const Tensor& a) { return transpose(a, -2, -1); }
Tensor diagonal_of(const Tensor& a) { return diagonal(a, 0, -2, -1); }
Tensor zero_like(const Tensor& a) { return zeros({}, a.dtype(), {}, a.device()); }
Tensor real_part(const Tensor& a) { return a.is_complex() ? real(a) : a; }
/// x + x^H.
Tensor twice_hermitian(const Tensor& x) { return x + adjoint(x); }
/// x - x^H.
Tensor skew(const Tensor& x) { return x - adjoint(x); }
/// The lower triangle of x and its adjoint above: what a gradient for a Hermitian matrix is when half of it is known.
Tensor mirrored(const Tensor& x) {
  Tensor d = diagonal_of(x);
  if (d.is_complex()) d = cast(real(d), x.dtype());
  return twice_hermitian(tril(x, -1)) + diag_embed(d);
}
/// M diag(s), columns scaled.
Tensor scale_columns(const Tensor& m, const Tensor& s) { return m * unsqueeze(s, -2); }
/// s[j] - s[i] with 1 on the diagonal, to divide by.
Tensor differences(const Tensor& s) {
  const Tensor e = unsqueeze(s, -2) - unsqueeze(s, -1);
  return e + eye(s.size(-1), s.size(-1), e.dtype(), {}, e.device());
}
Tensor off_diagonal(const Tensor& x) { return x - diag_embed(diagonal_of(x)); }

/// Ones on the diagonal in the shape of a, on which it depends by a gradient of zero.
Tensor identity_for(const Tensor& a) {
  const Tensor one = eye(a.size(-2), a.size(-1), a.dtype(), {}, a.device());
  return where(zeros({}, kBool, {}, a.device()), a, one);
}

double epsilon(DType t) {
  return real_of(t) == kFloat64 ? std::numeric_limits<double>::epsilon()
                                : double(std::numeric_limits<float>::epsilon());
}

/// Raises for the first matrix whose info is not 0; `what` says it, given the number.
template <class F>
void check_info(const Tensor& info, std::string_view name, F&& what) {
  if (info.is_meta()) return;
  const Tensor codes = to(info, kCPU);
  for (int64_t i = 0; i < codes.numel(); ++i) {
    const int32_t code = codes.data<int32_t>()[i];
    if (!code) continue;
    const std::string where = info.dim() ? "(Batch element " + std::to_string(i) + "): " : "";
    raise<LinAlgError>(name, ": ", where, what(code));
  }
}
std::string not_invertible(int code) {
  return "The diagonal element " + std::to_string(code) +
         " is zero, the inversion could not be completed because the input matrix is singular.";
}
std::string not_positive(int code) {
  return "The factorization could not be completed because the input is not positive-definite (the leading minor of "
         "order " +
         std::to_string(code) + " is not positive-definite).";
}
std::string not_solvable(int) { return "The solver failed because the input matrix is singular."; }

/// Both with the same batch dimensions.
std::array<Tensor, 2> same_batch(const Tensor& a, const Tensor& b) {
  const Dims batch = broadcast(batch_of(a), batch_of(b));
  const auto whole = [&](const Tensor& x) {
    const Dims sizes = with(batch, {x.size(-2), x.size(-1)});
    return Ints(sizes) == Ints(x.sizes()) ? x : expand(x, sizes);
  };
  return {whole(a), whole(b)};
}

void check_same_dtype(const Tensor& a, const Tensor& b, std::string_view name) {
  check(a.dtype() == b.dtype(), name, ": Expected A and B to have the same dtype, but found A of type ",
        scalar_name(a.dtype()), " and B of type ", scalar_name(b.dtype()), " instead");
}

void check_equation(const Tensor& a, const Tensor& b, bool left, std::string_view name) {
  check(left ? a.size(-2) == b.size(-2) : a.size(-1) == b.size(-1), name,
        ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", a.size(-2), "x",
        a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
}

/// Whether B is a batch of vectors beside this A.
bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && Ints(b.sizes()) == Ints(a.sizes()).slice(0, size_t(a.dim()) - 1));
}

bool reads_upper(std::string_view uplo) {
  check(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u", "Expected UPLO argument to be 'L' or 'U', but got ",
        uplo);
  return uplo == "U" || uplo == "u";
}

Tensor triangular_of(const Tensor& x, bool upper, bool strict) {
  return upper ? triu(x, strict ? 1 : 0) : tril(x, strict ? -1 : 0);
}

}  // namespace

// ---- determinants and inverses ----

OP_DEFINE(linalg_det){{
    .doc = R"(The determinant of each square matrix.

Shape: A (..., n, n); the result is (...). Dtype: float32, float64 or complex. The gradient is right for singular matrices too.
Errors: RuntimeError where A is not square.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.det");
          check_inexact(a, "linalg.det");
          return Meta{batch_of(a), a.dtype()};
        },
    .kernel = {cpu::determinant, on_host},
    .saves = "A, result",
    .vjp =
        [](const Tensor& g, const Tensor& det, const Tensor& a) {
          if (grad_enabled())  // to be differentiated again
            return Grads{unsqueeze(unsqueeze(g * conj(det), -1), -1) * adjoint(linalg_inv(a))};
          Tensor cofactors = allocate({a.sizes(), a.dtype()});
          cpu::cofactors(cofactors, to(a, kCPU));
          return Grads{unsqueeze(unsqueeze(g, -1), -1) * conj(to(cofactors, a.device()))};
        },
    .onnx = "Det(A)",
}};

OP_DEFINE(det){{
    .doc = R"(Another name of linalg.det.)",
    .composite = [](const Tensor& a) { return linalg_det(a); },
}};

OP_DEFINE(linalg_slogdet){{
    .doc = R"(The sign (for complex matrices the phase) of the determinant and the logarithm of its absolute value.

Shape: A (..., n, n); both results are (...). Errors: RuntimeError where A is not square.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.slogdet");
          check_inexact(a, "linalg.slogdet");
          return std::array{Meta{batch_of(a), a.dtype()}, Meta{batch_of(a), real_of(a.dtype())}};
        },
    .kernel = {cpu::log_determinant, on_host},
    .saves = "A, sign",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& a) {
          Tensor weight = g[1];
          if (a.is_complex()) {
            if (g[0].defined()) {
              const Tensor turn = imag(conj(g[0]) * results[0]);
              weight = complex(weight.defined() ? weight : zeros_like(turn), -turn);
            } else {
              weight = cast(weight, a.dtype());
            }
          }
          if (!weight.defined()) return Grads{Tensor()};
          return Grads{unsqueeze(unsqueeze(weight, -1), -1) * adjoint(linalg_inv_ex(a)[0])};
        },
}};

OP_DEFINE(slogdet){{
    .doc = R"(Another name of linalg.slogdet.)",
    .composite = [](const Tensor& a) { return linalg_slogdet(a); },
}};

OP_DEFINE(logdet){{
    .doc = R"(The logarithm of the determinant: NaN where that is negative, -inf where it is zero.)",
    .composite =
        [](const Tensor& a) {
          const auto [sign, log] = linalg_slogdet(a);
          if (a.is_complex()) return rush::log(sign) + log;
          return where(sign == Tensor(-1.0), Tensor(std::numeric_limits<double>::quiet_NaN()), log);
        },
}};

OP_DEFINE(linalg_inv_ex){{
    .doc = R"(The inverse of each square matrix, and info, which is not 0 where a matrix has none.

Shape: A (..., n, n); inverse (..., n, n), info (...), int32. Errors: with ``check_errors`` LinAlgError for a singular matrix.)",
    .infer =
        [](const Tensor& a, bool) {
          check_square(a, "linalg.inv");
          check_inexact(a, "linalg.inv");
          return std::array{Meta{a.sizes(), a.dtype()}, Meta{batch_of(a), kInt32}};
        },
    .kernel = {[](Tensor& out, Tensor& info, const Tensor& a, bool check_errors) {
                 cpu::inverse(out, info, a);
                 if (check_errors) check_info(info, "linalg.inv", not_invertible);
               },
               on_host},
    .saves = "inverse",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, bool) {
          const Tensor r = adjoint(results[0]);
          return Grads{-matmul(r, matmul(g[0], r))};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_inv){{
    .doc = R"(The inverse of each square matrix.

Shape: A (..., n, n); the result is the same. Errors: LinAlgError for a singular matrix.)",
    .composite = [](const Tensor& a) { return linalg_inv_ex(a, true)[0]; },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(matrix_inverse){{
    .doc = R"(Another name of linalg.inv.)",
    .composite = [](const Tensor& a) { return linalg_inv_ex(a, true)[0]; },
}};

// ---- equations ----

OP_DEFINE(matrix_solve){{
    .doc = R"(X with A X = B for matrices with the same batch dimensions, and info.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check(a.dim() >= 2 && b.dim() == a.dim() && a.dtype() == b.dtype() && a.size(-1) == a.size(-2) &&
                    a.size(-1) == b.size(-2) && batch_of(a) == batch_of(b),
                "expected square A and B alike in batch, rows and dtype, got ", a.sizes(), " and ", b.sizes());
          return std::array{Meta{b.sizes(), b.dtype()}, Meta{batch_of(a), kInt32}};
        },
    .kernel = {cpu::solve, on_host},
    .saves = "A, result",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& a, const Tensor&) {
          const Tensor gb = matrix_solve(adjoint(a), g[0])[0];
          return Grads{needs_grad(0) ? -matmul(gb, adjoint(results[0])) : Tensor(), gb};
        },
}};

OP_DEFINE(linalg_solve_ex){{
    .doc = R"(The solution X of A X = B (X A = B unless ``left``), and info, which is not 0 where A is singular.

Shape: A (..., n, n), B (..., n, k) or a batch of vectors (..., n). Errors: RuntimeError where shapes or dtypes do not fit;
with ``check_errors`` LinAlgError for a singular matrix.)",
    .composite =
        [](const Tensor& a, const Tensor& b, bool left, bool check_errors) {
          check_square(a, "linalg.solve");
          check_inexact(a, "linalg.solve");
          check_same_dtype(a, b, "linalg.solve");
          const bool vector = is_vector(a, b);
          check(!vector || left,
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False");
          const Tensor columns = vector ? unsqueeze(b, -1) : b;
          check_matrix(columns, "linalg.solve");
          check_equation(a, columns, left, "linalg.solve");
          const auto [aa, bb] = same_batch(a, columns);
          auto result = left ? matrix_solve(aa, bb) : matrix_solve(swapped(aa), swapped(bb));
          if (check_errors) check_info(result[1], "torch.linalg.solve", not_solvable);
          if (!left) result[0] = swapped(result[0]);
          if (vector) result[0] = squeeze(result[0], Ints({-1}));
          return result;
        },
}};

OP_DEFINE(linalg_solve){{
    .doc = R"(The solution X of A X = B (X A = B unless ``left``) for square A.

Shape: A (..., n, n), B (..., n, k) or a batch of vectors (..., n). Errors: LinAlgError for a singular matrix; RuntimeError
where shapes or dtypes do not fit.)",
    .composite = [](const Tensor& a, const Tensor& b, bool left) { return linalg_solve_ex(a, b, left, true)[0]; },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(triangular){{
    .doc = R"(linalg.solve_triangular for matrices with the same batch dimensions.)",
    .infer =
        [](const Tensor& a, const Tensor& b, bool, bool left, bool) {
          check_square(a, "triangular");
          check_matrix(b, "triangular");
          check_inexact(a, "triangular");
          check_same_dtype(a, b, "triangular");
          check_equation(a, b, left, "triangular");
          check(Ints(a.sizes()).slice(0, size_t(a.dim()) - 2) == Ints(b.sizes()).slice(0, size_t(b.dim()) - 2),
                "triangular: A and B must have the same batch dimensions, got shapes ", a.sizes(), " and ", b.sizes());
          return Meta{b.sizes(), b.dtype()};
        },
    .kernel = {cpu::solve_triangular, on_host},
    .saves = "A, result if A",
    .vjp =
        [](const Tensor& g, const Tensor& x, const Tensor& a, const Tensor&, bool upper, bool left, bool unit) {
          const Tensor gb = triangular(adjoint(a), g, !upper, left, unit);
          Tensor ga;
          if (needs_grad(0)) {
            ga = -(left ? matmul(gb, adjoint(x)) : matmul(adjoint(x), gb));
            ga = triangular_of(ga, upper, unit);
          }
          return Grads{ga, gb};
        },
}};

OP_DEFINE(linalg_solve_triangular){{
    .doc = R"(The solution X of A X = B (X A = B unless ``left``) for triangular A, of which only that triangle is read.

``unitriangular`` takes the diagonal as ones. Shape: A (..., n, n), B (..., n, k), batches broadcast.
Errors: RuntimeError where shapes or dtypes do not fit.)",
    .composite =
        [](const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
          check_square(a, "linalg.solve_triangular");
          check(b.dim() >= 2, "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.");
          check_same_dtype(a, b, "linalg.solve_triangular");
          check_inexact(a, "linalg.solve_triangular");
          check_equation(a, b, left, "linalg.solve_triangular");
          const auto [aa, bb] = same_batch(a, b);
          return triangular(aa, bb, upper, left, unit);
        },
}};

OP_DEFINE(triangular_solve){{
    .doc =
        R"(The older form of linalg.solve_triangular: solves A X = self, or A^T X = self with ``transpose``; also returns A.)",
    .composite =
        [](const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unit) {
          const auto [aa, bb] = same_batch(a, b);
          const Tensor x = linalg_solve_triangular(transpose ? swapped(aa) : aa, bb, upper != transpose, true, unit);
          return std::array{x, clone(aa)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- Cholesky ----

OP_DEFINE(linalg_cholesky_ex){{
    .doc =
        R"(The lower triangular L with L L^H = A (the upper one with U^H U = A for ``upper``), and info, which is not 0
where A is not positive-definite.

Shape: A (..., n, n), Hermitian; one triangle is read. Errors: with ``check_errors`` LinAlgError.)",
    .infer =
        [](const Tensor& a, bool, bool) {
          check_square(a, "linalg.cholesky");
          check_inexact(a, "linalg.cholesky");
          return std::array{Meta{a.sizes(), a.dtype()}, Meta{batch_of(a), kInt32}};
        },
    .kernel = {[](Tensor& l, Tensor& info, const Tensor& a, bool upper, bool check_errors) {
                 cpu::cholesky(l, info, a, upper);
                 if (check_errors) check_info(info, "linalg.cholesky", not_positive);
               },
               on_host},
    .saves = "L",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, bool upper, bool) {
          const Tensor l = upper ? adjoint(results[0]) : results[0], gl = upper ? adjoint(g[0]) : g[0];
          const Tensor lh = adjoint(l);
          const Tensor product = matmul(lh, gl), middle = tril(product) + adjoint(tril(product, -1));
          const Tensor left = triangular(lh, middle, true, true, false);
          return Grads{triangular(l, left, false, false, false) * Tensor(0.5)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_cholesky){{
    .doc = R"(The lower triangular L with L L^H = A, or with ``upper`` its adjoint, of positive-definite matrices.

Shape: A (..., n, n). Errors: LinAlgError where A is not positive-definite.)",
    .composite = [](const Tensor& a, bool upper) { return linalg_cholesky_ex(a, upper, true)[0]; },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(cholesky){{
    .doc = R"(Another name of linalg.cholesky.)",
    .composite = [](const Tensor& a, bool upper) { return linalg_cholesky_ex(a, upper, true)[0]; },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(cholesky_solve){{
    .doc = R"(The solution X of A X = self, given the Cholesky factor of A.)",
    .composite =
        [](const Tensor& b, const Tensor& l, bool upper) {
          check(b.dim() >= 2, "b should have at least 2 dimensions, but has ", b.dim(), " dimensions instead");
          check(l.dim() >= 2, "u should have at least 2 dimensions, but has ", l.dim(), " dimensions instead");
          const Tensor lower = upper ? adjoint(l) : l;
          return linalg_solve_triangular(adjoint(lower), linalg_solve_triangular(lower, b, false), true);
        },
    .saves = "L, result if L",
    .vjp =
        [](const Tensor& g, const Tensor& x, const Tensor&, const Tensor& l, bool upper) {
          const Tensor gb = cholesky_solve(g, l, upper);  // A is its own adjoint
          if (!needs_grad(1)) return Grads{gb, Tensor()};
          const Tensor ga = twice_hermitian(matmul(gb, adjoint(x)));
          return Grads{gb, -(upper ? matmul(l, ga) : matmul(ga, l))};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(cholesky_inverse){{
    .doc = R"(The inverse of a matrix of which self is the Cholesky factor.)",
    .composite =
        [](const Tensor& l, bool upper) {
          check_square(l, "cholesky_inverse");
          const Tensor one = expand(eye(l.size(-1), l.size(-1), l.dtype(), {}, l.device()), l.sizes());
          return cholesky_solve(one, l, upper);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- QR ----

OP_DEFINE(linalg_qr){{
    .doc = R"(Q with orthonormal columns and upper triangular R with Q R = A.

Shape: A (..., m, n); with k = min(m, n), Q (..., m, k) and R (..., k, n). ``mode`` "complete" makes Q (..., m, m) and R
(..., m, n), "r" leaves Q empty. Errors: RuntimeError for another mode; the gradient needs Q, and m <= n for "complete".)",
    .infer =
        [](const Tensor& a, std::string_view mode) {
          check(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
                "' but expected one of 'reduced' (default), 'r', or 'complete'");
          check_matrix(a, "linalg.qr");
          check_inexact(a, "linalg.qr");
          const int64_t m = a.size(-2), n = a.size(-1), k = mode == "complete" ? m : std::min(m, n);
          return std::array{Meta{mode == "r" ? Dims{0} : with(batch_of(a), {m, k}), a.dtype()},
                            Meta{with(batch_of(a), {k, n}), a.dtype()}};
        },
    .kernel = {[](Tensor& q, Tensor& r, const Tensor& a, std::string_view) {
                 if (a.numel())
                   cpu::qr(q, r, a);
                 else if (q.numel())  // no columns to span: any basis will do
                   in_place(copy, q, expand(eye(q.size(-2), q.size(-1), q.dtype()), q.sizes()));
               },
               on_host},
    .saves = "Q, R",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, std::string_view mode) {
          const Tensor &q = results[0], &r = results[1];
          check(mode != "r",
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                "linalg.qr(A, mode='reduced') if you are going to require gradients for its result.");
          const int64_t m = q.size(-2), n = r.size(-1), k = q.size(-1);
          check(mode != "complete" || m <= n,
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
          const Tensor gq = g[0].defined() ? g[0] : zeros_like(q), gr = g[1].defined() ? g[1] : zeros_like(r);
          const auto thin = [](const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r) {
            const Tensor middle = mirrored(matmul(r, adjoint(gr)) - matmul(adjoint(gq), q));
            return triangular(adjoint(r), gq + matmul(q, middle), false, false, false);
          };
          if (n == k) return Grads{thin(gq, gr, q, r)};
          // A = [X Y] = Q [U V]: X = Q U as above, where Q also shares in the gradient of Y = Q V
          const Tensor u = narrow(r, -1, 0, k), v = narrow(r, -1, k, n - k);
          const Tensor gv = narrow(gr, -1, k, n - k), y = matmul(q, v);
          const Tensor gx = thin(gq + matmul(y, adjoint(gv)), narrow(gr, -1, 0, k), q, u);
          return Grads{cat({gx, matmul(q, gv)}, -1)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(geqrf){{
    .doc =
        R"(LAPACK's form of the QR decomposition: R above the diagonal, the reflectors that make up Q below it, and their
factors tau. Has no gradient.)",
    .infer =
        [](const Tensor& a) {
          check_matrix(a, "torch.geqrf");
          check_inexact(a, "torch.geqrf");
          return std::array{Meta{a.sizes(), a.dtype()},
                            Meta{with(batch_of(a), {std::min(a.size(-2), a.size(-1))}), a.dtype()}};
        },
    .kernel = {cpu::geqrf, on_host},
    .autocast = on_cpu(Autocast::fp32),
}};

namespace {

/// The reflectors I - tau v v^H of geqrf applied to y from the left, the last one first (which multiplies by their
/// product Q), or the first one first and conjugated, which multiplies by Q^H.
Tensor reflect(const Tensor& a, const Tensor& tau, Tensor y, bool adjointly) {
  const int64_t k = tau.size(-1);
  const Tensor below = tril(a, -1) + eye(a.size(-2), a.size(-1), a.dtype(), {}, a.device());
  for (int64_t i = 0; i < k; ++i) {
    const int64_t j = adjointly ? i : k - 1 - i;
    const Tensor v = narrow(below, -1, j, 1);
    Tensor t = unsqueeze(narrow(tau, -1, j, 1), -1);
    if (adjointly) t = conj(t);
    y = y - matmul(t * v, matmul(adjoint(v), y));
  }
  return y;
}

}  // namespace

OP_DEFINE(linalg_householder_product){{
    .doc = R"(The first columns of the product of Householder reflectors as geqrf gives them: Q of the QR decomposition.

Shape: A (..., m, n) with m >= n, tau (..., k) with k <= n; the result is (..., m, n). Errors: RuntimeError for other shapes.)",
    .composite =
        [](const Tensor& a, const Tensor& tau) {
          check(a.dim() >= 2, "torch.linalg.householder_product: input must have at least 2 dimensions.");
          check(a.size(-2) >= a.size(-1),
                "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]");
          check(a.size(-1) >= tau.size(-1),
                "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]");
          check(a.dim() - tau.dim() == 1,
                "torch.linalg.householder_product: Expected tau to have one dimension less "
                "than input, but got tau.ndim equal to ",
                tau.dim(), " and input.ndim is equal to ", a.dim());
          check(a.dtype() == tau.dtype(), "torch.linalg.householder_product: tau dtype ", scalar_name(tau.dtype()),
                " does not match input dtype ", scalar_name(a.dtype()));
          if (tau.size(-1) == 0) return identity_for(a);
          return reflect(a, tau, expand(eye(a.size(-2), a.size(-1), a.dtype(), {}, a.device()), a.sizes()), false);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(orgqr){{
    .doc = R"(Another name of linalg.householder_product.)",
    .composite = [](const Tensor& a, const Tensor& tau) { return linalg_householder_product(a, tau); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(ormqr){{
    .doc =
        R"(``other`` multiplied by the square Q that geqrf's results stand for: Q C, Q^H C with ``transpose``, or from the
right unless ``left``.)",
    .composite =
        [](const Tensor& a, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
          check(a.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
          check(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
          const int64_t side = left ? -2 : -1;
          check(other.size(side) >= tau.size(-1), "torch.ormqr: other.shape[", side,
                "] must be greater than or equal to tau.shape[-1]");
          check(other.size(side) == a.size(-2), "torch.ormqr: other.shape[", side,
                "] must be equal to input.shape[-2]");
          check(tau.size(-1) <= a.size(-1), "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]");
          check(a.dim() - tau.dim() == 1,
                "torch.ormqr: Expected tau to have one dimension less than input, but got "
                "tau.ndim equal to ",
                tau.dim(), " and input.ndim is equal to ", a.dim());
          check(a.dim() == other.dim(),
                "torch.ormqr: Expected other to have the same number of dimensions as input, but "
                "got other.ndim equal to ",
                other.dim(), " and input.ndim is equal to ", a.dim());
          for (int64_t d = 0; d + 2 < a.dim(); ++d)
            check(a.sizes()[d] == other.sizes()[d] && a.sizes()[d] == tau.sizes()[d],
                  "torch.ormqr: Expected batch dimensions of tau and other to be equal to input.shape[:-2]");
          check(a.dtype() == tau.dtype() && a.dtype() == other.dtype(),
                "torch.ormqr: Expected input, tau and other to have the same dtype");
          if (left) return reflect(a, tau, other, transpose);
          return adjoint(reflect(a, tau, adjoint(other), !transpose));  // C Q = (Q^H C^H)^H
        },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- LU ----

OP_DEFINE(linalg_lu_factor_ex){{
    .doc =
        R"(L and U in one matrix, with A = P L U, the exchanges of rows as pivots (int32, from 1), and info, which is not 0
where U has a zero on its diagonal.

Shape: A (..., m, n); LU the same, pivots (..., min(m, n)), info (...). Errors: RuntimeError for ``pivot=False``.)",
    .infer =
        [](const Tensor& a, bool pivot, bool) {
          check_matrix(a, "torch.lu_factor");
          check_inexact(a, "torch.lu_factor");
          check(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
          return std::array{Meta{a.sizes(), a.dtype()},
                            Meta{with(batch_of(a), {std::min(a.size(-2), a.size(-1))}), kInt32},
                            Meta{batch_of(a), kInt32}};
        },
    .kernel = {[](Tensor& lu, Tensor& pivots, Tensor& info, const Tensor& a, bool, bool check_errors) {
                 if (a.numel())
                   cpu::lu_factor(lu, pivots, info, a);
                 else
                   std::fill_n(info.data<int32_t>(), info.numel(), 0);
                 if (check_errors)
                   check_info(info, "torch.linalg.lu_factor", [](int code) {
                     return "U[" + std::to_string(code) + "," + std::to_string(code) +
                            "] is zero and using it on lu_solve would result in a division by zero. If you still want "
                            "to perform "
                            "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)";
                   });
               },
               on_host},
    .saves = "LU, pivots",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, bool, bool) {
          const int64_t m = results[0].size(-2), n = results[0].size(-1), k = std::min(m, n);
          const auto [p, l, u] = lu_unpack(results[0], results[1]);
          // the square parts of L and U, then what is beside or below them
          const Tensor l1 = narrow(l, -2, 0, k), u1 = narrow(u, -1, 0, k);
          const Tensor gl = tril(narrow(g[0], -1, 0, k), -1), gu = triu(narrow(g[0], -2, 0, k));
          const Tensor l1h = adjoint(l1), u1h = adjoint(u1);
          Tensor lower = matmul(l1h, narrow(gl, -2, 0, k)), upper = matmul(narrow(gu, -1, 0, k), u1h);
          if (n > k) lower = lower - matmul(narrow(gu, -1, k, n - k), adjoint(narrow(u, -1, k, n - k)));
          if (m > k) upper = upper - matmul(adjoint(narrow(l, -2, k, m - k)), narrow(gl, -2, k, m - k));
          const Tensor middle = tril(lower, -1) + triu(upper);
          Tensor ga = triangular(u1h, triangular(l1h, middle, true, true, true), false, false, false);
          if (n > k) ga = cat({ga, triangular(l1h, narrow(gu, -1, k, n - k), true, true, true)}, -1);
          if (m > k) ga = cat({ga, triangular(u1h, narrow(gl, -2, k, m - k), false, false, false)}, -2);
          return Grads{matmul(p, ga)};
        },
}};

OP_DEFINE(linalg_lu_factor){{
    .doc = R"(linalg.lu_factor_ex without info. Errors: RuntimeError where U has a zero on its diagonal.)",
    .composite =
        [](const Tensor& a, bool pivot) {
          const auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot, true);
          return std::array{lu, pivots};
        },
}};

OP_DEFINE(lu_permutation){{
    .doc = R"(The permutation matrix P of lu_factor's pivots.)",
    .infer =
        [](const Tensor& lu, const Tensor& pivots) {
          check(pivots.dtype() == kInt32,
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                "torch.int32 dtype.");
          const Dims expected = with(batch_of(lu), {std::min(lu.size(-2), lu.size(-1))});
          check(pivots.sizes() == expected, "expected pivots of shape ", expected, " for LU of shape ", lu.sizes(),
                ", got ", pivots.sizes());
          return Meta{with(batch_of(lu), {lu.size(-2), lu.size(-2)}), lu.dtype()};
        },
    .kernel = {[](Tensor& p, const Tensor& lu, const Tensor& pivots) {
                 const Tensor list = contiguous(pivots);
                 for (int64_t i = 0; i < list.numel(); ++i) {
                   const int32_t at = list.data<int32_t>()[i];
                   check(at >= 1 && at <= lu.size(-2),
                         "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                         "Did you properly pass the result of lu_factor?");
                 }
                 cpu::pivots_to_permutation(p, pivots);
               },
               on_host},
}};

OP_DEFINE(lu_unpack){{
    .doc = R"(P, L and U from lu_factor's results; with the flags off, empty tensors in their places.)",
    .composite =
        [](const Tensor& lu, const Tensor& pivots, bool unpack_data, bool unpack_pivots) {
          check_matrix(lu, "torch.lu_unpack");
          const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
          const Tensor empty = zeros({0}, lu.dtype());
          std::array<Tensor, 3> out{empty, empty, empty};
          if (unpack_pivots) {
            NoGrad guard;
            out[0] = lu_permutation(lu, pivots);
          }
          if (unpack_data) {
            out[1] = tril(narrow(lu, -1, 0, k), -1) + eye(m, k, lu.dtype(), {}, lu.device());
            out[2] = triu(narrow(lu, -2, 0, k));
          }
          return out;
        },
}};

OP_DEFINE(linalg_lu){{
    .doc = R"(P, L and U with A = P L U: a permutation, a lower triangle with ones on the diagonal and an upper one.

Shape: A (..., m, n); P (..., m, m), L (..., m, k) and U (..., k, n) with k = min(m, n).)",
    .composite =
        [](const Tensor& a, bool pivot) {
          const auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot);
          return lu_unpack(lu, pivots);
        },
}};

OP_DEFINE(linalg_lu_solve){{
    .doc = R"(The solution X of A X = B (X A = B unless ``left``; with A^H for ``adjoint``) from lu_factor's results.)",
    .composite =
        [](const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjointly) {
          check_square(lu, "torch.linalg.lu_solve");
          check_matrix(b, "torch.linalg.lu_solve");
          check_same_dtype(lu, b, "linalg.lu_solve");
          check_equation(lu, b, left, "linalg.lu_solve");
          const auto [p, l, u] = lu_unpack(lu, pivots);
          const Tensor right = left ? b : adjoint(b);  // X A = B is A^H X^H = B^H
          Tensor x;
          if (adjointly == left)
            x = matmul(p, linalg_solve_triangular(adjoint(l), linalg_solve_triangular(adjoint(u), right, false), true,
                                                  true, true));
          else
            x = linalg_solve_triangular(u, linalg_solve_triangular(l, matmul(adjoint(p), right), false, true, true),
                                        true);
          return left ? x : adjoint(x);
        },
}};

OP_DEFINE(lu_solve){{
    .doc = R"(The solution X of A X = self from lu_factor's results.)",
    .composite = [](const Tensor& b, const Tensor& lu, const Tensor& pivots) { return linalg_lu_solve(lu, pivots, b); },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- eigenvalues ----

OP_DEFINE(linalg_eigh){{
    .doc =
        R"(Eigenvalues, ascending, and orthonormal eigenvectors (columns) of symmetric or Hermitian matrices, of which the
triangle named by ``UPLO`` is read.

Shape: A (..., n, n); eigenvalues (..., n), real; eigenvectors (..., n, n). The gradient of the vectors needs distinct eigenvalues.
Errors: RuntimeError where A is not square; LinAlgError where the iteration does not converge.)",
    .infer =
        [](const Tensor& a, std::string_view uplo) {
          check_square(a, "linalg.eigh");
          check_inexact(a, "linalg.eigh");
          reads_upper(uplo);
          return std::array{Meta{with(batch_of(a), {a.size(-1)}), real_of(a.dtype())}, Meta{a.sizes(), a.dtype()}};
        },
    .kernel = {[](Tensor& w, Tensor& v, const Tensor& a, std::string_view uplo) {
                 cpu::eigh(w, &v, a, reads_upper(uplo));
               },
               on_host},
    .saves = "eigenvalues, eigenvectors",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, std::string_view) {
          const Tensor &w = results[0], &v = results[1], vh = adjoint(v);
          if (!g[1].defined()) return Grads{matmul(scale_columns(v, g[0]), vh)};
          Tensor middle = off_diagonal(skew(matmul(vh, g[1]))) / (differences(w) * Tensor(2));
          if (g[0].defined()) middle = middle + diag_embed(g[0]);
          return Grads{matmul(v, matmul(middle, vh))};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_eigvalsh){{
    .doc = R"(The eigenvalues of linalg.eigh alone.)",
    .infer =
        [](const Tensor& a, std::string_view uplo) {
          check_square(a, "linalg.eigvalsh");
          check_inexact(a, "linalg.eigvalsh");
          reads_upper(uplo);
          return Meta{with(batch_of(a), {a.size(-1)}), real_of(a.dtype())};
        },
    .kernel = {[](Tensor& w, const Tensor& a, std::string_view uplo) { cpu::eigh(w, nullptr, a, reads_upper(uplo)); },
               on_host},
    .saves = "A",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, std::string_view uplo) {
          const Tensor v = linalg_eigh(a, uplo)[1];
          return Grads{matmul(scale_columns(v, g), adjoint(v))};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_eig){{
    .doc = R"(Eigenvalues and eigenvectors (columns, of length 1) of any square matrices; both are complex.

Shape: A (..., n, n); eigenvalues (..., n), eigenvectors (..., n, n). The order is not defined. The gradient needs distinct
eigenvalues. Errors: RuntimeError where A is not square.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.eig");
          check_inexact(a, "linalg.eig");
          const DType c = complex_of(a.dtype());
          return std::array{Meta{with(batch_of(a), {a.size(-1)}), c}, Meta{a.sizes(), c}};
        },
    .kernel = {[](Tensor& w, Tensor& v, const Tensor& a) { cpu::eig(w, &v, a); }, on_host},
    .saves = "eigenvalues, eigenvectors",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&) {
          const Tensor &w = results[0], &v = results[1], vh = adjoint(v);
          Tensor middle;
          if (g[1].defined()) {
            const Tensor vhg = matmul(vh, g[1]);
            const Tensor length = cast(real(diagonal_of(vhg)), vhg.dtype());  // vectors keep their length
            middle = off_diagonal(vhg - scale_columns(matmul(vh, v), length)) / conj(differences(w));
          }
          if (g[0].defined()) middle = middle.defined() ? middle + diag_embed(g[0]) : diag_embed(g[0]);
          return Grads{matmul(linalg_solve(vh, middle), vh)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_eigvals){{
    .doc = R"(The eigenvalues of linalg.eig alone.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.eigvals");
          check_inexact(a, "linalg.eigvals");
          return Meta{with(batch_of(a), {a.size(-1)}), complex_of(a.dtype())};
        },
    .kernel = {[](Tensor& w, const Tensor& a) { cpu::eig(w, nullptr, a); }, on_host},
    .saves = "A",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a) {
          const Tensor vh = adjoint(linalg_eig(a)[1]);
          return Grads{matmul(linalg_solve(vh, diag_embed(g)), vh)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- singular values ----

namespace {

void check_driver(OptStr driver) {
  check(!driver, "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
}

}  // namespace

OP_DEFINE(linalg_svd){{
    .doc =
        R"(U, S and Vh with A = U diag(S) Vh: orthonormal columns, the singular values in descending order, orthonormal rows.

Shape: A (..., m, n); with k = min(m, n), U (..., m, m), S (..., k), Vh (..., n, n), and without ``full_matrices`` U (..., m, k)
and Vh (..., k, n). S is real. The gradient needs distinct singular values and does not depend on the rest of U and Vh.
Errors: LinAlgError for NaN or infinity.)",
    .infer =
        [](const Tensor& a, bool full, OptStr driver) {
          check_matrix(a, "linalg.svd");
          check_inexact(a, "linalg.svd");
          check_driver(driver);
          const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
          const Dims batch = batch_of(a);
          return std::array{Meta{with(batch, {m, full ? m : k}), a.dtype()}, Meta{with(batch, {k}), real_of(a.dtype())},
                            Meta{with(batch, {full ? n : k, n}), a.dtype()}};
        },
    .kernel = {[](Tensor& u, Tensor& s, Tensor& vh, const Tensor& a, bool, OptStr) {
                 if (a.numel()) return cpu::svd(&u, s, &vh, a);
                 for (Tensor* t : {&u, &vh})
                   if (t->numel()) in_place(copy, *t, expand(eye(t->size(-2), t->size(-1), t->dtype()), t->sizes()));
               },
               on_host},
    .saves = "U, S, Vh",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, bool, OptStr) {
          const Tensor& s = results[1];
          const int64_t k = s.size(-1), m = results[0].size(-2), n = results[2].size(-1);
          const Tensor u = narrow(results[0], -1, 0, k), vh = narrow(results[2], -2, 0, k);
          if (!g[0].defined() && !g[2].defined()) return Grads{matmul(scale_columns(u, g[1]), vh)};
          Tensor middle = g[1].defined() ? diag_embed(g[1]) : Tensor();
          const auto add_in = [&](const Tensor& x) { middle = middle.defined() ? middle + x : x; };
          const Tensor squares = differences(s * s), uh = adjoint(u), v = adjoint(vh);
          Tensor gu, gvh;
          if (g[0].defined()) {
            gu = narrow(g[0], -1, 0, k);
            const Tensor turn = skew(matmul(uh, gu));
            add_in(off_diagonal(turn) / squares * unsqueeze(s, -2));
            if (turn.is_complex()) add_in(diag_embed(diagonal_of(turn) / (s * Tensor(2))));
          }
          if (g[2].defined()) {
            gvh = narrow(g[2], -2, 0, k);
            add_in(unsqueeze(s, -1) * (off_diagonal(skew(matmul(vh, adjoint(gvh)))) / squares));
          }
          Tensor left = matmul(u, middle);
          if (m > k && gu.defined()) left = left + (gu - matmul(u, matmul(uh, gu))) / unsqueeze(s, -2);
          Tensor ga = matmul(left, vh);
          if (n > k && gvh.defined()) ga = ga + matmul(u, (gvh - matmul(matmul(gvh, v), vh)) / unsqueeze(s, -1));
          return Grads{ga};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_svdvals){{
    .doc = R"(The singular values alone, in descending order.

Shape: A (..., m, n); the result is (..., min(m, n)), real.)",
    .infer =
        [](const Tensor& a, OptStr driver) {
          check_matrix(a, "linalg.svdvals");
          check_inexact(a, "linalg.svdvals");
          check_driver(driver);
          return Meta{with(batch_of(a), {std::min(a.size(-2), a.size(-1))}), real_of(a.dtype())};
        },
    .kernel = {[](Tensor& s, const Tensor& a, OptStr) {
                 if (s.numel()) cpu::svd(nullptr, s, nullptr, a);
               },
               on_host},
    .saves = "A",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, OptStr) {
          const auto [u, s, vh] = linalg_svd(a, false);
          return Grads{matmul(scale_columns(u, g), vh)};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(svd){{
    .doc = R"(The older form of linalg.svd, which returns V instead of its adjoint; ``some`` means reduced, and without
``compute_uv`` U and V are zeros.)",
    .composite =
        [](const Tensor& a, bool some, bool compute_uv) {
          if (compute_uv) {
            const auto [u, s, vh] = linalg_svd(a, !some);
            return std::array{u, s, adjoint(vh)};
          }
          const Dims batch = batch_of(a);
          const int64_t m = a.size(-2), n = a.size(-1);
          return std::array{zeros(with(batch, {m, m}), a.dtype()), linalg_svdvals(a),
                            zeros(with(batch, {n, n}), a.dtype())};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

namespace {

/// What counts as zero: max(atol, rtol * the largest value), where rtol is by default eps * max(m, n), or 0 if atol is
/// given.
Tensor tolerance(const Tensor& a, const Tensor& largest, const Tensor& atol, const Tensor& rtol,
                 std::string_view name) {
  const auto number = [&](const Tensor& t, const char* which) {
    check(!t.is_complex(), name, ": ", which, " tensor of complex type is not supported.");
    return t.dim() == 0 && t.dtype() != largest.dtype() ? cast(t, largest.dtype()) : t;
  };
  Tensor relative = rtol.defined() ? number(rtol, "rtol") : Tensor();
  if (!relative.defined() && !atol.defined())
    relative = full({}, epsilon(a.dtype()) * double(std::max(a.size(-1), a.size(-2))), largest.dtype());
  if (!relative.defined() && atol.defined()) {
    // PyTorch's rule: the default rtol holds where atol is 0
    const Tensor absolute = number(atol, "atol");
    relative = where(absolute > zero_like(absolute), zero_like(largest),
                     full({}, epsilon(a.dtype()) * double(std::max(a.size(-1), a.size(-2))), largest.dtype()));
  }
  const Tensor product = relative * largest;
  return atol.defined() ? maximum(number(atol, "atol"), product) : product;
}

/// The absolute values of the eigenvalues of Hermitian matrices, or the singular values; and the largest.
std::array<Tensor, 2> spectrum(const Tensor& a, bool hermitian) {
  const Tensor values = hermitian ? abs(linalg_eigvalsh(a)) : linalg_svdvals(a);
  return {values, amax(values, Ints({-1}))};
}

Tensor pinv_of(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_matrix(a, "linalg.pinv");
  check_inexact(a, "linalg.pinv");
  if (a.numel() == 0) return swapped(a);
  if (hermitian) check_square(a, "linalg.pinv");
  Tensor tol;
  {
    NoGrad guard;
    tol = tolerance(a, spectrum(a, hermitian)[1], atol, rtol, "torch.linalg.pinv");
  }
  return pseudo_inverse(a, tol, hermitian);
}

Tensor rank_of(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check(a.dim() >= 2, "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.");
  check_inexact(a, "linalg.matrix_rank");
  if (hermitian) check_square(a, "linalg.matrix_rank");
  NoGrad guard;
  if (a.numel() == 0) return zeros(batch_of(a), kInt64);
  const auto [values, largest] = spectrum(a, hermitian);
  return sum(values > unsqueeze(tolerance(a, largest, atol, rtol, "torch.linalg.matrix_rank"), -1), Ints({-1}));
}

}  // namespace

OP_DEFINE(pseudo_inverse){{
    .doc =
        R"(The pseudo-inverse of matrices, with singular values (eigenvalues, if Hermitian) up to ``tol`` taken as zero.)",
    .composite =
        [](const Tensor& a, const Tensor& tol, bool hermitian) {
          const Tensor limit = unsqueeze(tol, -1);
          if (hermitian) {
            const auto [w, v] = linalg_eigh(a);
            const Tensor inverse = where(abs(w) > limit, reciprocal(w), zero_like(w));
            return matmul(scale_columns(v, inverse), adjoint(v));
          }
          const auto [u, s, vh] = linalg_svd(a, false);
          const Tensor inverse = where(s > limit, reciprocal(s), zero_like(s));
          return matmul(scale_columns(adjoint(vh), inverse), adjoint(u));
        },
    .saves = "A, result",
    .vjp =
        [](const Tensor& g, const Tensor& p, const Tensor& a, const Tensor&, bool) {
          // Golub and Pereyra 1973, "The differentiation of pseudo-inverses", eq. 4.12, with the smaller products first
          const Tensor gh = adjoint(g), ph = adjoint(p);
          if (a.size(-2) <= a.size(-1)) {
            const Tensor k = matmul(gh, p), kph = matmul(k, ph);
            return Grads{kph - adjoint(matmul(p, k)) - matmul(matmul(a, p), kph) +
                         matmul(matmul(ph, p), gh - matmul(k, a))};
          }
          const Tensor k = matmul(p, gh), phk = matmul(ph, k);
          return Grads{phk - adjoint(matmul(k, p)) + matmul(matmul(gh - matmul(a, k), p), ph) -
                       matmul(matmul(phk, p), a)};
        },
}};

OP_DEFINE(linalg_pinv){
    {
        .doc = R"(The Moore-Penrose inverse of each matrix.

Singular values up to max(atol, rtol * the largest) count as zero; rtol is eps * max(m, n) unless atol is given. With
``hermitian``, one triangle is read and eigenvalues take the place of singular values. Shape: A (..., m, n); the result is
(..., n, m).)",
        .composite = [](const Tensor& a, const Tensor& atol, const Tensor& rtol,
                        bool hermitian) { return pinv_of(a, atol, rtol, hermitian); },
    },
    {
        .doc = R"(``rcond`` is the older name of rtol.)",
        .composite = [](const Tensor& a, const Tensor& rcond,
                        bool hermitian) { return pinv_of(a, zero_like(real_part(a)), rcond, hermitian); },
    }};

OP_DEFINE(pinverse){{
    .doc = R"(linalg.pinv with another default for rcond.)",
    .composite = [](const Tensor& a, double rcond) { return pinv_of(a, Tensor(0.0), Tensor(rcond), false); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_matrix_rank){
    {
        .doc =
            R"(The number of singular values (or eigenvalues, if ``hermitian``) above max(atol, rtol * the largest), int64.)",
        .composite = [](const Tensor& a, const Tensor& atol, const Tensor& rtol,
                        bool hermitian) { return rank_of(a, atol, rtol, hermitian); },
        .autocast = on_cpu(Autocast::fp32),
    },
    {
        .doc = R"(``tol`` is the older name of atol, here with an rtol of zero.)",
        .composite = [](const Tensor& a, const Tensor& tol,
                        bool hermitian) { return rank_of(a, tol, Tensor(0.0), hermitian); },
        .autocast = on_cpu(Autocast::fp32),
    }};

// ---- norms ----

namespace {

Tensor converted(const Tensor& a, OptDType dtype, std::string_view name) {
  check<NotImplementedError>(!is_integral(a.dtype()), name,
                             ": Expected a floating point or complex tensor as input. Got ", scalar_name(a.dtype()));
  if (!dtype) return a;
  check(!is_integral(*dtype), name, ": dtype should be floating point or complex, but got ", scalar_name(*dtype));
  check(is_complex(*dtype) || !a.is_complex(), name, ": dtype should be complex for complex inputs, but got ",
        scalar_name(*dtype));
  return a.dtype() == *dtype ? a : cast(a, *dtype);
}

/// The two dimensions as numbers from 0, checked.
Dims matrix_dims(const Tensor& a, Ints dim, std::string_view name) {
  check_matrix(a, name);
  check(dim.size() == 2, name, ": dim must be a 2-tuple. Got ", dim);
  Dims d{wrap_dim(dim[0], a.dim()), wrap_dim(dim[1], a.dim())};
  check(d[0] != d[1], name, ": dims must be different. Got (", dim[0], ", ", dim[1], ")");
  return d;
}

/// f of the singular values of the matrices in two dimensions.
template <class F>
Tensor from_singular_values(const Tensor& a, const Dims& d, bool keepdim, F&& f) {
  Dims order;
  for (int64_t i = 0; i < a.dim(); ++i)
    if (i != d[0] && i != d[1]) order.push_back(i);
  order.push_back(d[0]);
  order.push_back(d[1]);
  Tensor norm = f(linalg_svdvals(permute(a, order)));
  if (keepdim) {
    norm = unsqueeze(norm, std::min(d[0], d[1]));
    norm = unsqueeze(norm, std::max(d[0], d[1]));
  }
  return norm;
}

Tensor matrix_norm_by_name(const Tensor& x, std::string_view ord, Ints dim, bool keepdim, OptDType dtype,
                           std::string_view name) {
  const Tensor a = converted(x, dtype, name);
  const Dims d = matrix_dims(a, dim, name);
  check(ord == "fro" || ord == "nuc", name, ": Order ", ord, " not supported.");
  if (ord == "fro") return linalg_vector_norm(a, 2, Ints(d), keepdim);
  check_inexact(a, name);
  return from_singular_values(a, d, keepdim, [](const Tensor& s) { return sum(s, Ints({-1})); });
}

Tensor matrix_norm_by_order(const Tensor& x, Scalar ord, Ints dim, bool keepdim, OptDType dtype,
                            std::string_view name) {
  const Tensor a = converted(x, dtype, name);
  Dims d = matrix_dims(a, dim, name);
  const double order = ord.to_double(), size = std::abs(order);
  check(size == 1 || size == 2 || std::isinf(order), name, ": Order ", ord, " not supported.");
  if (size == 2) {
    check_inexact(a, name);
    return from_singular_values(a, d, keepdim,
                                [&](const Tensor& s) { return order > 0 ? amax(s, Ints({-1})) : amin(s, Ints({-1})); });
  }
  if (std::isinf(order)) std::swap(d[0], d[1]);
  const Tensor sums = linalg_vector_norm(a, 1, Ints({d[0]}), true);
  const Tensor norm = order > 0 ? amax(sums, Ints({d[1]}), true) : amin(sums, Ints({d[1]}), true);
  return keepdim ? norm : squeeze(norm, Ints(d));
}

}  // namespace

OP_DEFINE(linalg_matrix_norm){
    {
        .doc = R"(A norm of the matrices in two dimensions: ``ord`` 1 and -1 the largest and smallest sum of a column's
absolute values, inf and -inf of a row's, 2 and -2 the largest and smallest singular value.

Errors: RuntimeError for another ``ord``.)",
        .composite =
            [](const Tensor& a, Scalar ord, Ints dim, bool keepdim, OptDType dtype) {
              return matrix_norm_by_order(a, ord, dim, keepdim, dtype, "linalg.matrix_norm");
            },
        .autocast = on_cuda(Autocast::fp32),
    },
    {
        .doc = R"(``ord`` "fro" is the root of the sum of squares, "nuc" the sum of the singular values.)",
        .composite =
            [](const Tensor& a, std::string_view ord, Ints dim, bool keepdim, OptDType dtype) {
              return matrix_norm_by_name(a, ord, dim, keepdim, dtype, "linalg.matrix_norm");
            },
        .autocast = on_cuda(Autocast::fp32),
    }};

OP_DEFINE(linalg_norm){
    {
        .doc =
            R"(A vector norm (one dimension, or without ``ord`` over all of them) or a matrix norm (two dimensions).)",
        .composite =
            [](const Tensor& x, OptScalar ord, OptInts dim, bool keepdim, OptDType dtype) {
              check(!dim || dim->size() == 1 || dim->size() == 2,
                    "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", dim.value_or(Ints()));
              check(dim || !ord || x.dim() == 1 || x.dim() == 2,
                    "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", x.dim(), "D.");
              if (ord && (dim ? dim->size() == 2 : x.dim() == 2))
                return matrix_norm_by_order(x, *ord, dim.value_or(Ints({0, 1})), keepdim, dtype, "linalg.matrix_norm");
              return linalg_vector_norm(x, ord.value_or(2.0), dim, keepdim, dtype);
            },
    },
    {
        .doc = R"(A matrix norm by name, "fro" or "nuc".)",
        .composite =
            [](const Tensor& x, std::string_view ord, OptInts dim, bool keepdim, OptDType dtype) {
              check(!dim || dim->size() == 1 || dim->size() == 2,
                    "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", dim.value_or(Ints()));
              check(dim || x.dim() == 1 || x.dim() == 2,
                    "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", x.dim(), "D.");
              return matrix_norm_by_name(x, ord, dim.value_or(Ints({0, 1})), keepdim, dtype, "linalg.matrix_norm");
            },
    }};

OP_DEFINE(linalg_cond){
    {
        .doc = R"(The condition number by a norm: ``norm(A) * norm(inv(A))``; None and 2 the largest over the smallest
singular value, -2 the reverse. inf for a singular matrix.)",
        .composite =
            [](const Tensor& a, OptScalar p) {
              check_matrix(a, "linalg.cond");
              check_inexact(a, "linalg.cond");
              const double order = p ? p->to_double() : 2;
              if (a.numel() == 0) return zeros(batch_of(a), real_of(a.dtype()));
              if (std::abs(order) == 2) {
                const Tensor s = linalg_svdvals(a);
                const Tensor first = select(s, -1, 0), last = select(s, -1, -1);
                return order == 2 ? first / last : last / first;
              }
              check(std::abs(order) == 1 || std::isinf(order), "linalg.cond got an invalid norm type: ", order);
              check_square(a, "linalg.cond");
              const auto [inverse, info] = linalg_inv_ex(a);
              const Tensor bad = unsqueeze(unsqueeze(info != Tensor(0), -1), -1);
              const Tensor safe = where(bad, Tensor(std::numeric_limits<double>::infinity()), inverse);
              return linalg_matrix_norm(a, *p, Ints({-2, -1})) * linalg_matrix_norm(safe, *p, Ints({-2, -1}));
            },
        .autocast = on_cpu(Autocast::fp32),
    },
    {
        .doc = R"(The condition number by the norm "fro" or "nuc".)",
        .composite =
            [](const Tensor& a, std::string_view p) {
              check<ValueError>(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
              check_square(a, "linalg.cond");
              check_inexact(a, "linalg.cond");
              if (a.numel() == 0) return zeros(batch_of(a), real_of(a.dtype()));
              if (p == "nuc") {
                const Tensor s = linalg_svdvals(a);
                return sum(s, Ints({-1})) * sum(reciprocal(s), Ints({-1}));
              }
              const auto [inverse, info] = linalg_inv_ex(a);
              const Tensor bad = unsqueeze(unsqueeze(info != Tensor(0), -1), -1);
              const Tensor safe = where(bad, Tensor(std::numeric_limits<double>::infinity()), inverse);
              return linalg_matrix_norm(a, p) * linalg_matrix_norm(safe, p);
            },
        .autocast = on_cpu(Autocast::fp32),
    }};

// ---- powers, exponential ----

OP_DEFINE(linalg_matrix_power){{
    .doc = R"(The n-th power of square matrices; for a negative n that of the inverse.

Errors: LinAlgError where the inverse of a singular matrix is asked for.)",
    .composite =
        [](const Tensor& a, int64_t n) {
          check_square(a, "linalg.matrix_power");
          if (n == 0) return identity_for(a);
          Tensor base = n < 0 ? linalg_inv(a) : a, result;
          for (uint64_t left = n < 0 ? 0 - uint64_t(n) : uint64_t(n);; base = matmul(base, base)) {
            if (left & 1) result = result.defined() ? matmul(result, base) : base;
            if (!(left >>= 1)) break;
          }
          return n == 1 ? clone(result) : result;
        },
}};

OP_DEFINE(matrix_power){{
    .doc = R"(Another name of linalg.matrix_power.)",
    .composite = [](const Tensor& a, int64_t n) { return linalg_matrix_power(a, n); },
}};

OP_DEFINE(linalg_matrix_exp){{
    .doc = R"(The exponential of square matrices: the sum of A^k / k!.

Shape: A (..., n, n). Errors: RuntimeError where A is not square.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.matrix_exp");
          check<NotImplementedError>(!is_integral(a.dtype()),
                                     "linalg.matrix_exp: Expected a floating point or complex "
                                     "tensor as input. Got ",
                                     scalar_name(a.dtype()));
          return Meta{a.sizes(), a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a) {
                 if (a.numel()) cpu::matrix_exp(out, a);
               },
               on_host},
    .saves = "A",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a) {
          // exp([[A^H, G], [0, A^H]]) has the derivative in direction G in its corner (Mathias 1996)
          const int64_t n = a.size(-1);
          const Tensor ah = adjoint(a), rows = cat({ah, g}, -1), below = cat({zeros_like(ah), ah}, -1);
          return Grads{narrow(narrow(linalg_matrix_exp(cat({rows, below}, -2)), -2, 0, n), -1, n, n)};
        },
}};

OP_DEFINE(matrix_exp){{
    .doc = R"(Another name of linalg.matrix_exp.)",
    .composite = [](const Tensor& a) { return linalg_matrix_exp(a); },
}};

// ---- least squares, LDL, tensors ----

OP_DEFINE(linalg_lstsq){{
    .doc = R"(X that makes ``norm(A X - B)`` least, and of these the shortest, by the pseudo-inverse.

Results: the solution (..., n, k); the squared residuals (..., k) where m > n, A has full rank and the driver is not "gelsy",
which is the default, else empty; the rank (but for driver "gels", which takes A to have full rank); the singular values for
"gelsd" and "gelss", else empty.
Shape: A (..., m, n), B (..., m, k) or (..., m). Errors: RuntimeError where shapes do not fit or for an unknown driver.)",
    .composite =
        [](const Tensor& a, const Tensor& b, OptDouble rcond, OptStr driver) {
          check(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
          check(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
          const int64_t extra = a.dim() - b.dim();
          check(extra == 0 || extra == 1,
                "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
                "(input.dim() - other.dim()) <= 1");
          const bool vector = extra == 1;
          const Tensor right = vector ? unsqueeze(b, -1) : b;
          check(a.size(-2) == right.size(-2), "torch.linalg.lstsq: input.size(-2) should match other.size(",
                vector ? "-1)" : "-2)");
          check(a.dtype() == b.dtype(),
                "torch.linalg.lstsq: Expected input and other to have the same dtype, but got "
                "input's dtype ",
                scalar_name(a.dtype()), " and other's dtype ", scalar_name(b.dtype()));
          const std::string_view how = driver.value_or("gelsy");
          check(how == "gels" || how == "gelsy" || how == "gelsd" || how == "gelss",
                "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
          check_inexact(a, "torch.linalg.lstsq");
          const DType r = real_of(a.dtype());
          const double limit = rcond.value_or(epsilon(a.dtype()) * double(std::max(a.size(-2), a.size(-1))));
          const Tensor atol = zeros({}, r, {}, a.device()),
                       rtol = full({}, how == "gels" ? 0.0 : limit, r, {}, a.device());
          Tensor x = matmul(pinv_of(a, atol, rtol, false), right);
          Tensor residuals = real_part(reshape(narrow(x, -1, 0, 0), {0})), rank = zeros({0}, kInt64, {}, a.device()),
                 values = zeros({0}, r, {}, a.device());
          const Tensor found = rank_of(a, atol, rtol, false);
          bool full_rank = true;
          if (how != "gels") {
            rank = found;
            full_rank = found.is_meta() || is_nonzero(all(eq(found, Tensor(a.size(-1)))));
          }
          if (how == "gelsd" || how == "gelss") {
            NoGrad guard;
            values = linalg_svdvals(a);
          }
          if (a.size(-2) > a.size(-1) && full_rank && how != "gelsy") {
            const Tensor off = matmul(a, x) - right;
            residuals = sum(real_part(off * conj(off)), Ints({-2}));
          }
          return std::array{vector ? squeeze(x, Ints({-1})) : x, residuals, rank, values};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_ldl_factor_ex){{
    .doc =
        R"(The factors of symmetric (with ``hermitian`` Hermitian) matrices A = L D L^T in LAPACK's form: L and the blocks of
D in one matrix, the pivots, and info, which is not 0 where D is singular. The lower triangle is read. Has no gradient.)",
    .infer =
        [](const Tensor& a, bool, bool) {
          check_square(a, "torch.linalg.ldl_factor_ex");
          check_inexact(a, "torch.linalg.ldl_factor_ex");
          return std::array{Meta{a.sizes(), a.dtype()}, Meta{with(batch_of(a), {a.size(-1)}), kInt32},
                            Meta{batch_of(a), kInt32}};
        },
    .kernel = {[](Tensor& ld, Tensor& pivots, Tensor& info, const Tensor& a, bool hermitian, bool check_errors) {
                 cpu::ldl_factor(ld, pivots, info, a, hermitian);
                 if (check_errors)
                   check_info(info, "torch.linalg.ldl_factor_ex", [](int code) {
                     return "The diagonal element " + std::to_string(code) + " of D is zero.";
                   });
               },
               on_host},
}};

OP_DEFINE(linalg_ldl_factor){{
    .doc = R"(linalg.ldl_factor_ex without info. Errors: LinAlgError where D is singular.)",
    .composite =
        [](const Tensor& a, bool hermitian) {
          const auto [ld, pivots, info] = linalg_ldl_factor_ex(a, hermitian, true);
          return std::array{ld, pivots};
        },
}};

OP_DEFINE(linalg_ldl_solve){{
    .doc = R"(The solution X of A X = B from ldl_factor's results. Has no gradient.)",
    .infer =
        [](const Tensor& ld, const Tensor& pivots, const Tensor& b, bool) {
          check_square(ld, "torch.linalg.ldl_solve");
          check(b.dim() >= 2, "torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has ", b.dim(),
                " dimensions instead");
          check(is_integral(pivots.dtype()), "torch.linalg.ldl_solve: Expected pivots to be integers. Got ",
                scalar_name(pivots.dtype()));
          check(ld.dtype() == b.dtype(), "torch.linalg.ldl_solve: LD dtype ", scalar_name(ld.dtype()),
                " does not match b dtype ", scalar_name(b.dtype()));
          check_equation(ld, b, true, "torch.linalg.ldl_solve");
          check(pivots.dim() > 0 && pivots.sizes().back() == ld.size(-1), "torch.linalg.ldl_solve: expected ",
                ld.size(-1), " pivots for each LD of shape ", ld.sizes(), ", got pivots of shape ", pivots.sizes());
          return Meta{with(broadcast(batch_of(ld), batch_of(b)), {b.size(-2), b.size(-1)}), b.dtype()};
        },
    .kernel = {[](Tensor& x, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
                 if (x.numel() == 0) return;
                 const auto [factors, right] = same_batch(ld, b);
                 cpu::ldl_solve(x, factors, expand(pivots, with(batch_of(factors), {pivots.size(-1)})), right,
                                hermitian);
               },
               on_host},
}};

OP_DEFINE(linalg_tensorinv){{
    .doc = R"(The inverse of a tensor as a map from its last dimensions to its first ``ind``.

Errors: RuntimeError where the two groups of dimensions differ in size; LinAlgError where it has no inverse.)",
    .composite =
        [](const Tensor& a, int64_t ind) {
          check(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
          const size_t at = size_t(std::min(ind, a.dim()));
          const Ints first = Ints(a.sizes()).slice(0, at), last = Ints(a.sizes()).slice(at, size_t(a.dim()) - at);
          check(product(first) == product(last),
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ",
                product(last), " != ", product(first));
          Dims sizes = last;
          for (int64_t s : first) sizes.push_back(s);
          return reshape(linalg_inv(reshape(a, {product(first), product(last)})), sizes);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_tensorsolve){{
    .doc = R"(X with ``tensordot(A, X, X.ndim) = B``, after ``dims`` of A are moved to the end.

Errors: RuntimeError where sizes do not fit.)",
    .composite =
        [](const Tensor& a, const Tensor& b, OptInts dims) {
          Tensor moved = a;
          if (dims) {
            const Dims back = wrap_dims(*dims, a.dim());
            Dims order;
            for (int64_t d = 0; d < a.dim(); ++d)
              if (std::find(back.begin(), back.end(), d) == back.end()) order.push_back(d);
            for (int64_t d : back) order.push_back(d);
            moved = permute(a, order);
          }
          check(moved.dim() >= b.dim(), "Expected self to have at least as many dimensions as other");
          const Ints rest = Ints(moved.sizes()).slice(size_t(b.dim()), size_t(moved.dim() - b.dim()));
          check(product(rest) == b.numel(),
                "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                "prod(self.shape[:other.ndim]), but got ",
                product(rest), " != ", b.numel());
          const Dims sizes = rest;
          return reshape(linalg_solve(reshape(moved, {b.numel(), product(rest)}), reshape(b, {-1})), sizes);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(linalg_vander){{
    .doc = R"(Vandermonde matrices: the powers 0 to N - 1 of each element as a row; N is x's last size unless given.

Shape: x (..., n); the result is (..., n, N).)",
    .composite =
        [](const Tensor& input, OptInt n) {
          const Tensor x = input.dim() ? input : unsqueeze(input, 0);
          check(n.value_or(x.size(-1)) > 1, "N must be greater than 1.");
          const int64_t count = n.value_or(x.size(-1));
          const DType t = is_integral(x.dtype()) ? kInt64 : x.dtype();
          const Tensor wide = unsqueeze(x.dtype() == t ? x : cast(x, t), -1),
                       one = ones(wide.sizes(), t, {}, wide.device());
          Dims sizes = x.sizes();
          sizes.push_back(count - 1);
          return cat({one, cumprod(expand(wide, sizes), -1)}, -1);
        },
}};

namespace {
/// The Y with Y H + H Y = X for H = V diag(w) V^H, w >= 0.
Tensor solve_between(const Tensor& w, const Tensor& v, const Tensor& x) {
  const Tensor inner = matmul(adjoint(v), matmul(x, v));
  return matmul(v, matmul(inner / (unsqueeze(w, -1) + unsqueeze(w, -2)), adjoint(v)));
}
}  // namespace

OP_DEFINE(linalg_polar){{
    .doc =
        R"(U and H with A = U H: the columns of U are orthonormal, H is symmetric (Hermitian) and has no negative eigenvalue.

Shape: A (..., m, n) with m >= n; U (..., m, n), H (..., n, n). The gradient needs full rank.
Errors: RuntimeError where m < n.)",
    .infer =
        [](const Tensor& a) {
          check_matrix(a, "linalg.polar");
          check_inexact(a, "linalg.polar");
          check(a.size(-2) >= a.size(-1), "linalg.polar: input must have at least as many rows as columns, but got ",
                a.size(-2), " by ", a.size(-1), " matrices");
          return std::array{Meta{a.sizes(), a.dtype()}, Meta{with(batch_of(a), {a.size(-1), a.size(-1)}), a.dtype()}};
        },
    .kernel = {[](Tensor& u, Tensor& h, const Tensor& a) {
      const auto [left, s, vh] = linalg_svd(a, false);
      in_place(copy, u, matmul(left, vh));
      in_place(copy, h, matmul(scale_columns(adjoint(vh), s), vh));
    }},
    .saves = "U, H",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&) {
          // U^H dA - dA^H U = Z H + H Z with Z = U^H dU gives dH = U^H dA - Z H; what dU has outside U's columns is
          // (1 - U U^H) dA H^-1.
          const Tensor &u = results[0], &h = results[1], uh = adjoint(u);
          const auto [w, v] = linalg_eigh(h);
          Tensor z, ga;
          if (g[0].defined()) {
            const Tensor inside = matmul(uh, g[0]);
            z = inside;
            if (u.size(-2) > u.size(-1)) {
              const Tensor inverse = matmul(v / unsqueeze(w, -2), adjoint(v));
              ga = matmul(g[0] - matmul(u, inside), inverse);
            }
          }
          if (g[1].defined()) {
            const Tensor turned = matmul(g[1], h), whole = matmul(u, g[1]);
            z = z.defined() ? z - turned : -turned;
            ga = ga.defined() ? ga + whole : whole;
          }
          const Tensor turn = matmul(u, skew(solve_between(w, v, z)));
          return Grads{ga.defined() ? ga + turn : turn};
        },
}};

OP_DEFINE(linalg_matrix_sqrth){{
    .doc =
        R"(The X with X X = A that is symmetric (Hermitian) and has no negative eigenvalue, of such an A; its lower triangle is read.

Shape: (..., n, n); the result has the same. Eigenvalues below 0 count as 0. Errors: RuntimeError where A is not square.)",
    .infer =
        [](const Tensor& a) {
          check_square(a, "linalg.matrix_sqrth");
          check_inexact(a, "linalg.matrix_sqrth");
          return Meta{a.sizes(), a.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& a) {
      const auto [w, v] = linalg_eigh(a);
      in_place(copy, out, matmul(scale_columns(v, sqrt(clamp(w, Tensor(0)))), adjoint(v)));
    }},
    .saves = "result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor&) {
          const auto [w, v] = linalg_eigh(result);
          return Grads{solve_between(w, v, twice_hermitian(g)) / 2};
        },
}};

}  // namespace rush
