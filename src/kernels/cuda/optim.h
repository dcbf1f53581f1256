// Optimizer steps on a GPU: what kernels/cpu/optim.h is on the CPU, where tensors and rules are described.
#pragma once
#include "kernels/cpu/optim.h"

namespace rush::cuda {
void step(Device device, std::span<const cpu::StepTensor> tensors, const steps::Prepare& prepare,
          const cpu::Rule& rule);
}  // namespace rush::cuda
