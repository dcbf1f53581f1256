// Winograd's F(4x4, 3x3): a tile of 4 x 4 outputs comes from 6 x 6 inputs by 36 multiplications for each pair of
// channels, where the plain sum needs 144. F(2x2, 3x3), 16 where the plain sum needs 36, is for images of few pixels.
//
//   y = A' [(G w G') * (B' d B)] A        for a window d of the input, summed over the input channels
//   dw = G' [(A dy A') * (B' d B)] G      summed over the tiles
//
// (Lavin and Gray 2016, arXiv:1509.09308). The bracket is a matrix product for each of the 36 (16) positions: of
// tiles by input channels by output channels, on the micro-kernel of gemm-inl.h. Transforms go over vectors of
// channels; images are transposed to that layout and back row by row as they are read and written. The polynomials are
// taken at 0,
// +-2/3, +-3/2 and infinity, which keeps all coefficients near 1: the error is 1.5 to 2 times that of the plain sum,
// with the usual 0, +-1, +-2 it is 8 times. The backward product for the data is the forward one with the weights
// turned round.
//
// What is transformed first and shared depends on which is smaller: the weights, and then each task transforms some
// tiles, or the tiles, and then each task transforms the weights of a panel of output channels.
//
// Measured on two cores of a Zen 4 server (FMA peak 230 GF/s), counting the plain sum's operations: 3x3, 64 to 64
// channels, 8 x 56 x 56: 615 GF/s, with both gradients 540 (torch 2.15 with oneDNN in the same run: 197 and 146); 512
// channels, 4 x 7 x 7: 306 / 316 / 242; 512 channels, 16 x 2 x 2: 244 / 222 / 164.
#include "kernels/cpu/winograd.h"

#include <algorithm>

#include "kernels/cpu/integers.h"
#include "kernels/cpu/scratch.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/winograd.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/epilogue-inl.h"
#include "kernels/cpu/gemm-inl.h"

#ifndef RUSH_WINOGRAD_CPP
#define RUSH_WINOGRAD_CPP
namespace rush::cpu {
namespace {

constexpr int64_t kSegment = 28;  // tiles that are transformed and multiplied together

// Images of contiguous planes, and where the first tile's square or window lies in them.
struct Planes {
  const float* data;
  int64_t channels, height, width, top, left;
};

// The tiles of all images, in order, cut into segments: up to kSegment neighbours in a row.
struct Tiles {
  int64_t side;                                 // of the square of outputs that a tile computes: 4 or 2
  int64_t images, rows, cols, per_row, length;  // per_row segments of `length` tiles; the last may be shorter

  Tiles(int64_t side, int64_t images, int64_t height, int64_t width)
      : side(side), images(images), rows(ceil_div(height, side)), cols(ceil_div(width, side)) {
    length = (cols - 1) / ((cols - 1) / kSegment + 1) + 1;
    per_row = (cols - 1) / length + 1;
  }
  int64_t count() const { return images * rows * cols; }
  int64_t segments() const { return images * rows * per_row; }
  int64_t first(int64_t segment) const { return segment / per_row * cols + segment % per_row * length; }
};
struct Segment {
  int64_t image, y, x, count;  // y and x of the first tile's outputs
  Segment(const Tiles& tiles, int64_t i)
      : image(i / tiles.per_row / tiles.rows),
        y(i / tiles.per_row % tiles.rows * tiles.side),
        x(i % tiles.per_row * tiles.length * tiles.side),
        count(std::min(tiles.length, tiles.cols - i % tiles.per_row * tiles.length)) {}
};

// A forward product, of a convolution or of its gradient.
struct Product {
  int64_t side;
  const float *x, *weight;
  Epilogue<float> end;
  float* y;
  int64_t images, in, out;
  int64_t height, width, out_height, out_width, top, left;
  bool turned;  // weights are (in, out, 3, 3) and to be turned round
  Weight memory = {};
  const float* lines = nullptr;  // the weights by panels of output channels, where they are kept so
};

struct WeightGradient {
  int64_t side;
  const float *x, *grad_y;
  float* grad_weight;
  int64_t images, in, out, height, width, out_height, out_width, top, left;
};

}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using Vec = hn::Vec<D>;
constexpr int64_t N = kLanes<float>;
constexpr int64_t kPad = N;  // keeps rows and planes off a power of two, whose multiples share few cache lines

constexpr int64_t round_up(int64_t n) { return ceil_div(n, N) * N; }

// What a transform has computed for each position: rows (tiles or channels) of `row` floats.
struct Transformed {
  float* data;
  int64_t row, plane;
};
Transformed transformed(Scratch purpose, int64_t positions, int64_t rows, int64_t length) {
  const int64_t row = length <= kPanel<float> ? length : length + kPad, plane = rows * row + kPad;
  return {scratch<float>(purpose, positions * plane), row, plane};
}

// ---- the one-dimensional transforms ---------------------------------------------------------------------------------

// The points are +-a and +-b with ab = 1, 0 and infinity.
constexpr float kA = 2.f / 3, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB, kA3 = kA2 * kA, kB3 = kB2 * kB;
constexpr float kScaleA = 1 / (2 * kA2 * (kA2 - kB2)), kScaleB = 1 / (2 * kB2 * (kB2 - kA2));

HWY_INLINE Vec times(float factor, Vec x) { return hn::Mul(hn::Set(D(), factor), x); }
HWY_INLINE Vec plus(Vec sum, float factor, Vec x) { return hn::MulAdd(hn::Set(D(), factor), x, sum); }

// B': a window of the input.
HWY_INLINE void transform(const Vec (&in)[6], Vec (&out)[6]) {
  const Vec a_even = plus(in[4], -kB2, in[2]), a_odd = plus(times(kA, in[3]), -kB, in[1]);
  const Vec b_even = plus(in[4], -kA2, in[2]), b_odd = plus(times(kB, in[3]), -kA, in[1]);
  out[0] = plus(hn::Add(in[0], in[4]), -(kA2 + kB2), in[2]);
  out[1] = hn::Add(a_even, a_odd);
  out[2] = hn::Sub(a_even, a_odd);
  out[3] = hn::Add(b_even, b_odd);
  out[4] = hn::Sub(b_even, b_odd);
  out[5] = plus(hn::Add(in[1], in[5]), -(kA2 + kB2), in[3]);
}
// A: the gradient of a square of outputs.
HWY_INLINE void transform(const Vec (&in)[4], Vec (&out)[6]) {
  const Vec a_even = plus(in[0], kA2, in[2]), a_odd = plus(times(kA, in[1]), kA3, in[3]);
  const Vec b_even = plus(in[0], kB2, in[2]), b_odd = plus(times(kB, in[1]), kB3, in[3]);
  out[0] = in[0];
  out[1] = hn::Add(a_even, a_odd);
  out[2] = hn::Sub(a_even, a_odd);
  out[3] = hn::Add(b_even, b_odd);
  out[4] = hn::Sub(b_even, b_odd);
  out[5] = in[3];
}
// G: weights.
HWY_INLINE void transform(const Vec (&in)[3], Vec (&out)[6]) {
  const Vec a_even = times(kScaleA, plus(in[0], kA2, in[2])), a_odd = times(kScaleA * kA, in[1]);
  const Vec b_even = times(kScaleB, plus(in[0], kB2, in[2])), b_odd = times(kScaleB * kB, in[1]);
  out[0] = in[0];
  out[1] = hn::Add(a_even, a_odd);
  out[2] = hn::Sub(a_even, a_odd);
  out[3] = hn::Add(b_even, b_odd);
  out[4] = hn::Sub(b_even, b_odd);
  out[5] = in[2];
}
// A': a square of outputs.
HWY_INLINE void transform(const Vec (&in)[6], Vec (&out)[4]) {
  const Vec a_sum = hn::Add(in[1], in[2]), a_difference = hn::Sub(in[1], in[2]);
  const Vec b_sum = hn::Add(in[3], in[4]), b_difference = hn::Sub(in[3], in[4]);
  out[0] = hn::Add(in[0], hn::Add(a_sum, b_sum));
  out[1] = plus(times(kA, a_difference), kB, b_difference);
  out[2] = plus(times(kA2, a_sum), kB2, b_sum);
  out[3] = plus(plus(in[5], kA3, a_difference), kB3, b_difference);
}
// G': the gradient of the weights.
HWY_INLINE void transform(const Vec (&in)[6], Vec (&out)[3]) {
  const Vec a_sum = hn::Add(in[1], in[2]), a_difference = hn::Sub(in[1], in[2]);
  const Vec b_sum = hn::Add(in[3], in[4]), b_difference = hn::Sub(in[3], in[4]);
  out[0] = plus(plus(in[0], kScaleA, a_sum), kScaleB, b_sum);
  out[1] = plus(times(kScaleA * kA, a_difference), kScaleB * kB, b_difference);
  out[2] = plus(plus(in[5], kScaleA * kA2, a_sum), kScaleB * kB2, b_sum);
}

// The same five for two outputs, at 0, 1, -1 and infinity.
HWY_INLINE void transform(const Vec (&in)[4], Vec (&out)[4]) {
  out[0] = hn::Sub(in[0], in[2]);
  out[1] = hn::Add(in[2], in[1]);
  out[2] = hn::Sub(in[2], in[1]);
  out[3] = hn::Sub(in[3], in[1]);
}
HWY_INLINE void transform(const Vec (&in)[2], Vec (&out)[4]) {
  out[0] = in[0];
  out[1] = hn::Add(in[0], in[1]);
  out[2] = hn::Sub(in[0], in[1]);
  out[3] = in[1];
}
HWY_INLINE void transform(const Vec (&in)[3], Vec (&out)[4]) {
  const Vec even = times(0.5f, hn::Add(in[0], in[2])), odd = times(0.5f, in[1]);
  out[0] = in[0];
  out[1] = hn::Add(even, odd);
  out[2] = hn::Sub(even, odd);
  out[3] = in[2];
}
HWY_INLINE void transform(const Vec (&in)[4], Vec (&out)[2]) {
  out[0] = hn::Add(in[0], hn::Add(in[1], in[2]));
  out[1] = hn::Add(hn::Sub(in[1], in[2]), in[3]);
}
HWY_INLINE void transform(const Vec (&in)[4], Vec (&out)[3]) {
  const Vec even = times(0.5f, hn::Add(in[1], in[2]));
  out[0] = hn::Add(in[0], even);
  out[1] = times(0.5f, hn::Sub(in[1], in[2]));
  out[2] = hn::Add(in[3], even);
}

// The transform of the columns, then of the rows, of a square of vectors.
template <int kIn, int kOut, class Load, class Store>
HWY_INLINE void transform_square(const Load& load, const Store& store) {
  Vec half[kIn][kOut];
#pragma GCC unroll 6
  for (int x = 0; x < kIn; ++x) {
    Vec column[kIn];
#pragma GCC unroll 6
    for (int y = 0; y < kIn; ++y) column[y] = load(y, x);
    transform(column, half[x]);
  }
#pragma GCC unroll 6
  for (int y = 0; y < kOut; ++y) {
    Vec row[kIn], out[kOut];
#pragma GCC unroll 6
    for (int x = 0; x < kIn; ++x) row[x] = half[x][y];
    transform(row, out);
#pragma GCC unroll 6
    for (int x = 0; x < kOut; ++x) store(y, x, out[x]);
  }
}

// ---- from planes to transformed tiles, and back ---------------------------------------------------------------------

// W x W is the window of inputs that a tile reads, and thus the number of positions.

// Squares of kSize for the tiles of a segment, N channels from c0 on; the first tile's result goes to row `to`.
template <int W, int kSize>
HWY_NOINLINE void transform_tiles(const Planes& from, const Segment& s, int64_t c0, const Transformed& out,
                                  int64_t to) {
  constexpr int64_t kSide = W - 2;
  const D d;
  const int64_t width = kSide * (s.count - 1) + kSize, channels = std::min(N, from.channels - c0);
  const int64_t top = s.y + from.top, left = s.x + from.left;
  const int64_t lo = std::clamp<int64_t>(-left, 0, width), hi = std::clamp(from.width - left, lo, width);
  float* const strip = scratch<float>(Scratch::gather, kSize * width * N);  // vectors of channels, padded with zeros
  if (channels < N) std::fill_n(strip, kSize * width * N, 0.f);
  for (int64_t y = 0; y < kSize; ++y) {
    float* const line = strip + y * width * N;
    const bool inside = top + y >= 0 && top + y < from.height;
    std::fill(line, line + (inside ? lo : width) * N, 0.f);
    if (!inside) continue;
    transpose(from.data + ((s.image * from.channels + c0) * from.height + top + y) * from.width + left + lo,
              from.height * from.width, channels, hi - lo, line + lo * N, N);
    std::fill(line + hi * N, line + width * N, 0.f);
  }
  for (int64_t t = 0; t < s.count; ++t) {
    const float* const in = strip + t * kSide * N;
    float* const result = out.data + (to + t) * out.row + c0;
    transform_square<kSize, W>([&](int y, int x) HWY_ATTR { return hn::Load(d, in + (y * width + x) * N); },
                               [&](int y, int x, Vec v)
                                   HWY_ATTR { hn::StoreU(v, d, result + (y * W + x) * out.plane); });
  }
}

// The outputs of a segment's tiles, N channels from k0 on; in[position] holds a row for each tile.
template <int W>
HWY_NOINLINE void write_tiles(const Transformed& in, int64_t row, int64_t column, const Segment& s, const Product& p,
                              int64_t k0) {
  constexpr int64_t kSide = W - 2;
  const D d;
  const int64_t width = kSide * s.count, channels = std::min(N, p.out - k0);
  float* const strip = scratch<float>(Scratch::gather, kSide * width * N);
  const auto of_channels = [&](const float* values, float otherwise) HWY_ATTR {
    return values ? load_first(d, values + k0, channels) : hn::Set(d, otherwise);
  };
  const Vec scale = of_channels(p.end.scale, 1), shift = of_channels(p.end.shift, 0);
  const Finish<float> finish(p.end);
  for (int64_t t = 0; t < s.count; ++t) {
    const float* const from = in.data + (row + t) * in.row + column;
    float* const to = strip + t * kSide * N;
    transform_square<W, kSide>([&](int y, int x) HWY_ATTR { return hn::LoadU(d, from + (y * W + x) * in.plane); },
                               [&](int y, int x, Vec v) HWY_ATTR {
                                 hn::Store(finish.clamp(hn::MulAdd(v, scale, shift)), d, to + (y * width + x) * N);
                               });
  }
  for (int64_t y = 0; y < std::min(kSide, p.out_height - s.y); ++y)
    transpose(strip + y * width * N, N, std::min(width, p.out_width - s.x), channels,
              p.y + ((s.image * p.out + k0) * p.out_height + s.y + y) * p.out_width + s.x, p.out_height * p.out_width);
}

// ---- weights --------------------------------------------------------------------------------------------------------

constexpr int64_t kWeightRows = 16;  // input channels whose weights are transposed together

// The weights of `width` output channels from k0 on and of `channels` input channels from c0 on, as lines: (input
// channel, tap) by output channel.
HWY_NOINLINE void transpose_weights(const Product& p, int64_t k0, int64_t width, int64_t c0, int64_t channels,
                                    float* lines) {
  const int64_t outs = std::min(width, p.out - k0);
  if (outs < width) std::fill_n(lines, channels * 9 * width, 0.f);
  if (p.turned) {
    for (int64_t c = 0; c < channels; ++c)
      transpose(p.weight + ((c0 + c) * p.out + k0) * 9, 9, outs, 9, lines + c * 9 * width, width);
    return;
  }
  // The next ones: these are more streams than the hardware follows.
  const int64_t next = std::min(kWeightRows, p.in - c0 - channels) * 9;
  for (int64_t o = 0; o < outs; ++o)
    for (int64_t i = 0; i < next; i += 16)
      __builtin_prefetch(p.weight + ((k0 + o) * p.in + c0 + channels) * 9 + i, 0, 2);
  transpose(p.weight + (k0 * p.in + c0) * 9, p.in * 9, outs, channels * 9, lines, width);
}

// All of them, panel by panel, kept with the weight's memory. Their transforms, of four times the size, are not: making
// them again costs less than reading them.
Product with_kept_lines(const Product& p, Ref<Storage>& holder) {
  if (p.turned) return p;
  const int64_t size = round_up(p.out) * p.in * 9;
  holder = p.memory.keep(
      KeptAs::lines, sizeof(float), {p.out, p.in}, p.weight, size * int64_t{sizeof(float)}, [&](void* to) {
        parallel_for(0, ceil_div(p.out, kPanel<float>), 1, [&](int64_t lo, int64_t hi) {
          for (int64_t k0 = lo * kPanel<float>; k0 < std::min(p.out, hi * kPanel<float>); k0 += kPanel<float>)
            for (int64_t c0 = 0, width = panel_width<float>(p.out, k0); c0 < p.in; c0 += kWeightRows)
              transpose_weights(p, k0, width, c0, std::min(kWeightRows, p.in - c0),
                                static_cast<float*>(to) + (k0 * p.in + c0 * width) * 9);
        });
      });
  Product with = p;
  with.lines = holder ? static_cast<const float*>(holder->data()) : nullptr;
  return with;
}

// The lines of transpose_weights, where they are kept or else in `aside`.
const float* weight_lines(const Product& p, int64_t k0, int64_t width, int64_t c0, int64_t channels, float* aside) {
  if (p.lines) return p.lines + (k0 * p.in + c0 * width) * 9;
  transpose_weights(p, k0, width, c0, channels, aside);
  return aside;
}

// The transform of N output channels' weights, whose taps lie `width` apart, to each position's plane.
template <int W>
HWY_INLINE void transform_taps(const Product& p, const float* taps, int64_t width, float* to, int64_t plane) {
  const D d;
  transform_square<3, W>(
      [&](int y, int x) HWY_ATTR {
        const float* const at = taps + (p.turned ? 8 - (y * 3 + x) : y * 3 + x) * width;
        __builtin_prefetch(at + kWeightRows * 9 * width, 0, 2);  // where lines are kept, they come from memory
        return hn::LoadU(d, at);
      },
      [&](int y, int x, Vec u) HWY_ATTR { hn::StoreU(u, d, to + (y * W + x) * plane); });
}

// A row for each of `depth` input channels from `first` on: the weights of `width` output channels from k0 on.
template <int W>
HWY_NOINLINE void transform_weights(const Product& p, int64_t k0, int64_t width, int64_t first, int64_t depth,
                                    const Transformed& out) {
  HWY_ALIGN float aside[kWeightRows * 9 * kPanel<float>];
  for (int64_t c0 = first; c0 < first + depth; c0 += kWeightRows) {
    const int64_t channels = std::min(kWeightRows, first + depth - c0);
    const float* const lines = weight_lines(p, k0, width, c0, channels, aside);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t v = 0; v < width; v += N)
        transform_taps<W>(p, lines + c * 9 * width + v, width, out.data + (c0 - first + c) * out.row + v, out.plane);
  }
}

// ---- forward --------------------------------------------------------------------------------------------------------

// m = v u, or m += v u, for each position: of `count` tiles and u's input channels, which begin at v's column `first`.
template <int W>
void multiply_positions(const Transformed& v, int64_t row0, int64_t first, int64_t count, const Transformed& u,
                        int64_t depth, int64_t width, const Transformed& m) {
  const int64_t R = panel_rows(count);
  for (int64_t position = 0; position < W * W; ++position)
    for (int64_t row = 0; row < count; row += R) {
      const float* const a = v.data + position * v.plane + (row0 + row) * v.row + first;
      run_tile<float>(
          {depth, a, v.row, 1, u.data + position * u.plane, u.row, m.data + position * m.plane + row * m.row, m.row,
           std::min(R, count - row), 1, first == 0 ? 0.f : 1.f},
          width / N);
    }
}

// Output channels from k0 on, of segments [lo, hi): their transformed tiles begin at row `first` of v, the panel's
// weights at u.
template <int W>
void multiply_panel(const Product& p, const Tiles& tiles, const Transformed& v, int64_t first, const Transformed& u,
                    int64_t k0, int64_t lo, int64_t hi) {
  const int64_t width = panel_width<float>(p.out, k0);
  while (lo < hi) {
    int64_t next = lo + 1;
    while (next < hi && tiles.first(next + 1) - tiles.first(lo) <= kSegment) ++next;
    const int64_t count = tiles.first(next) - tiles.first(lo);
    const Transformed m = transformed(Scratch::c, W * W, count, width);
    multiply_positions<W>(v, tiles.first(lo) - first, 0, count, u, p.in, width, m);
    for (int64_t i = lo; i < next; ++i)
      for (int64_t c = 0; c < width; c += N)
        if (k0 + c < p.out) write_tiles<W>(m, tiles.first(i) - tiles.first(lo), c, Segment(tiles, i), p, k0 + c);
    lo = next;
  }
}

constexpr int64_t kFewTiles = 8;  // whose sums of N output channels take half of L1

// Transformed tiles by blocks of N channels: (block, position, tile, channel).
Transformed block_of(const Transformed& v, int64_t c0, int64_t positions) {
  return {v.data + c0 / N * positions * v.plane, v.row, v.plane};
}

// m = v u, or m += v u, for R tiles, N output channels and `depth` input channels.
template <int R>
HWY_INLINE void multiply_tiles(const float* v, const float* u, int64_t depth, bool first, float* m, int64_t row) {
  const D d;
  Vec sums[R];
#pragma GCC unroll 8
  for (int t = 0; t < R; ++t) sums[t] = first ? hn::Zero(d) : hn::LoadU(d, m + t * row);
  for (int64_t c = 0; c < depth; ++c, ++v, u += N) {
    const Vec weights = hn::Load(d, u);
#pragma GCC unroll 8
    for (int t = 0; t < R; ++t) sums[t] = hn::MulAdd(hn::Set(d, v[t * N]), weights, sums[t]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < R; ++t) hn::StoreU(sums[t], d, m + t * row);
}

template <int W>
void write_panel(const Product& p, const Tiles& tiles, const Transformed& m, int64_t k0, int64_t width) {
  for (int64_t i = 0; i < tiles.segments(); ++i)
    for (int64_t c = 0; c < width; c += N)
      if (k0 + c < p.out) write_tiles<W>(m, tiles.first(i), c, Segment(tiles, i), p, k0 + c);
}

// The same for all tiles where these are not many: with the weights of some input channels at a time, whose transforms
// stay in L2.
template <int W>
void multiply_some(const Product& p, const Tiles& tiles, const Transformed& v, int64_t k0) {
  constexpr int64_t kDepth = (448 << 10) / (W * W * kPanel<float> * int64_t(sizeof(float))) / kWeightRows * kWeightRows;
  const int64_t width = panel_width<float>(p.out, k0);
  const Transformed m = transformed(Scratch::c, W * W, tiles.count(), width);
  for (int64_t first = 0; first < p.in; first += kDepth) {
    const int64_t depth = std::min(kDepth, p.in - first);
    const Transformed u = transformed(Scratch::b, W * W, depth, width);
    transform_weights<W>(p, k0, width, first, depth, u);
    multiply_positions<W>(v, 0, first, tiles.count(), u, depth, width, m);
  }
  write_panel<W>(p, tiles, m, k0, width);
}

// The same where they are few: with the weights of a few input channels at a time, whose transforms stay in L1, as the
// sums do. v is in blocks.
template <int W>
void multiply_few(const Product& p, const Tiles& tiles, const Transformed& v, int64_t k0) {
  constexpr int64_t kFew = 8;
  const int64_t width = panel_width<float>(p.out, k0), count = tiles.count();
  const Transformed m = transformed(Scratch::c, W * W, count, width);
  HWY_ALIGN float aside[kWeightRows * 9 * kPanel<float>];
  HWY_ALIGN float u[W * W * kFew * N];
  for (int64_t c0 = 0; c0 < p.in; c0 += N) {
    const int64_t channels = std::min(N, p.in - c0);
    const float* const lines = weight_lines(p, k0, width, c0, channels, aside);
    const Transformed block = block_of(v, c0, W * W);
    for (int64_t column = 0; column < width; column += N)
      for (int64_t c1 = 0; c1 < channels; c1 += kFew) {
        const int64_t depth = std::min(kFew, channels - c1);
        for (int64_t c = 0; c < depth; ++c)
          transform_taps<W>(p, lines + (c1 + c) * 9 * width + column, width, u + c * N, kFew * N);
        const bool first = c0 + c1 == 0;
        for (int64_t position = 0; position < W * W; ++position) {
          const float* from = block.data + position * block.plane + c1;
          const float* const weights = u + position * kFew * N;
          float* to = m.data + position * m.plane + column;
          int64_t left = count;
          const auto run = [&]<int R>() HWY_ATTR {
            for (; left >= R; left -= R, from += R * N, to += R * m.row)
              multiply_tiles<R>(from, weights, depth, first, to, m.row);
          };
          run.template operator()<8>();
          run.template operator()<4>();
          run.template operator()<1>();
        }
      }
  }
  write_panel<W>(p, tiles, m, k0, width);
}

template <int W>
void transform_segments(const Product& p, const Tiles& tiles, int64_t lo, int64_t hi, const Transformed& v,
                        int64_t first) {
  const Planes planes{p.x, p.in, p.height, p.width, p.top, p.left};
  for (int64_t i = lo; i < hi; ++i)
    for (int64_t c = 0; c < p.in; c += N)
      transform_tiles<W, W>(planes, Segment(tiles, i), c, v, tiles.first(i) - first);
}

template <int W>
void multiply_images_by(const Product& p) {
  const Tiles tiles(W - 2, p.images, p.out_height, p.out_width);
  const int64_t panels = ceil_div(p.out, kPanel<float>), segments = tiles.segments();
  if (tiles.count() >= 2 * p.out) {
    const int64_t row = p.in * kPanel<float> + kPad;  // of one panel and position
    float* const weights = scratch<float>(Scratch::b, panels * W * W * row);
    const auto panel_weights = [&](int64_t panel) {
      return Transformed{weights + panel * W * W * row, panel_width<float>(p.out, panel * kPanel<float>), row};
    };
    parallel_for(0, panels, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t panel = lo; panel < hi; ++panel)
        transform_weights<W>(p, panel * kPanel<float>, panel_weights(panel).row, 0, p.in, panel_weights(panel));
    });
    split(segments, ceil_div(tiles.count(), kSegment), [&](int64_t lo, int64_t hi) {
      const int64_t first = tiles.first(lo);
      const Transformed v = transformed(Scratch::a, W * W, tiles.first(hi) - first, round_up(p.in));
      transform_segments<W>(p, tiles, lo, hi, v, first);
      for (int64_t panel = 0; panel < panels; ++panel)
        multiply_panel<W>(p, tiles, v, first, panel_weights(panel), panel * kPanel<float>, lo, hi);
    });
    return;
  }
  const bool few = tiles.count() <= kFewTiles;
  Transformed v;
  if (few) {
    const int64_t plane = tiles.count() * N;
    v = {scratch<float>(Scratch::a, W * W * plane * ceil_div(p.in, N)), N, plane};
    parallel_for(0, ceil_div(p.in, N), 1, [&](int64_t lo, int64_t hi) {
      const Planes planes{p.x, p.in, p.height, p.width, p.top, p.left};
      for (int64_t c0 = lo * N; c0 < std::min(p.in, hi * N); c0 += N) {
        Transformed block = block_of(v, c0, W * W);
        block.data -= c0;
        for (int64_t i = 0; i < segments; ++i)
          transform_tiles<W, W>(planes, Segment(tiles, i), c0, block, tiles.first(i));
      }
    });
  } else {
    v = transformed(Scratch::a, W * W, tiles.count(), round_up(p.in));
    parallel_for(0, segments, 1, [&](int64_t lo, int64_t hi) { transform_segments<W>(p, tiles, lo, hi, v, 0); });
  }
  parallel_for(0, panels, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t panel = lo; panel < hi; ++panel) {
      const int64_t k0 = panel * kPanel<float>, width = panel_width<float>(p.out, k0);
      if (few) {
        multiply_few<W>(p, tiles, v, k0);
        continue;
      }
      if (tiles.count() <= 2 * kSegment) {
        multiply_some<W>(p, tiles, v, k0);
        continue;
      }
      const Transformed u = transformed(Scratch::b, W * W, p.in, width);
      transform_weights<W>(p, k0, width, 0, p.in, u);
      multiply_panel<W>(p, tiles, v, 0, u, k0, 0, segments);
    }
  });
}

void multiply_images(const Product& p) {
  Ref<Storage> holder;
  const Product with = with_kept_lines(p, holder);
  p.side == 4 ? multiply_images_by<6>(with) : multiply_images_by<4>(with);
}

// ---- the gradient of the weights ------------------------------------------------------------------------------------

// From the transformed gradient of `channels` input by `width` output channels to the gradient.
template <int W>
HWY_NOINLINE void write_weights(const float* sums, int64_t plane, int64_t width, const WeightGradient& g, int64_t c0,
                                int64_t channels, int64_t k0) {
  const D d;
  HWY_ALIGN float lines[kWeightRows * 9 * kPanel<float>];
  for (int64_t c1 = 0; c1 < channels; c1 += kWeightRows) {
    const int64_t rows = std::min(kWeightRows, channels - c1);
    for (int64_t c = 0; c < rows; ++c)
      for (int64_t v = 0; v < width; v += N) {
        const float* const from = sums + (c1 + c) * width + v;
        float* const to = lines + c * 9 * width + v;
        transform_square<W, 3>([&](int y, int x) HWY_ATTR { return hn::LoadU(d, from + (y * W + x) * plane); },
                               [&](int y, int x, Vec w) HWY_ATTR { hn::Store(w, d, to + (y * 3 + x) * width); });
      }
    transpose(lines, width, rows * 9, std::min(width, g.out - k0), g.grad_weight + (k0 * g.in + c0 + c1) * 9, g.in * 9);
  }
}

// Tiles are taken in batches whose transforms stay in cache; tasks are blocks of the gradient, and each sums over the
// tiles in order.
template <int W>
void multiply_gradients_by(const WeightGradient& g) {
  const Tiles tiles(W - 2, g.images, g.out_height, g.out_width);
  const int64_t segments = tiles.segments(), length = round_up(g.in) + round_up(g.out) + 2 * kPad;
  const int64_t batches = ceil_div(tiles.count() * W * W * length, (4 << 20) / int64_t(sizeof(float)));
  const int64_t R = panel_rows(g.in), rows = ceil_div(g.in, R), panels = ceil_div(g.out, kPanel<float>);
  const int64_t group = R * std::clamp<int64_t>(rows * panels / num_threads(), 1, 5), groups = ceil_div(g.in, group);
  const int64_t plane = group * kPanel<float> + kPad, size = W * W * plane;
  float* const shared = batches > 1 ? scratch<float>(Scratch::c, groups * panels * size) : nullptr;
  const Planes x{g.x, g.in, g.height, g.width, g.top, g.left};
  const Planes grad_y{g.grad_y, g.out, g.out_height, g.out_width, 0, 0};
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t begin = segments * batch / batches, end = segments * (batch + 1) / batches;
    if (begin == end) continue;
    const int64_t first = tiles.first(begin), count = tiles.first(end) - first;
    const Transformed v = transformed(Scratch::a, W * W, count, round_up(g.in));
    const Transformed z = transformed(Scratch::b, W * W, count, round_up(g.out));
    parallel_for(begin, end, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        for (int64_t c = 0; c < g.in; c += N) transform_tiles<W, W>(x, Segment(tiles, i), c, v, tiles.first(i) - first);
        for (int64_t k = 0; k < g.out; k += N)
          transform_tiles<W, W - 2>(grad_y, Segment(tiles, i), k, z, tiles.first(i) - first);
      }
    });
    parallel_for(0, groups * panels, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t task = lo; task < hi; ++task) {
        const int64_t c0 = task / panels * group, channels = std::min(group, g.in - c0);
        const int64_t k0 = task % panels * kPanel<float>, width = panel_width<float>(g.out, k0);
        float* const sums = shared ? shared + task * size : scratch<float>(Scratch::c, size);
        for (int64_t position = 0; position < W * W; ++position)
          for (int64_t c = 0; c < channels; c += R)
            run_tile<float, MulAdd, true>(
                {count, v.data + position * v.plane + c0 + c, 1, v.row, z.data + position * z.plane + k0, z.row,
                 sums + position * plane + c * width, width, std::min(R, channels - c), 1, begin == 0 ? 0.f : 1.f},
                width / N);
        if (end == segments) write_weights<W>(sums, plane, width, g, c0, channels, k0);
      }
    });
  }
}

void multiply_gradients(const WeightGradient& g) {
  g.side == 4 ? multiply_gradients_by<6>(g) : multiply_gradients_by<4>(g);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(multiply_images);
HWY_EXPORT(multiply_gradients);

// The side of the tiles that take least time, or 0 if the plain sum does. Counts vector operations for each input
// channel and vector of output channels: multiplications for the tiles, and a constant for the weights' transform.
int64_t best_side(const Convolution& c) {
  if (c.kernel != Extent{1, 3, 3} || c.stride != Extent{1, 1, 1} || c.dilation != Extent{1, 1, 1} || c.groups != 1 ||
      c.input[0] != 1 || c.output[0] != 1 || c.in_channels < 32 || c.out_channels < 32 || c.padding[1] > 2 ||
      c.padding[2] > 2)
    return 0;
  const auto tiles = [&](int64_t side) { return Tiles(side, c.batch, c.output[1], c.output[2]).count(); };
  const int64_t plain = 9 * c.batch * c.output[1] * c.output[2];
  const int64_t by_four = 40 * tiles(4) + 150, by_two = 20 * tiles(2) + 60;
  if (5 * std::min(by_four, by_two) > 4 * plain) return 0;
  return by_four < by_two ? 4 : 2;
}
}  // namespace

bool winograd_suits(const Convolution& c) { return best_side(c) != 0; }

void winograd_forward(const Convolution& c, const float* x, const float* weight, const Epilogue<float>& end, float* y,
                      Weight memory) {
  HWY_DYNAMIC_DISPATCH(multiply_images)
  ({best_side(c), x, weight, end, y, c.batch, c.in_channels, c.out_channels, c.input[1], c.input[2], c.output[1],
    c.output[2], -c.padding[1], -c.padding[2], false, memory});
}

void winograd_backward_data(const Convolution& c, const float* grad_y, const float* weight, float* grad_x,
                            const float* bias) {
  HWY_DYNAMIC_DISPATCH(multiply_images)
  ({best_side(c),
    grad_y,
    weight,
    {bias},
    grad_x,
    c.batch,
    c.out_channels,
    c.in_channels,
    c.output[1],
    c.output[2],
    c.input[1],
    c.input[2],
    c.padding[1] - 2,
    c.padding[2] - 2,
    true});
}

void winograd_backward_weight(const Convolution& c, const float* x, const float* grad_y, float* grad_weight) {
  HWY_DYNAMIC_DISPATCH(multiply_gradients)
  ({best_side(c), x, grad_y, grad_weight, c.batch, c.in_channels, c.out_channels, c.input[1], c.input[2], c.output[1],
    c.output[2], -c.padding[1], -c.padding[2]});
}

}  // namespace rush::cpu
#endif
