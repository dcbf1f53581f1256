// Layers that sum up windows of their input (batch, channels, sizes of N dimensions), or without the batch.
//
//   rush::nn::MaxPool2d pool({.kernel_size = 3, .stride = 2, .padding = 1});
#pragma once
#include <array>

#include "rushlight/nn/module.h"

namespace rush::nn {

template <size_t N>
struct MaxPoolOptions {
  Sizes<N> kernel_size;
  OptSizes<N> stride = {};  // by default kernel_size
  Sizes<N> padding = 0;
  Sizes<N> dilation = 1;
  bool ceil_mode = false;
};
/// The maximum of each window.
template <size_t N>
struct MaxPoolImpl : Layer<MaxPoolOptions<N>> {
  using Layer<MaxPoolOptions<N>>::Layer;
  Tensor forward(const Tensor& input) override;
  /// The maxima, and where in the flattened input they are.
  std::array<Tensor, 2> forward_with_indices(const Tensor& input);
  std::string name() const override { return text("MaxPool", N, "d"); }
  std::string extra_repr() const override;
};
using MaxPool1d = Handle<MaxPoolImpl<1>>;
using MaxPool2d = Handle<MaxPoolImpl<2>>;
using MaxPool3d = Handle<MaxPoolImpl<3>>;

template <size_t N>
struct AvgPoolOptions {
  Sizes<N> kernel_size;
  OptSizes<N> stride = {};  // by default kernel_size
  Sizes<N> padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  OptInt divisor_override = {};  // for 2 and 3 dimensions
};
/// The mean of each window.
template <size_t N>
struct AvgPoolImpl : Layer<AvgPoolOptions<N>> {
  using Layer<AvgPoolOptions<N>>::Layer;
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("AvgPool", N, "d"); }
  std::string extra_repr() const override;
};
using AvgPool1d = Handle<AvgPoolImpl<1>>;
using AvgPool2d = Handle<AvgPoolImpl<2>>;
using AvgPool3d = Handle<AvgPoolImpl<3>>;

template <size_t N>
struct AdaptivePoolOptions {
  Sizes<N> output_size;
};
/// The maxima of windows chosen so that the result has output_size.
template <size_t N>
struct AdaptiveMaxPoolImpl : Layer<AdaptivePoolOptions<N>> {
  using Layer<AdaptivePoolOptions<N>>::Layer;
  Tensor forward(const Tensor& input) override { return forward_with_indices(input)[0]; }
  std::array<Tensor, 2> forward_with_indices(const Tensor& input);
  std::string name() const override { return text("AdaptiveMaxPool", N, "d"); }
  std::string extra_repr() const override;
};
using AdaptiveMaxPool1d = Handle<AdaptiveMaxPoolImpl<1>>;
using AdaptiveMaxPool2d = Handle<AdaptiveMaxPoolImpl<2>>;
using AdaptiveMaxPool3d = Handle<AdaptiveMaxPoolImpl<3>>;
/// The means of windows chosen so that the result has output_size.
template <size_t N>
struct AdaptiveAvgPoolImpl : Layer<AdaptivePoolOptions<N>> {
  using Layer<AdaptivePoolOptions<N>>::Layer;
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("AdaptiveAvgPool", N, "d"); }
  std::string extra_repr() const override;
};
using AdaptiveAvgPool1d = Handle<AdaptiveAvgPoolImpl<1>>;
using AdaptiveAvgPool2d = Handle<AdaptiveAvgPoolImpl<2>>;
using AdaptiveAvgPool3d = Handle<AdaptiveAvgPoolImpl<3>>;

}  // namespace rush::nn
