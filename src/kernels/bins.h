// Bins of a histogram, for the CPU and for device code.
#pragma once
#include "kernels/math.h"

namespace rush {

/// The bin of a value from `low` to `high`, the last one for `high` itself. In C as PyTorch orders it, since where a
/// bin ends is a matter of rounding; but for products that overflow.
template <class C>
RUSH_FN int64_t bin_of(C value, C low, C high, int64_t bins) {
  C at = (value - low) * C(bins) / (high - low);
  if (!(at - at == 0)) at = (value / 2 - low / 2) / (high / 2 - low / 2) * C(bins);
  const auto bin = int64_t(at);
  return bin < 0 ? 0 : bin < bins ? bin : bins - 1;
}

}  // namespace rush
