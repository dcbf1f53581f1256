// Which elements the sums of a convolution and of its gradient read.
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/integers.h"

namespace rush::cpu {

inline int64_t volume(const Extent& e) { return e[0] * e[1] * e[2]; }

// Which elements a sum over taps reads: position q of `grid` reads source position q * step + offset of each tap.
struct Gather {
  Extent source, grid, step;
  std::vector<Extent> offsets;
  std::vector<int64_t> taps;  // which tap of the kernel an offset belongs to
};

inline Gather forward_gather(const Convolution& c) {
  Gather g{c.input, c.output, c.stride, {}, {}};
  for (int64_t z = 0; z < c.kernel[0]; ++z)
    for (int64_t y = 0; y < c.kernel[1]; ++y)
      for (int64_t x = 0; x < c.kernel[2]; ++x) {
        g.offsets.push_back(
            {z * c.dilation[0] - c.padding[0], y * c.dilation[1] - c.padding[1], x * c.dilation[2] - c.padding[2]});
        g.taps.push_back(static_cast<int64_t>(g.taps.size()));
      }
  if (volume(c.kernel) == 1 && c.padding == Extent{0, 0, 0} && c.stride == Extent{1, 1, 1} && c.input == c.output) {
    g.source = g.grid = {1, 1, volume(c.input)};  // rows need not be told apart
  }
  return g;
}

// Input positions phase + q * stride get their gradient from grad_y at q + offset.
inline Gather backward_gather(const Convolution& c, const Extent& phase) {
  Gather g{c.output, {}, {1, 1, 1}, {}, {}};
  std::vector<int64_t> taps[3];
  for (int d = 0; d < 3; ++d) {
    g.grid[d] = (c.input[d] - phase[d] + c.stride[d] - 1) / c.stride[d];
    for (int64_t k = 0; k < c.kernel[d]; ++k)
      if ((phase[d] + c.padding[d] - k * c.dilation[d]) % c.stride[d] == 0) taps[d].push_back(k);
  }
  const auto offset = [&](int d, int64_t k) { return (phase[d] + c.padding[d] - k * c.dilation[d]) / c.stride[d]; };
  for (const int64_t z : taps[0])
    for (const int64_t y : taps[1])
      for (const int64_t x : taps[2]) {
        g.offsets.push_back({offset(0, z), offset(1, y), offset(2, x)});
        g.taps.push_back((z * c.kernel[1] + y) * c.kernel[2] + x);
      }
  return g;
}

// Calls body(phase) for each residue that an input position can have modulo the stride.
template <class Body>
void for_each_phase(const Convolution& c, const Body& body) {
  for (int64_t z = 0; z < std::min(c.stride[0], c.input[0]); ++z)
    for (int64_t y = 0; y < std::min(c.stride[1], c.input[1]); ++y)
      for (int64_t x = 0; x < std::min(c.stride[2], c.input[2]); ++x) body(Extent{z, y, x});
}

// Which w in [0, count) satisfy 0 <= start + w * step < size: [lo, hi).
struct Range {
  int64_t lo, hi;
};
inline Range inside(int64_t start, int64_t step, int64_t size, int64_t count) {
  const int64_t lo = start >= 0 ? 0 : std::min(count, ceil_div(-start, step));
  const int64_t hi = start >= size ? 0 : std::min(count, ceil_div(size - start, step));
  return {lo, std::max(lo, hi)};
}

}  // namespace rush::cpu
