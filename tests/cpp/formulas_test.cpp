// The elementary functions against long double (for float: against double) over dense samples: the worst error of each,
// in units in the last place of the right result, is printed and held below its limit. Then the special values.
#include "kernels/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace rush::formula {
namespace {

template <class T, class Exact>
double ulps(T got, Exact want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  const T rounded = T(want);
  if (rounded == got) return std::abs(double((Exact(got) - want))) == 0 || std::isinf(got) ? 0 : 0.5;
  if (std::isinf(rounded) || std::isinf(got)) {  // one step beyond the largest number is not an error of infinity
    return std::abs(std::isinf(got) ? rounded : got) == std::numeric_limits<T>::max() ? 1 : 1e30;
  }
  const T big = std::abs(rounded);
  const Exact step = std::max(Exact(std::nextafter(big, std::numeric_limits<T>::infinity())) - Exact(big),
                              Exact(std::numeric_limits<T>::denorm_min()));
  return double(std::abs(Exact(got) - want) / step);
}

/// Uniform in [lo, hi], and as many with uniform exponents in both signs within the range.
template <class T>
std::vector<T> samples(double lo, double hi) {
  std::mt19937_64 bits(7);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<T> xs = {T(0),
                       T(-0.0),
                       T(1),
                       T(-1),
                       T(0.5),
                       T(2),
                       T(lo),
                       T(hi),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::lowest()};
  constexpr int count = 60000;
  const double top = std::log2(std::max(std::abs(lo), std::abs(hi))),
               bottom = std::max<double>(top - 120, std::numeric_limits<T>::min_exponent - 20);
  for (int i = 0; i < count; ++i) {
    xs.push_back(T(lo + (hi - lo) * unit(bits)));
    const double x = std::exp2(bottom + (top - bottom) * unit(bits)) * (bits() & 1 ? 1 : -1);
    if (x >= lo && x <= hi) xs.push_back(T(x));
  }
  return xs;
}

struct Row {
  const char* name;
  double (*f64)(double);
  float (*f32)(float);
  long double (*exact)(long double);
  double (*exact32)(double);
  double lo, hi;  // where samples are dense; special values are always among them
  double limit = 1.0;
};

#define ROW(name, lo, hi, ...)                                                                         \
  Row {                                                                                                \
#name,                                                                                               \
      [](double x) { return name(x); },                                                                    \
      [](float x) { return name(x); },                                                                     \
      [](long double x) -> long double { return std::name(x); },                                           \
      [](double x) -> double { return std::name(x); }, lo, hi, __VA_ARGS__ \
  }

const Row rows[] = {
    ROW(exp, -760, 720),
    ROW(exp, -3, 3),
    ROW(exp2, -1080, 1030),
    ROW(expm1, -60, 720),
    ROW(expm1, -1, 1),
    ROW(log, 0, 1e300),
    ROW(log, 0, 4),
    ROW(log2, 0, 1e30),
    ROW(log2, 0, 4),
    ROW(log10, 0, 1e30),
    ROW(log10, 0, 4),
    ROW(log1p, -1, 1e30),
    ROW(log1p, -1, 2),
    ROW(sinh, -720, 720),
    ROW(sinh, -2, 2),
    ROW(cosh, -720, 720),
    ROW(cosh, -2, 2),
    ROW(tanh, -25, 25),
    ROW(tanh, -1, 1),
    ROW(asinh, -1e300, 1e300),
    ROW(asinh, -3, 3),
    ROW(acosh, 1, 1e300),
    ROW(acosh, 1, 3),
    ROW(atanh, -1, 1),
    ROW(sin, -1e5, 1e5),
    ROW(sin, -4, 4),
    ROW(cos, -1e5, 1e5),
    ROW(cos, -4, 4),
    ROW(tan, -1e5, 1e5),
    ROW(tan, -4, 4),
    ROW(asin, -1, 1),
    ROW(acos, -1, 1),
    ROW(atan, -1e6, 1e6),
    ROW(atan, -4, 4),
    ROW(erf, -7, 7, 1.2),  // in float; below 1 where multiply-adds are fused
    ROW(erf, -1.5, 1.5, 1.2),
    ROW(erfc, -7, 28),
    ROW(erfc, -1.5, 3),
    Row{"sigmoid", [](double x) { return sigmoid(x); }, [](float x) { return sigmoid(x); },
        [](long double x) { return 1 / (1 + std::exp(-x)); }, [](double x) { return 1 / (1 + std::exp(-x)); }, -740,
        60},
    Row{"rsqrt", [](double x) { return rsqrt(x); }, [](float x) { return rsqrt(x); },
        [](long double x) { return 1 / std::sqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 0, 1e30},
};

template <class T, class Exact>
double worst_of(const char* name, T (*f)(T), Exact (*exact)(Exact), double lo, double hi) {
  double worst = 0;
  T where = 0;
  for (const T x : samples<T>(lo, hi)) {
    if constexpr (requires { trig_is_hard(x); }) {
      const bool trig = name[0] == 's' || name[0] == 'c' || name[0] == 't';
      if (trig && (name[1] == 'i' || name[1] == 'o' || name[1] == 'a') && name[3] == 0 && trig_is_hard(x)) continue;
    }
    const double u = ulps<T, Exact>(f(x), exact(Exact(x)));
    if (u > worst) worst = u, where = x;
  }
  std::printf("  %-8s %-6s [%g, %g]: %.3f ulp at %a\n", name, sizeof(T) == 8 ? "double" : "float", lo, hi, worst,
              double(where));
  return worst;
}

TEST(Formulas, ElementaryFunctionsAreWithinOneUlp) {
  for (const Row& row : rows) {
    EXPECT_LE((worst_of<double, long double>(row.name, row.f64, row.exact, row.lo, row.hi)), row.limit) << row.name;
    const double lo = std::max(row.lo, -1e37), hi = std::min(row.hi, 1e37);
    EXPECT_LE((worst_of<float, double>(row.name, row.f32, row.exact32, lo, hi)), row.limit) << row.name << " float";
  }
}

template <class T, class Exact, class F, class G>
void check_binary(const char* name, F f, G exact, const std::vector<T>& xs, const std::vector<T>& ys, double limit) {
  double worst = 0;
  T a = 0, b = 0;
  std::mt19937_64 bits(3);
  auto one = [&](T x, T y) {
    const double u = ulps<T, Exact>(f(x, y), exact(Exact(x), Exact(y)));
    if (u > worst) worst = u, a = x, b = y;
  };
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 20; ++j) one(xs[i], ys[j]);
  }
  for (int i = 0; i < 200000; ++i) one(xs[bits() % xs.size()], ys[bits() % ys.size()]);
  std::printf("  %-8s %-6s: %.3f ulp at (%a, %a)\n", name, sizeof(T) == 8 ? "double" : "float", worst, double(a),
              double(b));
  EXPECT_LE(worst, limit) << name;
}

TEST(Formulas, FunctionsOfTwoArguments) {
  auto pow_of = [](auto x, auto y) { return pow(x, y); };
  auto pow_exact = [](auto x, auto y) { return std::pow(x, y); };
  check_binary<double, long double>("pow", pow_of, pow_exact, samples<double>(-30, 30), samples<double>(-300, 300), 2);
  check_binary<double, long double>("pow", pow_of, pow_exact, samples<double>(0.9, 1.1), samples<double>(-9e3, 9e3), 2);
  check_binary<float, double>("pow", pow_of, pow_exact, samples<float>(-30, 30), samples<float>(-40, 40), 2);
  check_binary<float, double>("pow", pow_of, pow_exact, samples<float>(0.9, 1.1), samples<float>(-900, 900), 2);
  auto atan2_of = [](auto y, auto x) { return atan2(y, x); };
  auto atan2_exact = [](auto y, auto x) { return std::atan2(y, x); };
  check_binary<double, long double>("atan2", atan2_of, atan2_exact, samples<double>(-9, 9), samples<double>(-9, 9), 1);
  check_binary<float, double>("atan2", atan2_of, atan2_exact, samples<float>(-9, 9), samples<float>(-9, 9), 1);
  auto hypot_of = [](auto y, auto x) { return hypot(y, x); };
  auto hypot_exact = [](auto y, auto x) { return std::hypot(y, x); };
  check_binary<double, long double>("hypot", hypot_of, hypot_exact, samples<double>(-9, 9), samples<double>(-9, 9), 1);
  check_binary<float, double>("hypot", hypot_of, hypot_exact, samples<float>(-9, 9), samples<float>(-9, 9), 1);
}

}  // namespace
}  // namespace rush::formula
