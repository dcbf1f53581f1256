// Arithmetic on sizes and strides: broadcasting, views, memory formats, overlap. No data is touched.
#include <ostream>

#include "tensor/sizes.h"

namespace rush {

std::ostream& operator<<(std::ostream& out, Ints ints) {
  out << '[';
  for (size_t i = 0; i < ints.size(); ++i) out << (i ? ", " : "") << ints[i];
  return out << ']';
}

Dims contiguous_strides(Ints sizes) {
  Dims strides;
  strides.resize(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Dims strides_for(Ints sizes, MemoryFormat format) {
  const bool two = format == MemoryFormat::ChannelsLast, three = format == MemoryFormat::ChannelsLast3d;
  if (!two && !three) return contiguous_strides(sizes);
  const size_t n = two ? 4 : 5;
  check(sizes.size() == n, "required rank ", n, " tensor to use ", two ? "channels_last" : "channels_last_3d",
        " format");
  Dims strides(n);
  int64_t step = 1;
  strides[1] = step;
  step *= std::max<int64_t>(sizes[1], 1);
  for (size_t i = n; i-- > 2;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  strides[0] = step;
  return strides;
}

int64_t extent(Ints sizes, Ints strides) {
  if (count_elements(sizes) == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step;
    check(!__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) && !__builtin_add_overflow(last, step, &last) &&
              last < kMostElements,
          "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  }
  return last + 1;
}

bool is_dense(Ints sizes, Ints strides) {
  Dims order;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) order.push_back(int64_t(i));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t step = 1;
  for (int64_t i : order) {
    if (strides[i] != step) return false;
    step *= sizes[i];
  }
  return true;
}

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = std::max<int64_t>(ndim, 1);
  check<IndexError>(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Dims wrap_dims(Ints dims, int64_t ndim, bool empty_is_all) {
  Dims out;
  if (dims.empty() && empty_is_all) {
    for (int64_t i = 0; i < ndim; ++i) out.push_back(i);
    return out;
  }
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, ndim);
    check(std::find(out.begin(), out.end(), w) == out.end(), "dim ", w, " appears multiple times in the list of dims");
    out.push_back(w);
  }
  return out;
}

Dims broadcast(Ints a, Ints b) {
  if (a == b) return a.dims();
  if (a.size() < b.size()) std::swap(a, b);
  Dims out = a.dims();
  const size_t shift = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    const int64_t x = a[shift + i], y = b[i];
    check(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
          ") at non-singleton dimension ", shift + i, ": shapes ", a, " and ", b, " do not broadcast");
    out[shift + i] = x == 1 ? y : x;
  }
  return out;
}

Dims broadcast_strides(Ints sizes, Ints strides, Ints target) {
  Dims out(target.size(), 0);
  const size_t shift = target.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 || target[shift + i] == 1) out[shift + i] = strides[i];
  return out;
}

std::optional<Dims> view_strides(Ints sizes, Ints strides, Ints target) {
  if (product(sizes) == 0) return sizes == target ? strides.dims() : contiguous_strides(target);
  Dims out(target.size());
  // Walk runs of dimensions that lie contiguously behind each other, from the last; each must be cut up by a run of
  // target dimensions with the same product.
  auto t = int64_t(target.size()) - 1;
  int64_t run_stride = strides.empty() ? 1 : strides.back();
  int64_t run = 1, cut = 1;
  for (auto d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * run_stride);
    if (!ends) continue;
    while (t >= 0 && (cut < run || target[t] == 1)) {
      out[t] = cut * run_stride;
      cut *= target[t];
      --t;
    }
    if (cut != run) return std::nullopt;
    if (d > 0) {
      run_stride = strides[d - 1];
      run = cut = 1;
    }
  }
  while (t >= 0) {  // what is left of the target has size 1
    if (target[t] != 1) return std::nullopt;
    out[t] = cut * run_stride;
    --t;
  }
  return out;
}

Dims infer_size(Ints shape, int64_t numel) {
  Dims out = shape.dims();
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      check(unknown < 0, "only one dimension can be inferred");
      unknown = int64_t(i);
    } else {
      check(shape[i] >= 0, "invalid shape dimension ", shape[i]);
      if (__builtin_mul_overflow(known, shape[i], &known)) known = INT64_MAX;  // no tensor has as many elements
    }
  }
  if (unknown >= 0 && known > 0 && numel % known == 0) {
    out[unknown] = numel / known;
    return out;
  }
  check(!(unknown >= 0 && known == 0 && numel == 0), "cannot reshape tensor of 0 elements into shape ", shape,
        " because the unspecified dimension size -1 can be any value and is ambiguous");
  check(unknown < 0 && known == numel, "shape '", shape, "' is invalid for input of size ", numel);
  return out;
}

bool overlaps(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || !a.storage() || a.numel() == 0 || b.numel() == 0) return false;
  const auto span = [](const Tensor& t) {
    int64_t low = t.storage_offset(), high = low;
    for (int64_t d = 0; d < t.dim(); ++d) {
      const int64_t reach = t.strides()[d] * (t.sizes()[d] - 1);
      (reach < 0 ? low : high) += reach;
    }
    return std::pair(low * t.itemsize(), (high + 1) * t.itemsize());
  };
  const auto [a_low, a_high] = span(a);
  const auto [b_low, b_high] = span(b);
  return a_low < b_high && b_low < a_high;
}

Promotion& Promotion::operator()(const Tensor& t) {
  const int rank = t.impl()->wrapped_number ? 2 : t.dim() == 0 ? 1 : 0;
  DType& slot = rank == 2 ? number_ : rank == 1 ? zero_dim_ : dimensioned_;
  DType type = t.dtype();
  if (rank == 2 && is_floating(type)) type = default_dtype();
  if (rank == 2 && rush::is_complex(type)) type = complex_of(default_dtype());
  slot = any_[rank] ? promote(slot, type) : type;
  any_[rank] = true;
  return *this;
}

DType Promotion::dtype() const {
  // A later rank changes the result only if it is of a higher category: bool < integral < floating < complex.
  const auto category = [](DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t != kBool ? 1 : 0; };
  const auto combine = [&](bool has_high, DType high, bool has_low, DType low) {
    if (!has_high) return low;
    if (!has_low || category(low) <= category(high)) return high;
    return category(low) == 3 && category(high) == 2 ? complex_of(high) : low;
  };
  const DType later = combine(any_[1], zero_dim_, any_[2], number_);
  return combine(any_[0], dimensioned_, any_[1] || any_[2], later);
}

}  // namespace rush
