// Elementwise arithmetic and comparison.
#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "ops/fits.h"

namespace rush {

namespace {

void check_alpha(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType t = promote_tensors(a, b);
  check(t == kBool || !alpha.is_bool(), "Boolean alpha only supported for Boolean results.");
  check(is_floating(t) || is_complex(t) || alpha.is_int(),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(t) || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
  if (is_integral(t)) check_fits(Tensor(alpha), t);
}

/// A bound of clamp that is a number may lie outside of an integral dtype, but not so that no element is left.
void check_bound(const Tensor& bound, DType t, bool low) {
  if (!bound.defined() || !bound.impl()->wrapped_number || !is_integral(t) || t == kBool) return;
  for_integral(t, [&]<class T>() {
    const double v = bound.item().to_double();
    check(low ? v <= double(std::numeric_limits<T>::max()) : v >= double(std::numeric_limits<T>::min()), "Clamp ",
          low ? "min" : "max", " value ", bound.item().to_int(), " is outside the representable range of ",
          scalar_name(t));
  });
}
bool is_one(const Scalar& s) { return s == Scalar(1); }

constexpr auto integral_meta = [](const Tensor& a, const Tensor& b) {
  const Meta meta = binary_meta(a, b);
  check<NotImplementedError>(is_integral(meta.dtype), "not implemented for '", scalar_name(meta.dtype),
                             "': needs integral dtypes");
  return meta;
};

}  // namespace

OP_DEFINE(add){{
    .doc = R"(``self + alpha * other``, elementwise with broadcasting.)",
    .infer =
        [](const Tensor& a, const Tensor& b, Scalar alpha) {
          if (!alpha.is_int() || !is_one(alpha)) check_alpha(a, b, alpha);
          return binary_meta(a, b);
        },
    .kernel = {cpu::add},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&, Scalar alpha) {
          return Grads{g, !needs_grad(1) ? Tensor() : is_one(alpha) ? g : g * Tensor(alpha)};
        },
    .pointwise = true,
    .onnx = "Add(self, Mul(other, alpha))",
}};

OP_DEFINE(mul){{
    .doc = R"(``self * other``, elementwise with broadcasting.)",
    .infer = binary_meta,
    .kernel = {cpu::mul},
    .saves = "self if other, other if self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{needs_grad(0) ? g * conjugate(b) : Tensor(), needs_grad(1) ? g * conjugate(a) : Tensor()};
        },
    .pointwise = true,
    .onnx = "Mul(self, other)",
}};

OP_DEFINE(sub){{
    .doc = R"(``self - alpha * other``, elementwise with broadcasting.)",
    .infer =
        [](const Tensor& a, const Tensor& b, Scalar alpha) {
          check_alpha(a, b, alpha);
          check<NotImplementedError>(a.dtype() != kBool || b.dtype() != kBool,
                                     "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                                     "`^` or `logical_xor()` operator instead.");
          check<NotImplementedError>(a.dtype() != kBool && b.dtype() != kBool,
                                     "Subtraction, the `-` operator, with a bool tensor is not supported. If you "
                                     "are trying to invert a mask, use the `~` or `logical_not()` operator instead.");
          return binary_meta(a, b);
        },
    .kernel = {cpu::sub},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&, Scalar alpha) {
          return Grads{g, !needs_grad(1) ? Tensor() : is_one(alpha) ? -g : -(g * Tensor(alpha))};
        },
    .pointwise = true,
    .onnx = "Sub(self, Mul(other, alpha))",
}};

OP_DEFINE(div){{
    .doc =
        R"(``self / other``, elementwise with broadcasting; ``rounding_mode`` "trunc" or "floor" rounds the quotient and
keeps integer dtypes, else integers become floats.)",
    .infer =
        [](const Tensor& a, const Tensor& b, OptStr mode) {
          check(!mode || *mode == "trunc" || *mode == "floor",
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode.value_or(""),
                "'");
          const DType t = promote_tensors(a, b);
          return pointwise_meta(mode ? t : to_floating(t), a, b);
        },
    .kernel = {cpu::div},
    .saves = "self if other, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b, OptStr mode) {
          if (mode) return Grads{zeros_like(g), zeros_like(g)};
          const Tensor ga = g / conjugate(b);
          return Grads{ga, needs_grad(1) ? -(ga * conjugate(a / b)) : Tensor()};
        },
    .pointwise = true,
    .onnx = "Div(self, other)",
}};

OP_DEFINE(neg){{
    .doc = R"(``-self``, elementwise.)",
    .infer =
        [](const Tensor& x) {
          check<NotImplementedError>(
              x.dtype() != kBool,
              "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
              "use the `~` or `logical_not()` operator instead.");
          return like(x);
        },
    .kernel = {cpu::neg},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{-g}; },
    .pointwise = true,
    .onnx = "Neg(self)",
}};

OP_DEFINE(eq){{
    .doc = R"(Whether ``self == other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::eq},
    .pointwise = true,
}};

OP_DEFINE(ne){{
    .doc = R"(Whether ``self != other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::ne},
    .pointwise = true,
}};

OP_DEFINE(lt){{
    .doc = R"(Whether ``self < other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::lt},
    .pointwise = true,
}};

OP_DEFINE(le){{
    .doc = R"(Whether ``self <= other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::le},
    .pointwise = true,
}};

OP_DEFINE(gt){{
    .doc = R"(Whether ``self > other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::gt},
    .pointwise = true,
}};

OP_DEFINE(ge){{
    .doc = R"(Whether ``self >= other``, elementwise with broadcasting.)",
    .infer = compare_meta,
    .kernel = {cpu::ge},
    .pointwise = true,
}};

OP_DEFINE(bitwise_and){{
    .doc = R"(``self & other`` bit by bit, of integers or bools.)",
    .infer = integral_meta,
    .kernel = {cpu::bitwise_and},
    .pointwise = true,
}};

OP_DEFINE(bitwise_or){{
    .doc = R"(``self | other`` bit by bit, of integers or bools.)",
    .infer = integral_meta,
    .kernel = {cpu::bitwise_or},
    .pointwise = true,
}};

OP_DEFINE(bitwise_xor){{
    .doc = R"(``self ^ other`` bit by bit, of integers or bools.)",
    .infer = integral_meta,
    .kernel = {cpu::bitwise_xor},
    .pointwise = true,
}};

OP_DEFINE(bitwise_not){{
    .doc = R"(``~self`` bit by bit, of integers; of bools the logical negation.)",
    .infer =
        [](const Tensor& x) {
          check<NotImplementedError>(is_integral(x.dtype()), "not implemented for '", scalar_name(x.dtype()),
                                     "': needs an integral dtype");
          return like(x);
        },
    .kernel = {cpu::bitwise_not},
    .pointwise = true,
}};

OP_DEFINE(floor_divide){{
    .doc = R"(``self / other`` rounded down, elementwise with broadcasting; no gradient.)",
    .infer = binary_meta,
    .kernel = {cpu::floor_divide},
    .pointwise = true,
}};

OP_DEFINE(remainder){{
    .doc = R"(What ``self`` leaves when divided by ``other``, with the sign of ``other`` as Python's ``%``.)",
    .infer = binary_meta,
    .kernel = {cpu::remainder},
    .saves = "self if other, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{g, needs_grad(1) ? -(g * div(a, b, "floor")) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(fmod){{
    .doc = R"(What ``self`` leaves when divided by ``other``, with the sign of ``self`` as C's ``fmod``.)",
    .infer = binary_meta,
    .kernel = {cpu::fmod},
    .saves = "self if other, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          return Grads{g, needs_grad(1) ? -(g * div(a, b, "trunc")) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(pow){{
    .doc = R"(``self`` to the power of ``exponent``, elementwise with broadcasting.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check(!is_integral(meta.dtype) || !b.impl()->wrapped_number || b.item().to_double() >= 0,
                "Integers to negative integer powers are not allowed.");
          return meta;
        },
    .kernel = {cpu::pow},
    .saves = "self, exponent, result if exponent",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& a, const Tensor& b) {
          Tensor ga, gb;
          if (needs_grad(0)) {
            // 0 where the exponent is 0, also at a = 0, where the formula would give 0 * inf.
            const bool number = b.impl()->wrapped_number;
            if (number && b.item() == Scalar(2))
              ga = 2 * (g * conjugate(a));
            else if (number)
              ga = b.item() == Scalar(0) ? zeros_like(g) : g * conjugate(b * pow(a, b - 1));
            else
              ga = where(eq(b, 0), zeros({}, g.dtype()), g * conjugate(b * pow(a, b - 1)));
          }
          if (needs_grad(1)) {
            const Tensor zero =
                b.is_complex() ? bitwise_and(eq(a, 0), ge(real(b), 0)) : bitwise_and(eq(a, 0), ge(b, 0));
            gb = where(zero, zeros({}, g.dtype()), g * conjugate(y * log(a)));
          }
          return Grads{ga, gb};
        },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Pow(self, exponent)",
}};

namespace {
/// Of an operator that chooses one of two elements: none of the gradient for the one that lost, half of it at a tie.
Grads gradients_of_choice(const Tensor& g, const Tensor& tie, const Tensor& first_lost, const Tensor& second_lost) {
  const Tensor none = zeros({}, g.dtype(), {}, g.device()), shared = where(tie, g / 2, g);
  return {where(first_lost, none, shared), where(second_lost, none, shared)};
}
}  // namespace

OP_DEFINE(maximum){{
    .doc = R"(The larger of two elements, with broadcasting; NaN if either is. Equal elements share the gradient.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(!is_complex(meta.dtype), "not implemented for complex tensors.");
          return meta;
        },
    .kernel = {cpu::maximum},
    .saves = "self, other",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& a,
              const Tensor& b) { return gradients_of_choice(g, eq(a, b), lt(a, b), gt(a, b)); },
    .pointwise = true,
}};

OP_DEFINE(minimum){{
    .doc = R"(The smaller of two elements, with broadcasting; NaN if either is. Equal elements share the gradient.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(!is_complex(meta.dtype), "not implemented for complex tensors.");
          return meta;
        },
    .kernel = {cpu::minimum},
    .saves = "self, other",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& a,
              const Tensor& b) { return gradients_of_choice(g, eq(a, b), gt(a, b), lt(a, b)); },
    .pointwise = true,
}};

OP_DEFINE(fmax){{
    .doc = R"(The larger of two elements, with broadcasting; a NaN loses to a number.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(!is_complex(meta.dtype), "not implemented for complex tensors.");
          return meta;
        },
    .kernel = {cpu::fmax},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          const Tensor first = bitwise_or(ge(a, b), isnan(b));
          return gradients_of_choice(g, eq(a, b), bitwise_not(first), bitwise_and(first, ne(a, b)));
        },
    .pointwise = true,
}};

OP_DEFINE(fmin){{
    .doc = R"(The smaller of two elements, with broadcasting; a NaN loses to a number.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(!is_complex(meta.dtype), "not implemented for complex tensors.");
          return meta;
        },
    .kernel = {cpu::fmin},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          const Tensor first = bitwise_or(le(a, b), isnan(b));
          return gradients_of_choice(g, eq(a, b), bitwise_not(first), bitwise_and(first, ne(a, b)));
        },
    .pointwise = true,
}};

OP_DEFINE(gcd){{
    .doc = R"(The greatest common divisor of integers.)",
    .infer = integral_meta,
    .kernel = {cpu::gcd},
    .pointwise = true,
}};

OP_DEFINE(lcm){{
    .doc = R"(The least common multiple of integers.)",
    .infer = integral_meta,
    .kernel = {cpu::lcm},
    .pointwise = true,
}};

OP_DEFINE(abs){{
    .doc = R"(The absolute value; of a complex number its distance from 0.)",
    .infer = [](const Tensor& x) { return like(x, real_of(x.dtype())); },
    .kernel = {cpu::abs},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * sgn(x)}; },
    .pointwise = true,
    .onnx = "Abs(self)",
}};

OP_DEFINE(sign){{
    .doc = R"(-1, 0 or 1 as the element is below, at or above 0.)",
    .infer =
        [](const Tensor& x) {
          check(!x.is_complex(),
                "Unlike NumPy, torch.sign doesn't intend to support complex numbers. Use torch.sgn instead.");
          return like(x);
        },
    .kernel = {cpu::sign},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&) { return Grads{zeros_like(g)}; },
    .pointwise = true,
    .onnx = "Sign(self)",
}};

OP_DEFINE(sgn){{
    .doc = R"(The sign; of a complex number ``x / abs(x)``, 0 at 0.)",
    .infer = like_input,
    .kernel = {cpu::sgn},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x) {
          if (!x.is_complex()) return Grads{zeros_like(g)};
          const Tensor size = abs(x), s = sgn(x);
          return Grads{where(eq(size, 0), zeros({}, g.dtype()), (g - s * real(conjugate(s) * g)) / size)};
        },
    .pointwise = true,
}};

OP_DEFINE(square){{
    .doc = R"(``self * self``.)",
    .infer = [](const Tensor& x) { return like(x, x.dtype() == kBool ? kInt64 : x.dtype()); },
    .kernel = {cpu::square},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{2 * (g * conjugate(x))}; },
    .pointwise = true,
}};

OP_DEFINE(reciprocal){{
    .doc = R"(``1 / self``.)",
    .infer = floating_meta,
    .kernel = {cpu::reciprocal},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{-(g * conjugate(y * y))}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Reciprocal(self)",
}};

OP_DEFINE(rsub){{
    .doc = R"(``other - alpha * self``.)",
    .composite = [](const Tensor& a, const Tensor& b, Scalar alpha) { return sub(b, a, alpha); },
}};

OP_DEFINE(lerp){{
    .doc = R"(``self + weight * (end - self)``, from self to end as weight goes from 0 to 1.)",
    .infer =
        [](const Tensor& a, const Tensor& b, const Tensor& w) {
          check(a.dtype() == b.dtype(), "expected dtype ", a.dtype(), " for `end` but got dtype ", b.dtype());
          return pointwise_meta(a.dtype(), a, b, w);
        },
    .kernel = {cpu::lerp},
    .saves = "self if weight, end if weight, weight",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b, const Tensor& w) {
          return Grads{g * (1 - conjugate(w)), g * conjugate(w), needs_grad(2) ? g * conjugate(b - a) : Tensor()};
        },
    .pointwise = true,
}};

OP_DEFINE(addcmul){{
    .doc = R"(``self + value * tensor1 * tensor2``.)",
    .infer = [](const Tensor& a, const Tensor& b, const Tensor& c,
                Scalar) { return pointwise_meta(promote_tensors(a, b, c), a, b, c); },
    .kernel = {cpu::addcmul},
    .saves = "tensor1 if tensor2, tensor2 if tensor1",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& b, const Tensor& c, Scalar value) {
          return Grads{g, needs_grad(1) ? g * conjugate(c * Tensor(value)) : Tensor(),
                       needs_grad(2) ? g * conjugate(b * Tensor(value)) : Tensor()};
        },
    .pointwise = true,
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(addcdiv){{
    .doc = R"(``self + value * tensor1 / tensor2``.)",
    .infer =
        [](const Tensor& a, const Tensor& b, const Tensor& c, Scalar) {
          check(!is_integral(b.dtype()) || !is_integral(c.dtype()),
                "Integer division with addcdiv is no longer supported, and in a future release addcdiv "
                "will perform a true division of tensor1 and tensor2.");
          return pointwise_meta(promote_tensors(a, b, c), a, b, c);
        },
    .kernel = {cpu::addcdiv},
    .saves = "tensor1 if tensor2, tensor2",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& b, const Tensor& c, Scalar value) {
          return Grads{g, needs_grad(1) ? g * conjugate(Tensor(value) / c) : Tensor(),
                       needs_grad(2) ? -(g * conjugate(Tensor(value) * b / (c * c))) : Tensor()};
        },
    .pointwise = true,
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(clamp){{
    .doc =
        R"(Elements below ``min`` become min, those above ``max`` become max; each a number, a tensor or None, not both None.)",
    .infer =
        [](const Tensor& x, const Tensor& low, const Tensor& high) {
          check(low.defined() || high.defined(), "At least one of 'min' or 'max' must not be None");
          check<NotImplementedError>(!x.is_complex(), "clamp is not supported for complex types");
          const DType t = !low.defined()    ? promote_tensors(x, high)
                          : !high.defined() ? promote_tensors(x, low)
                                            : promote_tensors(x, low, high);
          check_bound(low, t, true);
          check_bound(high, t, false);
          if (!low.defined()) return pointwise_meta(t, x, high);
          if (!high.defined()) return pointwise_meta(t, x, low);
          return pointwise_meta(t, x, low, high);
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& low, const Tensor& high) {
      const auto number = [](const Tensor& t) { return !t.defined() || t.impl()->wrapped_number; };
      if (number(low) && number(high))
        cpu::clamp(out, x, low.defined() ? OptScalar(low.item()) : OptScalar(),
                   high.defined() ? OptScalar(high.item()) : OptScalar());
      else
        cpu::clamp(out, x, low, high);
    }},
    .saves = "self, min, max",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& low, const Tensor& high) {
          // At a bound that is a number nothing passes; at one that is a tensor, half passes and half goes to the
          // bound.
          const Tensor none = zeros({}, g.dtype(), {}, g.device());
          const auto number = [](const Tensor& t) { return !t.defined() || t.impl()->wrapped_number; };
          if (number(low) && number(high)) {
            Tensor inside = low.defined() ? gt(x, low) : lt(x, high);
            if (low.defined() && high.defined()) inside = bitwise_and(inside, lt(x, high));
            return Grads{where(inside, g, none), Tensor(), Tensor()};
          }
          if (!low.defined() || !high.defined()) {
            const Tensor& bound = low.defined() ? low : high;
            const Tensor past = low.defined() ? lt(x, bound) : gt(x, bound);
            const Grads both = gradients_of_choice(g, eq(x, bound), past, bitwise_not(bitwise_or(past, eq(x, bound))));
            return low.defined() ? Grads{both[0], both[1], Tensor()} : Grads{both[0], Tensor(), both[1]};
          }
          const Tensor apart = lt(low, high);
          const Tensor at_low = bitwise_and(eq(x, low), apart), at_high = bitwise_and(eq(x, high), apart);
          const Tensor shared = where(bitwise_or(at_low, at_high), g / 2, g);
          const Tensor inside = bitwise_and(ge(x, low), le(x, high));
          return Grads{where(inside, shared, none),
                       where(bitwise_or(at_low, bitwise_and(lt(x, low), apart)), shared, none),
                       where(bitwise_or(at_high, bitwise_or(gt(x, high), lt(high, low))), shared, none)};
        },
    .pointwise = true,
    .onnx = "Clip(self, min, max)",
}};

OP_DEFINE(clamp_min){{
    .doc = R"(Elements below ``min`` become min.)",
    .composite = [](const Tensor& x, const Tensor& low) { return clamp(x, low); },
    .in_place = true,
}};

OP_DEFINE(clamp_max){{
    .doc = R"(Elements above ``max`` become max.)",
    .composite = [](const Tensor& x, const Tensor& high) { return clamp(x, Tensor(), high); },
    .in_place = true,
}};

OP_DEFINE(clip){{
    .doc = R"(Another name of clamp.)",
    .composite = [](const Tensor& x, const Tensor& low, const Tensor& high) { return clamp(x, low, high); },
    .in_place = true,
}};

OP_DEFINE(complex){{
    .doc = R"(Complex numbers from their real and imaginary parts, of one float dtype.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check<NotImplementedError>(is_floating(a.dtype()) && is_floating(b.dtype()),
                                     "Expected both inputs to be Half, Float or Double tensors but got ",
                                     scalar_name(a.dtype()), " and ", scalar_name(b.dtype()));
          check(a.dtype() == b.dtype(), "Expected object of scalar type ", scalar_name(a.dtype()),
                " but got scalar type ", scalar_name(b.dtype()), " for second argument");
          return pointwise_meta(complex_of(a.dtype()), a, b);
        },
    .kernel = {cpu::complex},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&) {
          return Grads{real(g), imag(g)};
        },
}};

OP_DEFINE(polar){{
    .doc = R"(Complex numbers from their absolute values and angles.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          check<NotImplementedError>(is_floating(a.dtype()) && is_floating(b.dtype()),
                                     "Expected both inputs to be Float or Double tensors but got ",
                                     scalar_name(a.dtype()), " and ", scalar_name(b.dtype()));
          check(a.dtype() == b.dtype(), "Expected object of scalar type ", scalar_name(a.dtype()),
                " but got scalar type ", scalar_name(b.dtype()), " for second argument");
          return pointwise_meta(complex_of(a.dtype()), a, b);
        },
    .kernel = {cpu::polar},
    .saves = "result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor&, const Tensor&) {
          const Tensor c = conjugate(g);
          return Grads{real(c * sgn(y)), real(c * (y * Tensor(std::complex<double>(0, 1))))};
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(ldexp){{
    .doc = R"(``self * 2 ** other``.)",
    .composite =
        [](const Tensor& x, const Tensor& n) {
          return x * pow(full({}, 2.0, is_integral(x.dtype()) ? default_dtype() : x.dtype()), n);
        },
    .in_place = true,
}};

OP_DEFINE(float_power){{
    .doc = R"(``self`` to the power of ``exponent`` in double precision (complex128 for complex numbers).)",
    .composite =
        [](const Tensor& a, const Tensor& b) {
          const DType t = a.is_complex() || b.is_complex() ? kComplex128 : kFloat64;
          return pow(a.impl()->wrapped_number ? a : cast(a, t),
                     b.impl()->wrapped_number ? Tensor(b.item()) : cast(b, t));
        },
    .in_place = true,
}};

OP_DEFINE(true_divide){{
    .doc = R"(Another name of div.)",
    .composite = [](const Tensor& a, const Tensor& b) { return div(a, b); },
    .in_place = true,
}};

OP_DEFINE(multiply){{
    .doc = R"(Another name of mul.)",
    .composite = [](const Tensor& a, const Tensor& b) { return mul(a, b); },
    .in_place = true,
}};

OP_DEFINE(divide){{
    .doc = R"(Another name of div.)",
    .composite = [](const Tensor& a, const Tensor& b, OptStr mode) { return div(a, b, mode); },
    .in_place = true,
}};

OP_DEFINE(subtract){{
    .doc = R"(Another name of sub.)",
    .composite = [](const Tensor& a, const Tensor& b, Scalar alpha) { return sub(a, b, alpha); },
    .in_place = true,
}};

OP_DEFINE(negative){{
    .doc = R"(Another name of neg.)",
    .composite = [](const Tensor& x) { return neg(x); },
    .in_place = true,
}};

OP_DEFINE(absolute){{
    .doc = R"(Another name of abs.)",
    .composite = [](const Tensor& x) { return abs(x); },
    .in_place = true,
}};

OP_DEFINE(greater){{
    .doc = R"(Another name of gt.)",
    .composite = [](const Tensor& a, const Tensor& b) { return gt(a, b); },
    .in_place = true,
}};

OP_DEFINE(greater_equal){{
    .doc = R"(Another name of ge.)",
    .composite = [](const Tensor& a, const Tensor& b) { return ge(a, b); },
    .in_place = true,
}};

OP_DEFINE(less){{
    .doc = R"(Another name of lt.)",
    .composite = [](const Tensor& a, const Tensor& b) { return lt(a, b); },
    .in_place = true,
}};

OP_DEFINE(less_equal){{
    .doc = R"(Another name of le.)",
    .composite = [](const Tensor& a, const Tensor& b) { return le(a, b); },
    .in_place = true,
}};

OP_DEFINE(not_equal){{
    .doc = R"(Another name of ne.)",
    .composite = [](const Tensor& a, const Tensor& b) { return ne(a, b); },
    .in_place = true,
}};

OP_DEFINE(logical_and){{
    .doc = R"(Whether both elements are nonzero.)",
    .infer = compare_meta,
    .kernel = {cpu::logical_and},
    .pointwise = true,
}};

OP_DEFINE(logical_or){{
    .doc = R"(Whether either element is nonzero.)",
    .infer = compare_meta,
    .kernel = {cpu::logical_or},
    .pointwise = true,
}};

OP_DEFINE(logical_xor){{
    .doc = R"(Whether exactly one of two elements is nonzero.)",
    .infer = compare_meta,
    .kernel = {cpu::logical_xor},
    .pointwise = true,
}};

OP_DEFINE(logical_not){{
    .doc = R"(Whether the element is zero.)",
    .infer = [](const Tensor& x) { return like(x, kBool); },
    .kernel = {cpu::logical_not},
    .pointwise = true,
}};

OP_DEFINE(bitwise_left_shift){{
    .doc = R"(``self << other``, of integers.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(meta.dtype != kBool && !is_complex(meta.dtype), "not implemented for '",
                                     scalar_name(meta.dtype), "'");
          return meta;
        },
    .kernel = {cpu::bitwise_left_shift},
    .pointwise = true,
}};

OP_DEFINE(bitwise_right_shift){{
    .doc = R"(``self >> other``, of integers.)",
    .infer =
        [](const Tensor& a, const Tensor& b) {
          const Meta meta = binary_meta(a, b);
          check<NotImplementedError>(meta.dtype != kBool && !is_complex(meta.dtype), "not implemented for '",
                                     scalar_name(meta.dtype), "'");
          return meta;
        },
    .kernel = {cpu::bitwise_right_shift},
    .pointwise = true,
}};

OP_DEFINE(isnan){{
    .doc = R"(Whether the element is NaN.)",
    .infer = [](const Tensor& x) { return like(x, kBool); },
    .kernel = {cpu::isnan},
    .pointwise = false,
}};

OP_DEFINE(isinf){{
    .doc = R"(Whether the element is infinite.)",
    .infer = [](const Tensor& x) { return like(x, kBool); },
    .kernel = {cpu::isinf},
    .pointwise = false,
}};

OP_DEFINE(isfinite){{
    .doc = R"(Whether the element is neither infinite nor NaN.)",
    .infer = [](const Tensor& x) { return like(x, kBool); },
    .kernel = {cpu::isfinite},
    .pointwise = false,
}};

OP_DEFINE(signbit){{
    .doc = R"(Whether the sign bit is set.)",
    .infer =
        [](const Tensor& x) {
          check(!x.is_complex(), "signbit does not support complex inputs.");
          return like(x, kBool);
        },
    .kernel = {cpu::signbit},
    .pointwise = false,
}};

OP_DEFINE(isposinf){{
    .doc = R"(Whether the element is infinity.)",
    .infer =
        [](const Tensor& x) {
          check<TypeError>(!x.is_complex(), "isposinf does not support complex inputs.");
          return like(x, kBool);
        },
    .kernel = {cpu::isposinf},
    .pointwise = false,
}};

OP_DEFINE(isneginf){{
    .doc = R"(Whether the element is minus infinity.)",
    .infer =
        [](const Tensor& x) {
          check<TypeError>(!x.is_complex(), "isneginf does not support complex inputs.");
          return like(x, kBool);
        },
    .kernel = {cpu::isneginf},
    .pointwise = false,
}};

OP_DEFINE(isreal){{
    .doc = R"(Whether the imaginary part is 0; true for every real number.)",
    .composite =
        [](const Tensor& x) { return x.is_complex() ? eq(imag(x), 0) : full(x.sizes(), true, kBool, {}, x.device()); },
}};

OP_DEFINE(heaviside){{
    .doc = R"(The step function: 0 below 0, 1 above it, ``values`` at 0.)",
    .infer =
        [](const Tensor& x, const Tensor& values) {
          check<NotImplementedError>(!x.is_complex() && !values.is_complex(),
                                     "heaviside is not yet implemented for complex tensors.");
          check(x.dtype() == values.dtype(), "heaviside is not yet implemented for tensors with different dtypes.");
          return pointwise_meta(x.dtype(), x, values);
        },
    .kernel = {cpu::heaviside},
    .pointwise = true,
}};

OP_DEFINE(nan_to_num){{
    .doc =
        R"(NaN becomes ``nan`` (0 by default), infinities become ``posinf`` and ``neginf`` (the dtype's largest and smallest values).)",
    .infer = [](const Tensor& x, OptDouble, OptDouble, OptDouble) { return like(x); },
    .kernel = {cpu::nan_to_num},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptDouble, OptDouble,
              OptDouble) { return Grads{where(isfinite(x), g, zeros({}, g.dtype()))}; },
    .pointwise = true,
}};

OP_DEFINE(where){
    {
        .doc = R"(``input`` where ``condition`` is true, else ``other``, with broadcasting. Dtype: promoted.

Errors: RuntimeError unless condition is bool or uint8.)",
        .infer =
            [](const Tensor& condition, const Tensor& a, const Tensor& b) {
              check(condition.dtype() == kBool || condition.dtype() == kUInt8,
                    "where expected condition to be a boolean tensor, but got a tensor with dtype ",
                    scalar_name(condition.dtype()));
              const DType t = promote_tensors(a, b);
              for (const Tensor* number : {&a, &b})
                if (number->impl()->wrapped_number && is_integral(t)) check_fits(*number, t);
              return pointwise_meta(t, a, b, condition);
            },
        .kernel = {[](Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
          cpu::where(out, condition.dtype() == kBool ? condition : cast(condition, kBool), a, b);
        }},
        .saves = "condition",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor& condition, const Tensor&, const Tensor&) {
              const Tensor zero = cast(Tensor(0), g.dtype());
              return Grads{Tensor(), needs_grad(1) ? where(condition, g, zero) : Tensor(),
                           needs_grad(2) ? where(condition, zero, g) : Tensor()};
            },
    },
    {
        .doc = R"(The positions of the true elements: a vector for each dimension.)",
        .composite = [](const Tensor& condition) { return nonzero_numpy(condition); },
    }};

}  // namespace rush
