// Creation: tensors from nothing, or from another tensor's shape.
#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

namespace {

Tensor make(Ints size, OptDType dtype, OptDevice device, bool requires_grad, OptMemoryFormat format = {}) {
  Meta meta{size, dtype.value_or(default_dtype()), device.value_or(kCPU), {}};
  if (format && *format != MemoryFormat::Contiguous && *format != MemoryFormat::Preserve)
    meta.strides = strides_for(size, *format);
  Tensor t = allocate(meta);
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor make_like(const Tensor& x, OptDType dtype, OptDevice device, bool requires_grad, OptMemoryFormat format) {
  Meta meta{x.sizes(), dtype.value_or(x.dtype()), device.value_or(x.device()), {}};
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
  NoGrad guard;
  const bool wants = t.requires_grad();
  if (wants) t.requires_grad_(false);
  in_place(fill, t, Tensor(value));
  if (wants) t.requires_grad_();
  return t;
}

Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype, OptDevice device,
             bool requires_grad) {
  const bool integral = start.is_int() && end.is_int() && step.is_int();
  check(step.to_double() != 0, "step must be nonzero");
  const double length = std::ceil((end.to_double() - start.to_double()) / step.to_double());
  check(std::isfinite(length), "unsupported range: ", start, " -> ", end);
  check(length >= 0, "upper bound and lower bound inconsistent with step sign");
  Tensor t = make({int64_t(length)}, dtype.value_or(integral ? kInt64 : default_dtype()), device, false);
  if (!t.is_meta()) cpu::arange(t, start, step);
  if (requires_grad) t.requires_grad_();
  return t;
}

}  // namespace

OP_DEFINE(empty){{
    .doc = R"(A tensor of the given size whose elements are whatever the memory holds.)",
    .composite = [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
                    OptMemoryFormat format) { return make(size, dtype, device, requires_grad, format); },
}};

OP_DEFINE(empty_strided){{
    .doc = R"(A tensor of the given size and strides (in elements) whose elements are whatever the memory holds.)",
    .composite =
        [](Ints size, Ints stride, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          check(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
                ") must match dimensionality of strides (", stride.size(), ")");
          for (int64_t s : stride) check(s >= 0, "negative strides are not supported, got ", stride);
          Tensor t = allocate({size, dtype.value_or(default_dtype()), device.value_or(kCPU), stride.dims()});
          if (requires_grad) t.requires_grad_();
          return t;
        },
}};

OP_DEFINE(zeros){{
    .doc = R"(A tensor of zeros.)",
    .composite = [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool,
                    bool requires_grad) { return filled(make(size, dtype, device, requires_grad), 0); },
}};

OP_DEFINE(ones){{
    .doc = R"(A tensor of ones.)",
    .composite = [](Ints size, OptDType dtype, OptLayout, OptDevice device, OptBool,
                    bool requires_grad) { return filled(make(size, dtype, device, requires_grad), 1); },
}};

OP_DEFINE(full){{
    .doc = R"(A tensor filled with ``fill_value``, whose kind gives the dtype unless one is named.)",
    .composite =
        [](Ints size, Scalar fill_value, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          return filled(make(size, dtype.value_or(fill_value.dtype()), device, requires_grad), fill_value);
        },
}};

OP_DEFINE(empty_like){{
    .doc = R"(A tensor of the input's size, dtype and device whose elements are whatever the memory holds.)",
    .composite = [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
                    OptMemoryFormat format) { return make_like(x, dtype, device, requires_grad, format); },
}};

OP_DEFINE(zeros_like){{
    .doc = R"(Zeros with the input's size, dtype and device.)",
    .composite = [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
                    OptMemoryFormat format) { return filled(make_like(x, dtype, device, requires_grad, format), 0); },
}};

OP_DEFINE(ones_like){{
    .doc = R"(Ones with the input's size, dtype and device.)",
    .composite = [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
                    OptMemoryFormat format) { return filled(make_like(x, dtype, device, requires_grad, format), 1); },
}};

OP_DEFINE(arange){
    {
        .doc = R"(Integers (or steps of another kind of number) from 0 up to ``end``, not included.)",
        .composite = [](Scalar end, OptDType dtype, OptLayout, OptDevice device, OptBool,
                        bool requires_grad) { return range(0, end, 1, dtype, device, requires_grad); },
    },
    {
        .doc = R"(``start``, ``start + step``, ... up to ``end``, not included.)",
        .composite = [](Scalar start, Scalar end, Scalar step, OptDType dtype, OptLayout, OptDevice device, OptBool,
                        bool requires_grad) { return range(start, end, step, dtype, device, requires_grad); },
    }};

}  // namespace rush
