// Convolutions on a GPU: what kernels/cpu/conv.h is on the CPU.
#pragma once
#include "cuda/products.h"

namespace rush::cuda {
/// `out` from `a` and `b` as in the function of conv.h that `pass` names; all contiguous and of one floating dtype.
void convolve(Device device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out, const void* a,
              const void* b, const void* bias);
}  // namespace rush::cuda
