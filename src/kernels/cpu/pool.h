// Pooling over one to three spatial dimensions of contiguous (planes, spatial...) memory, where planes are batch times
// channels, with gradients.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/cpu/conv.h"
#include "rushlight/half.h"

namespace rush::cpu {

/// The windows of a pooling. Sizes are right-aligned as in Convolution (see extent()). The caller chooses the output's
/// size: the floor or the ceiling of the usual formula. With `adaptive`, output position o looks at
/// [floor(o * input / output), ceil((o + 1) * input / output)), and kernel, stride, padding and dilation are not read.
struct Pooling {
  int64_t planes = 1;
  Extent input{1, 1, 1}, output{1, 1, 1};
  Extent kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool adaptive = false;
};

/// y = the largest element of each window, NaN if there is one; indices, unless null, = where in its plane it is (the
/// first of equals). T: float, double, BFloat16, Half, and the integers of 8 to 64 bits.
template <class T>
void max_pool(const Pooling& pool, const T* x, T* y, int64_t* indices);

/// grad_x (planes, in) = grad_y (planes, out) added up at its indices.
template <class T>
void max_pool_backward(int64_t planes, int64_t in, int64_t out, const T* grad_y, const int64_t* indices, T* grad_x);

/// y = the sum of each window over its divisor: divisor_override unless 0, else the window's size, with the padding it
/// covers if count_include_pad. T: float, double, BFloat16, Half. Dilation must be 1.
template <class T>
void avg_pool(const Pooling& pool, bool count_include_pad, int64_t divisor_override, const T* x, T* y);

template <class T>
void avg_pool_backward(const Pooling& pool, bool count_include_pad, int64_t divisor_override, const T* grad_y,
                       T* grad_x);

}  // namespace rush::cpu
