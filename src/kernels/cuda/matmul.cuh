// Matrix products where no library is: each team computes a tile of the result, from strips of both operands in shared
// memory.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

inline constexpr int kTile = 32, kStrip = 16;
#ifdef __CUDACC_RTC__
inline constexpr int kOwn = kTile * kTile / kTeam;  // elements of the tile that a thread sums: teams are full
#else
inline constexpr int kOwn = kTile * kTile;
#endif

template <class C>
RUSH_FN C multiply_add(C a, C b, C sum) {
  if constexpr (std::is_floating_point_v<C>)
    return formula::fma(a, b, sum);
  else
    return C(sum + a * b);
}

/// An operand: element (b, i, j) is at b * batch + i * row + j * col.
template <class T>
struct Matrix {
  const T* data;
  int64_t batch, row, col;
};

/// out (batch, m, n) = alpha * a b + beta * out + bias; the team's index counts tiles.
template <class T>
struct Product {
  using C = compute_t<T>;
  T* out;
  Matrix<T> a, b;
  const T* bias;                   // of n, or null
  int64_t m, n, k, rows, columns;  // tiles in each direction
  C alpha, beta;

  RUSH_FN void operator()(int64_t tile) const {
    RUSH_SHARED(C, left, kTile * kStrip);
    RUSH_SHARED(C, right, kStrip * kTile);
    const int64_t which = tile / (rows * columns), row = tile / columns % rows * kTile, col = tile % columns * kTile;
    const T *first = a.data + which * a.batch, *second = b.data + which * b.batch;
    C sums[kOwn];
    for (int o = 0; o < kOwn; ++o) sums[o] = C(0);
    for (int64_t at = 0; at < k; at += kStrip) {
      share(kTile * kStrip, [&](int64_t e) {
        const int64_t i = row + e / kStrip, j = at + e % kStrip;
        left[e] = i < m && j < k ? C(first[i * a.row + j * a.col]) : C(0);
      });
      share(kStrip * kTile, [&](int64_t e) {
        const int64_t i = at + e / kTile, j = col + e % kTile;
        right[e] = i < k && j < n ? C(second[i * b.row + j * b.col]) : C(0);
      });
      __syncthreads();
      int own = 0;
      for (int e = threadIdx.x; e < kTile * kTile; e += blockDim.x, ++own) {
        C sum = sums[own];
        const C *l = left + e / kTile * kStrip, *r = right + e % kTile;
        for (int s = 0; s < kStrip; ++s) sum = multiply_add(l[s], r[s * kTile], sum);
        sums[own] = sum;
      }
      __syncthreads();
    }
    int own = 0;
    for (int e = threadIdx.x; e < kTile * kTile; e += blockDim.x, ++own) {
      const int64_t i = row + e / kTile, j = col + e % kTile;
      if (i >= m || j >= n) continue;
      T& to = out[(which * m + i) * n + j];
      C y = C(alpha * sums[own]);
      if (beta != C(0)) y = C(y + beta * C(to));
      if (bias) y = C(y + C(bias[j]));
      to = T(y);
    }
  }
};

/// The p-norm of the distance between rows; out is (batch, m, n).
template <class T>
struct Distance {
  Array out, a, b;
  int64_t m, n, k;
  double p;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t left = i / n * k, right = (i / (m * n) * n + i % n) * k;
    T sum = 0;
    for (int64_t e = 0; e < k; ++e) {
      const T d = formula::abs(a.at<T>(left + e) - b.at<T>(right + e));
      if (p == formula::kInf)
        sum = d > sum || d != d ? d : sum;
      else
        sum += p == 2 ? d * d : (p == 1 ? d : (p == 0 ? T(d != 0) : formula::pow(d, T(p))));
    }
    if (p == 2) sum = formula::sqrt(sum);
    if (p != 0 && p != 1 && p != 2 && p != formula::kInf) sum = formula::pow(sum, T(1 / p));
    out.put(i, sum);
  }
};

}  // namespace rush::cuda
