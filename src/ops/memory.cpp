// Copies, casts and what changes a tensor's own memory.
#include "cuda/runtime.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/copy.h"
#include "ops/common.h"
#include "ops/fits.h"

namespace rush {

namespace {

Meta copied_meta(const Tensor& x, DType dtype, OptMemoryFormat format) {
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f == MemoryFormat::Preserve) return like(x, dtype);
  if (f == MemoryFormat::Contiguous) return Meta{x.sizes(), dtype};
  return Meta{x.sizes(), dtype, {}, strides_for(x.sizes(), f)};
}

/// x itself where it already is what is asked for.
Tensor moved(const Tensor& x, OptDevice device, OptDType dtype, bool copy, OptMemoryFormat format,
             bool non_blocking = false) {
  const bool any_format = format.value_or(MemoryFormat::Preserve) == MemoryFormat::Preserve;
  const bool same = dtype.value_or(x.dtype()) == x.dtype() && device.value_or(x.device()) == x.device() &&
                    (any_format || x.is_contiguous(*format));
  return same && !copy ? x : to_copy(x, dtype, device, format, non_blocking);
}

template <DType T>
constexpr auto to_dtype = [](const Tensor& x, OptMemoryFormat format) { return moved(x, {}, T, false, format); };

void check_resizable(const Tensor& x) { check(!x.requires_grad(), "cannot resize variables that require grad"); }

Tensor window(const Tensor& self, const Tensor& source, int64_t offset, Ints size, Ints stride) {
  check(self.dtype() == source.dtype(), "Could not set tensor of type ", source.dtype(), " to a tensor of type ",
        self.dtype());
  check(!self.requires_grad(), "cannot set the memory of a tensor that requires grad");
  const Tensor made = as_strided(source.detach(), size, stride, offset);
  TensorImpl& impl = *self.impl();
  impl.storage = made.storage();
  impl.sizes = made.sizes();
  impl.strides = made.strides();
  impl.offset = offset;
  impl.device = source.device();
  impl.refresh();
  return self;
}

}  // namespace

OP_DEFINE(fill){{
    .doc = R"(A tensor shaped like self with every element ``value``, which has one element.)",
    .infer =
        [](const Tensor& self, const Tensor& value) {
          check(value.numel() == 1, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
          if (value.is_cpu()) check_fits(value, self.dtype());
          return like(self);
        },
    .kernel = {cpu::fill},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
          return Grads{needs_grad(0) ? zeros_like(g) : Tensor(), needs_grad(1) ? sum(g) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(copy){{
    .doc =
        R"(The elements of ``src``, broadcast to the shape and cast to the dtype of self. In place: ``x.copy_(src)``.)",
    .infer =
        [](const Tensor& self, const Tensor& src, bool) {
          check<NotImplementedError>(!src.is_meta() || self.is_meta(), "Cannot copy out of meta tensor; no data!");
          check(Ints(broadcast(self.sizes(), src.sizes())) == Ints(self.sizes()), "The size of tensor a ", self.sizes(),
                " must match the size of tensor b ", src.sizes(), ": src does not broadcast to self");
          return like(self);
        },
    .kernel = {[](Tensor& out, const Tensor&, const Tensor& src, bool non_blocking) {
      out.is_cpu() && src.is_cpu() ? cpu::copy(out, src) : cuda::copy(out, src, non_blocking);
    }},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&, bool) {
          return Grads{needs_grad(0) ? zeros_like(g) : Tensor(), needs_grad(1) ? g : Tensor()};
        },
    .pointwise = true,
    .across_devices = true,
}};

OP_DEFINE(clone){{
    .doc = R"(A copy with memory of its own, in the same or the named memory format.)",
    .infer = [](const Tensor& x, OptMemoryFormat format) { return copied_meta(x, x.dtype(), format); },
    .kernel = {[](Tensor& out, const Tensor& x, OptMemoryFormat) { cpu::copy(out, x); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, OptMemoryFormat) { return Grads{g}; },
}};

OP_DEFINE(contiguous){{
    .doc = R"(Self if its memory is in the named format, else a copy that is.)",
    .composite =
        [](const Tensor& x, OptMemoryFormat format) {
          const MemoryFormat f = format.value_or(MemoryFormat::Contiguous);
          check(f != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
          return x.is_contiguous(f) ? x : clone(x, f);
        },
}};

OP_DEFINE(cast){{
    .doc = R"(The elements as another dtype; always a copy. A complex number becomes its real part for a real dtype.)",
    .infer = [](const Tensor& x, DType dtype) { return like(x, dtype); },
    .kernel = {[](Tensor& out, const Tensor& x, DType) { cpu::copy(out, x); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, DType) { return Grads{g}; },
}};

OP_DEFINE(to_copy){{
    .doc = R"(A copy with another dtype, device or memory format.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptDevice device, OptMemoryFormat format, bool non_blocking) {
          Meta meta = copied_meta(x, dtype.value_or(x.dtype()), format);
          meta.device = device.value_or(x.device());
          Tensor out = allocate(meta);
          if (meta.device->is_meta()) return out;
          check<NotImplementedError>(!x.is_meta(), "Cannot copy out of meta tensor; no data!");
          in_place(copy, out, x, non_blocking);
          return out;
        },
    .saves = "self.shape",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptDType, OptDevice, OptMemoryFormat,
              bool) { return Grads{moved(g, x.device(), {}, false, {})}; },
}};

OP_DEFINE(to){
    {
        .doc =
            R"(The tensor with the given device and dtype: itself if it is there already and no ``copy`` is wanted.)",
        .composite = [](const Tensor& x, OptDevice device, OptDType dtype, bool non_blocking, bool copy,
                        OptMemoryFormat format) { return moved(x, device, dtype, copy, format, non_blocking); },
    },
    {
        .doc = R"(The tensor with the given dtype: itself if it has that already and no ``copy`` is wanted.)",
        .composite = [](const Tensor& x, DType dtype, bool, bool copy,
                        OptMemoryFormat format) { return moved(x, {}, dtype, copy, format); },
    },
    {
        .doc = R"(The tensor with the device and dtype of ``other``.)",
        .composite =
            [](const Tensor& x, const Tensor& other, bool non_blocking, bool copy, OptMemoryFormat format) {
              return moved(x, other.device(), other.dtype(), copy, format, non_blocking);
            },
    }};

OP_DEFINE(type_as){{
    .doc = R"(The tensor with the device and dtype of ``other``; itself if it has them already.)",
    .composite = [](const Tensor& x,
                    const Tensor& other) { return moved(x, other.device(), other.dtype(), false, {}); },
}};

OP_DEFINE(cpu_){{
    .doc = R"(The tensor in the CPU's memory: itself if it lies there.)",
    .composite = [](const Tensor& x, OptMemoryFormat format) { return moved(x, kCPU, {}, false, format); },
}};

OP_DEFINE(cuda_){{
    .doc =
        R"(The tensor in a GPU's memory, the current one's if none is named. Errors: RuntimeError if there is none.)",
    .composite =
        [](const Tensor& x, OptDevice device, bool non_blocking, OptMemoryFormat format) {
          return moved(x, device.value_or(indexed(DeviceType::CUDA)), {}, false, format, non_blocking);
        },
}};

OP_DEFINE(pin_memory){{
    .doc =
        R"(A copy in pinned memory, which copies to and from GPUs reach without waiting; the tensor itself if it is pinned.

Errors: RuntimeError if it is not on the CPU, or if there is no GPU.)",
    .composite =
        [](const Tensor& x, OptDevice) {
          check(x.is_cpu(), "cannot pin '", x.device(), "' only dense CPU tensors can be pinned");
          if (is_pinned(x)) return x;
          Meta meta = like(x);
          meta.pinned = true;
          Tensor out = allocate(meta);
          in_place(copy, out, x);
          return out;
        },
}};

OP_DEFINE(is_pinned){{
    .doc = R"(Whether the tensor lies in pinned memory.)",
    .composite = [](const Tensor& x,
                    OptDevice) { return x.is_cpu() && cuda::started() && cuda::runtime().is_pinned(x.data_ptr()); },
}};

OP_DEFINE(to_bool){{
    .doc = R"(The tensor as bool: itself if it is that already.)",
    .composite = to_dtype<kBool>,
}};

OP_DEFINE(to_byte){{
    .doc = R"(The tensor as uint8: itself if it is that already.)",
    .composite = to_dtype<kUInt8>,
}};

OP_DEFINE(to_char){{
    .doc = R"(The tensor as int8: itself if it is that already.)",
    .composite = to_dtype<kInt8>,
}};

OP_DEFINE(to_short){{
    .doc = R"(The tensor as int16: itself if it is that already.)",
    .composite = to_dtype<kInt16>,
}};

OP_DEFINE(to_int){{
    .doc = R"(The tensor as int32: itself if it is that already.)",
    .composite = to_dtype<kInt32>,
}};

OP_DEFINE(to_long){{
    .doc = R"(The tensor as int64: itself if it is that already.)",
    .composite = to_dtype<kInt64>,
}};

OP_DEFINE(to_half){{
    .doc = R"(The tensor as float16: itself if it is that already.)",
    .composite = to_dtype<kFloat16>,
}};

OP_DEFINE(to_bfloat16){{
    .doc = R"(The tensor as bfloat16: itself if it is that already.)",
    .composite = to_dtype<kBFloat16>,
}};

OP_DEFINE(to_float){{
    .doc = R"(The tensor as float32: itself if it is that already.)",
    .composite = to_dtype<kFloat32>,
}};

OP_DEFINE(to_double){{
    .doc = R"(The tensor as float64: itself if it is that already.)",
    .composite = to_dtype<kFloat64>,
}};

OP_DEFINE(to_cfloat){{
    .doc = R"(The tensor as complex64: itself if it is that already.)",
    .composite = to_dtype<kComplex64>,
}};

OP_DEFINE(to_cdouble){{
    .doc = R"(The tensor as complex128: itself if it is that already.)",
    .composite = to_dtype<kComplex128>,
}};

OP_DEFINE(zero){{
    .doc = R"(A tensor shaped like self with every element 0. In place: ``x.zero_()``.)",
    .infer = like_input,
    .kernel = {[](Tensor& out, const Tensor&) { cpu::fill(out, Scalar(0)); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
    .pointwise = true,
}};

OP_DEFINE(resize_){{
    .doc = R"(Gives the tensor another size, contiguous; its memory grows if it must, and what is new is not set.

Errors: RuntimeError if it requires grad.)",
    .composite =
        [](const Tensor& self, Ints size, OptMemoryFormat format) {
          check_resizable(self);
          Tensor t = self;
          for (int64_t s : size) check(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", size);
          if (Ints(t.sizes()) != size) resize(t, size);
          const MemoryFormat f = format.value_or(MemoryFormat::Contiguous);
          if (f != MemoryFormat::Contiguous && f != MemoryFormat::Preserve) {
            t.impl()->strides = strides_for(size, f);
            t.impl()->refresh();
          }
          return self;
        },
}};

OP_DEFINE(resize_as_){{
    .doc = R"(Gives the tensor the size of another, as ``resize_`` does.)",
    .composite = [](const Tensor& self, const Tensor& the_template,
                    OptMemoryFormat format) { return resize_(self, the_template.sizes(), format); },
}};

OP_DEFINE(set_){{
                    .doc = R"(Empties the tensor: no elements, memory of its own.)",
                    .composite =
                        [](const Tensor& self) {
                          const Tensor none = allocate({{0}, self.dtype(), self.device(), {}});
                          return window(self, none, 0, none.sizes(), none.strides());
                        },
                },
                {
                    .doc = R"(Makes the tensor a window on the memory of ``source``, with its size and strides.)",
                    .composite =
                        [](const Tensor& self, const Tensor& source) {
                          return window(self, source, source.storage_offset(), source.sizes(), source.strides());
                        },
                },
                {
                    .doc = R"(Makes the tensor a window of the given size and strides on the memory of ``source``.)",
                    .composite =
                        [](const Tensor& self, const Tensor& source, int64_t storage_offset, Ints size, Ints stride) {
                          return window(self, source, storage_offset, size,
                                        stride.empty() ? contiguous_strides(size) : Dims(stride));
                        },
                }};

OP_DEFINE(conj){{
    .doc = R"(The complex conjugate; a real tensor is returned as it is. It is computed at once, never put off.)",
    .composite = [](const Tensor& x) { return x.is_complex() ? conj_physical(x) : x; },
}};

OP_DEFINE(conj_physical){{
    .doc = R"(The complex conjugate in memory of its own.)",
    .infer = like_input,
    .kernel = {cpu::conj_physical},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{conj(g)}; },
    .pointwise = true,
}};

OP_DEFINE(resolve_conj){{
    .doc = R"(The tensor itself: conjugation is never put off here.)",
    .composite = [](const Tensor& x) { return x; },
}};

OP_DEFINE(resolve_neg){{
    .doc = R"(The tensor itself: negation is never put off here.)",
    .composite = [](const Tensor& x) { return x; },
}};

OP_DEFINE(positive){{
    .doc = R"(The tensor itself, what ``+x`` is. Errors: RuntimeError for a bool tensor.)",
    .composite =
        [](const Tensor& x) {
          check(x.dtype() != kBool, "The `+` operator, on a bool tensor is not supported.");
          return x;
        },
}};

}  // namespace rush
