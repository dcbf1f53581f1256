// Which numbers may be written to which dtype.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "rushlight/tensor.h"

namespace rush {

/// Throws Error where a number on the CPU is out of a dtype's range: writing it would make another number of it. As in
/// PyTorch a negative number may wrap around into an unsigned dtype, and infinities are fine for floats.
inline void check_fits(const Tensor& number, DType dtype) {
  if (number.dtype() == dtype || !number.is_cpu() || number.numel() != 1) return;
  const Scalar s = number.item();
  bool fits = is_complex(dtype) || dtype == kBool || !s.is_complex() || s.to_complex().imag() == 0;
  if (fits && !is_complex(dtype) && dtype != kBool && !(s.is_int() && dtype == kInt64)) {
    const double v = s.to_double();
    for_all(dtype, [&]<class T>() {
      if constexpr (is_floating(dtype_of<T>)) {
        fits = !std::isfinite(v) || std::abs(v) <= double(std::numeric_limits<T>::max());
      } else if constexpr (std::is_integral_v<T>) {
        const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
        fits = v < end && (v > -end || (v == -end && std::is_signed_v<T>));
      }
    });
  }
  check(fits, "value cannot be converted to type ", name_of(dtype), " without overflow");
}

}  // namespace rush
