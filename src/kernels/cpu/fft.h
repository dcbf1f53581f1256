// Fast Fourier transforms along one dimension of a tensor, in float and double.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

// Each computes factor * sum over j of x_j e^(-2 pi i jk / n), with the sign turned over unless `forward`.

/// Complex to complex of the same sizes; out may be x.
void fft_c2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);
/// Real to complex: out has the n / 2 + 1 first of n elements, the others mirror them. With n elements, out has all.
void fft_r2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);
/// The n / 2 + 1 first elements of a line that mirrors itself to the n real ones of its transform.
void fft_c2r(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);

}  // namespace rush::cpu
