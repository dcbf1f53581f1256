// Elementary functions, elementwise.
#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vector_tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

namespace f = formula;

// Rounding leaves integers as they are.
void ceil(Tensor& out, const Tensor& x) {
  is_integral(x.dtype()) ? copy(out, x) : map<f::Ceil, Floating>(out.dtype(), out, x);
}
void floor(Tensor& out, const Tensor& x) {
  is_integral(x.dtype()) ? copy(out, x) : map<f::Floor, Floating>(out.dtype(), out, x);
}
void trunc(Tensor& out, const Tensor& x) {
  is_integral(x.dtype()) ? copy(out, x) : map<f::Trunc, Floating>(out.dtype(), out, x);
}
void round(Tensor& out, const Tensor& x) {
  is_integral(x.dtype()) ? copy(out, x) : map<f::Round, Floating>(out.dtype(), out, x);
}
void round(Tensor& out, const Tensor& x, int64_t decimals) {
  if (decimals == 0 || is_integral(x.dtype())) return round(out, x);
  for_compute(Floating{}, out.dtype(), [&]<class T>() {
    apply<T>(f::RoundDecimals<T>{T(std::pow(10.0, std::abs(double(decimals)))), T(decimals < 0)}, out, x);
  });
}
void frac(Tensor& out, const Tensor& x) { map<f::Frac, Floating>(out.dtype(), out, x); }

void frexp(Tensor& mantissa, Tensor& exponent, const Tensor& x) {
  for_compute(Floating{}, x.dtype(), [&]<class T>() {
    const f::Frexp formula;
    const Tensor* const tensors[] = {&mantissa, &exponent, &x};
    run_tiles(Tile<f::Frexp, T>::kernel, &formula, tensors);
  });
}

void exp(Tensor& out, const Tensor& x) { map<f::Exp, FloatingOrComplex>(out.dtype(), out, x); }
void exp2(Tensor& out, const Tensor& x) { map<f::Exp2, FloatingOrComplex>(out.dtype(), out, x); }
void expm1(Tensor& out, const Tensor& x) { map<f::Expm1, FloatingOrComplex>(out.dtype(), out, x); }
void log(Tensor& out, const Tensor& x) { map<f::Log, FloatingOrComplex>(out.dtype(), out, x); }
void log2(Tensor& out, const Tensor& x) { map<f::Log2, FloatingOrComplex>(out.dtype(), out, x); }
void log10(Tensor& out, const Tensor& x) { map<f::Log10, FloatingOrComplex>(out.dtype(), out, x); }
void log1p(Tensor& out, const Tensor& x) { map<f::Log1p, FloatingOrComplex>(out.dtype(), out, x); }
void sqrt(Tensor& out, const Tensor& x) { map<f::Sqrt, FloatingOrComplex>(out.dtype(), out, x); }
void rsqrt(Tensor& out, const Tensor& x) { map<f::Rsqrt, FloatingOrComplex>(out.dtype(), out, x); }
void sin(Tensor& out, const Tensor& x) { map<f::Sin, FloatingOrComplex>(out.dtype(), out, x); }
void cos(Tensor& out, const Tensor& x) { map<f::Cos, FloatingOrComplex>(out.dtype(), out, x); }
void tan(Tensor& out, const Tensor& x) { map<f::Tan, FloatingOrComplex>(out.dtype(), out, x); }
void asin(Tensor& out, const Tensor& x) { map<f::Asin, FloatingOrComplex>(out.dtype(), out, x); }
void acos(Tensor& out, const Tensor& x) { map<f::Acos, FloatingOrComplex>(out.dtype(), out, x); }
void atan(Tensor& out, const Tensor& x) { map<f::Atan, FloatingOrComplex>(out.dtype(), out, x); }
void sinh(Tensor& out, const Tensor& x) { map<f::Sinh, FloatingOrComplex>(out.dtype(), out, x); }
void cosh(Tensor& out, const Tensor& x) { map<f::Cosh, FloatingOrComplex>(out.dtype(), out, x); }
void tanh(Tensor& out, const Tensor& x) { map<f::Tanh, FloatingOrComplex>(out.dtype(), out, x); }
void asinh(Tensor& out, const Tensor& x) { map<f::Asinh, FloatingOrComplex>(out.dtype(), out, x); }
void acosh(Tensor& out, const Tensor& x) { map<f::Acosh, FloatingOrComplex>(out.dtype(), out, x); }
void atanh(Tensor& out, const Tensor& x) { map<f::Atanh, FloatingOrComplex>(out.dtype(), out, x); }
void erf(Tensor& out, const Tensor& x) { map<f::Erf, Floating>(out.dtype(), out, x); }
void erfc(Tensor& out, const Tensor& x) { map<f::Erfc, Floating>(out.dtype(), out, x); }

void angle(Tensor& out, const Tensor& x) {
  map<f::Angle, FloatingOrComplex>(x.is_complex() ? x.dtype() : out.dtype(), out, x);
}
void deg2rad(Tensor& out, const Tensor& x) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::Scale<T>{T(f::kPi / 180)}, out, x); });
}
void rad2deg(Tensor& out, const Tensor& x) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::Scale<T>{T(180 / f::kPi)}, out, x); });
}
void logit(Tensor& out, const Tensor& x, OptDouble eps) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(f::Logit<T>{T(eps.value_or(-1))}, out, x); });
}

void atan2(Tensor& out, const Tensor& y, const Tensor& x) { map<f::Atan2, Floating>(out.dtype(), out, y, x); }
void hypot(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Hypot, Floating>(out.dtype(), out, a, b); }
void copysign(Tensor& out, const Tensor& a, const Tensor& b) { map<f::CopySign, Floating>(out.dtype(), out, a, b); }
void nextafter(Tensor& out, const Tensor& a, const Tensor& b) {
  // The next number of the stored type, not of the one that is computed in.
  if (out.dtype() == kFloat16) return apply<float, float>(f::NextAfterIn<Half>{}, out, a, b);
  if (out.dtype() == kBFloat16) return apply<float, float>(f::NextAfterIn<BFloat16>{}, out, a, b);
  map<f::NextAfter, Floating>(out.dtype(), out, a, b);
}
void logaddexp(Tensor& out, const Tensor& a, const Tensor& b) {
  map<f::LogAddExp, FloatingOrComplex>(out.dtype(), out, a, b);
}
void logaddexp2(Tensor& out, const Tensor& a, const Tensor& b) { map<f::LogAddExp2, Floating>(out.dtype(), out, a, b); }
void xlogy(Tensor& out, const Tensor& x, const Tensor& y) { map<f::XLogY, Floating>(out.dtype(), out, x, y); }
void xlog1py(Tensor& out, const Tensor& x, const Tensor& y) { map<f::XLog1PY, Floating>(out.dtype(), out, x, y); }

}  // namespace rush::cpu
