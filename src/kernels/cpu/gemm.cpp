// Which way a matrix product goes: few rows along k, the engine of gemm-inl.h, or plain blocked loops for integers.
// Complex numbers are four real products, where they are not small. Half types go through the engine with float panels
// and a float result that is rounded once; where the CPU multiplies bfloat16 itself, panels hold pairs of them. Bytes
// that are summed in 32 bits go through it four by four.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/scratch.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/gemm-inl.h"

#ifndef RUSH_GEMM_CPP
#define RUSH_GEMM_CPP
namespace rush::cpu {
namespace {
template <class T>
struct Product {
  int64_t m, n, k;
  Strided<const T> a, b;
  Strided<T> c;
  compute_t<T> alpha, beta;
  Bias<T> bias;
  Weight b_weight;
  Clamp clamp;
};

/// Whether the CPU has instructions that multiply pairs of bfloat16 and sum in float, and they gain: Intel's run at
/// half the rate of multiply-adds in float, AMD's at the same rate.
inline bool multiplies_bfloat16() {
#if HWY_ARCH_X86
  static const bool has = __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
  return has;
#else
  return false;
#endif
}

/// The same for quads of bytes that are summed in 32 bits.
inline bool multiplies_bytes() {
#if HWY_ARCH_X86
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return false;
#endif
}

struct ByteProduct {
  int64_t m, n, k;
  Strided<const uint8_t> a;
  Strided<const int8_t> b;
  Strided<int32_t> c;
};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;
}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T, class S>
void store(const Product<S>& p, int64_t i, int64_t j, T product) {
  S* c = p.c.data + i * p.c.row + j * p.c.col;
  T value = p.alpha * product;
  if (p.beta != 0) value += p.beta * static_cast<T>(*c);
  if (p.bias.row) value += static_cast<T>(p.bias.row[i]);
  if (p.bias.col) value += static_cast<T>(p.bias.col[j]);
  *c = static_cast<S>(std::min(std::max(value, static_cast<T>(p.clamp.low)), static_cast<T>(p.clamp.high)));
}

// The sums of the lanes of four vectors.
template <class D>
HWY_INLINE void sum_lanes(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, hn::TFromD<D>* sums) {
  using T = hn::TFromD<D>;
  const auto fold = [](auto d, auto a, auto b)
                        HWY_ATTR { return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)); };
  const auto put = [](auto d, auto v, T* to) HWY_ATTR {  // what 16 bytes are left of the sum of all 16 bytes
    const auto rest = [](auto self, auto d, auto v) HWY_ATTR {
      if constexpr (hn::MaxLanes(d) * sizeof(T) <= 16) {
        return v;
      } else {
        const hn::Half<decltype(d)> half;
        return self(self, half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
      }
    };
    hn::StoreU(rest(rest, d, v), hn::FixedTag<T, 16 / sizeof(T)>(), to);
  };
  const auto v01 = fold(d, v0, v1), v23 = fold(d, v2, v3);
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, D> d2;
    const auto a = hn::BitCast(d2, v01), b = hn::BitCast(d2, v23);
    put(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(d2, a, b)), hn::BitCast(d, hn::InterleaveUpper(d2, a, b))), sums);
  } else {
    put(d, v01, sums);
    put(d, v23, sums + 2);
  }
}

// put(r, i, sums, count): sums[x] is the dot product of row r of x with line i + x, for rows [row, row + R) and `count`
// <= 4 lines of k contiguous elements.
template <int R, class T, class S, class Put>
HWY_NOINLINE void dot_tile(const S* lines, int64_t line, int64_t i, int64_t count, int64_t k, const T* x, int64_t x_row,
                           int64_t row, const Put& put) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr int64_t N = kLanes<T>;
  const S* s[4];
  for (int64_t l = 0; l < 4; ++l) s[l] = lines + (i + std::min(l, count - 1)) * line;
  x += row * x_row;
  Vec sum[R][4];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = hn::Zero(d);
  const auto step = [&](const auto& load_line, const auto& load_x) HWY_ATTR {
    const Vec l0 = load_line(s[0]), l1 = load_line(s[1]), l2 = load_line(s[2]), l3 = load_line(s[3]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec v = load_x(x + r * x_row);
      sum[r][0] = hn::MulAdd(l0, v, sum[r][0]);
      sum[r][1] = hn::MulAdd(l1, v, sum[r][1]);
      sum[r][2] = hn::MulAdd(l2, v, sum[r][2]);
      sum[r][3] = hn::MulAdd(l3, v, sum[r][3]);
    }
  };
  int64_t at = 0;
  for (; at + N <= k; at += N) {
    const auto part = [&](const auto* p) HWY_ATTR { return load(d, p + at); };
    step(part, part);
  }
  if (at < k) {
    const auto part = [&](const auto* p) HWY_ATTR { return load_first(d, p + at, k - at); };
    step(part, part);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    T sums[4];
    sum_lanes(d, sum[r][0], sum[r][1], sum[r][2], sum[r][3], sums);
    put(row + r, i, sums, count);
  }
}

// The same for `rows` rows and lines [lo, hi).
template <class T, class S, class Put>
void dot_lines(const S* lines, int64_t line, int64_t lo, int64_t hi, int64_t k, const T* x, int64_t x_row, int64_t rows,
               const Put& put) {
  constexpr int kMost = HWY_CAP_GE512 || HWY_ARCH_ARM_A64 ? 6 : 2;  // rows whose sums fit into the registers
  const int64_t groups = ceil_div(rows, int64_t{kMost});
  for (int64_t i = lo; i < hi; i += 4)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t row = rows * g / groups;
      const auto run = [&]<int R>(const auto& self) {
        if (rows * (g + 1) / groups - row == R)
          dot_tile<R>(lines, line, i, std::min<int64_t>(4, hi - i), k, x, x_row, row, put);
        else if constexpr (R > 1)
          self.template operator()<R - 1>(self);
      };
      run.template operator()<kMost>(run);
    }
}

// The same for one row and lines whose elements lie `step` apart while the lines are neighbours. Lines fill the
// vectors.
template <class T, class S, class Put>
HWY_NOINLINE void sum_steps(const S* lines, int64_t step, int64_t lo, int64_t hi, int64_t k, const T* x, int64_t row,
                            const Put& put) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  HWY_ALIGN T sums[4 * N];
  int64_t i = lo;
  for (; i + 4 * N <= hi; i += 4 * N) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const S* from = lines + i;
    for (int64_t at = 0; at < k; ++at, from += step) {
      const auto v = hn::Set(d, x[at]);
      s0 = hn::MulAdd(load(d, from), v, s0);
      s1 = hn::MulAdd(load(d, from + N), v, s1);
      s2 = hn::MulAdd(load(d, from + 2 * N), v, s2);
      s3 = hn::MulAdd(load(d, from + 3 * N), v, s3);
    }
    hn::Store(s0, d, sums);
    hn::Store(s1, d, sums + N);
    hn::Store(s2, d, sums + 2 * N);
    hn::Store(s3, d, sums + 3 * N);
    put(row, i, sums, 4 * N);
  }
  for (; i < hi; i += N) {
    const int64_t lines_now = std::min(N, hi - i);
    auto s0 = hn::Zero(d);
    for (int64_t at = 0; at < k; ++at)
      s0 = hn::MulAdd(load_first(d, lines + i + at * step, lines_now), hn::Set(d, x[at]), s0);
    hn::Store(s0, d, sums);
    put(row, i, sums, lines_now);
  }
}

// put(r, i, sums, count): sums[y] is the dot product of row r of x, which has `rows`, with line i + y of n. Element k
// of line i is at lines[i * line + k * step].
template <class T, class S, class Put>
void dot_products(int64_t n, int64_t k, const S* lines, int64_t line, int64_t step, Strided<const S> x, int64_t rows,
                  const Put& put) {
  const T* packed = nullptr;
  int64_t x_row = x.row;
  if constexpr (std::is_same_v<S, T>)
    if (x.col == 1 && (rows == 1 || x.row * int64_t{sizeof(T)} % 1024 != 0)) packed = x.data;
  if (!packed) {
    x_row = k * int64_t{sizeof(T)} % 1024 ? k : k + kLanes<T>;  // rows 1 KiB apart meet the same cache sets
    T* copy = scratch<T>(Scratch::a, rows * x_row);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t at = 0; at < k; ++at) copy[r * x_row + at] = static_cast<T>(x.data[r * x.row + at * x.col]);
    packed = copy;
  }
  constexpr int64_t chunk = 4 * kLanes<T>;
  const int64_t grain = ceil_div(std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(rows * k, 1)), chunk);
  parallel_for(0, ceil_div(n, chunk), grain, [&](int64_t lo, int64_t hi) {
    lo *= chunk;
    hi = std::min(n, hi * chunk);
    if (step == 1) return dot_lines<T>(lines, line, lo, hi, k, packed, x_row, rows, put);
    for (int64_t r = 0; r < rows; ++r) {
      const T* const vector = packed + r * x_row;
      if (line == 1) {
        sum_steps<T>(lines, step, lo, hi, k, vector, r, put);
      } else {
        for (int64_t i = lo; i < hi; ++i) {
          T sum = 0;
          for (int64_t at = 0; at < k; ++at) sum += static_cast<T>(lines[i * line + at * step]) * vector[at];
          put(r, i, &sum, 1);
        }
      }
    }
  });
}

#if RUSH_PAIRS
// Bfloat16 lines of length k as floats that each hold a pair of neighbours in k: in place, or else copied. The element
// after an odd k is 0.
Strided<const float> in_pairs(int64_t lines, int64_t k, const BFloat16* from, int64_t line, int64_t step,
                              Scratch purpose) {
  const bool even = k % 2 == 0 && line % 2 == 0 && reinterpret_cast<uintptr_t>(from) % alignof(float) == 0;
  if (step == 1 && even) return {reinterpret_cast<const float*>(from), line / 2, 1};
  const int64_t pairs = ceil_div(k, int64_t{2});
  auto* const to = scratch<uint32_t>(purpose, lines * pairs);
  const auto* const bits = reinterpret_cast<const uint16_t*>(from);
  if (line == 1) {  // lines are neighbours in memory and stay so
    parallel_for(0, pairs, std::max<int64_t>(1, (1 << 14) / lines), [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        const uint16_t* const first = bits + 2 * i * step;
        const uint16_t* const second = 2 * i + 1 < k ? first + step : nullptr;
        for (int64_t j = 0; j < lines; ++j)
          to[i * lines + j] = first[j] | (second ? static_cast<uint32_t>(second[j]) << 16 : 0);
      }
    });
    return {reinterpret_cast<const float*>(to), 1, lines};
  }
  parallel_for(0, lines, std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(pairs, 1)), [&](int64_t lo, int64_t hi) {
    for (int64_t j = lo; j < hi; ++j)
      for (int64_t i = 0; i < pairs; ++i) {
        const uint16_t* const first = bits + j * line + 2 * i * step;
        to[j * pairs + i] = *first | (2 * i + 1 < k ? static_cast<uint32_t>(first[step]) << 16 : 0);
      }
  });
  return {reinterpret_cast<const float*>(to), pairs, 1};
}
#endif

// Lines of k bytes as int32 that each hold four neighbours in k: in place, or else copied. What is beyond k is 0.
template <class S>
Strided<const int32_t> in_quads(int64_t lines, int64_t k, const S* from, int64_t line, int64_t step, Scratch purpose) {
  const bool whole = k % 4 == 0 && line % 4 == 0 && reinterpret_cast<uintptr_t>(from) % alignof(int32_t) == 0;
  if (step == 1 && whole) return {reinterpret_cast<const int32_t*>(from), line / 4, 1};
  const int64_t quads = ceil_div(k, int64_t{4});
  auto* const to = scratch<int32_t>(purpose, lines * quads);
  parallel_for(0, lines, std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(quads, 1)), [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      auto* const bytes = reinterpret_cast<S*>(to + i * quads);
      for (int64_t x = 0; x < k; ++x) bytes[x] = from[i * line + x * step];
      std::fill(bytes + k, bytes + 4 * quads, S(0));
    }
  });
  return {to, quads, 1};
}

void product_bytes(const ByteProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  const auto a = in_quads(p.m, p.k, p.a.data, p.a.row, p.a.col, Scratch::gather);
  const auto b = in_quads(p.n, p.k, p.b.data, p.b.col, p.b.row, Scratch::operand);
  const StridedColumns<int32_t, int32_t> columns{{b.data, b.col, b.row}, false};
  const auto run = [&]<class Sum>() {
    multiply<int32_t, int32_t, Sum>(p.m, p.n, ceil_div(p.k, int64_t{4}), a, columns, StridedResult<int32_t>{p.c}, 1, 0);
  };
#if RUSH_PAIRS
  if (multiplies_bytes()) return run.template operator()<MulAddQuadsAtOnce>();
#endif
  run.template operator()<MulAddQuads>();
}

// `count` elements of row i of c, from j on, from the products in `sums`, with whole vectors in the usual cases.
template <class T, class S>
void store_row(const Product<S>& p, int64_t i, int64_t j, int64_t count, const T* sums) {
  const bool scaled = p.alpha != 1 || p.beta != 0;
  if (p.c.col != 1 || p.bias.row || (scaled && p.bias.col)) {
    for (int64_t x = 0; x < count; ++x) store<T>(p, i, j + x, sums[x]);
    return;
  }
  S* HWY_RESTRICT c = p.c.data + i * p.c.row + j;
  const S* const bias = p.bias.col ? p.bias.col + j : nullptr;
  const T alpha = p.alpha, beta = p.beta, low = static_cast<T>(p.clamp.low), high = static_cast<T>(p.clamp.high);
  const auto put = [&](const auto& value_of) HWY_ATTR {
    for (int64_t x = 0; x < count; ++x) c[x] = static_cast<S>(std::min(std::max(value_of(x), low), high));
  };
  if (p.beta != 0)
    put([&](int64_t x) HWY_ATTR { return alpha * sums[x] + beta * static_cast<T>(c[x]); });
  else if (scaled)
    put([&](int64_t x) HWY_ATTR { return alpha * sums[x]; });
  else if (bias)
    put([&](int64_t x) HWY_ATTR { return sums[x] + static_cast<T>(bias[x]); });
  else
    put([&](int64_t x) HWY_ATTR { return sums[x]; });
}

template <class S>
void product(const Product<S>& p) {
  using T = compute_t<S>;
  if (p.m == 0 || p.n == 0) return;
  // Few rows that meet a b whose columns are contiguous: transposing it into panels costs more than sums of lanes do,
  // unless there are many of these for few products. Pairs of bfloat16 make products cheaper than these can be.
  const bool pairwise = RUSH_PAIRS && std::is_same_v<S, BFloat16> && multiplies_bfloat16();
  const int64_t few = pairwise || p.k < 64 * int64_t{sizeof(T)} ? 4 : 16;
  if (p.m == 1 || (p.b.row == 1 && p.b.col != 1 && p.m <= few))
    return dot_products<T>(
        p.n, p.k, p.b.data, p.b.col, p.b.row, p.a, p.m,
        [&](int64_t i, int64_t j, const T* sums, int64_t count) { store_row<T>(p, i, j, count, sums); });
  if (p.n == 1)
    return dot_products<T>(p.m, p.k, p.a.data, p.a.row, p.a.col, {p.b.data, 0, p.b.row}, 1,
                           [&](int64_t, int64_t i, const T* sums, int64_t count) {
                             for (int64_t x = 0; x < count; ++x) store<T>(p, i + x, 0, sums[x]);
                           });
  const bool b_small = p.k * p.n * int64_t{sizeof(T)} <= 256 << 10;  // stays in L2 from one panel of a to the next
  const bool in_place = p.b.col == 1 && (p.m <= kMaxRows || b_small);
  Ref<Storage> holder;
  const auto kept_columns = [&] {
    return StridedColumns<T, S>{p.b, in_place}.kept(p.b_weight, p.b.data, p.n, p.k, holder);
  };
  if constexpr (std::is_same_v<S, T>) {
    const Epilogue<T> end{p.bias.row, nullptr, static_cast<T>(p.clamp.low), static_cast<T>(p.clamp.high)};
    multiply<T, S>(p.m, p.n, p.k, p.a, kept_columns(), StridedResult<T>{p.c}, p.alpha, p.beta, end, p.bias.col);
  } else {
    const int64_t rows = std::clamp<int64_t>((4 << 20) / p.n, kMaxRows, p.m < kMaxRows ? kMaxRows : p.m);
    T* sums = scratch<T>(Scratch::c, std::min(rows, p.m) * p.n);
    const StridedResult<T> result{{sums, p.n, 1}};
    const auto in_blocks = [&](const auto& multiply_rows) {
      for (int64_t i0 = 0; i0 < p.m; i0 += rows) {
        const int64_t count = std::min(rows, p.m - i0);
        multiply_rows(i0, count);
        parallel_for(0, count, std::max<int64_t>(1, (1 << 14) / p.n), [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) store_row<T>(p, i0 + i, 0, p.n, sums + i * p.n);
        });
      }
    };
#if RUSH_PAIRS
    if constexpr (std::is_same_v<S, BFloat16>) {
      if (multiplies_bfloat16()) {
        const auto a = in_pairs(p.m, p.k, p.a.data, p.a.row, p.a.col, Scratch::gather);
        const auto b = in_pairs(p.n, p.k, p.b.data, p.b.col, p.b.row, Scratch::operand);
        const int64_t k = ceil_div(p.k, int64_t{2});
        const auto pairs = StridedColumns<T, T>{{b.data, b.col, b.row}, b.row == 1 && in_place}.kept(
            p.b_weight, p.b.data, p.n, k, holder);
        return in_blocks([&](int64_t i0, int64_t count) {
          multiply<T, T, MulAddPairs>(count, p.n, k, {a.data + i0 * a.row, a.row, a.col}, pairs, result, T(1), T(0));
        });
      }
    }
#endif
    const auto columns = kept_columns();
    in_blocks([&](int64_t i0, int64_t count) {
      multiply<T, S>(count, p.n, p.k, {p.a.data + i0 * p.a.row, p.a.row, p.a.col}, columns, result, T(1), T(0));
    });
  }
}

void product_float(const Product<float>& p) { product(p); }
void product_double(const Product<double>& p) { product(p); }
void product_bfloat16(const Product<BFloat16>& p) { product(p); }
void product_half(const Product<Half>& p) { product(p); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(product_float);
HWY_EXPORT(product_double);
HWY_EXPORT(product_bfloat16);
HWY_EXPORT(product_half);
HWY_EXPORT(product_bytes);

void dispatch(const Product<float>& p) { HWY_DYNAMIC_DISPATCH(product_float)(p); }
void dispatch(const Product<double>& p) { HWY_DYNAMIC_DISPATCH(product_double)(p); }
void dispatch(const Product<BFloat16>& p) { HWY_DYNAMIC_DISPATCH(product_bfloat16)(p); }
void dispatch(const Product<Half>& p) { HWY_DYNAMIC_DISPATCH(product_half)(p); }

// sum += a * b. Integers wrap around; complex numbers are multiplied by the schoolbook formula, which compilers
// otherwise guard with a slow path for infinities.
template <class T>
void add_product(T& sum, T a, T b) {
  if constexpr (is_complex<T>) {
    sum = {sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
           sum.imag() + (a.real() * b.imag() + a.imag() * b.real())};
  } else {
    using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    sum = static_cast<T>(static_cast<Wrapping>(sum) + static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
  }
}

// A complex product as four real ones, of parts that lie two elements apart.
template <class T>
void product_of_parts(const Product<std::complex<T>>& p) {
  const auto part = [](auto m, int64_t i) {
    using Part = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(m.data)>>, const T, T>;
    return Strided<Part>{reinterpret_cast<Part*>(m.data) + i, 2 * m.row, 2 * m.col};
  };
  const auto add = [&](int64_t a, int64_t b, int64_t c, T alpha, T beta) {
    dispatch(Product<T>{p.m, p.n, p.k, part(p.a, a), part(p.b, b), part(p.c, c), alpha, beta, {}, {}, {}});
  };
  const T alpha = p.alpha.real(), beta = p.beta.real();
  add(0, 0, 0, alpha, beta);
  add(1, 1, 0, -alpha, 1);
  add(0, 1, 1, alpha, beta);
  add(1, 0, 1, alpha, 1);
}

// Integers and complex numbers: 64 columns of b at a time, made contiguous, meet every row of a.
template <class T>
void dispatch(const Product<T>& p) {
  if constexpr (is_complex<T>) {
    // Parts of four bytes take longer to gather than to multiply, unless the product is large.
    const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const bool enough = p.m >= 16 && p.n >= 16 && p.k >= 16 && (sizeof(T) == 16 || work >= 1 << 22);
    if (enough && p.alpha.imag() == 0 && p.beta.imag() == 0 && !p.bias.row && !p.bias.col) return product_of_parts(p);
  }
  constexpr int64_t width = 64;
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(p.m * p.k * width, 1));
  parallel_for(0, (p.n + width - 1) / width, grain, [&](int64_t lo, int64_t hi) {
    T* columns = scratch<T>(Scratch::b, p.k * width);
    for (int64_t j0 = lo * width; j0 < std::min(p.n, hi * width); j0 += width) {
      const int64_t cols = std::min(width, p.n - j0);
      for (int64_t k = 0; k < p.k; ++k)
        for (int64_t j = 0; j < width; ++j)
          columns[k * width + j] = j < cols ? p.b.data[k * p.b.row + (j0 + j) * p.b.col] : T(0);
      for (int64_t i = 0; i < p.m; ++i) {
        T sums[width] = {};
        for (int64_t k = 0; k < p.k; ++k) {
          const T a = p.a.data[i * p.a.row + k * p.a.col];
          for (int64_t j = 0; j < width; ++j) add_product(sums[j], a, columns[k * width + j]);
        }
        for (int64_t j = 0; j < cols; ++j) {
          T& c = p.c.data[i * p.c.row + (j0 + j) * p.c.col];
          T value = T(0);
          add_product(value, p.alpha, sums[j]);
          if (p.beta != T(0)) add_product(value, p.beta, c);
          if (p.bias.row) add_product(value, T(1), p.bias.row[i]);
          if (p.bias.col) add_product(value, T(1), p.bias.col[j0 + j]);
          c = value;
        }
      }
    }
  });
}
}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Strided<const T> a, Strided<const T> b, Strided<T> c, compute_t<T> alpha,
          compute_t<T> beta, Bias<T> bias, Weight b_weight, Clamp clamp) {
  dispatch(Product<T>{m, n, k, a, b, c, alpha, beta, bias, b_weight, clamp});
}

void gemm_u8s8(int64_t m, int64_t n, int64_t k, Strided<const uint8_t> a, Strided<const int8_t> b, Strided<int32_t> c) {
  HWY_DYNAMIC_DISPATCH(product_bytes)(ByteProduct{m, n, k, a, b, c});
}

template <class T>
void batched_gemm(int64_t batch, int64_t m, int64_t n, int64_t k, Strided<const T> a, int64_t a_batch,
                  Strided<const T> b, int64_t b_batch, Strided<T> c, int64_t c_batch, compute_t<T> alpha,
                  compute_t<T> beta) {
  const auto one = [&](int64_t i) {
    gemm<T>(m, n, k, {a.data + i * a_batch, a.row, a.col}, {b.data + i * b_batch, b.row, b.col},
            {c.data + i * c_batch, c.row, c.col}, alpha, beta, {});
  };
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (batch < 2 * num_threads() && work > (1 << 22)) {  // each is enough for all threads
    for (int64_t i = 0; i < batch; ++i) one(i);
    return;
  }
  const auto grain = static_cast<int64_t>(std::clamp((1 << 18) / std::max(work, 1.0), 1.0, 4096.0));
  parallel_for(0, batch, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) one(i);
  });
}

#define RUSH_INSTANTIATE(T)                                                                                      \
  template void gemm<T>(int64_t, int64_t, int64_t, Strided<const T>, Strided<const T>, Strided<T>, compute_t<T>, \
                        compute_t<T>, Bias<T>, Weight, Clamp);                                                   \
  template void batched_gemm<T>(int64_t, int64_t, int64_t, int64_t, Strided<const T>, int64_t, Strided<const T>, \
                                int64_t, Strided<T>, int64_t, compute_t<T>, compute_t<T>);
RUSH_INSTANTIATE(float)
RUSH_INSTANTIATE(double)
RUSH_INSTANTIATE(BFloat16)
RUSH_INSTANTIATE(Half)
RUSH_INSTANTIATE(uint8_t)
RUSH_INSTANTIATE(int8_t)
RUSH_INSTANTIATE(int16_t)
RUSH_INSTANTIATE(int32_t)
RUSH_INSTANTIATE(int64_t)
RUSH_INSTANTIATE(std::complex<float>)
RUSH_INSTANTIATE(std::complex<double>)
#undef RUSH_INSTANTIATE

}  // namespace rush::cpu
#endif
