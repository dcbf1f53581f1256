// Matrix products of tensors: gemm.h by dtype. Half types are summed in float.
#pragma once
#include "kernels/cpu/gemm.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// A tensor read as a batch of matrices: element (b, i, j) lies b * batch + i * row + j * col elements after the first.
struct Matrices {
  const Tensor& tensor;
  int64_t row, col, batch = 0;
  bool weight = false;  // is read again and again: what is packed of it is worth keeping
};

/// out (m, n), contiguous, = alpha * a b + beta * out + bias, where bias is undefined or contiguous (n). out is not
/// read where beta is 0. Any dtype but bool. On the CPU results of floating dtypes may be clamped.
void product(Tensor& out, int64_t m, int64_t n, int64_t k, const Matrices& a, const Matrices& b,
             const Scalar& alpha = 1, const Scalar& beta = 0, const Tensor& bias = {}, Clamp clamp = {});
/// The same for each of `batch` matrices, without bias.
void batched_product(Tensor& out, int64_t batch, int64_t m, int64_t n, int64_t k, const Matrices& a, const Matrices& b,
                     const Scalar& alpha = 1, const Scalar& beta = 0);

/// out () = the sum of the products of a's and b's elements, both (n).
void dot(Tensor& out, const Tensor& a, const Tensor& b);

/// out (b, m, n) = distances by the p-norm between the rows of a (b, m, k) and of b (b, n, k). Floating dtypes.
void cdist(Tensor& out, const Tensor& a, const Tensor& b, double p);

}  // namespace rush::cpu
