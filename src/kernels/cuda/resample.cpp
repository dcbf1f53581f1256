// Launches of resizing.
#include "kernels/cuda/resample.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

void apply_taps(Tensor& out, const Tensor& x, int64_t in, int64_t n, int64_t inner, const Tensor& index,
                const Tensor& weight, bool transposed) {
  Tensor places = allocate_like(x, index.sizes(), kInt64), weights = allocate_like(x, weight.sizes(), weight.dtype());
  cpu::copy(places, index);
  cpu::copy(weights, weight);
  const int64_t width = n ? index.numel() / n : 0;
  if (transposed) cpu::fill(out, Scalar(0));
  const auto go = [&]<class T, bool kTransposed>() {
    for_each(x.device(), kTransposed ? x.numel() : out.numel(),
             ApplyTaps<T, kTransposed>{out.data<T>(), x.data<T>(), places.data<int64_t>(), weights.data<T>(), in, n,
                                       width, inner});
  };
  const auto typed = [&]<class T>() {
    transposed ? go.template operator()<T, true>() : go.template operator()<T, false>();
  };
  x.dtype() == kFloat64 ? typed.template operator()<double>() : typed.template operator()<float>();
}

namespace {

template <class T>
Sampled<T> sampled(const Tensor& x, const Tensor& grid, const cpu::GridSampling& how) {
  const int64_t dims = x.dim() - 2, batch = x.size(0);
  return {x.data<T>(), grid.data<T>(),
          x.size(1),   batch ? grid.numel() / dims / batch : 0,
          dims,        {dims == 3 ? x.size(2) : 1, x.size(-2), x.size(-1)},
          how};
}
template <class F>
void for_precision(const Tensor& x, F&& f) {
  x.dtype() == kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}
Tensor in_memory(const Tensor& x, DType dtype) { return contiguous(x.dtype() == dtype ? x : cast(x, dtype)); }

}  // namespace

void grid_sample(Tensor& out, const Tensor& x, const Tensor& grid, const cpu::GridSampling& how) {
  for_precision(x, [&]<class T>() {
    const Tensor in = in_memory(x, dtype_of<T>), places = in_memory(grid, dtype_of<T>);
    Tensor result = allocate_like(x, out.sizes(), dtype_of<T>);
    const Sampled<T> s = sampled<T>(in, places, how);
    for_each(x.device(), x.size(0) * s.count, GridSample<T>{result.data<T>(), s});
    cpu::copy(out, result);
  });
}

void grid_sample_backward(Tensor& grad_x, Tensor& grad_grid, const Tensor& grad, const Tensor& x, const Tensor& grid,
                          const cpu::GridSampling& how) {
  for_precision(x, [&]<class T>() {
    const Tensor in = in_memory(x, dtype_of<T>), places = in_memory(grid, dtype_of<T>),
                 g = in_memory(grad, dtype_of<T>);
    Tensor gx = allocate_like(x, x.sizes(), dtype_of<T>), gg = allocate_like(x, grid.sizes(), dtype_of<T>);
    cpu::fill(gx, Scalar(0));
    const Sampled<T> s = sampled<T>(in, places, how);
    for_each(x.device(), x.size(0) * s.count, GridSampleGrad<T>{gx.data<T>(), gg.data<T>(), g.data<T>(), s});
    cpu::copy(grad_x, gx);
    cpu::copy(grad_grid, gg);
  });
}

}  // namespace rush::cuda
