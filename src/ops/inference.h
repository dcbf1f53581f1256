// Several layers as one pass, for where gradients are not recorded.
#pragma once
#include <limits>

#include "rushlight/tensor.h"

namespace rush {

/// A convolution, the batch norm of its result by running statistics, and a clamp (that a ReLU is).
struct FusedConvolution {
  Tensor weight, bias;
  Dims stride, padding, dilation;
  int64_t groups = 1;
  Tensor mean = {}, var = {}, norm_weight = {}, norm_bias = {};  // where mean and var are undefined there is no norm
  double eps = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// The three in one: norm and clamp are applied to the sums before they leave the cache. It is no operator: neither
/// autograd, autocast nor profilers see it; nn::Sequential calls it where none of them looks.
/// Shape: as for convolution; mean, var and the norm's weight and bias (out_channels). Dtype: float32, on the CPU.
/// Throws Error where shapes or dtypes do not fit, NotImplementedError for other dtypes and devices.
Tensor fused_convolution(const Tensor& input, const FusedConvolution& convolution);

/// linear(input, weight, bias) clamped, in one pass; no operator, like the former.
/// Shape: as for linear. Dtype: floating, the same for all, on the CPU.
/// Throws Error where shapes or dtypes do not fit, NotImplementedError for other dtypes and devices.
Tensor fused_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, double low, double high);

}  // namespace rush
