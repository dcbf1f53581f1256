// What the kernels use of the C++ standard library, for NVRTC, which has none. Compiled for the GPU only: there every
// standard header that the shared scalar headers include is this file (cuda/nvrtc.cpp). Functions without a mark are
// the device's, since NVRTC is run with -default-device.
//
// Complex functions follow W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987).
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;

#define RUSH_SHARED(type, name, size) __shared__ type name[size]

#define __builtin_fmaf ::fmaf
#define __builtin_fma ::fma
#define __builtin_fabsf ::fabsf
#define __builtin_fabs ::fabs
#define __builtin_copysignf ::copysignf
#define __builtin_copysign ::copysign
#define __builtin_sqrtf ::sqrtf
#define __builtin_sqrt ::sqrt
#define __builtin_floorf ::floorf
#define __builtin_floor ::floor
#define __builtin_ceilf ::ceilf
#define __builtin_ceil ::ceil
#define __builtin_truncf ::truncf
#define __builtin_trunc ::trunc
#define __builtin_rintf ::rintf
#define __builtin_rint ::rint

namespace rush {
struct Error {};
/// Device code has no exceptions; what raises on the CPU goes on here, as in CUDA's own operators.
template <class E, class... Parts>
void raise(const Parts&...) {}
}  // namespace rush

namespace std {

using ::int64_t;
using size_t = unsigned long;

// ---- types

template <class T, class U>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T, class... U>
inline constexpr bool is_one_of = (is_same_v<T, U> || ...);
template <class T>
inline constexpr bool is_floating_point_v = is_one_of<T, float, double>;
template <class T>
inline constexpr bool is_integral_v = is_one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int,
                                                unsigned, long, unsigned long, long long, unsigned long long>;
template <class T>
inline constexpr bool is_arithmetic_v = is_floating_point_v<T> || is_integral_v<T>;
template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T>
inline constexpr bool is_trivial_v = __is_trivial(T);
template <class T>
inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <bool C, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool C, class A, class B>
using conditional_t = typename conditional<C, A, B>::type;
template <class... T>
struct common_type;
template <class T>
struct common_type<T> {
  using type = T;
};
template <class T, class... U>
struct common_type<T, T, U...> : common_type<T, U...> {};
template <class... T>
using common_type_t = typename common_type<T...>::type;
template <class T>
struct make_unsigned;
template <>
struct make_unsigned<int64_t> {
  using type = uint64_t;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;

template <size_t... I>
struct index_sequence {
  static constexpr size_t size() { return sizeof...(I); }
};
template <size_t N, size_t... I>
struct sequence_of : sequence_of<N - 1, N - 1, I...> {};
template <size_t... I>
struct sequence_of<0, I...> {
  using type = index_sequence<I...>;
};
template <size_t N>
using make_index_sequence = typename sequence_of<N>::type;
template <class T>
T&& declval();

template <class A, class B>
struct pair {
  A first;
  B second;
};
template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return bit_cast<float>(0x7f800000u); }
  static constexpr float quiet_NaN() { return bit_cast<float>(0x7fc00000u); }
  static constexpr float max() { return 0x1.fffffep127f; }
  static constexpr float lowest() { return -0x1.fffffep127f; }
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float epsilon() { return 0x1p-23f; }
};
template <>
struct numeric_limits<double> {
  static constexpr double infinity() { return bit_cast<double>(0x7ff0000000000000ul); }
  static constexpr double quiet_NaN() { return bit_cast<double>(0x7ff8000000000000ul); }
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double lowest() { return -0x1.fffffffffffffp1023; }
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double epsilon() { return 0x1p-52; }
};
template <class T>
struct integer_limits {
  static constexpr T lowest() { return T(-1) < T(0) ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0); }
  static constexpr T max() { return T(~lowest()); }
  static constexpr T min() { return lowest(); }
};
template <>
struct numeric_limits<int8_t> : integer_limits<int8_t> {};
template <>
struct numeric_limits<uint8_t> : integer_limits<uint8_t> {};
template <>
struct numeric_limits<int16_t> : integer_limits<int16_t> {};
template <>
struct numeric_limits<int32_t> : integer_limits<int32_t> {};
template <>
struct numeric_limits<int64_t> : integer_limits<int64_t> {};
template <>
struct numeric_limits<bool> {
  static constexpr bool lowest() { return false; }
  static constexpr bool max() { return true; }
};

// ---- real functions

using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::cyl_bessel_i0;
using ::erfc;
using ::exp;
using ::fabs;
using ::floor;
using ::fmod;
using ::frexp;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::lgamma;
using ::log;
using ::log1p;
using ::nextafter;
using ::pow;
using ::round;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
inline int64_t abs(int64_t x) { return x < 0 ? -x : x; }
inline bool abs(bool x) { return x; }
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T clamp(T x, T low, T high) {
  return x < low ? low : (high < x ? high : x);
}
inline int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - uint64_t(a) : uint64_t(a), y = b < 0 ? 0 - uint64_t(b) : uint64_t(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return int64_t(x);
}

// ---- complex numbers

template <class R>
class complex {
 public:
  using value_type = R;
  complex() = default;
  constexpr complex(R re, R im = 0) : re_(re), im_(im) {}
  template <class Q>
  constexpr explicit complex(const complex<Q>& z) : re_(R(z.real())), im_(R(z.imag())) {}
  constexpr R real() const { return re_; }
  constexpr R imag() const { return im_; }
  complex& operator+=(complex b) { return *this = *this + b; }
  complex& operator-=(complex b) { return *this = *this - b; }
  complex& operator*=(complex b) { return *this = *this * b; }
  complex& operator*=(R b) { return *this = *this * b; }
  complex& operator/=(R b) { return *this = *this / b; }
  friend constexpr complex operator+(complex a, complex b) { return {a.re_ + b.re_, a.im_ + b.im_}; }
  friend constexpr complex operator-(complex a, complex b) { return {a.re_ - b.re_, a.im_ - b.im_}; }
  friend constexpr complex operator-(complex a) { return {-a.re_, -a.im_}; }
  friend constexpr complex operator*(complex a, R b) { return {a.re_ * b, a.im_ * b}; }
  friend constexpr complex operator*(R a, complex b) { return {a * b.re_, a * b.im_}; }
  friend constexpr complex operator*(complex a, complex b) {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  friend constexpr complex operator/(complex a, R b) { return {a.re_ / b, a.im_ / b}; }
  friend constexpr complex operator/(complex a, complex b) {
    const R re = ::fabs(b.re_), im = ::fabs(b.im_), top = re > im ? re : im;
    const R c = b.re_ / top, d = b.im_ / top, norm = c * c + d * d;
    return {(a.re_ * c + a.im_ * d) / norm / top, (a.im_ * c - a.re_ * d) / norm / top};
  }
  friend constexpr bool operator==(complex a, complex b) { return a.re_ == b.re_ && a.im_ == b.im_; }

 private:
  R re_, im_;
};
template <class R>
R abs(complex<R> z) {
  return ::hypot(z.real(), z.imag());
}
template <class R>
R norm(complex<R> z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <class R>
R arg(complex<R> z) {
  return ::atan2(z.imag(), z.real());
}
template <class R>
complex<R> conj(complex<R> z) {
  return {z.real(), -z.imag()};
}
template <class R>
complex<R> polar(R size, R angle) {
  return {size * ::cos(angle), size * ::sin(angle)};
}
template <class R>
complex<R> exp(complex<R> z) {
  const R size = ::exp(z.real());
  return z.imag() == 0 ? complex<R>(size, z.imag()) : complex<R>(size * ::cos(z.imag()), size * ::sin(z.imag()));
}
template <class R>
complex<R> log(complex<R> z) {
  return {::log(::hypot(z.real(), z.imag())), arg(z)};
}
template <class R>
complex<R> log10(complex<R> z) {
  return log(z) * R(0x1.bcb7b1526e50ep-2);
}
template <class R>
complex<R> pow(complex<R> a, complex<R> b) {
  return exp(b * log(a));
}
template <class R>
complex<R> sqrt(complex<R> z) {
  const R x = z.real(), y = z.imag(), infinite = numeric_limits<R>::infinity();
  if (::fabs(y) == infinite) return {infinite, y};
  if (x == 0 && y == 0) return {0, y};
  // Halved before the root so that neither the size nor the sum overflows.
  const R t = ::sqrt(R(0.5) * ::fabs(x) + ::hypot(R(0.5) * x, R(0.5) * y));
  return x >= 0 ? complex<R>(t, y / (2 * t)) : complex<R>(::fabs(y) / (2 * t), ::copysign(t, y));
}
template <class R>
complex<R> sinh(complex<R> z) {
  return {::sinh(z.real()) * ::cos(z.imag()), ::cosh(z.real()) * ::sin(z.imag())};
}
template <class R>
complex<R> cosh(complex<R> z) {
  return {::cosh(z.real()) * ::cos(z.imag()), ::sinh(z.real()) * ::sin(z.imag())};
}
template <class R>
complex<R> tanh(complex<R> z) {
  const R x = z.real(), y = z.imag();
  if (::fabs(x) > 20) return {::copysign(R(1), x), ::copysign(R(0), ::sin(2 * y))};
  const R t = ::tan(y), beta = 1 + t * t, s = ::sinh(x), rho = ::sqrt(1 + s * s);
  if (::fabs(t) == numeric_limits<R>::infinity()) return {rho / s, 1 / t};
  const R d = 1 + beta * s * s;
  return {beta * rho * s / d, t / d};
}
template <class R>
complex<R> turned(complex<R> z) {  // i z
  return {-z.imag(), z.real()};
}
template <class R>
complex<R> turned_back(complex<R> z) {  // -i z
  return {z.imag(), -z.real()};
}
template <class R>
complex<R> sin(complex<R> z) {
  return turned_back(sinh(turned(z)));
}
template <class R>
complex<R> cos(complex<R> z) {
  return cosh(turned(z));
}
template <class R>
complex<R> tan(complex<R> z) {
  return turned_back(tanh(turned(z)));
}
template <class R>
complex<R> asin(complex<R> z) {
  const complex<R> a = sqrt(R(1) - z), b = sqrt(R(1) + z);
  return {::atan2(z.real(), (a * b).real()), ::asinh((conj(a) * b).imag())};
}
template <class R>
complex<R> acos(complex<R> z) {
  const complex<R> a = sqrt(R(1) - z), b = sqrt(R(1) + z);
  return {2 * ::atan2(a.real(), b.real()), ::asinh((conj(b) * a).imag())};
}
template <class R>
complex<R> asinh(complex<R> z) {
  return turned_back(asin(turned(z)));
}
template <class R>
complex<R> acosh(complex<R> z) {
  const complex<R> a = sqrt(z - R(1)), b = sqrt(z + R(1));
  return {::asinh((conj(a) * b).real()), 2 * ::atan2(a.imag(), b.real())};
}
template <class R>
complex<R> atanh(complex<R> z) {
  const R x = z.real(), y = z.imag();
  return {R(0.25) * ::log1p(4 * x / ((1 - x) * (1 - x) + y * y)), R(0.5) * ::atan2(2 * y, (1 - x) * (1 + x) - y * y)};
}
template <class R>
complex<R> atan(complex<R> z) {
  return turned_back(atanh(turned(z)));
}

}  // namespace std
