// Sequences: elements that follow from their index.
#pragma once
#include "kernels/cuda/grid.cuh"

namespace rush::cuda {

/// out[i] = start + i step, or counted from the end in the upper half where `last` is that half's end.
template <class T>
struct Sequence {
  char* out;
  int64_t stride, half;  // from index `half` on counted down from `end`, element n - 1
  int64_t n;
  T start, step, end;
  double base;  // of a power, or 0
  DType dtype;

  RUSH_FN void operator()(int64_t i) const {
    using Step = std::conditional_t<is_complex_type<T>, double, T>;
    T x = i < half ? T(start + step * Step(i)) : T(end - step * Step(n - 1 - i));
    if constexpr (!std::is_integral_v<T>) {
      if (base != 0) x = std::pow(T(base), x);
    }
    store(out, dtype, i * stride, x);
  }
};

}  // namespace rush::cuda
