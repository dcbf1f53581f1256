// Tables of vectors.
#include "rushlight/nn/embedding.h"

#include "rushlight/autograd.h"
#include "rushlight/nn/init.h"
#include "rushlight/ops.h"

namespace rush::nn {

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& o) : Layer(o) {
  if (OptInt& row = options.padding_idx) {
    check<ValueError>(-o.num_embeddings <= *row && *row < o.num_embeddings,
                      "Padding_idx must be within num_embeddings");
    if (*row < 0) *row += o.num_embeddings;
  }
  weight = empty({o.num_embeddings, o.embedding_dim}, o.dtype, {}, o.device);
  register_parameter("weight", weight);
  reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx) return;
  const NoGrad guard;
  init::zeros_(select(weight, 0, *options.padding_idx));
}

Tensor EmbeddingImpl::forward(const Tensor& input) {
  if (options.max_norm) {
    const NoGrad guard;
    in_place(embedding_renorm, weight, contiguous(input), *options.max_norm, options.norm_type);
  }
  return embedding(weight, input, options.padding_idx.value_or(-1), options.scale_grad_by_freq, options.sparse);
}

std::string EmbeddingImpl::extra_repr() const {
  const EmbeddingOptions& o = options;
  std::string result = text(o.num_embeddings.value, ", ", o.embedding_dim.value);
  if (o.padding_idx) result += text(", padding_idx=", *o.padding_idx);
  if (o.max_norm) result += ", max_norm=" + repr::of(*o.max_norm);
  if (o.norm_type != 2) result += ", norm_type=" + repr::of(o.norm_type);
  if (o.scale_grad_by_freq) result += ", scale_grad_by_freq=True";
  return result + (o.sparse ? ", sparse=True" : "");
}

}  // namespace rush::nn
