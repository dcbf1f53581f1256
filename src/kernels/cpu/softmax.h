// Softmax along one dimension, its logarithm, and their gradients; logarithms of sums of exponentials.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
/// In the dtype of out; `dim` is normalised.
void softmax(Tensor& out, const Tensor& x, int64_t dim, bool log);
/// The gradient at x from the gradient at the result and the result.
void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& result, int64_t dim, bool log);
/// Of each row along the last dimension, whose elements may not be none.
void log_sum_exp(Tensor& out, const Tensor& x);
}  // namespace rush::cpu
