// Activations and their gradients, elementwise.
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vector_tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

namespace f = formula;

void relu(Tensor& out, const Tensor& x) { map<f::Relu, Real>(out.dtype(), out, x); }
void sigmoid(Tensor& out, const Tensor& x) { map<f::Sigmoid, FloatingOrComplex>(out.dtype(), out, x); }
void sigmoid_backward(Tensor& out, const Tensor& g, const Tensor& result) {
  map<f::SigmoidGrad, FloatingOrComplex>(out.dtype(), out, g, result);
}
void tanh_backward(Tensor& out, const Tensor& g, const Tensor& result) {
  map<f::TanhGrad, FloatingOrComplex>(out.dtype(), out, g, result);
}
void silu(Tensor& out, const Tensor& x) { map<f::Silu, FloatingOrComplex>(out.dtype(), out, x); }
void silu_backward(Tensor& out, const Tensor& g, const Tensor& x) {
  map<f::SiluGrad, FloatingOrComplex>(out.dtype(), out, g, x);
}

void gelu(Tensor& out, const Tensor& x, std::string_view approximate) {
  if (approximate == "tanh")
    map<f::GeluTanh, Floating>(out.dtype(), out, x);
  else
    map<f::Gelu, Floating>(out.dtype(), out, x);
}
void gelu_backward(Tensor& out, const Tensor& g, const Tensor& x, std::string_view approximate) {
  if (approximate == "tanh")
    map<f::GeluTanhGrad, Floating>(out.dtype(), out, g, x);
  else
    map<f::GeluGrad, Floating>(out.dtype(), out, g, x);
}

void elu(Tensor& out, const Tensor& x, Scalar alpha, Scalar scale, Scalar input_scale) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    apply<T>(f::Elu<T>{T(alpha.to<T>() * scale.to<T>()), scale.to<T>(), input_scale.to<T>()}, out, x);
  });
}
void elu_backward(Tensor& out, const Tensor& g, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
                  const Tensor& self_or_result) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    const T negative = alpha.to<T>() * scale.to<T>(), positive = scale.to<T>(), input = input_scale.to<T>();
    if (is_result)
      apply<T, T>(f::EluGradFromResult<T>{negative, positive, input}, out, g, self_or_result);
    else
      apply<T, T>(f::EluGrad<T>{negative, positive, input}, out, g, self_or_result);
  });
}
void celu(Tensor& out, const Tensor& x, Scalar alpha) { elu(out, x, alpha, 1, 1 / alpha.to_double()); }
void selu(Tensor& out, const Tensor& x) {
  elu(out, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}

void hardsigmoid(Tensor& out, const Tensor& x) { map<f::Hardsigmoid, Floating>(out.dtype(), out, x); }
void hardsigmoid_backward(Tensor& out, const Tensor& g, const Tensor& x) {
  map<f::HardsigmoidGrad, Floating>(out.dtype(), out, g, x);
}
void hardswish(Tensor& out, const Tensor& x) { map<f::Hardswish, Floating>(out.dtype(), out, x); }
void hardswish_backward(Tensor& out, const Tensor& g, const Tensor& x) {
  map<f::HardswishGrad, Floating>(out.dtype(), out, g, x);
}
void hardtanh(Tensor& out, const Tensor& x, Scalar low, Scalar high) { clamp(out, x, OptScalar(low), OptScalar(high)); }
void hardtanh_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar low, Scalar high) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    apply<T, T>(f::HardtanhGrad<T>{low.to<T>(), high.to<T>()}, out, g, x);
  });
}
void relu6(Tensor& out, const Tensor& x) { hardtanh(out, x, 0, 6); }

void leaky_relu(Tensor& out, const Tensor& x, Scalar negative_slope) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::LeakyRelu<T>{negative_slope.to<T>()}, out, x); });
}
void leaky_relu_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar negative_slope) {
  for_compute(Floating{}, out.dtype(),
              [&]<class T>() { apply<T, T>(f::LeakyReluGrad<T>{negative_slope.to<T>()}, out, g, x); });
}
void prelu(Tensor& out, const Tensor& x, const Tensor& weight) { map<f::Prelu, Floating>(out.dtype(), out, x, weight); }

void logsigmoid(Tensor& out, const Tensor& x) { map<f::LogSigmoid, Floating>(out.dtype(), out, x); }
void logsigmoid_backward(Tensor& out, const Tensor& g, const Tensor& x) {
  map<f::LogSigmoidGrad, Floating>(out.dtype(), out, g, x);
}
void mish(Tensor& out, const Tensor& x) { map<f::Mish, Floating>(out.dtype(), out, x); }
void mish_backward(Tensor& out, const Tensor& g, const Tensor& x) {
  map<f::MishGrad, Floating>(out.dtype(), out, g, x);
}

void softplus(Tensor& out, const Tensor& x, Scalar beta, Scalar threshold) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    apply<T>(f::Softplus<T>{beta.to<T>(), threshold.to<T>()}, out, x);
  });
}
void softplus_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar beta, Scalar threshold) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    apply<T, T>(f::SoftplusGrad<T>{beta.to<T>(), threshold.to<T>()}, out, g, x);
  });
}

void softshrink(Tensor& out, const Tensor& x, Scalar lambd) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::Softshrink<T>{lambd.to<T>()}, out, x); });
}
void hardshrink(Tensor& out, const Tensor& x, Scalar lambd) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::Hardshrink<T>{lambd.to<T>()}, out, x); });
}
void shrink_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar lambd) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T, T>(f::ShrinkGrad<T>{lambd.to<T>()}, out, g, x); });
}
void threshold(Tensor& out, const Tensor& x, Scalar threshold, Scalar value) {
  for_compute(Real{}, out.dtype(), [&]<class T>() {
    apply<T>(f::Threshold<T>{threshold.to<T>(), value.to<T>()}, out, x);
  });
}
void threshold_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar threshold) {
  for_compute(Real{}, out.dtype(), [&]<class T>() { apply<T, T>(f::ThresholdGrad<T>{threshold.to<T>()}, out, g, x); });
}
void tanhshrink(Tensor& out, const Tensor& x) { map<f::Tanhshrink, FloatingOrComplex>(out.dtype(), out, x); }
void softsign(Tensor& out, const Tensor& x) { map<f::Softsign, FloatingOrComplex>(out.dtype(), out, x); }

}  // namespace rush::cpu
