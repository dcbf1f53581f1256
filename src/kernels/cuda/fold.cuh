// Reductions: a team of threads folds the elements of one result, or a part of them where results are few; the parts
// are then joined by a second kernel. What an element and two accumulators make is in kernels/folds.h.
#pragma once
#include "kernels/cuda/layout.cuh"
#include "kernels/folds.h"

namespace rush::cuda {

using folds::FoldOptions;

// ---- what the kernels need of a fold

/// An accumulator that is one number. Elements go through a lane of at most 32, as on the CPU (Note [Sums]); it is as
/// long as the share of a thread of a full team, so that a team of fewer, as the simulator's, does not round more.
template <class F>
struct Simple {
  using In = std::conditional_t<std::is_same_v<typename F::In, uint8_t>, bool, typename F::In>;
  using Acc = typename F::Acc;
  static constexpr int kOuts = 1;
  RUSH_FN static Acc none() { return Acc(F::zero()); }
  template <class Element>
  RUSH_FN static Acc take(int64_t first, int64_t end, int64_t step, int64_t share, const FoldOptions& o,
                          const Element& element) {
    const int64_t length = share < 32 ? share : 32;
    Acc all = none();
    for (int64_t i = first; i < end;) {
      auto lane = F::zero();
      for (int64_t k = 0; k < length && i < end; ++k, i += step) lane = F::step(lane, element(i), o.power);
      all = F::join(all, Acc(lane));
    }
    return all;
  }
  RUSH_FN static Acc join(Acc a, Acc b) { return F::join(a, b); }
  RUSH_FN static void finish(Acc a, const FoldOptions& o, char* const* outs, const DType* dtypes, int64_t i) {
    store(outs[0], dtypes[0], i, F::finish(a, o));
  }
};

/// Value and index of the extreme, the first of equals; F is Max or Min.
template <class F>
struct Arg {
  using In = typename F::In;
  struct Acc {
    int64_t index;  // -1: none yet
    In value;
  };
  static constexpr int kOuts = 2;
  RUSH_FN static Acc none() { return {-1, In(0)}; }
  RUSH_FN static Acc join(Acc a, Acc b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.index < b.index ? a : b;
    return F::join(a.value, b.value) == a.value ? a : b;
  }
  template <class Element>
  RUSH_FN static Acc take(int64_t first, int64_t end, int64_t step, int64_t, const FoldOptions&,
                          const Element& element) {
    Acc all = none();
    for (int64_t i = first; i < end; i += step) all = join(all, {i, element(i)});
    return all;
  }
  RUSH_FN static void finish(Acc a, const FoldOptions&, char* const* outs, const DType* dtypes, int64_t i) {
    store(outs[0], dtypes[0], i, a.value);
    store(outs[1], dtypes[1], i, a.index);
  }
};

/// Variance and mean, from sums of the distances from the first element met.
template <class T>
struct Moments {
  using In = T;
  struct Acc {
    double shift, sum, square, count;
  };
  static constexpr int kOuts = 2;
  RUSH_FN static Acc none() { return {0, 0, 0, 0}; }
  template <class Element>
  RUSH_FN static Acc take(int64_t first, int64_t end, int64_t step, int64_t, const FoldOptions&,
                          const Element& element) {
    Acc a = none();
    if (first < end) a.shift = double(element(first));
    for (int64_t i = first; i < end; i += step) {
      const double d = double(element(i)) - a.shift;
      a.sum += d;
      a.square += d * d;
      a.count += 1;
    }
    return a;
  }
  RUSH_FN static Acc join(Acc a, Acc b) {
    if (b.count == 0 || a.count == 0) return a.count == 0 ? b : a;
    const double d = b.shift - a.shift;
    a.square += b.square + 2 * d * b.sum + d * d * b.count;
    a.sum += b.sum + d * b.count;
    a.count += b.count;
    return a;
  }
  RUSH_FN static void finish(Acc a, const FoldOptions& o, char* const* outs, const DType* dtypes, int64_t i) {
    const double divisor = a.count - o.correction, spread = a.square - a.sum * a.sum / a.count;
    const double variance = (spread < 0 ? 0 : spread) / (divisor > 0 ? divisor : 0);
    store(outs[0], dtypes[0], i, o.root ? formula::sqrt(variance) : variance);
    store(outs[1], dtypes[1], i, a.shift + a.sum / a.count);
  }
};

// ---- the kernels

/// Team u folds part u % splits of result u / splits.
template <class R>
struct FoldParts {
  using Acc = typename R::Acc;
  const char* x;
  Acc* parts;  // null where there is one part, which then is finished at once
  char* outs[2];
  Axes kept, reduced;
  int64_t n, splits;
  FoldOptions options;
  DType dtype, out_dtypes[2];

  RUSH_FN void operator()(int64_t u) const {
    const int64_t result = u / splits, part = u - result * splits, length = (n + splits - 1) / splits;
    const int64_t begin = part * length, end = n < begin + length ? n : begin + length;
    const int64_t base = kept.place(result);
    const Acc mine = R::take(begin + threadIdx.x, end, blockDim.x, (length + kTeam - 1) / kTeam, options,
                             [&](int64_t i) { return load<typename R::In>(x, dtype, base + reduced.place(i)); });
    const Acc all = combine(mine, [](Acc a, Acc b) { return R::join(a, b); });
    if (threadIdx.x != 0) return;
    if (parts)
      parts[u] = all;
    else
      R::finish(all, options, outs, out_dtypes, result);
  }
};

template <class R>
struct FoldJoin {
  using Acc = typename R::Acc;
  const Acc* parts;
  char* outs[2];
  int64_t splits;
  FoldOptions options;
  DType out_dtypes[2];

  RUSH_FN void operator()(int64_t result) const {
    Acc all = R::none();
    for (int64_t k = 0; k < splits; ++k) all = R::join(all, parts[result * splits + k]);
    R::finish(all, options, outs, out_dtypes, result);
  }
};

}  // namespace rush::cuda
