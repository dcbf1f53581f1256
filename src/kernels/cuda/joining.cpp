// Launches of joining, flipping and unfolding.
#include "kernels/cuda/joining.cuh"

#include <algorithm>

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

void join(Tensor& out, Tensors tensors, int64_t dim, bool stacked) {
  int64_t position = 0;
  for (const Tensor& t : tensors) {
    if (!stacked && t.dim() == 1 && t.numel() == 0) continue;
    Dims window = out.sizes(), strides = out.strides();
    const int64_t length = stacked ? 1 : t.sizes()[dim], offset = out.storage_offset() + position * strides[dim];
    position += length;
    window[dim] = length;
    if (stacked) {
      window.erase(size_t(dim));
      strides.erase(size_t(dim));
    }
    Tensor part = alias(out, window, strides, offset);
    cpu::copy(part, t);
  }
}

void flip(Tensor& out, const Tensor& x, const Dims& dims) {
  Layout<2> l{};
  const Tensor* const tensors[] = {&out, &x};
  const Dims strides[] = {out.strides(), x.strides()};
  l = layout_of(out.sizes(), tensors, strides);
  for (int64_t d : dims) {
    l.lanes[1].data += (x.sizes()[d] - 1) * x.strides()[d] * x.itemsize();
    l.lanes[1].strides[d] = -x.strides()[d];
  }
  for_width(x.dtype(), [&]<class W>() { for_each(out.device(), out.numel(), Move<W>{l}); });
}

namespace {

Windows windows_of(const cpu::Sliding& w) {
  Windows to{};
  to.size[0] = w.rows;
  to.size[1] = w.columns;
  for (int i = 0; i < 2; ++i) {
    to.kernel[i] = w.kernel[i];
    to.dilation[i] = w.dilation[i];
    to.padding[i] = w.padding[i];
    to.stride[i] = w.stride[i];
    to.places[i] = w.places(i);
  }
  return to;
}

}  // namespace

void im2col(Tensor& out, const Tensor& x, const cpu::Sliding& w) {
  for_all(x.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(), ImToCol<T>{out.data<T>(), x.data<T>(), windows_of(w)});
  });
}
void col2im(Tensor& out, const Tensor& x, const cpu::Sliding& w) {
  for_all(x.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(), ColToIm<T>{out.data<T>(), x.data<T>(), windows_of(w)});
  });
}

}  // namespace rush::cuda
