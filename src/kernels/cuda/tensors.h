// Tensors as the launches describe them to kernels.
#pragma once
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layout.cuh"
#include "rushlight/ops.h"

namespace rush::cuda {

/// Appends a dimension inside the ones before it, joined to the last where memory allows.
inline void append(Axes& axes, int64_t size, int64_t stride) {
  if (size == 1) return;
  const int64_t last = axes.dims - 1;
  if (last >= 0 && axes.strides[last] == stride * size) {
    axes.sizes[last] *= size;
    axes.strides[last] = stride;
    return;
  }
  check(axes.dims < kLayoutDims, "on a GPU at most ", kLayoutDims, " separate dimensions are supported");
  axes.sizes[axes.dims] = size;
  axes.strides[axes.dims++] = stride;
}
inline Axes axes_of(Ints sizes, Ints strides) {
  Axes axes{};
  for (size_t d = 0; d < sizes.size(); ++d) append(axes, sizes[d], strides[d]);
  return axes;
}

/// for_bytes with types that kernels' sources can name.
template <class F>
void for_width(DType dtype, F&& f) {
  for_bytes(dtype, [&]<class W>() {
    if constexpr (sizeof(W) == 16)
      f.template operator()<std::complex<double>>();
    else
      f.template operator()<W>();
  });
}

/// An array and its type, as load and store want it.
inline Array array_of(const Tensor& t) {
  return t.defined() ? Array{static_cast<char*>(t.data_ptr()), t.dtype()} : Array{nullptr, kBool};
}

/// Memory of the same device.
inline Tensor allocate_like(const Tensor& t, Dims sizes, DType dtype) {
  return rush::allocate({std::move(sizes), dtype, t.device(), {}});
}

/// Tensors of at most kLayoutDims dimensions over the same sizes; nothing is merged.
template <size_t N>
Layout<int(N)> layout_of(Ints sizes, const Tensor* const (&tensors)[N], const Dims (&strides)[N]) {
  check(sizes.size() <= size_t(kLayoutDims), "on a GPU at most ", kLayoutDims, " dimensions are supported");
  Layout<int(N)> l{};
  l.dims = int64_t(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) l.sizes[d] = sizes[d];
  for (size_t k = 0; k < N; ++k) {
    l.lanes[k].data = static_cast<char*>(tensors[k]->data_ptr());
    l.lanes[k].dtype = tensors[k]->dtype();
    for (size_t d = 0; d < sizes.size(); ++d) l.lanes[k].strides[d] = strides[k][d];
  }
  return l;
}

}  // namespace rush::cuda
