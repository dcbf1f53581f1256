// Normalization over the batch, within channels, over trailing dimensions, in groups of channels.
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

struct BatchNormOptions {
  Required<int64_t> num_features;
  double eps = 1e-5;
  OptDouble momentum = 0.1;  // the part of a batch in the running statistics; nothing: they are the mean of all batches
  bool affine = true, track_running_stats = true;
  OptDevice device = {};
  OptDType dtype = {};
  bool bias = true;
};
struct InstanceNormOptions {
  Required<int64_t> num_features;
  double eps = 1e-5;
  OptDouble momentum = 0.1;
  bool affine = false, track_running_stats = false;
  OptDevice device = {};
  OptDType dtype = {};
  bool bias = true;
};
/// What batch and instance norm share. State: `weight`, `bias`; `running_mean`, `running_var`, `num_batches_tracked`.
template <class O>
struct RunningNorm : Layer<O> {
  explicit RunningNorm(const O& options);
  void reset_running_stats();
  void reset_parameters();
  std::string extra_repr() const override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  bool is_optional(const std::string& name) const override { return name == "num_batches_tracked"; }
};
/// Normalizes each channel over the batch, in evaluation with the running statistics. Shape: (batch, num_features,
/// sizes of N dimensions); for N = 1 also without the last. Source: Ioffe and Szegedy 2015, arXiv:1502.03167.
template <size_t N>
struct BatchNormImpl : RunningNorm<BatchNormOptions> {
  using RunningNorm<BatchNormOptions>::RunningNorm;
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("BatchNorm", N, "d"); }
};
using BatchNorm1d = Handle<BatchNormImpl<1>>;
using BatchNorm2d = Handle<BatchNormImpl<2>>;
using BatchNorm3d = Handle<BatchNormImpl<3>>;
/// Normalizes each channel of each example. Shape: (batch, num_features, sizes of N dimensions), or without the batch.
/// Source: Ulyanov et al. 2016, arXiv:1607.08022.
template <size_t N>
struct InstanceNormImpl : RunningNorm<InstanceNormOptions> {
  using RunningNorm<InstanceNormOptions>::RunningNorm;
  Tensor forward(const Tensor& input) override;
  std::string name() const override { return text("InstanceNorm", N, "d"); }
};
using InstanceNorm1d = Handle<InstanceNormImpl<1>>;
using InstanceNorm2d = Handle<InstanceNormImpl<2>>;
using InstanceNorm3d = Handle<InstanceNormImpl<3>>;

struct LayerNormOptions {
  Shape normalized_shape;
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
  OptDevice device = {};
  OptDType dtype = {};
};
/// (x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions. Source: Ba et al. 2016, arXiv:1607.06450.
struct LayerNormImpl : Layer<LayerNormOptions> {
  explicit LayerNormImpl(const LayerNormOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using LayerNorm = Handle<LayerNormImpl>;

struct RMSNormOptions {
  Shape normalized_shape;
  OptDouble eps = {};  // nothing: the dtype's epsilon
  bool elementwise_affine = true;
  OptDevice device = {};
  OptDType dtype = {};
};
/// x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions. Source: Zhang and Sennrich 2019, arXiv:1910.07467.
struct RMSNormImpl : Layer<RMSNormOptions> {
  explicit RMSNormImpl(const RMSNormOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight;
};
using RMSNorm = Handle<RMSNormImpl>;

struct GroupNormOptions {
  Required<int64_t> num_groups, num_channels;
  double eps = 1e-5;
  bool affine = true;
  OptDevice device = {};
  OptDType dtype = {};
  bool bias = true;
};
/// Normalizes each group of channels of each example. Throws ValueError where num_groups does not divide num_channels.
/// Source: Wu and He 2018, arXiv:1803.08494.
struct GroupNormImpl : Layer<GroupNormOptions> {
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using GroupNorm = Handle<GroupNormImpl>;

}  // namespace rush::nn
