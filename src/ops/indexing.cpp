// Reading and writing at indices.
#include "kernels/cpu/indexing.h"

#include <limits>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "ops/fits.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

using Bounds = cpu::Selection::Bounds;

Tensor zeros_of(const Tensor& like, Ints sizes) { return zeros(sizes, like.dtype(), {}, like.device()); }

/// The operators on slices at an index of one dimension.
int64_t slice_dim(const Tensor& x, int64_t dim) { return wrap_dim(dim, x.dim()); }

/// Whether source fits to `count` slices of x in a dimension.
bool same_slices(const Tensor& x, const Tensor& source, int64_t d) {
  if (x.dim() != source.dim()) return false;
  for (int64_t k = 0; k < x.dim(); ++k)
    if (k != d && x.sizes()[k] != source.sizes()[k]) return false;
  return true;
}

Dims without(Ints sizes, int64_t d) {
  Dims out = sizes.dims();
  if (!out.empty()) out.erase(size_t(d));
  return out;
}

/// Writes `source`, laid out as `index` slices of dimension d, into out.
void put_slices(Tensor& out, int64_t d, const Tensor& index, const Tensor& source, Bounds bounds, Write write) {
  Tensor values = source;
  if (out.dim() == 0 && source.dim() == 0) values = alias(source, {1}, {1}, source.storage_offset());
  cpu::index_put(out, cpu::Selection::along(out, d, index, bounds), values, write);
}

void start_from(Tensor& out, const Tensor& x) {
  if (!out.is_same(x)) cpu::copy(out, x);
}

/// Checks the shapes of gather and scatter: `index` fits into x apart from `dim`, and into src.
void check_index(const char* name, const Tensor& x, int64_t dim, const Tensor& index, const Tensor* src) {
  const int64_t d = wrap_dim(dim, x.dim());
  if (index.numel() == 0) return;
  check(index.dtype() == kInt64 || index.dtype() == kInt32, name, "(): Expected dtype int32/int64 for index");
  const auto at_least_1 = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  check(at_least_1(index) == at_least_1(x), "Index tensor must have the same number of dimensions as ",
        src ? "self" : "input", " tensor");
  check(!src || at_least_1(index) == at_least_1(*src),
        "Index tensor must have the same number of dimensions as src tensor");
  const auto size = [](const Tensor& t, int64_t k) { return t.dim() == 0 ? 1 : t.sizes()[k]; };
  for (int64_t k = 0; k < at_least_1(index); ++k) {
    const bool fits = k == d || size(index, k) <= size(x, k);
    if (src)
      check(fits && size(index, k) <= size(*src, k), "Expected index ", index.sizes(), " to be no larger than self ",
            x.sizes(), " apart from dimension ", d, " and to be no larger size than src ", src->sizes());
    else
      check(fits, "Size does not match at dimension ", k, " expected index ", index.sizes(),
            " to be no larger than self ", x.sizes(), " apart from dimension ", d);
  }
}

/// A 0-dim tensor as one of one dimension, sharing memory: what the kernels of gather and scatter work on.
Tensor raised(const Tensor& t) { return t.dim() ? t : alias(t, {1}, {1}, t.storage_offset()); }

void scatter_into(Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, Write write) {
  if (index.numel() == 0) return;
  Tensor target = raised(out);
  cpu::scatter_along(target, wrap_dim(dim, out.dim()), raised(index), src, write);
}

// ---- reductions into places: scatter_reduce and index_reduce ----

enum class Reduce { sum, prod, mean, amax, amin };

Reduce reduce_of(std::string_view name, bool with_sum, const char* error) {
  constexpr std::pair<std::string_view, Reduce> names[] = {{"sum", Reduce::sum},
                                                           {"prod", Reduce::prod},
                                                           {"mean", Reduce::mean},
                                                           {"amax", Reduce::amax},
                                                           {"amin", Reduce::amin}};
  for (const auto& [n, r] : names)
    if (n == name && (with_sum || r != Reduce::sum)) return r;
  raise(error, name);
}

/// What a reduction begins with.
Scalar identity(Reduce reduce, DType dtype) {
  if (reduce == Reduce::prod) return 1;
  if (reduce == Reduce::sum || reduce == Reduce::mean) return 0;
  const bool high = reduce == Reduce::amin;
  if (is_floating(dtype))
    return high ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  return for_integral(dtype, [&]<class T>() {
    return Scalar(int64_t(high ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest()));
  });
}

/// Reduces into out with `put(tensor, values, write)`, which writes values at the places in question.
template <class Put>
void reduce_into(Tensor& out, const Tensor& source, Reduce reduce, bool include_self, Put&& put) {
  if (!include_self) put(out, cast(Tensor(identity(reduce, out.dtype())), out.dtype()), Write::assign);
  constexpr Write writes[] = {Write::add, Write::multiply, Write::add, Write::maximum, Write::minimum};
  put(out, source, writes[int(reduce)]);
  if (reduce != Reduce::mean) return;
  Tensor count = include_self ? ones_like(out) : zeros_like(out);
  put(count, cast(Tensor(1), out.dtype()), Write::add);
  Tensor none = eq(count, Tensor(0));
  in_place(masked_fill, count, none, Tensor(1));
  in_place(div, out, count, is_integral(out.dtype()) ? OptStr("floor") : OptStr());
}

/// The gradients of self and source. `pick` reads the places of a tensor, `spread` adds values into zeros at them,
/// `clear` zeroes them, `again` does the same reduction of another source.
template <class Pick, class Spread, class Clear, class Again>
Grads reduce_gradients(const Tensor& g, const Tensor& result, const Tensor& x, const Tensor& source, Reduce reduce,
                       bool include_self, Pick&& pick, Spread&& spread, Clear&& clear, Again&& again) {
  Tensor to_self, to_source;
  switch (reduce) {
    case Reduce::sum:
      to_self = g;
      to_source = pick(g);
      break;
    case Reduce::mean: {
      Tensor count = spread(ones_like(source));
      if (include_self) count = count + Tensor(1);
      count = masked_fill(count, eq(count, Tensor(0)), Tensor(1));
      to_self = g / count;
      to_source = pick(g) / pick(count);
      break;
    }
    case Reduce::prod: {
      const Tensor zero = eq(x, Tensor(0)), ones_for_zeros = masked_fill(x, zero, Tensor(1));
      to_self = g * again(ones_for_zeros, source) / ones_for_zeros;
      // Where one source only is zero, its gradient is the product of the others.
      const Tensor none = eq(source, Tensor(0));
      const Tensor single = none & eq(pick(spread(cast(none, source.dtype()))), Tensor(1));
      const Tensor others = again(x, masked_fill(source, single, Tensor(1)));
      to_source = where(single, pick(g * others), pick(g * result) / masked_fill(source, none, Tensor(1)));
      break;
    }
    default: {
      const Tensor self_wins = cast(eq(x, result), g.dtype()), wins = cast(eq(source, pick(result)), g.dtype());
      const Tensor count = self_wins + spread(wins);
      const Tensor share = g / masked_fill(count, eq(count, Tensor(0)), Tensor(1));
      to_self = self_wins * share;
      to_source = wins * pick(share);
    }
  }
  return Grads{include_self ? to_self : clear(to_self), Tensor(), to_source};
}

// ---- diagonals ----

struct Diagonal {
  Dims sizes, strides;
  int64_t offset;
};
/// The window on the diagonal `offset` right of (or, if negative, below) the main one.
Diagonal diagonal_of(const Tensor& x, int64_t given, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, x.dim()), b = wrap_dim(dim2, x.dim());
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Diagonal d{x.sizes(), x.strides(), x.storage_offset()};
  const int64_t rows = x.sizes()[a], columns = x.sizes()[b], offset = std::clamp(given, -rows, columns);
  const int64_t length = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  if (length > 0) d.offset += offset >= 0 ? offset * x.strides()[b] : -offset * x.strides()[a];
  const int64_t stride = x.strides()[a] + x.strides()[b];
  for (int64_t k : {std::max(a, b), std::min(a, b)}) {
    d.sizes.erase(size_t(k));
    d.strides.erase(size_t(k));
  }
  d.sizes.push_back(length);
  d.strides.push_back(stride);
  return d;
}

/// A copy of x in which `src` is written to the window that `cut` makes.
template <class Cut>
Tensor with_window(const Tensor& x, const Tensor& src, Cut&& cut) {
  Tensor out = clone(x);
  Tensor part = cut(out);
  check(Ints(part.sizes()) == Ints(src.sizes()),
        "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
        ", slice size = ", part.sizes());
  in_place(copy, part, src);
  return out;
}

/// How many elements of a matrix lie on or below its k-th diagonal.
__int128 count_below(int64_t rows, int64_t columns, int64_t k) {
  const int64_t first = std::clamp<int64_t>(-k, 0, rows),
                full = std::clamp(columns - k, first, rows);  // rows with some, with all
  return __int128(full - first) * (first + k + 1 + full + k) / 2 + __int128(rows - full) * columns;
}

Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, OptDType dtype, OptDevice device, bool upper) {
  check(rows >= 0, "row must be non-negative, got", rows);
  check(columns >= 0, "col must be non-negative, got", columns);
  const DType t = dtype.value_or(kInt64);
  check(t == kInt64 || t == kInt32, "indices have dtype int32 or int64, got ", t);
  const int64_t k = std::clamp(offset, -rows, columns);
  const __int128 all = __int128(rows) * columns,
                 n = upper ? all - count_below(rows, columns, k - 1) : count_below(rows, columns, k);
  check(n < kMostElements, "a triangle of a ", rows, " x ", columns, " matrix has too many elements");
  Tensor out = empty({2, int64_t(n)}, kInt64);
  int64_t *r = out.data<int64_t>(), *c = r + int64_t(n);
  const int64_t first = upper ? 0 : std::max<int64_t>(-k, 0), last = n == 0  ? 0
                                                                     : upper ? std::min(rows, columns - k)
                                                                             : rows;
  for (int64_t i = first; i < last; ++i) {
    const int64_t from = upper ? std::max<int64_t>(i + k, 0) : 0, to = upper ? columns : std::min(i + k + 1, columns);
    r = std::fill_n(r, to - from, i);
    for (int64_t j = from; j < to; ++j) *c++ = j;
  }
  return to(out, device, t);
}

/// On the CPU.
Tensor int64_list(const Tensor& t) { return contiguous(to(t, kCPU, kInt64)); }

}  // namespace

OP_DEFINE(index){{
    .doc = R"(The elements at the positions that the indices name together; what ``x[i, j]`` does with tensors.

``indices`` has a tensor for each of the first dimensions of self, or None to take the dimension whole. Tensors of integers are
broadcast together; negative ones count from the end. A tensor of bools is a mask over as many dimensions as it has and
stands for the positions of its true elements. The broadcast dimensions take the place of the indexed ones, or come first
where a whole dimension lies between those.
Errors: IndexError for a position outside its dimension, for indices that do not broadcast, for a mask of another shape.)",
    .infer =
        [](const Tensor& x, Tensors indices) {
          return Meta{cpu::Selection(x, indices).sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Tensors indices) { cpu::index(out, x, cpu::Selection(x, indices)); }},
    .saves = "self.shape, indices",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, Tensors indices) {
          Grads grads(1 + indices.size());
          grads[0] = zeros(x.sizes(), g.dtype(), {}, g.device());
          in_place(index_put, grads[0], indices, g, true);
          return grads;
        },
    .across_devices = true,
}};

namespace {
/// The mask of an index_put of one value at the places of one mask, broadcast to x; undefined for any other. Such a
/// value may be of any dtype.
Tensor mask_to_fill(const Tensor& x, Tensors indices, const Tensor& values, bool accumulate) {
  if (accumulate || values.numel() != 1) return {};
  int64_t before = 0;  // dimensions that no index names
  while (size_t(before) < indices.size() && !indices[size_t(before)].defined()) ++before;
  if (size_t(before) + 1 != indices.size() || indices[size_t(before)].dtype() != kBool) return {};
  Tensor mask = indices[size_t(before)];
  while (mask.dim() + before < x.dim()) mask = unsqueeze(mask, -1);
  return mask;
}
}  // namespace

OP_DEFINE(index_put){{
    .doc = R"(A copy of self with ``values``, broadcast, written to the positions that ``index`` would read.

With ``accumulate`` they are added to what is there, also where a position occurs several times; else one of the values
for a repeated position stays. One value at the places of a single mask may be of any dtype.
Errors: IndexError as ``index``; RuntimeError where values does not broadcast or has another dtype.)",
    .infer =
        [](const Tensor& x, Tensors indices, const Tensor& values, bool accumulate) {
          const bool fills = mask_to_fill(x, indices, values, accumulate).defined();
          if (fills) check_fits(values, x.dtype());
          check(fills || x.dtype() == values.dtype(),
                "Index put requires the source and destination dtypes match, got ", scalar_name(x.dtype()),
                " for the destination and ", scalar_name(values.dtype()), " for the source.");
          check(values.device() == x.device() || (values.is_cpu() && values.dim() == 0) || x.is_meta(),
                "Expected all tensors to be on the same device, but found at least two devices, ", x.device(), " and ",
                values.device(), "!");
          const Dims sizes = cpu::Selection(x, indices).sizes();
          bool fits = fills || values.sizes().size() <= sizes.size();
          for (size_t i = 1; fits && !fills && i <= values.sizes().size(); ++i) {
            const int64_t have = values.sizes()[values.sizes().size() - i];
            fits = have == 1 || have == sizes[sizes.size() - i];
          }
          check(fits, "shape mismatch: value tensor of shape ", values.sizes(),
                " cannot be broadcast to indexing result of shape ", sizes);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, Tensors indices, const Tensor& values, bool accumulate) {
      Tensor same = values.dtype() == x.dtype() ? values : cast(values, x.dtype());
      if (const Tensor mask = mask_to_fill(x, indices, values, accumulate); mask.defined()) {
        same = reshape(same, {});
        if (x.is_cpu()) return cpu::where(out, mask, same, x);  // no places need to be listed
      }
      if (!out.is_same(x)) in_place(copy, out, x);
      cpu::index_put(out, cpu::Selection(out, indices), same, accumulate ? Write::add : Write::assign);
    }},
    .saves = "indices, values.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, Tensors indices, const Tensor& values, bool accumulate) {
          Grads grads(2 + indices.size());
          if (needs_grad(0))
            grads[0] = accumulate ? g : index_put(g, indices, zeros(values.sizes(), g.dtype(), {}, g.device()));
          if (needs_grad(1 + indices.size())) {
            const Tensor written = index(g, indices);
            grads[1 + indices.size()] =
                values.dim() > written.dim() ? reshape(sum(written), values.sizes()) : written;  // one for a mask
          }
          return grads;
        },
    .overwrites = true,
    .across_devices = true,
    .autocast = on_cuda(Autocast::widest),
}};

// ---- slices at an index of one dimension ----

namespace {
Meta select_meta(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = slice_dim(x, dim);
  check<IndexError>(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  check(index.dtype() == kInt64 || index.dtype() == kInt32, "index_select(): Expected dtype int32 or int64 for index");
  check(x.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
        " value(s)");
  Meta meta{x.sizes(), x.dtype()};
  if (x.dim() > 0) meta.sizes[d] = index.numel();
  return meta;
}
}  // namespace

OP_DEFINE(index_select){{
    .doc = R"(The slices of a dimension at the positions that ``index``, a vector, names.

Errors: IndexError for a position outside the dimension; negative ones are.)",
    .infer = select_meta,
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index) {
      cpu::index(out, x, cpu::Selection::along(x, slice_dim(x, dim), index, Bounds::strict));
    }},
    .saves = "self.shape, index",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim, const Tensor& index) {
          Tensor out = zeros_of(g, x.sizes());
          return Grads{in_place(index_add, out, dim, index, g), Tensor()};
        },
    .out_apart = true,
    .onnx = "Gather(self, index, axis=dim)",
}};

OP_DEFINE(index_add){{
    .doc =
        R"(A copy of self with slice i of ``source``, times ``alpha``, added at index ``index[i]`` of dimension ``dim``.

Errors: RuntimeError for a position outside the dimension and for slices of another shape or dtype.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar) {
          check<IndexError>(index.dim() <= 1,
                            "index_add_(): Index is supposed to be a vector, but got dim: ", index.dim(),
                            " with type: ", scalar_name(index.dtype()), " and size: ", index.sizes());
          check(index.dtype() == kInt64 || index.dtype() == kInt32,
                "index_add_(): Expected dtype int32/int64 for index but got: ", scalar_name(index.dtype()));
          check(x.dtype() == source.dtype(), "index_add_(): self (", scalar_name(x.dtype()), ") and source (",
                scalar_name(source.dtype()), ") must have the same scalar type");
          const int64_t d = slice_dim(x, dim);
          const int64_t n = source.dim() == 0 ? 1 : d < source.dim() ? source.sizes()[d] : -1;
          check(n == index.numel(), "index_add_(): Number of indices (", index.numel(),
                ") should be equal to source.size(dim): (", n, "), for dim: ", d);
          check(
              same_slices(x, source, d) || (x.dim() <= 1 && source.dim() <= 1),
              "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
              x.sizes(), " source.shape = ", source.sizes());
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
      start_from(out, x);
      const Tensor scaled = alpha == Scalar(1) ? source : mul(source, cast(Tensor(alpha), source.dtype()));
      put_slices(out, slice_dim(x, dim), index, scaled, Bounds::strict, Write::add);
    }},
    .saves = "index, source.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& source,
           Scalar alpha) {
          Tensor part;
          if (needs_grad(2)) {
            part = reshape(index_select(g, dim, index), source.sizes());
            if (!(alpha == Scalar(1))) part = part * Tensor(alpha);
          }
          return Grads{g, Tensor(), part};
        },
    .overwrites = true,
}};

OP_DEFINE(index_copy){{
    .doc = R"(A copy of self with slice i of ``source`` at index ``index[i]`` of dimension ``dim``.

Errors: IndexError for a position outside the dimension or another number of slices; RuntimeError for slices of another
shape or dtype.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
          const int64_t d = slice_dim(x, dim);
          check<IndexError>(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(),
                            ")");
          check(index.dtype() == kInt64, "index_copy_(): Expected a long tensor for index, but got ",
                scalar_name(index.dtype()));
          check(x.dtype() == source.dtype(),
                "index_copy_(): self and source expected to have the same dtype, but got (self) ",
                scalar_name(x.dtype()), " and (source) ", scalar_name(source.dtype()));
          check<IndexError>(
              source.dim() == 0 || x.dim() == 0 || source.dim() == x.dim(),
              "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
              "Source dimensionality (",
              source.dim(), "), destination dimensionality (", x.dim(), ")");
          check<IndexError>(source.dim() > 0 || index.numel() == 1,
                            "index_copy_(): When source is scalar, index should have one element (got ", index.numel(),
                            ")");
          if (source.dim() > 0) {
            check(x.dim() == 0 || same_slices(x, source, d),
                  "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ",
                  without(x.sizes(), d), " at dimension ", d, " and source slice shape: ", without(source.sizes(), d),
                  " at dimension ", d, ".");
            check<IndexError>(source.sizes()[d] == index.numel(), "index_copy_(): Number of indices (", index.numel(),
                              ") should be equal to source.size(dim) (", source.sizes()[d], ")");
            check(x.dim() > 0 || source.numel() == 1, "index_copy_(): source ", source.sizes(),
                  " does not fit a 0-dim self");
          }
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
      start_from(out, x);
      put_slices(out, slice_dim(x, dim), index, source, Bounds::strict, Write::assign);
    }},
    .saves = "index, source.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& source) {
          return Grads{needs_grad(0) ? index_fill(g, dim, index, Tensor(0)) : Tensor(), Tensor(),
                       needs_grad(2) ? reshape(index_select(g, dim, index), source.sizes()) : Tensor()};
        },
    .overwrites = true,
    .autocast = on_cpu(Autocast::widest),
}};

OP_DEFINE(index_fill){{
    .doc =
        R"(A copy of self with ``value``, a number or a 0-dim tensor, in the slices of a dimension that ``index`` names.

Errors: IndexError for a position outside the dimension.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
          slice_dim(x, dim);
          check(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
          check<IndexError>(index.dtype() == kInt64, "index_fill_(): Expected dtype int64 for index.");
          check(index.dim() <= 1, "Index has to be a vector/scalar");
          check(x.is_complex() || !value.is_complex(),
                "index_fill_(): Converting complex Scalar to non-complex type is not supported");
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
      start_from(out, x);
      put_slices(out, slice_dim(x, dim), index, cast(value, x.dtype()), Bounds::wrap, Write::assign);
    }},
    .saves = "index",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor&) {
          const Tensor rest = index_fill(g, dim, index, Tensor(0));
          return Grads{rest, Tensor(), needs_grad(2) ? sum(g - rest) : Tensor()};
        },
    .overwrites = true,
}};

OP_DEFINE(index_reduce){{
    .doc =
        R"(A copy of self with the slices of ``source`` reduced into the positions that ``index`` names: their "prod", "mean",
"amax" or "amin", together with what is there unless ``include_self`` is False.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool) {
          reduce_of(reduce, false, "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ");
          const int64_t d = slice_dim(x, dim);
          check<IndexError>(index.dim() <= 1,
                            "index_reduce(): Index is supposed to be a vector, but got dim: ", index.dim());
          check(index.dtype() == kInt64 || index.dtype() == kInt32,
                "index_reduce(): Expected dtype int32/int64 for index but got: ", scalar_name(index.dtype()));
          check(x.dtype() == source.dtype(),
                "index_reduce(): Expected self and source to have the same dtype but got: ", scalar_name(x.dtype()),
                " and ", scalar_name(source.dtype()));
          const int64_t n = source.dim() == 0 ? 1 : d < source.dim() ? source.sizes()[d] : -1;
          check(n == index.numel(), "index_reduce(): Number of indices (", index.numel(),
                ") should be equal to source.size(dim) (", n, ")");
          check(same_slices(x, source, d) || (x.dim() <= 1 && source.dim() <= 1), "index_reduce(): source ",
                source.sizes(), " must have the shape of self ", x.sizes(), " outside dimension ", d);
          check(!x.is_complex(), "index_reduce(): not implemented for '", scalar_name(x.dtype()), "'");
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                  std::string_view reduce, bool include_self) {
      start_from(out, x);
      reduce_into(out, source, reduce_of(reduce, false, ""), include_self,
                  [&](Tensor& to, const Tensor& values, Write write) {
                    put_slices(to, slice_dim(x, dim), index, values, Bounds::strict, write);
                  });
    }},
    .saves = "self, index, source, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& x, int64_t dim, const Tensor& index,
           const Tensor& source, std::string_view reduce, bool include_self) {
          const auto pick = [&](const Tensor& t) { return reshape(index_select(t, dim, index), source.sizes()); };
          const auto spread = [&](const Tensor& t) {
            Tensor out = zeros_of(t, x.sizes());
            return in_place(index_add, out, dim, index, t);
          };
          const auto clear = [&](const Tensor& t) { return index_fill(t, dim, index, Tensor(0)); };
          const auto again = [&](const Tensor& self, const Tensor& from) {
            return index_reduce(self, dim, index, from, reduce, include_self);
          };
          return reduce_gradients(g, result, x, source, reduce_of(reduce, false, ""), include_self, pick, spread, clear,
                                  again);
        },
    .overwrites = true,
}};

// ---- gather and scatter ----

OP_DEFINE(gather){{
    .doc = R"(The elements at the positions that ``index`` names in one dimension and its own place in the others:
``out[i][j] = self[index[i][j]][j]`` for ``dim`` 0 of two.

Shape: index has as many dimensions as self and, apart from ``dim``, is no larger; the result has its shape.
Errors: RuntimeError for other shapes and for a position outside the dimension.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, bool) {
          check_index("gather", x, dim, index, nullptr);
          return Meta{index.sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, bool) {
      if (index.numel() == 0) return;
      Tensor target = raised(out);
      cpu::gather_along(target, raised(x), wrap_dim(dim, x.dim()), raised(index));
    }},
    .saves = "self.shape, index",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim, const Tensor& index, bool) {
          Tensor out = zeros_of(g, x.sizes());
          return Grads{in_place(scatter_add, out, dim, index, g), Tensor()};
        },
    .out_apart = true,
    .onnx = "GatherElements(self, index, axis=dim)",
}};

OP_DEFINE(scatter){
    {
        .doc =
            R"(A copy of self with the elements of ``src`` written to the positions that ``index`` names in one dimension:
``out[index[i][j]][j] = src[i][j]`` for ``dim`` 0 of two.

Shape: index is no larger than self apart from ``dim``, and no larger than src. Dtype: src has that of self.
Errors: RuntimeError for other shapes and for a position outside the dimension.)",
        .infer =
            [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
              const bool number = src.impl()->wrapped_number;
              check_index("scatter", x, dim, index, number ? nullptr : &src);
              check(number || x.dtype() == src.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
              return like(x);
            },
        .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
          start_from(out, x);
          scatter_into(out, dim, index, src.dtype() == x.dtype() ? src : cast(src, x.dtype()), Write::assign);
        }},
        .saves = "index, src.shape",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor&) {
              return Grads{needs_grad(0) ? scatter(g, dim, index, Tensor(0)) : Tensor(), Tensor(),
                           needs_grad(2) ? gather(g, dim, index) : Tensor()};
            },
        .overwrites = true,
    },
    {
        .doc = R"(A copy of self with ``value`` written to the positions that ``index`` names in one dimension.)",
        .infer =
            [](const Tensor& x, int64_t dim, const Tensor& index, Scalar) {
              check_index("scatter", x, dim, index, nullptr);
              return like(x);
            },
        .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
          start_from(out, x);
          scatter_into(out, dim, index, cast(Tensor(value), x.dtype()), Write::assign);
        }},
        .saves = "index",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, Scalar) {
              return Grads{scatter(g, dim, index, Tensor(0)), Tensor()};
            },
        .overwrites = true,
    },
    {
        .doc =
            R"(A copy of self with the elements of ``src`` added or multiplied in: ``reduce`` is "add" or "multiply".)",
        .infer =
            [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
              const bool number = src.impl()->wrapped_number;
              check_index("scatter", x, dim, index, number ? nullptr : &src);
              check(number || x.dtype() == src.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
              check(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
              return like(x);
            },
        .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce) {
          start_from(out, x);
          scatter_into(out, dim, index, src.dtype() == x.dtype() ? src : cast(src, x.dtype()),
                       reduce == "add" ? Write::add : Write::multiply);
        }},
        .overwrites = true,
    },
    {
        .doc = R"(A copy of self with ``value`` added or multiplied in: ``reduce`` is "add" or "multiply".)",
        .infer =
            [](const Tensor& x, int64_t dim, const Tensor& index, Scalar, std::string_view reduce) {
              check_index("scatter", x, dim, index, nullptr);
              check(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
              return like(x);
            },
        .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, Scalar value,
                      std::string_view reduce) {
          start_from(out, x);
          scatter_into(out, dim, index, cast(Tensor(value), x.dtype()), reduce == "add" ? Write::add : Write::multiply);
        }},
        .overwrites = true,
    }};

OP_DEFINE(scatter_add){{
    .doc = R"(A copy of self with the elements of ``src`` added at the positions that ``index`` names in one dimension:
``out[index[i][j]][j] += src[i][j]`` for ``dim`` 0 of two. Shapes and errors are those of scatter.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
          check_index("scatter", x, dim, index, &src);
          check(x.dtype() == src.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
      start_from(out, x);
      scatter_into(out, dim, index, src, Write::add);
    }},
    .saves = "index",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor&) {
          return Grads{g, Tensor(), needs_grad(2) ? gather(g, dim, index) : Tensor()};
        },
    .overwrites = true,
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(scatter_reduce){{
    .doc =
        R"(A copy of self with the elements of ``src`` reduced into the positions that ``index`` names in one dimension: their
"sum", "prod", "mean", "amax" or "amin", together with what is there unless ``include_self`` is False.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool) {
          check_index("scatter", x, dim, index, &src);
          check(x.dtype() == src.dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
          const Reduce r =
              reduce_of(reduce, true, "reduce argument must be either sum, prod, mean, amax or amin, got ");
          check(!x.is_complex() || r <= Reduce::mean, "scatter_reduce: not implemented for '", scalar_name(x.dtype()),
                "'");
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                  std::string_view reduce, bool include_self) {
      start_from(out, x);
      if (index.numel() == 0) return;
      reduce_into(out, src, reduce_of(reduce, true, ""), include_self,
                  [&](Tensor& to, const Tensor& values, Write write) { scatter_into(to, dim, index, values, write); });
    }},
    .saves = "self, index, src, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
           std::string_view reduce, bool include_self) {
          const auto cut = [&](const Tensor& t) {  // src may be larger than index
            Tensor part = t;
            for (int64_t d = 0; d < t.dim(); ++d)
              if (t.sizes()[d] != index.sizes()[d]) part = narrow(part, d, 0, index.sizes()[d]);
            return part;
          };
          const auto pick = [&](const Tensor& t) { return gather(t, dim, index); };
          const auto spread = [&](const Tensor& t) { return scatter_add(zeros_of(t, x.sizes()), dim, index, t); };
          const auto clear = [&](const Tensor& t) { return scatter(t, dim, index, Tensor(0)); };
          const auto again = [&](const Tensor& self, const Tensor& from) {
            return scatter_reduce(self, dim, index, from, reduce, include_self);
          };
          const Tensor source = index.numel() ? cut(src) : zeros_of(src, index.sizes());
          Grads grads = reduce_gradients(g, result, x, source, reduce_of(reduce, true, ""), include_self, pick, spread,
                                         clear, again);
          if (Ints(source.sizes()) != Ints(src.sizes()) && grads[2].defined()) {
            Tensor whole = zeros_of(g, src.sizes());
            Tensor part = whole;
            for (int64_t d = 0; d < src.dim() && index.numel(); ++d) part = narrow(part, d, 0, index.sizes()[d]);
            if (index.numel()) in_place(copy, part, grads[2]);
            grads[2] = whole;
          }
          return grads;
        },
    .overwrites = true,
}};

OP_DEFINE(take){{
    .doc =
        R"(The elements at positions in the flattened tensor; negative ones count from the end. The result has index's shape.

Errors: IndexError for a position outside; RuntimeError unless index is int64.)",
    .composite =
        [](const Tensor& x, const Tensor& where) {
          check(where.dtype() == kInt64, "take(): Expected a long tensor for index, but got ",
                scalar_name(where.dtype()));
          check<IndexError>(x.numel() > 0 || where.numel() == 0, "take(): tried to take from an empty tensor");
          return index(reshape(x, {-1}), {where});
        },
    .out_apart = true,
}};

OP_DEFINE(put){{
    .doc = R"(A copy of self with the elements of ``source`` at positions in the flattened tensor, or added there with
``accumulate``.)",
    .composite =
        [](const Tensor& x, const Tensor& where, const Tensor& source, bool accumulate) {
          check(where.dtype() == kInt64, "put_(): Expected a long tensor for index, but got ",
                scalar_name(where.dtype()));
          check(x.dtype() == source.dtype(),
                "put_(): self and source expected to have the same dtype, but got self.dtype = ",
                scalar_name(x.dtype()), " and source.dtype = ", scalar_name(source.dtype()));
          check<IndexError>(
              where.numel() == source.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", where.numel());
          check<IndexError>(x.numel() > 0 || where.numel() == 0, "put_(): tried to put elements into an empty tensor");
          return reshape(index_put(reshape(x, {-1}), {reshape(where, {-1})}, reshape(source, {-1}), accumulate),
                         x.sizes());
        },
    .in_place = true,
}};

OP_DEFINE(take_along_dim){{
    .doc =
        R"(gather with broadcasting: self and ``indices`` are broadcast outside ``dim``. Without ``dim`` both are flat.
Negative positions count from the end.)",
    .composite =
        [](const Tensor& x, const Tensor& indices, OptInt dim) {
          check(indices.dtype() == kInt64, "torch.take_along_dim(): dtype of indices should be Long but got ",
                scalar_name(indices.dtype()));
          if (!dim) return take_along_dim(reshape(x, {-1}), reshape(indices, {-1}), 0);
          check(x.dim() == indices.dim(),
                "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ",
                x.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
          const int64_t d = wrap_dim(*dim, x.dim());
          if (x.dim() == 0) return gather(x, 0, indices);
          Dims own = x.sizes(), theirs = indices.sizes();
          own[d] = theirs[d] = 1;
          const Dims common = broadcast(own, theirs);
          own = theirs = common;
          own[d] = x.sizes()[d];
          theirs[d] = indices.sizes()[d];
          const Tensor positive = where(lt(indices, Tensor(0)), indices + Tensor(x.sizes()[d]), indices);
          return gather(expand(x, own), d, expand(positive, theirs));
        },
}};

// ---- masks ----

OP_DEFINE(masked_fill){{
    .doc = R"(A copy of self with ``value``, a number or a 0-dim tensor, where ``mask`` is true; both are broadcast.

Errors: RuntimeError unless mask is bool.)",
    .infer =
        [](const Tensor& x, const Tensor& mask, const Tensor& value) {
          check(mask.dtype() == kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
                name_of(mask.dtype()));
          check(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
          check_fits(value, x.dtype());
          return pointwise_meta(x.dtype(), x, mask);
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& mask, const Tensor& value) {
      cpu::where(out, mask, value.dtype() == x.dtype() ? value : cast(value, x.dtype()), x);
    }},
    .saves = "mask",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& mask, const Tensor&) {
          return Grads{masked_fill(g, mask, Tensor(0)), Tensor(),
                       needs_grad(2) ? sum(where(mask, g, cast(Tensor(0), g.dtype()))) : Tensor()};
        },
    .pointwise = true,
    .onnx = "Where(mask, value, self)",
}};

OP_DEFINE(masked_select){{
    .doc =
        R"(The elements where ``mask`` is true, in one dimension; both are broadcast. Errors: RuntimeError unless mask is bool.)",
    .composite =
        [](const Tensor& x, const Tensor& mask) {
          check(mask.dtype() == kBool, "masked_select: expected BoolTensor for mask");
          const Dims sizes = broadcast(x.sizes(), mask.sizes());
          const Tensor all = expand(x, sizes), chosen = expand(mask, sizes);
          return sizes.empty() ? reshape(index(reshape(all, {1}), {reshape(chosen, {1})}), {-1}) : index(all, {chosen});
        },
    .out_apart = true,
}};

OP_DEFINE(masked_scatter){{
    .doc =
        R"(A copy of self, expanded to the shape of ``mask``, with the elements of ``source`` in order where mask is true.

Errors: RuntimeError unless mask is bool, source has the dtype of self and enough elements.)",
    .infer =
        [](const Tensor& x, const Tensor& mask, const Tensor& source) {
          check(mask.dtype() == kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
                scalar_name(mask.dtype()));
          check(x.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
                scalar_name(x.dtype()), " and ", scalar_name(source.dtype()));
          return pointwise_meta(x.dtype(), x, mask);
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& mask, const Tensor& source) {
      start_from(out, x);
      const Tensor chosen = expand(mask, out.sizes());
      const int64_t n = cpu::count_nonzero(chosen);
      check(n <= source.numel(), "Number of elements of source < number of ones in mask");
      if (n == 0) return;
      const Tensor flat = contiguous(source.detach());
      Tensor target = raised(out);
      cpu::index_put(target, cpu::Selection(target, {raised(chosen)}), alias(flat, {n}, {1}, flat.storage_offset()),
                     Write::assign);
    }},
    .saves = "mask, source.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& mask, const Tensor& source) {
          Tensor part;
          if (needs_grad(2)) {
            part = masked_select(g, mask);
            part = reshape(constant_pad_nd(part, {0, source.numel() - part.numel()}), source.sizes());
          }
          return Grads{needs_grad(0) ? masked_fill(g, mask, Tensor(0)) : Tensor(), Tensor(), part};
        },
    .overwrites = true,
}};

OP_DEFINE(nonzero){{
    .doc = R"(The positions of the nonzero elements as rows, in row-major order: shape (n, self.dim()), int64.)",
    .infer =
        [](const Tensor& x) {
          check<NotImplementedError>(!x.is_meta(),
                                     "the shape of the result depends on data, which a meta tensor has not");
          return Meta{{cpu::count_nonzero(x), x.dim()}, kInt64};
        },
    .kernel = {cpu::nonzero},
    .onnx = "Transpose(NonZero(self))",
}};
OP_DEFINE(nonzero_numpy){{
    .doc = R"(The positions of the nonzero elements: a vector for each dimension, ready to index with.)",
    .composite = [](const Tensor& x) { return unbind(nonzero(x.dim() ? x : reshape(x, {1})), 1); },
}};
OP_DEFINE(nonzero_static){{
    .doc = R"(The first ``size`` rows of nonzero, filled up with ``fill_value``.)",
    .composite =
        [](const Tensor& x, int64_t size, int64_t fill_value) {
          check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
          const Tensor all = nonzero(x);
          const int64_t n = std::min(size, all.sizes()[0]);
          return constant_pad_nd(narrow(all, 0, 0, n), {0, 0, 0, size - n}, fill_value);
        },
}};
OP_DEFINE(argwhere){{
    .doc = R"(Another name of nonzero.)",
    .composite = [](const Tensor& x) { return nonzero(x); },
}};

// ---- lookups ----

OP_DEFINE(one_hot){{
    .doc =
        R"(Classes as rows with a 1 at the class and 0 elsewhere: shape (*, num_classes), int64; -1 stands for the greatest
class and one more. Errors: RuntimeError for a class outside the range, and unless the input is int64.)",
    .composite =
        [](const Tensor& x, int64_t num_classes) {
          check(x.dtype() == kInt64, "one_hot is only applicable to index tensor of type LongTensor.");
          const int64_t n = x.numel();
          check(n > 0 || num_classes > 0, "Can not infer total number of classes from empty tensor.");
          check(n == 0 || amin(x).item<int64_t>() >= 0, "Class values must be non-negative.");
          const int64_t top = n ? amax(x).item<int64_t>() : -1, count = num_classes == -1 ? top + 1 : num_classes;
          check(top < count, "Class values must be smaller than num_classes.");
          Dims sizes = x.sizes();
          sizes.push_back(count);
          Tensor out = zeros(sizes, kInt64, {}, x.device());
          const Tensor at = unsqueeze(x, -1);
          return n ? in_place(scatter_add, out, -1, at, ones(at.sizes(), kInt64, {}, x.device())) : out;
        },
}};

namespace {
/// How often each row of `rows` is named by the indices.
Tensor row_counts(const Tensor& indices, int64_t rows, DType dtype) {
  Tensor counts = zeros({rows}, dtype, {}, indices.device());
  const Tensor flat = reshape(indices, {-1});
  return in_place(index_add, counts, 0, flat, ones(flat.sizes(), dtype, {}, indices.device()));
}
}  // namespace

OP_DEFINE(embedding){{
    .doc =
        R"(Rows of ``weight`` at ``indices``: shape (*indices, weight.size(1)). The gradient of row ``padding_idx`` is zero; with
``scale_grad_by_freq`` each row's gradient is divided by how often it was used. ``sparse`` gives a dense gradient here too.

Errors: IndexError for an index outside the rows; RuntimeError unless weight is 2-dim and indices are integers.)",
    .infer =
        [](const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
          check(weight.dim() == 2, "'weight' must be 2-D");
          check(indices.dtype() == kInt64 || indices.dtype() == kInt32,
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
                "got torch.",
                scalar_name(indices.dtype()), "Tensor instead (while checking arguments for embedding)");
          Meta meta{indices.sizes(), weight.dtype()};
          meta.sizes.push_back(weight.sizes()[1]);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
      cpu::index(out, weight, cpu::Selection(weight, {indices}, Bounds::strict));
    }},
    .saves = "weight.shape, indices",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& weight, const Tensor& indices, int64_t padding_idx,
           bool scale_grad_by_freq, bool) {
          Tensor rows = g;
          if (padding_idx >= 0) rows = masked_fill(rows, unsqueeze(eq(indices, Tensor(padding_idx)), -1), Tensor(0));
          if (scale_grad_by_freq)
            rows = rows / unsqueeze(index(row_counts(indices, weight.sizes()[0], g.dtype()), {indices}), -1);
          Tensor out = zeros_of(g, weight.sizes());
          return Grads{in_place(index_add, out, 0, reshape(indices, {-1}), reshape(rows, {-1, weight.sizes()[1]})),
                       Tensor()};
        },
    .onnx = "Gather(weight, indices)",
}};

OP_DEFINE(embedding_renorm){{
    .doc = R"(A copy of self in which the rows at ``indices`` whose norm is above ``max_norm`` are scaled down to it.)",
    .composite =
        [](const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
          check(weight.dim() == 2, "'weight' must be 2-D");
          NoGrad guard;
          const Tensor rows = int64_list(reshape(indices, {-1}));
          Tensor out = clone(weight);
          std::vector<int64_t> unique(rows.data<int64_t>(), rows.data<int64_t>() + rows.numel());
          std::sort(unique.begin(), unique.end());
          unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
          for (int64_t r : unique) {
            check<IndexError>(r >= 0 && r < weight.sizes()[0], "index out of range in self");
            Tensor row = select(out, 0, r);
            const Tensor values = contiguous(to(row, kCPU, kFloat64));
            double norm = 0;
            for (int64_t i = 0; i < values.numel(); ++i) {
              const double v = std::abs(values.data<double>()[i]);
              norm = std::isinf(norm_type) ? std::max(norm, v) : norm + std::pow(v, norm_type);
            }
            if (!std::isinf(norm_type)) norm = std::pow(norm, 1 / norm_type);
            if (norm > max_norm) in_place(mul, row, Tensor(max_norm / (norm + 1e-7)));
          }
          return out;
        },
    .in_place = true,
}};

OP_DEFINE(embedding_bag){{
    .doc =
        R"(Rows of ``weight`` at ``indices``, reduced within bags: ``mode`` 0 sums, 1 takes the mean, 2 the maximum. Bag b begins
at ``offsets[b]`` of the vector ``indices``, the last ends with it or, with ``include_last_offset``, at the last offset. Rows
equal to ``padding_idx`` are left out. Returns the bags, the bag of each index, the sizes of the bags, and for the maximum the
rows it came from.

Errors: IndexError or RuntimeError for indices and offsets out of range.)",
    .composite =
        [](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq, int64_t mode,
           bool sparse, const Tensor& per_sample_weights, bool include_last_offset, OptInt padding_idx) {
          check(weight.dim() == 2, "'weight' must be 2-D");
          check(indices.dim() == 1, "input has to be a 1D Tensor, but got Tensor of dimension ", indices.dim());
          check(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
          check(is_integral(indices.dtype()) && is_integral(offsets.dtype()),
                "indices and offsets must be integers, got ", indices.dtype(), " and ", offsets.dtype());
          check(mode >= 0 && mode <= 2, "mode has to be 0 (sum), 1 (mean) or 2 (max), got ", mode);
          check(!per_sample_weights.defined() || mode == 0,
                "embedding_bag: per_sample_weights only supported with mode='sum'");
          const int64_t n = indices.numel(), rows = weight.sizes()[0];
          const int64_t pad = !padding_idx ? -1 : *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
          const Tensor list = int64_list(indices), given = int64_list(offsets);
          const int64_t bags = given.numel() - include_last_offset;
          check(bags >= 0, "include_last_offset: number of offset should be at least 1");
          std::vector<int64_t> starts(given.data<int64_t>(), given.data<int64_t>() + bags);
          starts.push_back(include_last_offset ? given.data<int64_t>()[bags] : n);
          check(starts[0] == 0 || bags == 0,
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                "However, got ",
                starts[0]);
          for (size_t b = 0; b < starts.size(); ++b) {
            check(starts[b] <= n, "offsets[-1] can not be greater than input's length ", n, " but got offsets[-1] of ",
                  starts[b]);
            check(b == 0 || starts[b] >= starts[b - 1], "offsets must be ascending, got ", starts[b - 1], " before ",
                  starts[b]);
          }
          const int64_t* data = list.data<int64_t>();
          for (int64_t i = 0; i < n; ++i)
            check(data[i] >= 0 && data[i] < rows, "Index ", i, " of input takes value ", data[i],
                  " which is not in the valid range [0, ", rows, ")");
          Tensor bag_of = empty({n}, kInt64), sizes = zeros({bags}, kInt64);
          for (int64_t b = 0; b < bags; ++b)
            for (int64_t i = starts[size_t(b)]; i < starts[size_t(b) + 1]; ++i) {
              bag_of.data<int64_t>()[i] = b;
              sizes.data<int64_t>()[b] += data[i] != pad;
            }
          const int64_t used = bags ? starts.back() : 0;
          bag_of = to(bag_of, weight.device());
          sizes = to(sizes, weight.device());
          Tensor max_rows = empty({0}, kInt64), result;
          if (mode == 2) {
            max_rows = empty({bags, weight.sizes()[1]}, kInt64);
            cpu::bag_argmax(max_rows, contiguous(to(weight.detach(), kCPU)), data, starts.data(), pad);
            max_rows = to(max_rows, weight.device());
            const Tensor empty_bag = lt(max_rows, Tensor(0));
            result = masked_fill(gather(weight, 0, masked_fill(max_rows, empty_bag, Tensor(0))), empty_bag, Tensor(0));
          } else {
            const Tensor chosen = narrow(to(list, weight.device()), 0, 0, used);
            Tensor each = embedding(weight, chosen, pad, scale_grad_by_freq, sparse);
            if (is_half(weight.dtype())) each = cast(each, kFloat32);
            if (per_sample_weights.defined()) {
              check(Ints(per_sample_weights.sizes()) == Ints(indices.sizes()), "expected per_sample_weights ",
                    per_sample_weights.sizes(), " to have the shape of indices ", indices.sizes());
              check(per_sample_weights.dtype() == weight.dtype(),
                    "expected weight and per_sample_weights to have the same dtype, got ", weight.dtype(), " and ",
                    per_sample_weights.dtype());
              each = each * unsqueeze(cast(narrow(per_sample_weights, 0, 0, used), each.dtype()), -1);
            }
            if (pad >= 0) each = masked_fill(each, unsqueeze(eq(chosen, Tensor(pad)), -1), Tensor(0));
            result = zeros_of(each, {bags, weight.sizes()[1]});
            in_place(index_add, result, 0, narrow(bag_of, 0, 0, used), each);
            if (mode == 1) {
              const Tensor count = masked_fill(sizes, eq(sizes, Tensor(0)), Tensor(1));
              result = result / unsqueeze(cast(count, each.dtype()), -1);
            }
            if (is_half(weight.dtype())) result = cast(result, weight.dtype());
          }
          return std::array<Tensor, 4>{result, bag_of, sizes, max_rows};
        },
}};

namespace {
/// 0 repeats[0] times, 1 repeats[1] times, ...
Tensor repeated_positions(const Tensor& repeats, OptInt output_size) {
  check(repeats.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
  check<NotImplementedError>(repeats.dtype() == kInt64 || repeats.dtype() == kInt32,
                             "\"repeat_interleave_cpu\" not implemented for '", scalar_name(repeats.dtype()), "'");
  const Tensor counts = int64_list(repeats);
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    check(counts.data<int64_t>()[i] >= 0, "repeats can not be negative");
    check(!__builtin_add_overflow(total, counts.data<int64_t>()[i], &total), "the sum of repeats overflows");
  }
  check(!output_size || *output_size == total, "allocated size does not match required size: output_size ",
        output_size.value_or(0), " but the repeats sum to ", total);
  Tensor out = empty({total}, kInt64);
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, counts.data<int64_t>()[i], i);
  return out;
}
}  // namespace

OP_DEFINE(repeat_interleave){
    {
        .doc =
            R"(Each index of a dimension several times in a row: ``repeats`` times, a number or one for each index. Without
``dim`` the tensor is flattened first. ``output_size`` is the size that results, if it is known.)",
        .composite =
            [](const Tensor& x, const Tensor& repeats, OptInt dim, OptInt output_size) {
              const Tensor from = dim ? x : reshape(x, {-1});
              const int64_t d = dim ? wrap_dim(*dim, x.dim()) : 0;
              const Tensor source = from.dim() ? from : reshape(from, {1});
              const int64_t n = source.sizes()[d];
              check(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
              if (repeats.numel() == 1 && is_integral(repeats.dtype())) {
                const int64_t times = repeats.item<int64_t>();
                check(times >= 0, "repeats can not be negative");
                check_int32("repeats", times);
                check(!output_size || *output_size == n * times, "repeat_interleave: Invalid output_size, expected ",
                      n * times, " but got ", output_size.value_or(0));
                Dims apart = source.sizes();
                apart.insert(size_t(d) + 1, times);
                return flatten(clone(expand(unsqueeze(source, d + 1), apart), MemoryFormat::Contiguous), d, d + 1);
              }
              check(repeats.dim() != 1 || repeats.numel() == n,
                    "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.numel(),
                    " and input.size(", d, ") = ", n);
              return index_select(source, d, to(repeated_positions(repeats, output_size), source.device()));
            },
    },
    {
        .doc = R"(The same with one number for all.)",
        .composite = [](const Tensor& x, int64_t repeats, OptInt dim,
                        OptInt output_size) { return repeat_interleave(x, Tensor(repeats), dim, output_size); },
    },
    {
        .doc = R"(0 ``repeats[0]`` times, then 1 ``repeats[1]`` times, and so on.)",
        .composite = repeated_positions,
    }};

namespace {
Tensor search(const Tensor& sorted, const Tensor& given, bool out_int32, bool right, OptStr side,
              const Tensor& sorter) {
  const bool number = given.impl()->wrapped_number;
  const Tensor x = number ? to(given, sorted.device()) : given;
  check(!side || *side == "left" || *side == "right",
        "torch.searchsorted(): side can only be 'left' or 'right' but got ", side.value_or(""));
  check(!side || !right || *side == "right",
        "torch.searchsorted(): side and right can't be set to opposites, got side of ", side.value_or(""),
        " while right was True");
  for (const Tensor& t : {x, sorter}) {
    if (!t.defined()) continue;
    check(t.device() == sorted.device(),
          "torch.searchsorted(): boundaries, input value and sorter tensors should be on the same device, but got ",
          sorted.device(), " and ", t.device());
  }
  check(sorted.dim() > 0, "torch.searchsorted(): boundaries tensor should have positive dimension, got 0 dimension");
  bool matches = sorted.dim() == 1 || sorted.dim() == x.dim();
  for (int64_t d = 0; matches && sorted.dim() > 1 && d < sorted.dim() - 1; ++d)
    matches = sorted.sizes()[d] == x.sizes()[d];
  check(matches,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and "
        "input value tensor must match, but we got boundaries tensor ",
        sorted.sizes(), " and input value tensor ", x.sizes());
  if (sorter.defined()) {
    check(Ints(sorter.sizes()) == Ints(sorted.sizes()),
          "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ", sorted.sizes(),
          "and got sorter tensor ", sorter.sizes());
    check(sorter.dtype() == kInt64, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
          scalar_name(sorter.dtype()));
  }
  const DType common = promote(sorted.dtype(), number ? sorted.dtype() : x.dtype());
  const DType compared = number && x.is_floating_point() && is_integral(common) ? default_dtype() : common;
  const auto ready = [&](const Tensor& t) {
    return contiguous(t.dtype() == compared ? t.detach() : cast(t.detach(), compared));
  };
  Tensor out = allocate({x.sizes(), out_int32 ? kInt32 : kInt64, x.device(), {}});
  if (!out.is_meta() && out.numel())
    cpu::search_sorted(out, ready(sorted), ready(x), sorter.defined() ? contiguous(sorter) : sorter,
                       right || (side && *side == "right"));
  return out;
}
}  // namespace

OP_DEFINE(searchsorted){{
    .doc =
        R"(Where each value would be put into a sorted row to keep it sorted: before equal elements, or behind them with ``right``
(or ``side`` "right"). ``sorted_sequence`` is one row, or has a row for each row of the input; ``sorter`` holds the order of rows
that are not sorted themselves. The result is int64, or int32 with ``out_int32``.)",
    .composite = search,
}};
OP_DEFINE(bucketize){{
    .doc =
        R"(The bucket of each value between sorted ``boundaries``: i where ``boundaries[i-1] < value <= boundaries[i]``, and
``boundaries[i-1] <= value < boundaries[i]`` with ``right``.)",
    .composite =
        [](const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) {
          check(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
          return search(boundaries, x, out_int32, right, {}, Tensor());
        },
}};

OP_DEFINE(isin){{
    .doc =
        R"(Whether each element is among ``test_elements``, or is not with ``invert``. bool, the shape of ``elements``.)",
    .composite =
        [](const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
          for (const Tensor& t : {elements, test_elements})
            check<NotImplementedError>(t.dtype() != kBool && !t.is_complex(),
                                       "Unsupported input type encountered for isin(): ", scalar_name(t.dtype()));
          const DType common = promote_tensors(elements, test_elements);
          const Tensor x = cast(elements.detach(), common);
          if (test_elements.numel() == 0) return full(x.sizes(), invert);
          const Tensor sorted = std::get<0>(sort(reshape(cast(test_elements.detach(), common), {-1})));
          const Tensor at = search(sorted, x, false, false, {}, Tensor());
          const Tensor last = Tensor(sorted.numel() - 1);
          const Tensor found = index(sorted, {where(gt(at, last), last, at)});
          return invert ? ne(found, x) : eq(found, x);
        },
}};

OP_DEFINE(unravel_index){{
    .doc = R"(Positions in a flattened tensor of ``shape`` as one tensor of coordinates for each dimension.)",
    .composite =
        [](const Tensor& indices, Ints shape) {
          check<TypeError>(is_integral(indices.dtype()) && indices.dtype() != kBool,
                           "expected 'indices' to be integer dtype, but got torch.", name_of(indices.dtype()));
          for (int64_t n : shape) check<ValueError>(n >= 0, "'shape' cannot have negative values, but got ", shape);
          std::vector<Tensor> out(shape.size());
          Tensor rest = cast(indices, kInt64);
          for (size_t d = shape.size(); d-- > 0;) {
            const Tensor n(std::max<int64_t>(shape[d], 1));
            const Tensor above = div(rest, n, "floor");
            out[d] = rest - above * n;
            rest = above;
          }
          return out;
        },
}};

// ---- triangles and diagonals ----

namespace {
Meta triangle_meta(const char* name, const Tensor& x) {
  check(x.dim() >= 2, name, ": input tensor must have at least 2 dimensions");
  return like(x);
}
}  // namespace

OP_DEFINE(tril){{
    .doc =
        R"(The lower triangle of each matrix, zeros above the diagonal that lies ``diagonal`` right of the main one.)",
    .infer = [](const Tensor& x, int64_t) { return triangle_meta("tril", x); },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t k) { cpu::triangle(out, x, k, false); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t k) { return Grads{tril(g, k)}; },
    .overwrites = true,
    .onnx = "Trilu(self, diagonal, upper=0)",
}};
OP_DEFINE(triu){{
    .doc =
        R"(The upper triangle of each matrix, zeros below the diagonal that lies ``diagonal`` right of the main one.)",
    .infer = [](const Tensor& x, int64_t) { return triangle_meta("triu", x); },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t k) { cpu::triangle(out, x, k, true); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t k) { return Grads{triu(g, k)}; },
    .overwrites = true,
    .onnx = "Trilu(self, diagonal, upper=1)",
}};
OP_DEFINE(tril_indices){{
    .doc = R"(The rows and columns of the lower triangle of a ``row`` x ``col`` matrix: shape (2, n).)",
    .composite = [](int64_t row, int64_t col, int64_t offset, OptDType dtype, OptLayout, OptDevice device,
                    OptBool) { return triangle_indices(row, col, offset, dtype, device, false); },
}};
OP_DEFINE(triu_indices){{
    .doc = R"(The rows and columns of the upper triangle of a ``row`` x ``col`` matrix: shape (2, n).)",
    .composite = [](int64_t row, int64_t col, int64_t offset, OptDType dtype, OptLayout, OptDevice device,
                    OptBool) { return triangle_indices(row, col, offset, dtype, device, true); },
}};

OP_DEFINE(diagonal){{
    .doc = R"(The view on the diagonal of two dimensions, ``offset`` right of the main one, as the last dimension.)",
    .composite =
        [](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
          Diagonal d = diagonal_of(x, offset, dim1, dim2);
          return alias(x, std::move(d.sizes), std::move(d.strides), d.offset);
        },
    .saves = "self.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
          Tensor whole = zeros_of(g, x.sizes());
          Tensor part = diagonal(whole, offset, dim1, dim2);
          in_place(copy, part, g);
          return Grads{whole};
        },
    .view = true,
}};
OP_DEFINE(linalg_diagonal){{
    .doc = R"(The view on the diagonal of two dimensions, by default the last two.)",
    .composite = [](const Tensor& x, int64_t offset, int64_t dim1,
                    int64_t dim2) { return diagonal(x, offset, dim1, dim2); },
}};
OP_DEFINE(diag_embed){{
    .doc =
        R"(The last dimension as the diagonal of matrices that are zero elsewhere, in the dimensions ``dim1`` and ``dim2``.)",
    .infer =
        [](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
          const int64_t a = wrap_dim(dim1, x.dim() + 1), b = wrap_dim(dim2, x.dim() + 1);
          check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
          check(x.dim() > 0, "diag_embed needs a tensor of at least one dimension");
          Meta meta{x.sizes(), x.dtype()};
          check(offset > -kMostElements && offset < kMostElements, "diag_embed: offset ", offset, " is too large");
          const int64_t n = x.sizes().back() + std::abs(offset);
          meta.sizes.resize(meta.sizes.size() - 1);
          for (int64_t d : {std::min(a, b), std::max(a, b)}) meta.sizes.insert(size_t(d), n);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
      cpu::fill(out, Scalar(0));
      const Diagonal d = diagonal_of(out, offset, dim1, dim2);
      Tensor part = alias(out, d.sizes, d.strides, d.offset);
      cpu::copy(part, x);
    }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t offset, int64_t dim1,
              int64_t dim2) { return Grads{diagonal(g, offset, dim1, dim2)}; },
}};
OP_DEFINE(diag){{
    .doc = R"(Of a vector the matrix that has it as a diagonal, of a matrix a copy of that diagonal.)",
    .composite =
        [](const Tensor& x, int64_t k) {
          check(x.dim() == 1 || x.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", x.dim(), "D");
          return x.dim() == 1 ? diag_embed(x, k) : clone(diagonal(x, k), MemoryFormat::Contiguous);
        },
}};
OP_DEFINE(diagflat){{
    .doc = R"(The matrix that has the flattened tensor as a diagonal.)",
    .composite = [](const Tensor& x, int64_t offset) { return diag_embed(reshape(x, {-1}), offset); },
}};
OP_DEFINE(trace){{
    .doc = R"(The sum of a matrix's diagonal.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() == 2, "trace: expected a matrix, but got tensor with dim ", x.dim());
          check<NotImplementedError>(x.dtype() != kBool, "\"trace\" not implemented for 'Bool'");
          return sum(diagonal(x));
        },
    .autocast = on_cpu(Autocast::fp32),
}};

// ---- views, written to in a copy ----

OP_DEFINE(diagonal_scatter){{
    .doc = R"(A copy of self with ``src`` as the diagonal of two dimensions.)",
    .composite =
        [](const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
          return with_window(x, src, [&](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
        },
}};
OP_DEFINE(select_scatter){{
    .doc = R"(A copy of self with ``src`` at one index of a dimension.)",
    .composite =
        [](const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
          return with_window(x, src, [&](const Tensor& t) { return select(t, dim, index); });
        },
}};
OP_DEFINE(slice_scatter){{
    .doc = R"(A copy of self with ``src`` in a slice of a dimension.)",
    .composite =
        [](const Tensor& x, const Tensor& src, int64_t dim, OptInt start, OptInt end, int64_t step) {
          return with_window(x, src, [&](const Tensor& t) { return slice(t, dim, start, end, step); });
        },
}};
OP_DEFINE(as_strided_scatter){{
    .doc = R"(A copy of self with ``src`` in the window that as_strided makes.)",
    .composite =
        [](const Tensor& x, const Tensor& src, Ints size, Ints stride, OptInt offset) {
          for (int64_t d = 0; d < x.dim(); ++d)
            if (x.sizes()[d] > 1 && x.strides()[d] == 0)
              return with_window(x, src, [&](const Tensor& t) { return as_strided(t, size, stride, offset); });
          // The window may lie anywhere in x's memory, so all of that is copied.
          const Tensor memory = as_strided(x, {x.storage()->bytes() / x.itemsize()}, {1}, 0);
          const Tensor out = with_window(memory, src, [&](const Tensor& t) {
            return as_strided(t, size, stride, offset.value_or(x.storage_offset()));
          });
          return as_strided(out, x.sizes(), x.strides(), x.storage_offset());
        },
}};

}  // namespace rush
