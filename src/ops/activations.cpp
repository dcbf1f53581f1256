// Activation functions and their gradients.
#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "ops/fits.h"

namespace rush {

OP_DEFINE(relu){{
    .doc = R"(``max(self, 0)``.

Source: Fukushima 1969.)",
    .infer =
        [](const Tensor& x) {
          check(x.dtype() != kBool, "Boolean inputs not supported for relu");
          check<NotImplementedError>(!x.is_complex(), "not implemented for '", scalar_name(x.dtype()), "'");
          return like(x);
        },
    .kernel = {cpu::relu},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{threshold_backward(g, y, 0)}; },
    .pointwise = true,
    .onnx = "Relu(self)",
}};

OP_DEFINE(threshold_backward){{
    .doc = R"(The gradient of threshold and, at the result with threshold 0, of relu.)",
    .infer = [](const Tensor& g, const Tensor& x, Scalar) { return backward_meta(g, x); },
    .kernel = {cpu::threshold_backward},
    .composite = [](const Tensor& g, const Tensor& x,
                    Scalar t) { return where(gt(x.detach(), Tensor(t)), g, zeros({}, g.dtype())); },
}};

OP_DEFINE(relu6){{
    .doc = R"(``min(max(input, 0), 6)``.

Source: Krizhevsky 2010.)",
    .infer = like_real,
    .kernel = {cpu::relu6},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{hardtanh_backward(g, x, 0, 6)}; },
    .pointwise = true,
}};

OP_DEFINE(silu){{
    .doc = R"(Sigmoid linear unit, ``x * sigmoid(x)``, also called swish.

Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.)",
    .infer = floating_only,
    .kernel = {cpu::silu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{silu_backward(g, x)}; },
    .pointwise = true,
    .onnx = "Mul(input, Sigmoid(input))",
}};

OP_DEFINE(silu_backward){{
    .doc = R"(The gradient of silu.)",
    .infer = backward_meta,
    .kernel = {cpu::silu_backward},
    .composite =
        [](const Tensor& g, const Tensor& x) {
          const Tensor p = sigmoid(x);
          return g * conjugate(p * (1 + x * (1 - p)));
        },
}};

OP_DEFINE(mish){{
    .doc = R"(``x * tanh(softplus(x))``.

Source: Misra 2019, arXiv:1908.08681.)",
    .infer = floating_only,
    .kernel = {cpu::mish},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{mish_backward(g, x)}; },
    .pointwise = true,
}};

OP_DEFINE(mish_backward){{
    .doc = R"(The gradient of mish.)",
    .infer = backward_meta,
    .kernel = {cpu::mish_backward},
    .composite =
        [](const Tensor& g, const Tensor& x) {
          const Tensor t = tanh(softplus(x));
          return g * (t + x * (1 - t * t) * sigmoid(x));
        },
}};

OP_DEFINE(gelu){{
    .doc = R"(``x * Phi(x)`` with Phi the normal distribution's cumulative function, or its tanh approximation.

Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.)",
    .infer =
        [](const Tensor& x, std::string_view how) {
          check(how == "none" || how == "tanh", "approximate argument must be either none or tanh.");
          return floating_only(x);
        },
    .kernel = {cpu::gelu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
              std::string_view how) { return Grads{gelu_backward(g, x, how)}; },
    .pointwise = true,
    .onnx = "Gelu(input, approximate)",
}};

OP_DEFINE(gelu_backward){{
    .doc = R"(The gradient of gelu.)",
    .infer = [](const Tensor& g, const Tensor& x, std::string_view) { return backward_meta(g, x); },
    .kernel = {cpu::gelu_backward},
    .composite =
        [](const Tensor& g, const Tensor& x, std::string_view how) {
          if (how == "none")
            return g * (0.5 * (1 + erf(x * std::sqrt(0.5))) +
                        x * exp(-0.5 * x * x) * (0.5 * kTwoOverRootPi * std::sqrt(0.5)));
          const double k = kTwoOverRootPi * std::sqrt(0.5), c = 0.044715;
          const Tensor t = tanh(k * (x + c * x * x * x));
          return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (k * (1 + 3 * c * x * x)));
        },
}};

OP_DEFINE(elu){{
    .doc = R"(``scale * x`` where x > 0, else ``scale * alpha * (exp(x * input_scale) - 1)``.

Source: Clevert et al. 2015, arXiv:1511.07289.)",
    .infer = [](const Tensor& x, Scalar, Scalar, Scalar) { return floating_only(x); },
    .kernel = {cpu::elu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Scalar alpha, Scalar scale,
              Scalar input_scale) { return Grads{elu_backward(g, alpha, scale, input_scale, false, x)}; },
    .pointwise = true,
    .onnx = "Elu(input, alpha)",
}};

OP_DEFINE(elu_backward){{
    .doc = R"(The gradient of elu at its argument or, for positive alpha, at its result.)",
    .infer = [](const Tensor& g, Scalar, Scalar, Scalar, bool, const Tensor& x) { return backward_meta(g, x); },
    .kernel = {cpu::elu_backward},
    .composite =
        [](const Tensor& g, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, const Tensor& x) {
          const double a = alpha.to_double(), s = scale.to_double(), i = input_scale.to_double();
          const Tensor below = is_result ? g * (i * (x + a * s)) : g * (i * a * s * exp(x * i));
          return where(gt(x, 0), g * s, below);
        },
}};

OP_DEFINE(celu){{
    .doc = R"(``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

Source: Barron 2017, arXiv:1704.07483.)",
    .infer =
        [](const Tensor& x, Scalar alpha) {
          check(alpha.to_double() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
          return floating_only(x);
        },
    .kernel = {cpu::celu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
              Scalar alpha) { return Grads{elu_backward(g, alpha, 1, 1 / alpha.to_double(), false, x)}; },
    .pointwise = true,
}};

OP_DEFINE(selu){{
    .doc = R"(``scale * elu(x, alpha)`` with the two constants that keep activations normalized.

Source: Klambauer et al. 2017, arXiv:1706.02515.)",
    .infer = floating_only,
    .kernel = {cpu::selu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&,
              const Tensor& x) { return Grads{elu_backward(g, kSeluAlpha, kSeluScale, 1, false, x)}; },
    .pointwise = true,
    .onnx = "Selu(input)",
}};

OP_DEFINE(hardsigmoid){{
    .doc = R"(``min(max(x / 6 + 1/2, 0), 1)``.)",
    .infer = floating_only,
    .kernel = {cpu::hardsigmoid},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{hardsigmoid_backward(g, x)}; },
    .pointwise = true,
}};

OP_DEFINE(hardsigmoid_backward){{
    .doc = R"(The gradient of hardsigmoid.)",
    .infer = backward_meta,
    .kernel = {cpu::hardsigmoid_backward},
    .composite =
        [](const Tensor& g, const Tensor& x) {
          return where(bitwise_and(gt(x.detach(), -3), lt(x.detach(), 3)), g / 6, zeros({}, g.dtype()));
        },
}};

OP_DEFINE(hardswish){{
    .doc = R"(``x * hardsigmoid(x)``.

Source: Howard et al. 2019, arXiv:1905.02244.)",
    .infer = floating_only,
    .kernel = {cpu::hardswish},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{hardswish_backward(g, x)}; },
    .pointwise = true,
}};

OP_DEFINE(hardswish_backward){{
    .doc = R"(The gradient of hardswish.)",
    .infer = backward_meta,
    .kernel = {cpu::hardswish_backward},
    .composite =
        [](const Tensor& g, const Tensor& x) {
          return where(le(x, -3), zeros({}, g.dtype()), where(lt(x, 3), g * (x / 3 + 0.5), g));
        },
}};

OP_DEFINE(hardtanh){{
    .doc = R"(``min(max(x, min_val), max_val)``.)",
    .infer =
        [](const Tensor& x, Scalar low, Scalar high) {
          check(x.dtype() != kBool, "Bool inputs not supported for hardtanh");
          check(low.to_double() <= high.to_double(), "min_val cannot be greater than max_val");
          return like_real(x);
        },
    .kernel = {cpu::hardtanh},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Scalar low,
              Scalar high) { return Grads{hardtanh_backward(g, x, low, high)}; },
    .pointwise = true,
    .onnx = "Clip(input, min_val, max_val)",
}};

OP_DEFINE(hardtanh_backward){{
    .doc = R"(The gradient of hardtanh.)",
    .infer = [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return backward_meta(g, x); },
    .kernel = {cpu::hardtanh_backward},
    .composite =
        [](const Tensor& g, const Tensor& x, Scalar low, Scalar high) {
          return where(bitwise_and(gt(x.detach(), Tensor(low)), lt(x.detach(), Tensor(high))), g, zeros({}, g.dtype()));
        },
}};

OP_DEFINE(leaky_relu){{
    .doc = R"(x where it is positive, else ``negative_slope * x``.

Source: Maas et al. 2013.)",
    .infer = [](const Tensor& x, Scalar) { return floating_only(x); },
    .kernel = {cpu::leaky_relu},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
              Scalar slope) { return Grads{leaky_relu_backward(g, x, slope)}; },
    .pointwise = true,
    .onnx = "LeakyRelu(input, negative_slope)",
}};

OP_DEFINE(leaky_relu_backward){{
    .doc = R"(The gradient of leaky_relu.)",
    .infer = [](const Tensor& g, const Tensor& x, Scalar) { return backward_meta(g, x); },
    .kernel = {cpu::leaky_relu_backward},
    .composite = [](const Tensor& g, const Tensor& x,
                    Scalar slope) { return where(gt(x.detach(), 0), g, g * Tensor(slope)); },
}};

OP_DEFINE(prelu){{
    .doc = R"(x where it is positive, else ``weight * x``; one weight, or one for each channel (dimension 1).

Source: He et al. 2015, arXiv:1502.01852.)",
    .composite =
        [](const Tensor& x, const Tensor& weight) {
          check(weight.dim() <= 1,
                "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
          check(x.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ", scalar_name(x.dtype()),
                " and ", scalar_name(weight.dtype()));
          if (weight.numel() != 1) {
            check(x.dim() > 0, "Not allow zero-dim input tensor.");
            const int64_t channels = x.dim() >= 2 ? x.sizes()[1] : 1;
            check(channels == weight.numel(),
                  "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
                  " and channel size = ", channels, ".");
          }
          if (weight.dim() == 0 || (weight.numel() == 1 && x.dim() < 2))
            return prelu_kernel(x, x.dim() ? weight : reshape(weight, Ints()));
          Dims sizes(size_t(x.dim()), 1);
          if (x.dim() >= 2) sizes[1] = weight.numel();
          return prelu_kernel(x, view(weight, sizes));
        },
    .autocast = on_cuda(Autocast::half),
    .onnx = "PRelu(self, weight)",
}};

OP_DEFINE(prelu_kernel){{
    .doc = R"(prelu with a weight that broadcasts.)",
    .infer = [](const Tensor& x, const Tensor& w) { return pointwise_meta(x.dtype(), x, w); },
    .kernel = {cpu::prelu},
    .saves = "self, weight",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& w) {
          const Tensor positive = gt(x, 0);
          return Grads{where(positive, g, g * w),
                       needs_grad(1) ? where(positive, zeros({}, g.dtype()), g * x) : Tensor()};
        },
}};

OP_DEFINE(log_sigmoid){{
    .doc = R"(``log(1 / (1 + exp(-x)))`` without overflow.)",
    .infer = floating_only,
    .kernel = {cpu::logsigmoid},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{log_sigmoid_backward(g, x)}; },
}};

OP_DEFINE(log_sigmoid_backward){{
    .doc = R"(The gradient of log_sigmoid.)",
    .infer = backward_meta,
    .kernel = {cpu::logsigmoid_backward},
    .composite = [](const Tensor& g, const Tensor& x) { return g * sigmoid(-x); },
}};

OP_DEFINE(softplus){{
    .doc = R"(``log(1 + exp(beta * x)) / beta``, and x itself where ``beta * x > threshold``.

Source: Dugas et al. 2001.)",
    .infer = [](const Tensor& x, Scalar, Scalar) { return floating_only(x); },
    .kernel = {cpu::softplus},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Scalar beta,
              Scalar threshold) { return Grads{softplus_backward(g, x, beta, threshold)}; },
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Softplus(input)",
}};

OP_DEFINE(softplus_backward){{
    .doc = R"(The gradient of softplus.)",
    .infer = [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return backward_meta(g, x); },
    .kernel = {cpu::softplus_backward},
    .composite =
        [](const Tensor& g, const Tensor& x, Scalar beta, Scalar threshold) {
          const Tensor b = x * Tensor(beta);
          return where(gt(b.detach(), Tensor(threshold)), g, g * sigmoid(b));
        },
}};

OP_DEFINE(softshrink){{
    .doc = R"(x moved towards 0 by ``lambd``, 0 within.)",
    .infer =
        [](const Tensor& x, Scalar lambd) {
          check(lambd.to_double() >= 0, "lambda must be greater or equal to 0, but found to be ", lambd, ".");
          return floating_only(x);
        },
    .kernel = {cpu::softshrink},
    .saves = "input",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
              Scalar lambd) { return Grads{shrink_backward(g, x, lambd)}; },
}};

OP_DEFINE(hardshrink){{
    .doc = R"(x, or 0 where it is within ``lambd`` of 0.)",
    .infer = [](const Tensor& x, Scalar) { return floating_only(x); },
    .kernel = {cpu::hardshrink},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x,
              Scalar lambd) { return Grads{shrink_backward(g, x, lambd)}; },
}};

OP_DEFINE(shrink_backward){{
    .doc = R"(The gradient of softshrink and of hardshrink.)",
    .infer = [](const Tensor& g, const Tensor& x, Scalar) { return backward_meta(g, x); },
    .kernel = {cpu::shrink_backward},
    .composite = [](const Tensor& g, const Tensor& x,
                    Scalar lambd) { return where(gt(abs(x.detach()), Tensor(lambd)), g, zeros({}, g.dtype())); },
}};

OP_DEFINE(threshold){{
    .doc = R"(x where it is above ``threshold``, else ``value``.)",
    .infer =
        [](const Tensor& x, Scalar, Scalar value) {
          if (is_integral(x.dtype())) check_fits(Tensor(value), x.dtype());
          return like_real(x);
        },
    .kernel = {cpu::threshold},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Scalar t,
              Scalar) { return Grads{threshold_backward(g, x, t)}; },
    .pointwise = true,
}};

OP_DEFINE(tanhshrink){{
    .doc = R"(``x - tanh(x)``.)",
    .composite = [](const Tensor& x) { return x - tanh(x); },
}};

OP_DEFINE(softsign){{
    .doc = R"(``x / (1 + |x|)``.

Source: Turian, Bergstra and Bengio 2009.)",
    .composite = [](const Tensor& x) { return x / (abs(x) + 1); },
}};

OP_DEFINE(glu){{
    .doc = R"(The first half along ``dim`` times the sigmoid of the second.

Source: Dauphin et al. 2016, arXiv:1612.08083.)",
    .composite =
        [](const Tensor& x, int64_t dim) {
          check(x.dim() > 0, "glu does not support 0-dimensional tensors");
          const int64_t d = wrap_dim(dim, x.dim()), n = x.sizes()[d];
          check(n % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", n);
          return narrow(x, d, 0, n / 2) * sigmoid(narrow(x, d, n / 2, n / 2));
        },
}};

}  // namespace rush
