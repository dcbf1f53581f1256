// Elementary functions of one real argument or two, as branch-free C++ that a compiler turns into vector code when it
// is inlined into a plain loop: float and double, error below 1 ulp (pow below 2), infinities, NaN, signed zeros and
// subnormal numbers as C's Annex F has them. Float functions compute in double with shorter polynomials, which costs
// little more than careful float arithmetic would and rounds almost always correctly.
//
// Polynomials are Chebyshev interpolants computed with mpmath at 260 bits; what each approximates stands beside it.
// Double-double arithmetic: T. J. Dekker, Numer. Math. 18 (1971) 224; D. E. Knuth, TAOCP 2, 4.2.2.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#ifdef __CUDACC__
#define RUSH_FN __device__ __forceinline__
#define RUSH_CALL __device__ __noinline__
#else
#define RUSH_FN [[gnu::always_inline]] inline
#define RUSH_CALL [[gnu::noinline]] inline
#endif

namespace rush::formula {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPi = 0x1.921fb54442d18p1, kPiLow = 0x1.1a62633145c07p-53;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
inline constexpr double kLog2E = 0x1.71547652b82fep0, kLog2ELow = 0x1.777d0ffda0d24p-56;
inline constexpr double kLog10E = 0x1.bcb7b1526e50ep-2, kLog10ELow = 0x1.95355baaafad3p-57;
inline constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

// ---- bits and small helpers

RUSH_FN uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }
RUSH_FN double from_bits(uint64_t u) { return std::bit_cast<double>(u); }
RUSH_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RUSH_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
RUSH_FN float abs(float x) { return __builtin_fabsf(x); }
RUSH_FN double abs(double x) { return __builtin_fabs(x); }
RUSH_FN int64_t abs(int64_t x) { return x < 0 ? int64_t(0 - uint64_t(x)) : x; }
RUSH_FN float copysign(float x, float y) { return __builtin_copysignf(x, y); }
RUSH_FN double copysign(double x, double y) { return __builtin_copysign(x, y); }
RUSH_FN float sqrt(float x) { return __builtin_sqrtf(x); }
RUSH_FN double sqrt(double x) { return __builtin_sqrt(x); }
RUSH_FN float floor(float x) { return __builtin_floorf(x); }
RUSH_FN double floor(double x) { return __builtin_floor(x); }
RUSH_FN float ceil(float x) { return __builtin_ceilf(x); }
RUSH_FN double ceil(double x) { return __builtin_ceil(x); }
RUSH_FN float trunc(float x) { return __builtin_truncf(x); }
RUSH_FN double trunc(double x) { return __builtin_trunc(x); }
/// To the nearest integer, ties to even.
RUSH_FN float round_even(float x) { return __builtin_rintf(x); }
RUSH_FN double round_even(double x) { return __builtin_rint(x); }

template <class T>
RUSH_FN bool is_nan(T x) {
  return x != x;
}

/// c0 + x (c1 + x (c2 + ...)).
RUSH_FN double poly(double, double c) { return c; }
template <class... Rest>
RUSH_FN double poly(double x, double c, Rest... rest) {
  return c + x * poly(x, rest...);
}
RUSH_FN float poly(float, float c) { return c; }
template <class... Rest>
RUSH_FN float poly(float x, float c, Rest... rest) {
  return c + x * poly(x, rest...);
}

// Adding 1.5 * 2^52 leaves the nearest integer in the low bits of the sum: a rounding and a conversion in one addition.
inline constexpr double kShift = 0x1.8p52;

/// 2^n for integral n in [-1022, 1023].
RUSH_FN double pow2(double n) { return from_bits(bits(n + (kShift + 1023)) << 52); }
inline constexpr float kShortShift = 0x1.8p23f;  // the same in float
RUSH_FN float pow2(float n) { return std::bit_cast<float>(std::bit_cast<uint32_t>(n + (kShortShift + 127)) << 23); }
/// x 2^n for integral |n| < 2000, rounded once where the result is normal.
RUSH_FN double scale(double x, double n) {
  const double half = (n * 0.5 + kShift) - kShift;
  return x * pow2(half) * pow2(n - half);
}

// ---- double-double: an unevaluated sum hi + lo

struct Dd {
  double hi, lo;
};
RUSH_FN Dd fast_two_sum(double a, double b) {  // |a| >= |b| or a == 0
  const double s = a + b;
  return {s, b - (s - a)};
}
RUSH_FN Dd two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
RUSH_FN Dd two_prod(double a, double b) {
  const double p = a * b;
  return {p, fma(a, b, -p)};
}
RUSH_FN Dd operator-(Dd a) { return {-a.hi, -a.lo}; }
RUSH_FN Dd operator+(Dd a, Dd b) {
  const Dd s = two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}
RUSH_FN Dd operator+(Dd a, double b) { return a + Dd{b, 0}; }
RUSH_FN Dd operator*(Dd a, Dd b) {
  const Dd p = two_prod(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
RUSH_FN Dd operator*(Dd a, double b) { return a * Dd{b, 0}; }
RUSH_FN Dd operator/(Dd a, Dd b) {
  const double q = a.hi / b.hi;
  const double rest = fma(-q, b.hi, a.hi) + (a.lo - q * b.lo);
  return fast_two_sum(q, rest / b.hi);
}
RUSH_FN Dd sqrt(Dd a) {
  const double r = sqrt(a.hi);
  const double rest = fma(-r, r, a.hi) + a.lo;
  return fast_two_sum(r, r > 0 ? rest / (2 * r) : 0.0);
}
// For what is written once for a double and for a Dd.
RUSH_FN Dd two_sum(Dd a, double b) { return a + b; }
RUSH_FN Dd two_prod(Dd a, Dd b) { return a * b; }
RUSH_FN Dd select(bool c, Dd a, Dd b) { return {c ? a.hi : b.hi, c ? a.lo : b.lo}; }

// ---- exponentials: x = n ln 2 + r, |r| <= 0.347; (e^r - 1 - r - r^2/2) / r^3 as a polynomial

RUSH_FN double exp_tail(double r) {
  return poly(r, 0x1.5555555555555p-3, 0x1.5555555555556p-5, 0x1.1111111111111p-7, 0x1.6c16c16c162bfp-10,
              0x1.a01a01a019b1ep-13, 0x1.a01a01a6e448ep-16, 0x1.71de3a590b642p-19, 0x1.27e4db3f36203p-22,
              0x1.ae643422506eep-26, 0x1.1f7350a074034p-29, 0x1.61b309dbf514fp-33);
}
/// The same to 2^-31 of e^r, for results in float.
RUSH_FN double exp_tail_short(double r) {
  return poly(r, 0x1.5555555555555p-3, 0x1.555518e792b4fp-5, 0x1.1110f637b53d2p-7, 0x1.6d119a5621764p-10,
              0x1.a0f8ed70b5029p-13);
}
template <bool kShort>
RUSH_FN double exp_m1_reduced(double r) {
  const double q = kShort ? exp_tail_short(r) : exp_tail(r);
  return r + r * r * (0.5 + r * q);
}
RUSH_FN double clamp_exponent(double x) { return x > 800 ? 800 : (x < -800 ? -800 : x); }

/// e^x 2^extra.
template <bool kShort = false>
RUSH_FN double exp_scaled(double x, double extra) {
  x = clamp_exponent(x);
  const double n = (x * kLog2E + kShift) - kShift;
  const double r = fma(-n, kLn2Low, fma(-n, kLn2, x));
  return scale(1 + exp_m1_reduced<kShort>(r), n + extra);
}
/// e^x to 2^-31 for |x| < 700.
RUSH_FN double exp_short(double x) {
  const double n = (x * kLog2E + kShift) - kShift;
  const double r = fma(-n, kLn2, x);
  const double s = pow2(n);
  return s + s * exp_m1_reduced<true>(r);
}
/// e^x - 1 to 2^-31 of itself for |x| < 700.
RUSH_FN double expm1_short(double x) {
  const double n = (x * kLog2E + kShift) - kShift;
  const double r = fma(-n, kLn2, x);
  const double s = pow2(n);
  return (s - 1) + s * exp_m1_reduced<true>(r);
}
/// e^r - 1 of the reduced argument, with 2^-58 of error, and n: e^x = 2^n (1 + m).
struct ExpParts {
  Dd m;
  double n;
};
RUSH_FN ExpParts exp_parts(Dd x) {
  const double n = (x.hi * kLog2E + kShift) - kShift;
  const Dd r = Dd{fma(-n, kLn2, x.hi), x.lo} + -n * kLn2Low;
  const Dd square = two_prod(r.hi, r.hi);
  const Dd head = two_sum(r.hi, 0.5 * square.hi);
  const double tail = r.hi * square.hi * exp_tail(r.hi);
  return {fast_two_sum(head.hi, head.lo + (r.lo + (0.5 * square.lo + r.hi * r.lo) + tail)), n};
}
/// e^x - 1 for |x| < 700.
RUSH_FN Dd expm1_dd(Dd x) {
  const ExpParts p = exp_parts(x);
  const double s = pow2(p.n);
  return two_sum(s, -1) + Dd{s * p.m.hi, s * p.m.lo};
}
/// e^x for |x| < 700.
RUSH_FN Dd exp_dd(Dd x) {
  const ExpParts p = exp_parts(x);
  const Dd y = two_sum(1, p.m.hi) + Dd{p.m.lo, 0};
  const double s = pow2(p.n);
  return {s * y.hi, s * y.lo};
}
/// e^x, any x.
RUSH_FN double exp_of(Dd x) {
  const ExpParts p = exp_parts({clamp_exponent(x.hi), abs(x.hi) < 800 ? x.lo : 0});
  const Dd one_more = two_sum(1, p.m.hi);
  return scale(one_more.hi + (one_more.lo + p.m.lo), p.n);
}

RUSH_FN double exp(double x) { return exp_scaled(x, 0); }
/// Its own in float: it is the most used. 1.0 ulp at most.
RUSH_FN float exp(float x) {
  x = x > 100 ? 100 : (x < -110 ? -110 : x);
  const float n = (x * float(kLog2E) + kShortShift) - kShortShift;
  const float r = fma(-n, -0x1.05c610p-29f, fma(-n, 0x1.62e430p-1f, x));
  const float q = poly(r, 0x1.0000000cp-1f, 0x1.5555555ap-3f, 0x1.5554e8e8p-5f, 0x1.1110e0e6p-7f, 0x1.6d434d32p-10f,
                       0x1.a12515dap-13f);
  const float p = 1 + (r + r * r * q);
  const float half = (n * 0.5f + kShortShift) - kShortShift;
  return p * pow2(half) * pow2(n - half);
}
/// 2^x = power + power * m to 2^-23, |x| < 126.
struct Exp2Parts {
  float power, m;
};
RUSH_FN Exp2Parts exp2_rough(float x) {
  const float n = (x + kShortShift) - kShortShift, f = x - n;
  return {pow2(n), f * poly(f, 0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6af6cp-5f, 0x1.3b2a54p-7f, 0x1.5f0890p-10f,
                            0x1.44138ap-13f)};
}
RUSH_FN double exp2(double x) {
  x = x > 2000 ? 2000 : (x < -2000 ? -2000 : x);
  const double n = (x + kShift) - kShift, f = x - n;
  const Dd r = two_prod(f, kLn2);
  const double low = r.lo + f * kLn2Low;
  const double m = r.hi + (low + r.hi * r.hi * (0.5 + r.hi * exp_tail(r.hi)));
  return scale(1 + m, n < -1100 ? -1100 : (n > 1100 ? 1100 : n));
}
RUSH_FN float exp2(float x) {
  const double y = x > 200 ? 200 : (x < -200 ? -200 : x);
  return float(exp_short(y * kLn2));
}
RUSH_FN double expm1(double x) {
  const double y = x > 690 ? 690 : (x < -50 ? -50 : x);
  const Dd e = expm1_dd({y, 0});
  const double small = e.hi + e.lo;
  return abs(x) < 0x1p-55 ? x : (x > 690 ? exp_scaled(x, 0) : small);
}
RUSH_FN float expm1(float x) {
  const double y = x > 100 ? 100 : (x < -50 ? -50 : x);
  return abs(x) < 0x1p-25f ? x : float(expm1_short(y));
}

// ---- hyperbolic functions, from e^x - 1

RUSH_FN double sinh(double x) {
  const double a = abs(x);
  const Dd e = expm1_dd({a > 40 ? 40 : a, 0});
  const Dd s = e + e / (e + 1);
  const double y = a > 40 ? exp_scaled(a, -1) : 0.5 * (s.hi + s.lo);
  return a < 0x1p-28 ? x : copysign(y, x);
}
RUSH_FN double cosh(double x) {
  const double a = abs(x);
  const Dd e = expm1_dd({a > 40 ? 40 : a, 0}) + 1;
  const Dd s = e + Dd{1, 0} / e;
  return a > 40 ? exp_scaled(a, -1) : 0.5 * (s.hi + s.lo);
}
RUSH_FN double tanh(double x) {
  const double a = abs(x);
  const Dd e = expm1_dd({a > 22 ? 44 : 2 * a, 0});
  const Dd t = e / (e + 2);
  return a < 0x1p-28 ? x : copysign(t.hi + t.lo, x);
}
RUSH_FN float sinh(float x) {
  const double a = abs(x), e = expm1_short(a > 100 ? 100 : a);
  return abs(x) < 0x1p-12f ? x : copysign(float(0.5 * (e + e / (e + 1))), x);
}
RUSH_FN float cosh(float x) {
  const double a = abs(x), e = exp_short(a > 100 ? 100 : a);
  return float(0.5 * (e + 1 / e));
}
RUSH_FN float tanh(float x) {
  const double a = abs(x), e = expm1_short(a > 11 ? 22 : 2 * a);
  return abs(x) < 0x1p-12f ? x : copysign(float(e / (e + 2)), x);
}
/// 1 / (1 + e^-x).
RUSH_FN double sigmoid(double x) {
  const double a = abs(x);
  const Dd e = exp_dd({a > 700 ? -700 : -a, 0});
  const Dd y = (x < 0 ? e : Dd{1, 0}) / (e + 1);
  return x < -700 ? exp_scaled(x, 0) : y.hi + y.lo;
}
RUSH_FN float sigmoid(float x) {
  const float y = x > 100 ? -100 : (x < -110 ? 110 : -x);
  return float(1 / (1 + exp_short(y)));
}

// ---- logarithms: x = 2^k m, sqrt(1/2) <= m < sqrt(2); log m = 2 atanh s, s = (m - 1) / (m + 1)

struct LogParts {
  double m, k;
};
RUSH_FN LogParts log_parts(double x) {  // x > 0 and finite
  constexpr uint64_t root = 0x3fe6a09e667f3bcd;
  const bool tiny = x < 0x1p-1022;
  const uint64_t u = bits(tiny ? x * 0x1p54 : x) + (0x3ff0000000000000 - root);
  const double k = from_bits((u >> 52) | 0x4330000000000000) - (tiny ? 0x1p52 + 1023 + 54 : 0x1p52 + 1023);
  return {from_bits((u & 0x000fffffffffffff) + root), k};
}
/// What log is at the ends and outside of its domain; y elsewhere.
RUSH_FN double log_domain(double x, double y) { return x > 0 ? (x < kInf ? y : x) : (x == 0 ? -kInf : kNan); }
/// (2 atanh s - 2 s) / s^3 in z = s^2, to 2^-35 of the logarithm.
RUSH_FN double atanh_tail_short(double z) {
  return poly(z, 0x1.5555554b4d3ccp-1, 0x1.9999ede294843p-2, 0x1.245b27112cd29p-2, 0x1.de0b02165e769p-3);
}
RUSH_FN double log_short(double x) {  // x > 0, finite, normal
  const LogParts p = log_parts(x);
  const double s = (p.m - 1) / (p.m + 1), z = s * s;
  return p.k * kLn2 + (2 * s + s * z * atanh_tail_short(z));
}
/// k ln 2 + log(1 + f), sqrt(1/2) <= 1 + f < sqrt(2): 2^-65 of error.
RUSH_FN Dd log_dd_reduced(Dd f, double k) {
  const Dd s = f / (f + 2), z = s * s;
  // 2 s + s z (2/3 + z tail): the first two coefficients in double-double.
  const double tail = poly(z.hi, 0x1.999999999999ap-2, 0x1.249249249252cp-2, 0x1.c71c71c6e78a1p-3, 0x1.745d177d4ef6cp-3,
                           0x1.3b1394b0a7753p-3, 0x1.11190514d902bp-3, 0x1.df700c050c69dp-4, 0x1.e0b2fadc317e7p-4);
  const Dd third = fast_two_sum(0x1.5555555555555p-1, z.hi * tail + 0x1.5555555555555p-55);
  const Dd y = Dd{2 * s.hi, 2 * s.lo} + s * z * third;
  const Dd kln2 = two_prod(k, kLn2);
  return Dd{kln2.hi, kln2.lo + k * kLn2Low} + y;
}
RUSH_FN Dd log_dd(double x) {
  const LogParts p = log_parts(x);
  return log_dd_reduced({p.m - 1, 0}, p.k);
}
RUSH_FN Dd log_dd(Dd x) {
  const LogParts p = log_parts(x.hi);
  return log_dd_reduced(two_sum(p.m - 1, scale(x.lo, -p.k)), p.k);
}
/// log x = whole + f - rest, where whole and f are exact and rest is less than 0.1.
struct LogTerms {
  double whole, f, rest;
};
RUSH_FN LogTerms log_terms(double x) {  // x > 0 and finite
  const LogParts p = log_parts(x);
  const double f = p.m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  const double tail =
      z * poly(z, 0x1.5555555555555p-1, 0x1.9999999999a43p-2, 0x1.249249247513dp-2, 0x1.c71c7204621fep-3,
               0x1.745cf7c1d5dafp-3, 0x1.3b1c79943fca2p-3, 0x1.0fb77bcdefa76p-3, 0x1.0c4d8297b1431p-3);
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + tail)), and k times a short ln 2 is exact.
  constexpr double ln2_short = 0x1.62e42feep-1, ln2_rest = 0x1.a39ef35793c76p-33;
  return {p.k * ln2_short, f, half - (s * (half + tail) + p.k * ln2_rest)};
}
RUSH_FN double log(double x) {  // the largest terms are added last
  const LogTerms t = log_terms(x);
  return log_domain(x, t.whole - (t.rest - t.f));
}
/// log x with 2^-56 of absolute error and, next to 1, 2^-56 of itself: half the work of log_dd.
RUSH_FN Dd log_sum(double x) {  // x > 0 and finite
  const LogTerms t = log_terms(x);
  const Dd s = fast_two_sum(t.whole, t.f);
  return fast_two_sum(s.hi, s.lo - t.rest);
}
RUSH_FN double log2(double x) { return log_domain(x, (log_dd(x) * Dd{kLog2E, kLog2ELow}).hi); }
RUSH_FN double log10(double x) { return log_domain(x, (log_dd(x) * Dd{kLog10E, kLog10ELow}).hi); }
RUSH_FN double log1p(double x) {
  const Dd u = two_sum(1, x);
  const double y = log_domain(u.hi, log_dd(u).hi);
  return abs(x) < 0x1p-54 ? x : y;
}
RUSH_FN float log(float x) { return float(log_domain(x, log_short(x))); }
RUSH_FN float log2(float x) { return float(log_domain(x, log_short(x) * kLog2E)); }
RUSH_FN float log10(float x) { return float(log_domain(x, log_short(x) * kLog10E)); }
RUSH_FN float log1p(float x) {
  const double u = 1 + double(x);
  return abs(x) < 0x1p-25f ? x : float(log_domain(u, log_short(u)));
}

// ---- inverse hyperbolic functions, as logarithms

RUSH_FN double asinh(double x) {
  const double a = abs(x), b = a > 0x1p40 ? 0x1p40 : a;
  const Dd y = log_dd(sqrt(two_prod(b, b) + 1) + b);
  return a < 0x1p-28 ? x : copysign(a > 0x1p30 ? log(a * 0.5) + 2 * kLn2 : y.hi, x);
}
RUSH_FN double acosh(double x) {
  const double b = x > 0x1p40 ? 0x1p40 : x;
  const Dd y = log_dd(sqrt(two_prod(b, b) + -1) + b);
  return x < 1 ? kNan : (x > 0x1p30 ? log(x * 0.5) + 2 * kLn2 : y.hi);
}
RUSH_FN double atanh(double x) {
  const double a = abs(x);
  const Dd y = log_dd(two_sum(1, a) / two_sum(1, -a));
  const double z = a < 0x1p-28 ? a : (a < 1 ? 0.5 * y.hi : (a == 1 ? kInf : kNan));
  return is_nan(x) ? x : copysign(z, x);
}
RUSH_FN float asinh(float x) {
  const double a = abs(x);
  const float y = float(log_short(a + sqrt(a * a + 1)));
  return abs(x) < 0x1p-12f || !(a < kInf) ? x : copysign(y, x);
}
RUSH_FN float acosh(float x) {
  const double a = x;
  const double y = log_short(a + sqrt((a - 1) * (a + 1)));
  return x < 1 ? float(kNan) : (x < float(kInf) ? float(y) : x);
}
RUSH_FN float atanh(float x) {
  const double a = abs(x);
  const double y = 0.5 * log_short((1 + a) / (1 - a));
  const double z = a < 1 ? y : (a == 1 ? kInf : kNan);
  return abs(x) < 0x1p-12f || is_nan(x) ? x : copysign(float(z), x);
}

// ---- trigonometric functions: x = n pi/2 + r, |r| <= pi/4 (Cody and Waite 1980, with exact fused products)

/// Beyond these the reduction needs more of pi than three doubles; the loops send such elements to std::sin and so on.
RUSH_FN bool trig_is_hard(double x) { return !(abs(x) < 0x1p27); }
RUSH_FN bool trig_is_hard(float x) { return !(abs(x) < 0x1p29f); }

struct Reduced {
  Dd r;
  uint64_t quadrant;  // its low two bits
};
/// x - n pi/2 for a whole or half n that leaves less than 1.
RUSH_FN Dd without_quarters(double x, double n) {
  const Dd second = two_prod(n, kPiLow / 2);
  const Dd r = two_sum(fma(-n, kPi / 2, x), -second.hi);
  return {r.hi, r.lo - second.lo + n * 0x1.f1976b7ed8fbcp-110};
}
RUSH_FN Reduced reduce_trig(double x) {
  const double shifted = x * (2 / kPi) + kShift;
  return {without_quarters(x, shifted - kShift), bits(shifted)};
}
RUSH_FN Dd sin_reduced(Dd r) {
  const double z = r.hi * r.hi;
  const double tail =
      z * poly(z, -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019926p-13, 0x1.71de3a545e700p-19,
               -0x1.ae64540f0ba18p-26, 0x1.61217c1864fa1p-33, -0x1.ab161757f0c63p-41);
  return fast_two_sum(r.hi, r.hi * tail + r.lo * (1 - 0.5 * z));
}
RUSH_FN Dd cos_reduced(Dd r) {
  const Dd z = two_prod(r.hi, r.hi);
  const double tail =
      z.hi * z.hi *
      poly(z.hi, 0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d02p-16, -0x1.27e4fb7711e1dp-22,
           0x1.1eed8de9ef73ep-29, -0x1.9394b76d1f265p-37, 0x1.ab76cf6e9b365p-45);
  const Dd head = fast_two_sum(1, -0.5 * z.hi);
  return fast_two_sum(head.hi, head.lo + (tail - 0.5 * z.lo - r.hi * r.lo));
}
RUSH_FN double flip_sign(double x, uint64_t quadrant) { return from_bits(bits(x) ^ ((quadrant & 2) << 62)); }
RUSH_FN double sin_quadrant(Reduced a, uint64_t turn) {
  const Dd s = sin_reduced(a.r), c = cos_reduced(a.r);
  return flip_sign((a.quadrant + turn) & 1 ? c.hi : s.hi, a.quadrant + turn);
}
RUSH_FN double sin(double x) { return abs(x) < 0x1p-28 ? x : sin_quadrant(reduce_trig(x), 0); }
RUSH_FN double cos(double x) { return sin_quadrant(reduce_trig(x), 1); }
RUSH_FN double tan(double x) {
  const Reduced a = reduce_trig(x);
  const Dd s = sin_reduced(a.r), c = cos_reduced(a.r);
  const bool odd = a.quadrant & 1;
  const Dd t = select(odd, -c, s) / select(odd, s, c);
  return abs(x) < 0x1p-28 ? x : t.hi;
}
struct ReducedShort {
  double sin, cos;
  uint64_t quadrant;
};
RUSH_FN ReducedShort sin_cos_short(double x) {
  const double shifted = x * (2 / kPi) + kShift, n = shifted - kShift;
  const double r = fma(-n, kPiLow / 2, fma(-n, kPi / 2, x)), z = r * r;
  const double s =
      r + r * z * poly(z, -0x1.555555545c0f8p-3, 0x1.11110dea5e8c0p-7, -0x1.a013a11619d1bp-13, 0x1.6dbbee1f24647p-19);
  const double c = 1 - 0.5 * z + z * z * poly(z, 0x1.5555543fd0b8fp-5, -0x1.6c12ceea84a52p-10, 0x1.9bd670a50ba0cp-16);
  return {s, c, bits(shifted)};
}
RUSH_FN float sin(float x) {
  const ReducedShort a = sin_cos_short(x);
  return abs(x) < 0x1p-12f ? x : float(flip_sign(a.quadrant & 1 ? a.cos : a.sin, a.quadrant));
}
RUSH_FN float cos(float x) {
  const ReducedShort a = sin_cos_short(x);
  return float(flip_sign(a.quadrant & 1 ? a.sin : a.cos, a.quadrant + 1));
}
RUSH_FN float tan(float x) {
  const ReducedShort a = sin_cos_short(x);
  const bool odd = a.quadrant & 1;
  return abs(x) < 0x1p-12f ? x : float((odd ? -a.cos : a.sin) / (odd ? a.sin : a.cos));
}

// ---- inverse trigonometric functions, all through the angle of a point (c, s) with s, c >= 0

/// (atan t - t) / t^3 in z = t^2, |t| <= tan(pi/8).
RUSH_FN double atan_tail(double z) {
  return poly(z, -0x1.5555555555555p-2, 0x1.9999999999996p-3, -0x1.2492492492099p-3, 0x1.c71c71c6dc99ep-4,
              -0x1.745d17352094dp-4, 0x1.3b13aea08584bp-4, -0x1.1110ce17fe8c4p-4, 0x1.e1d8d219a7bbdp-5,
              -0x1.aebc3aae6ea6ep-5, 0x1.82972e612307dp-5, -0x1.50253ac88b1f2p-5, 0x1.f584cc2ef7db9p-6,
              -0x1.c73ae7f95c48fp-7);
}
RUSH_FN double atan_tail_short(double z) {
  return poly(z, -0x1.5555554bf0304p-2, 0x1.99997acb9f7aap-3, -0x1.248a0803f2240p-3, 0x1.c5797b083068dp-4,
              -0x1.6133ecd2c7badp-4, 0x1.9d36cc03059f8p-5);
}
/// atan(s / c), in [0, pi/2]. The three cases turn by 0, pi/4 and pi/2.
RUSH_FN Dd angle(Dd s, Dd c) {
  const bool low = s.hi <= 0.41421356 * c.hi, high = s.hi > 2.41421356 * c.hi;
  const Dd t = select(low, s, select(high, -c, s + -c)) / select(low, c, select(high, s, s + c));
  const double turn = low ? 0 : (high ? kPi / 2 : kPi / 4), turn_low = low ? 0 : (high ? kPiLow / 2 : kPiLow / 4);
  const double z = t.hi * t.hi;
  const Dd y = two_sum(turn, t.hi);
  return fast_two_sum(y.hi, y.lo + (t.lo + turn_low + t.hi * z * atan_tail(z)));
}
RUSH_FN double angle_short(double s, double c) {
  const bool low = s <= 0.41421356 * c, high = s > 2.41421356 * c;
  const double t = (low ? s : (high ? -c : s - c)) / (low ? c : (high ? s : s + c)), z = t * t;
  return (low ? 0 : (high ? kPi / 2 : kPi / 4)) + (t + t * z * atan_tail_short(z));
}
RUSH_FN double atan(double x) {
  const double a = abs(x);
  const Dd y = angle({a < 0x1p500 ? a : 0x1p500, 0}, {1, 0});
  return a < 0x1p-28 || is_nan(x) ? x : copysign(y.hi, x);
}
RUSH_FN double asin(double x) {
  const double a = abs(x);
  const Dd y = angle({a, 0}, sqrt(two_sum(1, -a) * two_sum(1, a)));
  return a < 0x1p-28 ? x : (a <= 1 ? copysign(y.hi, x) : kNan);
}
RUSH_FN double acos(double x) {
  const double a = abs(x);
  const Dd y = angle(sqrt(two_sum(1, -a) * two_sum(1, a)), {a, 0});
  const Dd turned = Dd{kPi, kPiLow} + -y;
  return a <= 1 ? (x < 0 ? turned.hi : y.hi) : kNan;
}
RUSH_FN float atan(float x) {
  const double a = abs(x), y = angle_short(a < 1e30 ? a : 1e30, 1);
  return abs(x) < 0x1p-12f || is_nan(x) ? x : copysign(float(y), x);
}
RUSH_FN float asin(float x) {
  const double a = abs(x), y = angle_short(a, sqrt((1 - a) * (1 + a)));
  return abs(x) < 0x1p-12f ? x : (a <= 1 ? copysign(float(y), x) : float(kNan));
}
RUSH_FN float acos(float x) {
  const double a = abs(x), y = angle_short(sqrt((1 - a) * (1 + a)), a);
  return a <= 1 ? float(x < 0 ? kPi - y : y) : float(kNan);
}
RUSH_FN double atan2(double y, double x) {
  const double a = abs(y), b = abs(x), top = a > b ? a : b;
  const bool even = a == b, infinite = top == kInf;  // even: both zero, both infinite, or simply equal
  const double unit = top > 0x1p1000 ? 0x1p-4 : (top < 0x1p-700 ? 0x1p300 : 1);
  const double s = even ? (a == 0 ? 0.0 : 1.0) : (infinite ? (a == kInf ? 1.0 : 0.0) : a * unit);
  const double c = even ? 1.0 : (infinite ? (b == kInf ? 1.0 : 0.0) : b * unit);
  const Dd t = angle({s, 0}, {c, 0});
  const Dd turned = Dd{kPi, kPiLow} + -t;
  return is_nan(x) || is_nan(y) ? kNan : copysign(bits(x) >> 63 ? turned.hi : t.hi, y);
}
RUSH_FN float atan2(float y, float x) {
  const double a = abs(y), b = abs(x);
  const bool even = a == b;  // both zero, both infinite, or simply equal
  const double t =
      angle_short(even ? (a == 0 ? 0.0 : 1.0) : (a < 1e300 ? a : 1e300), even ? 1.0 : (b < 1e300 ? b : 1e300));
  const bool left = std::bit_cast<uint32_t>(x) >> 31;
  return is_nan(x) || is_nan(y) ? float(kNan) : copysign(float(left ? kPi - t : t), y);
}

// ---- powers and roots

/// 1 - x r^2 is computed as 1 - (x r) r, none of whose terms underflows.
RUSH_FN double rsqrt(double x) {
  const double r = 1 / sqrt(x), root = x * r;
  const double error = fma(-root, r, 1) - fma(x, r, -root) * r;
  return r > 0 && r < kInf ? r + 0.5 * r * error : r;
}
RUSH_FN float rsqrt(float x) { return float(1 / sqrt(double(x))); }

/// The cases of x^y that are not |x|^y by its logarithm (C Annex F.10.4.4); `magnitude` is |x|^y elsewhere.
template <class T>
RUSH_FN T pow_cases(T x, T y, T magnitude) {
  const T a = abs(x), inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  // Without && and ||, which would be branches.
  const bool whole = trunc(y) == y, odd = whole & (trunc(y * T(0.5)) != y * T(0.5)), negative = copysign(T(1), x) < 0;
  T m = magnitude;
  m = a == 0 ? (y > 0 ? T(0) : inf) : m;
  m = a == inf ? (y > 0 ? inf : T(0)) : m;
  const T at_infinity = (a > 1 ? y : -y) > 0 ? inf : T(0);
  m = abs(y) == inf ? (a == 1 ? T(1) : at_infinity) : m;
  m = negative & odd ? -m : m;
  m = negative & !whole & (a > 0) & (a < inf) ? nan : m;
  m = is_nan(x) | is_nan(y) ? nan : m;
  return (y == 0) | (x == 1) ? T(1) : m;
}
RUSH_FN double pow(double x, double y) {
  const double a = abs(x), b = y > 0x1p70 ? 0x1p70 : (y < -0x1p70 ? -0x1p70 : y);
  const Dd l = log_dd((a > 0) & (a < kInf) ? a : 1.0);
  return pow_cases(x, y, exp_of(l * b));
}
RUSH_FN float pow(float x, float y) {
  const double a = abs(x), l = log_short((a > 0) & (a < kInf) ? a : 1) * double(y);
  return pow_cases(x, y, float(exp_short(l > 200 ? 200 : (l < -200 ? -200 : l))));
}
RUSH_FN double hypot(double x, double y) {
  const double a = abs(x), b = abs(y), top = a > b ? a : b;
  const bool large = top > 0x1p500, small = top < 0x1p-500;
  const double unit = large ? 0x1p-600 : (small ? 0x1p600 : 1.0), back = large ? 0x1p600 : (small ? 0x1p-600 : 1.0);
  const Dd square = two_prod(a * unit, a * unit) + two_prod(b * unit, b * unit);
  return a == kInf || b == kInf ? kInf : sqrt(square).hi * back;
}
RUSH_FN float hypot(float x, float y) {
  const double a = x, b = y;
  return abs(a) == kInf || abs(b) == kInf ? float(kInf) : float(sqrt(a * a + b * b));
}

// ---- error functions

/// erf(x)/x - 1 in z = x^2 <= 1 (DLMF 7.6.1).
RUSH_FN double erf_small(double z) {
  return poly(z, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6,
              0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
              0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
              0x1.05ffd737fb32ep-34);
}
/// (1 + 2x) e^(x^2) erfc(x) for x >= 0 in t = (x - 3.75) / (x + 3.75) (Shepherd and Laframboise, Math. Comp. 36
/// (1981)).
RUSH_FN Dd erfcx_scaled(Dd t) {
  const double tail = poly(t.hi, -0x1.1f367683f89a7p-3, 0x1.d5f2948159d0ep-9, 0x1.510169d0967ffp-4,
                           -0x1.bda9309a2886ap-4, 0x1.7a14188a99ba8p-4, -0x1.e0d0fa6e016bdp-5, 0x1.d0b0037dcada7p-6,
                           -0x1.3f603c3390a8cp-7, 0x1.cc3a0e22f1e70p-10, 0x1.33fb24531619cp-12, -0x1.303f9d9e6c0fcp-12,
                           0x1.b14449e36dfd0p-15, 0x1.778a2b0123c46p-16, -0x1.800892b72d256p-17, -0x1.0525a3b8c42dcp-20,
                           0x1.d6b54b85aaa23p-20, -0x1.f47cc3f3e65dbp-25, -0x1.18861c22d0895p-22, 0x1.a15251a93b443p-26,
                           0x1.60d2a8678ffb0p-25, -0x1.2db22103e3782p-28, -0x1.c60492c65c21fp-28, 0x1.2c33ebf882d4ep-31,
                           0x1.fbb13569c412dp-31, -0x1.4a9f17de048d3p-35, -0x1.5129d954e2161p-34);
  return two_sum(0x1.3ccda0b5d5dc2p+0, t.hi * tail + (t.lo * -0.14 + 0x1.e65b158f28ce5p-54));
}
RUSH_FN double erfcx_scaled_short(double t) {
  return poly(t, 0x1.3ccda080af1f5p+0, -0x1.1f3677c7cb078p-3, 0x1.d61099333c1ebp-9, 0x1.51022019f01b1p-4,
              -0x1.bdb45cbbd0ddfp-4, 0x1.7a0bc19eed5c0p-4, -0x1.e06d8a4eacdd0p-5, 0x1.d13f7a81e6362p-6,
              -0x1.429df7220951cp-7, 0x1.baac3439fdcbbp-10, 0x1.9ff997294e33ep-12, -0x1.dfb7bc64f38c2p-13);
}
/// e^(x^2) erfc(x) for x >= 0, a double or a Dd.
template <class X>
RUSH_FN Dd erfcx_positive(X x) {
  const Dd t = two_sum(x, -3.75) / two_sum(x, 3.75);
  return erfcx_scaled(t) / two_sum(x * 2, 1);
}
/// erfc(a), 0 <= a < 30, a double or a Dd.
template <class X>
RUSH_FN Dd erfc_positive(X a) {
  const Dd q = erfcx_positive(a);
  const ExpParts e = exp_parts(-two_prod(a, a));
  const Dd y = q * (two_sum(1, e.m.hi) + Dd{e.m.lo, 0});
  return {scale(y.hi, e.n), scale(y.lo, e.n)};
}
// Below 0.75 erf comes from its series, and below 0.5, where it cancels little, erfc from erf; above, the other way
// round.
RUSH_FN double erf(double x) {
  const double a = abs(x);
  const double small = a + a * erf_small(a < 1 ? a * a : 1);
  return is_nan(x) ? x : copysign(a < 0.75 ? small : (Dd{1, 0} + -erfc_positive(a < 28 ? a : 28.0)).hi, x);
}
RUSH_FN double erfc(double x) {
  const double a = abs(x);
  const Dd y = erfc_positive(a < 28 ? a : 28.0);
  const Dd near = two_sum(1, -x) + -Dd{x * erf_small(a < 1 ? a * a : 1), 0};
  return is_nan(x) ? x : (a < 0.5 ? near.hi : (x < 0 ? (Dd{2, 0} + -y).hi : y.hi));
}
RUSH_FN double erfc_positive_short(double a) {
  a = a < 12 ? a : 12;
  const double t = (a - 3.75) / (a + 3.75);
  return exp_short(-a * a) * erfcx_scaled_short(t) / (1 + 2 * a);
}
// In float the tails are powers of two whose exponents are polynomials, which needs no division.
RUSH_FN float erf(float x) {
  const float a = abs(x), z = a * a, b = a > 4 ? 4 : a;
  const float small = a + a * poly(z, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2d11p-4f, -0x1.b7fabap-6f, 0x1.541270p-8f,
                                   -0x1.a4508ap-11f, 0x1.4a5690p-14f);
  const float log2_erfc =
      b * poly(b, -0x1.a0be84p+0f, -0x1.d63ecep-1f, -0x1.2fa882p-3f, 0x1.c3f974p-6f, 0x1.868608p-12f, -0x1.58bac0p-9f,
               0x1.23eb90p-10f, -0x1.1c8a8ep-12f, 0x1.5bdc54p-15f, -0x1.ef7794p-19f, 0x1.3a2594p-23f);
  const Exp2Parts e = exp2_rough(log2_erfc);
  return is_nan(x) ? x : copysign(a < 1 ? small : (1 - e.power) - e.power * e.m, x);
}
/// The normal distribution's upper tail, erfc(a / sqrt 2) / 2, for a >= 0; 0 from 6 on, where it is 1e-9.
RUSH_FN float normal_tail(float a) {
  const float b = a < 6 ? a : 6;
  const float log2_twice =
      b * poly(b, -0x1.26aec2p+0f, -0x1.d63f06p-2f, -0x1.ad6316p-5f, 0x1.c2d312p-8f, 0x1.7e6f84p-14f, -0x1.6efa4cp-12f,
               0x1.cb17c0p-14f, -0x1.5a1f9cp-16f, 0x1.5f18cep-19f, -0x1.d64226p-23f, 0x1.78fa12p-27f, -0x1.1235b6p-32f);
  const Exp2Parts e = exp2_rough(log2_twice);
  return is_nan(a) ? a : (a < 6 ? 0.5f * (e.power + e.power * e.m) : 0.0f);
}
RUSH_FN double normal_tail(double a) { return 0.5 * erfc(a * kSqrtHalf); }
RUSH_FN float erfc(float x) {
  const double y = erfc_positive_short(abs(x));
  return is_nan(x) ? x : float(x < 0 ? 2 - y : y);
}

}  // namespace rush::formula
