// Elementary functions, elementwise.
#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

OP_DEFINE(ceil){{
    .doc = R"(The smallest integer that is not below the element.)",
    .infer = like_real,
    .kernel = {cpu::ceil},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
    .pointwise = true,
    .onnx = "Ceil(self)",
}};

OP_DEFINE(floor){{
    .doc = R"(The largest integer that is not above the element.)",
    .infer = like_real,
    .kernel = {cpu::floor},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
    .pointwise = true,
    .onnx = "Floor(self)",
}};

OP_DEFINE(trunc){{
    .doc = R"(The integer part, towards 0.)",
    .infer = like_real,
    .kernel = {cpu::trunc},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
    .pointwise = true,
}};

OP_DEFINE(fix){{
    .doc = R"(Another name of trunc.)",
    .composite = [](const Tensor& x) { return trunc(x); },
    .in_place = true,
}};

OP_DEFINE(frac){{
    .doc = R"(The part after the point, with the element's sign.)",
    .infer =
        [](const Tensor& x) {
          check<NotImplementedError>(!is_integral(x.dtype()) && !x.is_complex(), "not implemented for '",
                                     scalar_name(x.dtype()), "'");
          return like(x);
        },
    .kernel = {cpu::frac},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{g}; },
    .pointwise = true,
}};

OP_DEFINE(round){{
                     .doc = R"(The nearest integer, the even one of two.)",
                     .infer = like_real,
                     .kernel = {cpu::round},
                     .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
                     .pointwise = true,
                     .onnx = "Round(self)",
                 },
                 {
                     .doc = R"(The nearest number with so many decimals; negative counts places before the point.)",
                     .infer = [](const Tensor& x, int64_t) { return like_real(x); },
                     .kernel = {cpu::round},
                     .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t) { return Grads{zeros_like(g)}; },
                     .pointwise = true,
                 }};

OP_DEFINE(frexp){{
    .doc = R"(Mantissa in [0.5, 1) and integer exponent with ``self = mantissa * 2 ** exponent``.)",
    .infer =
        [](const Tensor& x) {
          check(is_floating(x.dtype()), "torch.frexp() only supports floating-point dtypes");
          return std::array<Meta, 2>{like(x), like(x, kInt32)};
        },
    .kernel = {cpu::frexp},
    .saves = "exponent",
    .vjp = [](const Tensors& g, const Tensors& y,
              const Tensor&) { return Grads{g[0] / pow(full({}, 2.0, g[0].dtype()), y[1])}; },
}};

OP_DEFINE(exp){{
    .doc = R"(e to the power of the element.)",
    .infer = floating_meta,
    .kernel = {cpu::exp},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g * conjugate(y)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Exp(self)",
}};

OP_DEFINE(exp2){{
    .doc = R"(2 to the power of the element.)",
    .infer = floating_meta,
    .kernel = {cpu::exp2},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g * conjugate(y) * kLn2}; },
    .pointwise = true,
}};

OP_DEFINE(expm1){{
    .doc = R"(``exp(self) - 1``, accurate near 0.)",
    .infer = floating_meta,
    .kernel = {cpu::expm1},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g * (conjugate(y) + 1)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(log){{
    .doc = R"(The natural logarithm.)",
    .infer = floating_meta,
    .kernel = {cpu::log},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / conjugate(x)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Log(self)",
}};

OP_DEFINE(log2){{
    .doc = R"(The logarithm to base 2.)",
    .infer = floating_meta,
    .kernel = {cpu::log2},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / (conjugate(x) * kLn2)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(log10){{
    .doc = R"(The logarithm to base 10.)",
    .infer = floating_meta,
    .kernel = {cpu::log10},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / (conjugate(x) * kLn10)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(log1p){{
    .doc = R"(``log(1 + self)``, accurate near 0.)",
    .infer = floating_meta,
    .kernel = {cpu::log1p},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / (conjugate(x) + 1)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(sqrt){{
    .doc = R"(The square root.)",
    .infer = floating_meta,
    .kernel = {cpu::sqrt},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g / (2 * conjugate(y))}; },
    .pointwise = true,
    .onnx = "Sqrt(self)",
}};

OP_DEFINE(rsqrt){{
    .doc = R"(``1 / sqrt(self)``.)",
    .infer = floating_meta,
    .kernel = {cpu::rsqrt},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{-0.5 * g * conjugate(y * y * y)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(sin){{
    .doc = R"(The sine of an angle in radians.)",
    .infer = floating_meta,
    .kernel = {cpu::sin},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * conjugate(cos(x))}; },
    .pointwise = true,
    .onnx = "Sin(self)",
}};

OP_DEFINE(cos){{
    .doc = R"(The cosine of an angle in radians.)",
    .infer = floating_meta,
    .kernel = {cpu::cos},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * conjugate(sin(x)))}; },
    .pointwise = true,
    .onnx = "Cos(self)",
}};

OP_DEFINE(tan){{
    .doc = R"(The tangent of an angle in radians.)",
    .infer = floating_meta,
    .kernel = {cpu::tan},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g * conjugate(1 + y * y)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Tan(self)",
}};

OP_DEFINE(asin){{
    .doc = R"(The angle whose sine is the element.)",
    .infer = floating_meta,
    .kernel = {cpu::asin},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * conjugate(rsqrt(1 - x * x))}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Asin(self)",
}};

OP_DEFINE(acos){{
    .doc = R"(The angle whose cosine is the element.)",
    .infer = floating_meta,
    .kernel = {cpu::acos},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * conjugate(rsqrt(1 - x * x)))}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Acos(self)",
}};

OP_DEFINE(atan){{
    .doc = R"(The angle whose tangent is the element.)",
    .infer = floating_meta,
    .kernel = {cpu::atan},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / conjugate(x * x + 1)}; },
    .pointwise = true,
    .onnx = "Atan(self)",
}};

OP_DEFINE(sinh){{
    .doc = R"(The hyperbolic sine.)",
    .infer = floating_meta,
    .kernel = {cpu::sinh},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * conjugate(cosh(x))}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Sinh(self)",
}};

OP_DEFINE(cosh){{
    .doc = R"(The hyperbolic cosine.)",
    .infer = floating_meta,
    .kernel = {cpu::cosh},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * conjugate(sinh(x))}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Cosh(self)",
}};

OP_DEFINE(tanh){{
    .doc = R"(The hyperbolic tangent.)",
    .infer = floating_meta,
    .kernel = {cpu::tanh},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{tanh_backward(g, y)}; },
    .pointwise = true,
    .onnx = "Tanh(self)",
}};

OP_DEFINE(asinh){{
    .doc = R"(The inverse of sinh.)",
    .infer = floating_meta,
    .kernel = {cpu::asinh},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * conjugate(rsqrt(x * x + 1))}; },
    .pointwise = true,
    .onnx = "Asinh(self)",
}};

OP_DEFINE(acosh){{
    .doc = R"(The inverse of cosh.)",
    .infer = floating_meta,
    .kernel = {cpu::acosh},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x) {
          return Grads{g * conjugate(x.is_complex() ? rsqrt(x - 1) * rsqrt(x + 1) : rsqrt(x * x - 1))};
        },
    .pointwise = true,
    .onnx = "Acosh(self)",
}};

OP_DEFINE(atanh){{
    .doc = R"(The inverse of tanh.)",
    .infer = floating_meta,
    .kernel = {cpu::atanh},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g / conjugate(1 - x * x)}; },
    .pointwise = true,
    .onnx = "Atanh(self)",
}};

OP_DEFINE(erf){{
    .doc = R"(The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 (DLMF 7.2.1).)",
    .infer = floating_meta,
    .kernel = {cpu::erf},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * exp(-(x * x)) * kTwoOverRootPi}; },
    .pointwise = true,
    .onnx = "Erf(self)",
}};

OP_DEFINE(erfc){{
    .doc = R"(``1 - erf(self)``, accurate for large arguments.)",
    .infer = floating_meta,
    .kernel = {cpu::erfc},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * exp(-(x * x)) * kTwoOverRootPi)}; },
    .pointwise = true,
}};

OP_DEFINE(deg2rad){{
    .doc = R"(Degrees as radians.)",
    .infer = floating_meta,
    .kernel = {cpu::deg2rad},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{g * (kPi / 180)}; },
    .pointwise = true,
}};

OP_DEFINE(rad2deg){{
    .doc = R"(Radians as degrees.)",
    .infer = floating_meta,
    .kernel = {cpu::rad2deg},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{g * (180 / kPi)}; },
    .pointwise = true,
}};

OP_DEFINE(sigmoid){{
    .doc = R"(The logistic function, ``1 / (1 + exp(-self))``.)",
    .infer = floating_meta,
    .kernel = {cpu::sigmoid},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{sigmoid_backward(g, y)}; },
    .pointwise = true,
    .onnx = "Sigmoid(self)",
}};

OP_DEFINE(tanh_backward){{
    .doc = R"(The gradient of tanh at its result.)",
    .infer = backward_meta,
    .kernel = {cpu::tanh_backward},
    .composite = [](const Tensor& g, const Tensor& y) { return g * conjugate(1 - y * y); },
}};

OP_DEFINE(sigmoid_backward){{
    .doc = R"(The gradient of sigmoid at its result.)",
    .infer = backward_meta,
    .kernel = {cpu::sigmoid_backward},
    .composite = [](const Tensor& g, const Tensor& y) { return g * conjugate(y * (1 - y)); },
}};

OP_DEFINE(arccos){{
    .doc = R"(Another name of acos.)",
    .composite = [](const Tensor& x) { return acos(x); },
    .in_place = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(arcsin){{
    .doc = R"(Another name of asin.)",
    .composite = [](const Tensor& x) { return asin(x); },
    .in_place = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(arctan){{
    .doc = R"(Another name of atan.)",
    .composite = [](const Tensor& x) { return atan(x); },
    .in_place = true,
}};

OP_DEFINE(arccosh){{
    .doc = R"(Another name of acosh.)",
    .composite = [](const Tensor& x) { return acosh(x); },
    .in_place = true,
}};

OP_DEFINE(arcsinh){{
    .doc = R"(Another name of asinh.)",
    .composite = [](const Tensor& x) { return asinh(x); },
    .in_place = true,
}};

OP_DEFINE(arctanh){{
    .doc = R"(Another name of atanh.)",
    .composite = [](const Tensor& x) { return atanh(x); },
    .in_place = true,
}};

OP_DEFINE(special_exp2){{
    .doc = R"(Another name of exp2.)",
    .composite = [](const Tensor& x) { return exp2(x); },
}};

OP_DEFINE(special_expm1){{
    .doc = R"(Another name of expm1.)",
    .composite = [](const Tensor& x) { return expm1(x); },
}};

OP_DEFINE(special_log1p){{
    .doc = R"(Another name of log1p.)",
    .composite = [](const Tensor& x) { return log1p(x); },
}};

OP_DEFINE(special_erf){{
    .doc = R"(Another name of erf.)",
    .composite = [](const Tensor& x) { return erf(x); },
}};

OP_DEFINE(special_erfc){{
    .doc = R"(Another name of erfc.)",
    .composite = [](const Tensor& x) { return erfc(x); },
}};

OP_DEFINE(special_expit){{
    .doc = R"(Another name of sigmoid.)",
    .composite = [](const Tensor& x) { return sigmoid(x); },
}};

OP_DEFINE(special_round){{
    .doc = R"(Another name of round.)",
    .composite = [](const Tensor& x) { return round(x); },
}};

OP_DEFINE(angle){{
    .doc = R"(The angle of a complex number; 0 or pi for real ones.)",
    .infer = [](const Tensor& x) { return like(x, x.is_complex() ? real_of(x.dtype()) : to_floating(x.dtype())); },
    .kernel = {cpu::angle},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x) {
          if (!x.is_complex()) return Grads{zeros_like(g)};
          const Tensor size = abs(x);
          return Grads{
              where(eq(size, 0), zeros({}, x.dtype()), g * x * Tensor(std::complex<double>(0, 1)) / (size * size))};
        },
    .pointwise = true,
}};

OP_DEFINE(logit){{
    .doc = R"(``log(x / (1 - x))``; with ``eps`` the element is clamped to [eps, 1 - eps] first.)",
    .infer = [](const Tensor& x, OptDouble) { return floating_meta(x); },
    .kernel = {cpu::logit},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, OptDouble eps) {
          const Tensor low = Tensor(eps.value_or(0)), high = Tensor(1 - eps.value_or(0));
          const Tensor outside = full({}, eps ? 0.0 : std::nan(""), g.dtype());
          return Grads{where(bitwise_and(ge(x, low), le(x, high)), g / (x * (1 - x)), outside)};
        },
    .pointwise = true,
}};

OP_DEFINE(special_logit){{
    .doc = R"(Another name of logit.)",
    .composite = [](const Tensor& x, OptDouble eps) { return logit(x, eps); },
}};

OP_DEFINE(atan2){{
    .doc = R"(The angle of the point (other, self), in radians.)",
    .infer = floating_binary,
    .kernel = {cpu::atan2},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          const Tensor size = a * a + b * b;
          const Tensor k = where(eq(size, 0), zeros({}, g.dtype()), g / size);
          return Grads{k * b, k * -a};
        },
    .pointwise = true,
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(arctan2){{
    .doc = R"(Another name of atan2.)",
    .composite = [](const Tensor& a, const Tensor& b) { return atan2(a, b); },
    .in_place = true,
}};

OP_DEFINE(hypot){{
    .doc = R"(``sqrt(self^2 + other^2)`` without overflow.)",
    .infer = binary_meta,
    .kernel = {cpu::hypot},
    .saves = "self, other, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& a, const Tensor& b) {
          return Grads{g * (a / y), g * (b / y)};
        },
    .pointwise = true,
}};

OP_DEFINE(copysign){{
    .doc = R"(The size of ``self`` with the sign of ``other``.)",
    .infer = floating_binary,
    .kernel = {cpu::copysign},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& a, const Tensor&) {
          return Grads{where(eq(a, 0), zeros({}, g.dtype()), g * (y / a)), zeros_like(g)};
        },
    .pointwise = true,
}};

OP_DEFINE(nextafter){{
    .doc = R"(The next number after ``self`` towards ``other`` that the dtype has.)",
    .infer = binary_meta,
    .kernel = {cpu::nextafter},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
          return Grads{g, zeros_like(g)};
        },
    .pointwise = true,
}};

OP_DEFINE(logaddexp){{
    .doc = R"(``log(exp(self) + exp(other))`` without overflow.)",
    .infer = floating_binary,
    .kernel = {cpu::logaddexp},
    .saves = "self, other, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& a, const Tensor& b) {
          return Grads{g * conjugate(exp(a - y)), g * conjugate(exp(b - y))};
        },
    .pointwise = true,
}};

OP_DEFINE(logaddexp2){{
    .doc = R"(``log2(2^self + 2^other)`` without overflow.)",
    .infer = floating_binary,
    .kernel = {cpu::logaddexp2},
    .saves = "self, other, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& a, const Tensor& b) {
          return Grads{g * exp2(a - y), g * exp2(b - y)};
        },
    .pointwise = true,
}};

OP_DEFINE(xlogy){{
    .doc = R"(``self * log(other)``, 0 where self is 0.)",
    .infer = floating_binary,
    .kernel = {cpu::xlogy},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          const Tensor none = zeros({}, g.dtype());
          const Tensor ga = needs_grad(0) ? where(bitwise_and(eq(a, 0), le(b, 0)), none, g * log(b)) : Tensor();
          return Grads{ga, needs_grad(1) ? g * (a / b) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(special_xlogy){{
    .doc = R"(Another name of xlogy.)",
    .composite = [](const Tensor& a, const Tensor& b) { return xlogy(a, b); },
}};

OP_DEFINE(special_xlog1py){{
    .doc = R"(``self * log1p(other)``, 0 where self is 0.)",
    .infer = floating_binary,
    .kernel = {cpu::xlog1py},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          const Tensor none = zeros({}, g.dtype());
          const Tensor ga = needs_grad(0) ? where(bitwise_and(eq(a, 0), le(b, -1)), none, g * log1p(b)) : Tensor();
          return Grads{ga, needs_grad(1) ? g * (a / (b + 1)) : Tensor()};
        },
    .pointwise = true,
}};

}  // namespace rush
