// Comparisons, logic and bits.
#include <limits>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

namespace f = formula;

namespace {

/// The type in which a and b are compared.
DType common(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() ? a.dtype() : Promotion()(a)(b).dtype();
}

using Ordered = Types<float, double, int64_t, bool>;

}  // namespace

void eq(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Eq, Any>(common(a, b), out, a, b); }
void ne(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Ne, Any>(common(a, b), out, a, b); }
void lt(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Lt, Ordered>(common(a, b), out, a, b); }
void le(Tensor& out, const Tensor& a, const Tensor& b) { map<f::Le, Ordered>(common(a, b), out, a, b); }
void gt(Tensor& out, const Tensor& a, const Tensor& b) { lt(out, b, a); }
void ge(Tensor& out, const Tensor& a, const Tensor& b) { le(out, b, a); }

void isclose(Tensor& out, const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  for_compute(Numeric{}, common(a, b), [&]<class T>() { apply<T, T>(f::IsClose{rtol, atol, equal_nan}, out, a, b); });
}

void logical_and(Tensor& out, const Tensor& a, const Tensor& b) { apply<bool, bool>(f::LogicalAnd{}, out, a, b); }
void logical_or(Tensor& out, const Tensor& a, const Tensor& b) { apply<bool, bool>(f::LogicalOr{}, out, a, b); }
void logical_xor(Tensor& out, const Tensor& a, const Tensor& b) { apply<bool, bool>(f::LogicalXor{}, out, a, b); }
void logical_not(Tensor& out, const Tensor& x) { apply<bool>(f::LogicalNot{}, out, x); }

void bitwise_and(Tensor& out, const Tensor& a, const Tensor& b) { map<f::BitAnd, Integral>(out.dtype(), out, a, b); }
void bitwise_or(Tensor& out, const Tensor& a, const Tensor& b) { map<f::BitOr, Integral>(out.dtype(), out, a, b); }
void bitwise_xor(Tensor& out, const Tensor& a, const Tensor& b) { map<f::BitXor, Integral>(out.dtype(), out, a, b); }
void bitwise_not(Tensor& out, const Tensor& x) { map<f::BitNot, Integral>(out.dtype(), out, x); }
void bitwise_left_shift(Tensor& out, const Tensor& a, const Tensor& b) {
  map<f::ShiftLeft, Types<int64_t>>(out.dtype(), out, a, b);
}
void bitwise_right_shift(Tensor& out, const Tensor& a, const Tensor& b) {
  map<f::ShiftRight, Types<int64_t>>(out.dtype(), out, a, b);
}

void isnan(Tensor& out, const Tensor& x) { map<f::IsNan, Any>(x.dtype(), out, x); }
void isinf(Tensor& out, const Tensor& x) { map<f::IsInf, Any>(x.dtype(), out, x); }
void isfinite(Tensor& out, const Tensor& x) { map<f::IsFinite, Any>(x.dtype(), out, x); }
void isposinf(Tensor& out, const Tensor& x) { map<f::IsPosInf, Real>(x.dtype(), out, x); }
void isneginf(Tensor& out, const Tensor& x) { map<f::IsNegInf, Real>(x.dtype(), out, x); }
void signbit(Tensor& out, const Tensor& x) { map<f::SignBit, Real>(x.dtype(), out, x); }
void heaviside(Tensor& out, const Tensor& x, const Tensor& values) {
  map<f::Heaviside, Real>(out.dtype(), out, x, values);
}

void nan_to_num(Tensor& out, const Tensor& x, OptDouble nan, OptDouble posinf, OptDouble neginf) {
  if (is_integral(x.dtype())) return copy(out, x);
  // The largest numbers are those of the stored type, not of the one that is computed in.
  double top = 0;
  for_floating(real_of(x.dtype()), [&]<class T>() { top = double(std::numeric_limits<T>::max()); });
  for_compute(FloatingOrComplex{}, out.dtype(), [&]<class T>() {
    using R = f::real_t<T>;
    apply<T>(f::NanToNum<T>{T(R(nan.value_or(0))), T(R(posinf.value_or(top))), T(R(neginf.value_or(-top)))}, out, x);
  });
}

}  // namespace rush::cpu
