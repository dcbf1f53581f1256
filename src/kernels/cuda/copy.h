// Copies that a GPU has a part in, and fills.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cuda {

/// out = x, cast to out's dtype and broadcast, between any two devices. Returns before it is done only where both are
/// GPUs or `non_blocking` is set and the host's memory is pinned.
void copy(Tensor& out, const Tensor& x, bool non_blocking = false);
void fill(Tensor& out, const Scalar& value);
void arange(Tensor& out, const Scalar& start, const Scalar& step);
void linspace(Tensor& out, const Scalar& start, const Scalar& end);
void logspace(Tensor& out, const Scalar& start, const Scalar& end, double base);

}  // namespace rush::cuda
