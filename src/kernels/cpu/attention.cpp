// Tiled attention after Dao et al., FlashAttention (2022, arXiv:2205.14135): a block of keys and values is packed for
// the micro-kernels of gemm-inl.h and meets the queries a few rows at a time, so that their scores stay in L1. Forward
// keeps each row's largest score and sum, and scales what it has when a later block has a larger one. Backward computes
// the scores again from the rows' logarithms of sums.
#include "kernels/cpu/attention.h"

#include <limits>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/scratch.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/lanes-inl.h"

#ifndef RUSH_ATTENTION_CPP
#define RUSH_ATTENTION_CPP
namespace rush::cpu {
namespace {
/// Matrices of a tensor (..., rows, columns): row r of the b-th begins at data + at[b] + r * row.
struct Stack {
  void* data = nullptr;
  int64_t row = 0, column = 1;
  std::vector<int64_t> at;

  Stack() = default;
  explicit Stack(const Tensor& t, int64_t inner = 2) {
    if (!t.defined()) return;
    data = t.data_ptr();
    const int64_t outer = t.dim() - inner;
    row = t.strides()[size_t(outer)];
    if (inner == 2) column = t.strides().back();
    at.push_back(0);
    for (int64_t d = 0; d < outer; ++d) {
      std::vector<int64_t> next;
      for (const int64_t base : at)
        for (int64_t i = 0; i < t.sizes()[size_t(d)]; ++i) next.push_back(base + i * t.strides()[size_t(d)]);
      at = std::move(next);
    }
  }
  template <class T>
  T* of(int64_t b, int64_t r = 0) const {
    return static_cast<T*>(data) + at[size_t(b)] + r * row;
  }
};

struct Heads {
  int64_t count, l, s, e, v;
  Stack query, key, value, mask, out, sums;
  Stack grad, dquery, dkey, dvalue;  // backward
  bool bool_mask, causal;
  double scale;
};
constexpr int64_t kKeys = 128;  // of a block
}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace m = formula;

// Scores in float are logarithms to the base 2.
template <class T>
constexpr T kUnit = std::is_same_v<T, float> ? T(m::kLog2E) : T(1);
RUSH_FN float power(float x) {
  const m::Exp2Parts e = m::exp2_rough(x > 125 ? 125 : (x < -125 ? -125 : x));
  return x < -125 ? 0 : e.power + e.power * e.m;
}
RUSH_FN double power(double x) { return m::exp(x); }

template <class T>
int64_t padded(int64_t n) {
  return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
}

/// Rows of x as panels of R for the micro-kernels, each `depth` long.
template <class T, class S>
void pack_rows(const S* x, int64_t row, int64_t rows, int64_t R, int64_t depth, T* out) {
  for (int64_t i = 0; i < rows; i += R) {
    const int64_t valid = std::min(R, rows - i);
    pack_panel<T, S>(x + i * row, row, 1, valid, kernel_rows(valid), depth, out + i * depth);
  }
}
/// x (depth, cols), or its transpose where `turned`, as panels of columns.
template <class T, class S>
void pack_columns(const S* x, int64_t row, bool turned, int64_t depth, int64_t cols, T* out) {
  constexpr int64_t P = kPanel<T>;
  for (int64_t j = 0; j < cols; j += P)
    pack_panel<T, S>(x + (turned ? j * row : j), turned ? row : 1, turned ? 1 : row, std::min(P, cols - j), P, depth,
                     out + j * depth);
}

/// A panel of rows as the left operand: row by row, or, where `row` is 0, element k of all rows `step` after k - 1.
template <class T>
struct Left {
  const T* data;
  int64_t row, step;
};
template <class T>
Left<T> packed(const T* data, int64_t rows) {
  return {data, 0, kernel_rows(rows)};
}

/// c = alpha a b + beta c for one panel of rows; b consists of panels `b_depth` deep; c has room for whole panels of
/// columns.
template <class T>
void multiply_rows(int64_t rows, int64_t cols, int64_t k, Left<T> a, const T* b, int64_t b_depth, T* c, int64_t c_row,
                   T alpha, T beta) {
  constexpr int64_t P = kPanel<T>;
  for (int64_t j = 0; j < cols; j += P) {
    Tile<T> t;
    t.k = k;
    t.a = a.data;
    t.a_row = a.row;
    t.a_step = a.step;
    t.b = b + j * b_depth;
    t.b_row = P;
    t.c = c + j;
    t.c_row = c_row;
    t.rows = rows;
    t.alpha = alpha;
    t.beta = beta;
    a.row == 0 ? run_tile<T, MulAdd, true>(t, 2) : run_tile<T>(t, 2);
  }
}

/// Adds the mask's row for keys [first, first + n) to scores, and tells how many of them the query sees.
template <class T>
int64_t apply_mask(const Heads& p, int64_t b, int64_t query, int64_t first, int64_t n, T* HWY_RESTRICT scores) {
  if (p.causal) return std::clamp<int64_t>(query + 1 - first, 0, n);
  if (!p.mask.data) return n;
  const int64_t step = p.mask.column;
  if (p.bool_mask) {
    const bool* seen = p.mask.of<bool>(b, query) + first * step;
    for (int64_t i = 0; i < n; ++i) scores[i] = seen[i * step] ? scores[i] : -std::numeric_limits<T>::infinity();
  } else {
    const T* added = p.mask.of<T>(b, query) + first * step;
    for (int64_t i = 0; i < n; ++i) scores[i] += added[i * step] * kUnit<T>;
  }
  return n;
}

template <class T, class S>
void forward_rows(const Heads& p, int64_t b, int64_t first, int64_t rows) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const int64_t R = panel_rows(rows), wide = padded<T>(p.v), all = ceil_div(rows, R) * R;
  const int64_t last_key = p.causal ? std::min(p.s, first + rows) : p.s;
  T* const queries =
      scratch<T>(Scratch::operand, all * (p.e + wide + 2) + kKeys * (padded<T>(p.e) + wide + R) + p.e * kPanel<T>);
  T* const sums = queries + all * p.e;  // the result, not yet divided
  T* const top = sums + all * wide;
  T* const total = top + all;
  T* const keys = total + all;
  T* const values = keys + kKeys * p.e + p.e * kPanel<T>;
  T* const scores = values + kKeys * wide;
  pack_rows<T, S>(p.query.of<const S>(b, first), p.query.row, rows, R, p.e, queries);
  std::fill_n(sums, all * wide, T(0));
  std::fill_n(top, all, kNever);
  std::fill_n(total, all, T(0));
  for (int64_t k0 = 0; k0 < last_key; k0 += kKeys) {
    const int64_t block = std::min(kKeys, last_key - k0);
    pack_columns<T, S>(p.key.of<const S>(b, k0), p.key.row, true, p.e, block, keys);
    pack_columns<T, S>(p.value.of<const S>(b, k0), p.value.row, false, block, p.v, values);
    for (int64_t i = 0; i < rows; i += R) {
      const int64_t valid = std::min(R, rows - i);
      const int64_t n = p.causal ? std::min(block, first + i + valid - k0) : block;
      if (n <= 0) continue;
      multiply_rows<T>(valid, n, p.e, packed(queries + i * p.e, valid), keys, p.e, scores, kKeys, T(p.scale) * kUnit<T>,
                       T(0));
      for (int64_t r = 0; r < valid; ++r) {
        T* HWY_RESTRICT row = scores + r * kKeys;
        T* HWY_RESTRICT sum = sums + (i + r) * wide;
        const int64_t seen = apply_mask<T>(p, b, first + i + r, k0, n, row);
        const T before = top[i + r], here = seen ? lane_max(row, seen) : kNever;
        const T now = (here > before) | (here != here) ? here : before;
        if (now == kNever) {
          std::fill_n(row, n, T(0));
          continue;
        }
        const double added = lane_sum<T>(
            seen, [&](int64_t x) __attribute__((always_inline)) { return row[x] = power(row[x] - now); });
        std::fill(row + seen, row + n, T(0));
        if (now != before) {
          const T shrink = before == kNever ? T(0) : power(before - now);
          total[i + r] *= shrink;
          for (int64_t x = 0; x < wide; ++x) sum[x] *= shrink;
          top[i + r] = now;
        }
        total[i + r] += T(added);
      }
      multiply_rows<T>(valid, p.v, n, {scores, kKeys, 1}, values, block, sums + i * wide, wide, T(1), T(1));
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T* HWY_RESTRICT sum = sums + i * wide;
    S* HWY_RESTRICT out = p.out.of<S>(b, first + i);
    const T factor = total[i] == 0 ? T(0) : 1 / total[i];
    for (int64_t x = 0; x < p.v; ++x) out[x] = S(sum[x] * factor);
    *p.sums.of<T>(b, first + i) = total[i] == 0 ? kNever : (top[i] + m::log(total[i]) * kUnit<T>) / kUnit<T>;
  }
}

template <class T, class S>
void forward(const Heads& p) {
  // Few heads are cut into more parts, for each of which keys and values are packed again.
  const int64_t each = p.count * ceil_div(p.l, 128) >= 16 ? 128 : 48, parts = ceil_div(p.l, each);
  const double work = double(std::min(each, p.l)) * double(p.s) * double(p.e + p.v);
  parallel_for(0, p.count * parts, int64_t(std::clamp((1 << 17) / work, 1.0, 1024.0)), [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t first = i % parts * each;
      forward_rows<T, S>(p, i / parts, first, std::min(each, p.l - first));
    }
  });
}

template <class T, class S>
void backward_head(const Heads& p, int64_t b) {
  constexpr int64_t kQueries = 112;  // of a block
  const int64_t e = padded<T>(p.e), v = padded<T>(p.v), blocks = ceil_div(p.l, kQueries);
  const int64_t P = kPanel<T>, l = p.l + kQueries;
  T* next = scratch<T>(Scratch::operand,
                       l * (p.e + p.v + 2 * e + v + 1) + kKeys * (3 * e + 2 * v + 2 * kQueries) + P * (e + v + 1));
  const auto take = [&](int64_t n) { return std::exchange(next, next + n); };
  // As left operands, and as right ones.
  T *const queries = take(l * p.e), *const grads = take(l * p.v);
  T *const query_columns = take(l * e), *const grad_columns = take(l * v);
  T *const dquery = take(l * e), *const dots = take(l);
  T *const dkey = take(kKeys * e), *const dvalue = take(kKeys * v);
  T *const keys_turned = take(kKeys * p.e + P * p.e), *const values_turned = take(kKeys * p.v + P * p.v);
  T *const key_columns = take(kKeys * e), *const weights = take(kKeys * kQueries),
           *const slopes = take(kKeys * kQueries + P);
  std::fill_n(dquery, p.l * e, T(0));
  const auto rows_of = [&](int64_t block) { return std::min(kQueries, p.l - block * kQueries); };
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t q0 = i * kQueries, rows = rows_of(i), R = panel_rows(rows);
    pack_rows<T, S>(p.query.of<const S>(b, q0), p.query.row, rows, R, p.e, queries + q0 * p.e);
    pack_rows<T, S>(p.grad.of<const S>(b, q0), p.grad.row, rows, R, p.v, grads + q0 * p.v);
    pack_columns<T, S>(p.query.of<const S>(b, q0), p.query.row, false, rows, p.e, query_columns + q0 * e);
    pack_columns<T, S>(p.grad.of<const S>(b, q0), p.grad.row, false, rows, p.v, grad_columns + q0 * v);
    for (int64_t r = 0; r < rows; ++r) {
      const S *HWY_RESTRICT g = p.grad.of<const S>(b, q0 + r), *HWY_RESTRICT o = p.out.of<const S>(b, q0 + r);
      dots[q0 + r] = T(lane_sum<T>(
          p.v, [&](int64_t x) __attribute__((always_inline)) { return T(g[x]) * T(o[x]); }));
    }
  }
  for (int64_t k0 = 0; k0 < p.s; k0 += kKeys) {
    const int64_t block = std::min(kKeys, p.s - k0);
    std::fill_n(dkey, kKeys * e, T(0));
    std::fill_n(dvalue, kKeys * v, T(0));
    pack_columns<T, S>(p.key.of<const S>(b, k0), p.key.row, true, p.e, block, keys_turned);
    pack_columns<T, S>(p.value.of<const S>(b, k0), p.value.row, true, p.v, block, values_turned);
    pack_columns<T, S>(p.key.of<const S>(b, k0), p.key.row, false, block, p.e, key_columns);
    for (int64_t i = p.causal ? std::min(k0 / kQueries, blocks) : 0; i < blocks; ++i) {
      const int64_t q0 = i * kQueries, rows = rows_of(i), R = panel_rows(rows);
      const int64_t n = p.causal ? std::min(block, q0 + rows - k0) : block;
      if (n <= 0) continue;
      for (int64_t r0 = 0; r0 < rows; r0 += R) {
        const int64_t valid = std::min(R, rows - r0);
        T *const weight = weights + r0 * kKeys, *const slope = slopes + r0 * kKeys;
        multiply_rows<T>(valid, n, p.e, packed(queries + (q0 + r0) * p.e, valid), keys_turned, p.e, weight, kKeys,
                         T(p.scale) * kUnit<T>, T(0));
        multiply_rows<T>(valid, n, p.v, packed(grads + (q0 + r0) * p.v, valid), values_turned, p.v, slope, kKeys, T(1),
                         T(0));
        for (int64_t r = 0; r < valid; ++r) {
          T *HWY_RESTRICT w = weight + r * kKeys, *HWY_RESTRICT d = slope + r * kKeys;
          const int64_t query = q0 + r0 + r;
          const T sum = *p.sums.of<const T>(b, query) * kUnit<T>, dot = dots[query];
          const bool blind = sum == -std::numeric_limits<T>::infinity();
          const int64_t seen = blind ? 0 : apply_mask<T>(p, b, query, k0, n, w);
          for (int64_t x = 0; x < seen; ++x) {
            w[x] = power(w[x] - sum);
            d[x] = w[x] * (d[x] - dot) * T(p.scale);
          }
          std::fill(w + seen, w + n, T(0));
          std::fill(d + seen, d + n, T(0));
        }
        multiply_rows<T>(valid, p.e, n, {slope, kKeys, 1}, key_columns, block, dquery + (q0 + r0) * e, e, T(1), T(1));
      }
      const int64_t RK = panel_rows(n);
      for (int64_t k = 0; k < n; k += RK) {
        const int64_t valid = std::min(RK, n - k);
        multiply_rows<T>(valid, p.v, rows, {weights + k, 0, kKeys}, grad_columns + q0 * v, rows, dvalue + k * v, v,
                         T(1), T(1));
        multiply_rows<T>(valid, p.e, rows, {slopes + k, 0, kKeys}, query_columns + q0 * e, rows, dkey + k * e, e, T(1),
                         T(1));
      }
    }
    for (int64_t k = 0; k < block; ++k) {
      S *HWY_RESTRICT to_key = p.dkey.of<S>(b, k0 + k), *HWY_RESTRICT to_value = p.dvalue.of<S>(b, k0 + k);
      for (int64_t x = 0; x < p.e; ++x) to_key[x] = S(dkey[k * e + x]);
      for (int64_t x = 0; x < p.v; ++x) to_value[x] = S(dvalue[k * v + x]);
    }
  }
  for (int64_t i = 0; i < p.l; ++i) {
    S* HWY_RESTRICT to = p.dquery.of<S>(b, i);
    for (int64_t x = 0; x < p.e; ++x) to[x] = S(dquery[i * e + x]);
  }
}

template <class S>
void run(const Heads& p, bool back) {
  using T = compute_t<S>;
  if (!back) return forward<T, S>(p);
  parallel_for(0, p.count, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t b = lo; b < hi; ++b) backward_head<T, S>(p, b);
  });
}

void run_heads(DType t, const Heads& p, bool back) {
  t == kFloat32    ? run<float>(p, back)
  : t == kFloat64  ? run<double>(p, back)
  : t == kBFloat16 ? run<BFloat16>(p, back)
                   : run<Half>(p, back);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(run_heads);

namespace {
Heads heads_of(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const Tensor& out,
               const Tensor& logsumexp, bool causal, double scale) {
  Heads p;
  p.query = Stack(query);
  p.key = Stack(key);
  p.value = Stack(value);
  p.mask = Stack(mask);
  p.out = Stack(out);
  p.sums = Stack(logsumexp, 1);
  p.count = int64_t(p.query.at.size());
  p.l = query.size(-2);
  p.s = key.size(-2);
  p.e = query.size(-1);
  p.v = value.size(-1);
  p.bool_mask = mask.defined() && mask.dtype() == kBool;
  p.causal = causal;
  p.scale = scale;
  return p;
}
}  // namespace

void attention(Tensor& out, Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value,
               const Tensor& mask, bool causal, double scale) {
  HWY_DYNAMIC_DISPATCH(run_heads)
  (query.dtype(), heads_of(query, key, value, mask, out, logsumexp, causal, scale), false);
}

void attention_backward(Tensor& dquery, Tensor& dkey, Tensor& dvalue, const Tensor& grad, const Tensor& query,
                        const Tensor& key, const Tensor& value, const Tensor& mask, const Tensor& out,
                        const Tensor& logsumexp, bool causal, double scale) {
  Heads p = heads_of(query, key, value, mask, out, logsumexp, causal, scale);
  p.grad = Stack(grad);
  p.dquery = Stack(dquery);
  p.dkey = Stack(dkey);
  p.dvalue = Stack(dvalue);
  HWY_DYNAMIC_DISPATCH(run_heads)(query.dtype(), p, true);
}

}  // namespace rush::cpu
#endif
