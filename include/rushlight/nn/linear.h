// Layers that are a matrix product, and the layer that is nothing. Each X is a Handle of XImpl, made from XOptions,
// whose names and defaults are Python's; the first values are Python's after the same manual_seed:
//
//   rush::nn::Linear linear({.in_features = 64, .out_features = 10});     // or ({64, 10})
//   rush::Tensor y = linear(x);
//   linear->weight.sizes();                                                // [10, 64]
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

/// Returns its input unchanged.
struct IdentityImpl : Module {
  Tensor forward(const Tensor& input) override { return input; }
};
using Identity = Handle<IdentityImpl>;

struct LinearOptions {
  Required<int64_t> in_features, out_features;
  bool bias = true;
  OptDevice device = {};
  OptDType dtype = {};
};
/// The affine map y = x A^T + b. Shape: (*, in_features) to (*, out_features). State: `weight` (out_features,
/// in_features) and `bias`, both uniform in ±1/sqrt(in_features).
struct LinearImpl : Layer<LinearOptions> {
  explicit LinearImpl(const LinearOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using Linear = Handle<LinearImpl>;

struct BilinearOptions {
  Required<int64_t> in1_features, in2_features, out_features;
  bool bias = true;
  OptDevice device = {};
  OptDType dtype = {};
};
/// The bilinear map y_k = x1^T A_k x2 + b_k. State: `weight` (out_features, in1_features, in2_features), `bias`.
struct BilinearImpl : Layer<BilinearOptions> {
  explicit BilinearImpl(const BilinearOptions& options);
  void reset_parameters();
  using Module::forward;
  Tensor forward(const Tensor& input1, const Tensor& input2);
  std::string extra_repr() const override;
  Tensor weight, bias;
};
using Bilinear = Handle<BilinearImpl>;

}  // namespace rush::nn
