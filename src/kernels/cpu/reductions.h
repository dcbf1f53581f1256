// Reductions on the CPU over normalised dimensions; `out` arrives allocated, with or without the reduced dimensions.
#pragma once
#include "kernels/cpu/fold.h"

namespace rush::cpu {
/// In the dtype of out.
void sum(Tensor& out, const Tensor& x, const Dims& dims);
void nansum(Tensor& out, const Tensor& x, const Dims& dims);
void mean(Tensor& out, const Tensor& x, const Dims& dims);
void prod(Tensor& out, const Tensor& x, const Dims& dims);
/// Largest and smallest element, NaN if there is one.
void amax(Tensor& out, const Tensor& x, const Dims& dims);
void amin(Tensor& out, const Tensor& x, const Dims& dims);
/// Whether any or all are not zero, and how many.
void any(Tensor& out, const Tensor& x, const Dims& dims);
void all(Tensor& out, const Tensor& x, const Dims& dims);
void count_nonzero(Tensor& out, const Tensor& x, const Dims& dims);
/// Variance, or its root, and mean.
void var_mean(Tensor& variance, Tensor& mean, const Tensor& x, const Dims& dims, double correction, bool root);
/// The norm of this order of real x.
void vector_norm(Tensor& out, const Tensor& x, double order, const Dims& dims);
/// The extreme value along one dimension and its first index; without a dimension over all elements of contiguous x.
void arg_extreme(Tensor& values, Tensor& indices, const Tensor& x, const Dims& dims, bool largest);
}  // namespace rush::cpu
