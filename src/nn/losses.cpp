// Criteria.
#include "rushlight/nn/losses.h"

#include "rushlight/ops.h"

namespace rush::nn {

Tensor L1LossImpl::forward(const Tensor& x, const Tensor& y) { return l1_loss(x, y, options.reduction); }
Tensor MSELossImpl::forward(const Tensor& x, const Tensor& y) { return mse_loss(x, y, options.reduction); }
Tensor SoftMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return soft_margin_loss(x, y, options.reduction);
}
Tensor MultiLabelMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return multilabel_margin_loss(x, y, options.reduction);
}
Tensor SmoothL1LossImpl::forward(const Tensor& x, const Tensor& y) {
  return smooth_l1_loss(x, y, options.reduction, options.beta);
}
Tensor HuberLossImpl::forward(const Tensor& x, const Tensor& y) {
  return huber_loss(x, y, options.reduction, options.delta);
}
Tensor KLDivLossImpl::forward(const Tensor& x, const Tensor& y) {
  if (options.reduction != "batchmean") return kl_div(x, y, options.reduction, options.log_target);
  const Tensor total = kl_div(x, y, "sum", options.log_target);
  return x.dim() > 0 ? total / x.size(0) : total;
}
Tensor PoissonNLLLossImpl::forward(const Tensor& x, const Tensor& y) {
  return poisson_nll_loss(x, y, options.log_input, options.full, options.eps, options.reduction);
}
Tensor HingeEmbeddingLossImpl::forward(const Tensor& x, const Tensor& y) {
  return hinge_embedding_loss(x, y, options.margin, options.reduction);
}

NLLLossImpl::NLLLossImpl(const NLLLossOptions& o) : Layer(o) { register_buffer("weight", options.weight); }
Tensor NLLLossImpl::forward(const Tensor& x, const Tensor& y) {
  return nll_loss(x, y, options.weight, options.ignore_index, options.reduction);
}

CrossEntropyLossImpl::CrossEntropyLossImpl(const CrossEntropyLossOptions& o) : Layer(o) {
  register_buffer("weight", options.weight);
}
Tensor CrossEntropyLossImpl::forward(const Tensor& x, const Tensor& y) {
  return cross_entropy(x, y, options.weight, options.ignore_index, options.reduction, options.label_smoothing);
}

BCELossImpl::BCELossImpl(const BCELossOptions& o) : Layer(o) { register_buffer("weight", options.weight); }
Tensor BCELossImpl::forward(const Tensor& x, const Tensor& y) {
  return binary_cross_entropy(x, y, options.weight, options.reduction);
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& o) : Layer(o) {
  register_buffer("weight", options.weight);
  register_buffer("pos_weight", options.pos_weight);
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& x, const Tensor& y) {
  return binary_cross_entropy_with_logits(x, y, options.weight, options.pos_weight, options.reduction);
}

MultiMarginLossImpl::MultiMarginLossImpl(const MultiMarginLossOptions& o) : Layer(o) {
  check<ValueError>(o.p == 1 || o.p == 2, "only p == 1 and p == 2 supported");
  check<ValueError>(!o.weight.defined() || o.weight.dim() == 1,
                    "MultiMarginLoss: expected weight to be None or 1D tensor");
  register_buffer("weight", options.weight);
}
Tensor MultiMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return multi_margin_loss(x, y, options.p, options.margin, options.weight, options.reduction);
}

Tensor CosineEmbeddingLossImpl::forward(const Tensor& x1, const Tensor& x2, const Tensor& y) {
  return cosine_embedding_loss(x1, x2, y, options.margin, options.reduction);
}
Tensor MarginRankingLossImpl::forward(const Tensor& x1, const Tensor& x2, const Tensor& y) {
  return margin_ranking_loss(x1, x2, y, options.margin, options.reduction);
}
TripletMarginLossImpl::TripletMarginLossImpl(const TripletMarginLossOptions& o) : Layer(o) {
  check<ValueError>(o.margin > 0, "TripletMarginLoss: expected margin to be greater than 0, got ", repr::of(o.margin),
                    " instead");
}
Tensor TripletMarginLossImpl::forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, options.margin, options.p, options.eps, options.swap,
                             options.reduction);
}

}  // namespace rush::nn
