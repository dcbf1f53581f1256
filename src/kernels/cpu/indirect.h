// Convolutions over few pixels, or with strides, and their gradients, for floats.
#pragma once
#include "kernels/cpu/conv.h"

namespace rush::cpu {

/// True for a convolution whose gradients the last two functions compute faster than those of conv.cpp.
bool indirect_suits(const Convolution& conv);

/// The same for its result, which must be one of several images.
bool indirect_forward_suits(const Convolution& conv);

void indirect_forward(const Convolution& conv, const float* x, const float* weight, const float* bias, float* y);
void indirect_backward_data(const Convolution& conv, const float* grad_y, const float* weight, float* grad_x,
                            const float* bias);
void indirect_backward_weight(const Convolution& conv, const float* x, const float* grad_y, float* grad_weight);

}  // namespace rush::cpu
