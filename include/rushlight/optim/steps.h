// Optimizer steps over lists of tensors, one call for all: what the optimizers of both languages stand on.
//
//   rush::optim::sgd_step(params, grads, {}, {.lr = 0.1});
#pragma once
#include "rushlight/tensor.h"

namespace rush::optim {

struct SgdStep {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
/// A step of gradient descent. `momentum_buffers` is empty without momentum; a buffer starts as the first gradient,
/// which is the caller's affair. Returns false, having touched nothing, unless all tensors are floating and on one
/// device.
bool sgd_step(Tensors params, Tensors grads, Tensors momentum_buffers, const SgdStep& options);

struct AdamStep {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false, decoupled = false;  // decoupled: AdamW
};
/// A step of Adam. `max_exp_avg_sqs` is empty without amsgrad. `steps` are float32 tensors of one element, one for each
/// parameter, which are counted up. Returns false, having touched nothing, unless all tensors are floating and on one
/// device (steps on the CPU).
bool adam_step(Tensors params, Tensors grads, Tensors exp_avgs, Tensors exp_avg_sqs, Tensors max_exp_avg_sqs,
               Tensors steps, const AdamStep& options);

/// Multiplies every gradient by `inv_scale`, and sets `found_inf` to 1 if one held inf or nan; both are float32 tensors
/// of one element.
void unscale(Tensors grads, Tensor found_inf, const Tensor& inv_scale);

}  // namespace rush::optim
