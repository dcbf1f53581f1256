// Flipping, and sliding windows laid out as columns.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

/// Lanes: out, x, whose strides may be negative.
template <class W>
struct Move {
  Layout<2> l;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at[2];
    l.locate(i, at);
    reinterpret_cast<W*>(l.lanes[0].data)[at[0]] = reinterpret_cast<const W*>(l.lanes[1].data)[at[1]];
  }
};

/// A window sliding over planes; [0] is of rows, [1] of columns.
struct Windows {
  int64_t size[2], kernel[2], dilation[2], padding[2], stride[2], places[2];
};

/// out (planes, kernel, places) from x (planes, rows, columns), for each element of out.
template <class T>
struct ImToCol {
  T* out;
  const T* x;
  Windows w;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t place_x = i % w.places[1], place_y = i / w.places[1] % w.places[0];
    const int64_t rest = i / (w.places[0] * w.places[1]);
    const int64_t kx = rest % w.kernel[1], ky = rest / w.kernel[1] % w.kernel[0];
    const int64_t plane = rest / (w.kernel[0] * w.kernel[1]);
    const int64_t row = place_y * w.stride[0] - w.padding[0] + ky * w.dilation[0];
    const int64_t column = place_x * w.stride[1] - w.padding[1] + kx * w.dilation[1];
    const bool inside = row >= 0 && row < w.size[0] && column >= 0 && column < w.size[1];
    out[i] = inside ? x[(plane * w.size[0] + row) * w.size[1] + column] : T(0);
  }
};

/// The reverse, for each element of out (planes, rows, columns).
template <class T>
struct ColToIm {
  T* out;
  const T* x;
  Windows w;
  RUSH_FN void operator()(int64_t i) const {
    using C = compute_t<T>;
    const int64_t column = i % w.size[1], row = i / w.size[1] % w.size[0], plane = i / (w.size[0] * w.size[1]);
    C sum = C(0);
    for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
      const int64_t y = row + w.padding[0] - ky * w.dilation[0];
      if (y < 0 || y % w.stride[0] != 0 || y / w.stride[0] >= w.places[0]) continue;
      for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
        const int64_t z = column + w.padding[1] - kx * w.dilation[1];
        if (z < 0 || z % w.stride[1] != 0 || z / w.stride[1] >= w.places[1]) continue;
        const int64_t k = (plane * w.kernel[0] + ky) * w.kernel[1] + kx;
        sum = C(sum + C(x[(k * w.places[0] + y / w.stride[0]) * w.places[1] + z / w.stride[1]]));
      }
    }
    out[i] = T(sum);
  }
};

}  // namespace rush::cuda
