// Attention that never holds the whole matrix of scores, with its gradients. Any strides but along the last dimension,
// where elements must be neighbours; half types are computed in float.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// out (..., l, v) = softmax(scale * query key^T + mask) value and logsumexp (..., l) of each row, for query (..., l,
/// e), key (..., s, e) and value (..., s, v) with the same leading dimensions. The mask may be undefined, bool (True
/// where a key takes part) or of the computing dtype; it has the sizes (..., l, s), with whatever strides. `causal`
/// lets query i see keys up to i. A query that sees no key gives zeros.
void attention(Tensor& out, Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value,
               const Tensor& mask, bool causal, double scale);

/// The gradients of the query, key and value.
void attention_backward(Tensor& dquery, Tensor& dkey, Tensor& dvalue, const Tensor& grad, const Tensor& query,
                        const Tensor& key, const Tensor& value, const Tensor& mask, const Tensor& out,
                        const Tensor& logsumexp, bool causal, double scale);

}  // namespace rush::cpu
