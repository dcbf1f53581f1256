// Reductions on a GPU: what kernels/cpu/fold.h is on the CPU, which calls it.
#pragma once
#include "kernels/cpu/fold.h"

namespace rush::cuda {
/// Element dtypes are those of `find_fold`.
void fold(cpu::FoldKind kind, DType t, const folds::FoldOptions& options, const Tensor& x, const Dims& dims,
          Tensor* const* outs, int out_count);
}  // namespace rush::cuda
