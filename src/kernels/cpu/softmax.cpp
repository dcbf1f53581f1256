// Each task owns whole rows along the dimension: three passes over a row that stays in cache. Where the dimension is
// not the inner one, columns are worked on side by side. Short rows are turned into columns in L1.
#include "kernels/cpu/softmax.h"

#include "kernels/cuda/kernels.h"

#include "rushlight/ops.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace m = formula;
constexpr int64_t kColumns = 128;
constexpr int64_t kShort = 32, kTurned = 64;  // rows up to this length are turned, so many at a time

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    return exp_falling(d, x);
  } else {
    HWY_ALIGN double lanes[HWY_LANES(double)];
    hn::Store(x, d, lanes);
    for (size_t l = 0; l < hn::MaxLanes(d); ++l) lanes[l] = m::exp(lanes[l]);
    return hn::Load(d, lanes);
  }
}

/// The sum of e^(x - shift), of which f(d, i, v) gets each vector.
template <class T, class F>
HWY_INLINE double sum_of_exp(const T* x, T shift, int64_t n, const F& f) {
  return vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto e = exp_of(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    f(d, i, e);
    return e;
  });
}

template <class T, bool kLog>
void forward_row(T* HWY_RESTRICT out, const T* HWY_RESTRICT x, int64_t n) {
  const T shift = lane_max(x, n);
  if constexpr (kLog) {
    const T log_sum = T(m::log(sum_of_exp(x, shift, n, [](auto, int64_t, auto) HWY_ATTR {})));
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - shift) - log_sum;
  } else {
    const double sum = sum_of_exp(x, shift, n, [&](auto d, int64_t i, auto e) HWY_ATTR { hn::StoreU(e, d, out + i); });
    const T scale = T(1 / sum);
    for_vectors<T>(n, [&](auto d, int64_t i)
                          HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, out + i), hn::Set(d, scale)), d, out + i); });
  }
}

/// `cols` columns of n elements, which lie `stride` apart.
template <class T, bool kLog>
void forward_columns(T* out, const T* x, int64_t n, int64_t stride, int64_t cols) {
  T top[kColumns], sum[kColumns];
  for (int64_t c = 0; c < cols; ++c) top[c] = x[c], sum[c] = 0;
  for (int64_t i = 1; i < n; ++i)
    for (int64_t c = 0; c < cols; ++c) {
      const T v = x[i * stride + c];
      top[c] = (v > top[c]) | (v != v) ? v : top[c];
    }
  for (int64_t i = 0; i < n; ++i) {
    const T* HWY_RESTRICT q = x + i * stride;
    T* HWY_RESTRICT y = out + i * stride;
    for_vectors<T>(cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto e = exp_of(d, hn::Sub(hn::LoadU(d, q + c), hn::LoadU(d, top + c)));
      if constexpr (!kLog) hn::StoreU(e, d, y + c);
      hn::StoreU(hn::Add(hn::LoadU(d, sum + c), e), d, sum + c);
    });
  }
  for (int64_t c = 0; c < cols; ++c) sum[c] = kLog ? m::log(sum[c]) : 1 / sum[c];
  for (int64_t i = 0; i < n; ++i) {
    const T* HWY_RESTRICT q = x + i * stride;
    T* HWY_RESTRICT y = out + i * stride;
    for (int64_t c = 0; c < cols; ++c) y[c] = kLog ? (q[c] - top[c]) - sum[c] : y[c] * sum[c];
  }
}

template <class T, bool kLog>
void backward_row(T* HWY_RESTRICT out, const T* HWY_RESTRICT g, const T* HWY_RESTRICT y, int64_t n) {
  const T sum = T(vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, g + i);
    return kLog ? v : hn::Mul(v, hn::LoadU(d, y + i));
  }));
  for_vectors<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, g + i), r = hn::LoadU(d, y + i), s = hn::Set(d, sum);
    hn::StoreU(kLog ? hn::NegMulAdd(exp_of(d, r), s, v) : hn::Mul(hn::Sub(v, s), r), d, out + i);
  });
}

template <class T, bool kLog>
void backward_columns(T* out, const T* g, const T* y, int64_t n, int64_t stride, int64_t cols) {
  T sum[kColumns] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < cols; ++c) sum[c] += kLog ? g[i * stride + c] : g[i * stride + c] * y[i * stride + c];
  for (int64_t i = 0; i < n; ++i) {
    const T *HWY_RESTRICT q = g + i * stride, *HWY_RESTRICT r = y + i * stride;
    T* HWY_RESTRICT to = out + i * stride;
    for_vectors<T>(cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto v = hn::LoadU(d, q + c), y = hn::LoadU(d, r + c), s = hn::LoadU(d, sum + c);
      hn::StoreU(kLog ? hn::NegMulAdd(exp_of(d, y), s, v) : hn::Mul(hn::Sub(v, s), y), d, to + c);
    });
  }
}

/// `rows` rows of n <= kShort elements; y is null forward.
template <class T, bool kLog>
void short_rows(T* out, const T* x, const T* y, int64_t n, int64_t rows) {
  HWY_ALIGN T turned[3][kShort * kTurned];
  for (int64_t r = 0; r < rows; r += kTurned) {
    const int64_t count = std::min(kTurned, rows - r);
    transpose(x + r * n, n, count, n, turned[1], kTurned);
    if (y) {
      transpose(y + r * n, n, count, n, turned[2], kTurned);
      backward_columns<T, kLog>(turned[0], turned[1], turned[2], n, kTurned, count);
    } else {
      forward_columns<T, kLog>(turned[0], turned[1], n, kTurned, count);
    }
    transpose(turned[0], kTurned, n, count, out + r * n, n);
  }
}

template <class T>
void log_sums(T* out, const T* x, int64_t rows, int64_t n) {
  parallel_for(0, rows, std::max<int64_t>(8192 / n, 1), [&](int64_t lo, int64_t hi) {
    for (int64_t r = lo; r < hi; ++r) {
      const T *row = x + r * n, top = lane_max(row, n);
      const T shift = m::abs(top) == std::numeric_limits<T>::infinity() ? T(0) : top;
      const double sum = vector_sum<T>(n, [&](auto d, int64_t i) HWY_ATTR {
        const auto v = hn::Sub(hn::LoadU(d, row + i), hn::Set(d, shift));
        if constexpr (std::is_same_v<T, float>)
          return exp(d, v);  // infinity, where the shift is 0, included
        else
          return exp_of(d, v);
      });
      out[r] = T(double(shift) + m::log(sum));
    }
  });
}

/// All of outer x n x inner; y is null forward.
template <class T, bool kLog>
void run(void* out, const void* in, const void* result, int64_t outer, int64_t n, int64_t inner) {
  T* to = static_cast<T*>(out);
  const T *x = static_cast<const T*>(in), *y = static_cast<const T*>(result);
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(8192 / (n * std::min(inner, kColumns)), 1);
  if (inner == 1 && n <= kShort && outer >= 8)
    return parallel_for(0, outer, grain, [&](int64_t lo, int64_t hi) {
      short_rows<T, kLog>(to + lo * n, x + lo * n, y ? y + lo * n : nullptr, n, hi - lo);
    });
  parallel_for(0, outer * blocks, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t u = lo; u < hi; ++u) {
      const int64_t col = u % blocks * kColumns, at = u / blocks * n * inner + col;
      const int64_t cols = std::min(kColumns, inner - col);
      if (inner == 1)
        y ? backward_row<T, kLog>(to + at, x + at, y + at, n) : forward_row<T, kLog>(to + at, x + at, n);
      else if (y)
        backward_columns<T, kLog>(to + at, x + at, y + at, n, inner, cols);
      else
        forward_columns<T, kLog>(to + at, x + at, n, inner, cols);
    }
  });
}

void softmax_any(DType t, bool log, void* out, const void* in, const void* result, int64_t outer, int64_t n,
                 int64_t inner) {
  if (t == kFloat32)
    log ? run<float, true>(out, in, result, outer, n, inner) : run<float, false>(out, in, result, outer, n, inner);
  else
    log ? run<double, true>(out, in, result, outer, n, inner) : run<double, false>(out, in, result, outer, n, inner);
}

void log_sums_any(DType t, void* out, const void* x, int64_t rows, int64_t n) {
  if (t == kFloat32)
    log_sums(static_cast<float*>(out), static_cast<const float*>(x), rows, n);
  else
    log_sums(static_cast<double*>(out), static_cast<const double*>(x), rows, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(softmax_any);
HWY_EXPORT(log_sums_any);

namespace {
void softmax_of(Tensor& out, const Tensor& x, const Tensor* result, int64_t dim, bool log) {
  if (out.numel() == 0) return;
  if (!is_floating(out.dtype())) raise<NotImplementedError>("not implemented for '", scalar_name(out.dtype()), "'");
  const DType t = out.dtype() == kFloat64 ? kFloat64 : kFloat32;  // half types go through float
  const auto plain = [&](const Tensor& a) { return contiguous(a.dtype() == t ? a : cast(a, t)); };
  const Tensor in = plain(x), y = result ? plain(*result) : Tensor();
  const bool direct = out.dtype() == t && out.is_contiguous();
  const Tensor to = direct ? out : allocate({out.sizes(), t});
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < x.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : x.sizes()[d];
  const int64_t n = x.dim() ? x.sizes()[dim] : 1;
  HWY_DYNAMIC_DISPATCH(softmax_any)
  (t, log, to.data_ptr(), in.data_ptr(), result ? y.data_ptr() : nullptr, outer, n, inner);
  if (!direct) in_place(rush::copy, out, to);
}
}  // namespace

void softmax(Tensor& out, const Tensor& x, int64_t dim, bool log) {
  if (!out.is_cpu()) return cuda::softmax(out, x, dim, log);
  softmax_of(out, x, nullptr, dim, log);
}
void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& result, int64_t dim, bool log) {
  if (!out.is_cpu()) return cuda::softmax_backward(out, grad, result, dim, log);
  softmax_of(out, grad, &result, dim, log);
}
void log_sum_exp(Tensor& out, const Tensor& x) {
  const DType t = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor in = contiguous(x.dtype() == t ? x : cast(x, t));
  const bool direct = out.dtype() == t && out.is_contiguous();
  const Tensor to = direct ? out : allocate({out.sizes(), t});
  HWY_DYNAMIC_DISPATCH(log_sums_any)(t, to.data_ptr(), in.data_ptr(), out.numel(), x.numel() / out.numel());
  if (!direct) in_place(rush::copy, out, to);
}
}  // namespace rush::cpu
#endif
