// Random fills of tensors: rush::random over any strides. Elements are drawn in the order in which they lie in memory.
#pragma once
#include "rushlight/generator.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

void uniform(Tensor& out, double from, double to, Generator& generator);
void normal(Tensor& out, double mean, double std, Generator& generator);
void log_normal(Tensor& out, double mean, double std, Generator& generator);
void exponential(Tensor& out, double lambda, Generator& generator);
void cauchy(Tensor& out, double median, double sigma, Generator& generator);
void geometric(Tensor& out, double p, Generator& generator);
void bernoulli(Tensor& out, double p, Generator& generator);
/// `p` is broadcast to out's sizes. Throws Error if one lies outside [0, 1].
void bernoulli(Tensor& out, const Tensor& p, Generator& generator);
/// from ... from + range - 1; range 0 stands for all 64-bit integers.
void integers(Tensor& out, int64_t from, uint64_t range, Generator& generator);
/// From 0 to the dtype's largest.
void integers(Tensor& out, Generator& generator);
void permutation(Tensor& out, Generator& generator);
/// `weights` has the sizes (rows, columns) or (columns), out the same with the samples in place of columns.
void multinomial(Tensor& out, const Tensor& weights, bool replacement, Generator& generator);
void poisson(Tensor& out, const Tensor& rates, Generator& generator);
/// mask is true where x is kept, with probability 1 - p; out = x * mask / (1 - p). Both are dense, with equal strides.
void dropout(Tensor& out, Tensor& mask, const Tensor& x, double p, Generator& generator);
/// out = x * slope; slopes are 1 where x > 0, else uniform on [lower, upper). Both have equal strides.
void random_slopes(Tensor& out, Tensor& slopes, const Tensor& x, double lower, double upper, Generator& generator);
/// out = g * mask * scale.
void dropout_backward(Tensor& out, const Tensor& g, const Tensor& mask, double scale);

}  // namespace rush::cpu
