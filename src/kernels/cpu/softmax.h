// Softmax along one dimension, its logarithm, and their gradients.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
/// In the dtype of out; `dim` is normalised.
void softmax(Tensor& out, const Tensor& x, int64_t dim, bool log);
/// The gradient at x from the gradient at the result and the result.
void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& result, int64_t dim, bool log);
}  // namespace rush::cpu
