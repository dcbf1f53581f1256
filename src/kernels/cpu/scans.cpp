// Scans see x as (outer, n, inner). A long row is summed in segments first, so that several of them can be scanned at a
// time: a chain of additions alone waits for the latency of each.
#include "kernels/cpu/scans.h"

#include "kernels/cuda/kernels.h"

#include <cmath>
#include <memory>

#include "kernels/math.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scans.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// out[i] = start + x[0] + ... + x[i], added in double. A vector is scanned in as many steps as doubling takes.
void running_sums(float* out, const float* x, int64_t n, double start) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int64_t N = int64_t(hn::MaxLanes(d));
  const auto lane = hn::Iota(di, 0), last = hn::Set(di, N - 1);
  const auto before = [&](auto v, int64_t step) HWY_ATTR {  // lane i gets lane i - step, or 0
    const auto from = hn::Sub(lane, hn::Set(di, step));
    const auto moved = hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Max(from, hn::Zero(di))));
    return hn::IfThenElseZero(hn::RebindMask(d, hn::Gt(lane, hn::Set(di, step - 1))), moved);
  };
  auto carry = hn::Set(d, start);
  const int64_t whole = n - n % N;
  for (int64_t i = 0; i < whole; i += N) {
    auto v = hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    v = hn::Add(v, before(v, 1));
    if constexpr (N > 2) v = hn::Add(v, before(v, 2));
    if constexpr (N > 4) v = hn::Add(v, before(v, 4));
    hn::StoreU(hn::DemoteTo(narrow, hn::Add(v, carry)), narrow, out + i);
    carry = hn::Add(carry, hn::TableLookupLanes(v, hn::IndicesFromVec(d, last)));
  }
  double sum = hn::GetLane(carry);
  for (int64_t i = whole; i < n; ++i) {
    sum += double(x[i]);
    out[i] = float(sum);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(running_sums);

namespace {

template <class T>
constexpr bool is_complex_type = false;
template <class R>
constexpr bool is_complex_type<std::complex<R>> = true;

template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<std::complex<float>> {
  using type = std::complex<double>;
};
template <class T>
using Wide = typename WideOf<T>::type;

struct Add {
  static constexpr bool kSegments = true;
  template <class T>
  RUSH_FN static T zero() {
    return T(0);
  }
  template <class T>
  RUSH_FN T operator()(T a, T x) const {
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(a) + uint64_t(x));
    else
      return a + x;
  }
};
struct Multiply {
  static constexpr bool kSegments = false;  // a segment's product may overflow where the scan doesn't
  template <class T>
  RUSH_FN static T zero() {
    return T(1);
  }
  template <class T>
  RUSH_FN T operator()(T a, T x) const {
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(a) * uint64_t(x));
    else
      return a * x;
  }
};
struct LogAddExp {
  static constexpr bool kSegments = false;
  template <class T>
  static T zero() {
    return T(-formula::kInf);
  }
  template <class T>
  T operator()(T a, T x) const {
    if constexpr (is_complex_type<T>) {  // not the principal value: the imaginary part goes on as it does in PyTorch
      const T high = a.real() < x.real() ? x : a, low = a.real() < x.real() ? a : x;
      if (std::isinf(high.real())) return high;
      return high + std::log(T(1) + std::exp(low - high));
    } else {
      const T top = a > x || a != a ? a : x, low = a > x || a != a ? x : a;
      if (std::isinf(top) || top != top) return top;
      return top + std::log1p(std::exp(low - top));
    }
  }
};

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
  Shape(Ints sizes, int64_t dim) {
    for (int64_t d = 0; d < int64_t(sizes.size()); ++d) (d < dim ? outer : d == dim ? n : inner) *= sizes[size_t(d)];
  }
};

template <class T, class F>
void scan_row(T* out, const T* x, int64_t n, F f) {
  using W = Wide<T>;
  constexpr int64_t length = 1024, together = 4;
  constexpr bool kVectors = std::is_same_v<T, float> && std::is_same_v<F, Add>;
  const int64_t segments = F::kSegments ? n / (length * together) * together : 0, whole = segments * length;
  W start = F::template zero<W>();
  if (segments > 0) {
    const std::unique_ptr<W[]> starts(new W[size_t(segments)]);
    parallel_for(0, segments, 32, [&](int64_t lo, int64_t hi) {
      for (int64_t s = lo; s < hi; ++s) {
        W sum[8] = {};
        for (int64_t i = s * length; i < (s + 1) * length; i += 8)
          for (int l = 0; l < 8; ++l) sum[l] = f(sum[l], W(x[i + l]));
        for (int l = 1; l < 8; ++l) sum[0] = f(sum[0], sum[l]);
        starts[size_t(s)] = sum[0];
      }
    });
    for (int64_t s = 0; s < segments; ++s) {
      const W sum = starts[size_t(s)];
      starts[size_t(s)] = start;
      start = f(start, sum);
    }
    parallel_for(0, segments / together, 32 / together, [&](int64_t lo, int64_t hi) {
      for (int64_t p = lo; p < hi; ++p) {
        const int64_t first = p * together;
        if constexpr (kVectors) {
          for (int64_t s = first; s < first + together; ++s)
            HWY_DYNAMIC_DISPATCH(running_sums)(out + s * length, x + s * length, length, starts[size_t(s)]);
          continue;
        }
        W a[together];
        for (int64_t k = 0; k < together; ++k) a[k] = starts[size_t(first + k)];
        const int64_t at = first * length;
        for (int64_t i = 0; i < length; ++i)
          for (int64_t k = 0; k < together; ++k) {
            a[k] = f(a[k], W(x[at + k * length + i]));
            out[at + k * length + i] = T(a[k]);
          }
      }
    });
  }
  if constexpr (kVectors) {
    HWY_DYNAMIC_DISPATCH(running_sums)(out + whole, x + whole, n - whole, start);
    return;
  }
  for (int64_t i = whole; i < n; ++i) {
    start = f(start, W(x[i]));
    out[i] = T(start);
  }
}

template <class T, class F>
void scan(T* out, const T* x, const Shape& s, F f) {
  using W = Wide<T>;
  if (s.inner == 1) {
    parallel_for(0, s.outer, std::max<int64_t>(16384 / s.n, 1), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r) scan_row(out + r * s.n, x + r * s.n, s.n, f);
    });
    return;
  }
  constexpr int64_t width = 128;
  const int64_t blocks = (s.inner + width - 1) / width;
  parallel_for(0, s.outer * blocks, std::max<int64_t>(16384 / (s.n * std::min(s.inner, width)), 1),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t u = lo; u < hi; ++u) {
                   const int64_t col = u % blocks * width, cols = std::min(width, s.inner - col);
                   const int64_t at = u / blocks * s.n * s.inner + col;
                   W a[width];
                   std::fill_n(a, cols, F::template zero<W>());
                   for (int64_t i = 0; i < s.n; ++i)
                     for (int64_t c = 0; c < cols; ++c) {
                       a[c] = f(a[c], W(x[at + i * s.inner + c]));
                       out[at + i * s.inner + c] = T(a[c]);
                     }
                 }
               });
}

/// Small integers are scanned as int64, half types as float.
DType scan_type(DType t) { return is_integral(t) ? kInt64 : is_half(t) ? kFloat32 : t; }

template <class F>
void scan_any(Tensor& out, const Tensor& x, int64_t dim, F f) {
  if (out.numel() == 0) return;
  const DType t = scan_type(out.dtype());
  // As PyTorch does, elements take out's dtype first.
  const Tensor typed = x.dtype() == out.dtype() ? x : cast(x, out.dtype());
  const Tensor in = contiguous(typed.dtype() == t ? typed : cast(typed, t));
  const Tensor to = out.dtype() == t && out.is_contiguous() ? out : allocate({out.sizes(), t});
  const Shape shape(x.sizes(), dim);
  const auto run = [&]<class T>() { scan(to.data<T>(), in.data<T>(), shape, f); };
  switch (t) {
    case kFloat32:
      run.template operator()<float>();
      break;
    case kFloat64:
      run.template operator()<double>();
      break;
    case kComplex64:
      run.template operator()<std::complex<float>>();
      break;
    case kComplex128:
      run.template operator()<std::complex<double>>();
      break;
    default:
      if constexpr (std::is_same_v<F, LogAddExp>)
        raise<NotImplementedError>("not implemented for '", scalar_name(x.dtype()), "'");
      else
        run.template operator()<int64_t>();
  }
  if (!to.is_same(out)) in_place(rush::copy, out, to);
}

}  // namespace

void cumsum(Tensor& out, const Tensor& x, int64_t dim) {
  if (!out.is_cpu()) return cuda::cumsum(out, x, dim);
  scan_any(out, x, dim, Add{});
}
void cumprod(Tensor& out, const Tensor& x, int64_t dim) {
  if (!out.is_cpu()) return cuda::cumprod(out, x, dim);
  scan_any(out, x, dim, Multiply{});
}
void logcumsumexp(Tensor& out, const Tensor& x, int64_t dim) {
  if (!out.is_cpu()) return cuda::logcumsumexp(out, x, dim);
  scan_any(out, x, dim, LogAddExp{});
}

void cum_extreme(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool largest) {
  if (!values.is_cpu()) return cuda::cum_extreme(values, indices, x, dim, largest);
  if (x.numel() == 0) return;
  const Tensor in = contiguous(x);
  const Shape s(x.sizes(), dim);
  for_real(x.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = values.data<T>();
    int64_t* index = indices.data<int64_t>();
    parallel_for(0, s.outer * s.inner, std::max<int64_t>(16384 / s.n, 1), [&](int64_t lo, int64_t hi) {
      for (int64_t u = lo; u < hi; ++u) {
        const int64_t at = u / s.inner * s.n * s.inner + u % s.inner;
        T best = from[at];
        int64_t where = 0;
        for (int64_t i = 0; i < s.n; ++i) {
          const T v = from[at + i * s.inner];
          const bool nan = best != best;
          if (v != v || (!nan && (largest ? v >= best : v <= best))) best = v, where = i;
          to[at + i * s.inner] = best;
          index[at + i * s.inner] = where;
        }
      }
    });
  });
}

}  // namespace rush::cpu
#endif
