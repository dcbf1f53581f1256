// Pooling. Where windows lie is worked out once for each dimension; then tasks take output rows. In a row, the
// positions whose windows are not clipped at the left or right are computed a vector at a time, with the best value and
// its position in registers; the others, and adaptive windows, one by one. Maxima without positions of windows that
// overlap are taken down the columns first, then along what that leaves, a line with its padding.
//
// Measured on one core of a Zen 4 server: max_pool2d(3, stride 2, padding 1) of 8 x 64 x 112 x 112 floats with indices
// takes 4.3 ms where torch 2.15 takes 49 ms; without, on two cores, 1.7 ms and 31 ms.
#include "kernels/cpu/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/lanes-inl.h"

#ifndef RUSH_POOL_CPP
#define RUSH_POOL_CPP
namespace rush::cpu {
namespace {

// What one output position sees along one dimension: begin, begin + step ... below end.
struct Window {
  int64_t begin, end;
  int64_t padded;  // how many positions with those in the padding
};

struct Windows {
  std::vector<Window> axis[3];
  std::vector<std::pair<const Window*, const Window*>> sides;  // of each output row, along the first two dimensions
  Extent input, step;
  // Output columns [lo, hi) have whole windows, which begin at column * stride - padding.
  int64_t lo = 0, hi = 0, taps = 0, stride = 1, padding = 0;

  Windows(const Windows&) = delete;
  explicit Windows(const Pooling& p) : input(p.input), step(p.adaptive ? Extent{1, 1, 1} : p.dilation) {
    for (int d = 0; d < 3; ++d)
      for (int64_t o = 0; o < p.output[d]; ++o) {
        if (p.adaptive) {
          const int64_t begin = o * p.input[d] / p.output[d];
          const int64_t end = ((o + 1) * p.input[d] + p.output[d] - 1) / p.output[d];
          axis[d].push_back({begin, end, end - begin});
          continue;
        }
        const int64_t start = o * p.stride[d] - p.padding[d], reach = (p.kernel[d] - 1) * p.dilation[d] + 1;
        const int64_t begin = start >= 0 ? start : start + (-start + p.dilation[d] - 1) / p.dilation[d] * p.dilation[d];
        axis[d].push_back({begin, std::max(begin, std::min(start + reach, p.input[d])),
                           std::min(start + reach, p.input[d] + p.padding[d]) - start});
      }
    for (const Window& z : axis[0])
      for (const Window& y : axis[1]) sides.emplace_back(&z, &y);
    if (p.adaptive || p.output[2] == 0) return;
    taps = p.kernel[2];
    stride = p.stride[2];
    padding = p.padding[2];
    lo = std::min(p.output[2], (padding + stride - 1) / stride);
    const int64_t last = p.input[2] - 1 - (taps - 1) * p.dilation[2] + padding;  // column * stride <= last
    hi = last < 0 ? 0 : std::min(p.output[2], last / stride + 1);
    hi = std::max(lo, hi);
  }

  int64_t rows() const { return static_cast<int64_t>(axis[0].size() * axis[1].size()); }
  int64_t columns() const { return static_cast<int64_t>(axis[2].size()); }
  int64_t volume() const { return input[0] * input[1] * input[2]; }
  // Calls body(z, y) for the window rows of output row `row`.
  template <class Body>
  void for_rows(int64_t row, const Body& body) const {
    const auto [zs, ys] = sides[static_cast<size_t>(row)];
    for (int64_t z = zs->begin; z < zs->end; z += step[0])
      for (int64_t y = ys->begin; y < ys->end; y += step[1]) body(z, y);
  }
  // Where in a plane the first of them begins, which is the maximum's place if nothing is larger.
  int64_t first(int64_t row) const {
    const auto [zs, ys] = sides[static_cast<size_t>(row)];
    return zs->begin < zs->end && ys->begin < ys->end ? (zs->begin * input[1] + ys->begin) * input[2] : 0;
  }
};

// How an average divides: by the product of a row's share and a column's.
struct Divisor {
  bool count_include_pad;
  int64_t override;

  int64_t size(const Window& x) const { return count_include_pad ? x.padded : x.end - x.begin; }
  int64_t of_row(const Windows& w, int64_t row) const {
    if (override != 0) return override;
    const auto [z, y] = w.sides[static_cast<size_t>(row)];
    return size(*z) * size(*y);
  }
  int64_t of_column(const Windows& w, int64_t column) const {
    return override != 0 ? 1 : size(w.axis[2][static_cast<size_t>(column)]);
  }
};

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// Columns [lo, hi) of rows [first, last).
template <class T>
void max_columns(const Windows& w, int64_t first, int64_t last, const T* plane, T* y, int64_t* indices, int64_t lo,
                 int64_t hi) {
  for (int64_t row = first; row < last; ++row)
    for (int64_t column = lo; column < hi; ++column) {
      const Window& window = w.axis[2][static_cast<size_t>(column)];
      T best =
          std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
      int64_t index = -1;
      w.for_rows(row, [&](int64_t z, int64_t y_in) {
        const int64_t at = (z * w.input[1] + y_in) * w.input[2];
        for (int64_t x = window.begin; x < window.end; x += w.step[2]) {
          const T value = plane[at + x];
          if (index < 0 || value > best || is_nan(value)) {
            best = value;
            index = at + x;
          }
        }
      });
      y[row * w.columns() + column] = best;
      if (indices) indices[row * w.columns() + column] = std::max<int64_t>(index, 0);
    }
}

template <class T>
void sum_columns(const Windows& w, const Divisor& divisor, int64_t row, const T* plane, T* y, int64_t lo, int64_t hi) {
  const int64_t row_divisor = lo < hi ? divisor.of_row(w, row) : 0;
  for (int64_t column = lo; column < hi; ++column) {
    const Window& window = w.axis[2][static_cast<size_t>(column)];
    T sum = 0;
    w.for_rows(row, [&](int64_t z, int64_t y_in) {
      const T* from = plane + (z * w.input[1] + y_in) * w.input[2];
      for (int64_t x = window.begin; x < window.end; ++x) sum += from[x];
    });
    const int64_t by = row_divisor * divisor.of_column(w, column);
    y[column] = by == 0 ? T(0) : sum / static_cast<T>(by);
  }
}

template <class T>
struct MaxArguments {
  const Windows& windows;
  int64_t planes;
  const T* x;
  T* y;
  int64_t* indices;
};
template <class T>
struct AvgArguments {
  const Windows& windows;
  const Divisor& divisor;
  int64_t planes;
  const T* x;
  T* y;
};

// Calls body(plane, first, last) for ranges of every plane's output rows.
template <class Body>
void for_output_rows(const Windows& w, int64_t planes, const Body& body) {
  const int64_t rows = w.rows();
  if (rows == 0 || w.columns() == 0) return;
  const int64_t reads = std::max<int64_t>(1, w.volume() / rows);
  parallel_for(0, planes * rows, std::max<int64_t>(1, (1 << 15) / reads), [&](int64_t lo, int64_t hi) {
    for (int64_t plane = lo / rows; plane * rows < hi; ++plane)
      body(plane, std::max<int64_t>(lo - plane * rows, 0), std::min(hi - plane * rows, rows));
  });
}

}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Loads elements 0, step, 2 * step ... as a vector: all, of which the last may be followed by step - 1 more, or the
// first `count` and nothing beyond.
template <class T, bool kAll>
class Steps {
  using D = hn::ScalableTag<T>;
  static constexpr int64_t N = kLanes<T>;

 public:
  HWY_INLINE Steps(int64_t step, int64_t count) : step_(step), count_(count) {
    const int64_t reach = (count - 1) * step + 1;
    low_ = hn::FirstN(D(), static_cast<size_t>(std::min(reach, N)));
    high_ = hn::FirstN(D(), static_cast<size_t>(std::clamp<int64_t>(reach - N, 0, N)));
  }
  HWY_INLINE hn::Vec<D> operator()(const T* from) const {
    const D d;
    if (kAll && step_ == 1) return hn::LoadU(d, from);
    if (kAll && step_ == 2) return hn::ConcatEven(d, hn::LoadU(d, from + N), hn::LoadU(d, from));
    if (kHasMasks && step_ == 1) return hn::MaskedLoad(low_, d, from);
    if (kHasMasks && step_ == 2)
      return hn::ConcatEven(d, hn::MaskedLoad(high_, d, from + N), hn::MaskedLoad(low_, d, from));
    HWY_ALIGN T lanes[N];
    for (int64_t i = 0; i < N; ++i) lanes[i] = from[std::min(i, count_ - 1) * step_];
    return hn::Load(d, lanes);
  }

 private:
  int64_t step_, count_;
  hn::Mask<D> low_, high_;
};

// Calls body(first, count, steps) for the columns [w.lo, w.hi), a vector at a time.
template <class T, class Body>
HWY_INLINE void for_whole_windows(const Windows& w, const Body& body) {
  int64_t column = w.lo;
  const Steps<T, true> all(w.stride, kLanes<T>);
  for (; column + kLanes<T> < w.hi; column += kLanes<T>) body(column, kLanes<T>, all);
  if (column < w.hi) body(column, w.hi - column, Steps<T, false>(w.stride, w.hi - column));
}

// Stores the first `count` lanes, if there are so many.
template <class D>
HWY_INLINE void store_up_to(D d, hn::Vec<D> v, hn::TFromD<D>* to, int64_t count) {
  if (count >= kLanes<hn::TFromD<D>>) {
    hn::StoreU(v, d, to);
  } else if (count > 0) {
    store_first(d, v, to, count);
  }
}

template <class D>
HWY_INLINE void store_indices(D di, hn::Vec<D> v, int64_t* to, int64_t count) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    store_up_to(di, v, to, count);
  } else {
    const hn::Half<D> half;
    const hn::Rebind<int64_t, decltype(half)> wide;
    constexpr int64_t H = HWY_LANES(hn::TFromD<D>) / 2;
    store_up_to(wide, hn::PromoteTo(wide, hn::LowerHalf(half, v)), to, count);
    store_up_to(wide, hn::PromoteTo(wide, hn::UpperHalf(half, v)), to + H, count - H);
  }
}

// The larger of the two, NaN if one is.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V larger(D, V a, V b) {  // the x86 instruction gives b where one is NaN
  return hn::IfThenElse(hn::IsNaN(a), a, hn::Max(a, b));
}

template <class T>
void max_values(const MaxArguments<T>& a) {
  const Windows& w = a.windows;
  const hn::ScalableTag<T> d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = w.input[2], columns = w.columns();
  const int64_t whole = (columns + N - 1) / N * N * w.stride + (w.taps - 1) * w.step[2];
  const Steps<T, true> steps(w.stride, N);
  const int64_t size = std::max(whole, w.padding + width);
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const auto run = [&](int64_t plane, int64_t row) {
    const T* x = a.x + plane * w.volume();
    T* y = a.y + (plane * w.rows() + row) * columns;
    T* line = scratch<T>(Scratch::a, size);
    std::fill_n(line, size, lowest);
    T* inside = line + w.padding;
    w.for_rows(row, [&](int64_t z, int64_t y_in) HWY_ATTR {
      const T* from = x + (z * w.input[1] + y_in) * width;
      for_vectors<T>(width, [&](auto v, int64_t i) HWY_ATTR {
        hn::StoreU(larger(v, hn::LoadU(v, inside + i), hn::LoadU(v, from + i)), v, inside + i);
      });
    });
    for (int64_t column = 0; column < columns; column += N) {
      const T* from = line + column * w.stride;
      auto best = steps(from);
      for (int64_t k = 1; k < w.taps; ++k) best = larger(d, best, steps(from + k * w.step[2]));
      store_up_to(d, best, y + column, columns - column);
    }
  };
  for_output_rows(w, a.planes, [&](int64_t plane, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) run(plane, row);
  });
}

// Columns [w.lo, w.hi) of rows [first, last).
template <class T, bool kIndices>
HWY_NOINLINE void max_vectors(const Windows& w, int64_t first, int64_t last, const T* plane, T* y, int64_t* indices) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Index = hn::TFromD<decltype(di)>;
  const auto steps_from_first = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<Index>(w.stride)));
  for_whole_windows<T>(w, [&](int64_t column, int64_t count, const auto& steps) HWY_ATTR {
    const int64_t x0 = column * w.stride - w.padding;
    const auto start = hn::Add(steps_from_first, hn::Set(di, static_cast<Index>(x0)));
    for (int64_t row = first; row < last; ++row) {
      auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
      auto index = hn::Add(start, hn::Set(di, static_cast<Index>(w.first(row))));
      w.for_rows(row, [&](int64_t z, int64_t y_in) HWY_ATTR {
        const int64_t at = (z * w.input[1] + y_in) * w.input[2];
        for (int64_t k = 0; k < w.taps; ++k) {
          const auto value = steps(plane + at + x0 + k * w.step[2]);
          if constexpr (kIndices) {
            // "not less or equal" is true for NaN; a NaN that stands gives way only to another.
            const auto better = hn::Or(hn::Gt(value, best), hn::IsNaN(value));
            const auto here = hn::Add(start, hn::Set(di, static_cast<Index>(at + k * w.step[2])));
            best = hn::IfThenElse(better, value, best);
            index = hn::IfThenElse(hn::RebindMask(di, better), here, index);
          } else {
            best = larger(d, best, value);
          }
        }
      });
      const int64_t to = row * w.columns() + column;
      store_up_to(d, best, y + to, count);
      if constexpr (kIndices) store_indices(di, index, indices + to, count);
    }
  });
}

template <class T>
HWY_NOINLINE void sum_vectors(const Windows& w, int64_t divisor, int64_t row, const T* plane, T* y) {
  const hn::ScalableTag<T> d;
  for_whole_windows<T>(w, [&](int64_t column, int64_t count, const auto& steps) HWY_ATTR {
    auto sum = hn::Zero(d);
    w.for_rows(row, [&](int64_t z, int64_t y_in) HWY_ATTR {
      const T* from = plane + (z * w.input[1] + y_in) * w.input[2] + column * w.stride - w.padding;
      for (int64_t k = 0; k < w.taps; ++k) sum = hn::Add(sum, steps(from + k));
    });
    store_up_to(d, hn::Div(sum, hn::Set(d, static_cast<T>(divisor))), y + column, count);
  });
}

template <class T>
void max_rows(const MaxArguments<T>& a) {
  const Windows& w = a.windows;
  if (!a.indices && w.taps > w.stride) return max_values(a);
  const bool vectors = w.volume() <= std::numeric_limits<int32_t>::max() && w.lo < w.hi;
  for_output_rows(w, a.planes, [&](int64_t plane, int64_t first, int64_t last) {
    const T* x = a.x + plane * w.volume();
    const int64_t at = plane * w.rows() * w.columns();
    T* y = a.y + at;
    int64_t* indices = a.indices ? a.indices + at : nullptr;
    if (vectors) (indices ? max_vectors<T, true> : max_vectors<T, false>)(w, first, last, x, y, indices);
    max_columns(w, first, last, x, y, indices, 0, vectors ? w.lo : w.columns());
    if (vectors) max_columns(w, first, last, x, y, indices, w.hi, w.columns());
  });
}

template <class T>
HWY_NOINLINE T sum_of(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + N));
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  for (; i < n; ++i) sum += x[i];
  return sum;
}

template <class T>
void avg_rows(const AvgArguments<T>& a) {
  const Windows& w = a.windows;
  const bool global = w.rows() == 1 && w.columns() == 1 && w.axis[0][0].end - w.axis[0][0].begin == w.input[0] &&
                      w.axis[1][0].end - w.axis[1][0].begin == w.input[1] &&
                      w.axis[2][0].end - w.axis[2][0].begin == w.input[2];
  const auto run = [&](int64_t plane, int64_t row) {
    const T* x = a.x + plane * w.volume();
    T* y = a.y + (plane * w.rows() + row) * w.columns();
    if (global) {
      *y = sum_of(x, w.volume()) / static_cast<T>(a.divisor.of_row(w, 0) * a.divisor.of_column(w, 0));
      return;
    }
    // The same for all whole windows.
    const int64_t divisor = w.hi > w.lo ? a.divisor.of_row(w, row) * a.divisor.of_column(w, w.lo) : 0;
    if (divisor != 0) {
      sum_vectors(w, divisor, row, x, y);
      sum_columns(w, a.divisor, row, x, y, 0, w.lo);
      sum_columns(w, a.divisor, row, x, y, w.hi, w.columns());
    } else {
      sum_columns(w, a.divisor, row, x, y, 0, w.columns());
    }
  };
  for_output_rows(w, a.planes, [&](int64_t plane, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) run(plane, row);
  });
}

void max_rows_float(const MaxArguments<float>& a) { max_rows(a); }
void max_rows_double(const MaxArguments<double>& a) { max_rows(a); }
void avg_rows_float(const AvgArguments<float>& a) { avg_rows(a); }
void avg_rows_double(const AvgArguments<double>& a) { avg_rows(a); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(max_rows_float);
HWY_EXPORT(max_rows_double);
HWY_EXPORT(avg_rows_float);
HWY_EXPORT(avg_rows_double);

int64_t numel(int64_t planes, const Extent& e) { return planes * e[0] * e[1] * e[2]; }

// Calls run(x, y) with a float copy of half values, whose result is then rounded.
template <class T, class Run>
void in_float(const T* x, int64_t x_numel, T* y, int64_t y_numel, const Run& run) {
  const auto from = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(x_numel));
  const auto to = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(y_numel));
  std::copy(x, x + x_numel, from.get());
  run(from.get(), to.get());
  std::copy(to.get(), to.get() + y_numel, y);
}
}  // namespace

template <class T>
void max_pool(const Pooling& p, const T* x, T* y, int64_t* indices) {
  if constexpr (is_half_type<T>) {
    in_float(x, numel(p.planes, p.input), y, numel(p.planes, p.output),
             [&](const float* from, float* to) { max_pool<float>(p, from, to, indices); });
  } else {
    const Windows windows(p);
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(max_rows_float)({windows, p.planes, x, y, indices});
    } else if constexpr (std::is_same_v<T, double>) {
      HWY_DYNAMIC_DISPATCH(max_rows_double)({windows, p.planes, x, y, indices});
    } else {
      for_output_rows(windows, p.planes, [&](int64_t plane, int64_t first, int64_t last) {
        const int64_t at = plane * windows.rows() * windows.columns();
        max_columns(windows, first, last, x + plane * windows.volume(), y + at, indices ? indices + at : nullptr, 0,
                    windows.columns());
      });
    }
  }
}

template <class T>
void max_pool_backward(int64_t planes, int64_t in, int64_t out, const T* grad_y, const int64_t* indices, T* grad_x) {
  parallel_for(0, planes, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, in + out)),
               [&](int64_t lo, int64_t hi) {
                 std::vector<compute_t<T>> sums(is_half_type<T> ? static_cast<size_t>(in) : 0);
                 for (int64_t plane = lo; plane < hi; ++plane) {
                   const T* grad = grad_y + plane * out;
                   const int64_t* index = indices + plane * out;
                   const auto add_to = [&](compute_t<T>* to) {
                     std::fill_n(to, in, compute_t<T>(0));
                     for (int64_t i = 0; i < out; ++i) to[index[i]] += grad[i];
                   };
                   if constexpr (is_half_type<T>) {
                     add_to(sums.data());
                     std::copy(sums.begin(), sums.end(), grad_x + plane * in);
                   } else {
                     add_to(grad_x + plane * in);
                   }
                 }
               });
}

template <class T>
void avg_pool(const Pooling& p, bool count_include_pad, int64_t divisor_override, const T* x, T* y) {
  if constexpr (is_half_type<T>) {
    in_float(x, numel(p.planes, p.input), y, numel(p.planes, p.output),
             [&](const float* from, float* to) { avg_pool<float>(p, count_include_pad, divisor_override, from, to); });
  } else {
    const Windows windows(p);
    const Divisor divisor{count_include_pad, divisor_override};
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(avg_rows_float)({windows, divisor, p.planes, x, y});
    } else {
      HWY_DYNAMIC_DISPATCH(avg_rows_double)({windows, divisor, p.planes, x, y});
    }
  }
}

template <class T>
void avg_pool_backward(const Pooling& p, bool count_include_pad, int64_t divisor_override, const T* grad_y, T* grad_x) {
  if constexpr (is_half_type<T>) {
    in_float(grad_y, numel(p.planes, p.output), grad_x, numel(p.planes, p.input), [&](const float* from, float* to) {
      avg_pool_backward<float>(p, count_include_pad, divisor_override, from, to);
    });
  } else {
    const Windows w(p);
    const Divisor divisor{count_include_pad, divisor_override};
    const int64_t rows = w.rows(), columns = w.columns();
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, w.volume() + rows * columns));
    parallel_for(0, p.planes, grain, [&](int64_t lo, int64_t hi) {
      std::vector<T> shares(static_cast<size_t>(columns));
      for (int64_t plane = lo; plane < hi; ++plane) {
        T* const to = grad_x + plane * w.volume();
        std::fill_n(to, w.volume(), T(0));
        for (int64_t row = 0; row < rows; ++row) {
          const T* from = grad_y + (plane * rows + row) * columns;
          const int64_t row_divisor = divisor.of_row(w, row);
          for (int64_t c = 0; c < columns; ++c) {
            const int64_t by = row_divisor * divisor.of_column(w, c);
            shares[static_cast<size_t>(c)] = by == 0 ? T(0) : from[c] / static_cast<T>(by);
          }
          w.for_rows(row, [&](int64_t z, int64_t y) {
            T* line = to + (z * w.input[1] + y) * w.input[2];
            for (int64_t c = 0; c < columns; ++c) {
              const Window& window = w.axis[2][static_cast<size_t>(c)];
              for (int64_t x = window.begin; x < window.end; ++x) line[x] += shares[static_cast<size_t>(c)];
            }
          });
        }
      }
    });
  }
}

#define RUSH_INSTANTIATE_MAX(T)                                      \
  template void max_pool<T>(const Pooling&, const T*, T*, int64_t*); \
  template void max_pool_backward<T>(int64_t, int64_t, int64_t, const T*, const int64_t*, T*);
#define RUSH_INSTANTIATE_AVG(T)                                           \
  template void avg_pool<T>(const Pooling&, bool, int64_t, const T*, T*); \
  template void avg_pool_backward<T>(const Pooling&, bool, int64_t, const T*, T*);
RUSH_INSTANTIATE_MAX(float)
RUSH_INSTANTIATE_MAX(double)
RUSH_INSTANTIATE_MAX(BFloat16)
RUSH_INSTANTIATE_MAX(Half)
RUSH_INSTANTIATE_MAX(uint8_t)
RUSH_INSTANTIATE_MAX(int8_t)
RUSH_INSTANTIATE_MAX(int16_t)
RUSH_INSTANTIATE_MAX(int32_t)
RUSH_INSTANTIATE_MAX(int64_t)
RUSH_INSTANTIATE_AVG(float)
RUSH_INSTANTIATE_AVG(double)
RUSH_INSTANTIATE_AVG(BFloat16)
RUSH_INSTANTIATE_AVG(Half)
#undef RUSH_INSTANTIATE_MAX
#undef RUSH_INSTANTIATE_AVG

}  // namespace rush::cpu
#endif
