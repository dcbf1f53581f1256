// What becomes of an element that a value is written to: for scatter and its relatives, on the CPU and in device code.
#pragma once
#include <type_traits>

#include "kernels/math.h"
#include "rushlight/element.h"

namespace rush {

enum class Write : uint8_t { assign, add, multiply, minimum, maximum };

template <class T>
RUSH_FN T written(Write write, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return write == Write::assign ? b : write == Write::multiply || write == Write::minimum ? a && b : a || b;
  } else if constexpr (is_complex(dtype_of<T>)) {
    return write == Write::assign ? b : write == Write::add ? a + b : a * b;
  } else {
    using C = compute_t<T>;
    const C p = C(a), q = C(b);
    switch (write) {
      case Write::assign:
        return b;
      case Write::add:
        return T(p + q);
      case Write::multiply:
        return T(p * q);
      case Write::minimum:
        return p != p || p < q ? a : b;
      case Write::maximum:
        return p != p || p > q ? a : b;
    }
    return b;
  }
}

}  // namespace rush
