// Launches of pooling.
#include "kernels/cuda/pooling.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

PoolShape shape_of(const cpu::Pooling& p) {
  PoolShape s{};
  for (int d = 0; d < 3; ++d) {
    s.input[d] = p.input[d];
    s.output[d] = p.output[d];
    s.kernel[d] = p.kernel[d];
    s.stride[d] = p.stride[d];
    s.padding[d] = p.padding[d];
    s.dilation[d] = p.dilation[d];
  }
  s.adaptive = p.adaptive;
  return s;
}
template <class F>
void for_pooled(DType t, F&& f) {
  for_real(t, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) f.template operator()<T>();
  });
}
int64_t elements(const cpu::Extent& e) { return e[0] * e[1] * e[2]; }

/// Sums into `out`, half types through float.
template <class F>
void summed(Tensor& out, F&& f) {
  Tensor to = is_half(out.dtype()) ? allocate_like(out, out.sizes(), kFloat32) : out;
  cpu::fill(to, Scalar(0));
  to.dtype() == kFloat64 ? f.template operator()<double>(to.data<double>())
                         : f.template operator()<float>(to.data<float>());
  if (!to.is_same(out)) cpu::copy(out, to);
}

}  // namespace

void max_pool(Tensor& values, Tensor* indices, const cpu::Pooling& pool, const Tensor& x) {
  const Tensor in = contiguous(x);
  for_pooled(x.dtype(), [&]<class T>() {
    for_each(x.device(), values.numel(),
             MaxPool<T>{values.data<T>(), indices ? indices->data<int64_t>() : nullptr, in.data<T>(), shape_of(pool)});
  });
}

void avg_pool(Tensor& out, const cpu::Pooling& pool, bool count_include_pad, int64_t divisor_override,
              const Tensor& x) {
  const Tensor in = contiguous(x);
  for_floating(x.dtype(), [&]<class T>() {
    for_each(x.device(), out.numel(),
             AvgPool<T>{out.data<T>(), in.data<T>(), shape_of(pool), {count_include_pad, divisor_override}});
  });
}

void avg_pool_backward(Tensor& out, const cpu::Pooling& pool, bool count_include_pad, int64_t divisor_override,
                       const Tensor& grad) {
  const Tensor g = contiguous(grad);
  summed(out, [&]<class T>(T* to) {
    for_each(out.device(), g.numel(),
             AvgPoolGrad<T>{to, array_of(g), shape_of(pool), {count_include_pad, divisor_override}});
  });
}

void fractional_max_pool(Tensor& values, Tensor& indices, const cpu::Pooling& pool, const Tensor& x,
                         const Tensor& samples) {
  const Tensor in = contiguous(x), drawn = contiguous(samples);
  for_floating(x.dtype(), [&]<class T>() {
    for_each(x.device(), values.numel(),
             FractionalMaxPool<T>{values.data<T>(), indices.data<int64_t>(), in.data<T>(), array_of(drawn),
                                  samples.sizes().back(), shape_of(pool)});
  });
}

void pool_scatter(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  const Tensor in = contiguous(x), at = contiguous(indices);
  const int64_t from = elements(cpu::spatial_extent(x, spatial)), to = elements(cpu::spatial_extent(out, spatial));
  summed(out, [&]<class T>(T* data) {
    for_each(out.device(), in.numel(),
             PoolScatter<T>{data, array_of(in), at.data<int64_t>(), from, to, true, index_check(out.device().index)});
  });
}

void max_unpool(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  const Tensor in = contiguous(x), at = contiguous(indices);
  const int64_t from = elements(cpu::spatial_extent(x, spatial)), to = elements(cpu::spatial_extent(out, spatial));
  cpu::fill(out, Scalar(0));
  for_pooled(x.dtype(), [&]<class T>() {
    for_each(out.device(), in.numel(),
             PoolScatter<T>{out.data<T>(), array_of(in), at.data<int64_t>(), from, to, false,
                            index_check(out.device().index)});
  });
}

void pool_gather(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  const Tensor in = contiguous(x), at = contiguous(indices);
  const int64_t from = elements(cpu::spatial_extent(x, spatial)), to = elements(cpu::spatial_extent(indices, spatial));
  for_pooled(x.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(), PoolGather<T>{out.data<T>(), in.data<T>(), at.data<int64_t>(), from, to});
  });
}

}  // namespace rush::cuda
