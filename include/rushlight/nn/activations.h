// Nonlinearities as layers, elementwise or along a dimension. What they compute is described at the Python layer of the
// same name; `inplace` overwrites the input.
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

struct InplaceOptions {
  bool inplace = false;
};
/// An activation with no other option.
struct InplaceLayer : Layer<InplaceOptions> {
  using Layer::Layer;
  std::string extra_repr() const override { return options.inplace ? "inplace=True" : ""; }
};
struct ReLUImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using ReLU = Handle<ReLUImpl>;
struct ReLU6Impl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using ReLU6 = Handle<ReLU6Impl>;
struct SELUImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using SELU = Handle<SELUImpl>;
struct SiLUImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using SiLU = Handle<SiLUImpl>;
struct MishImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using Mish = Handle<MishImpl>;
struct HardswishImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using Hardswish = Handle<HardswishImpl>;
struct HardsigmoidImpl : InplaceLayer {
  using InplaceLayer::InplaceLayer;
  Tensor forward(const Tensor& input) override;
};
using Hardsigmoid = Handle<HardsigmoidImpl>;

struct SigmoidImpl : Module {
  Tensor forward(const Tensor& input) override;
};
using Sigmoid = Handle<SigmoidImpl>;
struct TanhImpl : Module {
  Tensor forward(const Tensor& input) override;
};
using Tanh = Handle<TanhImpl>;
struct LogSigmoidImpl : Module {
  Tensor forward(const Tensor& input) override;
};
using LogSigmoid = Handle<LogSigmoidImpl>;
struct SoftsignImpl : Module {
  Tensor forward(const Tensor& input) override;
};
using Softsign = Handle<SoftsignImpl>;
struct TanhshrinkImpl : Module {
  Tensor forward(const Tensor& input) override;
};
using Tanhshrink = Handle<TanhshrinkImpl>;

struct ELUOptions {
  double alpha = 1;
  bool inplace = false;
};
struct ELUImpl : Layer<ELUOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using ELU = Handle<ELUImpl>;
struct CELUImpl : Layer<ELUOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using CELU = Handle<CELUImpl>;

struct LeakyReLUOptions {
  double negative_slope = 1e-2;
  bool inplace = false;
};
struct LeakyReLUImpl : Layer<LeakyReLUOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using LeakyReLU = Handle<LeakyReLUImpl>;

struct HardtanhOptions {
  double min_val = -1, max_val = 1;
  bool inplace = false;
};
/// Throws ValueError unless min_val < max_val.
struct HardtanhImpl : Layer<HardtanhOptions> {
  explicit HardtanhImpl(const HardtanhOptions& options = {});
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Hardtanh = Handle<HardtanhImpl>;

struct ThresholdOptions {
  Required<double> threshold, value;
  bool inplace = false;
};
struct ThresholdImpl : Layer<ThresholdOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Threshold = Handle<ThresholdImpl>;

struct GELUOptions {
  std::string approximate = "none";  // or "tanh"
};
struct GELUImpl : Layer<GELUOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using GELU = Handle<GELUImpl>;

struct GLUOptions {
  int64_t dim = -1;
};
struct GLUImpl : Layer<GLUOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using GLU = Handle<GLUImpl>;

struct ShrinkOptions {
  double lambd = 0.5;
};
struct HardshrinkImpl : Layer<ShrinkOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Hardshrink = Handle<HardshrinkImpl>;
struct SoftshrinkImpl : Layer<ShrinkOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Softshrink = Handle<SoftshrinkImpl>;

struct SoftplusOptions {
  double beta = 1, threshold = 20;
};
struct SoftplusImpl : Layer<SoftplusOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Softplus = Handle<SoftplusImpl>;

struct PReLUOptions {
  int64_t num_parameters = 1;  // or the number of channels
  double init = 0.25;
  OptDevice device = {};
  OptDType dtype = {};
};
/// State: `weight` (num_parameters), the slopes.
struct PReLUImpl : Layer<PReLUOptions> {
  explicit PReLUImpl(const PReLUOptions& options = {});
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight;
};
using PReLU = Handle<PReLUImpl>;

struct SoftmaxOptions {
  Required<int64_t> dim;
};
struct SoftmaxImpl : Layer<SoftmaxOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Softmax = Handle<SoftmaxImpl>;
struct SoftminImpl : Layer<SoftmaxOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using Softmin = Handle<SoftminImpl>;
struct LogSoftmaxImpl : Layer<SoftmaxOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
using LogSoftmax = Handle<LogSoftmaxImpl>;

}  // namespace rush::nn
