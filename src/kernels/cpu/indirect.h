// The gradients of convolutions over few pixels, or with strides, for floats.
#pragma once
#include "kernels/cpu/conv.h"

namespace rush::cpu {

/// True for a convolution whose gradients the two functions below compute faster than those of conv.cpp.
bool indirect_suits(const Convolution& conv);

void indirect_backward_data(const Convolution& conv, const float* grad_y, const float* weight, float* grad_x,
                            const float* bias);
void indirect_backward_weight(const Convolution& conv, const float* x, const float* grad_y, float* grad_weight);

}  // namespace rush::cpu
