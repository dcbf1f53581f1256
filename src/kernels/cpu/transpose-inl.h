// Transposition in registers, for kernels that are compiled once for each instruction set.
#if defined(RUSH_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSH_TRANSPOSE_INL_H
#undef RUSH_TRANSPOSE_INL_H
#else
#define RUSH_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The side of the squares that are transposed at a time: 8 halves, 4 floats, 2 doubles.
template <class T>
constexpr int64_t kSquare = 16 / sizeof(T);

// Column c of a square, or of several whose rows vectors hold side by side, as columns[c]; load(r) is row r.
template <class T, class D, class Load>
HWY_INLINE void transpose_blocks(D d, const Load& load, hn::Vec<D> (&columns)[kSquare<T>]) {
  const auto r0 = load(0), r1 = load(1);
  if constexpr (kSquare<T> == 8) {
    const hn::Repartition<uint32_t, D> d4;
    const hn::Repartition<uint64_t, D> d8;
    using V4 = hn::Vec<decltype(d4)>;
    // Of four rows from `first` on, two columns in each vector.
    const auto pairs = [&](int64_t first, V4(&out)[4]) HWY_ATTR {
      const auto a0 = load(first), a1 = load(first + 1), a2 = load(first + 2), a3 = load(first + 3);
      const auto low01 = hn::BitCast(d4, hn::InterleaveLower(d, a0, a1));
      const auto low23 = hn::BitCast(d4, hn::InterleaveLower(d, a2, a3));
      const auto high01 = hn::BitCast(d4, hn::InterleaveUpper(d, a0, a1));
      const auto high23 = hn::BitCast(d4, hn::InterleaveUpper(d, a2, a3));
      out[0] = hn::InterleaveLower(d4, low01, low23);
      out[1] = hn::InterleaveUpper(d4, low01, low23);
      out[2] = hn::InterleaveLower(d4, high01, high23);
      out[3] = hn::InterleaveUpper(d4, high01, high23);
    };
    V4 top[4], bottom[4];
    pairs(0, top);
    pairs(4, bottom);
    for (int64_t pair = 0; pair < 4; ++pair) {
      const auto t = hn::BitCast(d8, top[pair]), b = hn::BitCast(d8, bottom[pair]);
      columns[2 * pair] = hn::BitCast(d, hn::InterleaveLower(d8, t, b));
      columns[2 * pair + 1] = hn::BitCast(d, hn::InterleaveUpper(d8, t, b));
    }
  } else if constexpr (kSquare<T> == 4) {
    const auto r2 = load(2), r3 = load(3);
    const hn::Repartition<double, D> d2;
    const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, r2, r3));
    columns[0] = hn::BitCast(d, hn::InterleaveLower(d2, low01, low23));
    columns[1] = hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23));
    columns[2] = hn::BitCast(d, hn::InterleaveLower(d2, high01, high23));
    columns[3] = hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23));
  } else {
    columns[0] = hn::InterleaveLower(d, r0, r1);
    columns[1] = hn::InterleaveUpper(d, r0, r1);
  }
}

// to[c * to_row + r] = load(r)[c] of a square, or of kBelow squares below each other, whose rows a vector holds side by
// side.
template <class T, int64_t kBelow = 1, class Load>
HWY_INLINE void transpose_square(const Load& load, T* to, int64_t to_row) {
  const hn::FixedTag<T, kSquare<T> * kBelow> d;
  hn::Vec<decltype(d)> columns[kSquare<T>];
  transpose_blocks<T>(d, load, columns);
  for (int64_t c = 0; c < kSquare<T>; ++c) hn::StoreU(columns[c], d, to + c * to_row);
}

#if HWY_CAP_GE512
// to[c * to_row + r] = from[r * from_row + c] of four by four squares. Rows are loaded whole, since those that lie a
// power of two apart push each other out of L1.
template <class T>
HWY_INLINE void transpose_lines(const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int64_t G = kSquare<T>;
  const hn::FixedTag<T, 4 * G> d;
  hn::Vec<decltype(d)> parts[4][G];  // [rows, four parts of them][column of each square]
  for (int64_t i = 0; i < 4; ++i)
    transpose_blocks<T>(
        d, [&](int64_t r) HWY_ATTR { return hn::LoadU(d, from + (i * G + r) * from_row); }, parts[i]);
  for (int64_t c = 0; c < G; ++c) {
    const auto put = [&](int64_t square, auto even, auto odd) HWY_ATTR {
      T* const at = to + (square * G + c) * to_row;
      hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even), d, at);
      hn::StoreU(hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)), d, at + G * to_row);
    };
    put(0, hn::ConcatLowerLower(d, parts[2][c], parts[0][c]), hn::ConcatLowerLower(d, parts[3][c], parts[1][c]));
    put(2, hn::ConcatUpperUpper(d, parts[2][c], parts[0][c]), hn::ConcatUpperUpper(d, parts[3][c], parts[1][c]));
  }
}
#endif

// Row 0 of kBelow squares below each other.
template <class T, int64_t kBelow>
HWY_INLINE auto load_below(const T* from, int64_t from_row) {
  const hn::FixedTag<T, kSquare<T> * kBelow> d;
  if constexpr (kBelow == 1) {
    return hn::LoadU(d, from);
  } else {
    const auto low = load_below<T, kBelow / 2>(from, from_row);
    return hn::Combine(d, load_below<T, kBelow / 2>(from + kBelow / 2 * kSquare<T> * from_row, from_row), low);
  }
}

// to[c * to_row + r] = from[r * from_row + c] for r < rows, c < cols.
template <class T>
HWY_NOINLINE void transpose(const T* from, int64_t from_row, int64_t rows, int64_t cols, T* to, int64_t to_row) {
  constexpr int64_t G = kSquare<T>;
  const hn::FixedTag<T, G> d;
  if (rows < G || cols < G) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) to[c * to_row + r] = from[r * from_row + c];
    return;
  }
  constexpr int64_t kBelow = HWY_LANES(T) / G;  // stores are whole vectors where there are rows enough
  int64_t whole = 0;
  if constexpr (kBelow > 1)
    for (; whole + kBelow * G <= rows; whole += kBelow * G) {
      int64_t c0 = 0;
#if HWY_CAP_GE512
      if constexpr (G <= 4)
        for (; c0 + 4 * G <= cols; c0 += 4 * G)
          transpose_lines(from + whole * from_row + c0, from_row, to + c0 * to_row + whole, to_row);
#endif
      for (; c0 < cols; c0 += G) {
        const int64_t c = std::min(c0, cols - G);
        const T* at = from + whole * from_row + c;
        const auto load = [&](int64_t i) HWY_ATTR { return load_below<T, kBelow>(at + i * from_row, from_row); };
        transpose_square<T, kBelow>(load, to + c * to_row + whole, to_row);
      }
    }
  for (int64_t r0 = whole; r0 < rows; r0 += G)
    for (int64_t c0 = 0; c0 < cols; c0 += G) {
      const int64_t r = std::min(r0, rows - G), c = std::min(c0, cols - G);  // the last square may cover lines again
      const T* at = from + r * from_row + c;
      transpose_square<T>([&](int64_t i) HWY_ATTR { return hn::LoadU(d, at + i * from_row); }, to + c * to_row + r,
                          to_row);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
