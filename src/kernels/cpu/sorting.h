// Orders of elements: sorting, the largest, the distinct. NaN counts as greater than any number.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// Sorts along a dimension, always stably; values and indices arrive contiguous.
void sort(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool descending);

/// The k greatest or smallest along a dimension, in order if `sorted`.
void topk(Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted);

/// The order in which equal rows of a contiguous matrix come together, ascending in lexicographic order.
std::vector<int64_t> sorted_rows(const Tensor& x);

/// Whether row i of a contiguous matrix equals row j; NaN equals nothing.
bool equal_rows(const Tensor& x, int64_t i, int64_t j);

}  // namespace rush::cpu
