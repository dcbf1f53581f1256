// Cumulative operations: each thread of a team takes a segment of the row, first to sum it, then, knowing what comes
// before, to write it. For any number of threads; what `op` gives must not depend on how elements are grouped, up to
// rounding.
#pragma once
#include "kernels/cuda/layout.cuh"
#include "kernels/folds.h"

namespace rush::cuda {

struct ScanSum {
  template <class T>
  RUSH_FN static T zero() {
    return T(0);
  }
  template <class T>
  RUSH_FN static T join(T a, T b) {
    return folds::plus(a, b);
  }
};
struct ScanProduct {
  template <class T>
  RUSH_FN static T zero() {
    return T(1);
  }
  template <class T>
  RUSH_FN static T join(T a, T b) {
    return folds::times(a, b);
  }
};
struct ScanLogAddExp {
  template <class T>
  RUSH_FN static T zero() {
    return T(-formula::kInf);
  }
  template <class T>
  RUSH_FN static T join(T a, T x) {
    if constexpr (is_complex_type<T>) {  // not the principal value: the imaginary part goes on as it does in PyTorch
      const T high = a.real() < x.real() ? x : a, low = a.real() < x.real() ? a : x;
      if (std::isinf(high.real())) return high;
      return high + std::log(T(1) + std::exp(low - high));
    } else {
      const T top = a > x || a != a ? a : x, low = a > x || a != a ? x : a;
      if (std::isinf(top) || top != top) return top;
      return top + formula::log1p(formula::exp(low - top));
    }
  }
};
/// Value and the last index where it was met; NaN stays once met.
template <bool kLargest>
struct ScanExtreme {
  template <class T>
  struct Best {
    T value;
    int64_t index;  // -1: none
  };
  template <class B>
  RUSH_FN static B zero() {
    return B{{}, -1};
  }
  template <class B>
  RUSH_FN static B join(B a, B b) {  // b's elements come later
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    if (b.value != b.value) return b;
    if (a.value != a.value) return a;
    return (kLargest ? b.value >= a.value : b.value <= a.value) ? b : a;
  }
};

/// Rows of n elements that lie `inner` apart.
template <class T, class Op>
struct Scan {
  Array out, x;
  int64_t n, inner;

  template <class Element, class Store>
  RUSH_FN static void run(int64_t n, const Element& element, const Store& put) {
    using A = decltype(element(int64_t(0)));
    RUSH_SHARED(A, sums, kTeam);
    const int64_t length = (n + blockDim.x - 1) / blockDim.x, begin = threadIdx.x * length;
    const int64_t end = n < begin + length ? n : begin + length;
    A sum = Op::template zero<A>();
    if (blockDim.x > 1) {
      for (int64_t i = begin; i < end; ++i) sum = Op::join(sum, element(i));
      sums[threadIdx.x] = sum;
      __syncthreads();
      sum = Op::template zero<A>();
      for (unsigned t = 0; t < threadIdx.x; ++t) sum = Op::join(sum, sums[t]);
    }
    for (int64_t i = begin; i < end; ++i) {
      sum = Op::join(sum, element(i));
      put(i, sum);
    }
  }

  RUSH_FN void operator()(int64_t row) const {
    const int64_t base = row / inner * n * inner + row % inner;
    run(
        n,
        [&](int64_t i) {
          const auto v = x.at<T>(base + i * inner);
          return convert<folds::Wide<T>>(v);
        },
        [&](int64_t i, folds::Wide<T> v) { out.put<folds::Wide<T>>(base + i * inner, v); });
  }
};

template <class T, bool kLargest>
struct ScanBest {
  Array values, indices, x;
  int64_t n, inner;
  RUSH_FN void operator()(int64_t row) const {
    const int64_t base = row / inner * n * inner + row % inner;
    using Op = ScanExtreme<kLargest>;
    using Best = typename Op::template Best<T>;
    Scan<T, Op>::run(
        n,
        [&](int64_t i) {
          return Best{x.at<T>(base + i * inner), i};
        },
        [&](int64_t i, Best b) {
          values.put<T>(base + i * inner, b.value);
          indices.put<int64_t>(base + i * inner, b.index);
        });
  }
};

}  // namespace rush::cuda
