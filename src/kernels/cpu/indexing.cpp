// Reading and writing at indices. An index list becomes a list of offsets into x, checked once; the elements that lie
// together (the dimensions right of the indices) are then moved as blocks.
#include "kernels/cpu/indexing.h"

#include <numeric>

#include "kernels/cpu/scratch.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

constexpr int64_t kGrain = 16384;  // elements for which waking a thread pays

[[noreturn]] void raise_index(int64_t i, int64_t dim, int64_t size) {
  raise<IndexError>("index ", i, " is out of bounds for dimension ", dim, " with size ", size);
}

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

/// Offsets of n positions, in memory of the caching allocator.
struct Offsets {
  explicit Offsets(int64_t n) : memory(allocate({{n}, kInt64})), data(memory.data<int64_t>()), size(n) {}
  Tensor memory;
  int64_t* data;
  int64_t size;
};

/// Adds index * stride to each offset, or begins it with that; negative indices count from the end.
void add_places(Offsets& offsets, bool begin, const Tensor& index, Ints sizes, int64_t dim, int64_t size,
                int64_t stride) {
  const Tensor wide = expand(index, sizes);
  const bool flat = wide.is_contiguous();
  const std::vector<int64_t> where = flat ? std::vector<int64_t>() : offsets_of(sizes, wide.strides());
  for_index(index.dtype(), [&]<class I>() {
    const I* data = wide.data<I>();
    parallel_for(0, offsets.size, kGrain, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        int64_t k = data[flat ? i : where[size_t(i)]];
        if (k < -size || k >= size) [[unlikely]]
          raise_index(k, dim, size);
        if (k < 0) k += size;
        offsets.data[i] = (begin ? 0 : offsets.data[i]) + k * stride;
      }
    });
  });
}

/// The offsets into x of each position that the selection's indices name.
Offsets places_of(const Tensor& x, const Selection& s) {
  Offsets offsets(product(s.index));
  bool begin = true;
  for (const Selection::Place& p : s.places) {
    if (p.count < 0) {
      add_places(offsets, begin, p.index, s.index, p.dim, x.sizes()[p.dim], x.strides()[p.dim]);
      begin = false;
      continue;
    }
    Tensor where = allocate({{p.count, p.index.dim()}, kInt64});
    nonzero(where, p.index);
    for (int64_t k = 0; k < p.index.dim(); ++k) {
      const Tensor column = alias(where, {p.count}, {p.index.dim()}, k);
      add_places(offsets, begin, column, s.index, p.dim + k, x.sizes()[p.dim + k], x.strides()[p.dim + k]);
      begin = false;
    }
  }
  if (begin) std::fill_n(offsets.data, offsets.size, 0);  // only 0-dim masks
  return offsets;
}

template <class T>
T combine(Write write, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return write == Write::assign ? b : write == Write::multiply || write == Write::minimum ? a && b : a || b;
  } else if constexpr (is_complex(dtype_of<T>)) {
    return write == Write::assign ? b : write == Write::add ? a + b : a * b;
  } else {
    using C = std::conditional_t<is_half(dtype_of<T>), float, T>;
    const C p = C(a), q = C(b);
    switch (write) {
      case Write::assign:
        return b;
      case Write::add:
        return T(p + q);
      case Write::multiply:
        return T(p * q);
      case Write::minimum:
        return p != p || p < q ? a : b;
      case Write::maximum:
        return p != p || p > q ? a : b;
    }
    return b;
  }
}

/// Calls f(op) with the write as a compile-time function of two elements.
template <class T, class F>
void with_write(Write write, F&& f) {
  switch (write) {
    case Write::assign:
      return f([](T, T b) { return b; });
    case Write::add:
      return f([](T a, T b) { return combine<T>(Write::add, a, b); });
    case Write::multiply:
      return f([](T a, T b) { return combine<T>(Write::multiply, a, b); });
    case Write::minimum:
      return f([](T a, T b) { return combine<T>(Write::minimum, a, b); });
    case Write::maximum:
      return f([](T a, T b) { return combine<T>(Write::maximum, a, b); });
  }
}

}  // namespace

Selection::Selection(const Tensor& x, Tensors indices) {
  int64_t dim = 0, groups = 0;
  bool in_group = false;
  Dims kept, kept_strides;
  const auto keep = [&](int64_t d) {
    kept.push_back(x.sizes()[d]);
    kept_strides.push_back(x.strides()[d]);
  };
  int64_t used = 0;
  bool any = false;
  for (const Tensor& t : indices) used += t.defined() && (t.dtype() == kBool || t.dtype() == kUInt8) ? t.dim() : 1;
  check<IndexError>(used <= x.dim(), "too many indices for tensor of dimension ", x.dim(), " (got ", used, ")");
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      keep(dim++);
      in_group = false;
      continue;
    }
    any = true;
    if (!in_group && groups++ == 0) {
      before = std::exchange(kept, {});
      before_strides = std::exchange(kept_strides, {});
    }
    in_group = true;
    Place p{t, dim};
    if (t.dtype() == kBool || t.dtype() == kUInt8) {
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
  check<IndexError>(any, "at least one index must be provided");
  while (dim < x.dim()) keep(dim++);
  after = std::move(kept);
  after_strides = std::move(kept_strides);
  if (groups > 1) {  // indices with a full slice between them: their dimensions come first
    after = [&] {
      Dims all = before;
      for (int64_t n : after) all.push_back(n);
      return all;
    }();
    for (int64_t s : after_strides) before_strides.push_back(s);
    after_strides = std::exchange(before_strides, {});
    before.clear();
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const Dims mask{std::max<int64_t>(places[i].count, 0)};
    const Ints sizes = places[i].count >= 0 ? Ints(mask) : Ints(places[i].index.sizes());
    try {
      index = i == 0 ? sizes.dims() : broadcast(index, sizes);
    } catch (const Error&) {
      std::string shapes;
      for (const Place& p : places)
        shapes += (shapes.empty() ? "" : ", ") + (p.count >= 0 ? text("[", p.count, "]") : text(p.index.sizes()));
      raise<IndexError>("shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
  }
}

Dims Selection::sizes() const {
  Dims out = before;
  for (int64_t n : index) out.push_back(n);
  for (int64_t n : after) out.push_back(n);
  return out;
}

void index(Tensor& out, const Tensor& x, const Selection& s) {
  const Offsets places = places_of(x, s);
  if (out.numel() == 0) return;
  const std::vector<int64_t> outer = offsets_of(s.before, s.before_strides);
  const int64_t n = places.size, block = product(s.after);
  const bool run = is_run(s.after, s.after_strides);
  const std::vector<int64_t> inner = run ? std::vector<int64_t>() : offsets_of(s.after, s.after_strides);
  for_bytes(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    parallel_for(0, int64_t(outer.size()) * n, std::max<int64_t>(kGrain / block, 1), [&](int64_t lo, int64_t hi) {
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
  const Offsets places = places_of(out, s);
  const int64_t n = places.size, block = product(s.after);
  const std::vector<int64_t> outer = offsets_of(s.before, s.before_strides);
  if (n == 0 || block == 0 || outer.empty()) return;
  const bool one = values.numel() == 1;
  const Tensor dense = one ? values : contiguous(expand(values.detach(), s.sizes()));
  const bool run = is_run(s.after, s.after_strides);
  const std::vector<int64_t> inner = run ? std::vector<int64_t>() : offsets_of(s.after, s.after_strides);
  // Writes to one element must stay in order, so threads share the outer dimensions and the block, not the places.
  const int64_t outers = int64_t(outer.size());
  const auto work = [&]<class T>(auto op) {
    T* to = out.data<T>();
    const T* from = dense.data<T>();
    const auto put = [&](int64_t o, int64_t first, int64_t last) {
      T* base = to + outer[size_t(o)];
      for (int64_t i = 0; i < n; ++i) {
        T* at = base + places.data[i];
        const T* value = one ? from : from + (o * n + i) * block;
        if (block == 1) {
          *at = op(*at, *value);
        } else if (run) {
          if (one)
            for (int64_t k = first; k < last; ++k) at[k] = op(at[k], *value);
          else
            for (int64_t k = first; k < last; ++k) at[k] = op(at[k], value[k]);
        } else {
          for (int64_t k = first; k < last; ++k) {
            T& element = at[inner[size_t(k)]];
            element = op(element, value[one ? 0 : k]);
          }
        }
      }
    };
    if (outers > 1)
      parallel_for(0, outers, std::max<int64_t>(kGrain / (n * block), 1), [&](int64_t lo, int64_t hi) {
        for (int64_t o = lo; o < hi; ++o) put(o, 0, block);
      });
    else
      parallel_for(0, block, std::max<int64_t>({kGrain / n, 32, 1}), [&](int64_t lo, int64_t hi) { put(0, lo, hi); });
  };
  if (write == Write::assign)
    for_bytes(out.dtype(), [&]<class T>() { work.template operator()<T>([](const T&, const T& b) { return b; }); });
  else
    for_all(out.dtype(), [&]<class T>() { with_write<T>(write, [&](auto op) { work.template operator()<T>(op); }); });
}

namespace {

/// Calls f(is_set, begin, end) for contiguous bytes or elements: whether element i is nonzero.
template <class F>
void with_truth(const Tensor& x, F&& f) {
  for_all(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    f([data](int64_t i) { return data[i] != T(0); });
  });
}

constexpr int64_t kCountGrain = 65536;

/// The nonzero elements of each range that parallel_for cuts.
std::vector<int64_t> counts(const Tensor& dense) {
  const int64_t n = dense.numel(), chunk = chunk_size(n, kCountGrain);
  std::vector<int64_t> out(size_t(n ? (n - 1) / chunk + 1 : 0));
  with_truth(dense, [&](auto is_set) {
    parallel_for(0, n, kCountGrain, [&](int64_t lo, int64_t hi) {
      int64_t sum = 0;
      for (int64_t i = lo; i < hi; ++i) sum += is_set(i);
      out[size_t(lo / chunk)] = sum;
    });
  });
  return out;
}

}  // namespace

int64_t count_nonzero(const Tensor& x) {
  const std::vector<int64_t> each = counts(contiguous(x.detach()));
  return std::accumulate(each.begin(), each.end(), int64_t(0));
}

void nonzero(Tensor& out, const Tensor& x) {
  const Tensor dense = contiguous(x.detach());
  std::vector<int64_t> starts = counts(dense);
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), int64_t(0));
  const int64_t n = dense.numel(), ndim = x.dim(), chunk = chunk_size(n, kCountGrain);
  int64_t* rows = out.data<int64_t>();
  with_truth(dense, [&](auto is_set) {
    parallel_for(0, n, kCountGrain, [&](int64_t lo, int64_t hi) {
      int64_t* row = rows + starts[size_t(lo / chunk)] * ndim;
      Dims at(size_t(ndim), 0);
      int64_t rest = lo;
      for (int64_t d = ndim; d-- > 0; rest /= x.sizes()[d]) at[d] = rest % x.sizes()[d];
      if (ndim == 1) {
        for (int64_t i = lo; i < hi; ++i)
          if (is_set(i)) *row++ = i;
        return;
      }
      for (int64_t i = lo; i < hi; ++i) {
        if (is_set(i)) row = std::copy(at.begin(), at.end(), row);
        for (int64_t d = ndim; d-- > 0;) {
          if (++at[d] < x.sizes()[d]) break;
          at[d] = 0;
        }
      }
    });
  });
}

}  // namespace rush::cpu
