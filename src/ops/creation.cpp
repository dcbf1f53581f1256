// Creation: tensors from nothing, or from another tensor's shape.
#include <cmath>
#include <numbers>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

/// Where a new tensor lies: on a device, or in pinned memory of the CPU.
struct Place {
  OptDevice device;
  OptBool pin;
  Place(OptDevice d = {}, OptBool p = {}) : device(d), pin(p) {}
  Place or_like(const Tensor& x) const { return {device.value_or(x.device()), pin}; }
};

Tensor make(Ints size, OptDType dtype, Place place, bool requires_grad, OptMemoryFormat format = {}) {
  Meta meta{size, dtype.value_or(default_dtype()), place.device.value_or(kCPU), {}, place.pin.value_or(false)};
  if (format && *format != MemoryFormat::Contiguous && *format != MemoryFormat::Preserve)
    meta.strides = strides_for(size, *format);
  Tensor t = allocate(meta);
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor make_like(const Tensor& x, OptDType dtype, Place place, bool requires_grad, OptMemoryFormat format) {
  place = place.or_like(x);
  Meta meta{x.sizes(), dtype.value_or(x.dtype()), place.device, {}, place.pin.value_or(false)};
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f == MemoryFormat::Preserve) {
    if (!x.is_contiguous() && is_dense(x.sizes(), x.strides())) meta.strides = x.strides();
  } else if (f != MemoryFormat::Contiguous) {
    meta.strides = strides_for(x.sizes(), f);
  }
  Tensor t = allocate(meta);
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor filled(Tensor t, const Scalar& value) {
  if (t.is_cpu() && (value == Scalar(0) || value == Scalar(1))) {  // the most frequent, and at home in every dtype
    cpu::fill(t, value);
    return t;
  }
  NoGrad guard;
  const bool wants = t.requires_grad();
  if (wants) t.requires_grad_(false);
  in_place(fill, t, Tensor(value));
  if (wants) t.requires_grad_();
  return t;
}

/// `fill` writes to memory of the CPU.
template <class Fill>
Tensor made_on_cpu(Ints size, DType dtype, const Place& place, bool requires_grad, Fill&& fill) {
  const Device device = place.device.value_or(kCPU);
  Tensor t = make(size, dtype, {device.is_cuda() ? kCPU : device, place.pin}, false);
  if (!t.is_meta()) fill(t);
  t = to(t, device);
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype, const Place& place,
             bool requires_grad) {
  const bool integral = start.is_int() && end.is_int() && step.is_int();
  check(step.to_double() != 0, "step must be nonzero");
  const double length = (end.to_double() - start.to_double()) / step.to_double();
  check(std::isfinite(length), "unsupported range: ", start, " -> ", end);
  check(length >= 0, "upper bound and lower bound inconsistent with step sign");
  return made_on_cpu({int64_t(std::ceil(length))}, dtype.value_or(integral ? kInt64 : default_dtype()), place,
                     requires_grad, [&](Tensor& t) { cpu::arange(t, start, step); });
}

/// As PyTorch decides it: complex if an end is.
DType spaced_dtype(const Scalar& start, const Scalar& end, OptDType dtype) {
  const bool complex = start.is_complex() || end.is_complex();
  check(!complex || !dtype || is_complex(*dtype), "expected a complex dtype for complex start or end, got ",
        dtype.value_or(kBool));
  return dtype.value_or(complex ? complex_of(default_dtype()) : default_dtype());
}

Tensor spaced(const Scalar& start, const Scalar& end, int64_t steps, std::optional<double> base, OptDType dtype,
              const Place& place, bool requires_grad) {
  check(steps >= 0, "number of steps must be non-negative");
  const DType t = spaced_dtype(start, end, dtype);
  const auto point = [t](const Scalar& s) { return is_integral(t) ? Scalar(s.to_int()) : s; };
  const Scalar first = point(start), last = point(steps == 1 ? start : end);
  return made_on_cpu({steps}, t, place, requires_grad, [&](Tensor& out) {
    base ? cpu::logspace(out, first, last, *base) : cpu::linspace(out, first, last);
  });
}

Scalar end_point(const Tensor& t) {
  check(t.dim() == 0, "only supports 0-dimensional start and end tensors, got one with ", t.dim(), " dimension(s)");
  return t.item();
}

Tensor identity(int64_t n, int64_t m, OptDType dtype, const Place& place, bool requires_grad) {
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m >= 0, "m must be greater or equal to 0, got ", m);
  Tensor t = filled(make({n, m}, dtype, place, false), 0);
  filled(alias(t, {std::min(n, m)}, {m + 1}, 0), 1);
  if (requires_grad) t.requires_grad_();
  return t;
}

/// A window of the given length; a periodic one is the first part of a symmetric one that is longer by 1. `shape` gets
/// a function x(scale): the places 0, 1, ... times scale, and the window's length; it runs in double.
template <class Shape>
Tensor make_window(int64_t length, bool periodic, OptDType dtype, const Place& place, bool requires_grad,
                   Shape&& shape) {
  check(length >= 0, "requires non-negative window_length, got window_length=", length);
  const DType result = dtype.value_or(default_dtype());
  check(is_floating(result), "expects floating point dtypes, got: ", result);
  count_elements({length});  // throws where no memory could hold them
  const int64_t whole = length + (periodic ? 1 : 0);
  return made_on_cpu({length}, result, place, requires_grad, [&](Tensor& t) {
    if (length <= 1) return void(in_place(fill, t, Tensor(1)));
    const Tensor values = empty({length}, kFloat64);
    for (int64_t i = 0; i < length; ++i) values.data<double>()[i] = shape(double(i) / double(whole - 1));
    in_place(copy, t, values);
  });
}

double cosine_sum(double x, double a, double b, double c) {
  const double turn = 2 * std::numbers::pi * x;
  return a - b * std::cos(turn) + c * std::cos(2 * turn);
}

/// The modified Bessel function of the first kind and order 0, by its power series: all terms are positive.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

}  // namespace

OP_DEFINE(empty){{
    .doc = R"(A tensor of the given size whose elements are whatever the memory holds.)",
    .composite =
        [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad,
           OptMemoryFormat format) {
          return make(size, dtype, {device, pin}, requires_grad, format);
        },
}};

OP_DEFINE(empty_strided){{
    .doc = R"(A tensor of the given size and strides (in elements) whose elements are whatever the memory holds.)",
    .composite =
        [](Ints size, Ints stride, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          check(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
                ") must match dimensionality of strides (", stride.size(), ")");
          for (int64_t s : stride) check(s >= 0, "negative strides are not supported, got ", stride);
          Tensor t = allocate(
              {size, dtype.value_or(default_dtype()), device.value_or(kCPU), stride.dims(), pin.value_or(false)});
          if (requires_grad) t.requires_grad_();
          return t;
        },
}};

OP_DEFINE(zeros){{
    .doc = R"(A tensor of zeros.)",
    .composite =
        [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make(size, dtype, {device, pin}, requires_grad), 0);
        },
}};

OP_DEFINE(ones){{
    .doc = R"(A tensor of ones.)",
    .composite =
        [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make(size, dtype, {device, pin}, requires_grad), 1);
        },
}};

OP_DEFINE(full){{
    .doc = R"(A tensor filled with ``fill_value``, whose kind gives the dtype unless one is named.)",
    .composite =
        [](Ints size, Scalar fill_value, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make(size, dtype.value_or(fill_value.dtype()), {device, pin}, requires_grad), fill_value);
        },
}};

OP_DEFINE(empty_like){{
    .doc = R"(A tensor of the input's size, dtype and device whose elements are whatever the memory holds.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad,
           OptMemoryFormat format) {
          return make_like(x, dtype, {device, pin}, requires_grad, format);
        },
}};

OP_DEFINE(zeros_like){{
    .doc = R"(Zeros with the input's size, dtype and device.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad,
           OptMemoryFormat format) {
          return filled(make_like(x, dtype, {device, pin}, requires_grad, format), 0);
        },
}};

OP_DEFINE(ones_like){{
    .doc = R"(Ones with the input's size, dtype and device.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad,
           OptMemoryFormat format) {
          return filled(make_like(x, dtype, {device, pin}, requires_grad, format), 1);
        },
}};

OP_DEFINE(arange){{
                      .doc = R"(Integers (or steps of another kind of number) from 0 up to ``end``, not included.)",
                      .composite =
                          [](Scalar end, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
                            return range(0, end, 1, dtype, {device, pin}, requires_grad);
                          },
                  },
                  {
                      .doc = R"(``start``, ``start + step``, ... up to ``end``, not included.)",
                      .composite =
                          [](Scalar start, Scalar end, Scalar step, OptDType dtype, OptLayout, OptDevice device,
                             OptBool pin, bool requires_grad) {
                            return range(start, end, step, dtype, {device, pin}, requires_grad);
                          },
                  }};

OP_DEFINE(range_){{
    .doc = R"(``start``, ``start + step``, ... up to ``end``, which is included. Deprecated in favour of arange.)",
    .composite =
        [](Scalar start, Scalar end, Scalar step, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          check(step.to_double() != 0, "step must be nonzero");
          const double length = std::floor((end.to_double() - start.to_double()) / step.to_double()) + 1;
          check(std::isfinite(length), "unsupported range: ", start, " -> ", end);
          check(length >= 1, "upper bound and lower bound inconsistent with step sign");
          return made_on_cpu({int64_t(length)}, dtype.value_or(default_dtype()), {device, pin}, requires_grad,
                             [&](Tensor& t) { cpu::arange(t, start, step); });
        },
}};

OP_DEFINE(linspace){
    {
        .doc = R"(``steps`` numbers at equal distances from ``start`` to ``end``, both included.)",
        .composite =
            [](const Tensor& start, const Tensor& end, int64_t steps, OptDType dtype, OptLayout, OptDevice device,
               OptBool pin, bool requires_grad) {
              return spaced(end_point(start), end_point(end), steps, {}, dtype, {device, pin}, requires_grad);
            },
    },
    {
        .doc = R"(``steps`` numbers at equal distances from ``start`` to ``end``, both included.)",
        .composite =
            [](Scalar start, Scalar end, int64_t steps, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
               bool requires_grad) {
              return spaced(start, end, steps, {}, dtype, {device, pin}, requires_grad);
            },
    }};

OP_DEFINE(logspace){
    {
        .doc = R"(``base`` to the power of ``steps`` numbers at equal distances from ``start`` to ``end``.)",
        .composite =
            [](const Tensor& start, const Tensor& end, int64_t steps, double base, OptDType dtype, OptLayout,
               OptDevice device, OptBool pin, bool requires_grad) {
              return spaced(end_point(start), end_point(end), steps, base, dtype, {device, pin}, requires_grad);
            },
    },
    {
        .doc = R"(``base`` to the power of ``steps`` numbers at equal distances from ``start`` to ``end``.)",
        .composite =
            [](Scalar start, Scalar end, int64_t steps, double base, OptDType dtype, OptLayout, OptDevice device,
               OptBool pin, bool requires_grad) {
              return spaced(start, end, steps, base, dtype, {device, pin}, requires_grad);
            },
    }};

OP_DEFINE(eye){
    {
        .doc = R"(The identity matrix of size (n, n).)",
        .composite =
            [](int64_t n, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
              return identity(n, n, dtype, {device, pin}, requires_grad);
            },
    },
    {
        .doc = R"(A matrix of size (n, m) with ones on the diagonal and zeros elsewhere.)",
        .composite =
            [](int64_t n, int64_t m, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
              return identity(n, m, dtype, {device, pin}, requires_grad);
            },
    }};

OP_DEFINE(full_like){{
    .doc = R"(A tensor of the input's size, dtype and device filled with ``fill_value``.)",
    .composite =
        [](const Tensor& x, Scalar fill_value, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad, OptMemoryFormat format) {
          return filled(make_like(x, dtype, {device, pin}, requires_grad, format), fill_value);
        },
}};

OP_DEFINE(new_empty){{
    .doc =
        R"(A tensor of the given size, of self's dtype and device unless others are named, whose elements are not set.)",
    .composite =
        [](const Tensor& x, Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return make(size, dtype.value_or(x.dtype()), Place(device, pin).or_like(x), requires_grad);
        },
}};

OP_DEFINE(new_empty_strided){{
    .doc = R"(As ``new_empty``, with the given strides.)",
    .composite =
        [](const Tensor& x, Ints size, Ints stride, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return empty_strided(size, stride, dtype.value_or(x.dtype()), {}, device.value_or(x.device()), pin,
                               requires_grad);
        },
}};

OP_DEFINE(new_zeros){{
    .doc = R"(Zeros of the given size, of self's dtype and device unless others are named.)",
    .composite =
        [](const Tensor& x, Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make(size, dtype.value_or(x.dtype()), Place(device, pin).or_like(x), requires_grad), 0);
        },
}};

OP_DEFINE(new_ones){{
    .doc = R"(Ones of the given size, of self's dtype and device unless others are named.)",
    .composite =
        [](const Tensor& x, Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make(size, dtype.value_or(x.dtype()), Place(device, pin).or_like(x), requires_grad), 1);
        },
}};

OP_DEFINE(new_full){{
    .doc =
        R"(A tensor of the given size filled with ``fill_value``, of self's dtype and device unless others are named.)",
    .composite =
        [](const Tensor& x, Ints size, Scalar fill_value, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return filled(make(size, dtype.value_or(x.dtype()), Place(device, pin).or_like(x), requires_grad),
                        fill_value);
        },
}};

OP_DEFINE(empty_permuted){{
    .doc =
        R"(A tensor of the given size without gaps, whose dimensions lie in memory in the order ``physical_layout``.)",
    .composite =
        [](Ints size, Ints physical_layout, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          check(size.size() == physical_layout.size(),
                "Number of dimensions in size does not match the length of the "
                "physical_layout; i.e. len(size) = ",
                size.size(), " is not equal to len(physical_layout) = ", physical_layout.size());
          Dims strides(size.size());
          std::vector<bool> seen(size.size());
          int64_t step = 1;
          for (size_t i = size.size(); i-- > 0;) {
            const int64_t d = physical_layout[i];
            check(d >= 0 && d < int64_t(size.size()), "Dimension out of range (expected to be between 0 and ",
                  int64_t(size.size()) - 1, ", but got ", d, " at index ", i, ").");
            check(!seen[d], "Duplicate dim not allowed");
            seen[d] = true;
            strides[d] = step;
            step *= std::max<int64_t>(size[d], 1);
          }
          return empty_strided(size, strides, dtype, {}, device, pin, requires_grad);
        },
}};

OP_DEFINE(scalar_tensor){{
    .doc = R"(A 0-dim tensor with the value ``s``, of the default dtype unless another is named.)",
    .composite =
        [](Scalar s, OptDType dtype, OptLayout, OptDevice device, OptBool pin, bool requires_grad) {
          return filled(make({}, dtype, {device, pin}, requires_grad), s);
        },
}};

OP_DEFINE(hann_window){{
    .doc =
        R"(The Hann window ``sin(pi n / N)^2``. A periodic window serves the Fourier transform, a symmetric one filters.)",
    .composite =
        [](int64_t length, bool periodic, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return make_window(length, periodic, dtype, {device, pin}, requires_grad,
                             [](double x) { return cosine_sum(x, 0.5, 0.5, 0); });
        },
}};

OP_DEFINE(hamming_window){{
    .doc = R"(The Hamming window ``alpha - beta cos(2 pi n / N)``.)",
    .composite =
        [](int64_t length, bool periodic, double alpha, double beta, OptDType dtype, OptLayout, OptDevice device,
           OptBool pin, bool requires_grad) {
          return make_window(length, periodic, dtype, {device, pin}, requires_grad,
                             [=](double x) { return cosine_sum(x, alpha, beta, 0); });
        },
}};

OP_DEFINE(bartlett_window){{
    .doc = R"(The Bartlett window: a triangle from 0 up to 1 and back.)",
    .composite =
        [](int64_t length, bool periodic, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return make_window(length, periodic, dtype, {device, pin}, requires_grad,
                             [](double x) { return 1 - std::abs(2 * x - 1); });
        },
}};

OP_DEFINE(blackman_window){{
    .doc = R"(The Blackman window ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``.)",
    .composite =
        [](int64_t length, bool periodic, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return make_window(length, periodic, dtype, {device, pin}, requires_grad,
                             [](double x) { return cosine_sum(x, 0.42, 0.5, 0.08); });
        },
}};

OP_DEFINE(kaiser_window){{
    .doc = R"(The Kaiser window ``I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)`` with the Bessel function I0.)",
    .composite =
        [](int64_t length, bool periodic, double beta, OptDType dtype, OptLayout, OptDevice device, OptBool pin,
           bool requires_grad) {
          return make_window(length, periodic, dtype, {device, pin}, requires_grad, [=](double x) {
            const double from_middle = 2 * x - 1;
            return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - from_middle * from_middle))) / bessel_i0(beta);
          });
        },
}};

OP_DEFINE(vander){{
    .doc =
        R"(The Vandermonde matrix: a column for each power of x, falling unless ``increasing``; N columns, else as many as x has
elements.)",
    .composite =
        [](const Tensor& x, OptInt N, bool increasing) {
          check(x.dim() == 1, "x must be a one-dimensional tensor.");
          const int64_t n = N.value_or(x.numel());
          check(n >= 0, "N must be non-negative.");
          const DType dtype = is_integral(x.dtype()) ? kInt64 : x.dtype();
          const Tensor base = unsqueeze(to(x, dtype), 1);
          std::vector<Tensor> columns(static_cast<size_t>(n));
          Tensor power = ones_like(base);
          for (int64_t i = 0; i < n; ++i) {
            columns[size_t(increasing ? i : n - 1 - i)] = power;
            if (i + 1 < n) power = power * base;
          }
          return n ? cat(columns, 1) : empty({x.numel(), 0}, dtype);
        },
}};

OP_DEFINE(numel){{
    .doc = R"(The number of elements.)",
    .composite = [](const Tensor& x) { return x.numel(); },
}};

OP_DEFINE(is_floating_point){{
    .doc = R"(Whether the dtype is a floating-point one.)",
    .composite = [](const Tensor& x) { return x.is_floating_point(); },
}};

OP_DEFINE(is_complex_){{
    .doc = R"(Whether the dtype is a complex one.)",
    .composite = [](const Tensor& x) { return x.is_complex(); },
}};

OP_DEFINE(is_signed_){{
    .doc = R"(Whether the dtype has negative numbers.)",
    .composite = [](const Tensor& x) { return is_signed(x.dtype()); },
}};

OP_DEFINE(is_conj){{
    .doc = R"(False: conjugation is never put off here.)",
    .composite = [](const Tensor&) { return false; },
}};

OP_DEFINE(is_neg){{
    .doc = R"(False: negation is never put off here.)",
    .composite = [](const Tensor&) { return false; },
}};

OP_DEFINE(is_inference){{
    .doc = R"(Whether the tensor was made in inference mode.)",
    .composite = [](const Tensor& x) { return x.impl()->inference; },
}};

OP_DEFINE(is_nonzero){{
    .doc = R"(Whether the only element is not zero. Errors: RuntimeError where there is not exactly one.)",
    .composite =
        [](const Tensor& x) {
          check(x.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
          check(x.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
          return x.item<bool>();
        },
}};

OP_DEFINE(is_same_size){{
    .doc = R"(Whether both tensors have the same size.)",
    .composite = [](const Tensor& x, const Tensor& other) { return x.sizes() == other.sizes(); },
}};

OP_DEFINE(can_cast_){{
    .doc = R"(Whether type promotion lets a result of the first dtype be written to a tensor of the second.)",
    .composite = [](DType from, DType to) { return can_cast(from, to); },
}};

}  // namespace rush
