// The loop under every pointwise operator on the GPU: what the tile engine (kernels/cpu/tiles.h) is on the CPU. One
// thread computes one element at a time; strides, broadcasting and the dtypes of memory are known at run time only, so
// that a formula is compiled once for each type it computes in.
#pragma once
#include "kernels/cuda/layout.cuh"
#include "kernels/formulas.h"
#include "kernels/special.h"

namespace rush::cuda {

template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;

template <class F, class... In>
RUSH_FN auto evaluate(const F& f, In... in) {
  if constexpr (requires { F::is_hard(in...); }) {
    if (F::is_hard(in...)) return F::slow(in...);
  }
  return f(in...);
}

template <class F, class... In>
struct PointwiseTypes {
  using Result = decltype(evaluate(std::declval<const F&>(), std::declval<In>()...));
  static constexpr int kOuts = is_pair<Result> ? 2 : 1, kLanes = kOuts + int(sizeof...(In));
};

template <class F, class... In, int kLanes, size_t... I>
RUSH_FN void compute(const F& f, const Layout<kLanes>& l, const int64_t* at, std::index_sequence<I...>) {
  constexpr int kOuts = kLanes - int(sizeof...(In));
  const auto y = evaluate(f, l.lanes[kOuts + I].template at<In>(at[kOuts + I])...);
  if constexpr (kOuts == 2) {
    store(l.lanes[0].data, l.lanes[0].dtype, at[0], y.first);
    store(l.lanes[1].data, l.lanes[1].dtype, at[1], y.second);
  } else {
    store(l.lanes[0].data, l.lanes[0].dtype, at[0], y);
  }
}

template <class F, class... In>
__global__ void pointwise(const F f, const Layout<PointwiseTypes<F, In...>::kLanes> layout, const int64_t n) {
  constexpr int kLanes = PointwiseTypes<F, In...>::kLanes;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    int64_t at[kLanes];
    layout.locate(i, at);
    compute<F, In...>(f, layout, at, std::make_index_sequence<sizeof...(In)>());
  }
}

}  // namespace rush::cuda
