// Resizing, where each output position along one dimension reads `width` input elements with weights, and sampling at
// the places of a grid.
#pragma once
#include "kernels/cuda/layout.cuh"
#include "kernels/sampling.h"

namespace rush::cuda {

/// out (outer, n, inner) from x (outer, in, inner), for each element of out; or, transposed, for each element of x of
/// (outer, n, inner) added to out of (outer, in, inner), over zeros.
template <class T, bool kTransposed>
struct ApplyTaps {
  T* out;
  const T* x;
  const int64_t* index;
  const T* weight;
  int64_t in, n, width, inner;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t k = i % inner, j = i / inner % n, o = i / (inner * n);
    T sum = 0;
    for (int64_t t = j * width; t < (j + 1) * width; ++t) {
      const int64_t at = (o * in + index[t]) * inner + k;
      if constexpr (kTransposed)
        atomic_add(out + at, weight[t] * x[i]);
      else if (weight[t] != 0)
        sum += weight[t] * x[at];
    }
    if constexpr (!kTransposed) out[i] = sum;
  }
};

/// An image (batch, channels, size...) and the places of a grid (batch, count, dims), all dense.
template <class T>
struct Sampled {
  const T *x, *grid;
  int64_t channels, count, dims, size[3];
  interpolation::GridSampling how;

  RUSH_FN int64_t plane() const { return size[0] * size[1] * size[2]; }
  /// Calls f(offset in the plane, weight, slopes) for what place i reads, after start with what their sum starts with.
  template <class S, class F>
  RUSH_FN void each(int64_t i, const S& start, const F& f) const {
    interpolation::Corner<T> c[3];
    interpolation::corners(grid + i * dims, dims, size, how, c);
    start(c[0].start + c[1].start + c[2].start);
    interpolation::each_tap(c, size, f);
  }
};

/// For each place, all channels.
template <class T>
struct GridSample {
  T* out;
  Sampled<T> s;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t n = i / s.count, p = i % s.count, plane = s.plane();
    T* to = out + n * s.channels * s.count + p;
    const auto start = [&](T value) {
      for (int64_t c = 0; c < s.channels; ++c) to[c * s.count] = value;
    };
    s.each(i, start, [&](int64_t at, T weight, const T*) {
      const T* from = s.x + n * s.channels * plane + at;
      for (int64_t c = 0; c < s.channels; ++c) to[c * s.count] += weight * from[c * plane];
    });
  }
};
template <class T>
struct GridSampleGrad {
  T *grad_x, *grad_grid;  // the first over zeros
  const T* grad;
  Sampled<T> s;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t n = i / s.count, p = i % s.count, plane = s.plane();
    T sums[3] = {0, 0, 0};
    s.each(i, [](T) {}, [&](int64_t at, T weight, const T* slopes) {
      const T* from = s.x + n * s.channels * plane + at;
      T* to = grad_x + n * s.channels * plane + at;
      T dot = 0;
      for (int64_t c = 0; c < s.channels; ++c) {
        const T one = grad[(n * s.channels + c) * s.count + p];
        atomic_add(to + c * plane, weight * one);
        dot += from[c * plane] * one;
      }
      for (int d = 0; d < 3; ++d) sums[d] += dot * slopes[d];
    });
    for (int64_t d = 0; d < s.dims; ++d) grad_grid[i * s.dims + d] = sums[d];
  }
};

}  // namespace rush::cuda
