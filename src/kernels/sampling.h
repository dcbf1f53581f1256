// Sampling of images at places between elements, for the CPU and for device code: what an output element reads along
// one dimension, and how that weighs.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/math.h"

namespace rush::interpolation {

enum class Interpolation : int64_t { bilinear, nearest, bicubic };
enum class Padding : int64_t { zeros, border, reflection };
struct GridSampling {
  Interpolation mode;
  Padding padding;
  bool align_corners;
};

/// Keys 1981, "Cubic convolution interpolation": the weight at distance x.
template <class C>
RUSH_FN C cubic(C x, C a) {
  x = formula::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}
template <class C>
RUSH_FN C cubic_slope(C x, C a) {
  const C d = formula::abs(x), sign = x < 0 ? C(-1) : C(1);
  if (d < 1) return sign * (3 * (a + 2) * d - 2 * (a + 3)) * d;
  if (d < 2) return sign * ((3 * a * d - 10 * a) * d + 8 * a);
  return 0;
}

/// A place and its derivative by the grid's number.
template <class C>
struct Place {
  C at, slope;
};

template <class C>
RUSH_FN Place<C> padded(Place<C> p, int64_t size, const GridSampling& how) {
  if (how.padding == Padding::zeros) return p;
  if (how.padding == Padding::reflection) {
    const C low = how.align_corners ? C(0) : C(-0.5);
    const C span = how.align_corners ? C(size - 1) : C(size);
    if (span <= 0) return {C(0), C(0)};
    C x = p.at - low;
    if (x < 0) x = -x, p.slope = -p.slope;
    const C extra = std::fmod(x, span);
    if (int64_t(formula::floor(x / span)) % 2 == 0) {
      p.at = extra + low;
    } else {
      p.at = span - extra + low;
      p.slope = -p.slope;
    }
  }
  const C last = C(size - 1);
  if (!(p.at > 0)) return {C(0), C(0)};
  if (p.at >= last) return {last, C(0)};
  return p;
}

/// What one output element reads along one dimension: -1 for elements outside.
template <class C>
struct Corner {
  int64_t index[4];
  C weight[4], slope[4];
  C start;  // what the sum over the elements starts with: NaN where the place is NaN or infinite
  int count;
};

template <class C>
RUSH_FN Corner<C> corner(C g, int64_t size, const GridSampling& how) {
  Place<C> p;
  p.slope = how.align_corners ? C(size - 1) / 2 : C(size) / 2;
  p.at = how.align_corners ? (g + 1) / 2 * C(size - 1) : ((g + 1) * C(size) - 1) / 2;
  Corner<C> c{};
  const auto inside = [size](C at) { return at > -1 && at < C(size) ? int64_t(at) : int64_t(-1); };
  if (how.mode == Interpolation::bicubic) {
    const C first = formula::floor(p.at), fraction = p.at - first;
    c.start = fraction - fraction;
    c.count = 4;
    for (int t = 0; t < 4; ++t) {
      c.index[t] = inside(padded<C>({first + C(t - 1), C(0)}, size, how).at);
      c.weight[t] = cubic(fraction - C(t - 1), C(-0.75));
      c.slope[t] = cubic_slope(fraction - C(t - 1), C(-0.75)) * p.slope;
    }
    return c;
  }
  p = padded(p, size, how);
  if (how.mode == Interpolation::nearest) {
    c.count = 1;
    c.index[0] = inside(formula::round_even(p.at));
    c.weight[0] = 1;
    return c;
  }
  const C first = formula::floor(p.at), fraction = p.at - first;
  c.start = fraction - fraction;
  c.count = 2;
  c.index[0] = inside(first);
  c.index[1] = inside(first + 1);
  c.weight[0] = 1 - fraction;
  c.weight[1] = fraction;
  c.slope[0] = -p.slope;
  c.slope[1] = p.slope;
  return c;
}

/// Calls f(offset in the plane, weight, slopes by x, y, z) for each element that an output element reads.
template <class C, class F>
RUSH_FN void each_tap(const Corner<C> (&c)[3], const int64_t (&size)[3], const F& f) {
  for (int i = 0; i < c[0].count; ++i)
    for (int j = 0; j < c[1].count; ++j)
      for (int k = 0; k < c[2].count; ++k) {
        const int64_t a = c[0].index[i], b = c[1].index[j], d = c[2].index[k];
        if (a < 0 || b < 0 || d < 0) continue;
        const C wa = c[0].weight[i], wb = c[1].weight[j], wd = c[2].weight[k];
        const C slopes[3] = {wa * wb * c[2].slope[k], wa * c[1].slope[j] * wd, c[0].slope[i] * wb * wd};
        f((a * size[1] + b) * size[2] + d, wa * wb * wd, slopes);
      }
}

/// The corners by depth, height and width of a place in the grid, whose numbers come in the order width, height, depth.
template <class C>
RUSH_FN void corners(const C* place, int64_t dims, const int64_t (&size)[3], const GridSampling& how, Corner<C>* c) {
  c[2] = corner(place[0], size[2], how);
  c[1] = corner(place[1], size[1], how);
  if (dims == 3) {
    c[0] = corner(place[2], size[0], how);
  } else {
    c[0] = Corner<C>{};
    c[0].count = 1;
    c[0].weight[0] = 1;
  }
}

}  // namespace rush::interpolation
