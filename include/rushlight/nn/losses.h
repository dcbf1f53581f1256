// Criteria: what a model's output is worth against a target. `reduction` is "mean", "sum" or "none". What they compute
// is described at the Python layer of the same name.
//
//   rush::nn::CrossEntropyLoss criterion({.label_smoothing = 0.1});
//   criterion(model(x), labels).backward();
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

/// Base of the criteria of an input and a target.
struct Loss : Module {
  using Module::forward;
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
};

struct LossOptions {
  std::string reduction = "mean";
};
struct L1LossImpl : Layer<LossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using L1Loss = Handle<L1LossImpl>;
struct MSELossImpl : Layer<LossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using MSELoss = Handle<MSELossImpl>;
struct SoftMarginLossImpl : Layer<LossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using SoftMarginLoss = Handle<SoftMarginLossImpl>;
struct MultiLabelMarginLossImpl : Layer<LossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using MultiLabelMarginLoss = Handle<MultiLabelMarginLossImpl>;

struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1;
};
struct SmoothL1LossImpl : Layer<SmoothL1LossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using SmoothL1Loss = Handle<SmoothL1LossImpl>;

struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1;
};
struct HuberLossImpl : Layer<HuberLossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using HuberLoss = Handle<HuberLossImpl>;

struct KLDivLossOptions {
  std::string reduction = "mean";  // or "batchmean": the sum divided by the batch's size, as the definition has it
  bool log_target = false;
};
struct KLDivLossImpl : Layer<KLDivLossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using KLDivLoss = Handle<KLDivLossImpl>;

struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  std::string reduction = "mean";
};
struct PoissonNLLLossImpl : Layer<PoissonNLLLossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using PoissonNLLLoss = Handle<PoissonNLLLossImpl>;

struct HingeEmbeddingLossOptions {
  double margin = 1;
  std::string reduction = "mean";
};
struct HingeEmbeddingLossImpl : Layer<HingeEmbeddingLossOptions, Loss> {
  using Layer::Layer;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using HingeEmbeddingLoss = Handle<HingeEmbeddingLossImpl>;

// ---- with a weight for each class, or for each element of a batch, which is a buffer ----

struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};
struct NLLLossImpl : Layer<NLLLossOptions, Loss> {
  explicit NLLLossImpl(const NLLLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using NLLLoss = Handle<NLLLossImpl>;

struct CrossEntropyLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
};
struct CrossEntropyLossImpl : Layer<CrossEntropyLossOptions, Loss> {
  explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using CrossEntropyLoss = Handle<CrossEntropyLossImpl>;

struct BCELossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
};
struct BCELossImpl : Layer<BCELossOptions, Loss> {
  explicit BCELossImpl(const BCELossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using BCELoss = Handle<BCELossImpl>;

struct BCEWithLogitsLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};
};
struct BCEWithLogitsLossImpl : Layer<BCEWithLogitsLossOptions, Loss> {
  explicit BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using BCEWithLogitsLoss = Handle<BCEWithLogitsLossImpl>;

struct MultiMarginLossOptions {
  int64_t p = 1;  // or 2
  double margin = 1;
  Tensor weight = {};
  std::string reduction = "mean";
};
/// Throws ValueError for another p, or a weight that is not of one dimension.
struct MultiMarginLossImpl : Layer<MultiMarginLossOptions, Loss> {
  explicit MultiMarginLossImpl(const MultiMarginLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};
using MultiMarginLoss = Handle<MultiMarginLossImpl>;

// ---- of three tensors ----

struct MarginLossOptions {
  double margin = 0;
  std::string reduction = "mean";
};
struct CosineEmbeddingLossImpl : Layer<MarginLossOptions> {
  using Layer::Layer;
  using Module::forward;
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);
};
using CosineEmbeddingLoss = Handle<CosineEmbeddingLossImpl>;
struct MarginRankingLossImpl : Layer<MarginLossOptions> {
  using Layer::Layer;
  using Module::forward;
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);
};
using MarginRankingLoss = Handle<MarginRankingLossImpl>;

struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
};
/// Throws ValueError unless the margin is positive.
struct TripletMarginLossImpl : Layer<TripletMarginLossOptions> {
  explicit TripletMarginLossImpl(const TripletMarginLossOptions& options = {});
  using Module::forward;
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
};
using TripletMarginLoss = Handle<TripletMarginLossImpl>;

}  // namespace rush::nn
