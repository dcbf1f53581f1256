// The engine of matrix products and convolutions, compiled once for each instruction set: micro-kernels, packing, and
// the loops around them. gemm.cpp and conv.cpp include it.
//
// Blocking: a micro-kernel keeps a tile of c in registers, 6 rows by four vectors of columns with AVX-512 (14 by two
// where there are few columns, 6 by two with AVX2), and goes through a K block of at most 2 KiB a row: a's rows stay in
// L1 while they meet the panels of b, 512 KiB in L2, that its task has packed, k by k. Rows of a are read where they
// lie. Tasks divide c only, and each element is summed in the order of k, so the division may follow the number of
// threads.
//
// A core of an Intel Xeon (Emerald Rapids) does 178 GF/s at most: floats 256^3 164 (MKL 156), 512^3 155 (157), 1024^3
// 157 (159). Others share its cores, which leaves 140 at times: what loads and decodes less then keeps more, so wide
// tiles.
#if defined(RUSH_GEMM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSH_GEMM_INL_H
#undef RUSH_GEMM_INL_H
#else
#define RUSH_GEMM_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/epilogue-inl.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/integers.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/cpu/weight.h"
#include "rushlight/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators fill the registers but for two vectors of b and one element of a: 32 registers, or 16.
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
constexpr int kMaxRows = 14;
constexpr int kWideRows = 6, kWideVectors = 4;
#else
constexpr int kMaxRows = 6;
constexpr int kWideRows = kMaxRows, kWideVectors = 2;  // nothing wider fits
#endif
template <class T>
constexpr int64_t kLanes = HWY_LANES(T);
template <class T>
constexpr int64_t kPanel = 2 * kLanes<T>;  // columns of a panel of b
template <class T>
constexpr int64_t kBlockColumns = 8 * kPanel<T>;  // of b that a task packs at a time

// How a product is cut: tiles of at most `rows` by `columns`, K blocks of at most `depth`.
template <class T>
struct Cut {
  int64_t rows, columns, depth;

  // Wide tiles load less for each multiplication, tall ones suit fewer columns.
  static constexpr Cut tall() { return {kMaxRows, kPanel<T>, 1536 / sizeof(T)}; }
  static constexpr Cut wide() {
    return kWideVectors == 2 ? tall() : Cut{kWideRows, kWideVectors * kLanes<T>, 2048 / sizeof(T)};
  }
  static constexpr Cut of(int64_t n) { return n >= wide().columns ? wide() : tall(); }  // for n columns

  // The depth of all K blocks but the last.
  int64_t block_depth(int64_t k) const { return k == 0 ? 0 : ceil_div(k, ceil_div(k, depth)); }
  // The width of the panel that begins at column j of n.
  int64_t panel_width(int64_t n, int64_t j) const { return std::min(columns, ceil_div(n - j, kLanes<T>) * kLanes<T>); }
};

// ---- loads that widen, and partial vectors --------------------------------------------------------------------------

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const BFloat16* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)))));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Half* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
// Without mask instructions Highway's masked accesses touch the whole vector, beyond what is ours.
#if HWY_TARGET <= HWY_AVX2
constexpr bool kHasMasks = true;
#else
constexpr bool kHasMasks = false;
#endif

// The first n elements, then zeros.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_first(D d, const S* p, int64_t n) {
  if constexpr (kHasMasks && std::is_same_v<S, hn::TFromD<D>>) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
  } else {
    S part[HWY_LANES(hn::TFromD<D>)] = {};
    std::copy(p, p + n, part);
    return load(d, part);
  }
}
template <class D>
HWY_INLINE void store_first(D d, hn::Vec<D> v, hn::TFromD<D>* p, int64_t n) {
  if constexpr (kHasMasks) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, p);
  } else {
    HWY_ALIGN hn::TFromD<D> part[HWY_LANES(hn::TFromD<D>)];
    hn::Store(v, d, part);
    std::copy(part, part + n, p);
  }
}

// ---- the micro-kernel -----------------------------------------------------------------------------------------------

// c (rows by columns) = alpha * a b + beta * c, over a K block. a lies k by k (as packed), a_step apart, or row by row.
template <class T>
struct Tile {
  int64_t k;
  const T* a;
  int64_t a_row, a_step = 0;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  int64_t rows;  // R or R - 1
  T alpha, beta;
  const T* bias = nullptr;           // one for each column, added to the sums
  const Epilogue<T>* end = nullptr;  // then this, which is for rows
};

// How a micro-kernel multiplies and sums: sum + a b.
struct MulAdd {
  template <class Vec>
  static HWY_INLINE Vec run(Vec a, Vec b, Vec sum) {
    return hn::MulAdd(a, b, sum);
  }
};
// Elements are four bytes, neighbours in k, that travel as one int32: unsigned in a, signed in b.
struct MulAddQuads {
  template <class Vec>
  static HWY_INLINE Vec run(Vec a, Vec b, Vec sum) {
    const hn::DFromV<Vec> d;
    const hn::Repartition<int16_t, decltype(d)> d16;
    const hn::RebindToUnsigned<decltype(d16)> d16_unsigned;
    const auto bytes = hn::BitCast(d16_unsigned, a);
    const auto even_a = hn::BitCast(d16, hn::And(bytes, hn::Set(d16_unsigned, uint16_t{255})));
    const auto odd_a = hn::BitCast(d16, hn::ShiftRight<8>(bytes));
    const auto odd_b = hn::ShiftRight<8>(hn::BitCast(d16, b));
    const auto even_b = hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(d16, b)));
    Vec high = hn::Zero(d), low = hn::ReorderWidenMulAccumulate(d, even_a, even_b, hn::Zero(d), high);
    low = hn::ReorderWidenMulAccumulate(d, odd_a, odd_b, low, high);
    return hn::Add(sum, hn::RearrangeToOddPlusEven(low, high));
  }
};
#undef RUSH_PAIRS  // of the target before
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define RUSH_PAIRS 1
// Elements are pairs of bfloat16, neighbours in k, that travel as one float. Only where the CPU has AVX512_BF16.
struct MulAddPairs {
  template <class Vec>
  static HWY_INLINE Vec run(Vec a, Vec b, Vec sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
// MulAddQuads where the CPU has AVX512_VNNI.
struct MulAddQuadsAtOnce {
  template <class Vec>
  static HWY_INLINE Vec run(Vec a, Vec b, Vec sum) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
#else
#define RUSH_PAIRS 0
#endif

// The end of a tile in the general case, kept out of the micro-kernels: sums lie `width` apart.
template <class T>
HWY_NOINLINE void end_tile(const Tile<T>& t, const T* sums, int64_t width) {
  const hn::ScalableTag<T> d;
  const auto alpha = hn::Set(d, t.alpha), beta = hn::Set(d, t.beta);
  const Finish<T> finish(t.end ? *t.end : Epilogue<T>{});
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < width; j += kLanes<T>) {
      T* const at = t.c + i * t.c_row + j;
      auto v = hn::Mul(hn::Load(d, sums + i * width + j), alpha);
      if (t.beta != 0) v = mul_add(hn::LoadU(d, at), beta, v);
      if (t.bias) v = hn::Add(v, hn::LoadU(d, t.bias + j));
      if (t.end) v = finish.of_row(v, i);
      hn::StoreU(v, d, at);
    }
}

template <class T, class Sum, int R, int V, bool kPacked>
HWY_NOINLINE void micro_kernel(const Tile<T>& t) {
  const hn::ScalableTag<T> d;
  using Vec = hn::Vec<decltype(d)>;
  constexpr int64_t N = kLanes<T>;
  Vec sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT a = t.a;
  const T* HWY_RESTRICT b = t.b;
  T* HWY_RESTRICT c = t.c;
  const int64_t c_row = t.c_row, b_row = t.b_row;
  for (int i = 0; i < t.rows; ++i) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * c_row + v * N, 1);
  }
  // Rows by five from a few addresses, in which a multiple of a step costs nothing. The last may be the one before it.
  constexpr int kFifths = (R + 4) / 5;
  const T* HWY_RESTRICT fifth[kFifths];
  for (int i = 0; i < kFifths; ++i) fifth[i] = a + 5 * i * t.a_row;
  const T* HWY_RESTRICT last = a + (t.rows - 1) * t.a_row;
  const int64_t a_row = t.a_row;
  const int64_t ahead = 8 * b_row;  // b comes from L2, which Intel's prefetchers alone do not hide
  for (int64_t k = t.k; k > 0; --k) {
    Vec bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      bv[v] = hn::LoadU(d, b + v * N);
      hwy::Prefetch(b + ahead + v * N);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vec av = hn::Set(d, kPacked ? a[i] : i + 1 == R ? *last : fifth[i / 5][i % 5 * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = Sum::run(av, bv[v], sum[i][v]);
    }
    if constexpr (kPacked) {
      a += t.a_step;
    } else {
      for (int i = 0; i < kFifths; ++i) ++fifth[i];
      ++last;
    }
    b += b_row;
  }
  const bool whole = t.rows == R;
  const auto each = [&](const auto& put) HWY_ATTR {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      if (i + 1 == R && !whole) break;
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) put(sum[i][v], i, v * N);
    }
  };
  const bool usual = t.alpha == 1 && !t.bias;
  if (usual && t.beta == 0 && t.end) {
    const Finish<T> finish(*t.end);
    each([&](Vec sum, int i, int64_t j) HWY_ATTR { hn::StoreU(finish.of_row(sum, i), d, c + i * c_row + j); });
  } else if (usual && t.beta == 0) {
    each([&](Vec sum, int i, int64_t j) HWY_ATTR { hn::StoreU(sum, d, c + i * c_row + j); });
  } else if (t.alpha == 1 && t.beta == 0 && !t.end) {
    each([&](Vec sum, int i, int64_t j)
             HWY_ATTR { hn::StoreU(hn::Add(sum, hn::LoadU(d, t.bias + j)), d, c + i * c_row + j); });
  } else if (usual && t.beta == 1 && !t.end) {
    each([&](Vec sum, int i, int64_t j)
             HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, c + i * c_row + j), sum), d, c + i * c_row + j); });
  } else {
    HWY_ALIGN T sums[R * V * N];
    each([&](Vec sum, int i, int64_t j) HWY_ATTR { hn::Store(sum, d, sums + i * V * N + j); });
    end_tile(t, sums, V * N);
  }
}

// Kernels of up to two vectors exist for one row and for even numbers of rows, wider ones for each number.
constexpr int kernel_rows(int64_t rows) { return rows <= 1 ? 1 : static_cast<int>((rows + 1) & ~int64_t{1}); }

// Rows of each of the tiles that m rows are cut into, so that they are nearly equal, and even.
inline int64_t panel_rows(int64_t m) { return kernel_rows(ceil_div(m, ceil_div(m, kMaxRows))); }

// Runs the kernel for the tile's rows and `vectors` of columns. Of a packed k by k there are two at most.
template <class T, class Sum = MulAdd, bool kPacked = false>
HWY_INLINE void run_tile(const Tile<T>& t, int64_t vectors) {
  using Kernel = void (*)(const Tile<T>&);
#define RUSH_KERNELS(R, V) \
  { micro_kernel<T, Sum, R, V, kPacked>, micro_kernel<T, Sum, R, V + 1, kPacked> }
#if HWY_CAP_GE512 || HWY_ARCH_ARM_A64
  static constexpr Kernel kernels[][2] = {RUSH_KERNELS(1, 1),  RUSH_KERNELS(2, 1), RUSH_KERNELS(4, 1),
                                          RUSH_KERNELS(6, 1),  RUSH_KERNELS(8, 1), RUSH_KERNELS(10, 1),
                                          RUSH_KERNELS(12, 1), RUSH_KERNELS(14, 1)};
  if constexpr (!kPacked) {
    static constexpr Kernel wide[][2] = {RUSH_KERNELS(1, 3), RUSH_KERNELS(2, 3), RUSH_KERNELS(3, 3),
                                         RUSH_KERNELS(4, 3), RUSH_KERNELS(5, 3), RUSH_KERNELS(6, 3)};
    if (vectors > 2) return wide[t.rows - 1][vectors - 3](t);
  }
#else
  static constexpr Kernel kernels[][2] = {RUSH_KERNELS(1, 1), RUSH_KERNELS(2, 1), RUSH_KERNELS(4, 1),
                                          RUSH_KERNELS(6, 1)};
#endif
#undef RUSH_KERNELS
  kernels[kernel_rows(t.rows) / 2][vectors - 1](t);
}

// ---- packing --------------------------------------------------------------------------------------------------------

// Packs a panel: out[k * R + i] = element k of line i, for i < valid. The rest, up to R, is padding and holds anything.
template <class T, class S>
HWY_NOINLINE void pack_panel(const S* src, int64_t line, int64_t step, int64_t valid, int64_t R, int64_t depth,
                             T* HWY_RESTRICT out) {
  if (line == 1) {
    const hn::ScalableTag<T> d;
    constexpr int64_t N = kLanes<T>;
    const int64_t whole = ceil_div(valid, N) * N;
    // Whole vectors as long as what they read and write too much lies in the next steps, which then write it again.
    int64_t k = 0, end = depth - std::max<int64_t>(2, ceil_div(whole, R));
    if (step + valid < whole) end = -1;
    if (valid == whole) end = depth - 1;
    for (; k <= end; ++k)
      for (int64_t i = 0; i < whole; i += N) hn::StoreU(load(d, src + k * step + i), d, out + k * R + i);
    for (; k < depth; ++k)
      for (int64_t i = 0; i < valid; i += N)
        store_first(d, load_first(d, src + k * step + i, std::min(valid - i, N)), out + k * R + i,
                    std::min(valid - i, N));
    return;
  }
  constexpr int64_t G = kSquare<T>;
  const auto line_at = [&](int64_t i) { return src + std::min(i, valid - 1) * line; };
  if (step == 1 && R >= G) {
    // A cache line of every line at a time: what of the panel is written to meanwhile stays in L1.
    constexpr int64_t kSteps = 64 / sizeof(T);
    for (int64_t k0 = 0; k0 < depth; k0 += kSteps) {
      const int64_t end = std::min(depth, k0 + kSteps);
      int64_t i0 = 0;
#if HWY_CAP_GE512
      if constexpr (std::is_same_v<S, T>)  // four by four squares at once
        for (; k0 + kSteps <= end && i0 + kSteps <= valid; i0 += kSteps)
          for (int64_t k = k0; k < end; k += 4 * G) transpose_lines<T>(src + i0 * line + k, line, out + k * R + i0, R);
#endif
      const hn::FixedTag<T, G> d;
      for (; i0 < valid; i0 += G) {
        const int64_t i = std::min(i0, R - G);  // the last block may cover lines again
        const S* lines[G];
        for (int64_t g = 0; g < G; ++g) {
          lines[g] = line_at(i + g);
          hwy::Prefetch(lines[g] + k0 + 2 * kSteps);
        }
        int64_t k = k0;
        for (; k + G <= end; k += G)
          transpose_square<T>([&](int64_t g) HWY_ATTR { return load(d, lines[g] + k); }, out + k * R + i, R);
        for (; k < end; ++k)
          for (int64_t g = 0; g < G; ++g) out[k * R + i + g] = static_cast<T>(lines[g][k]);
      }
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < valid; ++i) out[k * R + i] = static_cast<T>(line_at(i)[k * step]);
}

// ---- operand b and result c as the engine sees them -----------------------------------------------------------------

// The width of the panel of a tall cut that begins at column j of n.
template <class T>
int64_t panel_width(int64_t n, int64_t j) {
  return Cut<T>::tall().panel_width(n, j);
}

// All of b in panels: K block by K block, each panel by panel.
template <class T>
struct Panels {
  const T* data = nullptr;
  int64_t n = 0, k = 0, depth = 0;  // `depth` rows are a K block

  static int64_t size(int64_t n, int64_t k) { return ceil_div(n, kLanes<T>) * kLanes<T> * k; }
  int64_t at(int64_t k0, int64_t j) const { return size(n, k0) + j * std::min(depth, k - k0); }
};

// b as a strided matrix. Anything with pack() and direct() can be in its place.
template <class T, class S>
struct StridedColumns {
  Strided<const S> b;
  bool in_place;  // rows are contiguous and few panels of a meet them, so that packing would cost more than it gives
  Panels<T> panels = {};  // where they were packed before

  // Rows [k, k + depth) of columns [j, j + valid), as a panel of `width` columns.
  void pack(int64_t k, int64_t depth, int64_t j, int64_t valid, int64_t width, T* out) const {
    pack_panel<T, S>(b.data + k * b.row + j * b.col, b.col, b.row, valid, width, depth, out);
  }
  // Where the panel that begins at column j of row k, first of a K block, can be read without packing, or null. What is
  // read beyond its columns must be there.
  const T* direct(int64_t k, int64_t j, bool whole) const {
    if (panels.data) return panels.data + panels.at(k, j);
    if constexpr (std::is_same_v<S, T>) return in_place && whole ? b.data + k * b.row + j : nullptr;
    return nullptr;
  }
  int64_t row(int64_t width) const { return panels.data ? width : b.row; }

  // The same columns, but read from panels that are kept with the memory of the weight, which begins at `data`, if they
  // are. `holder` must live as long as they are read.
  StridedColumns kept(const Weight& weight, const void* data, int64_t n, int64_t k, Ref<Storage>& holder) const {
    if (in_place) return *this;
    holder =
        weight.keep(KeptAs::columns, sizeof(T), {n, k, b.row, b.col}, data, Panels<T>::size(n, k) * int64_t{sizeof(T)},
                    [&](void* to) { pack_all(n, k, static_cast<T*>(to)); });
    return {
        b, false,
        holder ? Panels<T>{static_cast<const T*>(holder->data()), n, k, Cut<T>::of(n).block_depth(k)} : Panels<T>{}};
  }

 private:
  void pack_all(int64_t n, int64_t k, T* to) const {
    const auto cut = Cut<T>::of(n);
    const int64_t depth = cut.block_depth(k), P = cut.columns;
    const Panels<T> all{to, n, k, depth};
    parallel_for(0, ceil_div(n, P), 1, [&](int64_t lo, int64_t hi) {
      for (int64_t k0 = 0; k0 < k; k0 += depth)
        for (int64_t j = lo * P; j < std::min(n, hi * P); j += P)
          pack(k0, std::min(depth, k - k0), j, std::min(n - j, P), cut.panel_width(n, j), to + all.at(k0, j));
    });
  }
};

// c as a strided matrix. A replacement has offset(j), where column j of row 0 lies, and run(j), how many columns from j
// on are contiguous.
template <class T>
struct StridedResult {
  Strided<T> c;
  int64_t offset(int64_t j) const { return j * c.col; }
  int64_t run(int64_t) const { return c.col == 1 ? int64_t{1} << 62 : 1; }
  T* data() const { return c.data; }
  int64_t row() const { return c.row; }
};

// Adds alpha and beta's work for a tile that was computed aside: c = tile + beta * c.
template <class T, class Result>
HWY_NOINLINE void merge_tile(const T* tile, int64_t width, int64_t rows, int64_t cols, const Result& result, int64_t i0,
                             int64_t j0, T beta) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  T* const c0 = result.data() + i0 * result.row();
  for (int64_t j = 0; j < cols;) {
    const int64_t run = std::min(result.run(j0 + j), cols - j);
    if (run == 1) {  // then probably for all columns
      int64_t offsets[Cut<T>::wide().columns];
      for (int64_t x = j; x < cols; ++x) offsets[x] = result.offset(j0 + x);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t x = j; x < cols; ++x) {
          T& c = c0[i * result.row() + offsets[x]];
          c = beta == 0 ? tile[i * width + x] : tile[i * width + x] + beta * c;
        }
      return;
    }
    T* c = c0 + result.offset(j0 + j);
    for (int64_t i = 0; i < rows; ++i, c += result.row()) {
      const T* from = tile + i * width + j;
      for (int64_t x = 0; x < run; x += N) {
        const int64_t count = std::min(run - x, N);
        auto v = hn::LoadU(d, from + x);  // the tile has room for whole vectors
        if (beta != 0) v = mul_add(load_first(d, c + x, count), hn::Set(d, beta), v);
        store_first(d, v, c + x, count);
      }
    }
    j += run;
  }
}

// Ends the sums of a tile that was computed aside.
template <class T, class Result>
HWY_NOINLINE void finish_tile(const T* bias, const Epilogue<T>& end, const Result& result, int64_t i0, int64_t rows,
                              int64_t j0, int64_t cols) {
  const hn::ScalableTag<T> d;
  constexpr int64_t N = kLanes<T>;
  const Finish<T> finish(end);
  for (int64_t j = 0; j < cols;) {
    const int64_t run = std::min(result.run(j0 + j), cols - j);
    T* c = result.data() + i0 * result.row() + result.offset(j0 + j);
    for (int64_t i = 0; i < rows; ++i, c += result.row())
      for (int64_t x = 0; x < run; x += N) {
        const int64_t count = std::min(run - x, N);
        auto v = load_first(d, c + x, count);
        if (bias) v = hn::Add(v, load_first(d, bias + j0 + j + x, count));
        store_first(d, finish.of_row(v, i), c + x, count);
      }
    j += run;
  }
}

// ---- the loops around -----------------------------------------------------------------------------------------------

// Calls body(lo, hi) on ranges of [0, n), at most `parts` of them.
template <class Body>
void split(int64_t n, int64_t parts, const Body& body) {
  if (parts <= 1) return body(int64_t{0}, n);
  parallel_for(0, parts, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p)
      if (n * p / parts < n * (p + 1) / parts) body(n * p / parts, n * (p + 1) / parts);
  });
}

// a packed by rows, K block by K block. Rows lie no power of two apart, since they would then share few cache sets.
template <class T, class S>
struct Rows {
  Strided<const S> a;
  int64_t rows, k, depth;
  int64_t line = (ceil_div(depth, kLanes<T>) + 1) * kLanes<T>;  // from row to row

  int64_t size() const { return k == 0 ? 0 : ceil_div(k, depth) * rows * line; }
  int64_t at(int64_t k0, int64_t row) const { return ((k0 == 0 ? 0 : k0 / depth) * rows + row) * line; }

  // Tasks are at most `tasks`. To pack_panel elements of a row are what lines of a panel are.
  void pack(T* to, int64_t tasks) const {
    constexpr int64_t each = 16;
    split(ceil_div(rows, each), tasks, [&](int64_t lo, int64_t hi) {
      lo *= each, hi = std::min(rows, hi * each);
      for (int64_t k0 = 0; k0 < k; k0 += depth)
        pack_panel<T, S>(a.data + lo * a.row + k0 * a.col, a.col, a.row, std::min(depth, k - k0), line, hi - lo,
                         to + at(k0, lo));
    });
  }
};

// a is packed in pieces of at most 8 MiB: rows, then columns of a piece.
template <class T>
constexpr int64_t kPieceSize = (8 << 20) / sizeof(T);
template <class T>
int64_t piece_rows(int64_t m, int64_t depth) {
  return std::min(m, std::max<int64_t>(kMaxRows, kPieceSize<T> / std::max<int64_t>(depth, 1)));
}
template <class T>
int64_t piece_depth(int64_t rows, int64_t depth) {
  return std::max<int64_t>(depth, kPieceSize<T> / rows / std::max<int64_t>(depth, 1) * depth);
}

// c = alpha * a b + beta * c + bias, which has an element for each column, then `end`, for the rows. `columns` is b,
// `result` is c.
template <class T, class S, class Sum = MulAdd, class Columns, class Result>
void multiply(int64_t m, int64_t n, int64_t k, Strided<const S> a, const Columns& columns, const Result& result,
              T alpha, T beta, const Epilogue<T>& end = {}, const T* bias = nullptr) {
  if (m == 0 || n == 0) return;
  constexpr int64_t N = kLanes<T>;
  const Cut<T> cut = Cut<T>::of(n);
  const int64_t P = cut.columns, panels_at_once = kBlockColumns<T> / P;
  const int64_t n_panels = ceil_div(n, P);
  const int64_t depth = cut.block_depth(k);
  const bool b_in_place = columns.direct(0, 0, n >= P) != nullptr;
  // Rows of a are read where they lie if they are contiguous and, where a tile has many, do not meet the same cache
  // sets.
  const bool a_in_place =
      std::is_same_v<S, T> && a.col == 1 && (cut.rows <= 6 || a.row * int64_t{sizeof(T)} % 4096 != 0);
  const int64_t piece_m = a_in_place ? m : piece_rows<T>(m, depth);
  const int64_t piece_k = a_in_place ? k : piece_depth<T>(piece_m, depth);

  for (int64_t m0 = 0; m0 < m; m0 += piece_m) {
    const int64_t rows = std::min(piece_m, m - m0);
    const int64_t R = P > kPanel<T> ? ceil_div(rows, ceil_div(rows, cut.rows)) : panel_rows(rows);
    const int64_t m_panels = ceil_div(rows, R);
    int64_t k0 = 0;
    do {
      const int64_t ks = std::min(piece_k, k - k0);
      const double work = static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(ks);
      const int64_t max_tasks =
          in_parallel() ? 1 : static_cast<int64_t>(std::clamp(work / (1 << 17), 1.0, 8.0 * num_threads()));
      const int64_t block_panels = std::clamp<int64_t>(
          n_panels / max_tasks, P > kPanel<T> || n_panels < 4 || b_in_place ? 1 : 2, panels_at_once);
      const int64_t n_blocks = ceil_div(n_panels, block_panels);
      const int64_t m_blocks = std::clamp<int64_t>(max_tasks / n_blocks, 1, std::max<int64_t>(1, rows / 128));

      const T* packed_a = nullptr;
      const Rows<T, S> packed{{a.data + m0 * a.row + k0 * a.col, a.row, a.col}, rows, ks, depth};
      if (!a_in_place) {
        T* to = scratch<T>(Scratch::a, packed.size());
        packed_a = to;
        packed.pack(to, max_tasks > 1 ? rows * ks >> 13 : 1);
      }

      const auto task = [&](int64_t p_lo, int64_t p_hi, int64_t jp_lo, int64_t jp_hi) {
        T* const packed_b = scratch<T>(Scratch::b, depth * P * (jp_hi - jp_lo));
        HWY_ALIGN T aside[(kMaxRows + 1) * kPanel<T>];
        int64_t kb = 0;
        do {
          const int64_t kc = std::min(depth, ks - kb);
          const bool first = k0 + kb == 0, last = k0 + kb + kc >= k;
          for (int64_t jp = jp_lo; jp < jp_hi; ++jp) {
            const int64_t cols = std::min(P, n - jp * P), width = cut.panel_width(n, jp * P);
            if (kc > 0 && !columns.direct(k0 + kb, jp * P, cols == width))
              columns.pack(k0 + kb, kc, jp * P, cols, width, packed_b + (jp - jp_lo) * P * depth);
          }
          for (int64_t p = p_lo; p < p_hi; ++p) {
            Tile<T> t;
            t.k = kc;
            t.rows = std::min(R, rows - p * R);
            t.alpha = alpha;
            const int64_t i = m0 + p * R;
            if constexpr (std::is_same_v<S, T>) t.a = a.data + i * a.row + (k0 + kb);
            if (!a_in_place) t.a = packed_a + packed.at(kb, p * R);
            t.a_row = a_in_place ? a.row : packed.line;
            const Epilogue<T> end_of_rows = end.from(i);
            for (int64_t jp = jp_lo; jp < jp_hi; ++jp) {
              const int64_t j = jp * P, cols = std::min(P, n - j), width = cut.panel_width(n, j);
              const T* in_place = columns.direct(k0 + kb, j, cols == width);
              t.b = in_place ? in_place : packed_b + (jp - jp_lo) * P * depth;
              t.b_row = in_place ? columns.row(width) : width;
              const bool whole = cols == width && result.run(j) >= cols;
              const T beta_now = first ? beta : T(1);
              t.c = whole ? result.data() + i * result.row() + result.offset(j) : aside;
              t.c_row = whole ? result.row() : width;
              t.beta = whole ? beta_now : T(0);
              t.bias = last && whole && bias ? bias + j : nullptr;
              t.end = last && whole && !end.empty() ? &end_of_rows : nullptr;
              run_tile<T, Sum>(t, width / N);
              if (whole) continue;
              merge_tile<T>(aside, width, t.rows, cols, result, i, j, beta_now);
              if (last && (bias || !end.empty())) finish_tile(bias, end_of_rows, result, i, t.rows, j, cols);
            }
          }
          kb += depth;
        } while (kb < ks);
      };
      if (n_blocks * m_blocks == 1 || max_tasks == 1) {
        for (int64_t jp = 0; jp < n_panels; jp += panels_at_once)
          task(0, m_panels, jp, std::min(n_panels, jp + panels_at_once));
      } else {
        parallel_for(0, n_blocks * m_blocks, 1, [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) {
            const int64_t bm = i / n_blocks, bn = i % n_blocks;
            task(m_panels * bm / m_blocks, m_panels * (bm + 1) / m_blocks, n_panels * bn / n_blocks,
                 n_panels * (bn + 1) / n_blocks);
          }
        });
      }
      k0 += piece_k;
    } while (k0 < k);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
