// What each reduction does with one element and with two accumulators, for the CPU's loops and for device code.
#pragma once
#include <complex>
#include <limits>
#include <type_traits>

#include "kernels/math.h"

namespace rush::folds {

/// What a fold may want to know besides the elements.
struct FoldOptions {
  double scale = 1;       // sum: factor of the result
  double power = 2;       // sum_power: the order of the norm
  double correction = 0;  // moments: the divisor is n - correction
  bool root = false;      // moments: the standard deviation
};

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double,
                                std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>;
template <class T>
inline constexpr bool is_integer = std::is_same_v<T, int64_t>;
/// Integers wrap around.
template <class T>
RUSH_FN T plus(T a, T b) {
  if constexpr (is_integer<T>)
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <class T>
RUSH_FN T times(T a, T b) {
  if constexpr (is_integer<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}
template <class T>
RUSH_FN bool greater(T a, T b) {  // NaN is greater than all
  if constexpr (std::is_floating_point_v<T>)
    return (a > b) | (a != a);
  else
    return a > b;
}
template <class T>
RUSH_FN bool less(T a, T b) {  // and less than all
  if constexpr (std::is_floating_point_v<T>)
    return (a < b) | (a != a);
  else
    return a < b;
}

// ---- folds whose accumulator is one number: what a lane takes, and how the lanes go to the accumulator

template <class T>
struct Sum {
  using In = T;
  using Lane = T;
  using Acc = Wide<T>;
  using Result = Acc;
  static constexpr Lane zero() { return Lane(0); }
  RUSH_FN static Lane step(Lane a, T x, double) { return plus(a, x); }
  RUSH_FN static Acc join(Acc a, Acc b) { return plus(a, b); }
  RUSH_FN static Result finish(Acc a, const FoldOptions& o) {
    if constexpr (is_integer<T>)
      return a;
    else
      return a * o.scale;
  }
};
template <class T>
struct NanSum : Sum<T> {
  RUSH_FN static T step(T a, T x, double) { return a + (x == x ? x : T(0)); }
};
template <class T>
struct Prod {
  using In = T;
  using Lane = Wide<T>;
  using Acc = Wide<T>;
  using Result = Acc;
  static constexpr Lane zero() { return Lane(1); }
  RUSH_FN static Lane step(Lane a, T x, double) { return times(a, Lane(x)); }
  RUSH_FN static Acc join(Acc a, Acc b) { return times(a, b); }
  RUSH_FN static Result finish(Acc a, const FoldOptions&) { return a; }
};
template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}
template <class T>
struct Max {
  using In = T;
  using Lane = T;
  using Acc = T;
  using Result = T;
  static constexpr Lane zero() { return lowest<T>(); }
  RUSH_FN static Lane step(Lane a, T x, double) { return greater(x, a) ? x : a; }
  RUSH_FN static Acc join(Acc a, Acc b) { return greater(b, a) ? b : a; }
  RUSH_FN static Result finish(Acc a, const FoldOptions&) { return a; }
};
template <class T>
struct Min : Max<T> {
  static constexpr T zero() { return highest<T>(); }
  RUSH_FN static T step(T a, T x, double) { return less(x, a) ? x : a; }
  RUSH_FN static T join(T a, T b) { return less(b, a) ? b : a; }
};
template <class T>
struct MaxAbs : Max<T> {
  static constexpr T zero() { return T(0); }
  RUSH_FN static T step(T a, T x, double) { return Max<T>::step(a, formula::abs(x), 0); }
};
template <class T>
struct MinAbs : Min<T> {
  RUSH_FN static T step(T a, T x, double) { return Min<T>::step(a, formula::abs(x), 0); }
};
template <class T>
struct SumAbs : Sum<T> {
  RUSH_FN static T step(T a, T x, double) { return a + formula::abs(x); }
};
struct InDouble {
  using Lane = double;
  using Acc = double;
  using Result = double;
  static constexpr double zero() { return 0; }
  RUSH_FN static double join(double a, double b) { return a + b; }
};
template <class T>
struct SumSquare : InDouble {
  using In = T;
  RUSH_FN static double step(double a, T x, double) { return a + double(x) * double(x); }
  RUSH_FN static double finish(double a, const FoldOptions&) { return formula::sqrt(a); }
};
template <class T>
struct SumPower : InDouble {
  using In = T;
  RUSH_FN static double step(double a, T x, double p) { return a + formula::pow(formula::abs(double(x)), p); }
  RUSH_FN static double finish(double a, const FoldOptions& o) { return formula::pow(a, 1 / o.power); }
};
struct Any {
  using In = uint8_t;  // a bool
  using Lane = uint8_t;
  using Acc = uint8_t;
  using Result = bool;
  static constexpr Lane zero() { return 0; }
  RUSH_FN static Lane step(Lane a, In x, double) { return a | x; }
  RUSH_FN static Acc join(Acc a, Acc b) { return a | b; }
  RUSH_FN static bool finish(Acc a, const FoldOptions&) { return a != 0; }
};
struct All : Any {
  static constexpr Lane zero() { return 1; }
  RUSH_FN static Lane step(Lane a, In x, double) { return a & x; }
  RUSH_FN static Acc join(Acc a, Acc b) { return a & b; }
};
struct Count {
  using In = uint8_t;
  using Lane = uint8_t;  // holds the 32 that a lane takes
  using Acc = int64_t;
  using Result = int64_t;
  static constexpr Lane zero() { return 0; }
  RUSH_FN static Lane step(Lane a, In x, double) { return Lane(a + x); }
  RUSH_FN static Acc join(Acc a, Acc b) { return a + b; }
  RUSH_FN static Result finish(Acc a, const FoldOptions&) { return a; }
};

}  // namespace rush::folds
