// Sizes, strides and steps as they come from outside: the arithmetic on them that may overflow, checked.
#pragma once
#include "rushlight/tensor.h"

namespace rush {

/// More elements no tensor has: of 16 bytes each they can still be counted by an int64.
inline constexpr int64_t kMostElements = int64_t(1) << 58;

/// The product of the sizes. Throws Error where one is negative, or where no memory could hold as many elements.
inline int64_t count_elements(Ints sizes) {
  int64_t numel = 1, steps = 1;  // strides multiply sizes too, and take a size of 0 for 1
  for (int64_t s : sizes) {
    check(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
    check(!__builtin_mul_overflow(steps, std::max<int64_t>(s, 1), &steps) && steps < kMostElements,
          "Storage size calculation overflowed with sizes=", sizes);
    numel *= s;
  }
  return numel;
}

/// The elements of memory from a window's first to its last, both counted; 0 if it has none. Throws Error where no
/// memory could hold as many.
int64_t extent(Ints sizes, Ints strides);

/// A contiguous tensor's elements in another shape of as many: alias() with less to compute.
Tensor alias_contiguous(const Tensor& t, const Dims& sizes);
/// Complex elements as real pairs in a new last dimension of size 2, over the same memory; a real tensor as it is.
Tensor real_view(const Tensor& t);

/// For numbers that are multiplied and added as they come, such as windows, steps and borders: throws Error unless they
/// fit into 32 bits.
inline void check_int32(std::string_view name, Ints values) {
  for (int64_t v : values) check(v == int32_t(v), "integer out of range: ", name, " ", values);
}

}  // namespace rush
