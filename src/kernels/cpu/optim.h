// The arithmetic of optimizer steps over raw memory, all parameters in one call.
#pragma once
#include <cstdint>
#include <span>

#include "rushlight/dtype.h"

namespace rush::cpu {

/// A parameter with its gradient and state: flat arrays of `numel` elements of a floating type.
struct SgdTensor {
  DType dtype;
  int64_t numel;
  void* param;
  const void* grad;
  void* momentum_buffer;  // null without momentum
};

struct SgdOptions {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
};

/// buffer = momentum * buffer + (1 - dampening) * g;  param -= lr * buffer, or lr * (g + momentum * buffer) if
/// nesterov.
void sgd_step(std::span<const SgdTensor> tensors, const SgdOptions& options);

struct AdamTensor {
  DType dtype;
  int64_t numel;
  void* param;
  const void* grad;
  void* exp_avg;
  void* exp_avg_sq;
  void* max_exp_avg_sq;  // null without amsgrad
  double step;           // counted from 1
};

struct AdamOptions {
  double lr, beta1, beta2, eps, weight_decay;
  bool maximize;
  bool decoupled;  // weight decay shrinks the parameter (AdamW) instead of joining the gradient
};

/// Kingma and Ba 2014, algorithm 1, with PyTorch's order of operations.
void adam_step(std::span<const AdamTensor> tensors, const AdamOptions& options);

}  // namespace rush::cpu
