// Sums and maxima over a contiguous row, for kernels that are compiled once for each instruction set.
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

namespace hn = hwy::HWY_NAMESPACE;

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

/// f(d, i) for the elements i and following that a vector of the type d has.
template <class T, class F>
HWY_INLINE void for_vectors(int64_t n, const F& f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 4> few;
  const hn::CappedTag<T, 1> single;
  constexpr int64_t N = int64_t(hn::MaxLanes(d)), M = int64_t(hn::MaxLanes(few));
  int64_t i = 0;
  for (; i + N <= n; i += N) f(d, i);
  for (; i + M <= n; i += M) f(few, i);
  for (; i < n; ++i) f(single, i);
}

/// The sum of a vector's lanes: of its halves, of the halves of those, and so on.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::TFromD<D> fold_halves(D d, V v) {
  if constexpr (sizeof(hn::TFromD<D>) * hn::MaxLanes(d) > 16) {
    const hn::Half<D> half;
    return fold_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
}

/// lane_sum of f(d, i), which gives elements i and following as a vector of the type d, for the loops where the
/// compiler's vectors go through memory. What is left over at the end goes by narrower vectors.
template <class T, class F>
HWY_INLINE double vector_sum(int64_t n, const F& f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 4> few;
  const hn::CappedTag<T, 1> single;
  constexpr int64_t N = int64_t(hn::MaxLanes(d)), M = int64_t(hn::MaxLanes(few)), count = kSumLanes / N;
  double total = 0;
  int64_t i = 0;
  while (n - i >= kSumLanes) {
    hn::Vec<decltype(d)> sums[count];
    const int64_t steps = (n - i) / kSumLanes < kSumSteps ? (n - i) / kSumLanes : kSumSteps;
#pragma GCC unroll 32
    for (int64_t k = 0; k < count; ++k) sums[k] = f(d, i + k * N);
    i += kSumLanes;
    for (int64_t s = 1; s < steps; ++s, i += kSumLanes) {
#pragma GCC unroll 32
      for (int64_t k = 0; k < count; ++k) sums[k] = hn::Add(sums[k], f(d, i + k * N));
    }
#pragma GCC unroll 8
    for (int64_t half = count / 2; half > 0; half /= 2) {
#pragma GCC unroll 32
      for (int64_t k = 0; k < half; ++k) sums[k] = hn::Add(sums[k], sums[k + half]);
    }
    total += double(fold_halves(d, sums[0]));
  }
  for (; i + N <= n; i += N) total += double(fold_halves(d, f(d, i)));
  for (; i + M <= n; i += M) total += double(fold_halves(few, f(few, i)));
  for (; i < n; ++i) total += double(hn::GetLane(f(single, i)));
  return total;
}

/// The largest element; where one is NaN, which a sum of exponentials then finds, it may be any.
template <class T>
HWY_INLINE T lane_max(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = int64_t(hn::MaxLanes(d)), count = 4;
  T best = x[0];
  int64_t i = 0;
  if (n >= count * N) {
    hn::Vec<decltype(d)> tops[count];
#pragma GCC unroll 4
    for (int64_t k = 0; k < count; ++k) tops[k] = hn::LoadU(d, x + k * N);
    for (; i + count * N <= n; i += count * N) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < count; ++k) {
        tops[k] = hn::Max(tops[k], hn::LoadU(d, x + i + k * N));
      }
    }
    best = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(tops[0], tops[1]), hn::Max(tops[2], tops[3]))));
  }
  for (; i < n; ++i) best = (x[i] > best) | (x[i] != x[i]) ? x[i] : best;
  return best;
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif
