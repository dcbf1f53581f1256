// Layer, group and batch normalization with their gradients. x is contiguous float or double and seen as rows; so are
// the results; weights may be undefined, or have the dtype of x; statistics are of x's dtype.
#pragma once
#include <functional>

#include "rushlight/tensor.h"

namespace rush::cpu {

/// y = (x - mean) * rstd * weight + bias over rows of n elements; `weight` and `bias` have n. With `kRms` the mean is 0
/// and rstd is one over the root of the mean square.
void layer_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t n, const Tensor& weight,
                const Tensor& bias, double eps, bool rms);
/// Gradients, into those of dx, dweight and dbias that are defined. An undefined mean stands for zeros (rms).
void layer_norm_backward(Tensor& dx, Tensor& dweight, Tensor& dbias, const Tensor& grad, const Tensor& x, int64_t n,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight);

/// x is (rows, group channels, size): a row is normalized as a whole, `weight` and `bias` have `channels` elements and
/// row r begins at channel r * (group channels) % channels.
void group_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t rows, int64_t group_channels,
                int64_t size, int64_t channels, const Tensor& weight, const Tensor& bias, double eps);

/// Are there enough channels for every thread, and is each small enough to stay in its cache between two passes? Then
/// the two functions after this one read memory once; x is (batch, channels, size).
bool channels_fit(const Tensor& x, int64_t batch, int64_t channels, int64_t size);
/// For each channel the variance and the mean, in double, then `between(channel)`, which may give its scale and shift
/// their values, then y = x * scale + shift.
void channel_normalize(Tensor& y, Tensor& variance, Tensor& mean, const Tensor& x, int64_t batch, int64_t channels,
                       int64_t size, const Tensor& scale, const Tensor& shift,
                       const std::function<void(int64_t)>& between);
/// channel_sums, `between(channel)`, and channel_combine, channel by channel.
void channel_normalize_backward(Tensor& dx, Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x,
                                int64_t batch, int64_t channels, int64_t size, const Tensor& mean, const Tensor& a,
                                const Tensor& b, const Tensor& c, const std::function<void(int64_t)>& between);

/// y = x * scale + shift for x of (batch, channels, size) or, where `channels_last`, of (batch, size, channels).
void channel_affine(Tensor& y, const Tensor& x, int64_t batch, int64_t channels, int64_t size, bool channels_last,
                    const Tensor& scale, const Tensor& shift);
/// For each channel the sum of grad and that of grad * (x - mean), in double.
void channel_sums(Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels,
                  int64_t size, bool channels_last, const Tensor& mean);
/// dx = grad * a + x * b + c, with a value of each for each channel.
void channel_combine(Tensor& dx, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels, int64_t size,
                     bool channels_last, const Tensor& a, const Tensor& b, const Tensor& c);

}  // namespace rush::cpu
