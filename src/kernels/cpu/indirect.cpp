// Convolutions and their gradients by indirection: images are copied once with the channels of a pixel side by side,
// and the micro-kernels are told where each pixel lies that a tap reads. There are no patches to pack, rows of pixels
// may be as short as they like, pixels outside the image cost little or nothing, and each residue modulo a stride is
// but another list.
//
// Forward and backward for data: 14 pixels by 32 channels at a time, summed over the taps that reach any of the pixels
// and over the other channels. Neighbours in a tile are the same pixel of different images, so that most tiles meet no
// tap outside. Backward for the weight: 14 input by 32 output channels of a tap, summed over the pairs of pixels that
// the tap connects.
//
// Measured on two cores of a Zen 4 server (FMA peak 230 GF/s), 3x3 of stride 2, 256 to 512 channels, 16 x 4 x 4: 237
// for data and 171 GF/s for the weight, counting products with pixels outside (42 and 34 by the ways of conv.cpp).
#include "kernels/cpu/indirect.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/gather.h"
#include "kernels/cpu/scratch.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/indirect.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/gemm-inl.h"

#ifndef RUSH_INDIRECT_CPP
#define RUSH_INDIRECT_CPP
namespace rush::cpu {
namespace {

// Sums for each pixel of images `to` over taps and the channels of images `from`: a convolution, or its gradient.
struct PixelSums {
  int64_t images, taps;
  int64_t depth, channels;           // of `from` and of `to`
  int64_t depth_step, channel_step;  // of the weight
  Extent size, stride;               // of `to`, and between the pixels of a phase
  std::vector<Extent> phases;
  std::vector<Gather> gathers;  // one for each phase
  const float *from, *weight, *bias;
  float* to;
};
struct WeightGradient {
  const Convolution& conv;
  const float *x, *grad_y;
  float* grad_weight;
};

// Elements a and b, whose products are to be summed.
struct Pair {
  int64_t a, b;
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
constexpr int64_t N = kLanes<float>, P = kPanel<float>;

// Floats from pixel to pixel: whole vectors, and not a power of two, whose multiples share few cache lines.
constexpr int64_t pixel_row(int64_t channels) { return (ceil_div(channels, N) + 1) * N; }

// Copies images so that the channels of a pixel are contiguous; behind the last pixel of each is one of zeros.
float* channels_last(Scratch purpose, const float* from, int64_t images, int64_t channels, int64_t pixels) {
  constexpr int64_t kBlock = 64;
  const int64_t row = pixel_row(channels), blocks = ceil_div(pixels, kBlock);
  float* const to = scratch<float>(purpose, images * (pixels + 1) * row);
  parallel_for(0, images * blocks, std::max<int64_t>(1, (1 << 14) / (channels * std::min(pixels, kBlock))),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i) {
                   const int64_t n = i / blocks, p = i % blocks * kBlock;
                   transpose(from + n * channels * pixels + p, pixels, channels, std::min(kBlock, pixels - p),
                             to + (n * (pixels + 1) + p) * row, row);
                   if (p == 0) std::fill_n(to + (n * (pixels + 1) + pixels) * row, row, 0.f);
                 }
               });
  return to;
}

// ---- for data -------------------------------------------------------------------------------------------------------

// c[c_at[i]] = start + the sum over taps t and k of a[a_at[t * kMaxRows + i] + k] * b[b_at[t] + k * width].
struct PixelTile {
  int64_t rows, taps, depth;
  const float *a, *b, *start;
  const int64_t *a_at, *b_at;
  float* c;
  const int64_t* c_at;
};

template <int R, int V>
HWY_NOINLINE void pixel_kernel(const PixelTile& t) {
  const D d;
  Vec sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = hn::LoadU(d, t.start + v * N);
  }
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    int64_t at[R];
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) at[i] = t.a_at[tap * kMaxRows + i];
    const float* HWY_RESTRICT a = t.a;
    const float* HWY_RESTRICT b = t.b + t.b_at[tap];
    for (int64_t k = t.depth; k > 0; --k) {
      Vec bv[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) bv[v] = hn::LoadU(d, b + v * N);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Vec av = hn::Set(d, a[at[i]]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
      }
      ++a;
      b += V * N;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if (i >= t.rows) break;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) hn::StoreU(sum[i][v], d, t.c + t.c_at[i] + v * N);
  }
}

// ---- for the weight -------------------------------------------------------------------------------------------------

// c[i * c_row] (+)= the sum over images and pairs of a[pair.a + i] * b[pair.b].
struct PairTile {
  int64_t rows, images, count;
  const float *a, *b;
  int64_t a_image, b_image;  // from image to image
  const Pair* pairs;
  float* c;
  int64_t c_row;
  bool add;
};

template <int R, int V>
HWY_NOINLINE void pair_kernel(const PairTile& t) {
  const D d;
  Vec sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = t.add && i < t.rows ? hn::LoadU(d, t.c + i * t.c_row + v * N) : hn::Zero(d);
  }
  for (int64_t n = 0; n < t.images; ++n)
    for (int64_t p = 0; p < t.count; ++p) {
      const float* HWY_RESTRICT a = t.a + n * t.a_image + t.pairs[p].a;
      const float* HWY_RESTRICT b = t.b + n * t.b_image + t.pairs[p].b;
      Vec bv[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) bv[v] = hn::LoadU(d, b + v * N);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Vec av = hn::Set(d, a[i]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
      }
    }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if (i >= t.rows) break;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) hn::StoreU(sum[i][v], d, t.c + i * t.c_row + v * N);
  }
}

#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
#define RUSH_KERNELS(kernel)                                                                        \
  {                                                                                                 \
    {kernel<1, 1>, kernel<1, 2>}, {kernel<2, 1>, kernel<2, 2>}, {kernel<4, 1>, kernel<4, 2>},       \
        {kernel<6, 1>, kernel<6, 2>}, {kernel<8, 1>, kernel<8, 2>}, {kernel<10, 1>, kernel<10, 2>}, \
        {kernel<12, 1>, kernel<12, 2>}, {                                                           \
      kernel<14, 1>, kernel<14, 2>                                                                  \
    }                                                                                               \
  }
#else
#define RUSH_KERNELS(kernel)                                                                    \
  {                                                                                             \
    {kernel<1, 1>, kernel<1, 2>}, {kernel<2, 1>, kernel<2, 2>}, {kernel<4, 1>, kernel<4, 2>}, { \
      kernel<6, 1>, kernel<6, 2>                                                                \
    }                                                                                           \
  }
#endif
void run_pixels(const PixelTile& t, int64_t width) {
  static constexpr void (*kernels[kMaxRows / 2 + 1][2])(const PixelTile&) = RUSH_KERNELS(pixel_kernel);
  kernels[kernel_rows(t.rows) / 2][width > N](t);
}
void run_pairs(const PairTile& t, int64_t width) {
  static constexpr void (*kernels[kMaxRows / 2 + 1][2])(const PairTile&) = RUSH_KERNELS(pair_kernel);
  kernels[kernel_rows(t.rows) / 2][width > N](t);
}
#undef RUSH_KERNELS

// ---- the loops around -----------------------------------------------------------------------------------------------

// Where position q of a gather's grid and the tap's offset lead, as an index into the source, or -1 outside.
int64_t source_index(const Gather& g, const Extent& q, const Extent& offset) {
  int64_t index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = q[d] * g.step[d] + offset[d];
    if (at < 0 || at >= g.source[d]) return -1;
    index = index * g.source[d] + at;
  }
  return index;
}
Extent position(const Extent& grid, int64_t q) { return {q / (grid[1] * grid[2]), q / grid[2] % grid[1], q % grid[2]}; }

void pixel_sums(const PixelSums& g) {
  const int64_t taps = g.taps, pixels = volume(g.size), source = volume(g.gathers[0].source);
  const int64_t row = pixel_row(g.depth), image = (source + 1) * row;
  const float* const from = channels_last(Scratch::a, g.from, g.images, g.depth, source);
  const int64_t panels = ceil_div(g.channels, P);
  const int64_t parts = std::clamp<int64_t>(2 * num_threads() / panels, 1, g.images);
  parallel_for(0, panels * parts, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t task = lo; task < hi; ++task) {
      const int64_t k0 = task / parts * P, channels = std::min(P, g.channels - k0), width = channels > N ? P : N;
      const int64_t first = g.images * (task % parts) / parts, images = g.images * (task % parts + 1) / parts - first;
      const int64_t plane = g.depth * width + N;  // of the weights of one tap
      float* const weights = scratch<float>(Scratch::b, taps * plane);
      if (channels < width) std::fill_n(weights, taps * plane, 0.f);
      for (int64_t k = 0; k < g.depth; ++k)
        transpose(g.weight + k0 * g.channel_step + k * g.depth_step, g.channel_step, channels, taps,
                  weights + k * width, plane);
      HWY_ALIGN float start[P] = {};
      if (g.bias) std::copy_n(g.bias + k0, channels, start);

      float* const result = scratch<float>(Scratch::c, images * pixels * width);
      // A tile has one pixel of several images, or several of one.
      const bool one_pixel = images >= 8;
      const int64_t repeats = one_pixel ? 1 : images;
      for (size_t phase = 0; phase < g.phases.size(); ++phase) {
        const Gather& gather = g.gathers[phase];
        const int64_t grid = volume(gather.grid), count = one_pixel ? grid * images : grid;
        const int64_t R = panel_rows(one_pixel ? images : grid);
        int64_t length = 0;
        for (int64_t s = 0; s < count; s += length) {
          length = std::min(R, one_pixel ? images - s % images : grid - s);
          Extent at[kMaxRows];
          int64_t image_at[kMaxRows] = {}, c_at[kMaxRows];  // rows past the last read anything: they are not stored
          for (int64_t i = 0; i < length; ++i) {
            const int64_t q = one_pixel ? (s + i) / images : s + i, n = one_pixel ? (s + i) % images : 0;
            at[i] = position(gather.grid, q);
            image_at[i] = n * image;
            int64_t to = 0;
            for (int d = 0; d < 3; ++d) to = to * g.size[d] + g.phases[phase][d] + at[i][d] * g.stride[d];
            c_at[i] = (n * pixels + to) * width;
          }
          int64_t* const a_at = scratch<int64_t>(Scratch::gather, (taps + 1) * (kMaxRows + 1));
          int64_t* const b_at = a_at + taps * kMaxRows;
          int64_t used = 0;
          for (size_t t = 0; t < gather.taps.size(); ++t) {
            int64_t* const to = a_at + used * kMaxRows;
            bool any = false;
            if (one_pixel) {
              const int64_t index = source_index(gather, at[0], gather.offsets[t]);
              any = index >= 0;
              for (int64_t i = 0; any && i < kMaxRows; ++i) to[i] = image_at[i] + index * row;
            } else {
              for (int64_t i = 0; i < kMaxRows; ++i) {
                const int64_t index = i < length ? source_index(gather, at[i], gather.offsets[t]) : -1;
                any |= index >= 0;
                to[i] = (index < 0 ? source : index) * row;
              }
            }
            if (any) b_at[used++] = gather.taps[t] * plane;
          }
          for (int64_t n = 0; n < repeats; ++n)
            run_pixels({length, used, g.depth, from + (first + n) * image, weights, start, a_at, b_at,
                        result + n * pixels * width, c_at},
                       width);
        }
      }
      for (int64_t n = 0; n < images; ++n)
        transpose(result + n * pixels * width, width, pixels, channels, g.to + ((first + n) * g.channels + k0) * pixels,
                  pixels);
    }
  });
}

void weight_gradient(const WeightGradient& g) {
  const Convolution& c = g.conv;
  const Gather gather = forward_gather(c);
  const int64_t taps = volume(c.kernel), pixels = volume(gather.grid), source = volume(gather.source);
  const int64_t x_row = pixel_row(c.in_channels), grad_row = pixel_row(c.out_channels);
  const int64_t x_image = (source + 1) * x_row, grad_image = (pixels + 1) * grad_row;
  const float* const x = channels_last(Scratch::a, g.x, c.batch, c.in_channels, source);
  const float* const grads = channels_last(Scratch::b, g.grad_y, c.batch, c.out_channels, pixels);
  std::vector<std::vector<Pair>> pairs(static_cast<size_t>(taps));
  for (size_t t = 0; t < pairs.size(); ++t)
    for (int64_t q = 0; q < pixels; ++q) {
      const int64_t index = source_index(gather, position(gather.grid, q), gather.offsets[t]);
      if (index >= 0) pairs[t].push_back({index * x_row, q * grad_row});
    }

  const int64_t R = panel_rows(c.in_channels), rows = ceil_div(c.in_channels, R), panels = ceil_div(c.out_channels, P);
  const int64_t group = R * std::clamp<int64_t>(rows * panels / (2 * num_threads()), 1, 5);
  const int64_t groups = ceil_div(c.in_channels, group), blocks = groups * panels;
  const int64_t parts = std::clamp<int64_t>(ceil_div(int64_t{4} * num_threads(), blocks), 1, taps);  // of the taps
  // As many images as L2 holds meet all sums of a task before the next do.
  const int64_t wave = std::max<int64_t>(1, (1 << 17) / (x_image + grad_image));
  parallel_for(0, blocks * parts, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t task = lo; task < hi; ++task) {
      const int64_t block = task / parts, c0 = block / panels * group, channels = std::min(group, c.in_channels - c0);
      const int64_t k0 = block % panels * P, outs = std::min(P, c.out_channels - k0), width = outs > N ? P : N;
      const int64_t t0 = taps * (task % parts) / parts, count = taps * (task % parts + 1) / parts - t0;
      float* const sums = scratch<float>(Scratch::c, group * count * width);  // (input channel, tap, output channel)
      for (int64_t n = 0; n < c.batch; n += wave)
        for (int64_t t = 0; t < count; ++t) {
          const auto& list = pairs[static_cast<size_t>(t0 + t)];
          for (int64_t i = 0; i < channels; i += R)
            run_pairs({std::min(R, channels - i), std::min(wave, c.batch - n), static_cast<int64_t>(list.size()),
                       x + n * x_image + c0 + i, grads + n * grad_image + k0, x_image, grad_image, list.data(),
                       sums + (i * count + t) * width, count * width, n > 0},
                      width);
        }
      float* const to = g.grad_weight + (k0 * c.in_channels + c0) * taps + t0;
      const int64_t lines = count == taps ? channels : 1;  // of the result that are neighbours
      for (int64_t i = 0; i < channels; i += lines)
        transpose(sums + i * count * width, width, lines * count, outs, to + i * taps, c.in_channels * taps);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(pixel_sums);
HWY_EXPORT(weight_gradient);
}  // namespace

bool indirect_suits(const Convolution& c) {
  return c.batch > 0 && c.groups == 1 && c.in_channels >= 16 && c.out_channels >= 16 && volume(c.output) > 0 &&
         c.output[2] <= 32 && c.batch * volume(c.output) <= 8192;
}

bool indirect_forward_suits(const Convolution& c) { return indirect_suits(c) && c.batch >= 8 && volume(c.kernel) > 1; }

void indirect_forward(const Convolution& c, const float* x, const float* weight, const float* bias, float* y) {
  const int64_t taps = volume(c.kernel);
  HWY_DYNAMIC_DISPATCH(pixel_sums)
  ({c.batch,
    taps,
    c.in_channels,
    c.out_channels,
    taps,
    c.in_channels * taps,
    c.output,
    {1, 1, 1},
    {{0, 0, 0}},
    {forward_gather(c)},
    x,
    weight,
    bias,
    y});
}

void indirect_backward_data(const Convolution& c, const float* grad_y, const float* weight, float* grad_x,
                            const float* bias) {
  const int64_t taps = volume(c.kernel);
  PixelSums sums{c.batch, taps,   c.out_channels, c.in_channels, c.in_channels * taps, taps, c.input, c.stride, {}, {},
                 grad_y,  weight, bias,           grad_x};
  for_each_phase(c, [&](const Extent& phase) {
    sums.phases.push_back(phase);
    sums.gathers.push_back(backward_gather(c, phase));
  });
  HWY_DYNAMIC_DISPATCH(pixel_sums)(sums);
}

void indirect_backward_weight(const Convolution& c, const float* x, const float* grad_y, float* grad_weight) {
  HWY_DYNAMIC_DISPATCH(weight_gradient)({c, x, grad_y, grad_weight});
}

}  // namespace rush::cpu
#endif
