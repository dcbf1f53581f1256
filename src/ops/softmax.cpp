// Softmax, its logarithm, and their gradients.
#include "kernels/cpu/softmax.h"

#include "ops/reduce.h"

namespace rush {

namespace {

Meta softmax_meta(const Tensor& x, int64_t dim, bool half_to_float) {
  wrap_dim(dim, x.dim());
  check<NotImplementedError>(is_floating(x.dtype()), "\"softmax_lastdim_kernel_impl\" not implemented for '",
                             scalar_name(x.dtype()), "'");
  return {x.sizes(), half_to_float ? kFloat32 : x.dtype()};
}
Meta softmax_backward_meta(const Tensor& g, const Tensor& y, int64_t dim, DType input_dtype) {
  wrap_dim(dim, y.dim());
  check(Ints(g.sizes()) == Ints(y.sizes()), "grad_output of shape ", g.sizes(), " and output of shape ", y.sizes(),
        " differ");
  return {y.sizes(), input_dtype};
}
Tensor typed(const Tensor& x, OptDType dtype) { return dtype && *dtype != x.dtype() ? cast(x, *dtype) : x; }
Tensor sum_along(const Tensor& x, int64_t dim) { return sum(x, Ints({dim}), true); }

}  // namespace

OP_DEFINE(softmax){{
    .doc = R"(``exp(x) / sum(exp(x))`` along ``dim``, computed without overflow; ``dtype`` converts x first.

Floating dtypes only; the result has the same shape, and values that sum to 1 along ``dim``.)",
    .composite = [](const Tensor& x, int64_t dim, OptDType dtype) { return softmax_of(typed(x, dtype), dim, false); },
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Softmax(self, axis=dim)",
}};

OP_DEFINE(log_softmax){{
    .doc = R"(The logarithm of softmax along ``dim``, accurate where softmax itself would round to 0.)",
    .composite = [](const Tensor& x, int64_t dim,
                    OptDType dtype) { return log_softmax_of(typed(x, dtype), dim, false); },
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "LogSoftmax(self, axis=dim)",
}};

OP_DEFINE(softmax_of){{
    .doc = R"(softmax of floating x; float32 from a half type where ``half_to_float``.)",
    .infer = softmax_meta,
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, bool) {
      cpu::softmax(out, x, wrap_dim(dim, x.dim()), false);
    }},
    .saves = "self.shape, result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor& x, int64_t dim,
              bool) { return Grads{softmax_backward_data(g, y, dim, x.dtype())}; },
    .onnx = "Softmax(self, axis=dim)",
}};

OP_DEFINE(log_softmax_of){{
    .doc = R"(log_softmax of floating x; float32 from a half type where ``half_to_float``.)",
    .infer = softmax_meta,
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, bool) {
      cpu::softmax(out, x, wrap_dim(dim, x.dim()), true);
    }},
    .saves = "self.shape, result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor& x, int64_t dim,
              bool) { return Grads{log_softmax_backward_data(g, y, dim, x.dtype())}; },
    .onnx = "LogSoftmax(self, axis=dim)",
}};

OP_DEFINE(softmax_backward_data){{
    .doc = R"(The gradient at softmax's argument: ``(g - sum(g * y, dim)) * y`` for its result y.)",
    .infer = softmax_backward_meta,
    .kernel = {[](Tensor& out, const Tensor& g, const Tensor& y, int64_t dim, DType) {
      cpu::softmax_backward(out, g, y, wrap_dim(dim, y.dim()), false);
    }},
    .saves = "grad_output, output",
    .vjp =
        [](const Tensor& gg, const Tensor&, const Tensor& g, const Tensor& y, int64_t dim, DType) {
          const Tensor dot = sum_along(g * y, dim), back = sum_along(gg * y, dim);
          return Grads{(gg - back) * y, gg * (g - dot) - back * g};
        },
}};

OP_DEFINE(log_softmax_backward_data){{
    .doc = R"(The gradient at log_softmax's argument: ``g - exp(y) * sum(g, dim)`` for its result y.)",
    .infer = softmax_backward_meta,
    .kernel = {[](Tensor& out, const Tensor& g, const Tensor& y, int64_t dim, DType) {
      cpu::softmax_backward(out, g, y, wrap_dim(dim, y.dim()), true);
    }},
    .saves = "grad_output, output",
    .vjp =
        [](const Tensor& gg, const Tensor&, const Tensor& g, const Tensor& y, int64_t dim, DType) {
          const Tensor p = exp(y);
          return Grads{gg - sum_along(gg * p, dim), -(gg * p * sum_along(g, dim))};
        },
}};

}  // namespace rush
