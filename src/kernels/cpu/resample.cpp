// Resizing and sampling. Both come down to taps: for each output position along one dimension, which input elements it
// reads and how they weigh.
#include "kernels/cpu/resample.h"

#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/kernels.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

using namespace interpolation;

template <class C>
struct Taps {
  int64_t in, out, width;
  std::vector<int64_t> index;  // width for each output
  std::vector<C> weight;
};

/// Weights for bytes are rounded to as many binary places as fit 16 bits with the greatest of them: what Pillow does
/// (Resample.c), and PyTorch after it.
template <class C>
void round_to_16_bits(Taps<C>& taps) {
  const C most = taps.weight.empty() ? C(0) : *std::max_element(taps.weight.begin(), taps.weight.end());
  int places = 0;
  while (places < 22 && std::ldexp(double(most), places + 1) + 0.5 < 32768) ++places;
  for (C& w : taps.weight) w = C(std::ldexp(std::round(std::ldexp(double(w), places)), -places));
}

template <class C>
Taps<C> taps_for(int64_t in, int64_t out, double factor, const Resampling& how) {
  const bool nearest = how.mode == "nearest" || how.mode == "nearest-exact", is_cubic = how.mode == "bicubic";
  C scale = factor > 0 ? C(1.0 / factor) : C(in) / C(out);
  if (how.align_corners && !nearest) scale = out > 1 ? C(in - 1) / C(out - 1) : C(0);
  Taps<C> taps{in, out, nearest ? 1 : is_cubic ? 4 : 2, {}, {}};
  const C support = (is_cubic ? C(2) : C(1)) * std::max(scale, C(1));
  if (how.antialias) taps.width = int64_t(std::ceil(support)) * 2 + 1;
  taps.index.resize(size_t(out * taps.width));
  taps.weight.resize(size_t(out * taps.width));
  for (int64_t j = 0; j < out; ++j) {
    int64_t* index = taps.index.data() + j * taps.width;
    C* weight = taps.weight.data() + j * taps.width;
    if (nearest) {
      const C at = how.mode == "nearest" ? C(j) * scale : (C(j) + C(0.5)) * scale;
      index[0] = std::clamp<int64_t>(int64_t(std::floor(at)), 0, in - 1);
      weight[0] = 1;
    } else if (how.antialias) {
      const C center = scale * (C(j) + C(0.5)), inverse = scale > 1 ? 1 / scale : C(1);
      const int64_t first = std::max<int64_t>(int64_t(center - support + C(0.5)), 0);
      const int64_t count = std::min({int64_t(center + support + C(0.5)), in, first + taps.width}) - first;
      C total = 0;
      for (int64_t t = 0; t < count; ++t) {
        const C x = (C(t + first) - center + C(0.5)) * inverse;
        weight[t] = is_cubic ? cubic(x, C(-0.5)) : std::max(C(0), 1 - std::abs(x));
        total += weight[t];
      }
      for (int64_t t = 0; t < taps.width; ++t) {
        index[t] = std::clamp<int64_t>(first + t, 0, in - 1);
        weight[t] = t < count && total != 0 ? weight[t] / total : C(0);
      }
    } else {
      C at = how.align_corners ? scale * C(j) : scale * (C(j) + C(0.5)) - C(0.5);
      if (!is_cubic) at = std::max(at, C(0));
      const auto first = int64_t(std::floor(at));
      const C fraction = at - C(first);
      for (int64_t t = 0; t < taps.width; ++t) {
        const int64_t offset = is_cubic ? t - 1 : t;
        index[t] = std::clamp<int64_t>(first + offset, 0, in - 1);
        weight[t] = is_cubic ? cubic(fraction - C(offset), C(-0.75)) : t ? fraction : 1 - fraction;
      }
    }
  }
  return taps;
}

/// out (outer, taps.out, inner) from x (outer, taps.in, inner).
template <class C>
void apply(C* out, const C* x, int64_t outer, int64_t inner, const Taps<C>& taps) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, taps.out * inner * taps.width));
  parallel_for(0, outer, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t o = lo; o < hi; ++o)
      for (int64_t j = 0; j < taps.out; ++j) {
        C* to = out + (o * taps.out + j) * inner;
        std::fill_n(to, inner, C(0));
        for (int64_t t = j * taps.width; t < (j + 1) * taps.width; ++t) {
          const C* from = x + (o * taps.in + taps.index[size_t(t)]) * inner;
          const C w = taps.weight[size_t(t)];
          if (w != 0)
            for (int64_t i = 0; i < inner; ++i) to[i] += w * from[i];
        }
      }
  });
}

template <class C>
void apply_transposed(C* grad_x, const C* grad, int64_t outer, int64_t inner, const Taps<C>& taps) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, taps.out * inner * taps.width));
  parallel_for(0, outer, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t o = lo; o < hi; ++o) {
      std::fill_n(grad_x + o * taps.in * inner, taps.in * inner, C(0));
      for (int64_t j = 0; j < taps.out; ++j) {
        const C* from = grad + (o * taps.out + j) * inner;
        for (int64_t t = j * taps.width; t < (j + 1) * taps.width; ++t) {
          C* to = grad_x + (o * taps.in + taps.index[size_t(t)]) * inner;
          const C w = taps.weight[size_t(t)];
          for (int64_t i = 0; i < inner; ++i) to[i] += w * from[i];
        }
      }
    }
  });
}

Tensor in_memory(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype && x.is_contiguous()) return x;
  Tensor copied = allocate({x.sizes(), dtype, x.device(), {}});
  copy(copied, x);
  return copied;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor t = allocate({{int64_t(values.size())}, dtype_of<T>});
  std::copy(values.begin(), values.end(), t.template data<T>());
  return t;
}

/// Runs f with a zero of the type that is computed in.
template <class F>
void in_floats(DType t, F&& f) {
  if (t == kFloat64)
    f(double());
  else
    f(float());
}

/// One dimension after the other from `from` to `to`'s sizes; forward, or transposed. Bytes are rounded after each, the
/// last dimension is the first then.
template <class C>
void by_dimension(Tensor& to, const Tensor& from, const Resampling& how, bool transposed) {
  Tensor now = in_memory(from, dtype_of<C>);
  const bool bytes = is_integral(to.dtype());
  for (int64_t turn = 2; turn < from.dim(); ++turn) {
    const int64_t d = bytes ? from.dim() + 1 - turn : turn;
    const int64_t small = transposed ? to.sizes()[d] : now.sizes()[d],
                  large = transposed ? now.sizes()[d] : to.sizes()[d];
    const double factor = how.scales.empty() ? 0 : how.scales[size_t(d) - 2];
    Taps<C> taps = taps_for<C>(small, large, factor, how);
    if (bytes) round_to_16_bits(taps);
    Dims sizes = now.sizes();
    sizes[size_t(d)] = to.sizes()[d];
    Tensor next = allocate({sizes, dtype_of<C>, now.device(), {}});
    const int64_t outer = product(Ints(sizes).slice(0, size_t(d)));
    const int64_t inner = product(Ints(sizes).slice(size_t(d) + 1, sizes.size() - size_t(d) - 1));
    if (!now.is_cpu())
      cuda::apply_taps(next, now, taps.in, taps.out, inner, tensor_of(taps.index), tensor_of(taps.weight), transposed);
    else if (transposed)
      apply_transposed(next.data<C>(), now.data<C>(), outer, inner, taps);
    else
      apply(next.data<C>(), now.data<C>(), outer, inner, taps);
    now = next;
    if (!bytes) continue;
    add(now, now, Tensor(0.5), 1);
    floor(now, now);
    clamp(now, now, OptScalar(0), OptScalar(255));
  }
  copy(to, now);
}

}  // namespace

void resample(Tensor& out, const Tensor& x, const Resampling& how) {
  in_floats(x.dtype(), [&]<class C>(C) { by_dimension<C>(out, x, how, false); });
}

void resample_backward(Tensor& grad_x, const Tensor& grad, const Resampling& how) {
  in_floats(grad.dtype(), [&]<class C>(C) { by_dimension<C>(grad_x, grad, how, true); });
}

namespace {

/// Calls f(batch, output position, corners) for each place of the grid.
template <class C, class F>
void each_place(const Tensor& x, const Tensor& grid, const GridSampling& how, F&& f) {
  const int64_t dims = x.dim() - 2, batch = x.size(0), places = batch ? grid.numel() / dims / batch : 0;
  const int64_t size[3] = {dims == 3 ? x.size(2) : 1, x.size(-2), x.size(-1)};
  parallel_for(0, batch, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t n = lo; n < hi; ++n)
      for (int64_t p = 0; p < places; ++p) {
        Corner<C> c[3];
        corners(grid.data<C>() + (n * places + p) * dims, dims, size, how, c);
        f(n, p, c, size);
      }
  });
}

}  // namespace

void grid_sample(Tensor& out, const Tensor& x, const Tensor& grid, const GridSampling& how) {
  if (!out.is_cpu()) return cuda::grid_sample(out, x, grid, how);
  in_floats(x.dtype(), [&]<class C>(C) {
    const Tensor in = in_memory(x, dtype_of<C>), places = in_memory(grid, dtype_of<C>);
    Tensor result = allocate({out.sizes(), dtype_of<C>});
    const int64_t channels = x.size(1), plane = product(Ints(x.sizes()).slice(2, size_t(x.dim()) - 2));
    const int64_t count = product(Ints(out.sizes()).slice(2, size_t(out.dim()) - 2));
    each_place<C>(in, places, how, [&](int64_t n, int64_t p, const auto& c, const auto& size) {
      C* to = result.data<C>() + n * channels * count + p;
      const C start = c[0].start + c[1].start + c[2].start;
      for (int64_t ch = 0; ch < channels; ++ch) to[ch * count] = start;
      each_tap<C>(c, size, [&](int64_t at, C weight, const C*) {
        const C* from = in.data<C>() + n * channels * plane + at;
        for (int64_t ch = 0; ch < channels; ++ch) to[ch * count] += weight * from[ch * plane];
      });
    });
    copy(out, result);
  });
}

void grid_sample_backward(Tensor& grad_x, Tensor& grad_grid, const Tensor& grad, const Tensor& x, const Tensor& grid,
                          const GridSampling& how) {
  if (!grad_x.is_cpu()) return cuda::grid_sample_backward(grad_x, grad_grid, grad, x, grid, how);
  in_floats(x.dtype(), [&]<class C>(C) {
    const Tensor in = in_memory(x, dtype_of<C>), places = in_memory(grid, dtype_of<C>),
                 g = in_memory(grad, dtype_of<C>);
    Tensor gx = allocate({x.sizes(), dtype_of<C>}), gg = allocate({grid.sizes(), dtype_of<C>});
    fill(gx, Scalar(0));
    const int64_t channels = x.size(1), plane = product(Ints(x.sizes()).slice(2, size_t(x.dim()) - 2)),
                  dims = x.dim() - 2;
    const int64_t count = product(Ints(grad.sizes()).slice(2, size_t(grad.dim()) - 2));
    each_place<C>(in, places, how, [&](int64_t n, int64_t p, const auto& c, const auto& size) {
      C sums[3] = {};
      each_tap<C>(c, size, [&](int64_t at, C weight, const C* slopes) {
        const C* from = in.data<C>() + n * channels * plane + at;
        C* to = gx.data<C>() + n * channels * plane + at;
        C dot = 0;
        for (int64_t ch = 0; ch < channels; ++ch) {
          const C one = g.data<C>()[(n * channels + ch) * count + p];
          to[ch * plane] += weight * one;
          dot += from[ch * plane] * one;
        }
        for (int d = 0; d < 3; ++d) sums[d] += dot * slopes[d];
      });
      for (int64_t d = 0; d < dims; ++d) gg.data<C>()[(n * count + p) * dims + d] = sums[d];
    });
    copy(grad_x, gx);
    copy(grad_grid, gg);
  });
}

}  // namespace rush::cpu
