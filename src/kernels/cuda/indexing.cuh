// Reading and writing at indices. Where writes meet, they are atomic; which of several assignments stays is not said.
#pragma once
#include "kernels/cuda/failure.cuh"
#include "kernels/cuda/layout.cuh"
#include "kernels/writes.h"

namespace rush::cuda {

inline constexpr int kMaxIndices = 8;

/// What cpu::Selection is on the host: dimensions before, in and after the index positions.
struct Selected {
  Axes before, after;
  int64_t n, block;  // positions; elements after each
  int64_t count;     // of indices
  struct {
    Array index;  // of n elements
    int64_t size, stride, dim;
  } places[kMaxIndices];
  IndexCheck check;
  bool wrap;

  /// Where element i of the selection lies in x; false if an index is wrong.
  RUSH_FN bool place(int64_t i, int64_t& at) const {
    const int64_t k = i / block, inner = i - k * block, o = k / n, position = k - o * n;
    at = before.place(o) + after.place(inner);
    for (int64_t p = 0; p < count; ++p) {
      int64_t index = places[p].index.at<int64_t>(position);
      if (index < 0 && wrap) index += places[p].size;
      if (!check(index, places[p].size, int(places[p].dim))) return false;
      at += index * places[p].stride;
    }
    return true;
  }
};

/// W is any type of the elements' size.
template <class W>
struct IndexRead {
  W* out;
  const W* x;
  Selected s;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at;
    if (s.place(i, at)) out[i] = x[at];
  }
};

template <class T>
RUSH_FN void write(Write how, T* at, T value) {
  if (how == Write::assign) {
    *at = value;
  } else if (how == Write::add) {
    if constexpr (std::is_same_v<T, bool>)
      *at = *at || value;
    else
      atomic_add(at, value);
  } else if constexpr (sizeof(T) <= 8) {
    update(at, [&](T old) { return written(how, old, value); });
  }
}

template <class T>
struct IndexWrite {
  T* out;
  const T* values;
  int64_t one;  // 0 where values is a single one, else 1
  Write how;
  Selected s;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at;
    if (s.place(i, at)) write(how, out + at, values[i * one]);
  }
};

/// Lanes: index, the tensor of the index's sizes, and the one indexed, whose stride is 0 in the layout and `stride` by
/// the index.
struct Along {
  Layout<3> l;
  int64_t size, stride, dim;
  IndexCheck check;
  RUSH_FN bool place(int64_t i, int64_t* at) const {
    l.locate(i, at);
    const int64_t index = load<int64_t>(l.lanes[0].data, l.lanes[0].dtype, at[0]);
    at[2] += index * stride;
    return check(index, size, int(dim));
  }
};
template <class W>
struct Gather {
  Along a;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at[3];
    if (a.place(i, at))
      reinterpret_cast<W*>(a.l.lanes[1].data)[at[1]] = reinterpret_cast<const W*>(a.l.lanes[2].data)[at[2]];
  }
};
template <class T>
struct Scatter {
  Along a;
  Write how;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at[3];
    if (a.place(i, at))
      write(how, reinterpret_cast<T*>(a.l.lanes[2].data) + at[2], reinterpret_cast<const T*>(a.l.lanes[1].data)[at[1]]);
  }
};

/// out[count before i] = coordinates of i, for i that are set; `upto` counts them with i.
struct Nonzero {
  int64_t* out;
  const int64_t* upto;
  int64_t dims, sizes[kLayoutDims];
  RUSH_FN void operator()(int64_t i) const {
    if (upto[i] == (i == 0 ? 0 : upto[i - 1])) return;
    int64_t* row = out + (upto[i] - 1) * dims;
    int64_t rest = i;
    for (int d = int(dims) - 1; d >= 0; --d) {
      row[d] = rest % sizes[d];
      rest /= sizes[d];
    }
  }
};

template <class T>
struct SearchSorted {
  Array out, sorted, values, sorter;
  int64_t n, row;  // length of a sorted row; values that share one
  bool right;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t first = i / row * n;
    const T value = values.at<T>(i);
    int64_t begin = 0, end = n;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      const T bound = sorted.at<T>(first + (sorter ? sorter.at<int64_t>(first + middle) : middle));
      // Written so that NaN, with which every comparison is false, goes to the end.
      if (right ? !(bound > value) : !(bound >= value))
        begin = middle + 1;
      else
        end = middle;
    }
    out.put<int64_t>(i, begin);
  }
};

/// The lanes are out and x; the last two dimensions are rows and columns.
template <class W>
struct Triangle {
  Layout<2> l;
  int64_t k;
  bool upper;
  RUSH_FN void operator()(int64_t i) const {
    int64_t at[2];
    l.locate(i, at);
    const int64_t columns = l.sizes[l.dims - 1], c = i % columns, r = i / columns % l.sizes[l.dims - 2];
    const bool keep = upper ? c - r >= k : c - r <= k;
    reinterpret_cast<W*>(l.lanes[0].data)[at[0]] = keep ? reinterpret_cast<const W*>(l.lanes[1].data)[at[1]] : W{};
  }
};

/// The row with the greatest value in a column of a bag; bags are rows of `indices` from `starts` on.
template <class T>
struct BagArgmax {
  int64_t* out;
  Array weight;
  const int64_t *indices, *starts;
  int64_t columns, padding;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t b = i / columns, c = i % columns;
    int64_t best = -1;
    for (int64_t k = starts[b]; k < starts[b + 1]; ++k) {
      if (indices[k] == padding) continue;
      if (best < 0 || weight.at<T>(indices[k] * columns + c) > weight.at<T>(best * columns + c)) best = indices[k];
    }
    out[i] = best;
  }
};

}  // namespace rush::cuda
