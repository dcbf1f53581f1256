// Sorting rows: elements become unsigned keys of the same order with their indices, short runs are sorted by insertion,
// then runs are merged level by level. In a merge each item finds its place by itself, from its rank in the other run,
// so that all items of all rows are work for as many threads.
#pragma once
#include "kernels/bins.h"
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

/// Rows are ordered by key, then index.
struct Item {
  uint64_t key;
  int64_t index;
};
inline constexpr int64_t kRun = 16;
inline constexpr uint64_t kNanKey = ~uint64_t{0};

/// An unsigned number that is ordered as x is; T is int64_t or double. Every NaN has the greatest, both zeros the same.
template <class T>
RUSH_FN uint64_t key_of(T x) {
  constexpr uint64_t sign = uint64_t{1} << 63;
  if constexpr (std::is_same_v<T, int64_t>) {
    return uint64_t(x) ^ sign;
  } else {
    if (x != x) return kNanKey;
    const uint64_t bits = formula::bits(x == 0 ? 0.0 : x);
    return bits & sign ? ~bits : bits | sign;
  }
}

/// Rows of n elements that lie `inner` apart.
template <class T>
struct MakeItems {
  Item* items;
  Array x;
  int64_t n, inner;
  bool descending;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t row = i / n, k = i % n;
    const uint64_t key = key_of(x.at<T>(row / inner * n * inner + row % inner + k * inner));
    items[i] = {descending ? ~key : key, k};
  }
};

RUSH_FN bool comes_before(const Item& a, const Item& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }

/// For each run of kRun items of each row.
struct SortRuns {
  Item* items;
  int64_t n, runs;  // of a row
  RUSH_FN void operator()(int64_t i) const {
    const int64_t first = i % runs * kRun, count = n - first < kRun ? n - first : kRun;
    Item* run = items + i / runs * n + first;
    for (int64_t k = 1; k < count; ++k) {
      const Item item = run[k];
      int64_t at = k;
      for (; at > 0 && comes_before(item, run[at - 1]); --at) run[at] = run[at - 1];
      run[at] = item;
    }
  }
};

/// Merges pairs of runs of `run` items; for each item.
struct MergeRuns {
  Item* to;
  const Item* from;
  int64_t n, run;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t row = i / n * n, k = i - row, pair = k / (2 * run) * (2 * run);
    const bool left = k - pair < run;
    const int64_t other = left ? pair + run : pair;  // where the other run begins
    int64_t begin = other < n ? other : n, end = begin + run < n ? begin + run : n;
    const Item item = from[i];
    const int64_t first = begin;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (comes_before(from[row + middle], item))
        begin = middle + 1;
      else
        end = middle;
    }
    to[row + pair + (k - (left ? pair : pair + run)) + (begin - first)] = item;
  }
};

/// The first k of each sorted row.
template <class T>
struct TakeSorted {
  Array values, indices, x;
  const Item* items;
  int64_t n, k, inner, skip;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t row = i / k, at = i % k, index = items[row * n + skip + at].index;
    const int64_t base = row / inner, column = row % inner, to = (base * k + at) * inner + column;
    values.put<T>(to, x.at<T>((base * n + index) * inner + column));
    indices.put<int64_t>(to, index);
  }
};

/// One of each sorted row: the lower median, or the most frequent.
template <class T, bool kMode>
struct PickSorted {
  Array values, indices, x;
  const Item* items;
  int64_t n;
  bool ignore_nan;
  RUSH_FN int64_t median(const Item* row) const {
    int64_t begin = 0, end = n;  // how many are not NaN
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (row[middle].key == kNanKey && !std::is_same_v<T, int64_t>)
        end = middle;
      else
        begin = middle + 1;
    }
    if (begin == n) return (n - 1) / 2;
    return ignore_nan && begin > 0 ? (begin - 1) / 2 : (ignore_nan ? 0 : begin);
  }
  RUSH_FN int64_t mode(const Item* row) const {
    int64_t best = 0, most = 0, run = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool same = i > 0 && row[i].key == row[i - 1].key && (row[i].key != kNanKey || std::is_same_v<T, int64_t>);
      run = same ? run + 1 : 1;
      if (run > most || (run == most && row[i].key == row[best].key)) best = i, most = run;
    }
    return best;
  }
  RUSH_FN void operator()(int64_t r) const {
    const Item* row = items + r * n;
    const int64_t index = row[kMode ? mode(row) : median(row)].index;
    values.put<T>(r, x.at<T>(r * n + index));
    indices.put<int64_t>(r, index);
  }
};

template <class C>
struct Histogram {
  int64_t* counts;
  Array x;
  int64_t bins;
  C low, high;
  RUSH_FN void operator()(int64_t i) const {
    const C v = x.at<C>(i);
    if (v >= low && v <= high) atomic_add(counts + bin_of(v, low, high, bins), int64_t{1});
  }
};
template <class T>
struct Bincount {
  T* out;
  const int64_t* x;
  const T* weights;  // or null
  RUSH_FN void operator()(int64_t i) const { atomic_add(out + x[i], weights ? weights[i] : T(1)); }
};

}  // namespace rush::cuda
