// Layers that join dimensions and split them.
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};
/// Joins the dimensions from start_dim to end_dim into one; by default all but the batch.
struct FlattenImpl : Layer<FlattenOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Flatten = Handle<FlattenImpl>;

struct UnflattenOptions {
  Required<int64_t> dim;
  Shape unflattened_size;
};
/// Splits a dimension into sizes, of which one may be -1.
struct UnflattenImpl : Layer<UnflattenOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Unflatten = Handle<UnflattenImpl>;

}  // namespace rush::nn
