// Launches of normalizations.
#include "kernels/cuda/normalization.cuh"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

template <class T>
T* at(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}
template <class F>
void for_precision(DType t, F&& f) {
  t == kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace

void layer_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t n, const Tensor& weight,
                const Tensor& bias, double eps, bool rms) {
  if (x.numel() == 0) return;
  for_precision(x.dtype(), [&]<class T>() {
    for_teams(
        x.device(), x.numel() / n, n,
        NormalizeRows<T>{at<T>(x), at<T>(weight), at<T>(bias), at<T>(y), at<T>(mean), at<T>(rstd), n, 1, n, eps, rms});
  });
}

void layer_norm_backward(Tensor& dx, Tensor& dweight, Tensor& dbias, const Tensor& grad, const Tensor& x, int64_t n,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  if (n == 0) return;
  const int64_t rows = x.numel() / n;
  for_precision(x.dtype(), [&]<class T>() {
    if (dx.defined())
      for_teams(x.device(), rows, n,
                NormalizeGrad<T>{at<T>(grad), at<T>(x), at<T>(mean), at<T>(rstd), at<T>(weight), at<T>(dx), n});
    if (dweight.defined() || dbias.defined())
      for_teams(x.device(), n, rows,
                NormalizeWeightGrad<T>{at<T>(grad), at<T>(x), at<T>(mean), at<T>(rstd), at<T>(dweight), at<T>(dbias),
                                       rows, n});
  });
}

void group_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t rows, int64_t group_channels,
                int64_t size, int64_t channels, const Tensor& weight, const Tensor& bias, double eps) {
  if (x.numel() == 0) return;
  const int64_t n = group_channels * size;
  for_precision(x.dtype(), [&]<class T>() {
    for_teams(x.device(), rows, n,
              NormalizeRows<T>{at<T>(x), at<T>(weight), at<T>(bias), at<T>(y), at<T>(mean), at<T>(rstd), n, size,
                               channels, eps, false});
  });
}

void channel_affine(Tensor& y, const Tensor& x, int64_t, int64_t channels, int64_t size, bool channels_last,
                    const Tensor& scale, const Tensor& shift) {
  for_precision(x.dtype(), [&]<class T>() {
    for_each(x.device(), x.numel(),
             ChannelAffine<T>{at<T>(y), at<T>(x), at<T>(scale), at<T>(shift), {channels, size, channels_last}});
  });
}
void channel_sums(Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels,
                  int64_t size, bool channels_last, const Tensor& mean) {
  for_precision(x.dtype(), [&]<class T>() {
    for_teams(x.device(), channels, batch * size,
              ChannelSums<T>{at<double>(sum),
                             at<double>(dot),
                             at<T>(grad),
                             at<T>(x),
                             at<T>(mean),
                             batch,
                             {channels, size, channels_last}});
  });
}
void channel_combine(Tensor& dx, const Tensor& grad, const Tensor& x, int64_t, int64_t channels, int64_t size,
                     bool channels_last, const Tensor& a, const Tensor& b, const Tensor& c) {
  for_precision(x.dtype(), [&]<class T>() {
    for_each(x.device(), x.numel(),
             ChannelCombine<T>{
                 at<T>(dx), at<T>(grad), at<T>(x), at<T>(a), at<T>(b), at<T>(c), {channels, size, channels_last}});
  });
}

}  // namespace rush::cuda
