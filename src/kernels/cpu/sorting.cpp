// Sorting. Elements become unsigned keys of the same order (NaN last, both zeros equal), which are sorted together with
// their indices: by radix, 8 or 11 bits a pass and only the passes in which keys differ; short rows by comparison.
// topk scans for what exceeds the k-th best so far, a block of 64 at a time.
#include "kernels/cpu/sorting.h"

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cpu/pointwise.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

template <size_t Bytes>
struct Unsigned;
template <>
struct Unsigned<1> {
  using type = uint8_t;
};
template <>
struct Unsigned<2> {
  using type = uint16_t;
};
template <>
struct Unsigned<4> {
  using type = uint32_t;
};
template <>
struct Unsigned<8> {
  using type = uint64_t;
};
template <class T>
using Key = typename Unsigned<sizeof(T)>::type;

/// An unsigned number that is ordered as the element is.
template <class T>
Key<T> key_of(T value) {
  using K = Key<T>;
  constexpr K sign = K(K(1) << (8 * sizeof(T) - 1));
  K bits;
  std::memcpy(&bits, &value, sizeof bits);
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>) {
    return bits;
  } else if constexpr (std::is_integral_v<T>) {
    return bits ^ sign;
  } else {
    // The exponent all ones and a fraction: NaN. All of them get the greatest key.
    constexpr K infinity = std::is_same_v<T, double>     ? K(0x7ff0000000000000)
                           : std::is_same_v<T, float>    ? K(0x7f800000)
                           : std::is_same_v<T, BFloat16> ? K(0x7f80)
                                                         : K(0x7c00);
    const K magnitude = bits & K(~sign);
    const K ordered = magnitude == 0 ? sign : (bits & sign) ? K(~bits) : K(bits | sign);
    return magnitude > infinity ? K(~K(0)) : ordered;
  }
}

/// A key and an index. Keys of up to 32 bits share a word with the index.
struct Packed {
  uint64_t word;
  template <class K>
  static Packed make(K key, int64_t index) {
    return {uint64_t(key) << 32 | uint64_t(index)};
  }
  uint64_t key() const { return word >> 32; }
  int64_t index() const { return int64_t(word & 0xffffffff); }
  bool operator<(const Packed& o) const { return word < o.word; }
};
struct Wide {
  uint64_t word;
  int64_t place;
  template <class K>
  static Wide make(K key, int64_t index) {
    return {uint64_t(key), index};
  }
  uint64_t key() const { return word; }
  int64_t index() const { return place; }
  bool operator<(const Wide& o) const { return word != o.word ? word < o.word : place < o.place; }
};

/// Room for n objects in memory of the caching allocator.
template <class Item>
struct Room {
  explicit Room(int64_t n) : memory(allocate({{n * int64_t(sizeof(Item) / 8)}, kInt64})) {}
  Item* data() { return static_cast<Item*>(memory.data_ptr()); }
  Tensor memory;
};

/// Sorts n items by the low 8 * Bytes bits of their keys, Digit bits a pass; the result is in the memory that is
/// returned, one of the two.
template <int Bytes, int Digit, class Item>
Item* radix_sort(Item* items, Item* other, int64_t n) {
  constexpr int passes = (8 * Bytes + Digit - 1) / Digit;
  constexpr uint64_t buckets = uint64_t{1} << Digit;
  uint32_t counts[passes][buckets] = {};
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = items[i].key();
    for (int p = 0; p < passes; ++p, key >>= Digit) ++counts[p][key & (buckets - 1)];
  }
  for (int p = 0; p < passes; ++p) {
    uint32_t* count = counts[p];
    const int shift = p * Digit;
    if (count[items[0].key() >> shift & (buckets - 1)] == n) continue;  // all alike here
    std::exclusive_scan(count, count + buckets, count, uint32_t(0));
    for (int64_t i = 0; i < n; ++i) other[count[items[i].key() >> shift & (buckets - 1)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

/// The same for long rows, by threads: each counts and moves a part of the items, whose number does not depend on the
/// number of threads. Only the bits in which keys differ are looked at, the 33 highest of them first: few keys agree in
/// all of these, and those are sorted among themselves.
template <class Item>
Item* radix_sort_parts(Item* items, Item* other, int64_t n) {
  constexpr int64_t parts = 8, digit_bits = 11, buckets = int64_t{1} << digit_bits, short_run = 512;
  const auto for_parts = [n](auto&& f) {
    parallel_for(0, parts, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t part = lo; part < hi; ++part) f(part, n * part / parts, n * (part + 1) / parts);
    });
  };
  uint64_t differing[parts] = {}, differ = 0;
  for_parts([&](int64_t part, int64_t lo, int64_t hi) {
    uint64_t bits = 0;
    for (int64_t i = lo; i < hi; ++i) bits |= items[i].key() ^ items[0].key();
    differing[part] = bits;
  });
  for (uint64_t bits : differing) differ |= bits;

  std::vector<uint32_t> counts(parts * buckets);
  const int width = int(std::bit_width(differ)), lowest = std::max(width - 3 * int(digit_bits), 0);
  for (int shift = lowest; shift < width; shift += digit_bits) {
    if ((differ >> shift & (buckets - 1)) == 0) continue;
    const auto digit = [shift](const Item& item) { return item.key() >> shift & (buckets - 1); };
    std::fill(counts.begin(), counts.end(), 0);
    for_parts([&](int64_t part, int64_t lo, int64_t hi) {
      uint32_t* count = &counts[size_t(part * buckets)];
      for (int64_t i = lo; i < hi; ++i) ++count[digit(items[i])];
    });
    uint32_t before = 0;
    for (int64_t b = 0; b < buckets; ++b)
      for (int64_t part = 0; part < parts; ++part) before += std::exchange(counts[size_t(part * buckets + b)], before);
    for_parts([&](int64_t part, int64_t lo, int64_t hi) {
      uint32_t* count = &counts[size_t(part * buckets)];
      for (int64_t i = lo; i < hi; ++i) other[count[digit(items[i])]++] = items[i];
    });
    std::swap(items, other);
  }
  if ((differ & ((uint64_t{1} << lowest) - 1)) == 0) return items;
  for (int64_t first = 0, end; first < n; first = end) {
    const uint64_t high = items[first].key() >> lowest;
    for (end = first + 1; end < n && items[end].key() >> lowest == high; ++end) {
    }
    if (end - first < short_run) {
      if (end - first > 1) std::sort(items + first, items + end);
    } else if (const Item* sorted = radix_sort_parts(items + first, other + first, end - first);
               sorted != items + first) {
      std::copy(sorted, sorted + (end - first), items + first);
    }
  }
  return items;
}

/// From this length on radix sort is faster than comparing.
template <class T>
inline constexpr int64_t kRadixFrom = sizeof(T) == 8 ? 512 : 128;

template <class T, class Item>
void sort_row(T* values, int64_t* indices, const T* row, int64_t n, bool descending, Item* items, Item* other) {
  using K = Key<T>;
  const K flip = descending ? K(~K(0)) : K(0);
  const auto for_items = [n](auto&& f) {
    parallel_for(0, n, 65536, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) f(i);
    });
  };
  for_items([&](int64_t i) { items[i] = Item::make(K(key_of(row[i]) ^ flip), i); });
  if (n < kRadixFrom<T>)
    std::sort(items, items + n);
  else if (n < 16384)
    items = radix_sort<sizeof(T), 8>(items, other, n);
  else if (n < 65536)
    items = radix_sort<sizeof(T), 11>(items, other, n);
  else
    items = radix_sort_parts(items, other, n);
  for_items([&](int64_t i) {
    indices[i] = items[i].index();
    values[i] = row[indices[i]];
  });
}

/// Runs f(values, indices, rows) with the dimension last and everything contiguous; copies the results back.
template <class F>
void with_rows(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, F&& f) {
  if (x.dim() == 0 || dim == x.dim() - 1) return f(values, indices, contiguous(x.detach()));
  const Tensor rows = contiguous(transpose(x.detach(), dim, -1));
  Dims sizes = values.sizes();
  std::swap(sizes[dim], sizes[sizes.size() - 1]);
  Tensor v = allocate({sizes, values.dtype()}), i = allocate({sizes, kInt64});
  f(v, i, rows);
  copy(values, transpose(v, dim, -1));
  copy(indices, transpose(i, dim, -1));
}

int64_t row_length(const Tensor& rows) { return rows.dim() ? rows.sizes().back() : 1; }

}  // namespace

void sort(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool descending) {
  if (!values.is_cpu()) return cuda::sort(values, indices, x, dim, descending);
  if (x.numel() == 0) return;
  with_rows(values, indices, x, dim, [&](Tensor& v, Tensor& at, const Tensor& rows) {
    const int64_t n = row_length(rows), count = rows.numel() / n;
    for_real(x.dtype(), [&]<class T>() {
      const auto work = [&]<class Item>() {
        parallel_for(0, count, std::max<int64_t>(4096 / n, 1), [&](int64_t lo, int64_t hi) {
          Room<Item> items(n), other(n < kRadixFrom<T> ? 0 : n);
          for (int64_t r = lo; r < hi; ++r)
            sort_row(v.data<T>() + r * n, at.data<int64_t>() + r * n, rows.data<T>() + r * n, n, descending,
                     items.data(), other.data());
        });
      };
      check(n < int64_t(1) << 32, "sort: a dimension of ", n, " elements is too long");
      if constexpr (sizeof(T) == 8)
        work.template operator()<Wide>();
      else
        work.template operator()<Packed>();
    });
  });
}

namespace {

/// The k smallest of the keys of row[begin..end) with their indices, in any order. Blocks without a key below the k-th
/// best are skipped.
template <class T, class Item>
std::vector<Item> smallest(const T* row, int64_t begin, int64_t end, int64_t k, bool largest) {
  using K = Key<T>;
  const K flip = largest ? K(~K(0)) : K(0);
  const size_t room = size_t(std::max<int64_t>(4 * k, 256));
  std::vector<Item> best;
  best.reserve(room + 64);
  K limit = K(~K(0));
  bool full = false;
  const auto shrink = [&] {
    std::nth_element(best.begin(), best.begin() + (k - 1), best.end());
    best.resize(size_t(k));
    limit = K(best[size_t(k - 1)].key());
    full = true;
  };
  for (int64_t first = begin; first < end; first += 64) {
    const int64_t last = std::min(end, first + 64);
    if (full && last - first == 64) {
      K keys[64];
      for (int i = 0; i < 64; ++i) keys[i] = K(key_of(row[first + i]) ^ flip);
      K any = 0;
      for (int i = 0; i < 64; ++i) any |= K(keys[i] < limit);
      if (!any) continue;
      for (int i = 0; i < 64; ++i)
        if (keys[i] < limit) best.push_back(Item::make(keys[i], first + i));
    } else {
      for (int64_t i = first; i < last; ++i) {
        const K key = K(key_of(row[i]) ^ flip);
        if (!full || key < limit) best.push_back(Item::make(key, i));
      }
    }
    if (best.size() >= room) shrink();
  }
  if (int64_t(best.size()) > k) shrink();
  return best;
}

template <class T>
void topk_long_row(T* values, int64_t* indices, const T* row, int64_t n, int64_t k, bool largest) {
  using Item = std::conditional_t<sizeof(T) == 8, Wide, Packed>;
  const int64_t part = std::max<int64_t>(1 << 18, 256 * k);
  std::vector<std::vector<Item>> parts(size_t((n - 1) / part + 1));
  parallel_for(0, int64_t(parts.size()), 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p)
      parts[size_t(p)] = smallest<T, Item>(row, p * part, std::min(n, (p + 1) * part), k, largest);
  });
  std::vector<Item> best = std::move(parts[0]);
  for (size_t p = 1; p < parts.size(); ++p) best.insert(best.end(), parts[p].begin(), parts[p].end());
  std::partial_sort(best.begin(), best.begin() + k, best.end());
  for (int64_t i = 0; i < k; ++i) {
    indices[i] = best[size_t(i)].index();
    values[i] = row[indices[i]];
  }
}

/// Among equal elements this picks those that the standard library's selection does: what PyTorch's users see.
template <class T>
void topk_short_row(T* values, int64_t* indices, const T* row, int64_t n, int64_t k, bool largest, bool sorted) {
  using C = std::conditional_t<is_half(dtype_of<T>), float, T>;
  using Pair = std::pair<C, int64_t>;
  std::vector<Pair> queue;
  queue.resize(size_t(n));
  for (int64_t i = 0; i < n; ++i) queue[size_t(i)] = {C(row[i]), i};
  const auto is_nan = [](C v) { return v != v; };
  const auto run = [&](auto before) {
    if (k * 64 <= n) {
      std::partial_sort(queue.begin(), queue.begin() + k, queue.end(), before);
    } else {
      std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), before);
      if (sorted) std::sort(queue.begin(), queue.begin() + k - 1, before);
    }
  };
  if (largest)
    run([&](const Pair& a, const Pair& b) { return (is_nan(a.first) && !is_nan(b.first)) || a.first > b.first; });
  else
    run([&](const Pair& a, const Pair& b) { return (!is_nan(a.first) && is_nan(b.first)) || a.first < b.first; });
  for (int64_t i = 0; i < k; ++i) {
    indices[i] = queue[size_t(i)].second;
    values[i] = row[indices[i]];
  }
}

}  // namespace

void topk(Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted) {
  if (!values.is_cpu()) return cuda::topk(values, indices, x, k, dim, largest, sorted);
  if (values.numel() == 0) return;
  with_rows(values, indices, x, dim, [&](Tensor& v, Tensor& at, const Tensor& rows) {
    const int64_t n = row_length(rows), count = rows.numel() / n;
    for_real(x.dtype(), [&]<class T>() {
      parallel_for(0, count, std::max<int64_t>(16384 / n, 1), [&](int64_t lo, int64_t hi) {
        for (int64_t r = lo; r < hi; ++r) {
          T* to = v.data<T>() + r * k;
          int64_t* places = at.data<int64_t>() + r * k;
          if (n >= 4096 && k * 8 <= n && n < int64_t(1) << 32)
            topk_long_row(to, places, rows.data<T>() + r * n, n, k, largest);
          else
            topk_short_row(to, places, rows.data<T>() + r * n, n, k, largest, sorted);
        }
      });
    });
  });
}

std::vector<int64_t> sorted_rows(const Tensor& x) {
  const int64_t rows = x.sizes()[0], columns = x.sizes()[1];
  std::vector<int64_t> order(size_t(rows), 0);
  std::iota(order.begin(), order.end(), int64_t(0));
  for_real(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      for (int64_t c = 0; c < columns; ++c) {
        const Key<T> p = key_of(data[a * columns + c]), q = key_of(data[b * columns + c]);
        if (p != q) return p < q;
      }
      return false;
    });
  });
  return order;
}

bool equal_rows(const Tensor& x, int64_t i, int64_t j) {
  const int64_t columns = x.sizes()[1];
  return for_all(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    using C = std::conditional_t<is_half(dtype_of<T>), float, T>;
    for (int64_t c = 0; c < columns; ++c)
      if (!(C(data[i * columns + c]) == C(data[j * columns + c]))) return false;
    return true;
  });
}

}  // namespace rush::cpu
