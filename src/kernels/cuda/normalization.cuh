// Layer and group normalization and their gradients: a team for each row; sums over rows by a team for each column.
// Everything is computed in T, dense memory of which is given.
#pragma once
#include "kernels/cuda/softmax.cuh"

namespace rush::cuda {

/// Rows of n elements in channels of `size`; weight and bias have an element for each channel, and row r begins at
/// channel r * channels_in_row % channels.
template <class T>
struct NormalizeRows {
  const T *x, *weight, *bias;
  T *y, *mean, *rstd;
  int64_t n, size, channels;
  double eps;
  bool rms;  // the mean counts as 0

  RUSH_FN void operator()(int64_t row) const {
    const T* in = x + row * n;
    T m = 0;
    if (!rms) {
      share(n, [&](int64_t i) { m += in[i]; });
      m = combine(m, Plus()) / T(n);
    }
    T spread = 0;
    share(n, [&](int64_t i) { spread += (in[i] - m) * (in[i] - m); });
    spread = combine(spread, Plus());
    const T r = T(1 / formula::sqrt(double(spread) / double(n) + eps));
    share(n, [&](int64_t i) {
      const int64_t channel = (row * (n / size) + i / size) % channels;
      const T scaled = (in[i] - m) * r;
      y[row * n + i] = (weight ? scaled * weight[channel] : scaled) + (bias ? bias[channel] : T(0));
    });
    if (threadIdx.x != 0) return;
    if (mean) mean[row] = m;
    rstd[row] = r;
  }
};

template <class T>
struct NormalizeGrad {
  const T *grad, *x, *mean, *rstd, *weight;
  T* dx;
  int64_t n;

  RUSH_FN void operator()(int64_t row) const {
    const T *g = grad + row * n, *in = x + row * n;
    const T m = mean ? mean[row] : T(0), r = rstd[row];
    T sum = 0, dot = 0;
    share(n, [&](int64_t i) {
      const T h = weight ? g[i] * weight[i] : g[i];
      sum += h;
      dot += h * (in[i] - m);
    });
    sum = combine(sum, Plus());
    dot = combine(dot, Plus());
    const T a = mean ? sum / T(n) : T(0), b = dot / T(n) * r * r;
    share(n, [&](int64_t i) {
      const T h = weight ? g[i] * weight[i] : g[i];
      dx[row * n + i] = r * (h - a - (in[i] - m) * b);
    });
  }
};

/// The gradients of weight and bias, each of which may be null.
template <class T>
struct NormalizeWeightGrad {
  const T *grad, *x, *mean, *rstd;
  T *dweight, *dbias;
  int64_t rows, n;

  RUSH_FN void operator()(int64_t i) const {
    T w = 0, b = 0;
    share(rows, [&](int64_t row) {
      const T g = grad[row * n + i];
      w += g * (x[row * n + i] - (mean ? mean[row] : T(0))) * rstd[row];
      b += g;
    });
    w = combine(w, Plus());
    b = combine(b, Plus());
    if (threadIdx.x != 0) return;
    if (dweight) dweight[i] = w;
    if (dbias) dbias[i] = b;
  }
};

// ---- batch normalization: what belongs to channels is computed for each once

/// From a batch's moments (or, without, the running ones) to what each element is multiplied with and shifted by.
/// Arrays may be missing.
struct BatchStatistics {
  Array mean, rstd, scale, shift, weight, bias, running_mean, running_var, average, variance;
  int64_t mean_stride, var_stride;  // of the running ones
  int64_t n;                        // elements of a channel
  double momentum, eps;

  RUSH_FN void operator()(int64_t c) const {
    const bool training = bool(average);
    const double m = training ? average.at<double>(c) : running_mean.at<double>(c * mean_stride);
    const double v = training ? variance.at<double>(c) : running_var.at<double>(c * var_stride);
    mean.put<double>(c, m);
    rstd.put<double>(c, 1 / formula::sqrt(v + eps));
    const double s = rstd.at<double>(c) * (weight ? weight.at<double>(c) : 1);
    scale.put<double>(c, s);
    shift.put<double>(c, (bias ? bias.at<double>(c) : 0) - mean.at<double>(c) * s);
    if (!training) return;
    update(running_mean, c * mean_stride, m);
    update(running_var, c * var_stride, v * double(n) / double(n - 1));
  }
  RUSH_FN void update(const Array& running, int64_t at, double value) const {
    if (running) running.put<double>(at, (1 - momentum) * running.at<double>(at) + momentum * value);
  }
};

/// dx = scale * (g - mean(g) - (x - mean) * rstd^2 * mean(g * (x - mean))) as g * a + x * b + k.
struct BatchGradients {
  Array dweight, dbias, a, b, k, mean, rstd, weight, sum, dot;
  int64_t n;
  bool training;

  RUSH_FN void operator()(int64_t c) const {
    const double r = rstd.at<double>(c), s = sum.at<double>(c), d = dot.at<double>(c);
    const double scale = r * (weight ? weight.at<double>(c) : 1);
    const double slope = training ? -scale * r * r * d / double(n) : 0;
    dweight.put<double>(c, d * r);
    dbias.put<double>(c, s);
    a.put<double>(c, scale);
    b.put<double>(c, slope);
    k.put<double>(c, training ? -scale * s / double(n) - slope * mean.at<double>(c) : 0);
  }
};

/// x of (batch, channels, size) or, where `last`, of (batch * size, channels).
struct ChannelShape {
  int64_t channels, size;
  bool last;
  RUSH_FN int64_t channel(int64_t i) const { return (last ? i : i / size) % channels; }
};
template <class T>
struct ChannelAffine {
  T* y;
  const T *x, *scale, *shift;
  ChannelShape shape;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t c = shape.channel(i);
    y[i] = x[i] * scale[c] + shift[c];
  }
};
template <class T>
struct ChannelCombine {
  T* dx;
  const T *grad, *x, *a, *b, *k;
  ChannelShape shape;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t c = shape.channel(i);
    dx[i] = grad[i] * a[c] + x[i] * b[c] + k[c];
  }
};
/// A team sums a channel.
template <class T>
struct ChannelSums {
  double *sum, *dot;
  const T *grad, *x, *mean;
  int64_t batch;
  ChannelShape shape;
  RUSH_FN void operator()(int64_t c) const {
    double s = 0, d = 0;
    share(batch * shape.size, [&](int64_t i) {
      const int64_t at =
          shape.last ? i * shape.channels + c : (i / shape.size * shape.channels + c) * shape.size + i % shape.size;
      s += double(grad[at]);
      d += double(grad[at] * (x[at] - mean[c]));
    });
    s = combine(s, Plus());
    d = combine(d, Plus());
    if (threadIdx.x != 0) return;
    sum[c] = s;
    dot[c] = d;
  }
};

}  // namespace rush::cuda
