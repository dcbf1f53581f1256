// Reductions: sums and their kin.
#include "kernels/cpu/reductions.h"

#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/selection.h"
#include "kernels/cpu/softmax.h"
#include "ops/reduce.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

DType sum_dtype(DType t, OptDType asked) { return asked.value_or(is_integral(t) ? kInt64 : t); }

/// .infer of a reduction over these dimensions.
Meta reduced_meta(const Tensor& x, const Dims& dims, bool keepdim, DType dtype) {
  return {reduced(x.sizes(), real_dims(x, dims), keepdim), dtype};
}
Tensor spread(const Tensor& g, const Tensor& x, const Dims& dims, bool keepdim) {
  return expand(restore_dims(g, real_dims(x, dims), x.dim(), keepdim), x.sizes());
}

DType mean_dtype(const Tensor& x, OptDType dtype) {
  const DType t = dtype.value_or(x.dtype());
  check<NotImplementedError>(!is_integral(t), "mean(): could not infer output dtype. ", dtype ? "Optional" : "Input",
                             " dtype must be either a floating point or complex dtype. Got: ", scalar_name(t));
  return t;
}

/// Reductions without a value for no elements.
void check_not_empty(const Tensor& x, const Dims& dims, bool named, const char* name) {
  if (named) {
    for (int64_t d : real_dims(x, dims))
      check<IndexError>(x.sizes()[d] != 0, name, "(): Expected reduction dim ", d, " to have non-zero size.");
  } else {
    check(x.numel() != 0, name, "(): Expected reduction dim to be specified for input.numel() == 0. ",
          "Specify the reduction dim with the 'dim' argument.");
  }
}
void check_ordered(const Tensor& x) {
  check<NotImplementedError>(!x.is_complex(), "not implemented for '", scalar_name(x.dtype()), "'");
}

/// The gradient of an extreme value, shared evenly among the elements that have it.
Tensor extreme_backward(const Tensor& g, const Tensor& result, const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims real = real_dims(x, dims);
  const Tensor value = restore_dims(result, real, x.dim(), keepdim);
  const Tensor mask = eq(x, value) | (ne(x, x) & ne(value, value));
  const Tensor share = restore_dims(g, real, x.dim(), keepdim) / sum(mask, OptInts(real), true);
  return masked(expand(share, x.sizes()), ~mask, 0);
}

// ---- max and min, which differ in a word

template <bool kMax>
Meta extreme_all_meta(const Tensor& x) {
  check_ordered(x);
  check_not_empty(x, {}, false, kMax ? "max" : "min");
  return {{}, x.dtype()};
}
template <bool kMax>
std::array<Meta, 2> extreme_dim_meta(const Tensor& x, int64_t dim, bool keepdim) {
  check_ordered(x);
  const Dims dims{wrap_dim(dim, x.dim())};
  check_not_empty(x, dims, true, kMax ? "max" : "min");
  return {reduced_meta(x, dims, keepdim, x.dtype()), reduced_meta(x, dims, keepdim, kInt64)};
}
Grads picked_vjp(const Tensors& g, const Tensors& results, const Tensor& x, int64_t dim, bool keepdim) {
  return {picked_backward(g[0], wrap_dim(dim, x.dim()), results[1], x.sizes(), keepdim)};
}
template <bool kMax>
Meta amax_meta(const Tensor& x, Ints dim, bool keepdim) {
  check_ordered(x);
  const Dims dims = dims_of(x, OptInts(dim));
  check_not_empty(x, dims, !dim.empty(), kMax ? "amax" : "amin");
  return reduced_meta(x, dims, keepdim, x.dtype());
}
template <bool kMax>
Meta arg_meta(const Tensor& x, OptInt dim, bool keepdim) {
  const char* name = kMax ? "argmax" : "argmin";
  check<TypeError>(!x.is_complex(), name, "(): does not support complex input");
  check<NotImplementedError>(x.dtype() != kBool, name, "(): does not support bool input");
  const Dims dims = dims_of(x, dim);
  if (!dim)
    check<IndexError>(x.numel() != 0, name, "(): Expected reduction dim to be specified for input.numel() == 0.");
  check_not_empty(x, dims, bool(dim), name);
  return reduced_meta(x, dims, keepdim, kInt64);
}
template <bool kMax>
void arg_kernel(Tensor& out, const Tensor& x, OptInt dim, bool) {
  Tensor values = allocate({out.sizes(), x.dtype(), x.device(), {}});
  const Tensor in = dim ? x : contiguous(x);
  cpu::arg_extreme(values, out, in, real_dims(x, dims_of(x, dim)), kMax);
}

/// The results of any and all: uint8 stays what it was before there was a bool.
DType truth_dtype(const Tensor& x) { return x.dtype() == kUInt8 ? kUInt8 : kBool; }

// ---- variances

Dims check_moments(const Tensor& x, OptInts dim, const char* name) {
  check<NotImplementedError>(!is_integral(x.dtype()), name, " only support floating point and complex dtypes");
  return dims_of(x, dim);
}
std::array<Tensor, 2> var_and_mean(const Tensor& x, OptInts dim, double correction, bool keepdim, bool root,
                                   const char* name = "std and var") {
  const Dims dims = check_moments(x, dim, name);
  if (!x.is_complex()) return var_mean_of(x, OptInts(dims), correction, keepdim, root);
  const auto [variance, m] = var_mean_of(view_as_real(x), OptInts(dims), correction, keepdim, false);
  const Tensor both = sum(variance, Ints({-1}));
  return {root ? sqrt(both) : both, view_as_complex(contiguous(m))};
}
double correction_of(OptScalar c) { return c ? c->to_double() : 1; }

/// m where it is finite, else 0: what exponents may be shifted by.
Tensor no_infinity(const Tensor& m) { return masked(m, eq(abs(m), HUGE_VAL), 0); }

Tensor log_sum_exp(const Tensor& self, Ints dim, bool keepdim) {
  const Tensor x = is_integral(self.dtype()) ? cast(self, default_dtype()) : self;
  const Dims dims = dims_of(x, OptInts(dim));
  if (x.numel() == 0) return log(sum(exp(x), OptInts(dims), keepdim));
  const Tensor top = no_infinity(amax(x.is_complex() ? real(x) : x, dims, true));
  const Tensor total = log(sum(exp(x - top), OptInts(dims), true)) + top;
  return keepdim ? total : reshape(total, reduced(x.sizes(), real_dims(x, dims), false));
}

// ---- order statistics

std::array<Meta, 2> selection_meta(const Tensor& x, int64_t dim, bool keepdim, const char* name) {
  check_ordered(x);
  const Dims dims{wrap_dim(dim, x.dim())};
  check_not_empty(x, dims, true, name);
  return {reduced_meta(x, dims, keepdim, x.dtype()), reduced_meta(x, dims, keepdim, kInt64)};
}
int64_t row_length(const Tensor& x, int64_t dim) { return x.dim() ? x.sizes()[wrap_dim(dim, x.dim())] : 1; }
Tensor rows_along(const Tensor& x, int64_t dim) { return contiguous(dim_to_end(x, wrap_dim(dim, x.dim()))); }

Meta median_meta(const Tensor& x) {
  check<NotImplementedError>(x.dtype() != kBool && !x.is_complex(), "not implemented for '", scalar_name(x.dtype()),
                             "'");
  return {{}, x.dtype()};
}
template <bool kIgnoreNan>
void median_all(Tensor& out, const Tensor& x) {
  if (x.numel() == 0) {
    const Tensor nothing = is_floating(x.dtype()) ? Tensor(std::nan("")) : Tensor(std::numeric_limits<int64_t>::min());
    in_place(copy, out, nothing);
    return;
  }
  Tensor index = allocate({{}, kInt64, x.device(), {}});
  cpu::median(out, index, contiguous(x), x.numel(), kIgnoreNan);
}
std::array<Meta, 2> median_dim_meta(const Tensor& x, int64_t dim, bool keepdim) {
  check<NotImplementedError>(x.dtype() != kBool, "not implemented for 'Bool'");
  return selection_meta(x, dim, keepdim, "median");
}
template <bool kIgnoreNan>
void median_dim(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool) {
  cpu::median(values, indices, rows_along(x, dim), row_length(x, dim), kIgnoreNan);
}

/// The q-quantiles along the last dimension of sorted rows, of which `counts` (floating) elements each are valid.
Tensor quantile_of_sorted(const Tensor& sorted, const Tensor& q, const Tensor& counts, std::string_view how) {
  const Tensor rank = maximum(q * (counts - 1), 0);  // (..., number of quantiles)
  const auto at = [&](const Tensor& place) { return gather(sorted, -1, cast(place, kInt64)); };
  if (how == "lower") return at(floor(rank));
  if (how == "higher") return at(ceil(rank));
  if (how == "nearest") return at(round(rank));
  const Tensor below = floor(rank), low = at(below), high = at(ceil(rank));
  if (how == "midpoint") return lerp(low, high, Tensor(0.5));
  return lerp(low, high, rank - below);
}
Tensor quantile_along(const Tensor& x, const Tensor& q, OptInt dim, bool keepdim, std::string_view how,
                      bool ignore_nan) {
  check(x.numel() > 0, "quantile() input tensor must be non-empty");
  check(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  check(x.dtype() == kFloat32 || x.dtype() == kFloat64, "quantile() input tensor must be either float or double dtype");
  check(q.impl()->wrapped_number || q.dtype() == x.dtype(),
        "quantile() q tensor must be same dtype as the input tensor");
  check(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest",
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", how);
  const Tensor qs = to(cast(reshape(q, {-1}), x.dtype()), x.device());
  if (!qs.is_meta()) check(all(ge(qs, 0) & le(qs, 1)).item<bool>(), "quantile() q values must be in the range [0, 1]");
  const Tensor rows = dim ? dim_to_end(x, wrap_dim(*dim, x.dim())) : reshape(x, {-1});
  const Tensor flat = rows.dim() ? rows : reshape(rows, {1});
  const Tensor sorted = std::get<0>(sort(flat, -1));
  const Tensor valid = cast(sum(eq(flat, flat), Ints({-1}), true), x.dtype());
  const Tensor counts = ignore_nan ? valid : full({1}, flat.sizes().back(), x.dtype(), {}, x.device());
  Dims sizes = flat.sizes();
  sizes[sizes.size() - 1] = qs.numel();
  const Tensor ranks = expand(qs, sizes);
  Tensor result = quantile_of_sorted(sorted, ranks, counts, how);
  const Tensor none = ignore_nan ? eq(valid, 0) : lt(valid, Scalar(flat.sizes().back()));
  result = masked(result, expand(none, sizes), std::nan(""));
  if (keepdim) {  // (..., quantiles) with the reduced dimensions before the last
    Dims kept = x.sizes();
    if (dim && x.dim())
      kept[size_t(wrap_dim(*dim, x.dim()))] = 1;
    else
      std::fill(kept.begin(), kept.end(), 1);
    kept.push_back(qs.numel());
    if (dim && x.dim()) {
      result = unsqueeze(result, wrap_dim(*dim, x.dim()));
    }
    result = reshape(result, kept);
  } else if (x.dim() == 0) {
    result = reshape(result, {-1});
  }
  if (q.dim() == 0) return squeeze(result, Ints({-1}));
  Dims order{result.dim() - 1};
  for (int64_t d = 0; d + 1 < result.dim(); ++d) order.push_back(d);
  return permute(result, order);
}

}  // namespace

OP_DEFINE(sum){
    {
        .doc = R"(The sum of all elements; integers sum as int64.

``dtype`` is that of the result; elements are converted to it first. Floats are accumulated in double, so the error
does not grow with the number of elements. The sum of nothing is 0.)",
        .infer =
            [](const Tensor& x, OptDType dtype) {
              return Meta{{}, sum_dtype(x.dtype(), dtype)};
            },
        .kernel = {[](Tensor& out, const Tensor& x, OptDType) { cpu::sum(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptDType) { return Grads{expand(g, x.sizes())}; },
        .autocast = on_cuda(Autocast::fp32),
        .onnx = "ReduceSum(self, keepdims=0)",
    },
    {
        .doc = R"(The sum over the named dimensions, all if none are named; ``keepdim`` leaves them with size 1.)",
        .infer = [](const Tensor& x, OptInts dim, bool keepdim,
                    OptDType dtype) { return reduced_meta(x, dims_of(x, dim), keepdim, sum_dtype(x.dtype(), dtype)); },
        .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool, OptDType) {
          cpu::sum(out, x, real_dims(x, dims_of(x, dim)));
        }},
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptInts dim, bool keepdim,
                  OptDType) { return Grads{spread(g, x, dims_of(x, dim), keepdim)}; },
        .autocast = on_cuda(Autocast::fp32),
        .onnx = "ReduceSum(self, dim, keepdims=keepdim)",
    }};

OP_DEFINE(sum_to_size){{
    .doc = R"(The sum over the dimensions along which ``size`` was broadcast to self's: broadcasting undone.)",
    .composite =
        [](const Tensor& x, Ints size) {
          if (size.empty()) return sum(x);
          if (Ints(x.sizes()) == size) return x;
          check(int64_t(size.size()) <= x.dim(), "size {", size, "} is not expandable to size {", x.sizes(), "}.");
          const int64_t lead = x.dim() - int64_t(size.size());
          Dims dims;
          for (int64_t i = 0; i < x.dim(); ++i) {
            if (i < lead) {
              dims.push_back(i);
              continue;
            }
            check(size[i - lead] == x.sizes()[i] || size[i - lead] == 1, "size {", size,
                  "} is not expandable to size {", x.sizes(), "}.");
            if (size[i - lead] == 1 && x.sizes()[i] != 1) dims.push_back(i);
          }
          const Tensor summed = dims.empty() ? x : sum(x, Ints(dims), true);
          return lead ? view(summed, size) : summed;
        },
}};

OP_DEFINE(nansum){{
    .doc = R"(The sum over the named dimensions (all if none are named), with NaN taken for 0.)",
    .infer =
        [](const Tensor& x, OptInts dim, bool keepdim, OptDType dtype) {
          check<NotImplementedError>(!x.is_complex(), "nansum on CPU does not support complex inputs");
          return reduced_meta(x, dims_of(x, dim), keepdim, sum_dtype(x.dtype(), dtype));
        },
    .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool, OptDType) {
      cpu::nansum(out, x, real_dims(x, dims_of(x, dim)));
    }},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptInts dim, bool keepdim,
              OptDType) { return Grads{masked(spread(g, x, dims_of(x, dim), keepdim), ne(x, x), 0)}; },
}};

OP_DEFINE(mean){
    {
        .doc = R"(The mean of all elements, of floating or complex dtype (``dtype`` converts them first).

NaN for no elements. NotImplementedError for integers without a ``dtype``.)",
        .infer =
            [](const Tensor& x, OptDType dtype) {
              return Meta{{}, mean_dtype(x, dtype)};
            },
        .kernel = {[](Tensor& out, const Tensor& x, OptDType) { cpu::mean(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
                  OptDType) { return Grads{expand(g / double(x.numel()), x.sizes())}; },
        .onnx = "ReduceMean(self, keepdims=0)",
    },
    {
        .doc = R"(The mean over the named dimensions, all if none are named; ``keepdim`` leaves them with size 1.)",
        .infer = [](const Tensor& x, OptInts dim, bool keepdim,
                    OptDType dtype) { return reduced_meta(x, dims_of(x, dim), keepdim, mean_dtype(x, dtype)); },
        .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool, OptDType) {
          cpu::mean(out, x, real_dims(x, dims_of(x, dim)));
        }},
        .saves = "self.shape",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor& x, OptInts dim, bool keepdim, OptDType) {
              const Dims dims = dims_of(x, dim);
              return Grads{spread(g / double(reduced_count(x.sizes(), dims)), x, dims, keepdim)};
            },
        .onnx = "ReduceMean(self, axes=dim, keepdims=keepdim)",
    }};

OP_DEFINE(nanmean){{
    .doc = R"(The mean over the named dimensions (all if none are named) of the elements that are not NaN.)",
    .composite =
        [](const Tensor& x, OptInts dim, bool keepdim, OptDType dtype) {
          check<NotImplementedError>(!is_integral(x.dtype()),
                                     "nanmean(): expected input to have floating point or complex dtype but got ",
                                     scalar_name(x.dtype()));
          return nansum(x, dim, keepdim, dtype) / sum(eq(x, x), dim, keepdim);
        },
}};

namespace {
/// For each element the product of all others along `dim`.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  const int64_t n = x.sizes()[dim];
  const Tensor one = ones_like(narrow(x, dim, 0, 1));
  const Tensor left = cumprod(cat({one, narrow(x, dim, 0, n - 1)}, dim), dim);
  const Tensor right = flip(cumprod(cat({one, narrow(flip(x, Ints(dim)), dim, 0, n - 1)}, dim), dim), Ints(dim));
  return left * right;
}
}  // namespace

OP_DEFINE(prod){
    {
        .doc = R"(The product of all elements; integers multiply as int64. The product of nothing is 1.)",
        .infer =
            [](const Tensor& x, OptDType dtype) {
              return Meta{{}, sum_dtype(x.dtype(), dtype)};
            },
        .kernel = {[](Tensor& out, const Tensor& x, OptDType) { cpu::prod(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor& x, OptDType) {
              if (x.numel() == 0) return Grads{zeros_like(x)};
              const Tensor flat = reshape(x, {-1});
              return Grads{g * conjugate(reshape(product_of_others(flat, 0), x.sizes()))};
            },
        .autocast = Autocast::fp32,
    },
    {
        .doc = R"(The product over dimension ``dim``; ``keepdim`` leaves it with size 1.)",
        .infer =
            [](const Tensor& x, int64_t dim, bool keepdim, OptDType dtype) {
              return reduced_meta(x, dims_of(x, OptInt(dim)), keepdim, sum_dtype(x.dtype(), dtype));
            },
        .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, bool, OptDType) {
          cpu::prod(out, x, real_dims(x, dims_of(x, OptInt(dim))));
        }},
        .saves = "self",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim, bool keepdim, OptDType) {
              if (x.dim() == 0) return Grads{g};
              if (x.numel() == 0) return Grads{zeros_like(x)};
              const int64_t d = wrap_dim(dim, x.dim());
              return Grads{(keepdim ? g : unsqueeze(g, d)) * conjugate(product_of_others(x, d))};
            },
        .autocast = Autocast::fp32,
    }};

OP_DEFINE(max){
    {
        .doc = R"(The largest element, NaN if there is one. Its gradient is shared evenly among equal elements.)",
        .infer = extreme_all_meta<true>,
        .kernel = {[](Tensor& out, const Tensor& x) { cpu::amax(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self, result",
        .vjp =
            [](const Tensor& g, const Tensor& result, const Tensor& x) {
              return Grads{extreme_backward(g, result, x, wrap_dims({}, x.dim(), true), false)};
            },
    },
    {
        .doc = R"(The larger of self and other, elementwise: torch.maximum.)",
        .composite = [](const Tensor& x, const Tensor& y) { return maximum(x, y); },
    },
    {
        .doc = R"(The largest element along ``dim`` and the index of the first that has this value.

NaN counts as larger than all. Returns (values, indices). IndexError where ``dim`` has no elements.)",
        .infer = extreme_dim_meta<true>,
        .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool) {
          cpu::arg_extreme(values, indices, x, real_dims(x, dims_of(x, OptInt(dim))), true);
        }},
        .saves = "self.shape, indices",
        .vjp = picked_vjp,
    }};

OP_DEFINE(min){
    {
        .doc = R"(The smallest element, NaN if there is one. Its gradient is shared evenly among equal elements.)",
        .infer = extreme_all_meta<false>,
        .kernel = {[](Tensor& out, const Tensor& x) { cpu::amin(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self, result",
        .vjp =
            [](const Tensor& g, const Tensor& result, const Tensor& x) {
              return Grads{extreme_backward(g, result, x, wrap_dims({}, x.dim(), true), false)};
            },
    },
    {
        .doc = R"(The smaller of self and other, elementwise: torch.minimum.)",
        .composite = [](const Tensor& x, const Tensor& y) { return minimum(x, y); },
    },
    {
        .doc = R"(The smallest element along ``dim`` and the index of the first that has this value.

NaN counts as smaller than all. Returns (values, indices). IndexError where ``dim`` has no elements.)",
        .infer = extreme_dim_meta<false>,
        .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool) {
          cpu::arg_extreme(values, indices, x, real_dims(x, dims_of(x, OptInt(dim))), false);
        }},
        .saves = "self.shape, indices",
        .vjp = picked_vjp,
    }};

OP_DEFINE(amax){{
    .doc = R"(The largest element over the named dimensions, all if none are named.

Where several elements are equal, the gradient is shared evenly among them (max(dim) gives it to one).)",
    .infer = amax_meta<true>,
    .kernel = {[](Tensor& out, const Tensor& x, Ints dim, bool) {
      cpu::amax(out, x, real_dims(x, dims_of(x, OptInts(dim))));
    }},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& result, const Tensor& x, Ints dim,
              bool keepdim) { return Grads{extreme_backward(g, result, x, dims_of(x, OptInts(dim)), keepdim)}; },
    .onnx = "ReduceMax(self, axes=dim, keepdims=keepdim)",
}};

OP_DEFINE(amin){{
    .doc = R"(The smallest element over the named dimensions, all if none are named.

Where several elements are equal, the gradient is shared evenly among them (min(dim) gives it to one).)",
    .infer = amax_meta<false>,
    .kernel = {[](Tensor& out, const Tensor& x, Ints dim, bool) {
      cpu::amin(out, x, real_dims(x, dims_of(x, OptInts(dim))));
    }},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& result, const Tensor& x, Ints dim,
              bool keepdim) { return Grads{extreme_backward(g, result, x, dims_of(x, OptInts(dim)), keepdim)}; },
    .onnx = "ReduceMin(self, axes=dim, keepdims=keepdim)",
}};

OP_DEFINE(aminmax){{
    .doc = R"(The smallest and the largest element over ``dim``, or of all elements. Returns (min, max).)",
    .composite =
        [](const Tensor& x, OptInt dim, bool keepdim) {
          const Dims dims = dims_of(x, dim);
          if (dim)
            check_not_empty(x, dims, true, "aminmax");
          else
            check(x.numel() > 0,
                  "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
          return std::array<Tensor, 2>{amin(x, dims, keepdim), amax(x, dims, keepdim)};
        },
}};

OP_DEFINE(argmax){{
    .doc = R"(The index of the first largest element along ``dim``, or among all elements in row-major order.

NaN counts as larger than all. Not for complex and bool.)",
    .infer = arg_meta<true>,
    .kernel = {arg_kernel<true>},
    .onnx = "ArgMax(self, axis=dim, keepdims=keepdim)",
}};

OP_DEFINE(argmin){{
    .doc = R"(The index of the first smallest element along ``dim``, or among all elements in row-major order.

NaN counts as smaller than all. Not for complex and bool.)",
    .infer = arg_meta<false>,
    .kernel = {arg_kernel<false>},
    .onnx = "ArgMin(self, axis=dim, keepdims=keepdim)",
}};

OP_DEFINE(all){
    {
        .doc = R"(Whether all elements are non-zero, as a bool tensor (uint8 for uint8). True for no elements.)",
        .infer =
            [](const Tensor& x) {
              return Meta{{}, truth_dtype(x)};
            },
        .kernel = {[](Tensor& out, const Tensor& x) { cpu::all(out, x, wrap_dims({}, x.dim(), true)); }},
    },
    {
        .doc = R"(Whether all elements over the named dimensions are non-zero.)",
        .infer = [](const Tensor& x, OptInts dim,
                    bool keepdim) { return reduced_meta(x, dims_of(x, dim), keepdim, truth_dtype(x)); },
        .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool) {
          cpu::all(out, x, real_dims(x, dims_of(x, dim)));
        }},
    }};

OP_DEFINE(any){
    {
        .doc = R"(Whether any element is non-zero, as a bool tensor (uint8 for uint8). False for no elements.)",
        .infer =
            [](const Tensor& x) {
              return Meta{{}, truth_dtype(x)};
            },
        .kernel = {[](Tensor& out, const Tensor& x) { cpu::any(out, x, wrap_dims({}, x.dim(), true)); }},
    },
    {
        .doc = R"(Whether any element over the named dimensions is non-zero.)",
        .infer = [](const Tensor& x, OptInts dim,
                    bool keepdim) { return reduced_meta(x, dims_of(x, dim), keepdim, truth_dtype(x)); },
        .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool) {
          cpu::any(out, x, real_dims(x, dims_of(x, dim)));
        }},
    }};

OP_DEFINE(count_nonzero){{
    .doc = R"(How many elements over the named dimensions (all if none are named) are not zero, as int64.)",
    .infer = [](const Tensor& x, OptInts dim) { return reduced_meta(x, dims_of(x, dim), false, kInt64); },
    .kernel = {[](Tensor& out, const Tensor& x, OptInts dim) {
      cpu::count_nonzero(out, x, real_dims(x, dims_of(x, dim)));
    }},
}};

OP_DEFINE(var_mean_of){{
    .doc = R"(Variance (standard deviation where ``root``) and mean of a real x in one pass; var and its kin call it.)",
    .infer =
        [](const Tensor& x, OptInts dim, double, bool keepdim, bool) {
          const Meta meta = reduced_meta(x, dims_of(x, dim), keepdim, x.dtype());
          return std::array<Meta, 2>{meta, meta};
        },
    .kernel = {[](Tensor& variance, Tensor& m, const Tensor& x, OptInts dim, double correction, bool, bool root) {
      cpu::var_mean(variance, m, x, real_dims(x, dims_of(x, dim)), correction, root);
    }},
    .saves = "self, variance, mean",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, OptInts dim, double correction, bool keepdim,
           bool root) {
          const Dims dims = dims_of(x, dim), real = real_dims(x, dims);
          const double n = double(reduced_count(x.sizes(), dims));
          Tensor gx;
          if (g[0].defined()) {
            Tensor scale = g[0] * (2 / std::max(n - correction, 0.0));
            if (root) scale = masked(g[0] / (results[0] * std::max(n - correction, 0.0)), eq(results[0], 0), 0);
            // The mean anew, so that second derivatives see it.
            const Tensor centred = x - mean(x, OptInts(real), true);
            gx = restore_dims(scale, real, x.dim(), keepdim) * centred;
          }
          if (g[1].defined()) {
            const Tensor gm = expand(restore_dims(g[1], real, x.dim(), keepdim) / n, x.sizes());
            gx = gx.defined() ? gx + gm : gm;
          }
          return Grads{gx};
        },
}};

OP_DEFINE(var){
    {
        .doc = R"(The variance of all elements, with divisor n - 1, or n where ``unbiased`` is False.)",
        .composite = [](const Tensor& x,
                        bool unbiased) { return var_and_mean(x, OptInts(), unbiased, false, false)[0]; },
    },
    {
        .doc = R"(The variance over the named dimensions, all if none are named.)",
        .composite = [](const Tensor& x, OptInts dim, bool unbiased,
                        bool keepdim) { return var_and_mean(x, dim, unbiased, keepdim, false)[0]; },
    },
    {
        .doc = R"(The variance over the named dimensions with divisor n - ``correction`` (1 by default).)",
        .composite = [](const Tensor& x, OptInts dim, OptScalar correction,
                        bool keepdim) { return var_and_mean(x, dim, correction_of(correction), keepdim, false)[0]; },
    }};

OP_DEFINE(std){
    {
        .doc = R"(The standard deviation of all elements, with divisor n - 1, or n where ``unbiased`` is False.)",
        .composite = [](const Tensor& x,
                        bool unbiased) { return var_and_mean(x, OptInts(), unbiased, false, true)[0]; },
    },
    {
        .doc = R"(The standard deviation over the named dimensions, all if none are named.)",
        .composite = [](const Tensor& x, OptInts dim, bool unbiased,
                        bool keepdim) { return var_and_mean(x, dim, unbiased, keepdim, true)[0]; },
    },
    {
        .doc = R"(The standard deviation over the named dimensions with divisor n - ``correction`` (1 by default).)",
        .composite = [](const Tensor& x, OptInts dim, OptScalar correction,
                        bool keepdim) { return var_and_mean(x, dim, correction_of(correction), keepdim, true)[0]; },
    }};

OP_DEFINE(var_mean){
    {
        .doc = R"(Variance and mean of all elements; see var.)",
        .composite = [](const Tensor& x,
                        bool unbiased) { return var_and_mean(x, OptInts(), unbiased, false, false, "var_mean"); },
    },
    {
        .doc = R"(Variance and mean over the named dimensions; see var.)",
        .composite = [](const Tensor& x, OptInts dim, bool unbiased,
                        bool keepdim) { return var_and_mean(x, dim, unbiased, keepdim, false, "var_mean"); },
    },
    {
        .doc = R"(Variance, with divisor n - ``correction``, and mean over the named dimensions.)",
        .composite =
            [](const Tensor& x, OptInts dim, OptScalar correction, bool keepdim) {
              return var_and_mean(x, dim, correction_of(correction), keepdim, false, "var_mean");
            },
    }};

OP_DEFINE(std_mean){
    {
        .doc = R"(Standard deviation and mean of all elements; see std.)",
        .composite = [](const Tensor& x,
                        bool unbiased) { return var_and_mean(x, OptInts(), unbiased, false, true, "std_mean"); },
    },
    {
        .doc = R"(Standard deviation and mean over the named dimensions; see std.)",
        .composite = [](const Tensor& x, OptInts dim, bool unbiased,
                        bool keepdim) { return var_and_mean(x, dim, unbiased, keepdim, true, "std_mean"); },
    },
    {
        .doc = R"(Standard deviation, with divisor n - ``correction``, and mean over the named dimensions.)",
        .composite =
            [](const Tensor& x, OptInts dim, OptScalar correction, bool keepdim) {
              return var_and_mean(x, dim, correction_of(correction), keepdim, true, "std_mean");
            },
    }};

OP_DEFINE(vector_norm){{
    .doc = R"(The norm of a real floating x; linalg_vector_norm calls it.)",
    .infer = [](const Tensor& x, double, OptInts dim,
                bool keepdim) { return reduced_meta(x, dims_of(x, dim), keepdim, x.dtype()); },
    .kernel = {[](Tensor& out, const Tensor& x, double ord, OptInts dim, bool) {
      cpu::vector_norm(out, x, ord, real_dims(x, dims_of(x, dim)));
    }},
    .saves = "self, result",
    .vjp =
        [](const Tensor& grad, const Tensor& result, const Tensor& x, double p, OptInts dim, bool keepdim) {
          const Dims dims = dims_of(x, dim), real = real_dims(x, dims);
          const Tensor g = restore_dims(grad, real, x.dim(), keepdim);
          const Tensor r = restore_dims(result, real, x.dim(), keepdim);
          if (p == 0) return Grads{Tensor()};
          if (p == 1) return Grads{g * sgn(x)};
          if (p == 2) return Grads{x * masked(g / r, eq(r, 0), 0)};
          if (std::isinf(p)) {
            const Tensor size = abs(x), mask = eq(size, r) | (ne(size, size) & ne(r, r));
            return Grads{sgn(x) * masked(expand(g / sum(mask, OptInts(real), true), x.sizes()), ~mask, 0)};
          }
          // x |x|^(p-2) / r^(p-1): 0 where the norm is, and at x = 0 where p < 2 leaves a pole or a kink
          const Tensor scale = masked(g / pow(r, p - 1), eq(r, 0), 0);
          if (p < 2) return Grads{sgn(x) * masked(pow(abs(x), p - 1), eq(x, 0), 0) * scale};
          return Grads{x * pow(abs(x), p - 2) * scale};
        },
}};

OP_DEFINE(linalg_vector_norm){{
    .doc = R"(The norm of order ``ord`` over the named dimensions of x taken as a vector: (sum |x|^ord)^(1/ord).

Order inf is the largest |x|, -inf the smallest, 0 the number of non-zeros. The result of a complex x is real. ``dtype``
converts x first. RuntimeError for an order without a value where there are no elements.)",
    .composite =
        [](const Tensor& x, Scalar ord, OptInts dim, bool keepdim, OptDType dtype) {
          check<NotImplementedError>(!is_integral(x.dtype()),
                                     "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
                                     scalar_name(x.dtype()));
          if (dtype)
            check(!is_integral(*dtype) && is_complex(*dtype) == x.is_complex(), "linalg.vector_norm: dtype should be ",
                  x.is_complex() ? "complex" : "floating point", " as the input is, but got ", scalar_name(*dtype));
          check(!ord.is_complex(), "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
          const double p = ord.to_double();
          const Dims dims = dims_of(x, dim);
          if (p < 0 || std::isinf(p))
            check(x.numel() != 0 || reduced_count(x.sizes(), dims) != 0, "linalg.vector_norm cannot compute the ", ord,
                  " norm on an empty ", dim ? "dimension" : "tensor",
                  " because the operation does not have an identity");
          const Tensor typed = dtype && *dtype != x.dtype() ? cast(x, *dtype) : x;
          return vector_norm(typed.is_complex() ? abs(typed) : typed, p, OptInts(dims), keepdim);
        },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(norm){
    {
        .doc = R"(The vector norm of order ``p`` over the named dimensions; see linalg_vector_norm.)",
        .composite = [](const Tensor& x, OptScalar p, OptInts dim, bool keepdim,
                        OptDType dtype) { return linalg_vector_norm(x, p.value_or(Scalar(2)), dim, keepdim, dtype); },
        .autocast = on_cuda(Autocast::fp32),
    },
    {
        .doc = R"(``p`` "fro" is the norm of order 2 over the named dimensions, "nuc" the sum of singular values.)",
        .composite =
            [](const Tensor& x, std::string_view p, OptInts dim, bool keepdim, OptDType dtype) {
              check(p == "fro" || p == "nuc", "linalg.matrix_norm: Order ", p, " not supported.");
              check(!dim || dim->size() <= 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dim.value_or(Ints()));
              if (p == "fro") return linalg_vector_norm(x, 2, dim, keepdim, dtype);
              return linalg_norm(x, p, dim, keepdim, dtype);
            },
        .autocast = on_cuda(Autocast::fp32),
    }};

OP_DEFINE(logsumexp){{
    .doc = R"(The logarithm of the sum of exponentials over the named dimensions, computed without overflow.)",
    .infer =
        [](const Tensor& x, Ints dim, bool keepdim) {
          return Meta{reduced(x.sizes(), real_dims(x, dims_of(x, OptInts(dim))), keepdim), to_floating(x.dtype())};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints dim, bool keepdim) {
                 const Dims dims = real_dims(x, dims_of(x, OptInts(dim)));
                 const bool by_rows = dims.size() == 1 && dims[0] == x.dim() - 1 && is_floating(x.dtype());
                 if (by_rows && x.numel() > 0 && (out.numel() >= 8 || x.numel() <= 65536))
                   cpu::log_sum_exp(out, x);
                 else
                   cpu::copy(out, log_sum_exp(x, dim, keepdim));
               },
               nullptr},
    .composite = log_sum_exp,
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& x, Ints dim, bool keepdim) {
          const Dims real = real_dims(x, dims_of(x, OptInts(dim)));
          const auto back = [&](const Tensor& t) { return restore_dims(t, real, x.dim(), keepdim); };
          return Grads{back(g) * conjugate(exp(x - back(result)))};
        },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(dist){{
    .doc = R"(The norm of order ``p`` of self - other, which broadcast.)",
    .composite = [](const Tensor& x, const Tensor& y, Scalar p) { return linalg_vector_norm(x - y, p); },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(renorm){{
    .doc = R"(self with each slice along ``dim`` whose norm of order ``p`` exceeds ``maxnorm`` scaled down to it.)",
    .composite =
        [](const Tensor& x, Scalar p, int64_t dim, Scalar maxnorm) {
          check(!p.is_complex(), "renorm: p must be real-valued");
          check(p.to_double() > 0, "renorm: non-positive-norm not supported");
          check(!maxnorm.is_complex(), "renorm: maxnorm must be real-valued");
          check(maxnorm.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", maxnorm);
          check(x.dim() > 1, "renorm: input needs at least 2 dimensions, got ", x.dim(), " dimensions");
          Dims others;
          for (int64_t d = 0; d < x.dim(); ++d)
            if (d != wrap_dim(dim, x.dim())) others.push_back(d);
          const Tensor size = linalg_vector_norm(x, p, OptInts(others), true);
          return x * where(gt(size, Tensor(maxnorm)), Tensor(maxnorm) / (size + 1e-7), ones_like(size));
        },
    .in_place = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(median){{
                      .doc = R"(The median of all elements, the lower of the two middle ones; NaN if there is one.)",
                      .infer = median_meta,
                      .kernel = {median_all<false>},
                      .saves = "self, result",
                      .vjp =
                          [](const Tensor& g, const Tensor& result, const Tensor& x) {
                            return Grads{extreme_backward(g, result, x, wrap_dims({}, x.dim(), true), false)};
                          },
                      .out_apart = true,
                  },
                  {
                      .doc = R"(The median along ``dim``, the lower of the two middle elements, and its index.)",
                      .infer = median_dim_meta,
                      .kernel = {median_dim<false>},
                      .saves = "self.shape, indices",
                      .vjp = picked_vjp,
                      .out_apart = true,
                  }};

OP_DEFINE(nanmedian){{
                         .doc = R"(The lower median of all elements that are not NaN.)",
                         .infer = median_meta,
                         .kernel = {median_all<true>},
                         .saves = "self, result",
                         .vjp =
                             [](const Tensor& g, const Tensor& result, const Tensor& x) {
                               return Grads{extreme_backward(g, result, x, wrap_dims({}, x.dim(), true), false)};
                             },
                         .out_apart = true,
                     },
                     {
                         .doc = R"(The lower median along ``dim`` of the elements that are not NaN, and its index.)",
                         .infer = median_dim_meta,
                         .kernel = {median_dim<true>},
                         .saves = "self.shape, indices",
                         .vjp = picked_vjp,
                         .out_apart = true,
                     }};

OP_DEFINE(mode){{
    .doc = R"(The most frequent value along ``dim``, the smallest if there are several, and the last index of it.)",
    .infer = [](const Tensor& x, int64_t dim, bool keepdim) { return selection_meta(x, dim, keepdim, "mode"); },
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool) {
      cpu::mode(values, indices, rows_along(x, dim), row_length(x, dim));
    }},
    .saves = "self.shape, indices",
    .vjp = picked_vjp,
}};

OP_DEFINE(kthvalue){{
    .doc = R"(The ``k``-th smallest value along ``dim`` (k from 1) and its index. NaN counts as larger than all.)",
    .infer =
        [](const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
          const auto metas = selection_meta(x, dim, keepdim, "kthvalue");
          check(k > 0 && k <= row_length(x, dim), "kthvalue(): selected number k out of range for dimension ",
                wrap_dim(dim, x.dim()));
          return metas;
        },
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool) {
      cpu::kthvalue(values, indices, rows_along(x, dim), row_length(x, dim), k);
    }},
    .saves = "self.shape, indices",
    .vjp = [](const Tensors& g, const Tensors& results, const Tensor& x, int64_t, int64_t dim,
              bool keepdim) { return picked_vjp(g, results, x, dim, keepdim); },
    .out_apart = true,
}};

OP_DEFINE(quantile){{
    .doc = R"(The ``q``-quantiles along ``dim``, or of all elements, of float or double self; NaN where there is a NaN.

``q`` is a number or a 1-dim tensor of self's dtype with values in [0, 1]; the quantiles come first in the shape.
``interpolation`` between the two elements next to a rank: linear, lower, higher, midpoint or nearest.)",
    .composite = [](const Tensor& x, const Tensor& q, OptInt dim, bool keepdim,
                    std::string_view how) { return quantile_along(x, q, dim, keepdim, how, false); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(nanquantile){{
    .doc = R"(quantile of the elements that are not NaN; NaN where there are none.)",
    .composite = [](const Tensor& x, const Tensor& q, OptInt dim, bool keepdim,
                    std::string_view how) { return quantile_along(x, q, dim, keepdim, how, true); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(cov){{
    .doc = R"(The covariances of variables, the rows, whose observations are the columns.

``fweights`` (integers) says how often each observation counts, ``aweights`` (floats) how much; ``correction`` is taken off the
number of observations. Shape: (n, m), (m) or (); the result is (n, n), or () for one variable.
Errors: RuntimeError for more dimensions or weights that do not fit; NotImplementedError for bool.)",
    .composite =
        [](const Tensor& x, int64_t correction, const Tensor& counts, const Tensor& weights) {
          check(x.dim() <= 2, "expected input to have two or fewer dimensions but got an input with ", x.dim(),
                " dimensions");
          check<NotImplementedError>(x.dtype() != kBool, "bool dtype is not supported for input");
          Tensor rows = x.dim() < 2 ? reshape(x, {1, -1}) : x;
          const int64_t n = rows.size(1);
          const auto check_weights = [n](const Tensor& w, const char* name) {
            check(w.dim() <= 1, "expected ", name, " to have one or fewer dimensions but got ", name, " with ", w.dim(),
                  " dimensions");
            check(w.numel() == n, "expected ", name,
                  " to have the same numel as there are observations in the input but got ", w.numel(), " != ", n);
            check(n == 0 || min(w).item().to_double() >= 0, name, " cannot be negative");
          };
          Tensor w;
          if (counts.defined()) {
            check(is_integral(counts.dtype()) && counts.dtype() != kBool,
                  "expected fweights to have integral dtype but got fweights with ", scalar_name(counts.dtype()),
                  " dtype");
            check_weights(counts, "fweights");
            w = counts;
          }
          if (weights.defined()) {
            check(weights.is_floating_point(), "expected aweights to have floating point dtype but got aweights with ",
                  scalar_name(weights.dtype()), " dtype");
            check_weights(weights, "aweights");
            w = w.defined() ? w * weights : weights;
          }
          const auto weighted = [&](const Tensor& t) { return w.defined() ? t * w : t; };
          const Tensor total = w.defined() ? sum(w) : Tensor(n);
          check(!w.defined() || total.item().to_double() != 0, "weights sum to zero, can't be normalized");
          rows = rows - unsqueeze(sum(weighted(rows), Ints({1})) / total, 1);
          Tensor freedom = total - Tensor(correction);
          if (weights.defined() && correction != 0) freedom = total - sum(w * weights) * Tensor(correction) / total;
          freedom = clamp(freedom, Tensor(0));
          return squeeze(matmul(rows, adjoint(weighted(rows))) / freedom);
        },
}};

OP_DEFINE(corrcoef){{
    .doc = R"(The correlations (Pearson's) of variables, the rows, whose observations are the columns.

Shape: (n, m), (m) or (); the result is (n, n), or () for one variable.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() <= 2, "expected input to have two or fewer dimensions but got an input with ", x.dim(),
                " dimensions");
          Tensor c = cov(x);
          if (c.dim() == 0) return c / c;
          const Tensor d = diagonal(c), deviation = sqrt(d.is_complex() ? real(d) : d);
          c = c / unsqueeze(deviation, 1) / deviation;
          const auto clipped = [](const Tensor& t) { return clamp(t, Tensor(-1), Tensor(1)); };  // rounding
          return c.is_complex() ? complex(clipped(real(c)), clipped(imag(c))) : clipped(c);
        },
}};

OP_DEFINE(histc){{
    .doc = R"(Counts of the elements in ``bins`` equal bins from ``min`` to ``max``, in self's floating dtype.

Elements outside, and NaN, are not counted; the last bin is closed. With min = max the range is that of the data.)",
    .infer =
        [](const Tensor& x, int64_t bins, Scalar min, Scalar max) {
          check<NotImplementedError>(is_floating(x.dtype()), "\"histogram_cpu\" not implemented for '",
                                     scalar_name(x.dtype()), "'");
          check(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
          check(min.to_double() <= max.to_double(), "torch.histc: max must be larger than min");
          return Meta{{bins}, x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t, Scalar min, Scalar max) {
      double low = min.to_double(), high = max.to_double();
      if (low == high && x.numel() > 0) {
        low = rush::amin(x).item<double>();
        high = rush::amax(x).item<double>();
      }
      check(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
      if (low == high) low -= 1, high += 1;
      cpu::histc(out, contiguous(x), low, high);
    }},
}};

OP_DEFINE(bincount){{
    .doc =
        R"(How often each value from 0 to the largest occurs in the 1-dim integral self, at least ``minlength`` counts.

With ``weights`` of the same size their sums, in float32 for float32 and else in float64.)",
    .composite =
        [](const Tensor& x, const Tensor& weights, int64_t minlength) {
          check(minlength >= 0, "minlength should be >= 0");
          check(x.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
          check<NotImplementedError>(is_integral(x.dtype()) && x.dtype() != kBool,
                                     "\"bincount_cpu\" not implemented for '", scalar_name(x.dtype()), "'");
          if (x.numel() == 0) return zeros({minlength}, kInt64, std::nullopt, x.device());
          check(amin(x).item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
          check(!weights.defined() || (weights.dim() == 1 && weights.numel() == x.numel()),
                "weights should be 1-d and have the same length as input");
          const int64_t top = amax(x).item<int64_t>();
          check(top < kMostElements, "bincount: no tensor has a place for the count of ", top);
          const int64_t n = std::max(top + 1, minlength);
          const Tensor in = contiguous(cast(x, kInt64));
          if (!weights.defined()) {
            Tensor out = allocate({{n}, kInt64, x.device(), {}});
            cpu::bincount(out, in, weights);
            return out;
          }
          Tensor out = allocate({{n}, kFloat64, x.device(), {}});
          cpu::bincount(out, in, contiguous(cast(weights, kFloat64)));
          return weights.dtype() == kFloat32 ? cast(out, kFloat32) : out;
        },
}};

OP_DEFINE(equal){{
    .doc = R"(Whether both have the same shape and equal elements, as a Python bool.)",
    .composite = [](const Tensor& x,
                    const Tensor& y) { return Ints(x.sizes()) == Ints(y.sizes()) && all(eq(x, y)).item<bool>(); },
}};

OP_DEFINE(isclose){{
    .doc = R"(Whether ``|self - other| <= atol + rtol * |other|``, elementwise; infinities must be equal.

NaN is close to NaN only where ``equal_nan``. RuntimeError where the dtypes differ.)",
    .infer =
        [](const Tensor& x, const Tensor& y, double rtol, double atol, bool) {
          check(x.dtype() == y.dtype(), scalar_name(x.dtype()), " did not match ", scalar_name(y.dtype()));
          check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
          check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
          return compare_meta(x, y);
        },
    .kernel = {cpu::isclose},
}};

OP_DEFINE(allclose){{
    .doc = R"(Whether isclose holds for all elements, as a Python bool.)",
    .composite = [](const Tensor& x, const Tensor& y, double rtol, double atol,
                    bool equal_nan) { return all(isclose(x, y, rtol, atol, equal_nan)).item<bool>(); },
}};

}  // namespace rush
