// The folds, compiled for every instruction set: plain loops over lanes that the compiler vectorises.
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

constexpr int kLanes = 64, kSteps = 32;

template <class F>
struct Simple {
  using T = typename F::In;
  using Acc = typename F::Acc;
  using Lane = typename F::Lane;

  static void start(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Acc*>(acc)[i] = Acc(F::zero());
  }
  static void run(void* acc, const void* data, int64_t n, int64_t, const FoldOptions& options) {
    const T* x = static_cast<const T*>(data);
    const double p = options.power;
    Acc total = *static_cast<Acc*>(acc);
    while (n >= kLanes) {
      Lane lanes[kLanes];
      const int64_t steps = n / kLanes < kSteps ? n / kLanes : kSteps;
      for (int l = 0; l < kLanes; ++l) lanes[l] = F::step(F::zero(), x[l], p);
      for (int64_t s = 1; s < steps; ++s)
        for (int l = 0; l < kLanes; ++l) lanes[l] = F::step(lanes[l], x[s * kLanes + l], p);
      int64_t taken = steps * kLanes;
      if (steps < kSteps) {  // then what is left fits, too
        for (int64_t l = 0; l < n - taken; ++l) lanes[l] = F::step(lanes[l], x[taken + l], p);
        taken = n;
      }
      Acc wide[kLanes];
      for (int l = 0; l < kLanes; ++l) wide[l] = Acc(lanes[l]);
      for (int half = kLanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) wide[l] = F::join(wide[l], wide[l + half]);
      total = F::join(total, wide[0]);
      x += taken;
      n -= taken;
    }
    for (int64_t i = 0; i < n; ++i) total = F::join(total, Acc(F::step(F::zero(), x[i], p)));
    *static_cast<Acc*>(acc) = total;
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t,
                   const FoldOptions& options) {
    const T* HWY_RESTRICT x = static_cast<const T*>(data);
    Acc* HWY_RESTRICT a = static_cast<Acc*>(acc);
    const double p = options.power;
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8, x += 8 * stride)
      for (int64_t c = 0; c < cols; ++c) {
        const T* q = x + c;
        if constexpr (std::is_same_v<Lane, Acc>) {
          Lane l = a[c];
          for (int k = 0; k < 8; ++k) l = F::step(l, q[k * stride], p);
          a[c] = l;
        } else {
          Lane l = F::step(F::zero(), q[0], p);
          for (int k = 1; k < 8; ++k) l = F::step(l, q[k * stride], p);
          a[c] = F::join(a[c], Acc(l));
        }
      }
    for (; r < rows; ++r, x += stride)
      for (int64_t c = 0; c < cols; ++c) a[c] = F::join(a[c], Acc(F::step(F::zero(), x[c], p)));
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
      const auto is_best = [&](int64_t k) { return (x[i + k] == best) | is_nan(x[i + k]); };
      int64_t k = 0;
      for (bool found = false; k + kLanes <= size; k += kLanes) {  // in which lanes, without a branch for each
        for (int l = 0; l < kLanes; ++l) found |= is_best(k + l);
        if (found) break;
      }
      while (k + 1 < size && !is_best(k)) ++k;
      a = {at + i + k, best};
    }
  }
  static void rows(void* acc, const void* data, int64_t stride, int64_t rows, int64_t cols, int64_t at,
                   const FoldOptions&) {
    Acc* a = static_cast<Acc*>(acc);
    constexpr int64_t width = 256;
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
using C64 = std::complex<float>;
using C128 = std::complex<double>;

const Fold* find(FoldKind kind, DType t) {
  struct Row {
    const Fold *boolean, *integer, *single, *twice, *c64, *c128;
  };
  static constexpr Row rows[] = {
      {nullptr, simple<Sum<int64_t>>, simple<Sum<float>>, simple<Sum<double>>, simple<Sum<C64>>, simple<Sum<C128>>},
      {nullptr, simple<Sum<int64_t>>, simple<NanSum<float>>, simple<NanSum<double>>, simple<NanSum<C64>>,
       simple<NanSum<C128>>},
      {nullptr, simple<Prod<int64_t>>, simple<Prod<float>>, simple<Prod<double>>, simple<Prod<C64>>,
       simple<Prod<C128>>},
      {nullptr, simple<Max<int64_t>>, simple<Max<float>>, simple<Max<double>>, nullptr, nullptr},
      {nullptr, simple<Min<int64_t>>, simple<Min<float>>, simple<Min<double>>, nullptr, nullptr},
      {simple<Any>, nullptr, nullptr, nullptr, nullptr, nullptr},
      {simple<All>, nullptr, nullptr, nullptr, nullptr, nullptr},
      {simple<Count>, nullptr, nullptr, nullptr, nullptr, nullptr},
      {nullptr, nullptr, simple<SumAbs<float>>, simple<SumAbs<double>>, nullptr, nullptr},
      {nullptr, nullptr, simple<SumSquare<float>>, simple<SumSquare<double>>, nullptr, nullptr},
      {nullptr, nullptr, simple<SumPower<float>>, simple<SumPower<double>>, nullptr, nullptr},
      {nullptr, nullptr, simple<MaxAbs<float>>, simple<MaxAbs<double>>, nullptr, nullptr},
      {nullptr, nullptr, simple<MinAbs<float>>, simple<MinAbs<double>>, nullptr, nullptr},
      {nullptr, &Arg<Max<int64_t>>::fold, &Arg<Max<float>>::fold, &Arg<Max<double>>::fold, nullptr, nullptr},
      {nullptr, &Arg<Min<int64_t>>::fold, &Arg<Min<float>>::fold, &Arg<Min<double>>::fold, nullptr, nullptr},
      {nullptr, nullptr, &Moments<float>::fold, &Moments<double>::fold, nullptr, nullptr},
  };
  const Row& row = rows[int(kind)];
  if (row.boolean) return row.boolean;
  switch (t) {
    case kFloat16:
    case kBFloat16:
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
