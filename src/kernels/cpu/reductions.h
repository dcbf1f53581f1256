// Reductions on the CPU over normalised dimensions; `out` arrives allocated, with or without the reduced dimensions.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
void sum(Tensor& out, const Tensor& x, const Dims& dims);
}  // namespace rush::cpu
