// Which numbers may be written to which dtype.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "rushlight/tensor.h"

namespace rush {

/// Whether a real number is in the range of a real T. As in PyTorch a negative number may wrap around into an unsigned
/// T, and infinities are fine for floats.
template <class T>
bool fits(const Scalar& number) {
  if constexpr (std::is_same_v<T, int64_t>)
    if (number.is_int()) return true;  // a double could not tell it from its neighbours
  const double v = number.to_double();
  if constexpr (std::is_integral_v<T>) {
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return v < end && (v > -end || (v == -end && std::is_signed_v<T>));
  } else {
    return !std::isfinite(v) || std::abs(v) <= double(std::numeric_limits<T>::max());
  }
}

/// Throws Error where a number is out of a dtype's range: writing it would make another number of it. Waits for one of
/// another dtype on a GPU.
inline void check_fits(const Tensor& number, DType dtype) {
  if (number.dtype() == dtype || number.is_meta() || number.numel() != 1) return;
  if (is_complex(dtype) || dtype == kBool) return;
  const Scalar s = number.item();
  bool in_range = !s.is_complex() || s.to_complex().imag() == 0;
  for_all(dtype, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>) || std::is_integral_v<T>) in_range = in_range && fits<T>(s);
  });
  check(in_range, "value cannot be converted to type ", name_of(dtype), " without overflow");
}

}  // namespace rush
