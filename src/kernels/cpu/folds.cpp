// The folds, compiled for every instruction set: lanes that stay in registers.
#include <algorithm>
#include <type_traits>

#include "kernels/cpu/fold.h"
#include "kernels/folds.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/folds.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace m = formula;

using namespace folds;

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kSteps = 32;    // what a lane of floats takes before it goes to the accumulator
constexpr int64_t kFew = 24;  // elements that are not worth lanes

// ---- steps on vectors, as the folds' own are on numbers; F() says whose

template <class T, class D, class V>
HWY_INLINE V step_of(Sum<T>, D, V a, V x) {
  return hn::Add(a, x);
}
template <class T, class D, class V>
HWY_INLINE V step_of(NanSum<T>, D, V a, V x) {
  return hn::Add(a, hn::IfThenZeroElse(hn::IsNaN(x), x));
}
template <class T, class D, class V>
HWY_INLINE V step_of(Prod<T>, D, V a, V x) {
  return hn::Mul(a, x);
}
template <class T, class D, class V>
HWY_INLINE V step_of(Max<T>, D, V a, V x) {
  if constexpr (is_integer<T>)
    return hn::Max(a, x);
  else
    return hn::IfThenElse(hn::Or(hn::Gt(x, a), hn::IsNaN(x)), x, a);
}
template <class T, class D, class V>
HWY_INLINE V step_of(Min<T>, D, V a, V x) {
  if constexpr (is_integer<T>)
    return hn::Min(a, x);
  else
    return hn::IfThenElse(hn::Or(hn::Lt(x, a), hn::IsNaN(x)), x, a);
}
template <class T, class D, class V>
HWY_INLINE V step_of(MaxAbs<T>, D d, V a, V x) {
  return step_of(Max<T>(), d, a, hn::Abs(x));
}
template <class T, class D, class V>
HWY_INLINE V step_of(MinAbs<T>, D d, V a, V x) {
  return step_of(Min<T>(), d, a, hn::Abs(x));
}
template <class T, class D, class V>
HWY_INLINE V step_of(SumAbs<T>, D, V a, V x) {
  return hn::Add(a, hn::Abs(x));
}
template <class T, class D, class V>
HWY_INLINE V step_of(SumSquare<T>, D, V a, V x) {
  return hn::Add(a, hn::Mul(x, x));
}
template <class D, class V>
HWY_INLINE V step_of(Any, D, V a, V x) {
  return hn::Or(a, x);
}
template <class D, class V>
HWY_INLINE V step_of(All, D, V a, V x) {
  return hn::And(a, x);
}
template <class D, class V>
HWY_INLINE V step_of(Count, D, V a, V x) {
  return hn::Add(a, x);
}

template <class F>
constexpr bool has_vectors =
    std::is_arithmetic_v<typename F::Lane>&& requires(hn::Vec<hn::ScalableTag<typename F::Lane>> v) {
  step_of(F(), hn::ScalableTag<typename F::Lane>(), v, v);
};

/// Elements as lanes.
template <class D, class T>
HWY_INLINE hn::Vec<D> lanes_of(D d, const T* x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::bfloat16_t, D>(), reinterpret_cast<const hwy::bfloat16_t*>(x)));
  else if constexpr (std::is_same_v<T, hn::TFromD<D>>)
    return hn::LoadU(d, x);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), x));
}

/// T is what elements arrive as.
template <class F, class T = typename F::In>
struct Simple {
  using Acc = typename F::Acc;
  using Lane = typename F::Lane;
  using In = typename F::In;
  static constexpr bool kVectors = has_vectors<F>, kSame = std::is_same_v<Lane, Acc>;
  static constexpr int kLanes = 256 / sizeof(Lane);

  static void start(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = Acc(F::zero());
  }
  /// Each lane takes `steps` elements, and those of the first `rest` lanes one more.
  static HWY_INLINE void take_lanes(Lane* lanes, const T* x, int64_t steps, int64_t rest, double p) {
    if constexpr (kVectors) {
      const hn::ScalableTag<Lane> d;
      constexpr int N = int(hn::MaxLanes(d)), count = kLanes / N;
      hn::Vec<decltype(d)> v[count];
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) v[k] = hn::Set(d, F::zero());
      for (int64_t s = 0; s < steps; ++s, x += kLanes) {
#pragma GCC unroll 16
        for (int k = 0; k < count; ++k) v[k] = step_of(F(), d, v[k], lanes_of(d, x + k * N));
      }
#pragma GCC unroll 16
      for (int k = 0; k < count; ++k) hn::Store(v[k], d, lanes + k * N);
    } else {
      for (int l = 0; l < kLanes; ++l) lanes[l] = F::zero();
      for (int64_t s = 0; s < steps; ++s, x += kLanes)
        for (int l = 0; l < kLanes; ++l) lanes[l] = F::step(lanes[l], In(x[l]), p);
    }
    for (int64_t l = 0; l < rest; ++l) lanes[l] = F::step(lanes[l], In(x[l]), p);
  }
  static void run(void* acc, const void* data, int64_t n, int64_t, const FoldOptions& options) {
    const T* x = static_cast<const T*>(data);
    const double p = options.power;
    Acc total = *static_cast<Acc*>(acc);
    if (n < kFew) {
      for (int64_t i = 0; i < n; ++i) total = F::join(total, Acc(F::step(F::zero(), In(x[i]), p)));
      *static_cast<Acc*>(acc) = total;
      return;
    }
    HWY_ALIGN Acc wide[kLanes];
    for (bool first = true; n > 0; first = false) {
      HWY_ALIGN Lane lanes[kLanes];
      const int64_t whole = n / kLanes, steps = kSame || whole < kSteps ? whole : kSteps;
      const int64_t rest = kSame || steps < kSteps ? n - steps * kLanes : 0;
      take_lanes(lanes, x, steps, rest, p);
      if (first)
        for (int l = 0; l < kLanes; ++l) wide[l] = Acc(lanes[l]);
      else
        for (int l = 0; l < kLanes; ++l) wide[l] = F::join(wide[l], Acc(lanes[l]));
      x += steps * kLanes + rest;
      n -= steps * kLanes + rest;
    }
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) wide[l] = F::join(wide[l], wide[l + half]);
    *static_cast<Acc*>(acc) = F::join(total, wide[0]);
  }

  /// Columns [c, cols) of kRows rows go to accumulators or to lanes, a vector of them at a time and the rest by
  /// narrower ones.
  template <int kRows, int64_t kWidth, class A>
  static HWY_INLINE void take_columns(A* HWY_RESTRICT a, const T* HWY_RESTRICT x, int64_t stride, int64_t c,
                                      int64_t cols) {
    constexpr bool same = std::is_same_v<A, Lane>;
    const hn::CappedTag<Lane, kWidth> d;
    for (; c + kWidth <= cols; c += kWidth) {
      auto v = hn::Set(d, F::zero());
      if constexpr (same) v = hn::LoadU(d, a + c);
#pragma GCC unroll 16
      for (int k = 0; k < kRows; ++k) v = step_of(F(), d, v, lanes_of(d, x + k * stride + c));
      if constexpr (same) {
        hn::StoreU(v, d, a + c);
      } else if constexpr (std::is_same_v<Lane, float> && kWidth > 1) {  // whose lanes are added up, all of them
        const hn::Half<decltype(d)> half;
        const hn::Rebind<double, decltype(half)> wide;
        const auto add = [&](double* to, auto part) HWY_ATTR {
          hn::StoreU(hn::Add(hn::LoadU(wide, to), hn::PromoteTo(wide, part)), wide, to);
        };
        add(a + c, hn::LowerHalf(half, v));
        add(a + c + kWidth / 2, hn::UpperHalf(half, v));
      } else {
        HWY_ALIGN Lane lanes[kWidth];
        hn::Store(v, d, lanes);
        for (int64_t l = 0; l < kWidth; ++l) a[c + l] = F::join(a[c + l], Acc(lanes[l]));
      }
    }
    if constexpr (kWidth > 1) {
      if (c < cols) take_columns<kRows, (kWidth + 3) / 4>(a, x, stride, c, cols);
    }
  }
  template <int kRows, class A>
  static void take_rows(A* a, const T* x, int64_t stride, int64_t rows, int64_t cols, double p) {
    if constexpr (kVectors) {
      constexpr int64_t N = hn::MaxLanes(hn::ScalableTag<Lane>());
      for (; rows >= kRows; rows -= kRows, x += kRows * stride) take_columns<kRows, N>(a, x, stride, 0, cols);
      for (; rows > 0; --rows, x += stride) take_columns<1, N>(a, x, stride, 0, cols);
    } else {
      for (int64_t r = 0; r < rows; ++r, x += stride)
        for (int64_t c = 0; c < cols; ++c) a[c] = F::join(a[c], Acc(F::step(F::zero(), In(x[c]), p)));
    }
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   const FoldOptions& options) {
    const T* x = static_cast<const T*>(data);
    Acc* a = static_cast<Acc*>(acc);
    const double p = options.power;
    // Few rows are in the cache as a rule, and long ones are fetched ahead side by side. Short ones are read best as
    // they lie, in pairs whose lanes wait in L1.
    constexpr int64_t kLong = 1024;
    if (cols >= kLong) return take_rows<16>(a, x, stride, rows, cols, p);
    if (rows <= kSteps || !kVectors) return take_rows<8>(a, x, stride, rows, cols, p);
    if constexpr (kSame) return take_rows<2>(a, x, stride, rows, cols, p);
    HWY_ALIGN Lane lanes[kLong];
    for (int64_t r = 0; r < rows; r += kSteps) {
      std::fill_n(lanes, cols, F::zero());
      take_rows<2>(lanes, x + r * stride, stride, std::min<int64_t>(rows - r, kSteps), cols, p);
      for (int64_t l = 0; l < cols; ++l) a[l] = F::join(a[l], Acc(lanes[l]));
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    Acc* a = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = F::join(a[i], static_cast<const Acc*>(other)[i]);
  }
  static void finish(const void* acc, int64_t n, const FoldOptions& options, void* const* out) {
    auto* to = static_cast<typename F::Result*>(out[0]);
    for (int64_t i = 0; i < n; ++i) to[i] = F::finish(static_cast<const Acc*>(acc)[i], options);
  }
  static constexpr DType in = dtype_of<std::conditional_t<std::is_same_v<T, uint8_t>, bool, T>>;
  static constexpr Fold fold{in, {dtype_of<typename F::Result>, kBool}, sizeof(Acc), start, run, rows, merge, finish};
};

// ---- value and index of the largest or smallest; F is Max or Min

template <class F>
struct Arg {
  using T = typename F::In;
  struct Acc {
    int64_t index;  // -1: none yet
    T value;
  };
  static bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>) return x != x;
    return false;
  }
  static bool better(T a, T b) {  // and so not where both are NaN
    return !is_nan(b) & (F::step(b, a, 0) != b);
  }
  template <class D, class V>
  static HWY_INLINE hn::Mask<D> is_best(D, V x, V best) {
    if constexpr (std::is_floating_point_v<T>)
      return hn::Or(hn::Eq(x, best), hn::IsNaN(x));
    else
      return hn::Eq(x, best);
  }
  static void take(Acc& a, T value, int64_t index) {
    if (a.index < 0 || better(value, a.value)) a = {index, value};
  }
  static void start(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = {-1, T(0)};
  }
  static void run(void* acc, const void* data, int64_t n, int64_t at, const FoldOptions& options) {
    const T* x = static_cast<const T*>(data);
    Acc& a = *static_cast<Acc*>(acc);
    constexpr int64_t block = 1024;
    for (int64_t i = 0; i < n; i += block) {  // a block's best first; its place only where it is better than all before
      const int64_t size = n - i < block ? n - i : block;
      T best = F::zero();
      Simple<F>::run(&best, x + i, size, 0, options);
      if (a.index >= 0 && !better(best, a.value)) continue;
      const hn::ScalableTag<T> d;
      constexpr int64_t N = int64_t(hn::MaxLanes(d));
      const auto tops = hn::Set(d, best);
      int64_t k = 0;
      for (; k + 2 * N <= size; k += 2 * N)
        if (!hn::AllFalse(
                d, hn::Or(is_best(d, hn::LoadU(d, x + i + k), tops), is_best(d, hn::LoadU(d, x + i + k + N), tops))))
          break;
      while (k + 1 < size && !(x[i + k] == best || is_nan(x[i + k]))) ++k;
      a = {at + i + k, best};
    }
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t at,
                   const FoldOptions&) {
    Acc* a = static_cast<Acc*>(acc);
    constexpr int64_t width = 4096;
    T value[width];
    int32_t row[width];
    for (int64_t first = 0; first < cols; first += width) {
      const int64_t n = cols - first < width ? cols - first : width;
      for (int64_t done = 0; done < rows; done += int64_t(1) << 30) {
        const int64_t some = rows - done < (int64_t(1) << 30) ? rows - done : int64_t(1) << 30;
        const T* x = static_cast<const T*>(data) + first + done * stride;
        for (int64_t c = 0; c < n; ++c) value[c] = x[c], row[c] = 0;
        for (int64_t r = 1; r < some; ++r) {
          const T* HWY_RESTRICT q = x + r * stride;
          for (int64_t c = 0; c < n; ++c) {
            const bool take = !is_nan(value[c]) & (F::step(value[c], q[c], 0) != value[c]);
            value[c] = take ? q[c] : value[c];
            row[c] = take ? int32_t(r) : row[c];
          }
        }
        for (int64_t c = 0; c < n; ++c) take(a[first + c], value[c], at + done + row[c]);
      }
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    const Acc* o = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < n; ++i)
      if (o[i].index >= 0) take(static_cast<Acc*>(acc)[i], o[i].value, o[i].index);
  }
  static void finish(const void* acc, int64_t n, const FoldOptions&, void* const* out) {
    const Acc* a = static_cast<const Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) {
      static_cast<T*>(out[0])[i] = a[i].value;
      static_cast<int64_t*>(out[1])[i] = a[i].index;
    }
  }
  static constexpr Fold fold{dtype_of<T>, {dtype_of<T>, kInt64}, sizeof(Acc), start, run, rows, merge, finish};
};

// ---- mean and variance: sums of the distances from the first element and of their squares, in double

template <class T>
struct Moments {
  struct Acc {
    double shift, sum, square, count;
  };
  static void start(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = {0, 0, 0, 0};
  }
  static void run(void* acc, const void* data, int64_t n, int64_t, const FoldOptions&) {
    const T* x = static_cast<const T*>(data);
    Acc& a = *static_cast<Acc*>(acc);
    if (a.count == 0) a.shift = double(x[0]);
    constexpr int lanes = 16;
    double sum[lanes] = {}, square[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int l = 0; l < lanes; ++l) {
        const double d = double(x[i + l]) - a.shift;
        sum[l] += d;
        square[l] += d * d;
      }
    for (; i < n; ++i) {
      const double d = double(x[i]) - a.shift;
      sum[0] += d;
      square[0] += d * d;
    }
    for (int l = 0; l < lanes; ++l) a.sum += sum[l], a.square += square[l];
    a.count += double(n);
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   const FoldOptions&) {
    constexpr int64_t width = 256;
    double shift[width], sum[width], square[width];
    for (int64_t first = 0; first < cols; first += width) {
      const T* x = static_cast<const T*>(data) + first;
      Acc* a = static_cast<Acc*>(acc) + first;
      const int64_t n = cols - first < width ? cols - first : width;
      for (int64_t c = 0; c < n; ++c) {
        if (a[c].count == 0) a[c].shift = double(x[c]);
        shift[c] = a[c].shift, sum[c] = 0, square[c] = 0;
      }
      const auto take_rows = [&]<int64_t count>(int64_t r, std::integral_constant<int64_t, count>) {
        const T* HWY_RESTRICT q = x + r * stride;
        for (int64_t c = 0; c < n; ++c) {
          double total = sum[c], squares = square[c];
          for (int64_t k = 0; k < count; ++k) {
            const double d = double(q[k * stride + c]) - shift[c];
            total += d;
            squares += d * d;
          }
          sum[c] = total, square[c] = squares;
        }
      };
      int64_t r = 0;
      for (; r + 8 <= rows; r += 8) take_rows(r, std::integral_constant<int64_t, 8>());
      for (; r < rows; ++r) take_rows(r, std::integral_constant<int64_t, 1>());
      for (int64_t c = 0; c < n; ++c) a[c].sum += sum[c], a[c].square += square[c], a[c].count += double(rows);
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    Acc* as = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) {
      const Acc& b = static_cast<const Acc*>(other)[i];
      Acc& a = as[i];
      if (b.count == 0) continue;
      if (a.count == 0) {
        a = b;
        continue;
      }
      const double d = b.shift - a.shift;
      a.square += b.square + 2 * d * b.sum + d * d * b.count;
      a.sum += b.sum + d * b.count;
      a.count += b.count;
    }
  }
  static void finish(const void* acc, int64_t n, const FoldOptions& o, void* const* out) {
    for (int64_t i = 0; i < n; ++i) {
      const Acc& a = static_cast<const Acc*>(acc)[i];
      const double divisor = a.count - o.correction, spread = a.square - a.sum * a.sum / a.count;
      const double variance = (spread < 0 ? 0 : spread) / (divisor > 0 ? divisor : 0);
      static_cast<double*>(out[0])[i] = o.root ? m::sqrt(variance) : variance;
      static_cast<double*>(out[1])[i] = a.shift + a.sum / a.count;
    }
  }
  static constexpr Fold fold{dtype_of<T>, {kFloat64, kFloat64}, sizeof(Acc), start, run, rows, merge, finish};
};

// ---- the table

template <class F>
constexpr const Fold* simple = &Simple<F>::fold;
template <class F>
constexpr const Fold* of_half = &Simple<F, BFloat16>::fold;
using C64 = std::complex<float>;
using C128 = std::complex<double>;

const Fold* find(FoldKind kind, DType t) {
  struct Row {
    const Fold *boolean, *integer, *half, *single, *twice, *c64 = nullptr, *c128 = nullptr;
  };
  static constexpr Row rows[] = {
      {nullptr, simple<Sum<int64_t>>, of_half<Sum<float>>, simple<Sum<float>>, simple<Sum<double>>, simple<Sum<C64>>,
       simple<Sum<C128>>},
      {nullptr, simple<Sum<int64_t>>, of_half<NanSum<float>>, simple<NanSum<float>>, simple<NanSum<double>>,
       simple<NanSum<C64>>, simple<NanSum<C128>>},
      {nullptr, simple<Prod<int64_t>>, nullptr, simple<Prod<float>>, simple<Prod<double>>, simple<Prod<C64>>,
       simple<Prod<C128>>},
      {nullptr, simple<Max<int64_t>>, of_half<Max<float>>, simple<Max<float>>, simple<Max<double>>},
      {nullptr, simple<Min<int64_t>>, of_half<Min<float>>, simple<Min<float>>, simple<Min<double>>},
      {simple<Any>, nullptr, nullptr, nullptr, nullptr},
      {simple<All>, nullptr, nullptr, nullptr, nullptr},
      {simple<Count>, nullptr, nullptr, nullptr, nullptr},
      {nullptr, nullptr, of_half<SumAbs<float>>, simple<SumAbs<float>>, simple<SumAbs<double>>},
      {nullptr, nullptr, nullptr, simple<SumSquare<float>>, simple<SumSquare<double>>},
      {nullptr, nullptr, nullptr, simple<SumPower<float>>, simple<SumPower<double>>},
      {nullptr, nullptr, of_half<MaxAbs<float>>, simple<MaxAbs<float>>, simple<MaxAbs<double>>},
      {nullptr, nullptr, of_half<MinAbs<float>>, simple<MinAbs<float>>, simple<MinAbs<double>>},
      {nullptr, &Arg<Max<int64_t>>::fold, nullptr, &Arg<Max<float>>::fold, &Arg<Max<double>>::fold},
      {nullptr, &Arg<Min<int64_t>>::fold, nullptr, &Arg<Min<float>>::fold, &Arg<Min<double>>::fold},
      {nullptr, nullptr, nullptr, &Moments<float>::fold, &Moments<double>::fold},
  };
  const Row& row = rows[int(kind)];
  if (row.boolean) return row.boolean;
  switch (t) {
    case kBFloat16:
      return row.half ? row.half : row.single;
    case kFloat16:
    case kFloat32:
      return row.single;
    case kFloat64:
      return row.twice;
    case kComplex64:
      return row.c64;
    case kComplex128:
      return row.c128;
    default:
      return row.integer;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(find);
const Fold& find_fold(FoldKind kind, DType t) {
  const Fold* f = HWY_DYNAMIC_DISPATCH(find)(kind, t);
  check<NotImplementedError>(f, "not implemented for '", scalar_name(t), "'");
  return *f;
}
}  // namespace rush::cpu
#endif
