// Special functions of double arguments (float and half results are rounded from them). They branch and iterate:
// they are used rarely, and then accuracy counts for more than speed. Those whose names end in _short are for float
// arguments and results and branch-free. DLMF is the NIST Digital Library of Mathematical
// Functions, whose sections are cited.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/math.h"

namespace rush::formula::special {

/// y (y + 1) ... (y + steps) and its derivative; without a loop, which would keep one around it from being vectorised.
struct Rising {
  double product, derivative;
};
template <int steps>
RUSH_FN Rising rising(double y) {
  if constexpr (steps == 0) {
    return {y, 1};
  } else {
    const Rising before = rising<steps - 1>(y);
    return {before.product * (y + steps), before.derivative * (y + steps) + before.product};
  }
}
struct HalfAngle {
  double sin, cos;
};
/// Of pi x / 2, |x| <= 1/2.
RUSH_FN HalfAngle half_angle(double x) {
  const Dd angle{kPi / 2 * x, 0};
  return {sin_reduced(angle).hi, cos_reduced(angle).hi};
}
/// Up to 5/2 a polynomial that has the zeros apart, then DLMF 5.11.1 after the recurrence 5.5.1; reflection 5.5.3.
RUSH_FN double lgamma_short(double x) {
  const bool left = x < 0.5;
  const double y = left ? 1 - x : x, fraction = x - round_even(x);
  const bool central = y < 2.5, low = y < 12;
  const Rising rise = rising<11>(y);
  const double z = low ? y + 12 : y, inverse = 1 / z;
  constexpr double half_log_2pi = 0.91893853320467274178;
  const double series =
      (z - 0.5) * log(z) - z +
      (half_log_2pi + inverse * poly(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188));
  const double by_zeros =
      (y - 1) * (y - 2) *
      poly(y - 1.5, 0x1.eeb95b06332e4p-2, -0x1.2aed0569548e0p-3, 0x1.01af6c0e98c90p-4, -0x1.007adff0cad19p-5,
           0x1.132f6e586f2d1p-6, -0x1.34c9d1043cacdp-7, 0x1.65d86daa29742p-8, -0x1.a7ad11958e955p-9,
           0x1.e197f4299b178p-10, -0x1.15cef172f6331p-10, 0x1.09968e6fe9382p-10, -0x1.8d5e65734f856p-11,
           -0x1.7abf607925f63p-12, 0x1.c4885f4a8c289p-12, 0x1.d6e9524a59ca9p-11, -0x1.8aca878018844p-11,
           -0x1.0fbb9c60c69abp-11, 0x1.ba9f820f422c5p-12, 0x1.a28f5299e9545p-13, -0x1.33a9ef298fbb6p-13);
  const double base = central ? by_zeros : series, steps = low & !central ? rise.product : 1;
  const HalfAngle half = half_angle(fraction);
  const double rest = log(left ? steps * (kPi / 2 / abs(half.sin * half.cos)) : steps);
  return abs(x) == kInf ? kInf : (left ? rest - base : base - rest);
}
/// DLMF 5.11.2 after the recurrence 5.5.2, next to its zero a polynomial; reflection 5.5.4.
RUSH_FN double digamma_short(double x) {
  const bool left = x < 0, low = (left ? 1 - x : x) < 12;
  const double y = left ? 1 - x : x, fraction = x - round_even(x);
  const Rising rise = rising<11>(y);
  const double z = low ? y + 12 : y, inverse = 1 / z, square = inverse * inverse;
  const double tail = square * poly(square, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760);
  const double series = (log(z) - (low ? rise.derivative / rise.product : 0)) - (0.5 * inverse + tail);
  const double apart = (y - 0x1.762d86356be3fp+0) - 0x1.b86a722197829p-54;
  const double by_zero =
      apart * poly(apart, 0x1.ef72bc8ee38acp-1, -0x1.c563b54aa1aa2p-2, 0x1.08b4294d5046dp-2, -0x1.4fc131723830ep-3,
                   0x1.b9a5b636bb68dp-4, -0x1.27baba50bc6bcp-4, 0x1.8fce030aea943p-5, -0x1.0fa7d2f2a318fp-5,
                   0x1.723d3a9d7e928p-6, -0x1.f97fa7e8fb321p-7, 0x1.5962467af9c46p-7, -0x1.d5ac52a15692cp-8,
                   0x1.41008005f3c08p-8, -0x1.ed82cab4cbe26p-9, 0x1.533e926286070p-9);
  const double right = abs(apart) < 0.25 ? by_zero : series;
  const HalfAngle half = half_angle(fraction);
  const double cotangent = (half.cos - half.sin) * (half.cos + half.sin) / (2 * half.sin * half.cos);
  return left ? (fraction == 0 ? kNan : right - kPi * cotangent) : right;
}

/// sin(pi f) and cos(pi f), |f| <= 1/2.
struct SinCosPi {
  Dd sin, cos;
};
inline SinCosPi sin_cos_pi(double f) {
  const double a = std::abs(f), sign = std::copysign(1.0, f);
  const Dd angle = Dd{kPi, kPiLow} * (a <= 0.25 ? a : 0.5 - a);
  const Dd s = sin_reduced(angle), c = cos_reduced(angle);
  return a <= 0.25 ? SinCosPi{s * sign, c} : SinCosPi{c * sign, s};
}

/// log Gamma(1 + f), 0 <= f <= 1: a polynomial that has the zeros apart.
inline Dd log_gamma_unit(double f) {
  const double t = f - 0.5,
               tail = t * poly(t, -0x1.2aed059bd608ap-3, 0x1.01af62a2929e8p-4, -0x1.007aa83cee106p-5,
                               0x1.1334235278e97p-6, -0x1.34dbda14a534ep-7, 0x1.64f066526297dp-8, -0x1.a5035229e81b4p-9,
                               0x1.f814b7a8ea944p-10, -0x1.313e8bbbf0a5cp-10, 0x1.750aeafce189cp-11,
                               -0x1.cb449093f4d2bp-12, 0x1.1c73d7bb3879ap-12, -0x1.624418c291d11p-13,
                               0x1.bb1b2f70eda70p-14, -0x1.153682ea04d6ap-14, 0x1.5d42c628edbecp-15,
                               -0x1.caf7091c01f9bp-16, 0x1.22f60ff768e29p-16, -0x1.0f1aa0b730e2ep-17,
                               0x1.5841c8f950e54p-18, -0x1.0b7547cbef874p-17, 0x1.5690ac55f96fcp-18);
  return two_sum(f, -1) * f * two_sum(0x1.eeb95b094c191p-2, tail);
}
/// log Gamma(x), x > 0: below 3 by the recurrence DLMF 5.5.1, then 5.11.1, whose series is a polynomial that holds from
/// 3 on.
inline Dd log_gamma(double x) {
  if (x < 1) return log_gamma_unit(x) + -log_sum(x);
  if (x < 2) return log_gamma_unit(x - 1);
  if (x < 3) return log_gamma_unit(x - 2) + log_sum(x - 1);
  const double inverse = 1 / x;
  const double tail =
      inverse * poly(inverse * inverse, 0x1.5555555555555p-4, -0x1.6c16c16c16863p-9, 0x1.a01a019df4869p-11,
                     -0x1.38137f3b75f0bp-11, 0x1.b950e94b3b0eap-11, -0x1.f685b7bd2af46p-10, 0x1.a23e8d9311a24p-8,
                     -0x1.d377f6d7dbe4ep-6, 0x1.388e54d1cc5b5p-3, -0x1.aca6888af500bp-1, 0x1.0170f7176ac2bp+2,
                     -0x1.d4f4aba5eb92ap+3, 0x1.1346d80f5168cp+5, -0x1.31704f6345e1fp+5);
  const Dd half_log_2pi{0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};
  return log_sum(x) * (x - 0.5) + -x + (half_log_2pi + tail);
}
/// |1 / Gamma(x)|, x < 0, to about 2^-102: a polynomial for [1, 2] and the recurrence DLMF 5.5.1.
inline Dd reciprocal_gamma(double x) {
  constexpr Dd head[] = {
      {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56},    {-0x1.514d3d90584b3p-5, -0x1.f217f14a98ef3p-59},
      {-0x1.0da5a671c048ap-1, -0x1.c2fd1a63503aep-58},  {0x1.669be41a93895p-3, -0x1.8930f86069ecep-57},
      {0x1.a18540be32ca7p-5, 0x1.cd20ad6739d04p-59},    {-0x1.5955cc39724a3p-5, 0x1.c9214fd029826p-59},
      {0x1.b16203e5e344dp-8, 0x1.a5e111d653fd0p-62},    {0x1.15f7f060ff8c2p-9, 0x1.4566d5b31d170p-63},
      {-0x1.232bd878ffabep-10, -0x1.cc98068450ef7p-64}, {0x1.3f845ff3a6edbp-13, -0x1.9c0968437e405p-67},
      {0x1.a963c6a36cac3p-16, 0x1.27d25259d1947p-71},   {-0x1.d24ca6f39ac53p-17, 0x1.045bd9b15b1c8p-72},
      {0x1.216694b7d8eacp-19, 0x1.a5618885e433cp-74},   {0x1.f1b936cb1c16ap-25, -0x1.887533c5d84d1p-80},
      {-0x1.7ed587ef32209p-24, -0x1.15ba0b63e9f8fp-78}, {0x1.25d5da9f3fa37p-26, 0x1.c9e1ebafa9bbdp-83},
      {-0x1.00033debf4316p-30, -0x1.1d0a71df9c9e1p-84}, {-0x1.26b8a37a12233p-32, 0x1.ea8b01c91e8cbp-86},
      {0x1.480c1c6ed878dp-34, 0x1.5da18376c2b79p-90},   {-0x1.19ecf32555b9bp-37, 0x1.0041e668cb4b0p-91}};
  const double whole = std::floor(x), t = (x - whole) - 0.5;
  Dd y{poly(t, -0x1.7981d5e11907bp-44, 0x1.7d9900d3f7a0bp-43, -0x1.f62a3c961ea7cp-46, 0x1.0d11ce9a0b5a7p-49,
            0x1.2ce653128af84p-53, -0x1.c042a9d5c9828p-55, 0x1.ae3a5c98df8e5p-58, -0x1.2110041f78b07p-62,
            -0x1.4767c5b0cb6c9p-65),
       0};
  for (int k = 19; k >= 0; --k) y = y * t + head[k];
  Dd rise{x, 0};
  for (double k = 1; k <= -whole; ++k) rise = rise * (x + k);
  y = y * rise;
  return y.hi < 0 ? -y : y;
}
/// For negative x the reflection DLMF 5.5.3, and the logarithm of the function itself next to the zeros, where the
/// reflection's terms cancel.
inline double lgamma(double x) {
  const double a = std::abs(x);
  if (!(a < kInf)) return is_nan(x) ? x : kInf;
  if (a < 0x1p-60) return -log(a);
  if (x > 0x1p50) return (log_sum(x) * (0x1p-60 * (x - 0.5)) + -0x1p-60 * x).hi * 0x1p60;  // may overflow
  if (x > 0) return log_gamma(x).hi;
  const double fraction = x - round_even(x);
  if (fraction == 0) return kInf;
  const Dd sine = sin_cos_pi(std::abs(fraction)).sin, cosecant = Dd{kPi, kPiLow} / sine;
  const Dd y = a < 1 ? log_dd(cosecant) + -log_gamma_unit(a) : log_dd(cosecant / Dd{a, 0}) + -log_gamma(a);
  if (std::abs(y.hi) > 0.25 || x > -2 || x < -18) return y.hi;
  return -log_dd(reciprocal_gamma(x)).hi;
}

/// DLMF 5.11.2 after the recurrence 5.5.2; reflection 5.5.4. In double-double, since its terms cancel.
inline double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  Dd shift{0, 0}, y{x, 0};
  if (x < 0) {
    const double fraction = x - round_even(x);
    if (fraction == 0) return kNan;
    const SinCosPi angle = sin_cos_pi(fraction);
    shift = -(Dd{kPi, kPiLow} * angle.cos / angle.sin);
    if (!(std::abs(shift.hi) < 0x1p60)) return shift.hi;
    y = two_sum(1, -x);
  }
  if (!(y.hi < kInf)) return y.hi;
  for (; y.hi < 14; y = y + 1) shift = shift + -(Dd{1, 0} / y);
  const Dd inverse = Dd{1, 0} / y;
  const double z = inverse.hi * inverse.hi;
  const double tail = z * poly(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  return (log_dd(y) + shift + -(inverse * 0.5 + tail)).hi;
}

/// Hurwitz' zeta function, the sum of (q + k)^-x: Euler and Maclaurin's formula, DLMF 25.11.5 and 2.10.1.
inline double zeta(double x, double q) {
  if (x == 1) return kInf;
  if (x < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;
  }
  if (!(x < kInf && q < kInf)) return kNan;  // also where a limit exists, as PyTorch has it
  if (std::isinf(std::pow(q, -x))) return std::pow(q, -x);
  Dd sum{0, 0};
  double a = q;
  for (int i = 1; i <= 100000 && a < 12; a = q + i++) sum = sum + std::pow(a, -x);
  const double power = std::pow(a, -x);
  sum = sum + power * a / (x - 1) + 0.5 * power;
  // B_2k / (2k)!
  constexpr double ratio[] = {1.0 / 12,
                              -1.0 / 720,
                              1.0 / 30240,
                              -1.0 / 1209600,
                              1.0 / 47900160,
                              -691.0 / 1307674368000.0,
                              1.0 / 74724249600.0,
                              -3617.0 / 10670622842880000.0};
  double factor = power / a * x;
  for (int k = 0; k < 8; ++k) {
    sum = sum + ratio[k] * factor;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (a * a);
  }
  return sum.hi;
}

/// DLMF 5.15.1 and, for the trigamma function, the reflection 5.15.6.
inline double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1 && x < 0.5) {
    const double fraction = x - round_even(x);
    if (std::abs(fraction) < 1e-150) return kInf;
    const Dd cosecant = Dd{kPi, kPiLow} / sin_cos_pi(fraction).sin;
    return (cosecant * cosecant).hi - zeta(2, 1 - x);
  }
  return (n & 1 ? 1 : -1) * std::tgamma(double(n) + 1) * zeta(double(n) + 1, x);
}

// ---- Bessel functions

/// I_nu(x) for nu = 0 or 1 and 0 <= x < 30: the power series DLMF 10.25.2, each of whose terms carries the errors of
/// those before.
inline Dd series_i(int nu, double x) {
  const Dd quarter = two_prod(0.5 * x, 0.5 * x);
  Dd term{nu == 0 ? 1 : 0.5 * x, 0}, sum = term;
  for (int k = 1; term.hi > 1e-18 * sum.hi; ++k) {
    term = term * quarter / Dd{double(k) * (k + nu), 0};
    sum = sum + term;
  }
  return sum;
}
/// I_nu(x) e^-x for x >= 30: the expansion DLMF 10.40.1.
inline Dd scaled_i(int nu, double x) {
  if (x == kInf) return {0, 0};
  double term = 1, rest = 0;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2 * k - 1, next = term * (odd * odd - 4.0 * nu * nu) / (8 * k * x);
    if (std::abs(next) < 1e-18 || std::abs(next) > std::abs(term)) break;
    rest += term = next;
  }
  return two_sum(1, rest) / sqrt(Dd{2 * kPi, 2 * kPiLow} * x);
}
inline double exponential_i(int nu, double x) {
  return x < 30 ? (series_i(nu, x) * exp_dd({-x, 0})).hi : (is_nan(x) ? x : scaled_i(nu, x).hi);
}
/// From 30 on e^x in two halves, one of them smaller, so that a result that is representable does not overflow on the
/// way.
inline double plain_i(int nu, double x) {
  if (x < 30) return series_i(nu, x).hi;
  if (!(x < 720)) return x < kInf ? kInf : kNan;  // NaN at infinity, as PyTorch has it
  const Dd e = exp_dd({0.5 * x, 0});
  return (scaled_i(nu, x) * e * (e * 0x1p-64)).hi * 0x1p64;
}
inline double i0e(double x) { return exponential_i(0, std::abs(x)); }
inline double i1e(double x) { return std::copysign(exponential_i(1, std::abs(x)), x); }
inline double i0(double x) { return plain_i(0, std::abs(x)); }
inline double i1(double x) { return std::copysign(plain_i(1, std::abs(x)), x); }

/// K_nu(x) e^x: the integral DLMF 10.32.9 by the trapezoidal rule, which converges exponentially.
inline Dd scaled_k(double nu, double x) {
  if (is_nan(x) || x < 0) return {kNan, 0};
  if (x == 0) return {kInf, 0};
  if (x == kInf) return {0, 0};
  const double root = std::sqrt(x), step = root < 4 ? 0.171875 : float(0.7 / root);  // short: its multiples are exact
  Dd sum{0.5, 0};
  for (int i = 1;; ++i) {
    const double t = i * step;
    const Dd e = expm1_dd({0.5 * t, 0}), s = (e + e / (e + 1)) * 0.5, square = s * s;  // sinh(t / 2)^2
    const Dd exponent = square * (-2 * x);
    if (exponent.hi < -600) return sum * step;
    const Dd growth = nu == 0 ? Dd{1, 0} : (nu == 1 ? square * 2 + 1 : Dd{std::cosh(nu * t), 0});
    const Dd term = exp_dd(exponent) * growth;
    sum = sum + term;
    if (term.hi < 1e-18 * sum.hi && -exponent.hi > nu * t) return sum * step;
  }
}
inline double plain_k(double nu, double x) {
  const Dd scaled = scaled_k(nu, x);
  return x > 0 && x < 700 ? (scaled * exp_dd({-x, 0})).hi : scaled.hi * std::exp(-x);
}
inline double k0e(double x) { return scaled_k(0, x).hi; }
inline double k1e(double x) { return x > 0 && x < 0x1p-30 ? 1 / x + 1 : scaled_k(1, x).hi; }
inline double k0(double x) { return plain_k(0, x); }
inline double k1(double x) { return x > 0 && x < 0x1p-30 ? 1 / x : plain_k(1, x); }  // DLMF 10.30.2

/// 1 / x.
inline Dd reciprocal(double x) {
  const double r = 1 / x;
  return {r, fma(-r, x, 1) * r};
}
/// 2 y / pi.
inline Dd over_half_pi(Dd y) { return Dd{0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55} * y; }

/// J_nu = M cos(theta) and Y_nu = M sin(theta) for nu = 0 or 1 and 2 <= x < 2^27, DLMF 10.18.4. Next to the zeros
/// theta's absolute error, 2^-60, is what remains.
struct Polar {
  Dd modulus, angle;  // theta without the quarter turns, within pi/4
  uint64_t quadrant;
};
RUSH_FN Polar bessel_polar(int nu, double x) {
  // (M^2 pi x/2 - 1) x^2 and ((theta - x + (nu/2 + 1/4) pi) x - (4 nu^2 - 1)/8) x^2, which have limits at infinity
  // (DLMF 10.18.17 and 18), in 1/x - 1/3 for x < 6 and in 1/x - 1/12 from there on.
  constexpr int terms = 20;
  constexpr double modulus[2][2][terms] = {
      {{-0x1.bd5972f200dd0p-4, 0x1.280719c961093p-4,  0x1.65a7c270ad331p-7,  -0x1.b45ba3278618ap-4,
        0x1.74d5276ff7620p-3,  -0x1.83977805e4092p-3, 0x1.ced142754d9d1p-5,  0x1.3c51a0fc3fa8cp-2,
        -0x1.fd632cf1f948cp-1, 0x1.010384210d7a2p+1,  -0x1.8c5ecc0e51239p+1, 0x1.b3655e62dffaap+1,
        -0x1.a819def3b0b5dp-1, -0x1.1b74c559fa7b5p+3, 0x1.03f207d280ec1p+5,  -0x1.448f269e6a44ap+6,
        0x1.745dc60f57706p+7,  -0x1.6010f00ed2454p+8, 0x1.c33c9ecec2654p+7,  0x1.84598f45685c7p+8},
       {-0x1.fa33dd0167facp-4,  0x1.0d2c3193b5ad2p-5,  0x1.6080c876bf32dp-3,   -0x1.0efee4f10acbdp-2,
        -0x1.5880c78b02e83p-2,  0x1.1bedc30357d0dp+1,  -0x1.84d513d695a3ep+1,  -0x1.6cc38bafe4b59p+3,
        0x1.27ba0a1f6a205p+6,   -0x1.30f3f58a5af1bp+7, -0x1.8062c4bedd735p+8,  0x1.10e1caa6f95d5p+12,
        -0x1.04be38e8aa3b9p+14, 0x1.8eba853d925e9p+13, 0x1.0ab0bc2393a2ep+18,  -0x1.0bc47be0ce537p+21,
        0x1.f54114f268a1dp+22,  0x1.38c1307815aa1p+23, -0x1.00454b134541fp+28, 0x1.a147985d62f73p+29}},
      {{0x1.62b9b6e4827e4p-2,  -0x1.104b50febb97cp-3, -0x1.76375a1bec809p-5,  0x1.8312e8657e28bp-3,
        -0x1.141fd8c3d310ap-2, 0x1.de70e6fa21a44p-3,  -0x1.524a6e963229ep-12, -0x1.0d3c66fcc7e94p-1,
        0x1.69ffa31b3d417p+0,  -0x1.4d12b656490e0p+1, 0x1.d658e2e3d8956p+1,   -0x1.b92156c4c98d8p+1,
        -0x1.7c2fc454d98dfp-1, 0x1.be9204590efddp+3,  -0x1.5e174eb2d0cf5p+5,  0x1.9778d3f114299p+6,
        -0x1.c1c3e671f718bp+7, 0x1.93e1e18e1f696p+8,  -0x1.24c1bc65f88bdp+7,  -0x1.6217d6d74fe7bp+9},
       {0x1.7d924055f0a90p-2,   -0x1.c56e2968b683ep-5,  -0x1.2f9fbad96ee34p-2,  0x1.8573d27ec6116p-2,
        0x1.127f8146875dbp-1,   -0x1.7ff7709a31841p+1,  0x1.c5922a5da60b9p+1,   0x1.f7d53576040bdp+3,
        -0x1.6f8b269be58c8p+6,  0x1.558d185bdc0aep+7,   0x1.095b433e55e23p+9,   -0x1.4a3455c4cbd6cp+12,
        0x1.2867778de24eap+14,  -0x1.249c82e0cb1bdp+13, -0x1.49800fcfb3534p+18, 0x1.350af9f1f1865p+21,
        -0x1.0be1b6193ad83p+23, -0x1.d2d3d48238109p+23, 0x1.204d735a4fa3ap+28,  -0x1.bc1ab775ad627p+29}}};
  constexpr double phase[2][2][terms] = {
      {{0x1.a202f2f3239c5p-5,  -0x1.c90e56ddd3675p-5, 0x1.ee4e28b2412fap-7,   0x1.254cda0d449adp-4,
        -0x1.88a3a11a720c0p-3, 0x1.33c5f3d12a21fp-2,  -0x1.2d0a083e6cbb1p-2,  -0x1.922f01c61aebcp-6,
        0x1.eec1fbe5f770dp-1,  -0x1.760f9d610bb0cp+1, 0x1.8a542cb52517dp+2,   -0x1.47940a87d945cp+3,
        0x1.92d9a0eba26d3p+3,  -0x1.694e1c51aa56cp+2, -0x1.c3e6b8621a43cp+4,  0x1.e9c21767b7823p+6,
        -0x1.5265cfb40f144p+8, 0x1.a1cd310bc1e02p+9,  -0x1.b5ade6ca83c93p+10, 0x1.e8b7f4dcb6f84p+10},
       {0x1.050049112108cp-4,   -0x1.02efdf226b901p-5,  -0x1.3c929f07ca1e3p-3,  0x1.6cd302e764fb2p-2,
        0x1.13ed7c68e2ca8p-2,   -0x1.bdbfdf73ee6b4p+1,  0x1.eeb56388b97bcp+2,   0x1.a68df5f4e4db5p+3,
        -0x1.37c02d921b246p+7,  0x1.f36e832848cd4p+8,   0x1.29ca09bb463afp+7,   -0x1.38b8bcc65257ep+13,
        0x1.ace52fa09cf0bp+15,  -0x1.efc5e865cf68ep+16, -0x1.868e77708a773p+18, 0x1.8c2bedadb4453p+22,
        -0x1.394ef518dba2ep+25, 0x1.bd9c463486b24p+25,  0x1.e2e6f0d7ba4fep+29,  -0x1.1c7c19a7aedd6p+32}},
      {{-0x1.18b049a8cc9fdp-3, 0x1.d6d30f343a191p-4,  0x1.a70afa50d52d6p-13, -0x1.4a86f81ac92bap-3,
        0x1.4ae9fe04f21cap-2,  -0x1.a526b7cccda40p-2, 0x1.25f3f16a2e1adp-2,  0x1.23855cc42648ap-2,
        -0x1.a3f83cbb58fb5p+0, 0x1.08b1ed39d7d48p+2,  -0x1.f5f438a5472d5p+2, 0x1.78a90ef96fe25p+3,
        -0x1.84b75bf7ca5c6p+3, -0x1.cdf6cc5a9ca45p-1, 0x1.83dc92f98be5bp+5,  -0x1.52aa113b5f909p+7,
        0x1.b9bb5a1493e30p+8,  -0x1.fef1adddc90eap+9, 0x1.c7f2a2125e28ap+10, -0x1.9a4a28737e965p+10},
       {-0x1.4af0cba52c174p-3,  0x1.d28fea7dbf390p-5,   0x1.28a70c0da25c4p-2,   -0x1.1332321181256p-1,
        -0x1.0dc85fa3dc84ap-1,  0x1.39eb9f15f03cap+2,   -0x1.2c251afaa25edp+3,  -0x1.4a678dfab51eep+4,
        0x1.8deead6231a46p+7,   -0x1.21c972b6d3b3ap+9,  -0x1.8b9f9c7e1f87bp+8,  0x1.8607a3a354b7dp+13,
        -0x1.f2dc87061cd43p+15, 0x1.0165a2bf8eb9cp+17,  0x1.0fdc68712bea9p+19,  -0x1.d50a5fd4fff32p+22,
        0x1.59901abe434d8p+25,  -0x1.89f38ebb91d5ep+25, -0x1.13b8d436dac9ep+30, 0x1.3752852236f8dp+32}}};
  const bool far = x >= 6;
  const Dd inverse = reciprocal(x);
  const double u = inverse.hi - (far ? 1.0 / 12 : 1.0 / 3), square = inverse.hi * inverse.hi;
  double m[2] = {0, 0}, p[2] = {0, 0};  // even and odd coefficients, which do not wait for each other
  for (int k = terms - 2; k >= 0; k -= 2) {
    for (int odd = 0; odd < 2; ++odd) {
      m[odd] = m[odd] * (u * u) + modulus[nu][far][k + odd];
      p[odd] = p[odd] * (u * u) + phase[nu][far][k + odd];
    }
  }
  // The phase's first term, which is known beforehand, is enough to choose the quarter.
  const Dd first = inverse * (0.5 * nu - 0.125);
  const double shifted = (x + first.hi) * (2 / kPi) - (nu + 0.5) + kShift;
  const Dd angle =
      without_quarters(x, (shifted - kShift) + (nu + 0.5)) + first + inverse.hi * square * (p[0] + u * p[1]);
  return {sqrt(over_half_pi(inverse) * two_sum(1, square * (m[0] + u * m[1]))), angle, bits(shifted)};
}
/// M sin(theta + turn pi/2).
RUSH_FN double bessel_wave(Polar p, uint64_t turn) {
  const uint64_t n = p.quadrant + turn;
  return flip_sign((p.modulus * select(n & 1, cos_reduced(p.angle), sin_reduced(p.angle))).hi, n);
}
// Below 2 the power series in q = x^2/4, DLMF 10.2.2 and, with Euler's constant put to the logarithm, 10.8.1. The terms
// that are large at 2 are added in double-double.
inline Dd quarter_square(double x) { return two_prod(0.5 * x, 0.5 * x); }
inline Dd series_j0(Dd q) {
  const double tail =
      q.hi * poly(q.hi, -0x1.c71c71c71c71cp-6, 0x1.c71c71c71c71cp-10, -0x1.23456789abcdfp-14, 0x1.02e85c0898b71p-19,
                  -0x1.522a43f65486ap-25, 0x1.522a43f65486ap-31, -0x1.0b313289be0b9p-37, 0x1.5601885e63e5dp-44,
                  -0x1.69ca9cf3b7f54p-51, 0x1.4197a7f5154bcp-58, -0x1.e725594ee52e9p-66);
  return (two_sum(0.25, tail) * q + -1) * q + 1;
}
/// J_1(x) 2/x.
inline Dd series_j1(Dd q) {
  const double tail =
      q.hi * poly(q.hi, 0x1.5555555555555p-4, -0x1.c71c71c71c71cp-8, 0x1.6c16c16c16c17p-12, -0x1.845c8a0ce5129p-17,
                  0x1.27e4fb7789f5cp-22, -0x1.522a43f65486ap-28, 0x1.2c9758daf5cd0p-34, -0x1.ab81ea75fcdf4p-41,
                  0x1.f17697cf1cf13p-48, -0x1.e2637bef9ff1ap-55, 0x1.8bce58901a35ep-62, -0x1.165e7c2d153f3p-69);
  return two_sum(-0.5, tail) * q + 1;
}
/// pi/2 Y_0(x) - log(x e^gamma / 2) J_0(x).
inline Dd series_y0(Dd q) {
  const double tail =
      q.hi * poly(q.hi, 0x1.a12f684bda12fp-5, -0x1.da12f684bda13p-9, 0x1.4c88d634a424bp-13, -0x1.3d2970bdbb137p-18,
                  0x1.b6682a64d5cf7p-24, -0x1.cb8acea43b17dp-30, 0x1.79f068734aa1bp-36, -0x1.f4dcc2465f674p-43,
                  0x1.1124367d45fb2p-49, -0x1.f2fc07de40da8p-57, 0x1.834c1a3ba6611p-64);
  return (two_sum(-0.375, tail) * q + 1) * q;
}
/// (log(x e^gamma / 2) J_1(x) - 1/x - pi/2 Y_1(x)) 4/x.
inline Dd series_y1(Dd q) {
  const double tail =
      q.hi * poly(q.hi, -0x1.bda12f684bda1p-6, 0x1.8d76b54932710p-10, -0x1.cb8fa35c0f11cp-15, 0x1.7509d2f888715p-20,
                  -0x1.c0f97c848873ap-26, 0x1.a0d4ebed66059p-32, -0x1.33b1f34a8210fp-38, 0x1.71eaa07871598p-45,
                  -0x1.7136a746dc4ebp-52, 0x1.36df8a9dd9648p-59, -0x1.bf98a95743194p-67);
  return ((Dd{0x1.1c71c71c71c72p-2, -0x1.c71c71c71c71cp-57} + tail) * q + -1.25) * q + 1;
}
/// log(x e^gamma / 2).
inline Dd log_half_gamma(double x) { return log_dd(x) + Dd{-0x1.dadb014541eb2p-4, -0x1.be095d05c0a81p-62}; }

// From 2^27 on, where three doubles of pi do not reduce the angle, the C library's. NaN at infinity, where the
// functions go to 0, as PyTorch has it.
inline double j0(double x) {
  const double a = std::abs(x);
  if (a < 2) return series_j0(quarter_square(a)).hi;
  return a < 0x1p27 ? bessel_wave(bessel_polar(0, a), 1) : (a < kInf ? ::j0(a) : kNan);
}
inline double j1(double x) {
  const double a = std::abs(x);
  if (a < 2) return std::copysign((series_j1(quarter_square(a)) * (0.5 * a)).hi, x);
  const double y = a < 0x1p27 ? bessel_wave(bessel_polar(1, a), 1) : (a < kInf ? ::j1(a) : kNan);
  return x < 0 ? -y : y;
}
inline double y0(double x) {
  if (!(x > 0 && x < kInf)) return x == 0 ? -kInf : kNan;
  if (x >= 2) return x < 0x1p27 ? bessel_wave(bessel_polar(0, x), 0) : ::y0(x);
  const Dd q = quarter_square(x);
  return over_half_pi(log_half_gamma(x) * series_j0(q) + series_y0(q)).hi;
}
inline double y1(double x) {
  if (!(x > 0 && x < kInf)) return x == 0 ? -kInf : kNan;
  if (x >= 2) return x < 0x1p27 ? bessel_wave(bessel_polar(1, x), 0) : ::y1(x);
  if (x < 0x1p-30) return over_half_pi(reciprocal(-0x1p600 * x)).hi * 0x1p600;  // DLMF 10.7.4
  const Dd q = quarter_square(x);
  const Dd rest = log_half_gamma(x) * series_j1(q) * (0.5 * x) + series_y1(q) * (-0.25 * x);
  return over_half_pi(rest + -reciprocal(x)).hi;
}

/// sin x / x, DLMF 10.49.3.
inline double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::abs(x) < 0.5) {
    const double z = x * x;
    return poly(z, 1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0,
                -1.0 / 1307674368000.0);
  }
  if (trig_is_hard(x)) return std::sin(x) / x;
  const Reduced a = reduce_trig(x);
  const Dd y = (a.quadrant & 1 ? cos_reduced(a.r) : sin_reduced(a.r)) / Dd{x, 0};
  return flip_sign(y.hi, a.quadrant);
}

/// Near zero and on the oscillating side the Maclaurin series (DLMF 9.4.1), there in double-double since its terms grow
/// to e^18; Bessel functions of order 1/3 (9.6.2); for far negative arguments the expansion 9.7.9.
inline double airy_ai(double x) {
  if (is_nan(x)) return x;
  if (std::isinf(x)) return kNan;  // as PyTorch has it
  if (x <= 2 && x > -9) {
    const Dd at_zero{0x1.6b8c7962715b8p-2, 0x1.7a96d7bb04e65p-56}, slope{0x1.0907f42b70f8bp-2, -0x1.d1459035afde2p-56};
    const Dd cube = two_prod(x, x) * x;
    Dd f{1, 0}, g{x, 0}, f_sum = f, g_sum = g;
    for (int k = 1; k < 48; ++k) {
      f = f * cube / Dd{(3.0 * k - 1) * (3.0 * k), 0};
      g = g * cube / Dd{(3.0 * k) * (3.0 * k + 1), 0};
      f_sum = f_sum + f;
      g_sum = g_sum + g;
    }
    return (at_zero * f_sum + -(slope * g_sum)).hi;
  }
  const double a = std::abs(x), root = std::sqrt(a);
  const Dd exact_arc = sqrt(Dd{a, 0}) * a * Dd{2.0 / 3, 0x1.5555555555555p-55};  // 2/3 x^(3/2)
  const double arc = exact_arc.hi;
  if (x > 0) return arc > 745 ? 0 : std::sqrt(a / 3) / kPi * scaled_k(1.0 / 3, arc).hi * exp_of(-exact_arc);
  // u_k / arc^k of DLMF 9.7.2, the even ones for the cosine and the odd ones for the sine.
  double u = 1, even = 1, odd = 0;
  for (int k = 1; k < 14; ++k) {
    u *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1) * arc);
    const double sign = (k / 2) % 2 == 0 ? 1 : -1;
    (k % 2 == 0 ? even : odd) += sign * u;
  }
  const Dd angle = exact_arc + -Dd{kPi / 4, kPiLow / 4};
  const double cosine = std::cos(angle.hi), sine = std::sin(angle.hi);
  return ((cosine - angle.lo * sine) * even + (sine + angle.lo * cosine) * odd) / (std::sqrt(kPi) * std::sqrt(root));
}

// ---- the error function's relatives and the normal distribution

/// e^(x^2) erfc(x).
inline double erfcx(double x) {
  if (is_nan(x)) return x;
  if (std::abs(x) < 0.5) {
    const double square = x * x;
    return (exp_dd(two_prod(x, x)) * (two_sum(1, -x) + -(x * erf_small(square)))).hi;
  }
  if (x >= 0) return x == kInf ? 0 : erfcx_positive(x).hi;
  return x < -27 ? kInf : (exp_dd(two_prod(x, x)) * Dd{2, 0} + -erfcx_positive(-x)).hi;
}
/// A first value for erfinv from w = -log(1 - x^2) (M. Giles, GPU Computing Gems 2 (2011) 109), as a factor of x.
inline double erfinv_start(double w) {
  if (w < 5) {
    return poly(w - 2.5, 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06,
                -3.5233877e-06, 3.43273939e-07, 2.81022636e-08);
  }
  return poly(std::sqrt(w) - 3, 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
              0.00134934322, 0.000100950558, -0.000200214257);
}
/// The y >= 0 with erfc(y) = z, 0 < z <= 1/2: Newton's method for the logarithm, where each step doubles the digits.
/// The last one's equation holds to double-double, so that its correction is the result's low part.
inline Dd erfc_inverse(double z) {
  constexpr double half_root_pi = 0.88622692545275801365;
  const Dd log_z = log_dd(z);
  const double w = -log_z.hi - log(2 - z);
  const bool near = w < 16;
  double y = near ? erfinv_start(w) * (1 - z) : sqrt(-log_z.hi - 0.5 * log(-kPi * log_z.hi));
  for (int i = 0; i < (near ? 1 : 2); ++i) {
    const double scaled = erfcx_positive(y).hi;
    y += (log(scaled) - y * y - log_z.hi) * half_root_pi * scaled;
  }
  const Dd scaled = erfcx_positive(y), rest = log_dd(scaled) + -(two_prod(y, y) + log_z);
  return fast_two_sum(y, rest.hi * half_root_pi * scaled.hi);
}
/// The y with erf(y) = x, |x| <= 1/2: one step of Halley's method, which triples the digits.
inline Dd erf_inverse(double x) {
  const double y = x * erfinv_start(-log_short((1 - x) * (1 + x))), square = y * y;
  const double u = ((y - x) + y * erf_small(square)) * 0.88622692545275801365 * exp(square);  // sqrt(pi) / 2
  return fast_two_sum(y, -u / (1 + y * u));
}
inline double erfinv(double x) {
  const double a = std::abs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(kInf, x) : kNan;
  return a > 0.5 ? std::copysign(erfc_inverse(1 - a).hi, x) : erf_inverse(x).hi;
}
/// As a factor of x, a polynomial in sqrt(4 - log(1 - x^2)).
RUSH_FN double erfinv_short(double x) {
  const double w = -log_short(abs(x) < 1 ? (1 - x) * (1 + x) : 1);
  const double factor =
      poly(sqrt(4 + w) - 3.25, 0x1.32c79488d77f9p+1, 0x1.4052c494082e4p+0, -0x1.1beb64d30c5abp-4, -0x1.69997f8594bf4p-8,
           0x1.0cf9a6b4d5d22p-5, -0x1.d968fbd82e84ep-6, 0x1.691036534f03fp-7, 0x1.a912cfb57d6ebp-9,
           -0x1.c6f43d821e83dp-8, 0x1.fb0659c3f6302p-9, 0x1.79760cfd82557p-13, -0x1.0c2c9971f5397p-9,
           0x1.2a53b35745e16p-10, 0x1.b7bec74c88c9ep-12, -0x1.1d711698a715bp-11, -0x1.446da553a84bbp-16,
           0x1.f4c331fbe050bp-14, -0x1.0af1c3b10735cp-18, -0x1.6e9877b4c49a8p-17);
  return abs(x) < 1 ? x * factor : (abs(x) == 1 ? copysign(kInf, x) : kNan);
}
/// x / sqrt 2.
inline Dd over_root(double x) {
  const Dd t = two_prod(x, kSqrtHalf);
  return {t.hi, t.lo + x * -0x1.bdd3413b26456p-55};
}
/// The tail falls by e^-2 t dt where its argument grows by dt, so what t = x / sqrt 2 was rounded by counts.
inline Dd ndtr_dd(double x) {
  const Dd t = over_root(-x);
  const double square = t.hi * t.hi;
  Dd y{0, 0};
  if (square < 0.25) {
    y = Dd{1, 0} + -t + Dd{-t.hi * erf_small(square), 0};
  } else {
    y = t.hi < 0 ? Dd{2, 0} + -erfc_positive(-t) : erfc_positive(t);
  }
  return {0.5 * y.hi, 0.5 * y.lo};
}
inline double ndtr(double x) {
  if (!(std::abs(x) < 40)) return is_nan(x) ? x : (x > 0 ? 1 : 0);
  return ndtr_dd(x).hi;
}
inline double ndtri(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kInf : (p == 1 ? kInf : kNan);
  const Dd root{0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54};
  if (p < 0.25) return -(root * erfc_inverse(2 * p)).hi;
  return (root * (p > 0.75 ? erfc_inverse(2 * (1 - p)) : erf_inverse(2 * p - 1))).hi;
}
inline double log_ndtr(double x) {
  if (x < -0x1p500) return -0.5 * x * x;
  if (x < -1.25) {  // the logarithm is the smaller of two terms of one sign, so it may be a double
    const Dd t = over_root(-x), scaled = erfcx_positive(t.hi), square = two_prod(t.hi, -t.hi);
    const Dd sum = two_sum(square.hi, log(0.5 * scaled.hi));
    return sum.hi + (sum.lo + (square.lo + (scaled.lo - t.lo * 1.12837916709551257390) / scaled.hi));  // 2 / sqrt(pi)
  }
  if (x < 0.5) return log_dd(ndtr_dd(x)).hi;
  return x < 38 ? log_dd_reduced(-ndtr_dd(-x), 0).hi : -ndtr(-x);
}

// ---- the incomplete gamma functions

/// x^a e^-x / Gamma(a + 1), without cancellation of large logarithms (DLMF 5.11.1 for a > 10).
inline double gamma_density(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - lgamma(a + 1));
  const double m = (x - a) / a, z = 1 / (a * a);
  const double stirling = poly(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188) / a;
  return std::exp(a * (std::log1p(m) - m) - stirling) / std::sqrt(2 * kPi * a);
}
/// Lower (DLMF 8.11.4) or upper (8.9.2, by Lentz's method), whichever converges; the other is its complement.
inline double incomplete_gamma(double a, double x, bool upper) {
  if (a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : kNan;
  if (x == 0) return upper ? 1 : 0;
  if (a == kInf) return x == kInf ? kNan : (upper ? 1 : 0);
  if (x == kInf) return upper ? 0 : 1;
  if (is_nan(a) || is_nan(x)) return kNan;  // not before: PyTorch has these limits for NaN too
  if (a > 1e7) {                            // neither converges soon: DLMF 8.12.3 with the first term of 8.12.7
    const double m = (x - a) / a;
    const double half = std::abs(m) < 1e-3 ? m * m * poly(m, 1.0 / 2, -1.0 / 3, 1.0 / 4, -1.0 / 5) : m - std::log1p(m);
    const double eta = std::copysign(std::sqrt(2 * half), m);
    const double first = std::abs(m) < 1e-3 ? -1.0 / 3 + m / 12 : 1 / m - 1 / eta;
    const double rest = std::exp(-a * half) * first / std::sqrt(2 * kPi * a), root = std::sqrt(0.5 * a);
    return upper ? 0.5 * std::erfc(eta * root) + rest : 0.5 * std::erfc(-eta * root) - rest;
  }
  constexpr int limit = 100000;
  if (x < a + 1) {
    double term = 1, sum = 1;
    for (int k = 1; k < limit && term > 1e-17 * sum; ++k) sum += term *= x / (a + k);
    const double lower = sum * gamma_density(a, x);
    return upper ? 1 - lower : lower;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < limit; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (std::abs(d) < 1e-300 ? 1e-300 : d);
    c = std::abs(c) < 1e-300 ? 1e-300 : c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  const double tail = h * a * gamma_density(a, x);
  return upper ? tail : 1 - tail;
}
inline double igamma(double a, double x) { return incomplete_gamma(a, x, false); }
inline double igammac(double a, double x) { return incomplete_gamma(a, x, true); }

// ---- the rest

/// -x log x.
inline double entr(double x) {
  if (!(x > 0)) return is_nan(x) ? x : (x == 0 ? 0 : -kInf);
  return x < kInf ? (log_dd(x) * -x).hi : -kInf;
}
/// sin(pi x) / (pi x).
inline double sinc(double x) {
  if (x == 0) return 1;
  const double n = round_even(x), r = x - n, a = std::abs(r);
  const Dd pi{kPi, kPiLow}, s = a <= 0.25 ? sin_reduced(pi * r) : cos_reduced(pi * (0.5 - a)) * std::copysign(1.0, r);
  return (s / (pi * x)).hi * (std::fmod(n, 2) == 0 ? 1 : -1);
}

// ---- orthogonal polynomials; 0 for n < 0

enum class Polynomial { T, U, V, W, H, He, L, P };

/// Chebyshev polynomials within [-1, 1] by their definition (DLMF 18.5.1 to 18.5.4).
template <Polynomial kind>
double chebyshev(double x, double n) {
  const double sign = x > 0 || std::fmod(n, 2) == 0 ? 1 : -1, angle = std::acos(x);
  const bool end = std::abs(x) == 1;
  switch (kind) {
    case Polynomial::T:
      return end ? sign : std::cos(n * angle);
    case Polynomial::U:
      return end ? sign * (n + 1) : std::sin((n + 1) * angle) / std::sin(angle);
    case Polynomial::V:
      return end ? (x > 0 ? 1 : sign * (2 * n + 1)) : std::cos((n + 0.5) * angle) / std::cos(0.5 * angle);
    default:
      return end ? (x > 0 ? 2 * n + 1 : sign) : std::sin((n + 0.5) * angle) / std::sin(0.5 * angle);
  }
}

/// By the recurrences (DLMF 18.9.1, table 18.9.1) in the dtype itself: beyond its range they end in NaN, as PyTorch has
/// it.
template <Polynomial kind, class T>
T orthogonal(T x, T degree) {
  constexpr bool is_chebyshev = kind <= Polynomial::W, is_hermite = kind == Polynomial::H || kind == Polynomial::He;
  const T n = std::trunc(degree);
  if (!(n >= 0 && n < T(0x1p63))) return 0;  // NaN and infinity are no degrees, as in a conversion to int64
  if (is_chebyshev && n > 6 && std::abs(x) <= 1) return T(chebyshev<kind>(double(x), double(n)));
  if (is_hermite && n > (sizeof(T) == 4 ? 128 : 512)) return std::numeric_limits<T>::quiet_NaN();
  T before = 1, now = 0;
  switch (kind) {
    case Polynomial::T:
    case Polynomial::He:
    case Polynomial::P:
      now = x;
      break;
    case Polynomial::U:
    case Polynomial::H:
      now = 2 * x;
      break;
    case Polynomial::V:
      now = 2 * x - 1;
      break;
    case Polynomial::W:
      now = 2 * x + 1;
      break;
    case Polynomial::L:
      now = 1 - x;
      break;
  }
  if (n == 0) return before;
  // Of those that stay finite no one waits for more steps; what they would give is not known.
  if (n > T(1 << 24)) return std::numeric_limits<T>::quiet_NaN();
  const auto steps = static_cast<int64_t>(n);
  for (int64_t i = 1; i < steps && now == now; ++i) {
    const T k = T(i);
    T next = 0;
    switch (kind) {
      case Polynomial::T:
      case Polynomial::U:
      case Polynomial::V:
      case Polynomial::W:
        next = 2 * x * now - before;
        break;
      case Polynomial::H:
        next = 2 * x * now - 2 * k * before;
        break;
      case Polynomial::He:
        next = x * now - k * before;
        break;
      case Polynomial::L:
        next = ((2 * k + 1 - x) * now - k * before) / (k + 1);
        break;
      case Polynomial::P:
        next = ((2 * k + 1) * x * now - k * before) / (k + 1);
        break;
    }
    before = now;
    now = next;
  }
  return now;
}
/// On [0, 1] instead of [-1, 1].
template <Polynomial kind, class T>
T shifted(T x, T degree) {
  return orthogonal<kind>(2 * x - 1, degree);
}

// ---- as formulas

/// A function of doubles as a formula of any floating type; of floats another may be accurate enough.
template <auto function, auto of_floats = function>
struct In {
  static constexpr int64_t kGrain = 1024;
  template <class... T>
  RUSH_FN auto operator()(T... x) const {
    using Result = std::common_type_t<T...>;
    if constexpr (sizeof(Result) == 4)
      return Result(of_floats(double(x)...));
    else
      return Result(function(double(x)...));
  }
};

struct Polygamma {
  static constexpr int64_t kGrain = 1024;
  int64_t n;
  template <class T>
  RUSH_FN T operator()(T x) const {
    return T(special::polygamma(n, double(x)));
  }
};

/// A polynomial on [-1, 1] or, shifted, on [0, 1].
template <Polynomial kind, bool shift>
struct Orthogonal {
  static constexpr int64_t kGrain = 1024;
  template <class T>
  RUSH_FN T operator()(T x, T n) const {
    return shift ? shifted<kind>(x, n) : orthogonal<kind>(x, n);
  }
};

}  // namespace rush::formula::special
