// A step of an optimizer over raw memory, all parameters in one call.
#pragma once
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/steps.h"
#include "rushlight/dtype.h"

namespace rush::cpu {

/// A parameter, its gradient and its states: flat arrays of `numel` elements of a floating dtype.
struct StepTensor {
  DType dtype;
  int64_t numel;
  void* arrays[2 + steps::kMaxStates];
  double factors[steps::kMaxFactors];
};

/// The optimizers' rules. One that is added here has its loops on the CPU and its kernels for GPUs.
using Rule = std::variant<steps::Sgd<false>, steps::Sgd<true>, steps::Adam<false>, steps::Adam<true>,
                          steps::RMSprop<false, false>, steps::RMSprop<false, true>, steps::RMSprop<true, false>,
                          steps::RMSprop<true, true>, steps::Adagrad, steps::Adadelta, steps::Adamax, steps::NAdam,
                          steps::RAdam, steps::Asgd, steps::Rprop>;

void step(std::span<const StepTensor> tensors, const steps::Prepare& prepare, const Rule& rule);

}  // namespace rush::cpu
