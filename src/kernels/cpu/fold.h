// Reductions as folds: a Fold says how an accumulator takes elements, fold() brings the elements to it whatever their
// layout and dtype are and shares the work among threads. The folds themselves are in folds.cpp.
//
// Note [Sums] Floats are summed in lanes of at most 32 elements, lanes in double. Work is cut at places that depend on
// the shape only, so a result has the same bits with any number of threads.
#pragma once
#include "kernels/folds.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

enum class FoldKind : uint8_t {
  sum,
  nansum,
  prod,
  max,
  min,
  any,
  all,
  count,    // of elements that are not zero
  sum_abs,  // norms of order 1, 2, p, inf and -inf
  sum_square,
  sum_power,
  max_abs,
  min_abs,
  argmax,  // value and index of the first largest element; NaN is larger than all
  argmin,
  moments,  // variance and mean
};

using folds::FoldOptions;

struct Fold {
  DType type;        // elements arrive as this
  DType results[2];  // what finish writes
  int64_t size;      // bytes of an accumulator
  void (*start)(void* acc, int64_t n);
  /// One accumulator takes n elements, the first of which has index `at` among all.
  void (*run)(void* acc, const void* x, int64_t n, int64_t at, const FoldOptions& options);
  /// Accumulator c takes column c of `rows` rows, which lie `stride` elements apart.
  void (*rows)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t cols, int64_t at,
               const FoldOptions& options);
  /// acc[i] takes what other[i] has seen; other's elements come after acc's.
  void (*merge)(void* acc, const void* other, int64_t n);
  void (*finish)(const void* acc, int64_t n, const FoldOptions& options, void* const* out);
};

/// The fold for elements of the dtype `t`. Raises NotImplementedError where the dtype has none.
const Fold& find_fold(FoldKind kind, DType t);

/// Folds x over `dims` (normalised). Results are contiguous, with or without the reduced dimensions, of any dtype.
/// Indices of argmax and argmin count along the one dimension reduced, or all elements of a contiguous x.
void fold(const Fold& f, const FoldOptions& options, const Tensor& x, const Dims& dims, Tensor* const* outs,
          int out_count);

}  // namespace rush::cpu
