// Cumulative operations along one dimension (normalised). Results are allocated and contiguous.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
/// In the dtype of out; half types and float are accumulated wider.
void cumsum(Tensor& out, const Tensor& x, int64_t dim);
void cumprod(Tensor& out, const Tensor& x, int64_t dim);
void logcumsumexp(Tensor& out, const Tensor& x, int64_t dim);
/// The largest (or smallest) so far and the last index where it was met; NaN stays once met.
void cum_extreme(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool largest);
}  // namespace rush::cpu
