// Copies, casts and what changes a tensor's own memory.
#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

OP_DEFINE(fill){{
    .doc = R"(A tensor shaped like self with every element ``value``, which has one element.)",
    .infer =
        [](const Tensor& self, const Tensor& value) {
          check(value.numel() == 1, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
          return like(self);
        },
    .kernel = {cpu::fill},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
          return Grads{Tensor(), needs_grad(1) ? sum(g) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(copy){{
    .doc =
        R"(The elements of ``src``, broadcast to the shape and cast to the dtype of self. In place: ``x.copy_(src)``.)",
    .infer =
        [](const Tensor& self, const Tensor& src, bool) {
          check(Ints(broadcast(self.sizes(), src.sizes())) == Ints(self.sizes()), "The size of tensor a ", self.sizes(),
                " must match the size of tensor b ", src.sizes(), ": src does not broadcast to self");
          return like(self);
        },
    .kernel = {[](Tensor& out, const Tensor&, const Tensor& src, bool) { cpu::copy(out, src); }},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&, bool) {
          return Grads{Tensor(), g};
        },
    .pointwise = true,
}};

OP_DEFINE(clone){{
    .doc = R"(A copy with memory of its own, in the same or the named memory format.)",
    .infer =
        [](const Tensor& x, OptMemoryFormat format) {
          const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
          if (f == MemoryFormat::Preserve) return like(x);
          if (f == MemoryFormat::Contiguous) return Meta{x.sizes(), x.dtype()};
          return Meta{x.sizes(), x.dtype(), {}, strides_for(x.sizes(), f)};
        },
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

}  // namespace rush
