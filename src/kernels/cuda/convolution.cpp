// Convolutions of contiguous floating memory: by a library where there is one, else by kernels of our own.
#include "kernels/cuda/convolution.h"

#include "kernels/cuda/convolution.cuh"
#include "kernels/cuda/launch.h"

namespace rush::cuda {

void convolve(Device device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out, const void* a,
              const void* b, const void* bias) {
  if (library_convolution(device.index, pass, conv, dtype, out, a, b, bias)) return;
  ConvolutionShape s{conv.batch, conv.in_channels, conv.out_channels, conv.groups, {}, {}, {}, {}, {}, {}};
  int64_t area = 1, in = 1, result = 1;
  for (int d = 0; d < 3; ++d) {
    s.input[d] = conv.input[d];
    s.output[d] = conv.output[d];
    s.kernel[d] = conv.kernel[d];
    s.stride[d] = conv.stride[d];
    s.padding[d] = conv.padding[d];
    s.dilation[d] = conv.dilation[d];
    area *= conv.kernel[d];
    in *= conv.input[d];
    result *= conv.output[d];
  }
  for_floating(dtype, [&]<class T>() {
    const T *left = static_cast<const T*>(a), *right = static_cast<const T*>(b), *add = static_cast<const T*>(bias);
    T* to = static_cast<T*>(out);
    if (pass == ConvolutionPass::forward)
      for_each(device, s.batch * s.out_channels * result, ConvolveForward<T>{to, left, right, add, s});
    else if (pass == ConvolutionPass::data)
      for_each(device, s.batch * s.in_channels * in, ConvolveData<T>{to, left, right, add, s});
    else
      for_teams(device, s.out_channels * (s.in_channels / s.groups) * area, s.batch * result,
                ConvolveWeight<T>{to, left, right, s});
  });
}

}  // namespace rush::cuda
