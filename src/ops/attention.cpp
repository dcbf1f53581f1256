// Attention, made of matrix products and softmax.
#include <cmath>
#include <limits>

#include "ops/common.h"

namespace rush {

namespace {

/// Heads repeated so that there are as many as the query has: each serves a group of query heads.
Tensor repeat_heads(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(-3);
  if (own == heads) return x;
  check(own > 0 && heads % own == 0, "Number of heads in key and value must divide the number of heads in query, got ",
        own, " and ", heads);
  const Tensor apart = unsqueeze(x, -3);
  Dims sizes = apart.sizes();
  sizes[sizes.size() - 3] = heads / own;
  Dims joined = x.sizes();
  joined[joined.size() - 3] = heads;
  return reshape(expand(apart, sizes), joined);
}

}  // namespace

OP_DEFINE(scaled_dot_product_attention){{
    .doc =
        R"(``softmax(query @ key.T * scale + mask) @ value``: for each query, the mean of the values weighted by how well
their keys fit.

Shape: query (..., l, e), key (..., s, e), value (..., s, v), mask broadcastable to (..., l, s); the result is (..., l, v).
A bool mask is True where a key takes part, a floating one is added. ``is_causal`` lets query i see keys up to i. ``scale`` is
1 / sqrt(e) unless given. ``enable_gqa`` lets groups of query heads (dimension -3) share a head of key and value. A query
that sees no key gives zeros. ``dropout_p`` always applies: pass 0 in evaluation.
Errors: RuntimeError where shapes or dtypes do not fit, or for a mask together with ``is_causal``.)",
    .composite =
        [](const Tensor& q, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
           bool is_causal, OptDouble scale, bool enable_gqa) {
          check(q.dtype() == key.dtype() && q.dtype() == value.dtype(),
                "Expected query, key, and value to have the same dtype, but got query.dtype: ", name_of(q.dtype()),
                " key.dtype: ", name_of(key.dtype()), " and value.dtype: ", name_of(value.dtype()), " instead.");
          check(q.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
                "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", q.dim(),
                ", key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
          check(!mask.defined() || !is_causal, "Explicit attn_mask should not be set when is_causal=True");
          check(!mask.defined() || mask.dtype() == kBool || mask.dtype() == q.dtype() || mask.dtype() == kFloat32,
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
                mask.defined() ? name_of(mask.dtype()) : "", " and query.dtype: ", name_of(q.dtype()), " instead.");
          if (q.itemsize() == 2) {  // sums, weights and all in float
            const Tensor added = mask.defined() && mask.dtype() != kBool ? cast(mask, kFloat32) : mask;
            return cast(scaled_dot_product_attention(cast(q, kFloat32), cast(key, kFloat32), cast(value, kFloat32),
                                                     added, dropout_p, is_causal, scale, enable_gqa),
                        q.dtype());
          }
          const bool grouped = enable_gqa && q.dim() >= 3;
          const Tensor k = grouped ? repeat_heads(key, q.size(-3)) : key;
          const Tensor v = grouped ? repeat_heads(value, q.size(-3)) : value;
          const double factor = scale.value_or(1 / std::sqrt(double(q.size(-1))));
          Tensor scores = matmul(q * Tensor(factor), transpose(k, -2, -1));
          const Tensor never(-std::numeric_limits<double>::infinity());
          if (is_causal) {
            const Tensor row = unsqueeze(arange(q.size(-2), kInt64, {}, q.device()), -1);
            scores = where(arange(k.size(-2), kInt64, {}, q.device()) <= row, scores, never);
          } else if (mask.defined()) {
            scores = mask.dtype() == kBool ? where(mask, scores, never)
                                           : scores + (mask.dtype() == q.dtype() ? mask : cast(mask, q.dtype()));
          }
          Tensor weights = softmax(scores, -1);
          if (mask.defined()) {
            const Tensor seen = sum(scores != never, Ints({-1}), true);
            weights = where(seen == Tensor(0), Tensor(0.0), weights);
          }
          if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
          return matmul(weights, v);
        },
    .autocast = Autocast::half,
}};

}  // namespace rush
