// The kernels that a GPU has of its own. Each is what the function of the same name in kernels/cpu is, which hands over
// to it where the result lies on a GPU; arguments are described there.
#pragma once
#include "kernels/cpu/indexing.h"
#include "kernels/cpu/joining.h"
#include "kernels/cpu/losses.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/resample.h"
#include "rushlight/tensor.h"

namespace rush::cuda {

// softmax.cpp
void softmax(Tensor& out, const Tensor& x, int64_t dim, bool log);
void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& result, int64_t dim, bool log);

// losses.cpp
void pair_loss(Tensor& out, const Tensor& a, const Tensor& b, cpu::PairLoss kind, double width, bool reduce,
               double scale);
void pick_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index);
void put_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index);
void class_losses(Tensor& losses, Tensor& log_sum, const Tensor& input, const Tensor& target, int64_t ignore_index);
void class_losses_backward(Tensor& out, const Tensor& grad, const Tensor& grad_log_sum, const Tensor& input,
                           const Tensor& target, const Tensor& log_sum, int64_t ignore_index);
void label_margins(Tensor& losses, Tensor& slopes, const Tensor& input, const Tensor& target);

// ctc.cpp
void ctc_losses(Tensor& out, const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                int64_t blank);
void ctc_losses_backward(Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         Ints input_lengths, Ints target_lengths, int64_t blank);

// fft.cpp
void fft_c2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);
void fft_r2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);
void fft_c2r(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward);

// normalization.cpp
void layer_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t n, const Tensor& weight,
                const Tensor& bias, double eps, bool rms);
void layer_norm_backward(Tensor& dx, Tensor& dweight, Tensor& dbias, const Tensor& grad, const Tensor& x, int64_t n,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight);
void group_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t rows, int64_t group_channels,
                int64_t size, int64_t channels, const Tensor& weight, const Tensor& bias, double eps);

void channel_affine(Tensor& y, const Tensor& x, int64_t batch, int64_t channels, int64_t size, bool channels_last,
                    const Tensor& scale, const Tensor& shift);
void channel_sums(Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels,
                  int64_t size, bool channels_last, const Tensor& mean);
void channel_combine(Tensor& dx, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels, int64_t size,
                     bool channels_last, const Tensor& a, const Tensor& b, const Tensor& c);

// indexing.cpp
void index(Tensor& out, const Tensor& x, const cpu::Selection& selection);
void index_put(Tensor& out, const cpu::Selection& selection, const Tensor& values, Write write);
void gather_along(Tensor& out, const Tensor& x, int64_t dim, const Tensor& index);
void scatter_along(Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, Write write);
void search_sorted(Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right);
void triangle(Tensor& out, const Tensor& x, int64_t k, bool upper);
int64_t count_nonzero(const Tensor& x);
void nonzero(Tensor& out, const Tensor& x);

// joining.cpp
void join(Tensor& out, Tensors tensors, int64_t dim, bool stacked);
void flip(Tensor& out, const Tensor& x, const Dims& dims);
void im2col(Tensor& out, const Tensor& x, const cpu::Sliding& w);
void col2im(Tensor& out, const Tensor& x, const cpu::Sliding& w);

// scans.cpp
void cumsum(Tensor& out, const Tensor& x, int64_t dim);
void cumprod(Tensor& out, const Tensor& x, int64_t dim);
void logcumsumexp(Tensor& out, const Tensor& x, int64_t dim);
void cum_extreme(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool largest);

// matmul.cpp
void batched_product(Tensor& out, int64_t batch, int64_t m, int64_t n, int64_t k, const cpu::Matrices& a,
                     const cpu::Matrices& b, const Scalar& alpha, const Scalar& beta, const Tensor& bias);
void cdist(Tensor& out, const Tensor& a, const Tensor& b, double p);

// random.cpp
void uniform(Tensor& out, double from, double to, Generator& generator);
void normal(Tensor& out, double mean, double std, Generator& generator);
void log_normal(Tensor& out, double mean, double std, Generator& generator);
void exponential(Tensor& out, double lambda, Generator& generator);
void cauchy(Tensor& out, double median, double sigma, Generator& generator);
void geometric(Tensor& out, double p, Generator& generator);
void bernoulli(Tensor& out, double p, Generator& generator);
void bernoulli(Tensor& out, const Tensor& p, Generator& generator);
void integers(Tensor& out, int64_t from, uint64_t range, Generator& generator);
void integers(Tensor& out, Generator& generator);
void permutation(Tensor& out, Generator& generator);
void multinomial(Tensor& out, const Tensor& weights, bool replacement, Generator& generator);
void poisson(Tensor& out, const Tensor& rates, Generator& generator);
void dropout(Tensor& out, Tensor& mask, const Tensor& x, double p, Generator& generator);
void random_slopes(Tensor& out, Tensor& slopes, const Tensor& x, double lower, double upper, Generator& generator);
void dropout_backward(Tensor& out, const Tensor& g, const Tensor& mask, double scale);

// pooling.cpp
void max_pool(Tensor& values, Tensor* indices, const cpu::Pooling& pool, const Tensor& x);
void avg_pool(Tensor& out, const cpu::Pooling& pool, bool count_include_pad, int64_t divisor_override, const Tensor& x);
void avg_pool_backward(Tensor& out, const cpu::Pooling& pool, bool count_include_pad, int64_t divisor_override,
                       const Tensor& grad);
void fractional_max_pool(Tensor& values, Tensor& indices, const cpu::Pooling& pool, const Tensor& x,
                         const Tensor& samples);
void pool_scatter(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);
void max_unpool(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);
void pool_gather(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial);

// sorting.cpp
void sort(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool descending);
void topk(Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted);
void kthvalue(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, int64_t k);
void median(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, bool ignore_nan);
void mode(Tensor& values, Tensor& indices, const Tensor& x, int64_t n);
void histc(Tensor& out, const Tensor& x, double low, double high);
void bincount(Tensor& out, const Tensor& x, const Tensor& weights);

// resample.cpp
/// What resizing along a dimension is: `n` positions read elements at `index` (n, width) of `in` with weights; both on
/// the CPU.
void apply_taps(Tensor& out, const Tensor& x, int64_t in, int64_t n, int64_t inner, const Tensor& index,
                const Tensor& weight, bool transposed);
void grid_sample(Tensor& out, const Tensor& x, const Tensor& grid, const cpu::GridSampling& how);
void grid_sample_backward(Tensor& grad_x, Tensor& grad_grid, const Tensor& grad, const Tensor& x, const Tensor& grid,
                          const cpu::GridSampling& how);

}  // namespace rush::cuda
