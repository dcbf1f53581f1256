// Matrix products on raw memory: gemm for one, batched_gemm for many. Half types are multiplied and summed in float.
//
//   // c = a b^T for row-major a (m, k), b (n, k), c (m, n): a transposed operand is a matter of its strides
//   cpu::gemm<float>(m, n, k, {a, k, 1}, {b, 1, k}, {c, n, 1});
#pragma once
#include <complex>
#include <cstdint>
#include <limits>

#include "kernels/cpu/weight.h"
#include "rushlight/half.h"

namespace rush::cpu {

/// A matrix in memory: element (i, j) is at data[i * row + j * col]. Strides may be 0 or negative.
template <class T>
struct Strided {
  T* data;
  int64_t row, col;
};

/// What is added to alpha * a * b + beta * c besides: row[i] and col[j], where given.
template <class T>
struct Bias {
  const T* row = nullptr;
  const T* col = nullptr;
};

/// What real results are held between at last; NaN stays.
struct Clamp {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// c = clamp(alpha * a b + beta * c + bias) for a (m, k), b (k, n), c (m, n). c is not read where beta is 0, and must
/// overlap neither operand. The result does not depend on the number of threads. Where b is a weight, what is packed of
/// it may be kept with its memory, which changes no bit. A clamp is for floating dtypes.
/// T: float, double, BFloat16, Half, the integers of 8 to 64 bits (which wrap around), complex<float>, complex<double>.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b, Strided<T> c, compute_t<T> alpha = 1,
          compute_t<T> beta = 0, Bias<T> bias = {}, Weight b_weight = {}, Clamp clamp = {});

/// c = a b for bytes a without and b with a sign, summed in 32 bits, which wrap around.
void gemm_u8s8(int64_t m, int64_t n, int64_t k, Strided<const uint8_t> a, Strided<const int8_t> b, Strided<int32_t> c);

/// gemm for each of `batch` matrices, which lie a_batch, b_batch and c_batch elements apart (0 repeats an operand).
template <class T>
void batched_gemm(int64_t batch, int64_t m, int64_t n, int64_t k, Strided<const T> a, int64_t a_batch,
                  Strided<const T> b, int64_t b_batch, Strided<T> c, int64_t c_batch, compute_t<T> alpha = 1,
                  compute_t<T> beta = 0);

}  // namespace rush::cpu
