// The arithmetic of losses over classes, and of their gradient, on dense memory.
#pragma once
#include "rushlight/dtype.h"

namespace rush::cpu {

/// (batch, classes, inner) inputs of a floating dtype and (batch, inner) checked targets. What is null is not there:
/// the last four belong to the gradient.
struct ClassLosses {
  DType dtype;
  int64_t batch, classes, inner, ignore_index;
  const int64_t* target;
  const void* input;
  void *losses, *log_sum;  // the second is read for the gradient
  const void *grad = nullptr, *grad_log_sum = nullptr;
  void* out = nullptr;
};

/// As class_losses and class_losses_backward in losses.h say.
void class_losses(const ClassLosses& job);
void class_losses_backward(const ClassLosses& job);

}  // namespace rush::cpu
