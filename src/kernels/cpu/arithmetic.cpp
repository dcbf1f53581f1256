// Elementwise arithmetic: which formula, in which compute type (see tiles.h, Note [Compute types]).
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vector_tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

namespace f = formula;

namespace {

template <bool kNegate>
void sign_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  const auto* from = static_cast<const uint16_t*>(in[0]);
  auto* to = static_cast<uint16_t*>(out[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = uint16_t(kNegate ? from[i] ^ 0x8000 : from[i] & 0x7fff);
}
/// Negation or absolute value of a half type, which is its sign bit: no need to widen it. Returns whether it was done.
template <bool kNegate>
bool change_sign(Tensor& out, const Tensor& x) {
  const DType t = out.dtype();
  if (!out.is_cpu() || !is_half(t) || x.dtype() != t) return false;
  const TileKernel kernel{{sign_tile<kNegate>, sign_tile<kNegate>, sign_tile<kNegate>}, {}, 1, 1, {t, t}, 65536};
  const Tensor* const tensors[] = {&out, &x};
  run_tiles(kernel, nullptr, tensors);
  return true;
}

}  // namespace

void add(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha) {
  if (alpha == Scalar(1)) return map<f::Add, Numeric>(out.dtype(), out, a, b);
  for_compute(Numeric{}, out.dtype(), [&]<class T>() { apply<T, T>(f::AddScaled<T>{alpha.to<T>()}, out, a, b); });
}

void sub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha) {
  if (alpha == Scalar(1)) return map<f::Sub, Numeric>(out.dtype(), out, a, b);
  for_compute(Numeric{}, out.dtype(), [&]<class T>() { apply<T, T>(f::SubScaled<T>{alpha.to<T>()}, out, a, b); });
}

void rsub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha) { sub(out, b, a, alpha); }

void mul(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Mul, Numeric>(out.dtype(), out, a, b); }

void div(Tensor& out, const Tensor& a, const Tensor& b, OptStr rounding_mode) {
  if (!rounding_mode) return map<f::Div, FloatingOrComplex>(out.dtype(), out, a, b);
  if (*rounding_mode == "floor") return map<f::DivFloor, Real>(out.dtype(), out, a, b);
  map<f::DivTrunc, Real>(out.dtype(), out, a, b);
}

void floor_divide(Tensor& out, const Tensor& a, const Tensor& b) { map<f::DivFloor, Real>(out.dtype(), out, a, b); }
void remainder(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Remainder, Real>(out.dtype(), out, a, b); }
void fmod(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Fmod, Real>(out.dtype(), out, a, b); }

void pow(Tensor& out, const Tensor& a, const Tensor& b) {
  // The exponents that are written most are a product, a quotient or a root.
  if (b.numel() == 1 && b.dim() == 0 && b.is_cpu() && !b.is_complex()) {
    double exponent = 0;
    for_real(b.dtype(), [&]<class T>() { exponent = double(*b.data<T>()); });
    if (exponent == 2) return map<f::Square, Numeric>(out.dtype(), out, a);
    if (exponent == 3) return map<f::Cube, Numeric>(out.dtype(), out, a);
    if (is_floating(out.dtype())) {
      if (exponent == 0.5) return sqrt(out, a);
      if (exponent == -0.5) return rsqrt(out, a);
      if (exponent == -1) return reciprocal(out, a);
    }
  }
  map<f::Pow, Numeric>(out.dtype(), out, a, b);
}

void maximum(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Maximum, Real>(out.dtype(), out, a, b); }
void minimum(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Minimum, Real>(out.dtype(), out, a, b); }
void fmax(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Fmax, Real>(out.dtype(), out, a, b); }
void fmin(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Fmin, Real>(out.dtype(), out, a, b); }
void gcd(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Gcd, Types<int64_t>>(out.dtype(), out, a, b); }
void lcm(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Lcm, Types<int64_t>>(out.dtype(), out, a, b); }

void neg(Tensor& out, const Tensor& x) {
  if (!change_sign<true>(out, x)) map<f::Neg, Numeric>(out.dtype(), out, x);
}
void abs(Tensor& out, const Tensor& x) {
  if (!change_sign<false>(out, x)) map<f::Abs, Numeric>(x.dtype(), out, x);
}
void sign(Tensor& out, const Tensor& x) { map<f::Sign, Real>(out.dtype(), out, x); }
void sgn(Tensor& out, const Tensor& x) { map<f::Sgn, Numeric>(out.dtype(), out, x); }
void square(Tensor& out, const Tensor& x) { map<f::Square, Numeric>(out.dtype(), out, x); }
void reciprocal(Tensor& out, const Tensor& x) { map<f::Reciprocal, FloatingOrComplex>(out.dtype(), out, x); }

void lerp(Tensor& out, const Tensor& a, const Tensor& b, Scalar weight) {
  for_compute(FloatingOrComplex{}, out.dtype(),
              [&]<class T>() { apply<T, T>(f::LerpBy<T>{weight.to<T>()}, out, a, b); });
}
void lerp(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& weight) {
  map<f::Lerp, FloatingOrComplex>(out.dtype(), out, a, b, weight);
}
void addcmul(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, Scalar value) {
  for_compute(Numeric{}, out.dtype(), [&]<class T>() { apply<T, T, T>(f::AddCMul<T>{value.to<T>()}, out, a, b, c); });
}
void addcdiv(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, Scalar value) {
  for_compute(FloatingOrComplex{}, out.dtype(),
              [&]<class T>() { apply<T, T, T>(f::AddCDiv<T>{value.to<T>()}, out, a, b, c); });
}
void where(Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  for_compute(Any{}, out.dtype(), [&]<class T>() { apply<bool, T, T>(f::Where{}, out, condition, a, b); });
}

void clamp(Tensor& out, const Tensor& x, OptScalar low, OptScalar high) {
  for_compute(Real{}, out.dtype(), [&]<class T>() {
    if (low && high)
      apply<T>(f::ClampTo<T>{low->to<T>(), high->to<T>()}, out, x);
    else if (low)
      apply<T>(f::ClampMin<T>{low->to<T>()}, out, x);
    else if (high)
      apply<T>(f::ClampMax<T>{high->to<T>()}, out, x);
    else
      copy(out, x);
  });
}
void clamp(Tensor& out, const Tensor& x, const Tensor& low, const Tensor& high) {
  if (low.defined() && high.defined())
    map<f::Clamp, Real>(out.dtype(), out, x, low, high);
  else if (low.defined())
    maximum(out, x, low);
  else if (high.defined())
    minimum(out, x, high);
  else
    copy(out, x);
}

void complex(Tensor& out, const Tensor& re, const Tensor& im) {
  map<f::MakeComplex, Floating>(re.dtype(), out, re, im);
}
void polar(Tensor& out, const Tensor& size, const Tensor& angle) {
  map<f::Polar, Floating>(size.dtype(), out, size, angle);
}
void conj_physical(Tensor& out, const Tensor& x) {
  if (!x.is_complex()) return copy(out, x);
  map<f::Conj, Complex>(x.dtype(), out, x);
}

}  // namespace rush::cpu
