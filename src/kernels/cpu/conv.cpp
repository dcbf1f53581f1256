// Convolutions as matrix products without an im2col buffer, on the engine of gemm-inl.h.
//
// Forward: y[channel][image, pixel] = weight[channel][k] * patches[k][image, pixel] with k = (input channel, tap);
// panels of patches are packed straight from x. Backward for data is the same product with grad_y's patches, once for
// each residue of the input position modulo the stride, each with the taps that reach it: no multiplication by the
// zeros between strided positions. Few input channels would not be worth the patches: see backward_data_by_tap.
// Backward for the weight multiplies elements of x, read where they lie in a padded copy, with panels of grad_y. With
// one input channel a group (depthwise) the loops go over rows directly.
//
// Measured on one core of a Zen 4 server (FMA peak 115 GF/s), forward / data / weight, in parentheses torch 2.15
// (oneDNN) in the same run: 3x3, 64 to 64 channels, 8 x 56 x 56: 101 / 98 / 98 GF/s (77 / 75 / 91); 1-d, 3 taps, 16 x
// 1024: 91 / 91 / 89 (88 / 87 / 76); depthwise 3x3, 96 channels, 8 x 56 x 56: 2.1 / 2.0 / 3.7 ms (2.8 / 3.2 / 3.3).
// 3x3 convolutions of stride 1 go to winograd.cpp; gradients over few pixels, and results of several images, to
// indirect.cpp.
#include "kernels/cpu/conv.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cpu/gather.h"
#include "kernels/cpu/indirect.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/winograd.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/epilogue-inl.h"
#include "kernels/cpu/gemm-inl.h"

#ifndef RUSH_CONV_CPP
#define RUSH_CONV_CPP
namespace rush::cpu {
namespace {

template <class T>
struct Arguments {
  const Convolution& conv;
  const T* x;  // what is read: x or grad_y
  const T* w;  // the other operand: weight or grad_y
  Epilogue<T> end;
  T* out;
};

}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

// Where results lie: position q of `grid` at origin + q * stride of an image of `size`.
template <class T>
struct Placement {
  T* data_;
  int64_t image, channel;  // strides
  Extent size, origin, stride, grid;
  int64_t pixels;
  bool dense;

  int64_t offset(int64_t j) const {
    const int64_t n = j / pixels, q = j - n * pixels;
    if (dense) return n * image + q;
    const int64_t z = q / (grid[1] * grid[2]), y = q / grid[2] % grid[1], x = q % grid[2];
    return n * image + ((origin[0] + z * stride[0]) * size[1] + origin[1] + y * stride[1]) * size[2] + origin[2] +
           x * stride[2];
  }
  int64_t run(int64_t j) const {
    if (dense) return pixels - j % pixels;
    return stride[2] == 1 ? grid[2] - j % grid[2] : 1;
  }
  T* data() const { return data_; }
  int64_t row() const { return channel; }
};

// What a tap reads for a run of output positions, at most a panel's width of them: elements from + i * step for i in
// range, and zeros elsewhere. The masks say the same for the vectors that are loaded: [step][vector].
template <class T>
struct TapRun {
  using D = hn::ScalableTag<T>;
  int64_t from;
  Range range;
  bool whole;
  hn::Mask<D> masks[2][2];

  void set_masks(int64_t step) {
    constexpr int64_t N = kLanes<T>;
    const auto up_to = [&](int64_t n)
                           HWY_ATTR { return hn::FirstN(D(), static_cast<size_t>(std::clamp<int64_t>(n, 0, N))); };
    for (int64_t s = 0; s < step; ++s)
      for (int64_t v = 0; v < 2; ++v) {
        const int64_t start = (v * step + s) * N;  // elements from here on, of which only each step-th counts
        masks[s][v] = hn::AndNot(up_to(step * range.lo - start), up_to(step * (range.hi - 1) + 1 - start));
      }
  }
};

// Packs `len` columns (V vectors) of `depth` rows: row k is tap (first + k) % taps of the channel (first + k) / taps.
// Unless `last`, what is written behind the columns will be written again.
template <class T, int V, int kStep>
HWY_NOINLINE void pack_run(const T* x, int64_t channel, const TapRun<T>* taps, int64_t tap_count, int64_t first,
                           int64_t depth, int64_t len, bool last, T* out, int64_t width) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  const T* from = x + first / tap_count * channel;
  const auto columns = hn::FirstN(d, static_cast<size_t>(len - (V - 1) * N));
  for (int64_t k = 0, tap = first % tap_count; k < depth; ++k, out += width) {
    const TapRun<T>& run = taps[tap];
    const T* in = from + run.from;
    // For the next panel: these are more streams than the hardware follows.
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) hwy::Prefetch(in + kPanel<T> + v * N);
    if (kStep == 1 && run.whole) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) hn::StoreU(hn::LoadU(d, in + v * N), d, out + v * N);
    } else {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        auto value = hn::MaskedLoad(run.masks[0][v], d, in + v * kStep * N);
        if (kStep == 2) value = hn::ConcatEven(d, hn::MaskedLoad(run.masks[1][v], d, in + (v * kStep + 1) * N), value);
        if (v == V - 1 && last) {
          hn::BlendedStore(value, columns, d, out + v * N);
        } else {
          hn::StoreU(value, d, out + v * N);
        }
      }
    }
    if (++tap == tap_count) {
      tap = 0;
      from += channel;
    }
  }
}

// The same for any step, without masks.
template <class T>
HWY_NOINLINE void pack_run_by_element(const T* x, int64_t channel, const TapRun<T>* taps, int64_t tap_count,
                                      int64_t first, int64_t depth, int64_t step, int64_t len, T* out, int64_t width) {
  for (int64_t k = 0; k < depth; ++k, out += width) {
    const auto& [from, range, whole, masks] = taps[(first + k) % tap_count];
    const T* in = x + (first + k) / tap_count * channel + from;
    for (int64_t w = 0; w < range.lo; ++w) out[w] = T(0);
    for (int64_t w = range.lo; w < range.hi; ++w) out[w] = in[w * step];
    for (int64_t w = range.hi; w < len; ++w) out[w] = T(0);
  }
}

// The patches of a convolution as the engine's right operand.
template <class T>
struct Patches {
  const T* x;
  int64_t image, channel;
  const Gather& gather;
  bool in_place = gather.grid == gather.source && gather.grid[0] * gather.grid[1] == 1 && gather.taps.size() == 1 &&
                  gather.offsets[0][2] == 0 && channel * sizeof(T) % 2048 != 0;  // else rows share few cache sets

  void pack(int64_t k0, int64_t depth, int64_t j0, int64_t valid, int64_t width, T* out) const {
    const auto& [source, grid, step, offsets, taps] = gather;
    constexpr int64_t N = kLanes<T>;
    const auto tap_count = static_cast<int64_t>(offsets.size());
    const bool masked = kHasMasks && step[2] <= 2;
    int64_t across = 1;  // taps in a row: what they read along a row of the image is the same for all rows of taps
    while (across < tap_count && offsets[static_cast<size_t>(across)][2] != offsets[0][2]) ++across;
    TapRun<T>* const runs = scratch<TapRun<T>>(Scratch::gather, tap_count + across + 1);
    TapRun<T>* const columns = runs + tap_count;
    TapRun<T>& nothing = columns[across];
    nothing.range = {0, 0};
    nothing.whole = false;
    if (masked) nothing.set_masks(step[2]);
    for (int64_t col = 0; col < valid;) {
      const int64_t pixels = volume(grid), n = (j0 + col) / pixels, q = (j0 + col) % pixels;
      const int64_t qz = q / (grid[1] * grid[2]), qy = q / grid[2] % grid[1], qx = q % grid[2];
      const int64_t len = std::min({valid - col, grid[2] - qx, kPanel<T>});
      for (int64_t t = 0; t < across; ++t) {
        TapRun<T>& column = columns[t];
        column.from = qx * step[2] + offsets[static_cast<size_t>(t)][2];
        column.range = inside(column.from, step[2], source[2], len);
        column.whole = column.range.lo == 0 && column.range.hi == len && len % N == 0;
        if (masked && !(step[2] == 1 && column.whole)) column.set_masks(step[2]);
      }
      for (int64_t tap = 0; tap < tap_count; tap += across) {
        const Extent& offset = offsets[static_cast<size_t>(tap)];
        const int64_t z = qz * step[0] + offset[0], y = qy * step[1] + offset[1];
        const bool outside = z < 0 || z >= source[0] || y < 0 || y >= source[1];
        for (int64_t t = 0; t < across; ++t) {
          runs[tap + t] = outside ? nothing : columns[t];
          runs[tap + t].from = (z * source[1] + y) * source[2] + columns[t].from;
        }
      }
      const T* from = x + n * image;
      if (masked) {
        const bool last = col + ceil_div(len, N) * N > width;
        const auto pack = step[2] == 1 ? (len <= N ? pack_run<T, 1, 1> : pack_run<T, 2, 1>)
                                       : (len <= N ? pack_run<T, 1, 2> : pack_run<T, 2, 2>);
        pack(from, channel, runs, tap_count, k0, depth, len, last, out + col, width);
      } else {
        pack_run_by_element(from, channel, runs, tap_count, k0, depth, step[2], len, out + col, width);
      }
      col += len;
    }
  }
  // Rows of pixels are rows of the operand where there is but one tap.
  const T* direct(int64_t k, int64_t j, bool) const {
    const int64_t pixels = gather.grid[2], n = j / pixels, q = j - n * pixels;
    return in_place && q + Cut<T>::wide().columns <= pixels ? x + n * image + k * channel + q : nullptr;
  }
  int64_t row(int64_t) const { return channel; }
};

// ---- one input channel a group --------------------------------------------------------------------------------------

// A copy of a plane that covers every position which a gather reads, zeros outside.
template <class T>
struct Padded {
  Extent lowest, size;
  int64_t row, plane;  // strides
  int64_t slack;       // lets whole vectors start at any element that is read

  explicit Padded(const Gather& g) {
    for (int d = 0; d < 3; ++d) {
      int64_t low = 0, high = 0;
      for (const Extent& offset : g.offsets) {
        low = std::min(low, offset[d]);
        high = std::max(high, offset[d]);
      }
      lowest[d] = low;
      size[d] = (g.grid[d] - 1) * g.step[d] + high - low + 1;
    }
    row = size[2];
    plane = size[1] * row;
    slack = 5 * kLanes<T> * g.step[2];
  }
  int64_t numel() const { return size[0] * plane + slack; }

  void fill(const T* from, const Extent& source, T* to) const {
    for (int64_t z = 0; z < size[0]; ++z)
      for (int64_t y = 0; y < size[1]; ++y) {
        const int64_t sz = z + lowest[0], sy = y + lowest[1];
        Range range = inside(lowest[2], 1, source[2], size[2]);
        if (sz < 0 || sz >= source[0] || sy < 0 || sy >= source[1]) range = {0, 0};
        T* const line = to + z * plane + y * row;
        std::fill_n(line, range.lo, T(0));
        std::copy_n(from + (sz * source[1] + sy) * source[2] + lowest[2] + range.lo, range.hi - range.lo,
                    line + range.lo);
        std::fill(line + range.hi, line + size[2], T(0));
      }
  }
  int64_t at(const Extent& offset) const {
    return (offset[0] - lowest[0]) * plane + (offset[1] - lowest[1]) * row + offset[2] - lowest[2];
  }
};

// Elements 0, step, 2 * step ... as a vector. kStep is the step where it is 1 or 2, else 0.
template <int kStep, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_steps(D d, const T* from, int64_t step) {
  constexpr int64_t N = kLanes<T>;
  if constexpr (kStep == 1) return hn::LoadU(d, from);
  if constexpr (kStep == 2) return hn::ConcatEven(d, hn::LoadU(d, from + N), hn::LoadU(d, from));
  HWY_ALIGN T lanes[N];
  for (int64_t i = 0; i < N; ++i) lanes[i] = from[i * step];
  return hn::Load(d, lanes);
}

// One row of a depthwise convolution: `count` positions, each the sum over `taps` of weight times the element at[tap]
// from its place in the padded planes.
template <class T>
struct DepthwiseRow {
  const T* planes;
  const int64_t* at;
  const T* weights;
  int64_t taps, step, count;
  T bias;
  Epilogue<T> end;
};

template <class T, int kStep, int V>
HWY_INLINE void depthwise_vectors(const DepthwiseRow<T>& r, int64_t i, T* out) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  hn::Vec<decltype(d)> sums[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) sums[v] = hn::Set(d, r.bias);
  for (int64_t t = 0; t < r.taps; ++t) {
    const T* from = r.planes + r.at[t] + i * r.step;
    const auto weight = hn::Set(d, r.weights[t]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      sums[v] = hn::MulAdd(load_steps<kStep>(d, from + v * N * r.step, r.step), weight, sums[v]);
  }
  const Finish<T> finish(r.end);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    sums[v] = finish.clamp(sums[v]);
    if (i + (v + 1) * N <= r.count) {
      hn::StoreU(sums[v], d, out + i + v * N);
    } else if (i + v * N < r.count) {
      store_first(d, sums[v], out + i + v * N, r.count - i - v * N);
    }
  }
}

template <class T, int kStep>
HWY_NOINLINE void depthwise_row(const DepthwiseRow<T>& r, T* out) {
  constexpr int64_t N = kLanes<T>;
  int64_t i = 0;
  for (; i + 2 * N < r.count; i += 4 * N) depthwise_vectors<T, kStep, 4>(r, i, out);
  for (; i < r.count; i += N) depthwise_vectors<T, kStep, 1>(r, i, out);
}

// The windows of 3 x 3 neighbours that a plane is summed over: read where they lie, with zeros around by masks. Rows of
// sums stay in registers while the rows of the source pass.
template <class T>
struct PlaneWindows {
  int64_t step, height, width, out_height, out_width, top, left;  // of the first window; at most 0
  bool suits;

  PlaneWindows(const Gather& g, const Placement<T>& place)
      : step(g.step[2]),
        height(g.source[1]),
        width(g.source[2]),
        out_height(g.grid[1]),
        out_width(g.grid[2]),
        top(0),
        left(0),
        suits(kHasMasks && place.dense && g.offsets.size() == 9 && g.source[0] == 1 && g.grid[0] == 1 &&
              g.step[1] == step && step <= 2) {
    if (!suits) return;
    int64_t bottom = g.offsets[0][1], right = g.offsets[0][2];
    top = bottom, left = right;
    for (const Extent& offset : g.offsets) {
      suits &= offset[0] == 0;
      top = std::min(top, offset[1]);
      left = std::min(left, offset[2]);
      bottom = std::max(bottom, offset[1]);
      right = std::max(right, offset[2]);
    }
    suits &= bottom == top + 2 && right == left + 2 && top <= 0 && top >= -2;
  }
  // The place of a tap in the window.
  int64_t at(const Extent& offset) const { return (offset[1] - top) * 3 + offset[2] - left; }
};

template <class T, int kStep>
HWY_NOINLINE void sum_windows(const PlaneWindows<T>& p, const T* in, const T* weights, T shift, const Epilogue<T>& end,
                              T* out) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr int64_t N = kLanes<T>;
  const Vec start = hn::Set(d, shift);
  const Finish<T> finish(end);
  Vec w[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) w[t] = hn::Set(d, weights[t]);
  const auto up_to = [&](int64_t n)
                         HWY_ATTR { return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(n, 0, N))); };
  for (int64_t x = 0; x < p.out_width; x += N) {
    const int64_t from = x * kStep + p.left;
    const auto mask_at = [&](int64_t at) HWY_ATTR { return hn::AndNot(up_to(-at), up_to(p.width - at)); };
    const auto columns = up_to(p.out_width - x);
    const bool whole = x + N <= p.out_width;
    const auto store = [&](Vec sum, int64_t y) HWY_ATTR {
      T* const to = out + y * p.out_width + x;
      const Vec v = finish.clamp(sum);
      if (whole) {
        hn::StoreU(v, d, to);
      } else {
        hn::BlendedStore(v, columns, d, to);
      }
    };
    if constexpr (kStep == 1) {
      const auto m0 = mask_at(from), m1 = mask_at(from + 1), m2 = mask_at(from + 2);
      Vec a = start, b = start;  // the rows of sums that end with this row of the source, and with the next
      for (int64_t r = 0, y = -2 - p.top; y < p.out_height; ++r, ++y) {
        Vec c = start;
        if (r < p.height) {
          const T* const row = in + r * p.width + from;
          const Vec v0 = hn::MaskedLoad(m0, d, row), v1 = hn::MaskedLoad(m1, d, row + 1),
                    v2 = hn::MaskedLoad(m2, d, row + 2);
          a = hn::MulAdd(v2, w[8], hn::MulAdd(v1, w[7], hn::MulAdd(v0, w[6], a)));
          b = hn::MulAdd(v2, w[5], hn::MulAdd(v1, w[4], hn::MulAdd(v0, w[3], b)));
          c = hn::MulAdd(v2, w[2], hn::MulAdd(v1, w[1], hn::MulAdd(v0, w[0], c)));
        }
        if (y >= 0) store(a, y);
        a = b;
        b = c;
      }
    } else {
      const auto m0 = mask_at(from), m1 = mask_at(from + N), m2 = mask_at(from + 2), m3 = mask_at(from + 2 + N);
      for (int64_t y = 0; y < p.out_height; ++y) {
        Vec sum = start;
#pragma GCC unroll 3
        for (int k = 0; k < 3; ++k) {
          const int64_t r = 2 * y + p.top + k;
          if (r < 0 || r >= p.height) continue;
          const T* const row = in + r * p.width + from;
          const Vec lo = hn::MaskedLoad(m0, d, row), hi = hn::MaskedLoad(m1, d, row + N);
          const Vec last = hn::ConcatEven(d, hn::MaskedLoad(m3, d, row + 2 + N), hn::MaskedLoad(m2, d, row + 2));
          sum = hn::MulAdd(hn::ConcatEven(d, hi, lo), w[3 * k], sum);
          sum = hn::MulAdd(hn::ConcatOdd(d, hi, lo), w[3 * k + 1], sum);
          sum = hn::MulAdd(last, w[3 * k + 2], sum);
        }
        store(sum, y);
      }
    }
  }
}

// Output channel c of image n sums over `per` source channels, from c * per / mult on, each with its own taps.
template <class T>
void depthwise(const Arguments<T>& a, const Gather& g, int64_t channels, int64_t per, int64_t mult,
               const Placement<T>& place) {
  if (volume(g.grid) == 0) return;
  if (const PlaneWindows<T> windows(g, place); windows.suits && per == 1) {
    const int64_t source = volume(g.source), pixels = volume(g.grid), kernel = volume(a.conv.kernel);
    parallel_for(0, a.conv.batch * channels, std::max<int64_t>(1, (1 << 14) / pixels), [&](int64_t lo, int64_t hi) {
      for (int64_t item = lo; item < hi; ++item) {
        const int64_t n = item / channels, c = item % channels;
        T weights[9];
        for (size_t t = 0; t < 9; ++t)
          weights[windows.at(g.offsets[t])] = a.w[c * kernel + g.taps[t]] * a.end.scale_of(c);
        const auto sum = windows.step == 1 ? sum_windows<T, 1> : sum_windows<T, 2>;
        sum(windows, a.x + (n * (channels / mult) + c / mult) * source, weights, a.end.shift_of(c), a.end,
            place.data_ + n * place.image + c * place.channel);
      }
    });
    return;
  }
  const Padded<T> padded(g);
  const auto taps = static_cast<int64_t>(g.taps.size());
  const int64_t kernel = volume(a.conv.kernel), source = volume(g.source), source_channels = channels * per / mult;
  const int64_t width = g.grid[2], work = volume(g.grid) * std::max<int64_t>(1, taps * per);
  std::vector<int64_t> at;
  for (int64_t s = 0; s < per; ++s)
    for (const Extent& offset : g.offsets) at.push_back(s * padded.numel() + padded.at(offset));
  const auto run_row = g.step[2] == 1   ? depthwise_row<T, 1>
                       : g.step[2] == 2 ? depthwise_row<T, 2>
                                        : depthwise_row<T, 0>;
  parallel_for(0, a.conv.batch * channels, std::max<int64_t>(1, (1 << 16) / work), [&](int64_t lo, int64_t hi) {
    T* const planes = scratch<T>(Scratch::gather, per * padded.numel());
    T* const weights = scratch<T>(Scratch::operand, per * taps);
    T* const sums = scratch<T>(Scratch::c, width);
    for (int64_t item = lo; item < hi; ++item) {
      const int64_t n = item / channels, c = item % channels, first = c * per / mult;
      for (int64_t s = 0; s < per; ++s) {
        padded.fill(a.x + (n * source_channels + first + s) * source, g.source, planes + s * padded.numel());
        const int64_t owner = per == 1 ? c : first + s;  // the output channel of the convolution: the weight's row
        for (int64_t t = 0; t < taps; ++t)
          weights[s * taps + t] = a.w[owner * kernel + g.taps[static_cast<size_t>(t)]] * a.end.scale_of(c);
      }
      DepthwiseRow<T> row{planes, at.data(), weights, per * taps, g.step[2], width, a.end.shift_of(c), a.end};
      T* const out = place.data_ + n * place.image + c * place.channel;
      for (int64_t z = 0; z < g.grid[0]; ++z)
        for (int64_t y = 0; y < g.grid[1]; ++y) {
          row.planes = planes + z * g.step[0] * padded.plane + y * g.step[1] * padded.row;
          T* const to = out + place.offset((z * g.grid[1] + y) * width);
          run_row(row, place.stride[2] == 1 ? to : sums);
          if (place.stride[2] == 1) continue;
          for (int64_t x = 0; x < width; ++x) to[x * place.stride[2]] = sums[x];
        }
    }
  });
}

// sum of a[i] * b[i * step], lane by lane, added to `sum`.
template <int kStep, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> add_dot(D d, const T* a, const T* b, int64_t step, int64_t count, hn::Vec<D> sum) {
  constexpr int64_t N = kLanes<T>;
  int64_t i = 0;
  for (; i + N <= count; i += N) sum = hn::MulAdd(hn::LoadU(d, a + i), load_steps<kStep>(d, b + i * step, step), sum);
  if (i < count) {
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
    const auto steps = hn::IfThenElseZero(rest, load_steps<kStep>(d, b + i * step, step));
    sum = hn::MulAdd(load_first(d, a + i, count - i), steps, sum);
  }
  return sum;
}

template <class T, int kStep>
HWY_NOINLINE void depthwise_weight(const Arguments<T>& a, const Gather& g, int64_t lo, int64_t hi) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  const Convolution& conv = a.conv;
  const Padded<T> padded(g);
  const auto taps = static_cast<int64_t>(g.taps.size());
  const int64_t mult = conv.out_channels / conv.in_channels, pixels = volume(g.grid), source = volume(g.source);
  T* const plane = scratch<T>(Scratch::gather, padded.numel());
  T* const sums = scratch<T>(Scratch::c, taps * N);
  for (int64_t c = lo; c < hi; ++c) {
    std::fill_n(sums, taps * N, T(0));
    for (int64_t n = 0; n < conv.batch; ++n) {
      padded.fill(a.x + (n * conv.in_channels + c / mult) * source, g.source, plane);
      const T* grad = a.w + (n * conv.out_channels + c) * pixels;
      for (int64_t z = 0; z < g.grid[0]; ++z)
        for (int64_t y = 0; y < g.grid[1]; ++y, grad += g.grid[2])
          for (int64_t t = 0; t < taps; ++t) {
            const T* from = plane + z * g.step[0] * padded.plane + y * g.step[1] * padded.row +
                            padded.at(g.offsets[static_cast<size_t>(t)]);
            hn::StoreU(add_dot<kStep>(d, grad, from, g.step[2], g.grid[2], hn::LoadU(d, sums + t * N)), d,
                       sums + t * N);
          }
    }
    for (int64_t t = 0; t < taps; ++t) a.out[c * taps + t] = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums + t * N)));
  }
}

// ---- the gradient of the weight -------------------------------------------------------------------------------------

// c (R, V vectors) += sum over pixels of a's element for each row times b's row of the pixel. Row r's elements start at
// offsets[r] and run through `planes` planes of `rows` rows of `inner` pixels.
template <class T>
struct WeightTile {
  const T* a;
  const int64_t* offsets;
  int64_t planes, plane, rows, row, inner, step;
  const T* b;
  T* c;
  int64_t c_row;
};

template <class T, int R, int V>
HWY_NOINLINE void weight_kernel(const WeightTile<T>& t) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr int64_t N = kLanes<T>;
  Vec sum[R][V];
  int64_t offset[R];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    offset[i] = t.offsets[i];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = hn::LoadU(d, t.c + i * t.c_row + v * N);
  }
  const T* HWY_RESTRICT b = t.b;
  const int64_t step = t.step;
  for (int64_t z = 0; z < t.planes; ++z)
    for (int64_t y = 0; y < t.rows; ++y) {
      const T* HWY_RESTRICT a = t.a + z * t.plane + y * t.row;
      for (int64_t k = t.inner; k > 0; --k) {
        Vec bv[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) bv[v] = hn::LoadU(d, b + v * N);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
          const Vec av = hn::Set(d, a[offset[i]]);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
        }
        a += step;
        b += V * N;
      }
    }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) hn::StoreU(sum[i][v], d, t.c + i * t.c_row + v * N);
  }
}

template <class T>
HWY_INLINE void run_weight_tile(const WeightTile<T>& t, int rows, int vectors) {
  using Kernel = void (*)(const WeightTile<T>&);
  static constexpr Kernel kernels[kMaxRows / 2 + 1][2] = {
    {weight_kernel<T, 1, 1>, weight_kernel<T, 1, 2>},
    {weight_kernel<T, 2, 1>, weight_kernel<T, 2, 2>},
    {weight_kernel<T, 4, 1>, weight_kernel<T, 4, 2>},
    {weight_kernel<T, 6, 1>, weight_kernel<T, 6, 2>},
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
    {weight_kernel<T, 8, 1>, weight_kernel<T, 8, 2>},
    {weight_kernel<T, 10, 1>, weight_kernel<T, 10, 2>},
    {weight_kernel<T, 12, 1>, weight_kernel<T, 12, 2>},
    {weight_kernel<T, 14, 1>, weight_kernel<T, 14, 2>},
#endif
  };
  kernels[rows / 2][vectors - 1](t);
}

// Tasks are blocks of input channels and slices of the batch. Each sums its images in order into a piece of memory of
// its own, laid out (input channel, tap) by output channel; the slices are summed at the end. The division depends on
// the sizes only.
template <class T>
void weight_gradient(const Arguments<T>& a, const Gather& g) {
  constexpr int64_t N = kLanes<T>, P = kPanel<T>;
  const Convolution& conv = a.conv;
  const Padded<T> padded(g);
  const int64_t taps = volume(conv.kernel), pixels = volume(g.grid), source = volume(g.source);
  const int64_t in = conv.in_channels / conv.groups, out = conv.out_channels / conv.groups;
  const int64_t blocks = ceil_div(in, std::max<int64_t>(1, 6 * kMaxRows / taps)), block = ceil_div(in, blocks);
  const int64_t panels = ceil_div(out, P), capacity = (block * taps + kMaxRows) * panels * P;
  const int64_t wave = std::clamp<int64_t>((4 << 20) / (conv.groups * panels * P * pixels), 1, conv.batch);
  const int64_t slices = std::clamp<int64_t>(16 / (conv.groups * blocks), 1, wave);
  const int64_t tasks = slices * conv.groups * blocks;

  T* const sums = scratch<T>(Scratch::c, tasks * capacity);
  std::fill_n(sums, tasks * capacity, T(0));
  T* const grads = scratch<T>(Scratch::operand, wave * conv.groups * panels * pixels * P);
  const auto width_of = [&](int64_t panel) { return out - panel * P > N ? P : N; };

  for (int64_t wave0 = 0; wave0 < conv.batch; wave0 += wave) {
    const int64_t images = std::min(wave, conv.batch - wave0);
    parallel_for(0, images * conv.groups * panels, std::max<int64_t>(1, (1 << 15) / (pixels * P)),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo; i < hi; ++i) {
                     const int64_t panel = i % panels, group = i / panels % conv.groups, n = i / panels / conv.groups;
                     const T* from = a.w + ((wave0 + n) * conv.out_channels + group * out + panel * P) * pixels;
                     pack_panel<T, T>(from, pixels, 1, std::min(P, out - panel * P), width_of(panel), pixels,
                                      grads + i * pixels * P);
                   }
                 });
    parallel_for(0, tasks, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t task = lo; task < hi; ++task) {
        const int64_t c0 = task % blocks * block, channels = std::min(block, in - c0);
        const int64_t group = task / blocks % conv.groups, slice = task / blocks / conv.groups;
        if (channels <= 0) continue;
        const int64_t rows = channels * taps, R = panel_rows(rows);
        T* const planes = scratch<T>(Scratch::gather, channels * padded.numel());
        for (int64_t n = images * slice / slices; n < images * (slice + 1) / slices; ++n) {
          for (int64_t c = 0; c < channels; ++c)
            padded.fill(a.x + ((wave0 + n) * conv.in_channels + group * in + c0 + c) * source, g.source,
                        planes + c * padded.numel());
          for (int64_t r0 = 0; r0 < rows; r0 += R) {
            int64_t offsets[kMaxRows];
            for (int64_t r = 0; r < R; ++r) {
              const int64_t row = std::min(r0 + r, rows - 1);
              offsets[r] = row / taps * padded.numel() + padded.at(g.offsets[static_cast<size_t>(row % taps)]);
            }
            for (int64_t panel = 0; panel < panels; ++panel) {
              const WeightTile<T> tile{planes,
                                       offsets,
                                       g.grid[0],
                                       g.step[0] * padded.plane,
                                       g.grid[1],
                                       g.step[1] * padded.row,
                                       g.grid[2],
                                       g.step[2],
                                       grads + ((n * conv.groups + group) * panels + panel) * pixels * P,
                                       sums + task * capacity + r0 * panels * P + panel * P,
                                       panels * P};
              run_weight_tile(tile, kernel_rows(std::min(R, rows - r0)), width_of(panel) > N ? 2 : 1);
            }
          }
        }
      }
    });
  }
  constexpr int64_t kRows = 32;  // at a time, so that what is summed stays in L1
  parallel_for(0, conv.groups * blocks * panels, 1, [&](int64_t lo, int64_t hi) {
    HWY_ALIGN T total[kRows * P];
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t panel = i % panels, c0 = i / panels % blocks * block, group = i / panels / blocks;
      const int64_t rows = std::min(block, in - c0) * taps, outs = std::min(P, out - panel * P);
      const T* const first = sums + i / panels * capacity + panel * P;
      T* const to = a.out + ((group * out + panel * P) * in + c0) * taps;
      for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
        const int64_t n = std::min(kRows, rows - r0);
        for (int64_t r = 0; r < n; ++r)
          for (int64_t o = 0; o < outs; ++o) {
            const T* term = first + (r0 + r) * panels * P + o;
            T sum = 0;
            for (int64_t slice = 0; slice < slices; ++slice) sum += term[slice * conv.groups * blocks * capacity];
            total[r * P + o] = sum;
          }
        transpose(total, P, n, outs, to + r0, in * taps);
      }
    }
  });
}

// ---- entry points ---------------------------------------------------------------------------------------------------

template <class T>
Placement<T> placement(T* out, int64_t channels, const Extent& size, const Extent& origin, const Extent& stride,
                       const Extent& grid) {
  const bool dense = stride == Extent{1, 1, 1} && volume(grid) == volume(size);
  return {out, channels * volume(size), volume(size), size, origin, stride, grid, volume(grid), dense};
}

template <class Body>
void for_groups(int64_t groups, const Body& body) {
  if (groups == 1) return body(int64_t{0});
  parallel_for(0, groups, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t g = lo; g < hi; ++g) body(g);
  });
}

bool is_depthwise(const Convolution& c) {
  return c.groups > 1 && c.in_channels == c.groups && c.out_channels <= 4 * c.groups;
}

// The result where the source has no elements: there is nothing but padding.
template <class T>
void only_bias(const Arguments<T>& a, int64_t channels, int64_t pixels) {
  T* out = a.out;
  for (int64_t i = 0; i < a.conv.batch * channels; ++i)
    out = std::fill_n(out, pixels, std::min(std::max(a.end.shift_of(i % channels), a.end.low), a.end.high));
}

template <class T>
void forward(const Arguments<T>& a) {
  const Convolution& c = a.conv;
  if (c.batch * c.in_channels * volume(c.input) == 0) return only_bias(a, c.out_channels, volume(c.output));
  const Gather gather = forward_gather(c);
  const Placement<T> place = placement(a.out, c.out_channels, c.output, {0, 0, 0}, {1, 1, 1}, c.output);
  if (is_depthwise(c)) {
    depthwise(a, gather, c.out_channels, 1, c.out_channels / c.groups, place);
    return;
  }
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, taps = volume(c.kernel),
                depth = in * taps;
  for_groups(c.groups, [&](int64_t g) {
    Placement<T> result = place;
    result.data_ += g * out * place.channel;
    const int64_t source = volume(c.input);
    const Patches<T> patches{a.x + g * in * source, c.in_channels * source, source, gather};
    const Strided<const T> weights{a.w + g * out * depth, depth, 1};
    multiply<T, T>(out, c.batch * place.pixels, depth, weights, patches, result, T(1), T(0), a.end.from(g * out));
  });
}

// The gradient of few input channels: what every output pixel gives to each channel and tap, as a product with images
// where they lie, and then sums of that.
template <class T>
void backward_data_by_tap(const Arguments<T>& a) {
  const Convolution& c = a.conv;
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, taps = volume(c.kernel);
  const int64_t source = volume(c.output), rows = in * taps;
  std::vector<Gather> gathers;
  std::vector<Placement<T>> places;
  for_each_phase(c, [&](const Extent& phase) {
    gathers.push_back(backward_gather(c, phase));
    places.push_back(placement(a.out, c.in_channels, c.input, phase, c.stride, gathers.back().grid));
  });
  parallel_for(0, c.batch * c.groups, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t item = lo; item < hi; ++item) {
      const int64_t g = item % c.groups, n = item / c.groups;
      T* const given = scratch<T>(Scratch::c, rows * source);
      const StridedColumns<T, T> image{{a.x + (n * c.out_channels + g * out) * source, source, 1}, true};
      multiply<T, T>(rows, source, out, {a.w + g * out * rows, 1, rows}, image, StridedResult<T>{{given, source, 1}},
                     T(1), T(0));
      parallel_for(0, in, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          for (size_t phase = 0; phase < gathers.size(); ++phase) {
            const Gather& gather = gathers[phase];
            const Placement<T>& place = places[phase];
            const int64_t width = gather.grid[2];
            T* const line = scratch<T>(Scratch::gather, width);
            for (int64_t q = 0; q < place.pixels; q += width) {
              std::fill_n(line, width, a.end.shift_of(g * in + i));
              for (size_t t = 0; t < gather.taps.size(); ++t) {
                const Extent& offset = gather.offsets[t];
                const int64_t z = q / width / gather.grid[1] + offset[0], y = q / width % gather.grid[1] + offset[1];
                if (z < 0 || z >= c.output[0] || y < 0 || y >= c.output[1]) continue;
                const auto [begin, end] = inside(offset[2], 1, c.output[2], width);
                const T* const from =
                    given + (i * taps + gather.taps[t]) * source + (z * c.output[1] + y) * c.output[2] + offset[2];
                for (int64_t x = begin; x < end; ++x) line[x] += from[x];
              }
              T* const to = place.data() + n * place.image + (g * in + i) * place.channel + place.offset(q);
              for (int64_t x = 0; x < width; ++x) to[x * place.stride[2]] = line[x];
            }
          }
      });
    }
  });
}

template <class T>
void backward_data(const Arguments<T>& a) {
  const Convolution& c = a.conv;
  if (c.batch * c.out_channels * volume(c.output) == 0) return only_bias(a, c.in_channels, volume(c.input));
  const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups, kernel = volume(c.kernel);
  if (in <= 6 && 4 * in <= out && kernel > 1) return backward_data_by_tap(a);
  for_each_phase(c, [&](const Extent& phase) {
    const Gather gather = backward_gather(c, phase);
    const Placement<T> place = placement(a.out, c.in_channels, c.input, phase, c.stride, gather.grid);
    if (is_depthwise(c)) {
      depthwise(a, gather, c.in_channels, out, 1, place);
      return;
    }
    const auto taps = static_cast<int64_t>(gather.taps.size());
    for_groups(c.groups, [&](int64_t g) {
      T* const weights = scratch<T>(Scratch::operand, in * out * taps);  // (input channel, output channel, tap)
      constexpr int64_t kBlock = 16;  // input channels at a time, so that whole cache lines are read
      parallel_for(0, ceil_div(in, kBlock), std::max<int64_t>(1, (1 << 10) / (out * taps + 1)),
                   [&](int64_t lo, int64_t hi) {
                     for (int64_t block = lo; block < hi; ++block)
                       for (int64_t o = 0; o < out; ++o)
                         for (int64_t i = block * kBlock; i < std::min(in, (block + 1) * kBlock); ++i)
                           for (int64_t t = 0; t < taps; ++t)
                             weights[(i * out + o) * taps + t] =
                                 a.w[((g * out + o) * in + i) * kernel + gather.taps[static_cast<size_t>(t)]];
                   });
      Placement<T> result = place;
      result.data_ += g * in * place.channel;
      const int64_t source = volume(c.output);
      const Patches<T> patches{a.x + g * out * source, c.out_channels * source, source, gather};
      multiply<T, T>(in, c.batch * place.pixels, out * taps, {weights, out * taps, 1}, patches, result, T(1), T(0),
                     a.end.from(g * in));
    });
  });
}

template <class T>
void backward_weight(const Arguments<T>& a) {
  const Convolution& c = a.conv;
  const Gather gather = forward_gather(c);
  if (c.batch == 0 || volume(c.output) == 0) {
    std::fill_n(a.out, c.out_channels * (c.in_channels / c.groups) * volume(c.kernel), T(0));
  } else if (is_depthwise(c)) {
    const int64_t step = gather.step[2];
    const auto run = step == 1 ? depthwise_weight<T, 1> : step == 2 ? depthwise_weight<T, 2> : depthwise_weight<T, 0>;
    parallel_for(0, c.out_channels, 1, [&](int64_t lo, int64_t hi) { run(a, gather, lo, hi); });
  } else if (c.in_channels > 0 && c.out_channels > 0) {
    weight_gradient(a, gather);
  }
}

void forward_float(const Arguments<float>& a) { forward(a); }
void forward_double(const Arguments<double>& a) { forward(a); }
void backward_data_float(const Arguments<float>& a) { backward_data(a); }
void backward_data_double(const Arguments<double>& a) { backward_data(a); }
void backward_weight_float(const Arguments<float>& a) { backward_weight(a); }
void backward_weight_double(const Arguments<double>& a) { backward_weight(a); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(backward_data_float);
HWY_EXPORT(backward_data_double);
HWY_EXPORT(backward_weight_float);
HWY_EXPORT(backward_weight_double);

int64_t input_numel(const Convolution& c) { return c.batch * c.in_channels * volume(c.input); }
int64_t output_numel(const Convolution& c) { return c.batch * c.out_channels * volume(c.output); }
int64_t weight_numel(const Convolution& c) { return c.out_channels * (c.in_channels / c.groups) * volume(c.kernel); }

// A float copy of half values, or of nothing.
template <class T>
std::unique_ptr<float[]> widened(const T* values, int64_t n) {
  if (!values) return nullptr;
  auto result = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(n));
  std::copy(values, values + n, result.get());
  return result;
}

// Calls run(x, w, bias, out) with float copies of half operands.
template <class T, class Run>
void in_float(const T* x, int64_t x_numel, const T* w, int64_t w_numel, const T* bias, int64_t bias_numel, T* out,
              int64_t out_numel, const Run& run) {
  const auto wide_x = widened(x, x_numel), wide_w = widened(w, w_numel), wide_bias = widened(bias, bias_numel);
  const auto result = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(out_numel));
  run(wide_x.get(), wide_w.get(), wide_bias.get(), result.get());
  std::copy(result.get(), result.get() + out_numel, out);
}
}  // namespace

template <class T>
void conv_forward(const Convolution& c, const T* x, const T* weight, const T* bias, T* y, Weight memory) {
  if constexpr (is_half_type<T>) {
    in_float(x, input_numel(c), weight, weight_numel(c), bias, c.out_channels, y, output_numel(c),
             [&](auto... a) { conv_forward<float>(c, a...); });
  } else if constexpr (std::is_same_v<T, float>) {
    conv_forward(c, x, weight, Epilogue<float>{bias}, y, memory);
  } else {
    HWY_DYNAMIC_DISPATCH(forward_double)({c, x, weight, {bias}, y});
  }
}

void conv_forward(const Convolution& c, const float* x, const float* weight, const Epilogue<float>& end, float* y,
                  Weight memory) {
  if (winograd_suits(c)) return winograd_forward(c, x, weight, end, y, memory);
  if (indirect_forward_suits(c) && end.only_shifts()) return indirect_forward(c, x, weight, end.shift, y);
  HWY_DYNAMIC_DISPATCH(forward_float)({c, x, weight, end, y});
}

template <class T>
void conv_backward_data(const Convolution& c, const T* grad_y, const T* weight, T* grad_x, const T* bias) {
  if constexpr (is_half_type<T>) {
    in_float(grad_y, output_numel(c), weight, weight_numel(c), bias, c.in_channels, grad_x, input_numel(c),
             [&](const float* g, const float* w, const float* b, float* out) {
               conv_backward_data<float>(c, g, w, out, b);
             });
  } else if constexpr (std::is_same_v<T, float>) {
    if (winograd_suits(c)) return winograd_backward_data(c, grad_y, weight, grad_x, bias);
    if (indirect_suits(c)) return indirect_backward_data(c, grad_y, weight, grad_x, bias);
    HWY_DYNAMIC_DISPATCH(backward_data_float)({c, grad_y, weight, {bias}, grad_x});
  } else {
    HWY_DYNAMIC_DISPATCH(backward_data_double)({c, grad_y, weight, {bias}, grad_x});
  }
}

template <class T>
void conv_backward_weight(const Convolution& c, const T* x, const T* grad_y, T* grad_weight) {
  if constexpr (is_half_type<T>) {
    in_float<T>(x, input_numel(c), grad_y, output_numel(c), nullptr, 0, grad_weight, weight_numel(c),
                [&](const float* x32, const float* g, const float*, float* out) {
                  conv_backward_weight<float>(c, x32, g, out);
                });
  } else if constexpr (std::is_same_v<T, float>) {
    if (winograd_suits(c)) return winograd_backward_weight(c, x, grad_y, grad_weight);
    if (indirect_suits(c)) return indirect_backward_weight(c, x, grad_y, grad_weight);
    HWY_DYNAMIC_DISPATCH(backward_weight_float)({c, x, grad_y, {}, grad_weight});
  } else {
    HWY_DYNAMIC_DISPATCH(backward_weight_double)({c, x, grad_y, {}, grad_weight});
  }
}

#define RUSH_INSTANTIATE(T)                                                                    \
  template void conv_forward<T>(const Convolution&, const T*, const T*, const T*, T*, Weight); \
  template void conv_backward_data<T>(const Convolution&, const T*, const T*, T*, const T*);   \
  template void conv_backward_weight<T>(const Convolution&, const T*, const T*, T*);
RUSH_INSTANTIATE(float)
RUSH_INSTANTIATE(double)
RUSH_INSTANTIATE(BFloat16)
RUSH_INSTANTIATE(Half)
#undef RUSH_INSTANTIATE

}  // namespace rush::cpu
#endif
