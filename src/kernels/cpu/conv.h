// Convolutions over one to three spatial dimensions of contiguous (batch, channels, spatial...) memory, with gradients.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/cpu/weight.h"
#include "rushlight/half.h"

namespace rush::cpu {

using Extent = std::array<int64_t, 3>;  // depth, height, width

/// The sizes of a convolution. Spatial sizes are right-aligned: of a one-dimensional one, [0] and [1] keep their
/// defaults. A transposed convolution is the gradient of the convolution that goes the other way: exchange in_channels
/// with out_channels and `input` with `output`, and call conv_backward_data(conv, x, weight, y, bias); its gradients
/// are conv_forward(conv, grad_y, weight) and conv_backward_weight(conv, grad_y, x).
struct Convolution {
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  Extent input{1, 1, 1}, output{1, 1, 1};
  Extent kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  /// The largest output whose windows lie within the padded input, along one dimension.
  int64_t output_size(int dim) const {
    const int64_t room = input[dim] + 2 * padding[dim] - dilation[dim] * (kernel[dim] - 1) - 1;
    return room < 0 ? 0 : room / stride[dim] + 1;
  }
};

/// A copy of up to three spatial sizes, right-aligned; `fill` stands for the dimensions that are not there.
inline Extent extent(std::span<const int64_t> sizes, int64_t fill) {
  Extent result{fill, fill, fill};
  for (size_t i = 0; i < sizes.size(); ++i) result[3 - sizes.size() + i] = sizes[i];
  return result;
}

/// What becomes of the sums of a channel: clamp(sum * scale + shift, low, high). Without a scale it is 1; without a
/// shift they stay as they are.
template <class T>
struct Epilogue {
  static constexpr T kHigh =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static constexpr T kLow = std::numeric_limits<T>::has_infinity ? -kHigh : std::numeric_limits<T>::lowest();
  const T *shift = nullptr, *scale = nullptr;
  T low = kLow, high = kHigh;

  bool empty() const { return !shift && only_shifts(); }
  bool only_shifts() const { return !scale && low == kLow && high == kHigh; }

  T scale_of(int64_t channel) const { return scale ? scale[channel] : T(1); }
  T shift_of(int64_t channel) const { return shift ? shift[channel] : T(0); }
  /// For the channels from `first` on.
  Epilogue from(int64_t first) const {
    return {shift ? shift + first : nullptr, scale ? scale + first : nullptr, low, high};
  }
};

/// y (batch, out_channels, output...) = x (batch, in_channels, input...) convolved with weight (out_channels,
/// in_channels / groups, kernel...), plus bias (out_channels) unless null. T: float, double, BFloat16, Half (summed in
/// float). Results do not depend on the number of threads. What is packed of the weight may be kept with its `memory`,
/// which changes no bit.
template <class T>
void conv_forward(const Convolution& conv, const T* x, const T* weight, const T* bias, T* y, Weight memory = {});

/// The same for floats, with any end.
void conv_forward(const Convolution& conv, const float* x, const float* weight, const Epilogue<float>& end, float* y,
                  Weight memory = {});

/// grad_x from grad_y; plus bias (in_channels) unless null, which is for transposed convolutions.
template <class T>
void conv_backward_data(const Convolution& conv, const T* grad_y, const T* weight, T* grad_x, const T* bias = nullptr);

template <class T>
void conv_backward_weight(const Convolution& conv, const T* x, const T* grad_y, T* grad_weight);

}  // namespace rush::cpu
