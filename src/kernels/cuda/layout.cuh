// How kernels find elements of tensors of any sizes and strides.
#pragma once
#include "kernels/cuda/grid.cuh"

namespace rush::cuda {

/// Memory whose element type is known at run time only; null where a tensor is not there.
struct Array {
  char* data;
  DType dtype;
  RUSH_FN explicit operator bool() const { return data; }
  template <class T>
  RUSH_FN T at(int64_t i) const {
    return load<T>(data, dtype, i);
  }
  template <class T>
  RUSH_FN void put(int64_t i, T x) const {
    store(data, dtype, i, x);
  }
};

inline constexpr int kLayoutDims = 8;

/// A tensor as the loop sees it. Strides count elements, 0 where it is broadcast. Without data it is one number, which
/// the host has put here in the type that is computed in.
struct Lane {
  char* data;
  int64_t strides[kLayoutDims];
  uint64_t number[2];
  DType dtype;

  template <class T>
  RUSH_FN T value() const {
    if constexpr (std::is_same_v<T, bool>)
      return number[0] & 1;
    else if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<float>(uint32_t(number[0]));
    else if constexpr (std::is_same_v<T, std::complex<float>>)
      return {std::bit_cast<float>(uint32_t(number[0])), std::bit_cast<float>(uint32_t(number[0] >> 32))};
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      return {std::bit_cast<double>(number[0]), std::bit_cast<double>(number[1])};
    else
      return std::bit_cast<T>(number[0]);
  }
  template <class T>
  RUSH_FN T at(int64_t i) const {
    return data ? load<T>(data, dtype, i) : value<T>();
  }
};

/// The sizes common to all lanes, merged where memory allows; then the lanes.
template <int kLanes>
struct Layout {
  int64_t dims, sizes[kLayoutDims];
  Lane lanes[kLanes];

  /// Where element i of the iteration lies in each lane.
  RUSH_FN void locate(int64_t i, int64_t* at) const {
    for (int k = 0; k < kLanes; ++k) at[k] = 0;
    for (int d = int(dims) - 1; d >= 0; --d) {
      int64_t index = i;
      if (d > 0) {
        i = index / sizes[d];
        index -= i * sizes[d];
      }
      for (int k = 0; k < kLanes; ++k) at[k] += index * lanes[k].strides[d];
    }
  }
};

/// Merged dimensions, outer first.
struct Axes {
  int64_t dims, sizes[kLayoutDims], strides[kLayoutDims];

  /// Where the element with this linear index lies.
  RUSH_FN int64_t place(int64_t i) const {
    int64_t at = 0;
    for (int d = int(dims) - 1; d >= 0; --d) {
      int64_t index = i;
      if (d > 0) {
        i = index / sizes[d];
        index -= i * sizes[d];
      }
      at += index * strides[d];
    }
    return at;
  }
};

}  // namespace rush::cuda
