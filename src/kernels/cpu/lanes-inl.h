// Sums over a contiguous row that the compiler vectorises, for kernels that are compiled once for each instruction set.
#if defined(RUSH_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSH_LANES_INL_H
#undef RUSH_LANES_INL_H
#else
#define RUSH_LANES_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/math.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {

constexpr int kSumLanes = 64, kSumSteps = 32;

/// The sum of f(0), f(1), ... f(n - 1), as Note [Sums] says; f may also write element i of something.
template <class T, class F>
RUSH_FN double lane_sum(int64_t n, const F& f) {
  double total = 0;
  int64_t i = 0;
  while (n - i >= kSumLanes) {
    T lanes[kSumLanes];
    const int64_t steps = (n - i) / kSumLanes < kSumSteps ? (n - i) / kSumLanes : kSumSteps;
#pragma GCC ivdep
    for (int l = 0; l < kSumLanes; ++l) lanes[l] = f(i + l);
    i += kSumLanes;
    for (int64_t s = 1; s < steps; ++s, i += kSumLanes)
#pragma GCC ivdep
      for (int l = 0; l < kSumLanes; ++l) lanes[l] += f(i + l);
    for (int half = kSumLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    total += double(lanes[0]);
  }
  for (; i < n; ++i) total += double(f(i));
  return total;
}

/// The largest element, NaN if there is one.
template <class T>
RUSH_FN T lane_max(const T* x, int64_t n) {
  T best = x[0];
  int64_t i = 0;
  if (n >= kSumLanes) {
    T lanes[kSumLanes];
    for (int l = 0; l < kSumLanes; ++l) lanes[l] = x[l];
    for (i = kSumLanes; i + kSumLanes <= n; i += kSumLanes)
      for (int l = 0; l < kSumLanes; ++l) {
        const T v = x[i + l];
        lanes[l] = (v > lanes[l]) | (v != v) ? v : lanes[l];
      }
    for (int l = 0; l < kSumLanes; ++l) best = (lanes[l] > best) | (lanes[l] != lanes[l]) ? lanes[l] : best;
  }
  for (; i < n; ++i) best = (x[i] > best) | (x[i] != x[i]) ? x[i] : best;
  return best;
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif
