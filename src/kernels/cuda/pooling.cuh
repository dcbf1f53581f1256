// Pooling over contiguous (planes, spatial...) memory with up to three spatial dimensions; a thread for each element of
// the result.
#pragma once
#include "kernels/cuda/failure.cuh"
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

/// cpu::Pooling for the device.
struct PoolShape {
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];
  bool adaptive;

  /// Position `i` of the output: its plane, and where its window begins and ends along each dimension, unclipped.
  RUSH_FN int64_t window(int64_t i, int64_t* begin, int64_t* end) const {
    for (int d = 2; d >= 0; --d) {
      const int64_t o = i % output[d];
      i /= output[d];
      begin[d] = adaptive ? o * input[d] / output[d] : o * stride[d] - padding[d];
      end[d] =
          adaptive ? ((o + 1) * input[d] + output[d] - 1) / output[d] : begin[d] + dilation[d] * (kernel[d] - 1) + 1;
    }
    return i;
  }
  RUSH_FN int64_t step(int d) const { return adaptive ? 1 : dilation[d]; }
  RUSH_FN int64_t in() const { return input[0] * input[1] * input[2]; }
};

/// Calls f(index within the plane) for the elements of a window that lie in the input.
template <class F>
RUSH_FN void for_window(const PoolShape& s, const int64_t* begin, const int64_t* end, const F& f) {
  for (int64_t a = begin[0]; a < end[0] && a < s.input[0]; a += s.step(0)) {
    if (a < 0) continue;
    for (int64_t b = begin[1]; b < end[1] && b < s.input[1]; b += s.step(1)) {
      if (b < 0) continue;
      for (int64_t c = begin[2]; c < end[2] && c < s.input[2]; c += s.step(2))
        if (c >= 0) f((a * s.input[1] + b) * s.input[2] + c);
    }
  }
}

template <class T>
struct MaxPool {
  T* values;
  int64_t* indices;  // or null
  const T* x;
  PoolShape s;
  RUSH_FN void operator()(int64_t i) const {
    using C = compute_t<T>;
    int64_t begin[3], end[3], best = -1;
    const T* plane = x + s.window(i, begin, end) * s.in();
    C most = C(0);
    for_window(s, begin, end, [&](int64_t at) {
      const C v = C(plane[at]);
      if (best < 0 || v > most || v != v) most = v, best = at;
    });
    values[i] = best < 0 ? T(0) : plane[best];
    if (indices) indices[i] = best;
  }
};

/// What a window's sum is divided by.
struct PoolDivisor {
  bool count_padding;
  int64_t fixed;  // or 0
  RUSH_FN int64_t operator()(const PoolShape& s, const int64_t* begin, const int64_t* end) const {
    if (fixed != 0) return fixed;
    int64_t all = 1, inside = 1;
    for (int d = 0; d < 3; ++d) {
      const int64_t reach = s.input[d] + (s.adaptive ? 0 : s.padding[d]);
      const int64_t last = end[d] < reach ? end[d] : reach;
      all *= last - begin[d];
      inside *= (last < s.input[d] ? last : s.input[d]) - (begin[d] > 0 ? begin[d] : 0);
    }
    return count_padding ? all : inside;
  }
};
template <class T>
struct AvgPool {
  T* y;
  const T* x;
  PoolShape s;
  PoolDivisor divisor;
  RUSH_FN void operator()(int64_t i) const {
    using C = compute_t<T>;
    int64_t begin[3], end[3];
    const T* plane = x + s.window(i, begin, end) * s.in();
    C sum = C(0);
    for_window(s, begin, end, [&](int64_t at) { sum += C(plane[at]); });
    y[i] = T(sum / C(divisor(s, begin, end)));
  }
};
/// For each element of the output, into a sum that begins with zeros.
template <class T>
struct AvgPoolGrad {
  T* dx;
  const Array grad;
  PoolShape s;
  PoolDivisor divisor;
  RUSH_FN void operator()(int64_t i) const {
    int64_t begin[3], end[3];
    T* plane = dx + s.window(i, begin, end) * s.in();
    const T share_of = grad.at<T>(i) / T(divisor(s, begin, end));
    for_window(s, begin, end, [&](int64_t at) { atomic_add(plane + at, share_of); });
  }
};

/// out[plane][index] += x, over zeros, or = x.
template <class T>
struct PoolScatter {
  T* out;
  Array x;
  const int64_t* indices;
  int64_t from, to;  // elements of a plane
  bool add;
  IndexCheck check;
  RUSH_FN void operator()(int64_t i) const {
    if (!check(indices[i], to, 0)) return;
    T* at = out + i / from * to + indices[i];
    if (add)
      atomic_add(at, x.at<T>(i));
    else
      *at = x.at<T>(i);
  }
};
template <class T>
struct PoolGather {
  T* out;
  const T* x;
  const int64_t* indices;
  int64_t from, to;
  RUSH_FN void operator()(int64_t i) const { out[i] = x[i / to * from + indices[i]]; }
};

/// Windows whose starts follow from a sample for each plane and dimension.
template <class T>
struct FractionalMaxPool {
  T* values;
  int64_t* indices;
  const T* x;
  Array samples;
  int64_t dims;
  PoolShape s;
  RUSH_FN int64_t start(int64_t plane, int d, int64_t o) const {
    const int64_t from_end = 2 - d;  // samples are in the order width, height, depth
    const double sample = from_end < dims ? samples.at<double>(plane * dims + from_end) : 0;
    const double alpha = s.output[d] > 1 ? double(s.input[d] - s.kernel[d]) / double(s.output[d] - 1) : 0;
    if (o == s.output[d] - 1) return s.input[d] - s.kernel[d];
    return int64_t((double(o) + sample) * alpha) - int64_t(sample * alpha);
  }
  RUSH_FN void operator()(int64_t i) const {
    using C = compute_t<T>;
    int64_t rest = i, at[3];
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % s.output[d];
      rest /= s.output[d];
    }
    int64_t begin[3], end[3], best = -1;
    for (int d = 0; d < 3; ++d) {
      begin[d] = start(rest, d, at[d]);
      end[d] = begin[d] + s.kernel[d];
    }
    const T* plane = x + rest * s.in();
    for_window(s, begin, end, [&](int64_t here) {
      const C v = C(plane[here]);
      if (best < 0 || v > C(plane[best]) || v != v) best = here;
    });
    values[i] = plane[best];
    indices[i] = best;
  }
};

}  // namespace rush::cuda
