// Kernels that read and write at indices. Index values are checked here, against the dimension they index.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// How a list of indices cuts a tensor: the dimensions left of, in, and right of the index positions. An index is an
/// integer tensor, or a mask that stands for as many dimensions as it has; an undefined one takes a dimension whole.
struct Selection {
  Selection(const Tensor& x, Tensors indices);
  /// Sizes of the result.
  Dims sizes() const;

  Dims before, index, after;
  Dims before_strides, after_strides;  // of x
  struct Place {
    Tensor index;        // integers, or a mask
    int64_t dim;         // of x, the first if it is a mask
    int64_t count = -1;  // true elements of a mask
  };
  std::vector<Place> places;
};

/// What becomes of an element and the value that is written to it.
enum class Write : uint8_t { assign, add, multiply, minimum, maximum };

/// out = x at the positions of the selection.
void index(Tensor& out, const Tensor& x, const Selection& selection);
/// Writes `values`, broadcast to the selection's sizes, into `out`, of which it is a selection. Where positions repeat,
/// the writes happen in order.
void index_put(Tensor& out, const Selection& selection, const Tensor& values, Write write);

/// The true or nonzero elements, counted.
int64_t count_nonzero(const Tensor& x);
/// Their positions as rows of (n, x.dim()), int64, in row-major order.
void nonzero(Tensor& out, const Tensor& x);

}  // namespace rush::cpu
