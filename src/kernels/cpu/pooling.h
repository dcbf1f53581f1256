// Pooling of tensors (planes..., spatial...): pool.h by dtype, and moving elements to and from where a maximum was.
#pragma once
#include "kernels/cpu/pool.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// Sizes of the last `spatial` dimensions, right-aligned.
Extent spatial_extent(const Tensor& x, size_t spatial);
/// The product of all dimensions but the last `spatial`.
int64_t planes_of(const Tensor& x, size_t spatial);

/// indices may be null.
void max_pool(Tensor& values, Tensor* indices, const Pooling& pool, const Tensor& x);
void avg_pool(Tensor& out, const Pooling& pool, bool count_include_pad, int64_t divisor_override, const Tensor& x);
void avg_pool_backward(Tensor& out, const Pooling& pool, bool count_include_pad, int64_t divisor_override,
                       const Tensor& grad);
/// Maxima of windows whose starts are drawn: samples (batch, channels, spatial) in [0, 1).
void fractional_max_pool(Tensor& values, Tensor& indices, const Pooling& pool, const Tensor& x, const Tensor& samples);
/// out[p][indices[p][i]] += x[p][i] over zeros.
void pool_scatter(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);
/// The same, but = instead of +=, and checking the indices.
void max_unpool(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);
/// out[p][i] = x[p][indices[p][i]].
void pool_gather(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);

}  // namespace rush::cpu
