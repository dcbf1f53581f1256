// The libraries that a GPU's machine may have: matrix products (cuBLASLt) and convolutions (cuDNN). On the simulator
// the CPU's own kernels stand in for them, on the stream's thread; RUSHLIGHT_SIM_LIBRARIES=0 takes them away, so that
// the kernels for machines without libraries are tested.
#pragma once
#include <atomic>

#include "kernels/cpu/conv.h"
#include "rushlight/dtype.h"

namespace rush::cuda {

/// An operand: element (b, i, j) is at b * batch + i * row + j * col.
struct GemmOperand {
  const void* data;
  int64_t batch, row, col;
};
/// out (batch, m, n), contiguous, = alpha * a b + beta * out + bias of n or null.
struct Gemm {
  DType dtype;
  int64_t batch, m, n, k;
  GemmOperand a, b;
  void* out;
  const void* bias;
  Scalar alpha, beta;
};
/// Whether float32 matrix products may be computed in TensorFloat-32: torch.backends.cuda.matmul.allow_tf32.
extern std::atomic<bool> products_in_tf32;
/// Puts the product on the device's current stream; false, having done nothing, if no library can.
bool library_gemm(int device, const Gemm& gemm);

/// Which of a convolution's three tensors is computed from the other two: y, x, or the weight.
enum class ConvolutionPass : uint8_t { forward, data, weight };
/// As conv.h's functions of these names, of floating dtypes: `out` from `a` and `b` in their order there.
bool library_convolution(int device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out,
                         const void* a, const void* b, const void* bias);

}  // namespace rush::cuda
