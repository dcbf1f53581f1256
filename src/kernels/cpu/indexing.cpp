// Reading and writing at indices. An index list becomes a list of offsets into x, checked once; the elements that lie
// together (the dimensions right of the indices) are then moved as blocks. gather and scatter, whose index has the full
// shape, walk rows of it. Writes to one element stay in order and with one thread, so results never depend on threads.
#include "kernels/cpu/indexing.h"

#include "kernels/cuda/kernels.h"

#include <cmath>
#include <numeric>

#include "rushlight/ops.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

using Bounds = Selection::Bounds;

constexpr int64_t kGrain = 16384;  // elements for which waking a thread pays
constexpr int64_t kBlock = 512;    // elements that are looked at together

[[noreturn, gnu::cold, gnu::noinline]] void raise_index(int64_t i, int64_t dim, int64_t size, Bounds bounds) {
  const std::string what = text("index ", i, " is out of bounds for dimension ", dim, " with size ", size);
  if (bounds == Bounds::strict_runtime_error) raise(what);
  raise<IndexError>(bounds == Bounds::strict ? "index out of range in self: " : "", what);
}

/// The index as a position of the dimension, checked.
inline int64_t position(int64_t given, int64_t dim, int64_t size, Bounds bounds) {
  const int64_t i = given < 0 && bounds == Bounds::wrap ? given + size : given;
  if (uint64_t(i) >= uint64_t(size)) [[unlikely]]
    raise_index(given, dim, size, bounds);
  return i;
}

/// Whether all n indices are positions as they are. Looked at a block at a time, so that the loop that then reads at
/// them has no test in it.
template <class I>
bool all_inside(const I* index, int64_t n, int64_t size) {
  bool outside = false;
  for (int64_t i = 0; i < n; ++i) outside |= uint64_t(int64_t(index[i])) >= uint64_t(size);
  return !outside;
}

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

int64_t grain_for(int64_t elements_each) { return std::max<int64_t>(kGrain / std::max<int64_t>(elements_each, 1), 1); }

/// The offsets of all elements of a strided block, in row-major order.
std::vector<int64_t> offsets_of(Ints sizes, Ints strides) {
  std::vector<int64_t> out(size_t(product(sizes)));
  if (out.empty()) return out;
  size_t filled = 1;  // grows from the innermost dimension outwards
  out[0] = 0;
  for (size_t d = sizes.size(); d-- > 0;) {
    for (int64_t i = 1; i < sizes[d]; ++i)
      for (size_t k = 0; k < filled; ++k) out[size_t(i) * filled + k] = out[k] + i * strides[d];
    filled *= size_t(sizes[d]);
  }
  return out;
}

/// Whether a block of these strides is one run of memory.
bool is_run(Ints sizes, Ints strides) {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

// ---- nonzero elements ----

/// Calls f(is_set) with the test of one element of a contiguous tensor.
template <class F>
void with_truth(const Tensor& dense, F&& f) {
  const auto test = [&]<class T>(const T* data) { f([data](int64_t i) { return data[i] != T(0); }); };
  if (dense.itemsize() == 1) return test(dense.data<uint8_t>());
  for_all(dense.dtype(), [&]<class T>() { test(dense.data<T>()); });
}

constexpr int64_t kCountGrain = 65536;

/// How many nonzero elements lie before each of the ranges that parallel_for cuts, and before the end.
std::vector<int64_t> starts_of(const Tensor& dense) {
  const int64_t n = dense.numel(), chunk = chunk_size(n, kCountGrain);
  std::vector<int64_t> out(size_t(n ? (n - 1) / chunk + 2 : 1), 0);
  with_truth(dense, [&](auto is_set) {
    parallel_for(0, n, kCountGrain, [&](int64_t lo, int64_t hi) {
      int64_t sum = 0;
      for (int64_t i = lo; i < hi; ++i) sum += is_set(i);
      out[size_t(lo / chunk)] = sum;
    });
  });
  std::exclusive_scan(out.begin(), out.end(), out.begin(), int64_t(0));
  return out;
}

/// Calls f(k, at, i) for the k-th nonzero element, at position i of the row that begins at `at`.
template <class F>
void for_nonzero(const Tensor& dense, F&& f) {
  const std::vector<int64_t> starts = starts_of(dense);
  const int64_t n = dense.numel(), chunk = chunk_size(n, kCountGrain), ndim = dense.dim();
  const int64_t row = ndim ? dense.sizes()[ndim - 1] : 1;
  with_truth(dense, [&](auto is_set) {
    parallel_for(0, n, kCountGrain, [&](int64_t lo, int64_t hi) {
      int64_t k = starts[size_t(lo / chunk)];
      Dims at(size_t(std::max<int64_t>(ndim, 1)), 0);
      int64_t rest = lo / row;
      for (int64_t d = ndim - 1; d-- > 0; rest /= dense.sizes()[d]) at[d] = rest % dense.sizes()[d];
      for (int64_t first = lo - lo % row; first < hi; first += row) {
        const int64_t end = std::min(hi, first + row);
        for (int64_t i = std::max(lo, first); i < end;) {
          int64_t set[kBlock], count = 0;  // first all places, without a branch that nobody can predict
          for (const int64_t stop = std::min(end, i + kBlock); i < stop; ++i) {
            set[count] = i - first;
            count += is_set(i);
          }
          for (int64_t s = 0; s < count; ++s) f(k++, at, set[s]);
        }
        for (int64_t d = ndim - 1; d-- > 0;) {
          if (++at[d] < dense.sizes()[d]) break;
          at[d] = 0;
        }
      }
    });
  });
}

// ---- offsets ----

/// Offsets of n positions, in memory of the caching allocator.
struct Offsets {
  explicit Offsets(int64_t n) : memory(allocate({{n}, kInt64})), data(memory.data<int64_t>()), size(n) {}
  Tensor memory;
  int64_t* data;
  int64_t size;
};

/// Calls f(i, given) with the i-th index of a tensor seen as `sizes`.
template <class F>
void for_each_index(const Tensor& index, Ints sizes, F&& f) {
  const Tensor wide = expand(index, sizes);
  const bool flat = wide.is_contiguous();
  const std::vector<int64_t> where = flat ? std::vector<int64_t>() : offsets_of(sizes, wide.strides());
  for_index(index.dtype(), [&]<class I>() {
    const I* data = wide.data<I>();
    parallel_for(0, wide.numel(), kGrain, [&](int64_t lo, int64_t hi) {
      if (flat)
        for (int64_t i = lo; i < hi; ++i) f(i, int64_t(data[i]));
      else
        for (int64_t i = lo; i < hi; ++i) f(i, int64_t(data[where[size_t(i)]]));
    });
  });
}

/// The offsets into x of each position that the selection's indices name.
Offsets places_of(const Tensor& x, const Selection& s) {
  Offsets offsets(product(s.index));
  bool begin = true;
  const auto add = [&](int64_t i, int64_t offset) { offsets.data[i] = (begin ? 0 : offsets.data[i]) + offset; };
  for (const Selection::Place& p : s.places) {
    if (p.count < 0) {
      const bool scalar = x.dim() == 0;
      const int64_t size = scalar ? 1 : x.sizes()[p.dim], stride = scalar ? 0 : x.strides()[p.dim];
      for_each_index(p.index, s.index,
                     [&](int64_t i, int64_t given) { add(i, position(given, p.dim, size, s.bounds) * stride); });
    } else {
      // The true elements' offsets; they are one index, which is broadcast like any other.
      Offsets own(p.count);
      const int64_t ndim = p.index.dim();
      const int64_t* strides = x.strides().data() + p.dim;
      for_nonzero(contiguous(p.index), [&](int64_t k, const Dims& at, int64_t i) {
        int64_t offset = ndim ? i * strides[ndim - 1] : 0;
        for (int64_t d = 0; d < ndim - 1; ++d) offset += at[d] * strides[d];
        own.data[k] = offset;
      });
      if (begin && p.count == offsets.size)
        offsets = own;
      else
        for_each_index(own.memory, s.index, add);
    }
    begin = false;
  }
  return offsets;
}

// ---- writing ----

/// Calls f.operator()<T>(op), where op(a, b) is what becomes of a when b is written. Assigning and adding are compiled
/// apart; the others look at `write` each time.
template <class F>
void for_write(DType dtype, Write write, F&& f) {
  if (write == Write::assign)
    for_bytes(dtype, [&]<class T>() { f.template operator()<T>([](const T&, const T& b) { return b; }); });
  else if (write == Write::add)
    for_all(dtype, [&]<class T>() { f.template operator()<T>([](T a, T b) { return written(Write::add, a, b); }); });
  else
    for_all(dtype, [&]<class T>() { f.template operator()<T>([write](T a, T b) { return written(write, a, b); }); });
}

}  // namespace

// ---- selections ----

Selection::Selection(const Tensor& x, Tensors indices, Bounds b) : bounds(b) {
  int64_t dim = 0, groups = 0, used = 0;
  bool in_group = false;
  Dims kept, kept_strides;
  const auto keep = [&](int64_t d) {
    kept.push_back(x.sizes()[d]);
    kept_strides.push_back(x.strides()[d]);
  };
  for (const Tensor& t : indices) used += t.defined() && is_mask(t) ? t.dim() : 1;
  check<IndexError>(used <= x.dim(), "too many indices for tensor of dimension ", x.dim(), " (got ", used, ")");
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      keep(dim++);
      in_group = false;
      continue;
    }
    if (!in_group && groups++ == 0) {
      before = std::exchange(kept, {});
      before_strides = std::exchange(kept_strides, {});
    }
    in_group = true;
    check(t.device() == x.device() || !t.device().is_cuda() || x.is_meta(),
          "indices should be either on cpu or on the same device as the indexed tensor (", x.device(), ")");
    Place p{t, dim};
    if (is_mask(t)) {
      for (int64_t k = 0; k < t.dim(); ++k)
        check<IndexError>(t.sizes()[k] == x.sizes()[dim + k], "The shape of the mask ", t.sizes(), " at index ", k,
                          " does not match the shape of the indexed tensor ", x.sizes(), " at index ", dim + k);
      p.count = count_nonzero(t);
      dim += t.dim();
    } else {
      check<IndexError>(t.dtype() == kInt64 || t.dtype() == kInt32,
                        "tensors used as indices must be long, int, byte or bool tensors");
      ++dim;
    }
    places.push_back(p);
  }
  check<IndexError>(!places.empty(), "at least one index must be provided");
  while (dim < x.dim()) keep(dim++);
  if (groups > 1) {  // indices with a full slice between them: their dimensions come first
    for (size_t i = 0; i < kept.size(); ++i) {
      before.push_back(kept[i]);
      before_strides.push_back(kept_strides[i]);
    }
    kept = std::exchange(before, {});
    kept_strides = std::exchange(before_strides, {});
  }
  after = std::move(kept);
  after_strides = std::move(kept_strides);
  for (const Place& p : places) {
    const Dims mask{p.count};
    const Ints own = p.count >= 0 ? Ints(mask) : Ints(p.index.sizes());
    try {
      index = broadcast(index, own);
    } catch (const Error&) {
      std::string shapes;
      for (const Place& each : places)
        shapes +=
            (shapes.empty() ? "" : ", ") + (each.count >= 0 ? text("[", each.count, "]") : text(each.index.sizes()));
      raise<IndexError>("shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
  }
}

Selection Selection::along(const Tensor& x, int64_t dim, const Tensor& index, Bounds bounds) {
  Selection s;
  s.bounds = bounds;
  s.index = {index.numel()};
  s.places.push_back({index.dim() == 1 ? index : alias(index, {index.numel()}, {1}, index.storage_offset()), dim});
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d == dim) continue;
    (d < dim ? s.before : s.after).push_back(x.sizes()[d]);
    (d < dim ? s.before_strides : s.after_strides).push_back(x.strides()[d]);
  }
  return s;
}

Dims Selection::sizes() const {
  Dims out = before;
  for (int64_t n : index) out.push_back(n);
  for (int64_t n : after) out.push_back(n);
  return out;
}

void index(Tensor& out, const Tensor& x, const Selection& s) {
  if (!out.is_cpu()) return cuda::index(out, x, s);
  const std::vector<int64_t> outer = offsets_of(s.before, s.before_strides);
  const int64_t block = product(s.after);
  const bool run = is_run(s.after, s.after_strides);
  if (s.places.size() == 1 && s.places[0].count < 0 && outer.size() == 1 && run && x.dim() > 0) {
    // The usual case, rows by one index: the offsets need not be kept.
    const int64_t dim = s.places[0].dim, size = x.sizes()[dim], stride = x.strides()[dim];
    const Tensor wide = expand(s.places[0].index, s.index);
    if (wide.is_contiguous()) {
      for_bytes(x.dtype(), [&]<class T>() {
        const T* from = x.data<T>();
        T* to = out.data<T>();
        for_index(wide.dtype(), [&]<class I>() {
          const I* places = wide.data<I>();
          parallel_for(0, wide.numel(), grain_for(block), [&](int64_t lo, int64_t hi) {
            const Bounds bounds = s.bounds;
            if (block == 1)
              for (int64_t first = lo; first < hi; first += kBlock) {
                const int64_t end = std::min(hi, first + kBlock);
                if (all_inside(places + first, end - first, size))
                  for (int64_t i = first; i < end; ++i) to[i] = from[places[i] * stride];
                else
                  for (int64_t i = first; i < end; ++i) to[i] = from[position(places[i], dim, size, bounds) * stride];
              }
            else
              for (int64_t i = lo; i < hi; ++i)
                std::copy_n(from + position(places[i], dim, size, bounds) * stride, block, to + i * block);
          });
        });
      });
      return;
    }
  }
  const Offsets places = places_of(x, s);
  if (out.numel() == 0) return;
  const int64_t n = places.size;
  const std::vector<int64_t> inner = run ? std::vector<int64_t>() : offsets_of(s.after, s.after_strides);
  for_bytes(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    parallel_for(0, int64_t(outer.size()) * n, grain_for(block), [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi;) {
        const int64_t o = i / n, end = std::min(hi, (o + 1) * n);
        const T* base = from + outer[size_t(o)];
        const int64_t* place = places.data - o * n;
        if (block == 1) {
          for (; i < end; ++i) to[i] = base[place[i]];
        } else if (run) {
          for (; i < end; ++i) std::copy_n(base + place[i], block, to + i * block);
        } else {
          for (; i < end; ++i)
            for (int64_t k = 0; k < block; ++k) to[i * block + k] = base[place[i] + inner[size_t(k)]];
        }
      }
    });
  });
}

void index_put(Tensor& out, const Selection& s, const Tensor& values, Write write) {
  if (!out.is_cpu()) return cuda::index_put(out, s, values, write);
  const Offsets places = places_of(out, s);
  const std::vector<int64_t> outer = offsets_of(s.before, s.before_strides);
  const int64_t n = places.size, block = product(s.after), outers = int64_t(outer.size());
  if (n == 0 || block == 0 || outers == 0) return;
  const bool one = values.numel() == 1;
  const Tensor dense = one ? values : contiguous(expand(values.detach(), s.sizes()));
  const bool run = is_run(s.after, s.after_strides);
  const std::vector<int64_t> inner = run ? std::vector<int64_t>() : offsets_of(s.after, s.after_strides);
  for_write(out.dtype(), write, [&]<class T>(auto op) {
    T* to = out.data<T>();
    const T* from = dense.data<T>();
    // Writes the elements of outer index o at places from `begin` up to `end`.
    const auto put = [&](int64_t o, int64_t begin, int64_t end) {
      T* base = to + outer[size_t(o)];
      const int64_t bytes = one ? 0 : std::min<int64_t>(block * int64_t(sizeof(T)), 512);
      for (int64_t first = 0; first < n; first += kBlock) {
        int64_t mine[kBlock], count = 0;  // whose values lie apart: the next ones are fetched ahead
        for (int64_t i = first; i < std::min(n, first + kBlock); ++i) {
          mine[count] = i;
          count += (places.data[i] >= begin) & (places.data[i] < end);
        }
        for (int64_t s = 0; s < count; ++s) {
          const char* next = reinterpret_cast<const char*>(from + (o * n + mine[std::min(s + 4, count - 1)]) * block);
          for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(next + b);
          T* at = base + places.data[mine[s]];
          const T* value = one ? from : from + (o * n + mine[s]) * block;
          if (block == 1) {
            *at = op(*at, *value);
          } else if (run && !one) {
#pragma GCC ivdep
            for (int64_t k = 0; k < block; ++k) at[k] = op(at[k], value[k]);
          } else {
            for (int64_t k = 0; k < block; ++k) {
              T& element = at[run ? k : inner[size_t(k)]];
              element = op(element, value[one ? 0 : k]);
            }
          }
        }
      }
    };
    // Threads share the outer dimensions, or else what can be written to; never the places, which may name an element
    // twice. Each then looks at all places, so blocks have to be worth it.
    const int64_t reach = 1 + *std::max_element(places.data, places.data + n);
    if (outers > 1)
      parallel_for(0, outers, grain_for(n * block), [&](int64_t lo, int64_t hi) {
        for (int64_t o = lo; o < hi; ++o) put(o, 0, reach);
      });
    else
      parallel_for(0, reach, std::max(reach / std::clamp<int64_t>(block / 8, 1, 32), reach / (n * block / kGrain + 1)),
                   [&](int64_t lo, int64_t hi) { put(0, lo, hi); });
  });
}

int64_t count_nonzero(const Tensor& x) {
  if (!x.is_cpu()) return cuda::count_nonzero(x);
  return starts_of(contiguous(x.detach())).back();
}

void nonzero(Tensor& out, const Tensor& x) {
  if (!out.is_cpu()) return cuda::nonzero(out, x);
  const int64_t ndim = x.dim();
  int64_t* rows = out.data<int64_t>();
  if (ndim == 0 || out.numel() == 0) return;
  for_nonzero(contiguous(x.detach()), [&](int64_t k, const Dims& at, int64_t i) {
    int64_t* row = rows + k * ndim;
    for (int64_t d = 0; d < ndim - 1; ++d) row[d] = at[d];
    row[ndim - 1] = i;
  });
}

// ---- gather and scatter ----

namespace {

/// The loop of gather and scatter. A row runs along the last dimension; where that is not `dim`, a block of rows runs
/// along `dim` too, so that the elements which may collide lie in one block.
struct Rows {
  Rows(const Tensor& index, const Tensor& x, const Tensor& other, int64_t d) : dim(d) {
    const int64_t ndim = index.dim(), last = ndim - 1;
    Dims sizes, strides[3];
    const Tensor* all[3] = {&index, &other, &x};
    for (int64_t k = 0; k < ndim; ++k) {
      if (k == dim || k == last) continue;
      sizes.push_back(index.sizes()[k]);
      for (int t = 0; t < 3; ++t) strides[t].push_back(all[t]->strides()[k]);
    }
    for (int t = 0; t < 3; ++t) outer[t] = offsets_of(sizes, strides[t]);
    size = ndim ? x.sizes()[dim] : 1;
    stride = ndim ? x.strides()[dim] : 0;
    length = ndim ? index.sizes()[last] : 1;
    for (int t = 0; t < 3 && ndim; ++t) step[t] = t == 2 && dim == last ? 0 : all[t]->strides()[last];
    if (ndim > 1 && dim != last) {
      rows = index.sizes()[dim];
      for (int t = 0; t < 2; ++t) row_step[t] = all[t]->strides()[dim];
    }
  }

  /// Calls f(index offset, other offset, x offset, n) for runs of n elements along the last dimension, from threads.
  /// A run that may collide with another stays in its order and thread.
  template <class F>
  void run(bool may_split, F&& f) const {
    const int64_t outers = int64_t(outer[0].size());
    if (outers == 0 || rows * length == 0) return;
    const bool split = outers == 1 && (may_split || rows > 1);
    if (split) {
      // Whole cache lines to a thread, and of the columns that it jumps about in no more than L2 holds.
      parallel_for(0, length, std::max<int64_t>(grain_for(rows), 64), [&](int64_t lo, int64_t hi) {
        for (int64_t r = 0; r < rows; ++r)
          f(r * row_step[0] + lo * step[0], r * row_step[1] + lo * step[1], lo * step[2], hi - lo);
      });
      return;
    }
    parallel_for(0, outers, grain_for(rows * length), [&](int64_t lo, int64_t hi) {
      for (int64_t o = lo; o < hi; ++o)
        for (int64_t r = 0; r < rows; ++r)
          f(outer[0][size_t(o)] + r * row_step[0], outer[1][size_t(o)] + r * row_step[1], outer[2][size_t(o)], length);
    });
  }

  /// Calls f(step of the index, of the other tensor, of x, stride of x along dim): constants for rows of plain memory.
  template <class F>
  [[gnu::always_inline]] void strided(F&& f) const {
    const auto [i, o, x] = step;
    if (i == 1 && o == 1 && x == 0 && stride == 1)
      f(1, 1, 0, 1);
    else
      f(i, o, x, stride);
  }

  std::vector<int64_t> outer[3];  // offsets into index, the other tensor, x
  int64_t dim, size, stride, length, rows = 1;
  int64_t step[3] = {0, 0, 0}, row_step[2] = {0, 0};
};

constexpr Bounds kStrict = Bounds::strict_runtime_error;

Tensor wide_index(const Tensor& index) { return index.dtype() == kInt64 ? index : cast(index, kInt64); }

}  // namespace

void gather_along(Tensor& out, const Tensor& x, int64_t dim, const Tensor& given) {
  if (!out.is_cpu()) return cuda::gather_along(out, x, dim, given);
  const Tensor index = wide_index(given);
  const Rows rows(index, x, out, dim);
  for_bytes(x.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    const T* from = x.data<T>();
    const int64_t* places = index.data<int64_t>();
    rows.run(true, [&](int64_t i, int64_t o, int64_t at, int64_t n) {
      rows.strided([&](int64_t si, int64_t so, int64_t sx, int64_t stride) __attribute__((always_inline)) {
        for (int64_t k = 0; k < n; ++k)
          to[o + k * so] = from[at + k * sx + position(places[i + k * si], dim, rows.size, kStrict) * stride];
      });
    });
  });
}

void scatter_along(Tensor& out, int64_t dim, const Tensor& given, const Tensor& src, Write write) {
  if (!out.is_cpu()) return cuda::scatter_along(out, dim, given, src, write);
  const Tensor index = wide_index(given);
  const Tensor values = src.dim() == 0 ? expand(src, index.sizes()) : src;
  const Rows rows(index, out, values, dim);
  for_write(out.dtype(), write, [&]<class T>(auto op) {
    T* to = out.data<T>();
    const T* from = values.data<T>();
    const int64_t* places = index.data<int64_t>();
    rows.run(false, [&](int64_t i, int64_t o, int64_t at, int64_t n) {
      rows.strided([&](int64_t si, int64_t so, int64_t sx, int64_t stride) __attribute__((always_inline)) {
        for (int64_t k = 0; k < n; ++k) {
          T& element = to[at + k * sx + position(places[i + k * si], dim, rows.size, kStrict) * stride];
          element = op(element, from[o + k * so]);
        }
      });
    });
  });
}

// ---- searching, triangles, bags ----

void search_sorted(Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right) {
  if (!out.is_cpu()) return cuda::search_sorted(out, sorted, values, sorter, right);
  const int64_t n = sorted.dim() ? sorted.sizes().back() : 1, total = values.numel();
  const int64_t row = sorted.dim() > 1 && values.dim() ? values.sizes().back() : std::max<int64_t>(total, 1);
  const int64_t* order = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  if (order)
    for (int64_t i = 0; i < sorter.numel(); ++i)
      check(order[i] >= 0 && order[i] < n, "torch.searchsorted(): sorter index out of range");
  for_real(values.dtype(), [&]<class T>() {
    const T* bounds = sorted.data<T>();
    const T* wanted = values.data<T>();
    using C = std::conditional_t<is_half(dtype_of<T>), float, T>;
    const auto search = [&](auto* to) {
      parallel_for(0, total, kGrain / 16, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) {
          const int64_t first = i / row * n;
          const C value = C(wanted[i]);
          int64_t begin = 0, end = n;
          while (begin < end) {
            const int64_t middle = begin + (end - begin) / 2;
            const C bound = C(bounds[first + (order ? order[first + middle] : middle)]);
            // Written so that NaN, with which every comparison is false, goes to the end.
            if (right ? !(bound > value) : !(bound >= value))
              begin = middle + 1;
            else
              end = middle;
          }
          to[i] = std::remove_pointer_t<decltype(to)>(begin);
        }
      });
    };
    out.dtype() == kInt32 ? search(out.data<int32_t>()) : search(out.data<int64_t>());
  });
}

void triangle(Tensor& out, const Tensor& x, int64_t diagonal, bool upper) {
  if (!out.is_cpu()) return cuda::triangle(out, x, diagonal, upper);
  if (out.numel() == 0) return;
  const int64_t ndim = x.dim(), rows = x.sizes()[ndim - 2], columns = x.sizes()[ndim - 1];
  const int64_t k = std::clamp(diagonal, -rows, columns);
  const bool same = out.is_same(x);
  const Ints batch = Ints(out.sizes()).slice(0, size_t(ndim - 2));
  const std::vector<int64_t> from = offsets_of(batch, Ints(x.strides()).slice(0, batch.size()));
  const std::vector<int64_t> to = offsets_of(batch, Ints(out.strides()).slice(0, batch.size()));
  const int64_t xr = x.strides()[ndim - 2], xc = x.strides()[ndim - 1];
  const int64_t tr = out.strides()[ndim - 2], tc = out.strides()[ndim - 1];
  for_bytes(x.dtype(), [&]<class T>() {
    parallel_for(0, int64_t(to.size()) * rows, grain_for(columns), [&](int64_t lo, int64_t hi) {
      for (int64_t line = lo; line < hi; ++line) {
        const int64_t r = line % rows, edge = std::clamp<int64_t>(upper ? r + k : r + k + 1, 0, columns);
        const T* in = x.data<T>() + from[size_t(line / rows)] + r * xr;
        T* at = out.data<T>() + to[size_t(line / rows)] + r * tr;
        const int64_t keep = upper ? edge : 0, keep_end = upper ? columns : edge;
        if (!same)
          for (int64_t c = keep; c < keep_end; ++c) at[c * tc] = in[c * xc];
        for (int64_t c = upper ? 0 : edge; c < (upper ? edge : columns); ++c) at[c * tc] = T{};
      }
    });
  });
}

void bag_argmax(Tensor& out, const Tensor& weight, const int64_t* indices, const int64_t* starts, int64_t padding) {
  const int64_t bags = out.sizes()[0], columns = out.sizes()[1];
  for_real(weight.dtype(), [&]<class T>() {
    const T* data = weight.data<T>();
    int64_t* to = out.data<int64_t>();
    using C = std::conditional_t<is_half(dtype_of<T>), float, T>;
    for (int64_t b = 0; b < bags; ++b) {
      std::fill_n(to + b * columns, columns, -1);
      for (int64_t i = starts[b]; i < starts[b + 1]; ++i) {
        if (indices[i] == padding) continue;
        for (int64_t c = 0; c < columns; ++c) {
          int64_t& best = to[b * columns + c];
          if (best < 0 || C(data[indices[i] * columns + c]) > C(data[best * columns + c])) best = indices[i];
        }
      }
    }
  });
}

}  // namespace rush::cpu
