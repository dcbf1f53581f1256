// The arithmetic of losses of pairs, on dense memory.
#pragma once
#include "kernels/cpu/losses.h"

namespace rush::cpu {

/// As pair_loss in losses.h says, of n pairs of the floating dtype t. False where the entropy's input is no
/// probability.
bool pair_losses(PairLoss kind, double width, DType t, void* out, const void* a, const void* b, int64_t n, bool reduce,
                 double scale);

}  // namespace rush::cpu
