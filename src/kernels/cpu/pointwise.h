// Elementwise kernels on the CPU: `out` arrives allocated, operands broadcast to its sizes.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {
void copy(Tensor& out, const Tensor& x);
void fill(Tensor& out, const Tensor& x, const Tensor& value);
void arange(Tensor& out, const Scalar& start, const Scalar& step);
void add(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha);
void sub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha);
void mul(Tensor& out, const Tensor& a, const Tensor& b);
void div(Tensor& out, const Tensor& a, const Tensor& b, OptStr rounding_mode);
void neg(Tensor& out, const Tensor& x);
void eq(Tensor& out, const Tensor& a, const Tensor& b);
void ne(Tensor& out, const Tensor& a, const Tensor& b);
void lt(Tensor& out, const Tensor& a, const Tensor& b);
void le(Tensor& out, const Tensor& a, const Tensor& b);
void gt(Tensor& out, const Tensor& a, const Tensor& b);
void ge(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_and(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_or(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_xor(Tensor& out, const Tensor& a, const Tensor& b);
void bitwise_not(Tensor& out, const Tensor& x);
}  // namespace rush::cpu
