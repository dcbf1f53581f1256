// Views: other windows on the same memory. Their gradients put the window's gradient back into the whole.
#include "ops/common.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

Dims without(Ints dims, int64_t at) {
  Dims out = dims.dims();
  out.erase(size_t(at));
  return out;
}

Dims inverse(const Dims& permutation) {
  Dims out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[permutation[i]] = int64_t(i);
  return out;
}

Tensor permuted(const Tensor& x, const Dims& order) {
  Dims sizes(order.size()), strides(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sizes[i] = x.sizes()[order[i]];
    strides[i] = x.strides()[order[i]];
  }
  return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
}

/// Zeros shaped like x with the gradient in the window that `window` cuts out.
template <class Window>
Tensor embed(const Tensor& g, const Tensor& x, Window&& window) {
  Tensor whole = zeros(x.sizes(), g.dtype(), {}, g.device());
  Tensor part = window(whole);
  in_place(copy, part, g);
  return whole;
}

struct Range {
  int64_t start, end;
};
Range clipped(OptInt start, OptInt end, int64_t n) {
  const auto bound = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t s = bound(start.value_or(0));
  return {s, std::max(s, bound(end.value_or(n)))};
}

}  // namespace

OP_DEFINE(as_strided){{
    .doc = R"(A view with the given size, strides and offset, all in elements of the storage.

Errors: RuntimeError where it would reach outside the storage.)",
    .composite =
        [](const Tensor& x, Ints size, Ints stride, OptInt offset) {
          check(size.size() == stride.size(), "mismatch in length of strides and shape: ", size, " and ", stride);
          const int64_t first = offset.value_or(x.storage_offset());
          check(first >= 0, "Tensor: invalid storage offset ", first);
          for (int64_t s : stride)
            check(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
          const int64_t needed = extent(size, stride), there = x.storage()->bytes() / x.itemsize();
          check(needed == 0 || (needed <= there && first <= there - needed), "setStorage: sizes ", size, ", strides ",
                stride, " and storage offset ", first, " need ", needed,
                " elements from the offset on, which are out of ", "bounds for storage of size ", x.storage()->bytes(),
                " and itemsize ", x.itemsize());
          return alias(x, size, stride, first);
        },
    .saves = "self.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, Ints size, Ints stride, OptInt offset) {
          // The gradient is laid into memory like x's storage, where elements seen several times sum up.
          const int64_t base = offset ? std::min(*offset, x.storage_offset()) : x.storage_offset();
          int64_t reach = 1, own = 1;
          for (size_t i = 0; i < size.size(); ++i) reach += std::max<int64_t>(size[i] - 1, 0) * stride[i];
          for (int64_t i = 0; i < x.dim(); ++i) own += std::max<int64_t>(x.sizes()[i] - 1, 0) * x.strides()[i];
          const int64_t start = offset.value_or(x.storage_offset()) - base, own_start = x.storage_offset() - base;
          Tensor memory = zeros({std::max(start + reach, own_start + own)}, g.dtype(), {}, g.device());
          if (is_dense(size, stride) || g.numel() <= 1) {
            Tensor window = as_strided(memory, size, stride, start);
            in_place(copy, window, g);
          } else {
            Tensor places = as_strided(arange(memory.numel(), kInt64, {}, g.device()), size, stride, start);
            memory = index_add(memory, 0, reshape(places, {-1}), reshape(g, {-1}));
          }
          return Grads{as_strided(memory, x.sizes(), x.strides(), own_start)};
        },
    .view = true,
    .in_place = true,
}};

OP_DEFINE(view){
    {
        .doc = R"(The same elements in another shape; one size may be -1.

Errors: RuntimeError where the strides don't allow it without a copy: use reshape.)",
        .composite =
            [](const Tensor& x, Ints size) {
              Dims target = infer_size(size, x.numel());
              if (x.is_contiguous()) return alias_contiguous(x, target);
              auto strides = view_strides(x.sizes(), x.strides(), target);
              check(strides.has_value(),
                    "view size is not compatible with input tensor's size and stride (at least one dimension spans "
                    "across two contiguous subspaces). Use .reshape(...) instead.");
              return alias(x, std::move(target), std::move(*strides), x.storage_offset());
            },
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Ints) { return Grads{reshape(g, x.sizes())}; },
        .view = true,
    },
    {
        .doc =
            R"(The same memory read as elements of another dtype; a different element size changes the last dimension.)",
        .composite =
            [](const Tensor& x, DType dtype) {
              const int64_t from = x.itemsize(), to = size_of(dtype);
              Dims sizes = x.sizes(), strides = x.strides();
              int64_t offset = x.storage_offset();
              if (from != to) {
                check(x.dim() > 0, "self.dim() cannot be 0 to view ", x.dtype(), " as ", dtype,
                      " (different element sizes)");
                const size_t last = sizes.size() - 1;
                check(strides[last] == 1, "self.stride(-1) must be 1 to view ", x.dtype(), " as ", dtype,
                      " (different element sizes), but got ", strides[last]);
                for (size_t i = 0; i <= last; ++i) {
                  if (i == last)
                    sizes[i] = sizes[i] * from / to;
                  else {
                    check(from > to || strides[i] * from % to == 0, "self.stride(", i, ") must be divisible by ",
                          to / from, " to view ", x.dtype(), " as ", dtype);
                    strides[i] = strides[i] * from / to;
                  }
                }
                check(x.sizes()[last] * from % to == 0, "self.size(-1) must be divisible by ", to / from, " to view ",
                      x.dtype(), " as ", dtype, " (different element sizes), but got ", x.sizes()[last]);
                check(offset * from % to == 0, "self.storage_offset() must be divisible by ", to / from);
                offset = offset * from / to;
              }
              Tensor out = alias(x, std::move(sizes), std::move(strides), offset);
              out.impl()->dtype = dtype;
              return out;
            },
        .view = true,
    }};

OP_DEFINE(reshape){{
    .doc = R"(The same elements in another shape: a view where the strides allow it, else a copy.)",
    .composite =
        [](const Tensor& x, Ints shape) {
          const Dims target = infer_size(shape, x.numel());
          if (x.is_contiguous() || view_strides(x.sizes(), x.strides(), target)) return view(x, target);
          return view(clone(x, MemoryFormat::Contiguous), target);
        },
}};

OP_DEFINE(expand){{
    .doc = R"(A view in which dimensions of size 1 are repeated without copying; -1 keeps a size.)",
    .composite =
        [](const Tensor& x, Ints size, bool) {
          check(int64_t(size.size()) >= x.dim(), "the number of sizes provided (", size.size(),
                ") must be greater or equal to the number of dimensions in the tensor (", x.dim(), ")");
          Dims target = size.dims();
          const size_t shift = size.size() - size_t(x.dim());
          for (size_t i = 0; i < target.size(); ++i) {
            const int64_t have = i < shift ? 1 : x.sizes()[i - shift];
            if (target[i] == -1) {
              check(i >= shift,
                    "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", i);
              target[i] = have;
            }
            check(target[i] == have || have == 1, "The expanded size of the tensor (", target[i],
                  ") must match the existing size (", have, ") at non-singleton dimension ", i,
                  ".  Target sizes: ", size, ".  Tensor sizes: ", x.sizes());
            check(target[i] >= 0, "negative size ", target[i], " in expand to ", size);
          }
          Dims strides = broadcast_strides(x.sizes(), x.strides(), target);
          return alias(x, std::move(target), std::move(strides), x.storage_offset());
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, Ints, bool) { return Grads{g}; },
    .view = true,
}};

OP_DEFINE(permute){{
    .doc = R"(A view with the dimensions in the given order.)",
    .composite =
        [](const Tensor& x, Ints dims) {
          check(int64_t(dims.size()) == x.dim(),
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                "length of the desired ordering of dimensions i.e. input.dim() = ",
                x.dim(), " is not equal to len(dims) = ", dims.size());
          return permuted(x, wrap_dims(dims, x.dim()));
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&,
              Ints dims) { return Grads{permute(g, inverse(wrap_dims(dims, int64_t(dims.size()))))}; },
    .view = true,
}};

OP_DEFINE(transpose){{
    .doc = R"(A view with two dimensions exchanged.)",
    .composite =
        [](const Tensor& x, int64_t dim0, int64_t dim1) {
          Dims sizes = x.sizes(), strides = x.strides();
          const int64_t a = wrap_dim(dim0, x.dim()), b = wrap_dim(dim1, x.dim());
          if (x.dim() > 0) {
            std::swap(sizes[a], sizes[b]);
            std::swap(strides[a], strides[b]);
          }
          return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim0,
              int64_t dim1) { return Grads{transpose(g, dim0, dim1)}; },
    .view = true,
    .in_place = true,
}};

OP_DEFINE(t){{
    .doc = R"(The transposed matrix, as a view; a vector or 0-dim tensor stays as it is.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", x.dim(), "D");
          return x.dim() < 2 ? x : transpose(x, 0, 1);
        },
    .view = true,
    .in_place = true,
}};

OP_DEFINE(select){{
    .doc = R"(The view at one index of a dimension, without that dimension.)",
    .composite =
        [](const Tensor& x, int64_t dim, int64_t index) {
          check<IndexError>(x.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
          const int64_t d = wrap_dim(dim, x.dim()), n = x.sizes()[d];
          check<IndexError>(index >= -n && index < n, "index ", index, " is out of bounds for dimension ", d,
                            " with size ", n);
          const int64_t i = index < 0 ? index + n : index;
          return alias(x, without(x.sizes(), d), without(x.strides(), d), x.storage_offset() + i * x.strides()[d]);
        },
    .saves = "self.shape",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim,
              int64_t index) { return Grads{embed(g, x, [&](const Tensor& w) { return select(w, dim, index); })}; },
    .view = true,
}};

OP_DEFINE(slice){{
    .doc = R"(The view of every step-th index from start up to end of a dimension, bounds clipped as Python's are.)",
    .composite =
        [](const Tensor& x, int64_t dim, OptInt start, OptInt end, int64_t step) {
          check<IndexError>(x.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
          check<ValueError>(step > 0, "step must be greater than zero");
          const int64_t d = wrap_dim(dim, x.dim());
          const auto [s, e] = clipped(start, end, x.sizes()[d]);
          Dims sizes = x.sizes(), strides = x.strides();
          sizes[d] = e > s ? (e - s - 1) / step + 1 : 0;
          const int64_t offset = x.storage_offset() + s * strides[d];
          // The stride means nothing where a single index is left; there a huge step may overflow it.
          if (__builtin_mul_overflow(strides[d], step, &strides[d])) strides[d] = 0;
          return alias(x, std::move(sizes), std::move(strides), offset);
        },
    .saves = "self.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim, OptInt start, OptInt end, int64_t step) {
          return Grads{embed(g, x, [&](const Tensor& w) { return slice(w, dim, start, end, step); })};
        },
    .view = true,
}};

OP_DEFINE(narrow){
    {
        .doc = R"(The view of ``length`` indices from ``start`` of a dimension.)",
        .composite =
            [](const Tensor& x, int64_t dim, int64_t start, int64_t length) {
              check(x.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
              check(length >= 0, "narrow(): length must be non-negative.");
              const int64_t n = x.sizes()[wrap_dim(dim, x.dim())];
              check<IndexError>(start >= -n && start <= n, "start out of range (expected to be in range of [", -n, ", ",
                                n, "], but got ", start, ")");
              const int64_t s = start < 0 ? start + n : start;
              check(length <= n - s, "start (", s, ") + length (", length, ") exceeds dimension size (", n, ").");
              return slice(x, dim, s, s + length, 1);
            },
    },
    {
        .doc = R"(The same with ``start`` in a tensor.)",
        .composite =
            [](const Tensor& x, int64_t dim, const Tensor& start, int64_t length) {
              check(start.dim() == 0 && is_integral(start.dtype()) && start.dtype() != kBool,
                    "start must be an 0-dim integral Tensor.");
              return narrow(x, dim, start.item<int64_t>(), length);
            },
    }};

OP_DEFINE(squeeze){
    {
        .doc = R"(A view without the dimensions of size 1, or without those named that have it.)",
        .composite =
            [](const Tensor& x) {
              Dims sizes, strides;
              for (int64_t i = 0; i < x.dim(); ++i) {
                if (x.sizes()[i] == 1) continue;
                sizes.push_back(x.sizes()[i]);
                strides.push_back(x.strides()[i]);
              }
              return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
            },
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{reshape(g, x.sizes())}; },
        .view = true,
        .in_place = true,
    },
    {
        .doc = R"(A view without those of the named dimensions that have size 1.)",
        .composite =
            [](const Tensor& x, Ints dim) {
              const Dims drop = wrap_dims(dim, x.dim());
              Dims sizes, strides;
              for (int64_t i = 0; i < x.dim(); ++i) {
                if (x.sizes()[i] == 1 && std::find(drop.begin(), drop.end(), i) != drop.end()) continue;
                sizes.push_back(x.sizes()[i]);
                strides.push_back(x.strides()[i]);
              }
              return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
            },
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Ints) { return Grads{reshape(g, x.sizes())}; },
        .view = true,
        .in_place = true,
    }};

OP_DEFINE(unsqueeze){{
    .doc = R"(A view with a new dimension of size 1 at the given place.)",
    .composite =
        [](const Tensor& x, int64_t dim) {
          const int64_t d = wrap_dim(dim, x.dim() + 1);
          Dims sizes = x.sizes(), strides = x.strides();
          const int64_t step = d < x.dim() ? sizes[d] * strides[d] : 1;
          sizes.insert(size_t(d), 1);
          strides.insert(size_t(d), step);
          return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&,
              int64_t dim) { return Grads{squeeze(g, Ints({dim < 0 ? dim + g.dim() : dim}))}; },
    .view = true,
    .in_place = true,
}};

OP_DEFINE(detach){{
    .doc = R"(The same elements without history, sharing memory: never needs a gradient.)",
    .composite = [](const Tensor& x) { return x.detach(); },
    .in_place = true,
}};

OP_DEFINE(view_as_real){{
    .doc = R"(A complex tensor as real pairs in a new last dimension of size 2; a view.)",
    .composite =
        [](const Tensor& x) {
          check(x.is_complex(), "view_as_real is only supported for complex tensors");
          return real_view(x);
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{view_as_complex(contiguous(g))}; },
    .view = true,
}};

OP_DEFINE(view_as_complex){{
    .doc = R"(Real pairs in the last dimension, of size 2, as complex numbers; a view.)",
    .composite =
        [](const Tensor& x) {
          check(x.dtype() == kFloat32 || x.dtype() == kFloat64,
                "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: ",
                scalar_name(x.dtype()));
          check(x.dim() > 0 && x.sizes().back() == 2, "Tensor must have a last dimension of size 2");
          check(x.strides().back() == 1, "Tensor must have a last dimension with stride 1");
          Dims sizes = x.sizes(), strides = x.strides();
          sizes.resize(sizes.size() - 1);
          strides.resize(strides.size() - 1);
          for (int64_t& s : strides) {
            check(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
            s /= 2;
          }
          check(x.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
          Tensor out = alias(x, std::move(sizes), std::move(strides), x.storage_offset() / 2);
          out.impl()->dtype = complex_of(x.dtype());
          return out;
        },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{view_as_real(g)}; },
    .view = true,
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(real){{
    .doc = R"(The real part as a view; a real tensor is returned as it is.)",
    .composite = [](const Tensor& x) { return x.is_complex() ? select(view_as_real(x), -1, 0) : x; },
}};

OP_DEFINE(imag){{
    .doc = R"(The imaginary part of a complex tensor as a view.)",
    .composite =
        [](const Tensor& x) {
          check(x.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
          return select(view_as_real(x), -1, 1);
        },
}};

OP_DEFINE(view_as_itself){{
    .doc = R"(A view of the whole: another tensor on the same elements, with history.)",
    .composite = [](const Tensor& x) { return alias(x, x.sizes(), x.strides(), x.storage_offset()); },
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{g}; },
    .view = true,
}};

}  // namespace rush
