// Tables of vectors, looked up by number.
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

struct EmbeddingOptions {
  Required<int64_t> num_embeddings, embedding_dim;
  OptInt padding_idx = {};  // a row that starts as zeros and gets no gradient
  OptDouble max_norm = {};  // rows that are looked up are first scaled to at most this norm, in place
  double norm_type = 2;
  bool scale_grad_by_freq = false, sparse = false;
  OptDevice device = {};
  OptDType dtype = {};
};
/// Looks up rows of a learned table. Shape: integers (*), to (*, embedding_dim). State: `weight`, standard normal.
struct EmbeddingImpl : Layer<EmbeddingOptions> {
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  Tensor weight;
};
using Embedding = Handle<EmbeddingImpl>;

}  // namespace rush::nn
