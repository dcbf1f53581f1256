// Optimizer steps over many parameters in one launch.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

inline constexpr int kStepTensors = 48;  // parameters in a launch

/// Flat arrays of one parameter, as cpu::SgdTensor and cpu::AdamTensor; `end` counts elements of those before and this.
struct StepTensor {
  char *param, *grad, *first, *second, *largest;
  int64_t end;
  double step_size, root_of_bias2;
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

template <class T>
struct SgdStep {
  StepTensors list;
  T lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  RUSH_FN void operator()(int64_t i) const {
    const StepTensor& t = list.tensors[list.find(i)];
    const T p = load<T>(t.param, list.dtype, i);
    T g = load<T>(t.grad, list.dtype, i);
    if (maximize) g = -g;
    if (weight_decay != 0) g = formula::fma(weight_decay, p, g);
    if (t.first) {
      const T b = formula::fma(1 - dampening, g, momentum * load<T>(t.first, list.dtype, i));
      store(t.first, list.dtype, i, b);
      g = nesterov ? formula::fma(momentum, b, g) : b;
    }
    store(t.param, list.dtype, i, formula::fma(-lr, g, p));
  }
};

template <class T>
struct AdamStep {
  StepTensors list;
  T lr, beta1, beta2, eps, weight_decay;
  bool maximize, decoupled;
  RUSH_FN void operator()(int64_t i) const {
    const StepTensor& t = list.tensors[list.find(i)];
    T p = load<T>(t.param, list.dtype, i), g = load<T>(t.grad, list.dtype, i);
    if (maximize) g = -g;
    if (weight_decay != 0) {
      if (decoupled)
        p *= 1 - lr * weight_decay;
      else
        g = formula::fma(weight_decay, p, g);
    }
    T m = load<T>(t.first, list.dtype, i), v = load<T>(t.second, list.dtype, i);
    m = formula::fma(1 - beta1, g - m, m);
    store(t.first, list.dtype, i, m);
    v = formula::fma((1 - beta2) * g, g, v * beta2);
    store(t.second, list.dtype, i, v);
    if (t.largest) {
      const T old = load<T>(t.largest, list.dtype, i);
      v = old > v || old != old ? old : v;  // a NaN stays
      store(t.largest, list.dtype, i, v);
    }
    const T denominator = formula::sqrt(v) / T(t.root_of_bias2) + eps;
    store(t.param, list.dtype, i, formula::fma(T(-t.step_size), m / denominator, p));
  }
};

}  // namespace rush::cuda
