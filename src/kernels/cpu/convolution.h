// Convolutions of tensors: conv.h by dtype. Complex ones are made of four real ones, integers are computed as doubles.
#pragma once
#include "kernels/cpu/conv.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// y = x convolved with weight, plus bias unless undefined.
void convolution(Tensor& y, const Convolution& conv, const Tensor& x, const Tensor& weight, const Tensor& bias);
/// The same for floats on the CPU, with any end.
void convolution(Tensor& y, const Convolution& conv, const Tensor& x, const Tensor& weight, const Epilogue<float>& end);
/// The transposed one: x = the gradient of convolution's input for the output y, plus bias.
void convolution_transposed(Tensor& x, const Convolution& conv, const Tensor& y, const Tensor& weight,
                            const Tensor& bias);
void convolution_weight_grad(Tensor& grad_weight, const Convolution& conv, const Tensor& x, const Tensor& grad_y);

}  // namespace rush::cpu
