// Order statistics of rows: each works on the rows of n elements of a contiguous x and gives a value and its index.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
/// The k-th smallest, k from 1; NaN is larger than all.
void kthvalue(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, int64_t k);
/// The lower median: of all elements, NaN if there is one, or of those that are not NaN.
void median(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, bool ignore_nan);
/// The smallest of the most frequent elements and the last index where it is found.
void mode(Tensor& values, Tensor& indices, const Tensor& x, int64_t n);
/// Counts of x (contiguous, floating) in out.numel() equal bins from low to high, the last one closed; others are left
/// out.
void histc(Tensor& out, const Tensor& x, double low, double high);
/// out[x[i]] += weights[i], or += 1 without weights. x is contiguous int64, out int64, or double with double weights.
void bincount(Tensor& out, const Tensor& x, const Tensor& weights);
}  // namespace rush::cpu
