// Convolutions by cuDNN, where it is there, and its switches: torch.backends.cudnn.
#pragma once
#include "cuda/products.h"

namespace rush::cuda {

struct CudnnSettings {
  bool enabled = true, benchmark = false, deterministic = false, allow_tf32 = true;
};
extern CudnnSettings cudnn_settings;

/// Such as 91900; 0 where there is no cuDNN.
int64_t cudnn_version();
/// Puts the convolution on the device's current stream; false if cuDNN can't do it, is switched off or not there.
bool cudnn_convolution(int device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out,
                       const void* a, const void* b, const void* bias);

}  // namespace rush::cuda
