// What each pointwise operator computes from one element of each argument: small functors, for float, double, int64,
// bool and complex numbers, used by the CPU's tiles (kernels/cpu/tiles.h) and by whatever else loops over elements.
// Functions of math.h stay branch-free, so that a loop over a formula becomes vector code; what is rarely used may
// branch (kernels/special.h).
#pragma once
#include <complex>
#include <numeric>
#include <type_traits>
#include <utility>

#include "kernels/math.h"
#include "rushlight/error.h"

namespace rush::formula {

template <class T>
inline constexpr bool is_complex = false;
template <class R>
inline constexpr bool is_complex<std::complex<R>> = true;
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename RealOf<T>::type;

// ---- complex arithmetic, without the recovery of infinities that operator* of C++ pays for

template <class R>
RUSH_FN std::complex<R> multiply(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
RUSH_FN T multiply(T a, T b) {
  return a * b;
}
/// Both are scaled by the divisor's larger part, so that its square cannot overflow (R. L. Smith, CACM 5 (1962) 435).
template <class R>
RUSH_FN std::complex<R> divide(std::complex<R> a, std::complex<R> b) {
  const R re = abs(b.real()), im = abs(b.imag()), top = re > im ? re : im;
  if (top == 0) return {a.real() / re, a.imag() / re};
  const R c = b.real() / top, d = b.imag() / top, norm = c * c + d * d;
  return {(a.real() * c + a.imag() * d) / norm / top, (a.imag() * c - a.real() * d) / norm / top};
}
template <class T>
RUSH_FN T divide(T a, T b) {
  return a / b;
}
template <class R>
RUSH_FN std::complex<R> sigmoid(std::complex<R> z) {
  return divide(std::complex<R>(1), R(1) + std::exp(-z));
}
template <class R>
RUSH_FN std::complex<R> rsqrt(std::complex<R> z) {
  return divide(std::complex<R>(1), std::sqrt(z));
}
template <class R>
RUSH_FN std::complex<R> log2(std::complex<R> z) {
  return std::log(z) * R(kLog2E);
}
template <class R>
RUSH_FN std::complex<R> exp2(std::complex<R> z) {
  return std::exp(z * R(kLn2));
}
template <class R>
RUSH_FN std::complex<R> log1p(std::complex<R> z) {  // |1 + z|^2 - 1 is x (2 + x) + y^2
  const R x = z.real(), y = z.imag();
  return {R(0.5) * log1p(x * (2 + x) + y * y), atan2(y, 1 + x)};
}
template <class R>
RUSH_FN std::complex<R> expm1(std::complex<R> z) {  // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y/2)
  const R s = std::sin(z.imag() / 2);
  const R e = expm1(z.real()), c = std::cos(z.imag());
  return {e * c - 2 * s * s, (e + 1) * std::sin(z.imag())};
}

// ---- arithmetic

struct Add {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return int64_t(uint64_t(a) + uint64_t(b));
    else
      return a + b;
  }
};
struct Sub {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return int64_t(uint64_t(a) - uint64_t(b));
    else
      return a - b;
  }
};
struct Mul {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return int64_t(uint64_t(a) * uint64_t(b));
    else
      return multiply(a, b);
  }
};
struct Div {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return divide(a, b);
  }
};
/// a + alpha b.
template <class T>
struct AddScaled {
  T alpha;
  RUSH_FN T operator()(T a, T b) const { return Add()(a, Mul()(alpha, b)); }
};
/// a - alpha b.
template <class T>
struct SubScaled {
  T alpha;
  RUSH_FN T operator()(T a, T b) const { return Sub()(a, Mul()(alpha, b)); }
};
/// alpha a - b, for rsub with the arguments in its order.
template <class T>
struct ReverseSub {
  T alpha;
  RUSH_FN T operator()(T a, T b) const { return Sub()(b, Mul()(alpha, a)); }
};

inline void check_divisor(int64_t b) {
  if (b == 0) [[unlikely]]
    raise<Error>("ZeroDivisionError: integer division or modulo by zero");
}
/// Rounds towards zero.
struct DivTrunc {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const {
    check_divisor(b);
    return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  }
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return trunc(a / b);
  }
};
/// The sign of the dividend, as C's %.
struct Fmod {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const {
    check_divisor(b);
    return b == -1 ? 0 : a % b;
  }
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return std::fmod(a, b);
  }
};
/// The sign of the divisor, as Python's %.
struct Remainder {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    const T rest = Fmod()(a, b);
    return rest != 0 && ((b < 0) != (rest < 0)) ? rest + b : rest;
  }
};
/// Rounds towards minus infinity, as Python's //, and agrees with Remainder.
struct DivFloor {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const {
    const int64_t quotient = DivTrunc()(a, b), rest = Fmod()(a, b);
    return rest != 0 && ((b < 0) != (rest < 0)) ? quotient - 1 : quotient;
  }
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    if (b == 0) return a / b;
    T rest = std::fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && ((b < 0) != (rest < 0))) quotient -= 1;
    if (quotient == 0) return copysign(T(0), a / b);
    const T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  }
};

struct Maximum {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a > b || is_nan(a) ? a : b;
  }
};
struct Minimum {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a < b || is_nan(a) ? a : b;
  }
};
/// Ignore NaN unless both are.
struct Fmax {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a > b || is_nan(b) ? a : b;
  }
};
struct Fmin {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a < b || is_nan(b) ? a : b;
  }
};

struct Pow {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return pow(a, b);
  }
  template <class R>
  RUSH_FN std::complex<R> operator()(std::complex<R> a, std::complex<R> b) const {
    if (b == R(0)) return R(1);
    if (a == R(0)) return b.real() > 0 ? std::complex<R>(0) : std::complex<R>(R(kNan), R(kNan));
    return std::pow(a, b);
  }
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const {
    if (b < 0) return a == 1 ? 1 : (a == -1 ? (b & 1 ? -1 : 1) : 0);
    uint64_t base = uint64_t(a), result = 1;
    for (; b != 0; b >>= 1) {
      if (b & 1) result *= base;
      base *= base;
    }
    return int64_t(result);
  }
};
struct Atan2 {
  template <class T>
  RUSH_FN T operator()(T y, T x) const {
    return atan2(y, x);
  }
};
struct Hypot {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return hypot(a, b);
  }
};
struct CopySign {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return copysign(a, b);
  }
};
struct NextAfter {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return std::nextafter(a, b);
  }
};
/// In float, on the numbers that the storage type H has.
template <class H>
struct NextAfterIn {
  RUSH_FN float operator()(float a, float b) const {
    if (is_nan(a) || is_nan(b)) return a + b;
    if (a == b) return b;
    if (a == 0) return copysign(float(H::from_bits(1)), b);
    return H::from_bits(uint16_t(H(a).bits + ((b > a) == (a > 0) ? 1 : -1)));
  }
};
struct SincComplex {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x == T(0) ? T(1) : divide(std::sin(real_t<T>(kPi) * x), real_t<T>(kPi) * x);
  }
};
struct Heaviside {
  template <class T>
  RUSH_FN T operator()(T x, T at_zero) const {
    return x == 0 ? at_zero : T(x > 0);
  }
};
struct LogAddExp {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    const T top = a > b || is_nan(a) ? a : b;
    return a == b && abs(a) > std::numeric_limits<T>::max() ? a : top + log1p(exp(-abs(a - b)));
  }
  template <class R>
  RUSH_FN std::complex<R> operator()(std::complex<R> a, std::complex<R> b) const {
    const auto top = a.real() >= b.real() ? a : b, low = a.real() >= b.real() ? b : a;
    return std::isinf(top.real()) && top == low ? top : top + log1p(std::exp(low - top));
  }
};
struct LogAddExp2 {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    const T top = a > b || is_nan(a) ? a : b;
    return a == b && abs(a) > std::numeric_limits<T>::max() ? a : top + log1p(exp2(-abs(a - b))) * T(kLog2E);
  }
};
struct XLogY {
  template <class T>
  RUSH_FN T operator()(T x, T y) const {
    return is_nan(y) ? y : (x == 0 ? T(0) : x * log(y));
  }
};
struct XLog1PY {
  template <class T>
  RUSH_FN T operator()(T x, T y) const {
    return is_nan(y) ? y : (x == 0 ? T(0) : x * log1p(y));
  }
};
struct Gcd {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const { return std::gcd(a, b); }
};
struct Lcm {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const {
    const int64_t g = std::gcd(a, b);
    return g == 0 ? 0 : abs(int64_t(uint64_t(a / g) * uint64_t(b)));
  }
};

// ---- comparisons, logic, bits

struct Eq {
  template <class T>
  RUSH_FN bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  RUSH_FN bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Lt {
  template <class T>
  RUSH_FN bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  RUSH_FN bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct IsClose {
  double rtol, atol;
  bool equal_nan;
  template <class T>
  RUSH_FN bool operator()(T a, T b) const {
    if (a == b) return true;
    if (equal_nan && is_nan(a) && is_nan(b)) return true;
    const auto size = [](T x) { return double(std::abs(x)); };
    const double allowed = atol + rtol * size(b);
    return allowed < kInf && size(b) < kInf && size(T(a - b)) <= allowed;
  }
};
struct LogicalAnd {
  RUSH_FN bool operator()(bool a, bool b) const { return a & b; }
};
struct LogicalOr {
  RUSH_FN bool operator()(bool a, bool b) const { return a | b; }
};
struct LogicalXor {
  RUSH_FN bool operator()(bool a, bool b) const { return a != b; }
};
struct LogicalNot {
  RUSH_FN bool operator()(bool a) const { return !a; }
};
struct BitAnd {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitOr {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitXor {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct BitNot {
  RUSH_FN bool operator()(bool a) const { return !a; }
  RUSH_FN int64_t operator()(int64_t a) const { return ~a; }
};
struct ShiftLeft {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const { return uint64_t(b) > 63 ? 0 : int64_t(uint64_t(a) << b); }
};
struct ShiftRight {
  RUSH_FN int64_t operator()(int64_t a, int64_t b) const { return a >> (uint64_t(b) > 63 ? 63 : b); }
};

// ---- functions of one argument

struct Identity {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x;
  }
};
struct Abs {
  template <class T>
  RUSH_FN real_t<T> operator()(T x) const {
    if constexpr (is_complex<T>)
      return hypot(x.real(), x.imag());
    else
      return abs(x);
  }
};
struct Neg {
  template <class T>
  RUSH_FN T operator()(T x) const {
    if constexpr (std::is_same_v<T, int64_t>)
      return int64_t(0 - uint64_t(x));
    else
      return -x;
  }
};
struct Sign {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return T(x > 0) - T(x < 0);
  }
};
struct Sgn {
  template <class T>
  RUSH_FN T operator()(T x) const {
    if constexpr (is_complex<T>) {
      const auto size = hypot(x.real(), x.imag());
      return size == 0 ? T(0) : T(x.real() / size, x.imag() / size);
    } else {
      return Sign()(x);
    }
  }
};
struct Ceil {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return ceil(x);
  }
};
struct Floor {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return floor(x);
  }
};
struct Trunc {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return trunc(x);
  }
};
struct Round {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return round_even(x);
  }
};
/// To a number of decimals.
template <class T>
struct RoundDecimals {
  T power;     // of ten
  T negative;  // not a bool, after which bytes would be left unset: a launch's arguments are looked at as bytes
  RUSH_FN T operator()(T x) const {
    return negative != 0 ? round_even(x / power) * power : round_even(x * power) / power;
  }
};
struct Frac {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x - trunc(x);
  }
};
struct Square {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return Mul()(x, x);
  }
};
struct Cube {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return Mul()(Mul()(x, x), x);
  }
};
struct Reciprocal {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return divide(T(1), x);
  }
};
struct Exp {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return exp(x);
  }
};
struct Exp2 {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return exp2(x);
  }
};
struct Expm1 {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return expm1(x);
  }
};
struct Log {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return log(x);
  }
};
struct Log2 {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return log2(x);
  }
};
struct Log10 {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return log10(x);
  }
};
struct Log1p {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return log1p(x);
  }
};
struct Sqrt {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return rsqrt(x);
  }
};
// The trigonometric functions of huge numbers are left to the C library, one by one.
struct Sin {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return sin(x);
  }
  template <class T>
  requires std::is_floating_point_v<T> RUSH_FN static bool is_hard(T x) { return trig_is_hard(x); }
  template <class T>
  static T slow(T x) {
    return T(std::sin(double(x)));
  }
};
struct Cos {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return cos(x);
  }
  template <class T>
  requires std::is_floating_point_v<T> RUSH_FN static bool is_hard(T x) { return trig_is_hard(x); }
  template <class T>
  static T slow(T x) {
    return T(std::cos(double(x)));
  }
};
struct Tan {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return tan(x);
  }
  template <class T>
  requires std::is_floating_point_v<T> RUSH_FN static bool is_hard(T x) { return trig_is_hard(x); }
  template <class T>
  static T slow(T x) {
    return T(std::tan(double(x)));
  }
};
struct Asin {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return asin(x);
  }
};
struct Acos {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return acos(x);
  }
};
struct Atan {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return atan(x);
  }
};
struct Sinh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return sinh(x);
  }
};
struct Cosh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return cosh(x);
  }
};
struct Tanh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return tanh(x);
  }
};
struct Asinh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return asinh(x);
  }
};
struct Acosh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return acosh(x);
  }
};
struct Atanh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return atanh(x);
  }
};
struct Erf {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return erf(x);
  }
};
struct Erfc {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return erfc(x);
  }
};
struct Conj {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return T(x.real(), -x.imag());
  }
};
struct Angle {
  template <class T>
  RUSH_FN real_t<T> operator()(T x) const {
    if constexpr (is_complex<T>)
      return atan2(x.imag(), x.real());
    else
      return is_nan(x) ? x : (x < 0 ? T(kPi) : T(0));
  }
};
struct Polar {
  template <class R>
  RUSH_FN std::complex<R> operator()(R size, R angle) const {
    return {size * R(std::cos(angle)), size * R(std::sin(angle))};
  }
};
struct MakeComplex {
  template <class R>
  RUSH_FN std::complex<R> operator()(R re, R im) const {
    return {re, im};
  }
};
/// x times a constant: deg2rad, rad2deg.
template <class T>
struct Scale {
  T factor;
  RUSH_FN T operator()(T x) const { return x * factor; }
};
struct IsNan {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    if constexpr (is_complex<T>)
      return IsInf()(x.real()) || IsInf()(x.imag());
    else if constexpr (std::is_integral_v<T>)
      return false;
    else
      return abs(x) > std::numeric_limits<T>::max();
  }
};
struct IsFinite {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    if constexpr (is_complex<T>)
      return IsFinite()(x.real()) && IsFinite()(x.imag());
    else if constexpr (std::is_integral_v<T>)
      return true;
    else
      return abs(x) <= std::numeric_limits<T>::max();
  }
};
struct IsPosInf {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    return IsInf()(x) & (x > 0);
  }
};
struct IsNegInf {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    return IsInf()(x) & (x < 0);
  }
};
struct SignBit {
  template <class T>
  RUSH_FN bool operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x < 0;
    else
      return copysign(T(1), x) < 0;
  }
};
template <class T>
struct NanToNum {
  T nan, positive, negative;
  RUSH_FN T operator()(T x) const {
    if constexpr (is_complex<T>) {
      using R = real_t<T>;
      const NanToNum<R> part{nan.real(), positive.real(), negative.real()};
      return {part(x.real()), part(x.imag())};
    } else {
      const T top = std::numeric_limits<T>::max();
      return is_nan(x) ? nan : (x > top ? positive : (x < -top ? negative : x));
    }
  }
};
/// log(x / (1 - x)): near 1/2, where that is near log 1, the quotient needs more digits than x has.
RUSH_FN double logit(double x) { return log_domain(x / (1 - x), log_dd(Dd{x, 0} / two_sum(1, -x)).hi); }
RUSH_FN float logit(float x) {
  const double odds = x / (1 - double(x));
  return float(log_domain(odds, log_short(odds)));
}
template <class T>
struct Logit {
  T eps;  // negative: not clamped
  RUSH_FN T operator()(T x) const {
    const T low = eps, high = 1 - eps;
    const T y = eps < 0 ? x : (x < low ? low : (x > high ? high : x));
    return logit(y);
  }
};
/// The mantissa in [0.5, 1) and the exponent.
struct Frexp {
  template <class T>
  RUSH_FN std::pair<T, int64_t> operator()(T x) const {
    int exponent = 0;
    const T mantissa = std::frexp(x, &exponent);
    return {mantissa, exponent};
  }
};

// ---- functions of three and more

/// Without a conditional, of which compilers make a branch that a random condition mispredicts half of the time.
struct Where {
  template <class T>
  RUSH_FN T operator()(bool condition, T a, T b) const {
    if constexpr (is_complex<T>) {
      return {(*this)(condition, a.real(), b.real()), (*this)(condition, a.imag(), b.imag())};
    } else {
      using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
      const Bits mask = Bits(0 - Bits(std::bit_cast<uint8_t>(condition)));
      const Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
      return std::bit_cast<T>(Bits(y ^ ((x ^ y) & mask)));
    }
  }
};
struct Lerp {
  template <class T>
  RUSH_FN T operator()(T a, T b, T weight) const {
    if constexpr (is_complex<T>) {
      return std::abs(weight) < real_t<T>(0.5) ? a + multiply(weight, b - a) : b - multiply(b - a, T(1) - weight);
    } else {
      return abs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
    }
  }
};
template <class T>
struct LerpBy {
  T weight;
  RUSH_FN T operator()(T a, T b) const { return Lerp()(a, b, weight); }
};
template <class T>
struct AddCMul {
  T value;
  RUSH_FN T operator()(T a, T b, T c) const { return Add()(a, Mul()(Mul()(value, b), c)); }
};
template <class T>
struct AddCDiv {
  T value;
  RUSH_FN T operator()(T a, T b, T c) const { return a + multiply(value, divide(b, c)); }
};
/// NaN in any of the three gives NaN; where low > high the result is high.
struct Clamp {
  template <class T>
  RUSH_FN T operator()(T x, T low, T high) const {
    return Minimum()(Maximum()(x, low), high);
  }
};
template <class T>
struct ClampTo {
  T low, high;
  RUSH_FN T operator()(T x) const {
    const T y = x < low ? low : x;
    return y > high ? high : y;
  }
};
template <class T>
struct ClampMin {
  T low;
  RUSH_FN T operator()(T x) const { return x < low ? low : x; }
};
template <class T>
struct ClampMax {
  T high;
  RUSH_FN T operator()(T x) const { return x > high ? high : x; }
};

// ---- activations and their gradients; g is the gradient at the result

struct Relu {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x <= 0 ? T(0) : x;
  }
};
struct Sigmoid {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return sigmoid(x);
  }
};
/// From the result y.
struct SigmoidGrad {
  template <class T>
  RUSH_FN T operator()(T g, T y) const {
    if constexpr (is_complex<T>)
      return multiply(g, std::conj(multiply(T(1) - y, y)));
    else
      return g * (1 - y) * y;
  }
};
struct TanhGrad {
  template <class T>
  RUSH_FN T operator()(T g, T y) const {
    if constexpr (is_complex<T>)
      return multiply(g, std::conj(T(1) - multiply(y, y)));
    else
      return g * (1 - y * y);
  }
};
struct Silu {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return divide(x, T(1) + exp(-x));
  }
};
struct SiluGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    const T s = sigmoid(x);
    if constexpr (is_complex<T>)
      return multiply(g, std::conj(multiply(s, T(1) + multiply(x, T(1) - s))));
    else
      return g * s * (1 + x * (1 - s));
  }
};
/// Phi(x), from the upper tail: 1 + erf would cancel for negative x.
template <class T>
RUSH_FN T normal_cdf(T x) {
  const T t = normal_tail(abs(x));
  return x > 0 ? 1 - t : t;
}
/// x Phi(x).
struct Gelu {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x * normal_cdf(x);
  }
};
struct GeluGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    constexpr double density = 0.3989422804014326779;  // 1 / sqrt(2 pi)
    return g * (normal_cdf(x) + x * T(density) * exp(T(-0.5) * x * x));
  }
};
inline constexpr double kGeluScale = 0.79788456080286535588, kGeluCubic = 0.044715;  // sqrt(2 / pi)
/// 0.5 x (1 + tanh(c (x + 0.044715 x^3))), with (1 + tanh u) / 2 = sigmoid(2 u).
struct GeluTanh {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x * sigmoid(T(2 * kGeluScale) * (x + T(kGeluCubic) * x * x * x));
  }
};
struct GeluTanhGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    const T s = sigmoid(T(2 * kGeluScale) * (x + T(kGeluCubic) * x * x * x));
    return g * (s + x * s * (1 - s) * T(2 * kGeluScale) * (1 + T(3 * kGeluCubic) * x * x));
  }
};
/// x > 0: x positive; else negative (e^(input x) - 1).
template <class T>
struct Elu {
  T negative, positive, input;
  RUSH_FN T operator()(T x) const { return x > 0 ? x * positive : expm1(x * input) * negative; }
};
template <class T>
struct EluGrad {
  T negative, positive, input;
  RUSH_FN T operator()(T g, T x) const { return x > 0 ? g * positive : g * input * negative * exp(x * input); }
};
template <class T>
struct EluGradFromResult {
  T negative, positive, input;
  RUSH_FN T operator()(T g, T y) const { return y > 0 ? g * positive : g * input * (y + negative); }
};
struct Hardsigmoid {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return ClampTo<T>{0, 6}(x + 3) / 6;
  }
};
struct HardsigmoidGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    return x > -3 && x < 3 ? g / 6 : T(0);
  }
};
struct Hardswish {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x * ClampTo<T>{0, 6}(x + 3) / 6;
  }
};
struct HardswishGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    return x <= -3 ? T(0) : (x >= 3 ? g : g * (x / 3 + T(0.5)));
  }
};
template <class T>
struct HardtanhGrad {
  T low, high;
  RUSH_FN T operator()(T g, T x) const { return x > low && x < high ? g : T(0); }
};
template <class T>
struct LeakyRelu {
  T slope;
  RUSH_FN T operator()(T x) const { return x > 0 ? x : x * slope; }
};
template <class T>
struct LeakyReluGrad {
  T slope;
  RUSH_FN T operator()(T g, T x) const { return x > 0 ? g : g * slope; }
};
struct Prelu {
  template <class T>
  RUSH_FN T operator()(T x, T weight) const {
    return x > 0 ? x : x * weight;
  }
};
struct LogSigmoid {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return (x < 0 ? x : (is_nan(x) ? x : T(0))) - log1p(exp(-abs(x)));
  }
};
// ---- losses of an input x and a target t
struct SquaredLoss {
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    return (x - t) * (x - t);
  }
};
struct SmoothLoss {
  double width;
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    const T z = abs(x - t), edge = T(width);
    return z < edge ? T(0.5) * z * z / edge : z - T(0.5) * edge;
  }
};
struct HuberLoss {
  double width;
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    const T z = abs(x - t), edge = T(width);
    return z <= edge ? T(0.5) * z * z : edge * (z - T(0.5) * edge);
  }
};
/// The cross-entropy of a probability and a target from 0 to 1, logarithms not below -100.
struct EntropyLoss {
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    const T yes = log(x), no = log1p(-x);
    return (t - 1) * (no < -100 ? T(-100) : no) - t * (yes < -100 ? T(-100) : yes);
  }
};
struct LogitEntropyLoss {
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    return (1 - t) * x - LogSigmoid()(x);
  }
};
struct DivergenceLoss {
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    return (t == 0 ? T(0) : t * log(t)) - t * x;
  }
};
struct LogDivergenceLoss {
  template <class T>
  RUSH_FN T operator()(T x, T t) const {
    return exp(t) * (t - x);
  }
};
struct LogSigmoidGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    return g * sigmoid(-x);
  }
};
/// x tanh(log(1 + e^x)); with n = e^x (e^x + 2) the tanh is n / (n + 2).
struct Mish {
  template <class T>
  RUSH_FN T operator()(T x) const {
    const T e = exp(x > 20 ? T(20) : x), n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
  }
};
struct MishGrad {
  template <class T>
  RUSH_FN T operator()(T g, T x) const {
    const T e = exp(x > 20 ? T(20) : x), n = e * (e + 2), t = n / (n + 2);
    return x > 20 ? g : g * (t + x * sigmoid(x) * (1 - t * t));
  }
};
template <class T>
struct Softplus {
  T beta, threshold;
  RUSH_FN T operator()(T x) const { return x * beta > threshold ? x : log1p(exp(x * beta)) / beta; }
};
template <class T>
struct SoftplusGrad {
  T beta, threshold;
  RUSH_FN T operator()(T g, T x) const { return x * beta > threshold ? g : g * sigmoid(x * beta); }
};
template <class T>
struct Softshrink {
  T lambd;
  RUSH_FN T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : (x > lambd ? x - lambd : x + lambd); }
};
template <class T>
struct Hardshrink {
  T lambd;
  RUSH_FN T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : x; }
};
/// Of both.
template <class T>
struct ShrinkGrad {
  T lambd;
  RUSH_FN T operator()(T g, T x) const { return x < -lambd || x > lambd ? g : T(0); }
};
template <class T>
struct Threshold {
  T threshold, value;
  RUSH_FN T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct ThresholdGrad {
  T threshold;
  RUSH_FN T operator()(T g, T x) const { return x <= threshold ? T(0) : g; }
};
struct Tanhshrink {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return x - tanh(x);
  }
};
struct Softsign {
  template <class T>
  RUSH_FN T operator()(T x) const {
    return divide(x, T(1 + Abs()(x)));
  }
};

}  // namespace rush::formula
