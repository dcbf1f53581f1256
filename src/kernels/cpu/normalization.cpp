// Rows are normalized where they lie in cache: a pass for the mean, one for the variance, one for the result. What
// belongs to channels is one multiplication and addition for each element.
#include "kernels/cpu/normalization.h"

#include "kernels/cuda/kernels.h"

#include <memory>

#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/normalization.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/lanes-inl.h"

#ifndef RUSH_NORMALIZATION_CPP
#define RUSH_NORMALIZATION_CPP
namespace rush::cpu {
namespace {
/// What the typed kernels take: raw memory. Null where a tensor is not there.
struct Rows {
  int64_t rows, n;
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  double eps;
  bool rms;
};
struct RowGrads {
  int64_t rows, n;
  const void *grad, *x, *mean, *rstd, *weight;
  void *dx, *dweight, *dbias;
};
struct Channels {
  int64_t batch, channels, size;
  bool last;
  const void *grad, *x, *a, *b, *c, *mean;
  void *out, *sum, *dot;
};
using Between = std::function<void(int64_t)>;
constexpr int64_t kGrain = 16384;
}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace m = formula;
template <class T>
struct Moments {
  T mean, rstd;
};
template <class T>
Moments<T> moments(const T* x, int64_t n, double eps, bool rms) {
  if (rms) {
    const double square = vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(d, x + i);
      return hn::Mul(v, v);
    });
    return {T(0), T(1 / m::sqrt(square / double(n) + eps))};
  }
  const T mean = T(vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }) / double(n));
  const double spread = vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    return hn::Mul(v, v);
  });
  return {mean, T(1 / m::sqrt(spread / double(n) + eps))};
}

template <class T>
void layer_norm_rows(const Rows& p) {
  const T *x = static_cast<const T*>(p.x), *w = static_cast<const T*>(p.weight), *b = static_cast<const T*>(p.bias);
  parallel_for(0, p.rows, std::max<int64_t>(kGrain / p.n, 1), [&](int64_t lo, int64_t hi) {
    for (int64_t r = lo; r < hi; ++r) {
      const T* HWY_RESTRICT in = x + r * p.n;
      T* HWY_RESTRICT out = static_cast<T*>(p.y) + r * p.n;
      const auto [mean, rstd] = moments(in, p.n, p.eps, p.rms);
      if (p.mean) static_cast<T*>(p.mean)[r] = mean;
      static_cast<T*>(p.rstd)[r] = rstd;
      for_vectors<T>(p.n, [&](auto d, int64_t i) HWY_ATTR {
        const auto v = hn::Mul(hn::Sub(hn::LoadU(d, in + i), hn::Set(d, mean)), hn::Set(d, rstd));
        const auto shift = b ? hn::LoadU(d, b + i) : hn::Zero(d);
        hn::StoreU(w ? hn::MulAdd(v, hn::LoadU(d, w + i), shift) : hn::Add(v, shift), d, out + i);
      });
    }
  });
}

template <class T>
void layer_norm_grads(const RowGrads& p) {
  const T *grad = static_cast<const T*>(p.grad), *x = static_cast<const T*>(p.x), *w = static_cast<const T*>(p.weight);
  const T *means = static_cast<const T*>(p.mean), *rstds = static_cast<const T*>(p.rstd);
  // The gradients of weight and bias: partial sums over blocks of rows, then their sum.
  const int64_t block = std::max<int64_t>((p.rows + 15) / 16, 16), blocks = (p.rows + block - 1) / block;
  const bool partial = p.dweight || p.dbias;
  const std::unique_ptr<T[]> sums(partial ? new T[2 * blocks * p.n]() : nullptr);
  parallel_for(0, blocks, std::max<int64_t>(kGrain / (block * p.n), 1), [&](int64_t lo, int64_t hi) {
    for (int64_t k = lo; k < hi; ++k) {
      T* HWY_RESTRICT dw = partial ? sums.get() + 2 * k * p.n : nullptr;
      T* HWY_RESTRICT db = dw + p.n;
      for (int64_t r = k * block; r < std::min(p.rows, (k + 1) * block); ++r) {
        const T *HWY_RESTRICT g = grad + r * p.n, *HWY_RESTRICT in = x + r * p.n;
        const T mean = means ? means[r] : T(0), rstd = rstds[r];
        if (partial)
          for (int64_t i = 0; i < p.n; ++i) {
            dw[i] += g[i] * (in[i] - mean) * rstd;
            db[i] += g[i];
          }
        if (!p.dx) continue;
        T* HWY_RESTRICT out = static_cast<T*>(p.dx) + r * p.n;
        const auto h = [&](auto d, int64_t i) HWY_ATTR {
          const auto v = hn::LoadU(d, g + i);
          return w ? hn::Mul(v, hn::LoadU(d, w + i)) : v;
        };
        const double dot = vector_sum<T>(p.n, [&](auto d, int64_t i) HWY_ATTR {
          return hn::Mul(h(d, i), hn::Sub(hn::LoadU(d, in + i), hn::Set(d, mean)));
        });
        const T a = means ? T(vector_sum<T>(p.n, h) / double(p.n)) : T(0);
        const T b = T(dot / double(p.n)) * rstd * rstd;
        for_vectors<T>(p.n, [&](auto d, int64_t i) HWY_ATTR {
          const auto centred = hn::Sub(hn::LoadU(d, in + i), hn::Set(d, mean));
          const auto rest = hn::NegMulAdd(centred, hn::Set(d, b), hn::Sub(h(d, i), hn::Set(d, a)));
          hn::StoreU(hn::Mul(hn::Set(d, rstd), rest), d, out + i);
        });
      }
    }
  });
  for (int which = 0; which < 2; ++which) {
    T* to = static_cast<T*>(which ? p.dbias : p.dweight);
    if (!to) continue;
    for (int64_t i = 0; i < p.n; ++i) to[i] = T(0);
    for (int64_t k = 0; k < blocks; ++k) {
      const T* from = sums.get() + (2 * k + which) * p.n;
      for (int64_t i = 0; i < p.n; ++i) to[i] += from[i];
    }
  }
}

template <class T>
void group_norm_rows(const Rows& p, int64_t group_channels, int64_t channels) {
  const int64_t size = p.n / group_channels;
  const T *w = static_cast<const T*>(p.weight), *b = static_cast<const T*>(p.bias);
  parallel_for(0, p.rows, std::max<int64_t>(kGrain / p.n, 1), [&](int64_t lo, int64_t hi) {
    for (int64_t r = lo; r < hi; ++r) {
      const T* in = static_cast<const T*>(p.x) + r * p.n;
      T* out = static_cast<T*>(p.y) + r * p.n;
      const auto [mean, rstd] = moments(in, p.n, p.eps, false);
      static_cast<T*>(p.mean)[r] = mean;
      static_cast<T*>(p.rstd)[r] = rstd;
      for (int64_t k = 0; k < group_channels; ++k) {
        const int64_t channel = (r * group_channels + k) % channels;
        const T scale = w ? rstd * w[channel] : rstd, shift = b ? b[channel] : T(0);
        const T* HWY_RESTRICT from = in + k * size;
        T* HWY_RESTRICT to = out + k * size;
        for (int64_t i = 0; i < size; ++i) to[i] = (from[i] - mean) * scale + shift;
      }
    }
  });
}

/// body(row, channel, offset) for each row of `size` elements of one channel, in any order.
template <class F>
void each_plane(const Channels& p, const F& body) {
  const int64_t grain = std::max<int64_t>(kGrain / p.size, 1);
  parallel_for(0, p.batch * p.channels, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t r = lo; r < hi; ++r) body(r % p.channels, r * p.size);
  });
}
/// body(offset) for each row of one element of every channel.
template <class F>
void each_pixel(const Channels& p, const F& body) {
  parallel_for(0, p.batch * p.size, std::max<int64_t>(kGrain / p.channels, 1), [&](int64_t lo, int64_t hi) {
    for (int64_t r = lo; r < hi; ++r) body(r * p.channels);
  });
}

template <class T>
void affine_plane(const Channels& p, int64_t c, int64_t at) {
  const T* HWY_RESTRICT from = static_cast<const T*>(p.x) + at;
  T* HWY_RESTRICT to = static_cast<T*>(p.out) + at;
  const T scale = static_cast<const T*>(p.a)[c], shift = static_cast<const T*>(p.b)[c];
  for (int64_t i = 0; i < p.size; ++i) to[i] = from[i] * scale + shift;
}
template <class T>
void combine_plane(const Channels& p, int64_t c, int64_t at) {
  const T *HWY_RESTRICT g = static_cast<const T*>(p.grad) + at, *HWY_RESTRICT from = static_cast<const T*>(p.x) + at;
  T* HWY_RESTRICT to = static_cast<T*>(p.out) + at;
  const T ac = static_cast<const T*>(p.a)[c], bc = static_cast<const T*>(p.b)[c], kc = static_cast<const T*>(p.c)[c];
  for (int64_t i = 0; i < p.size; ++i) to[i] = g[i] * ac + from[i] * bc + kc;
}
/// body(offset) for each plane of channel c.
template <class F>
HWY_INLINE void planes_of(const Channels& p, int64_t c, const F& body) {
  for (int64_t n = 0; n < p.batch; ++n) body((n * p.channels + c) * p.size);
}
template <class T>
void sums_of(const Channels& p, int64_t c) {
  const T shift = static_cast<const T*>(p.mean)[c];
  double s = 0, dot = 0;
  planes_of(p, c, [&](int64_t at) HWY_ATTR {
    const T *g = static_cast<const T*>(p.grad) + at, *x = static_cast<const T*>(p.x) + at;
    s += vector_sum<T>(p.size, [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, g + i); });
    dot += vector_sum<T>(p.size, [&](auto d, int64_t i) HWY_ATTR {
      return hn::Mul(hn::LoadU(d, g + i), hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    });
  });
  static_cast<double*>(p.sum)[c] = s;
  static_cast<double*>(p.dot)[c] = dot;
}

template <class T>
void normalize(const Channels& p, const Between& between) {
  const double count = double(p.batch * p.size);
  parallel_for(0, p.channels, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t c = lo; c < hi; ++c) {
      double sum = 0, spread = 0;
      const T* x = static_cast<const T*>(p.x);
      planes_of(p, c, [&](int64_t at) HWY_ATTR {
        sum += vector_sum<T>(p.size, [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + at + i); });
      });
      const double mean = sum / count;
      const T shift = T(mean);
      planes_of(p, c, [&](int64_t at) HWY_ATTR {
        spread += vector_sum<T>(p.size, [&](auto d, int64_t i) HWY_ATTR {
          const auto v = hn::Sub(hn::LoadU(d, x + at + i), hn::Set(d, shift));
          return hn::Mul(v, v);
        });
      });
      const double rest = mean - double(shift), variance = spread / count - rest * rest;
      static_cast<double*>(p.sum)[c] = mean;
      static_cast<double*>(p.dot)[c] = variance < 0 ? 0 : variance;
      between(c);
      planes_of(p, c, [&](int64_t at) { affine_plane<T>(p, c, at); });
    }
  });
}
template <class T>
void normalize_backward(const Channels& p, const Between& between) {
  parallel_for(0, p.channels, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t c = lo; c < hi; ++c) {
      sums_of<T>(p, c);
      between(c);
      planes_of(p, c, [&](int64_t at) { combine_plane<T>(p, c, at); });
    }
  });
}

template <class T>
void affine(const Channels& p) {
  const T *x = static_cast<const T*>(p.x), *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  T* out = static_cast<T*>(p.out);
  if (p.last)
    each_pixel(p, [&](int64_t at) {
      const T* HWY_RESTRICT from = x + at;
      T* HWY_RESTRICT to = out + at;
      for (int64_t c = 0; c < p.channels; ++c) to[c] = from[c] * a[c] + b[c];
    });
  else
    each_plane(p, [&](int64_t c, int64_t at) { affine_plane<T>(p, c, at); });
}

template <class T>
void combine(const Channels& p) {
  const T *grad = static_cast<const T*>(p.grad), *x = static_cast<const T*>(p.x);
  const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b), *k = static_cast<const T*>(p.c);
  T* out = static_cast<T*>(p.out);
  if (p.last)
    each_pixel(p, [&](int64_t at) {
      const T *HWY_RESTRICT g = grad + at, *HWY_RESTRICT from = x + at;
      T* HWY_RESTRICT to = out + at;
      for (int64_t c = 0; c < p.channels; ++c) to[c] = g[c] * a[c] + from[c] * b[c] + k[c];
    });
  else
    each_plane(p, [&](int64_t c, int64_t at) { combine_plane<T>(p, c, at); });
}

template <class T>
void sums(const Channels& p) {
  const T *grad = static_cast<const T*>(p.grad), *x = static_cast<const T*>(p.x), *mean = static_cast<const T*>(p.mean);
  double *sum = static_cast<double*>(p.sum), *dot = static_cast<double*>(p.dot);
  if (!p.last) {
    const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(p.batch * p.size, 1), 1);
    parallel_for(0, p.channels, grain, [&](int64_t lo, int64_t hi) {
      for (int64_t c = lo; c < hi; ++c) sums_of<T>(p, c);
    });
    return;
  }
  constexpr int64_t width = 256;
  const int64_t rows = p.batch * p.size, blocks = (p.channels + width - 1) / width;
  parallel_for(
      0, blocks, std::max<int64_t>(kGrain / std::max<int64_t>(rows * width, 1), 1), [&](int64_t lo, int64_t hi) {
        for (int64_t k = lo; k < hi; ++k) {
          const int64_t first = k * width, n = std::min(width, p.channels - first);
          double s[width] = {}, d[width] = {};
          for (int64_t r = 0; r < rows; ++r) {
            const T *HWY_RESTRICT g = grad + r * p.channels + first, *HWY_RESTRICT from = x + r * p.channels + first;
            for (int64_t c = 0; c < n; ++c) {
              s[c] += double(g[c]);
              d[c] += double(g[c] * (from[c] - mean[first + c]));
            }
          }
          std::copy_n(s, n, sum + first);
          std::copy_n(d, n, dot + first);
        }
      });
}

void layer_norm_any(DType t, const Rows& p) { t == kFloat32 ? layer_norm_rows<float>(p) : layer_norm_rows<double>(p); }
void layer_grads_any(DType t, const RowGrads& p) {
  t == kFloat32 ? layer_norm_grads<float>(p) : layer_norm_grads<double>(p);
}
void group_norm_any(DType t, const Rows& p, int64_t group_channels, int64_t channels) {
  t == kFloat32 ? group_norm_rows<float>(p, group_channels, channels)
                : group_norm_rows<double>(p, group_channels, channels);
}
void affine_any(DType t, const Channels& p) { t == kFloat32 ? affine<float>(p) : affine<double>(p); }
void combine_any(DType t, const Channels& p) { t == kFloat32 ? combine<float>(p) : combine<double>(p); }
void normalize_any(DType t, const Channels& p, const Between& between) {
  t == kFloat32 ? normalize<float>(p, between) : normalize<double>(p, between);
}
void normalize_backward_any(DType t, const Channels& p, const Between& between) {
  t == kFloat32 ? normalize_backward<float>(p, between) : normalize_backward<double>(p, between);
}
void sums_any(DType t, const Channels& p) { t == kFloat32 ? sums<float>(p) : sums<double>(p); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(layer_norm_any);
HWY_EXPORT(layer_grads_any);
HWY_EXPORT(group_norm_any);
HWY_EXPORT(affine_any);
HWY_EXPORT(combine_any);
HWY_EXPORT(sums_any);
HWY_EXPORT(normalize_any);
HWY_EXPORT(normalize_backward_any);

namespace {
void* at(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }
}  // namespace

void layer_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t n, const Tensor& weight,
                const Tensor& bias, double eps, bool rms) {
  if (!y.is_cpu()) return cuda::layer_norm(y, mean, rstd, x, n, weight, bias, eps, rms);
  if (x.numel() == 0) return;
  HWY_DYNAMIC_DISPATCH(layer_norm_any)
  (x.dtype(), {x.numel() / n, n, at(x), at(weight), at(bias), at(y), at(mean), at(rstd), eps, rms});
}
void layer_norm_backward(Tensor& dx, Tensor& dweight, Tensor& dbias, const Tensor& grad, const Tensor& x, int64_t n,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  if (!x.is_cpu()) return cuda::layer_norm_backward(dx, dweight, dbias, grad, x, n, mean, rstd, weight);
  if (n == 0) return;
  HWY_DYNAMIC_DISPATCH(layer_grads_any)
  (x.dtype(), {x.numel() / n, n, at(grad), at(x), at(mean), at(rstd), at(weight), at(dx), at(dweight), at(dbias)});
}
void group_norm(Tensor& y, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t rows, int64_t group_channels,
                int64_t size, int64_t channels, const Tensor& weight, const Tensor& bias, double eps) {
  if (!y.is_cpu()) return cuda::group_norm(y, mean, rstd, x, rows, group_channels, size, channels, weight, bias, eps);
  if (x.numel() == 0) return;
  HWY_DYNAMIC_DISPATCH(group_norm_any)
  (x.dtype(), {rows, group_channels * size, at(x), at(weight), at(bias), at(y), at(mean), at(rstd), eps, false},
   group_channels, channels);
}
bool channels_fit(const Tensor& x, int64_t batch, int64_t channels, int64_t size) {
  const int64_t bytes = batch * size * x.itemsize();
  return x.is_cpu() && channels >= 16 && bytes > 0 && bytes <= 1 << 18;
}
void channel_normalize(Tensor& y, Tensor& variance, Tensor& mean, const Tensor& x, int64_t batch, int64_t channels,
                       int64_t size, const Tensor& scale, const Tensor& shift, const Between& between) {
  HWY_DYNAMIC_DISPATCH(normalize_any)
  (x.dtype(),
   {.batch = batch,
    .channels = channels,
    .size = size,
    .last = false,
    .grad = nullptr,
    .x = at(x),
    .a = at(scale),
    .b = at(shift),
    .c = nullptr,
    .mean = nullptr,
    .out = at(y),
    .sum = at(mean),
    .dot = at(variance)},
   between);
}
void channel_normalize_backward(Tensor& dx, Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x,
                                int64_t batch, int64_t channels, int64_t size, const Tensor& mean, const Tensor& a,
                                const Tensor& b, const Tensor& c, const Between& between) {
  HWY_DYNAMIC_DISPATCH(normalize_backward_any)
  (x.dtype(),
   {.batch = batch,
    .channels = channels,
    .size = size,
    .last = false,
    .grad = at(grad),
    .x = at(x),
    .a = at(a),
    .b = at(b),
    .c = at(c),
    .mean = at(mean),
    .out = at(dx),
    .sum = at(sum),
    .dot = at(dot)},
   between);
}
void channel_affine(Tensor& y, const Tensor& x, int64_t batch, int64_t channels, int64_t size, bool channels_last,
                    const Tensor& scale, const Tensor& shift) {
  if (!y.is_cpu()) return cuda::channel_affine(y, x, batch, channels, size, channels_last, scale, shift);
  if (x.numel() == 0) return;
  HWY_DYNAMIC_DISPATCH(affine_any)
  (x.dtype(), {batch, channels, size, channels_last, nullptr, at(x), at(scale), at(shift), nullptr, nullptr, at(y),
               nullptr, nullptr});
}
void channel_sums(Tensor& sum, Tensor& dot, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels,
                  int64_t size, bool channels_last, const Tensor& mean) {
  if (!sum.is_cpu()) return cuda::channel_sums(sum, dot, grad, x, batch, channels, size, channels_last, mean);
  HWY_DYNAMIC_DISPATCH(sums_any)
  (x.dtype(), {batch, channels, size, channels_last, at(grad), at(x), nullptr, nullptr, nullptr, at(mean), nullptr,
               at(sum), at(dot)});
}
void channel_combine(Tensor& dx, const Tensor& grad, const Tensor& x, int64_t batch, int64_t channels, int64_t size,
                     bool channels_last, const Tensor& a, const Tensor& b, const Tensor& c) {
  if (!dx.is_cpu()) return cuda::channel_combine(dx, grad, x, batch, channels, size, channels_last, a, b, c);
  if (x.numel() == 0) return;
  HWY_DYNAMIC_DISPATCH(combine_any)
  (x.dtype(),
   {batch, channels, size, channels_last, at(grad), at(x), at(a), at(b), at(c), nullptr, at(dx), nullptr, nullptr});
}

}  // namespace rush::cpu
#endif
