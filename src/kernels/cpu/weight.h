// Weights that kernels read in an order of their own, which they keep with the weight's memory from call to call.
#pragma once
#include <cstdint>

#include "rushlight/storage.h"

namespace rush::cpu {

/// What of a weight is kept.
enum class KeptAs : int64_t { columns, lines };

/// The memory of a product's weight; without a storage nothing is kept.
struct Weight {
  Storage* storage = nullptr;

  /// What fill(memory) makes of the `shape`d part of the weight that begins at `data`, for elements of `size` bytes:
  /// see kept(). Small ones are made anew each time, which costs less than looking them up.
  template <class Fill>
  Ref<Storage> keep(KeptAs as, size_t size, const std::array<int64_t, 4>& shape, const void* data, int64_t bytes,
                    const Fill& fill) const {
    if (!storage || bytes < 4096) return {};
    const int64_t offset = static_cast<const char*>(data) - static_cast<const char*>(storage->data());
    return kept(
        storage,
        {static_cast<int64_t>(as) * 16 + static_cast<int64_t>(size), shape[0], shape[1], shape[2], shape[3], offset, 0},
        bytes, fill);
  }
};

}  // namespace rush::cpu
