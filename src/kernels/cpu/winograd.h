// 3x3 convolutions of stride 1 with a quarter of the multiplications: Winograd's F(4x4, 3x3), for floats.
#pragma once
#include "kernels/cpu/conv.h"

namespace rush::cpu {

/// True for a convolution that the three functions below compute, and that they compute faster than direct ones.
bool winograd_suits(const Convolution& conv);

/// As conv_forward, conv_backward_data and conv_backward_weight. Errors are about twice those of plain summation.
void winograd_forward(const Convolution& conv, const float* x, const float* weight, const Epilogue<float>& end,
                      float* y, Weight memory);
void winograd_backward_data(const Convolution& conv, const float* grad_y, const float* weight, float* grad_x,
                            const float* bias);
void winograd_backward_weight(const Convolution& conv, const float* x, const float* grad_y, float* grad_weight);

}  // namespace rush::cpu
