// Kernels that read and write at indices. Index values are checked here, against the dimension they index.
#pragma once
#include "kernels/writes.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// How a list of indices cuts a tensor: the dimensions left of, in, and right of the index positions. An index is an
/// integer tensor, or a mask that stands for as many dimensions as it has; an undefined one takes a dimension whole.
struct Selection {
  /// What is said about an index outside its dimension, and whether negative ones count from the end.
  enum class Bounds : uint8_t { wrap, strict, strict_runtime_error };
  Selection(const Tensor& x, Tensors indices, Bounds bounds = Bounds::wrap);
  /// One index for one dimension, of a tensor that may be 0-dim.
  static Selection along(const Tensor& x, int64_t dim, const Tensor& index, Bounds bounds);
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
  Bounds bounds;

 private:
  Selection() = default;
};

/// out = x at the positions of the selection.
void index(Tensor& out, const Tensor& x, const Selection& selection);
/// Writes `values`, broadcast to the selection's sizes, into `out`, of which it is a selection. Where positions repeat,
/// the writes happen in order.
void index_put(Tensor& out, const Selection& selection, const Tensor& values, Write write);

/// out[i][j] = x[index[i][j]][j], for dimension 0 of two, and likewise; index has out's sizes.
void gather_along(Tensor& out, const Tensor& x, int64_t dim, const Tensor& index);
/// out[index[i][j]][j] = src[i][j], for dimension 0 of two, and likewise; src has at least the sizes of index, or is
/// 0-dim. Where places repeat, the writes happen in order.
void scatter_along(Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, Write write);

/// Where each value would be put into a sorted row of `sorted`, before or after equal ones. The rows are 1-dim for all
/// values, or one for each row of them; `sorter` may give the order of a row instead. out is int64 or int32.
void search_sorted(Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right);

/// out = x with zeros above (or below, for `upper`) the k-th diagonal of each matrix.
void triangle(Tensor& out, const Tensor& x, int64_t k, bool upper);

/// For each bag and column the row of `weight` (contiguous) with the greatest value, -1 for a bag without rows. Bag b
/// has the rows indices[starts[b]] .. indices[starts[b + 1] - 1], without `padding`.
void bag_argmax(Tensor& out, const Tensor& weight, const int64_t* indices, const int64_t* starts, int64_t padding);

/// The true or nonzero elements, counted.
int64_t count_nonzero(const Tensor& x);
/// Their positions as rows of (n, x.dim()), int64, in row-major order.
void nonzero(Tensor& out, const Tensor& x);

}  // namespace rush::cpu
