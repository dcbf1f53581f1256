// The elementwise kernels of the CPU. Arguments are those of the operator's schema, results come first: allocated, of
// the right dtype, arguments broadcast to their sizes. Any strides and any mix of dtypes that can be promoted are
// taken; a dtype that the operator doesn't have raises NotImplementedError.
#pragma once
#include <string_view>

#include "rushlight/tensor.h"

namespace rush::cpu {

// ---- copies and fills (copy.cpp)
/// out = x, cast to out's dtype and broadcast.
void copy(Tensor& out, const Tensor& x);
/// `value` has one element; x is not read.
void fill(Tensor& out, const Tensor& x, const Tensor& value);
void fill(Tensor& out, const Scalar& value);
/// start + i step, out 1-dim.
void arange(Tensor& out, const Scalar& start, const Scalar& step);
/// `out.numel()` points from start to end, both included; computed from both ends, as PyTorch does.
void linspace(Tensor& out, const Scalar& start, const Scalar& end);
/// base to the power of linspace.
void logspace(Tensor& out, const Scalar& start, const Scalar& end, double base);

// ---- arithmetic (arithmetic.cpp)
void add(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha);
void sub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha);
void rsub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha);
void mul(Tensor& out, const Tensor& a, const Tensor& b);
/// rounding_mode: none, "trunc" or "floor". Integer division by zero raises Error.
void div(Tensor& out, const Tensor& a, const Tensor& b, OptStr rounding_mode);
void floor_divide(Tensor& out, const Tensor& a, const Tensor& b);
void remainder(Tensor& out, const Tensor& a, const Tensor& b);
void fmod(Tensor& out, const Tensor& a, const Tensor& b);
void pow(Tensor& out, const Tensor& a, const Tensor& b);
void maximum(Tensor& out, const Tensor& a, const Tensor& b);
void minimum(Tensor& out, const Tensor& a, const Tensor& b);
void fmax(Tensor& out, const Tensor& a, const Tensor& b);
void fmin(Tensor& out, const Tensor& a, const Tensor& b);
void gcd(Tensor& out, const Tensor& a, const Tensor& b);
void lcm(Tensor& out, const Tensor& a, const Tensor& b);
void neg(Tensor& out, const Tensor& x);
void abs(Tensor& out, const Tensor& x);
void sign(Tensor& out, const Tensor& x);
void sgn(Tensor& out, const Tensor& x);
void square(Tensor& out, const Tensor& x);
void reciprocal(Tensor& out, const Tensor& x);
void lerp(Tensor& out, const Tensor& a, const Tensor& b, Scalar weight);
void lerp(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& weight);
void addcmul(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, Scalar value);
void addcdiv(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, Scalar value);
void where(Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);
/// A bound may be missing.
void clamp(Tensor& out, const Tensor& x, OptScalar low, OptScalar high);
void clamp(Tensor& out, const Tensor& x, const Tensor& low, const Tensor& high);
/// Real and imaginary part; size and angle.
void complex(Tensor& out, const Tensor& re, const Tensor& im);
void polar(Tensor& out, const Tensor& size, const Tensor& angle);
void conj_physical(Tensor& out, const Tensor& x);

// ---- comparisons, logic, bits (logic.cpp)
void eq(Tensor& out, const Tensor& a, const Tensor& b);
void ne(Tensor& out, const Tensor& a, const Tensor& b);
void lt(Tensor& out, const Tensor& a, const Tensor& b);
void le(Tensor& out, const Tensor& a, const Tensor& b);
void gt(Tensor& out, const Tensor& a, const Tensor& b);
void ge(Tensor& out, const Tensor& a, const Tensor& b);
void isclose(Tensor& out, const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan);
void logical_and(Tensor& out, const Tensor& a, const Tensor& b);
void logical_or(Tensor& out, const Tensor& a, const Tensor& b);
void logical_xor(Tensor& out, const Tensor& a, const Tensor& b);
void logical_not(Tensor& out, const Tensor& x);
void bitwise_and(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_or(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_xor(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_not(Tensor& out, const Tensor& x);
void bitwise_left_shift(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_right_shift(Tensor& out, const Tensor& a, const Tensor& b);
void isnan(Tensor& out, const Tensor& x);
void isinf(Tensor& out, const Tensor& x);
void isfinite(Tensor& out, const Tensor& x);
void isposinf(Tensor& out, const Tensor& x);
void isneginf(Tensor& out, const Tensor& x);
void signbit(Tensor& out, const Tensor& x);
void heaviside(Tensor& out, const Tensor& x, const Tensor& values);
void nan_to_num(Tensor& out, const Tensor& x, OptDouble nan, OptDouble posinf, OptDouble neginf);

// ---- elementary functions (functions.cpp); integer arguments are computed in out's floating dtype
void ceil(Tensor& out, const Tensor& x);
void floor(Tensor& out, const Tensor& x);
void trunc(Tensor& out, const Tensor& x);
void frac(Tensor& out, const Tensor& x);
void round(Tensor& out, const Tensor& x);
void round(Tensor& out, const Tensor& x, int64_t decimals);
void frexp(Tensor& mantissa, Tensor& exponent, const Tensor& x);
void exp(Tensor& out, const Tensor& x);
void exp2(Tensor& out, const Tensor& x);
void expm1(Tensor& out, const Tensor& x);
void log(Tensor& out, const Tensor& x);
void log2(Tensor& out, const Tensor& x);
void log10(Tensor& out, const Tensor& x);
void log1p(Tensor& out, const Tensor& x);
void sqrt(Tensor& out, const Tensor& x);
void rsqrt(Tensor& out, const Tensor& x);
void sin(Tensor& out, const Tensor& x);
void cos(Tensor& out, const Tensor& x);
void tan(Tensor& out, const Tensor& x);
void asin(Tensor& out, const Tensor& x);
void acos(Tensor& out, const Tensor& x);
void atan(Tensor& out, const Tensor& x);
void sinh(Tensor& out, const Tensor& x);
void cosh(Tensor& out, const Tensor& x);
void tanh(Tensor& out, const Tensor& x);
void asinh(Tensor& out, const Tensor& x);
void acosh(Tensor& out, const Tensor& x);
void atanh(Tensor& out, const Tensor& x);
void erf(Tensor& out, const Tensor& x);
void erfc(Tensor& out, const Tensor& x);
void angle(Tensor& out, const Tensor& x);
void deg2rad(Tensor& out, const Tensor& x);
void rad2deg(Tensor& out, const Tensor& x);
void logit(Tensor& out, const Tensor& x, OptDouble eps);
void atan2(Tensor& out, const Tensor& y, const Tensor& x);
void hypot(Tensor& out, const Tensor& a, const Tensor& b);
void copysign(Tensor& out, const Tensor& a, const Tensor& b);
void nextafter(Tensor& out, const Tensor& a, const Tensor& b);
void logaddexp(Tensor& out, const Tensor& a, const Tensor& b);
void logaddexp2(Tensor& out, const Tensor& a, const Tensor& b);
void xlogy(Tensor& out, const Tensor& x, const Tensor& y);
void xlog1py(Tensor& out, const Tensor& x, const Tensor& y);

// ---- special functions (special.cpp)
void lgamma(Tensor& out, const Tensor& x);
void digamma(Tensor& out, const Tensor& x);
/// The schema has n before self.
void polygamma(Tensor& out, int64_t n, const Tensor& x);
void zeta(Tensor& out, const Tensor& x, const Tensor& q);
/// Also modified_bessel_i0 and modified_bessel_i1.
void i0(Tensor& out, const Tensor& x);
void i1(Tensor& out, const Tensor& x);
void i0e(Tensor& out, const Tensor& x);
void i1e(Tensor& out, const Tensor& x);
void bessel_j0(Tensor& out, const Tensor& x);
void bessel_j1(Tensor& out, const Tensor& x);
void bessel_y0(Tensor& out, const Tensor& x);
void bessel_y1(Tensor& out, const Tensor& x);
void modified_bessel_k0(Tensor& out, const Tensor& x);
void modified_bessel_k1(Tensor& out, const Tensor& x);
void scaled_modified_bessel_k0(Tensor& out, const Tensor& x);
void scaled_modified_bessel_k1(Tensor& out, const Tensor& x);
void spherical_bessel_j0(Tensor& out, const Tensor& x);
void airy_ai(Tensor& out, const Tensor& x);
void erfinv(Tensor& out, const Tensor& x);
void erfcx(Tensor& out, const Tensor& x);
void ndtr(Tensor& out, const Tensor& x);
void ndtri(Tensor& out, const Tensor& x);
void log_ndtr(Tensor& out, const Tensor& x);
void igamma(Tensor& out, const Tensor& a, const Tensor& x);
void igammac(Tensor& out, const Tensor& a, const Tensor& x);
void entr(Tensor& out, const Tensor& x);
void sinc(Tensor& out, const Tensor& x);
void chebyshev_polynomial_t(Tensor& out, const Tensor& x, const Tensor& n);
void chebyshev_polynomial_u(Tensor& out, const Tensor& x, const Tensor& n);
void chebyshev_polynomial_v(Tensor& out, const Tensor& x, const Tensor& n);
void chebyshev_polynomial_w(Tensor& out, const Tensor& x, const Tensor& n);
void shifted_chebyshev_polynomial_t(Tensor& out, const Tensor& x, const Tensor& n);
void shifted_chebyshev_polynomial_u(Tensor& out, const Tensor& x, const Tensor& n);
void shifted_chebyshev_polynomial_v(Tensor& out, const Tensor& x, const Tensor& n);
void shifted_chebyshev_polynomial_w(Tensor& out, const Tensor& x, const Tensor& n);
void hermite_polynomial_h(Tensor& out, const Tensor& x, const Tensor& n);
void hermite_polynomial_he(Tensor& out, const Tensor& x, const Tensor& n);
void laguerre_polynomial_l(Tensor& out, const Tensor& x, const Tensor& n);
void legendre_polynomial_p(Tensor& out, const Tensor& x, const Tensor& n);

// ---- activations and their gradients (activations.cpp); g is the gradient at the result
void relu(Tensor& out, const Tensor& x);
void sigmoid(Tensor& out, const Tensor& x);
void sigmoid_backward(Tensor& out, const Tensor& g, const Tensor& result);
void tanh_backward(Tensor& out, const Tensor& g, const Tensor& result);
void silu(Tensor& out, const Tensor& x);
void silu_backward(Tensor& out, const Tensor& g, const Tensor& x);
/// approximate: "none" or "tanh".
void gelu(Tensor& out, const Tensor& x, std::string_view approximate);
void gelu_backward(Tensor& out, const Tensor& g, const Tensor& x, std::string_view approximate);
void elu(Tensor& out, const Tensor& x, Scalar alpha, Scalar scale, Scalar input_scale);
void elu_backward(Tensor& out, const Tensor& g, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
                  const Tensor& self_or_result);
void celu(Tensor& out, const Tensor& x, Scalar alpha);
void selu(Tensor& out, const Tensor& x);
void hardsigmoid(Tensor& out, const Tensor& x);
void hardsigmoid_backward(Tensor& out, const Tensor& g, const Tensor& x);
void hardswish(Tensor& out, const Tensor& x);
void hardswish_backward(Tensor& out, const Tensor& g, const Tensor& x);
void hardtanh(Tensor& out, const Tensor& x, Scalar low, Scalar high);
void hardtanh_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar low, Scalar high);
void relu6(Tensor& out, const Tensor& x);
void leaky_relu(Tensor& out, const Tensor& x, Scalar negative_slope);
/// `x` may be the result instead, where negative_slope > 0.
void leaky_relu_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar negative_slope);
void prelu(Tensor& out, const Tensor& x, const Tensor& weight);
void logsigmoid(Tensor& out, const Tensor& x);
void logsigmoid_backward(Tensor& out, const Tensor& g, const Tensor& x);
void mish(Tensor& out, const Tensor& x);
void mish_backward(Tensor& out, const Tensor& g, const Tensor& x);
void softplus(Tensor& out, const Tensor& x, Scalar beta, Scalar threshold);
void softplus_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar beta, Scalar threshold);
void softshrink(Tensor& out, const Tensor& x, Scalar lambd);
void hardshrink(Tensor& out, const Tensor& x, Scalar lambd);
/// Of softshrink and of hardshrink.
void shrink_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar lambd);
void threshold(Tensor& out, const Tensor& x, Scalar threshold, Scalar value);
/// With threshold 0 also relu's gradient, from x or from the result.
void threshold_backward(Tensor& out, const Tensor& g, const Tensor& x, Scalar threshold);
void tanhshrink(Tensor& out, const Tensor& x);
void softsign(Tensor& out, const Tensor& x);

}  // namespace rush::cpu
