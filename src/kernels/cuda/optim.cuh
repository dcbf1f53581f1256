// Optimizer steps over many parameters in one launch.
#pragma once
#include "kernels/cuda/layout.cuh"
#include "kernels/steps.h"

namespace rush::cuda {

inline constexpr int kStepTensors = 48;  // parameters in a launch

/// Flat arrays of one parameter, as cpu::StepTensor; `end` counts elements of those before and this.
struct StepTensor {
  char* arrays[2 + steps::kMaxStates];
  int64_t end;
  double factors[steps::kMaxFactors];
};

/// The parameters of a launch and which of them an element belongs to.
struct StepTensors {
  StepTensor tensors[kStepTensors];
  int64_t count;
  DType dtype;
  RUSH_FN int64_t find(int64_t& i) const {
    int64_t low = 0, high = count - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (i < tensors[middle].end)
        high = middle;
      else
        low = middle + 1;
    }
    if (low > 0) i -= tensors[low - 1].end;
    return low;
  }
};

template <class F, class T>
struct Step {
  StepTensors list;
  steps::Prepare prepare;
  F rule;
  RUSH_FN void operator()(int64_t i) const {
    const StepTensor& t = list.tensors[list.find(i)];
    T s[F::kStates + 1], p = load<T>(t.arrays[0], list.dtype, i);
    for (int k = 0; k < F::kStates; ++k) s[k] = load<T>(t.arrays[2 + k], list.dtype, i);
    const T g = prepare(p, load<T>(t.arrays[1], list.dtype, i));
    rule(p, g, s, t.factors);
    store(t.arrays[0], list.dtype, i, p);
    for (int k = 0; k < F::kStates; ++k) store(t.arrays[2 + k], list.dtype, i, s[k]);
  }
};

}  // namespace rush::cuda
