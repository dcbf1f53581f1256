// Convolutions where no library is: each thread sums one element of the result. Memory is contiguous as in
// kernels/cpu/conv.h.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

/// cpu::Convolution for the device.
struct ConvolutionShape {
  int64_t batch, in_channels, out_channels, groups;
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];
};

template <class T>
struct ConvolveForward {
  using C = compute_t<T>;
  T* y;
  const T *x, *weight, *bias;
  ConvolutionShape s;

  RUSH_FN void operator()(int64_t i) const {
    int64_t at[3], rest = i;
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % s.output[d] * s.stride[d] - s.padding[d];
      rest /= s.output[d];
    }
    const int64_t channel = rest % s.out_channels, n = rest / s.out_channels, ins = s.in_channels / s.groups;
    const int64_t first = channel / (s.out_channels / s.groups) * ins;
    const T* w = weight + channel * ins * s.kernel[0] * s.kernel[1] * s.kernel[2];
    C sum = bias ? C(bias[channel]) : C(0);
    for (int64_t c = 0; c < ins; ++c) {
      const T* plane = x + (n * s.in_channels + first + c) * s.input[0] * s.input[1] * s.input[2];
      for (int64_t a = 0; a < s.kernel[0]; ++a)
        for (int64_t b = 0; b < s.kernel[1]; ++b)
          for (int64_t d = 0; d < s.kernel[2]; ++d, ++w) {
            const int64_t z = at[0] + a * s.dilation[0], r = at[1] + b * s.dilation[1], q = at[2] + d * s.dilation[2];
            if (z < 0 || z >= s.input[0] || r < 0 || r >= s.input[1] || q < 0 || q >= s.input[2]) continue;
            sum = formula::fma(C(plane[(z * s.input[1] + r) * s.input[2] + q]), C(*w), sum);
          }
    }
    y[i] = T(sum);
  }
};

/// For each element of x; the bias is of in_channels, for transposed convolutions.
template <class T>
struct ConvolveData {
  using C = compute_t<T>;
  T* x;
  const T *y, *weight, *bias;
  ConvolutionShape s;

  RUSH_FN void operator()(int64_t i) const {
    int64_t at[3], rest = i;
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % s.input[d] + s.padding[d];
      rest /= s.input[d];
    }
    const int64_t channel = rest % s.in_channels, n = rest / s.in_channels;
    const int64_t ins = s.in_channels / s.groups, outs = s.out_channels / s.groups, group = channel / ins;
    const int64_t area = s.kernel[0] * s.kernel[1] * s.kernel[2], plane = s.output[0] * s.output[1] * s.output[2];
    C sum = bias ? C(bias[channel]) : C(0);
    for (int64_t k = 0; k < area; ++k) {
      const int64_t index[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
      int64_t place = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t o = at[d] - index[d] * s.dilation[d];
        inside &= o >= 0 && o % s.stride[d] == 0 && o / s.stride[d] < s.output[d];
        place = place * s.output[d] + o / s.stride[d];
      }
      if (!inside) continue;
      for (int64_t o = 0; o < outs; ++o) {
        const int64_t out = group * outs + o;
        sum = formula::fma(C(y[(n * s.out_channels + out) * plane + place]),
                           C(weight[(out * ins + channel % ins) * area + k]), sum);
      }
    }
    x[i] = T(sum);
  }
};

/// A team for each element of the weight.
template <class T>
struct ConvolveWeight {
  using C = compute_t<T>;
  T* grad;
  const T *x, *y;
  ConvolutionShape s;

  RUSH_FN void operator()(int64_t i) const {
    int64_t at[3], rest = i;
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % s.kernel[d] * s.dilation[d] - s.padding[d];
      rest /= s.kernel[d];
    }
    const int64_t ins = s.in_channels / s.groups, out = rest / ins;
    const int64_t in = out / (s.out_channels / s.groups) * ins + rest % ins;
    const int64_t plane = s.output[0] * s.output[1] * s.output[2], from = s.input[0] * s.input[1] * s.input[2];
    C sum = C(0);
    share(s.batch * plane, [&](int64_t e) {
      int64_t place = e % plane, index[3];
      for (int d = 2; d >= 0; --d) {
        index[d] = place % s.output[d] * s.stride[d] + at[d];
        place /= s.output[d];
        if (index[d] < 0 || index[d] >= s.input[d]) return;
      }
      const int64_t n = e / plane;
      sum = formula::fma(
          C(x[(n * s.in_channels + in) * from + (index[0] * s.input[1] + index[1]) * s.input[2] + index[2]]),
          C(y[(n * s.out_channels + out) * plane + e % plane]), sum);
    });
    sum = combine(sum, [](C a, C b) { return a + b; });
    if (threadIdx.x == 0) grad[i] = T(sum);
  }
};

}  // namespace rush::cuda
