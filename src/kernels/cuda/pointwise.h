// The tile engine's other half, on the GPU: see kernels/cpu/tiles.h, which calls it.
#pragma once
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pointwise.cuh"

#include "rushlight/tensor.h"

namespace rush::cuda {

struct PointwiseKernel {
  const Kernel& (*kernel)() = nullptr;
  uint32_t formula_bytes = 0;
};

inline constexpr int kMaxLanes = 8;

inline constexpr char kPointwise[] = "rush::cuda::pointwise";

template <class F, class... In>
constexpr PointwiseKernel pointwise_kernel() {
  return {&KernelOf<kPointwise, &pointwise<F, In...>, F, In...>::get, sizeof(F)};
}

/// Computes the first tensors from the others, which are broadcast to the first. CPU tensors among the others have one
/// element.
/// `types` are what each is computed in, `outs` how many are results.
void run_pointwise(const PointwiseKernel& kernel, const void* formula, const DType* types, int count,
                   const Tensor* const* tensors);

}  // namespace rush::cuda
