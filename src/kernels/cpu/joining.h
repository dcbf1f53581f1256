// Kernels that join, pad and unfold tensors.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// Writes the tensors side by side along `dim` of `out`; each has out's sizes but for that dimension. With `stacked`,
/// `dim` is a new one in which each tensor is one index.
void join(Tensor& out, Tensors tensors, int64_t dim, bool stacked);

/// out = x between borders of `value`; pairs of `pad` go from the last dimension to the first and may be negative.
void constant_pad(Tensor& out, const Tensor& x, Ints pad, Scalar value);

/// out = x backwards along the dimensions (normalised, ascending).
void flip(Tensor& out, const Tensor& x, const Dims& dims);

/// The sliding window over planes of rows x columns: out has a row for each element of the kernel and a column for each
/// place of it.
struct Sliding {
  int64_t rows, columns;  // of the plane
  Ints kernel, dilation, padding, stride;
  int64_t places(int i) const {
    const int64_t span = dilation[i] * (kernel[i] - 1) + 1, room = (i ? columns : rows) + 2 * padding[i] - span;
    return room < 0 ? 0 : room / stride[i] + 1;
  }
};
/// x (n, planes, rows, columns) to out (n, planes * kernel, places), both contiguous.
void im2col(Tensor& out, const Tensor& x, const Sliding& w);
/// The reverse, where windows that overlap are summed.
void col2im(Tensor& out, const Tensor& x, const Sliding& w);

}  // namespace rush::cpu
