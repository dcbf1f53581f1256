// Elementwise arithmetic and comparison.
#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

namespace {

void check_alpha(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType t = promote_tensors(a, b);
  check(t == kBool || !alpha.is_bool(), "Boolean alpha only supported for Boolean results.");
  check(is_floating(t) || is_complex(t) || alpha.is_int(),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(t) || !alpha.is_complex(),
        "For non-complex input tensors, argument alpha must not be a complex number.");
}
bool is_one(const Scalar& s) { return s == Scalar(1); }
/// The conjugate, and so x itself for a real x: what products need in their gradients.
Tensor conjugate(const Tensor& x) { return x; }

constexpr auto integral_meta = [](const Tensor& a, const Tensor& b) {
  const Meta meta = binary_meta(a, b);
  check(is_integral(meta.dtype), "not implemented for '", scalar_name(meta.dtype), "': needs integral dtypes");
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
    .autocast = Autocast::widest,
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
    .autocast = Autocast::widest,
    .onnx = "Mul(self, other)",
}};

OP_DEFINE(sub){{
    .doc = R"(``self - alpha * other``, elementwise with broadcasting.)",
    .infer =
        [](const Tensor& a, const Tensor& b, Scalar alpha) {
          check_alpha(a, b, alpha);
          check(a.dtype() != kBool && b.dtype() != kBool,
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
    .autocast = Autocast::widest,
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
    .autocast = Autocast::widest,
    .onnx = "Div(self, other)",
}};

OP_DEFINE(neg){{
    .doc = R"(``-self``, elementwise.)",
    .infer =
        [](const Tensor& x) {
          check(x.dtype() != kBool,
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
          check(is_integral(x.dtype()), "not implemented for '", scalar_name(x.dtype()), "': needs an integral dtype");
          return like(x);
        },
    .kernel = {cpu::bitwise_not},
    .pointwise = true,
}};

}  // namespace rush
