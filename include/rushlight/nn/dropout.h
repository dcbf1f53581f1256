// Layers that drop elements or channels at random in training, and do nothing in evaluation.
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

struct DropoutOptions {
  double p = 0.5;
  bool inplace = false;
};
struct DropoutBase : Layer<DropoutOptions> {
  /// Throws ValueError for p outside [0, 1].
  explicit DropoutBase(const DropoutOptions& options = {});
  std::string extra_repr() const override;
};
/// Zeroes each element with probability p and divides the others by 1 - p. Source: Hinton et al. 2012.
struct DropoutImpl : DropoutBase {
  using DropoutBase::DropoutBase;
  Tensor forward(const Tensor& input) override;
};
using Dropout = Handle<DropoutImpl>;
/// Zeroes whole channels of (batch, channels, sizes of N dimensions); for N other than 2 also without the batch.
template <size_t N>
struct ChannelDropoutImpl : DropoutBase {
  using DropoutBase::DropoutBase;
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("Dropout", N, "d"); }
};
using Dropout1d = Handle<ChannelDropoutImpl<1>>;
using Dropout2d = Handle<ChannelDropoutImpl<2>>;
using Dropout3d = Handle<ChannelDropoutImpl<3>>;
/// Dropout to SELU's negative saturation value, so that mean and variance stay. Source: Klambauer et al. 2017.
struct AlphaDropoutImpl : DropoutBase {
  using DropoutBase::DropoutBase;
  Tensor forward(const Tensor& input) override;
};
using AlphaDropout = Handle<AlphaDropoutImpl>;

}  // namespace rush::nn
