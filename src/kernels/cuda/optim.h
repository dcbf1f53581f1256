// Optimizer steps on a GPU: what kernels/cpu/optim.h is on the CPU, where the tensors and options are described.
#pragma once
#include "kernels/cpu/optim.h"

namespace rush::cuda {
void sgd_step(Device device, std::span<const cpu::SgdTensor> tensors, const cpu::SgdOptions& options);
void adam_step(Device device, std::span<const cpu::AdamTensor> tensors, const cpu::AdamOptions& options);
}  // namespace rush::cuda
