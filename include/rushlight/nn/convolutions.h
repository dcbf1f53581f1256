// Convolutions and their transposes.
//
//   rush::nn::Conv2d conv({.in_channels = 1, .out_channels = 16, .kernel_size = 3, .padding = 1});
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

/// A convolution's padding: sizes, or "same" or "valid".
template <size_t N>
class Padding {
 public:
  Padding(int64_t all) : sizes_(all) {}
  Padding(std::initializer_list<int64_t> each) : sizes_(each) {}
  Padding(std::string name) : sizes_(0), name_(std::move(name)) {}
  template <size_t L>
  Padding(const char (&name)[L]) : Padding(std::string(name)) {}  // const char* would take 0 for a null pointer
  const std::string& name() const { return name_; }
  Dims all() const { return sizes_.all(); }

 private:
  Sizes<N> sizes_;
  std::string name_;
};

template <size_t N>
struct ConvOptions {
  Required<int64_t> in_channels, out_channels;
  Sizes<N> kernel_size;
  Sizes<N> stride = 1;
  Padding<N> padding = 0;
  Sizes<N> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
  OptDevice device = {};
  OptDType dtype = {};
};
template <size_t N>
struct ConvTransposeOptions {
  Required<int64_t> in_channels, out_channels;
  Sizes<N> kernel_size;
  Sizes<N> stride = 1;
  Sizes<N> padding = 0;
  Sizes<N> output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Sizes<N> dilation = 1;
  OptDevice device = {};
  OptDType dtype = {};
};

/// Cross-correlates N-dimensional inputs of several channels with learned kernels. Shape: (batch, in_channels, sizes),
/// or without the batch. State: `weight` (out_channels, in_channels / groups, kernel_size) and `bias`, both uniform in
/// ±1/sqrt(fan_in). Throws ValueError where groups do not divide the channels.
template <size_t N>
struct ConvImpl : Layer<ConvOptions<N>> {
  explicit ConvImpl(const ConvOptions<N>& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("Conv", N, "d"); }
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using Conv1d = Handle<ConvImpl<1>>;
using Conv2d = Handle<ConvImpl<2>>;
using Conv3d = Handle<ConvImpl<3>>;

/// The gradient of a convolution with respect to its input, as a layer. State: `weight` (in_channels, out_channels /
/// groups, kernel_size) and `bias`.
template <size_t N>
struct ConvTransposeImpl : Layer<ConvTransposeOptions<N>> {
  explicit ConvTransposeImpl(const ConvTransposeOptions<N>& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("ConvTranspose", N, "d"); }
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using ConvTranspose1d = Handle<ConvTransposeImpl<1>>;
using ConvTranspose2d = Handle<ConvTransposeImpl<2>>;
using ConvTranspose3d = Handle<ConvTransposeImpl<3>>;

}  // namespace rush::nn
