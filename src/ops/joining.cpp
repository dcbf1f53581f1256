// Putting tensors together, taking them apart, and giving their elements another order.
#include "kernels/cpu/joining.h"

#include <numeric>

#include "ops/common.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

DType promote_list(Tensors tensors) {
  Promotion p;
  for (const Tensor& t : tensors) p(t);
  return p.dtype();
}

/// cat ignores what PyTorch's first versions made of "no tensor": one dimension of size 0.
bool is_nothing(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

Meta cat_meta(Tensors tensors, int64_t dim) {
  check<ValueError>(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    if (!first && !is_nothing(tensors[i])) first = &tensors[i];
  }
  const DType dtype = promote_list(tensors);
  if (!first) {
    wrap_dim(dim, 1);
    return {tensors[0].sizes(), dtype};
  }
  const int64_t d = wrap_dim(dim, first->dim());
  Dims sizes = first->sizes();
  sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_nothing(t)) continue;
    check(t.dim() == first->dim(), "Tensors must have same number of dimensions: got ", first->dim(), " and ", t.dim());
    for (int64_t k = 0; k < t.dim(); ++k)
      check(k == d || t.sizes()[k] == sizes[k], "Sizes of tensors must match except in dimension ", d,
            ". Expected size ", sizes[k], " but got size ", t.sizes()[k], " for tensor number ", i, " in the list.");
    sizes[d] += t.sizes()[d];
  }
  return {sizes, dtype};
}
int64_t cat_dim(Tensors tensors, int64_t dim) {
  for (const Tensor& t : tensors)
    if (!is_nothing(t)) return wrap_dim(dim, t.dim());
  return 0;
}

std::vector<Tensor> map(Tensors tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

Tensor at_least_1d(const Tensor& x) { return x.dim() == 0 ? reshape(x, {1}) : x; }
Tensor at_least_2d(const Tensor& x) { return x.dim() == 0 ? reshape(x, {1, 1}) : x.dim() == 1 ? unsqueeze(x, 0) : x; }
Tensor at_least_3d(const Tensor& x) {
  return x.dim() == 0   ? reshape(x, {1, 1, 1})
         : x.dim() == 1 ? unsqueeze(unsqueeze(x, 0), -1)
         : x.dim() == 2 ? unsqueeze(x, -1)
                        : x;
}

/// Views of consecutive pieces of a dimension.
std::vector<Tensor> pieces(const Tensor& x, Ints sizes, int64_t d) {
  std::vector<Tensor> out;
  out.reserve(sizes.size());
  int64_t offset = x.storage_offset();
  for (int64_t n : sizes) {
    Dims part = x.sizes();
    part[d] = n;
    out.push_back(alias(x, std::move(part), x.strides(), offset));
    offset += n * x.strides()[d];
  }
  return out;
}

/// The same tensors, but autograd takes them for memory of their own: an in-place change of one is not one of the
/// others.
std::vector<Tensor> unrelated(std::vector<Tensor> views) {
  for (Tensor& t : views) {
    t.impl()->base = {};
    t.impl()->view_origin = ViewOrigin::One;
  }
  return views;
}

Dims even_sizes(int64_t n, int64_t size) {
  Dims out;
  do {
    out.push_back(std::min(size, n));
    n -= size;
  } while (n > 0);
  return out;
}

Dims split_sizes(const Tensor& x, int64_t split_size, int64_t dim) {
  check(x.dim() > 0, "split expects at least a 1-dimensional tensor");
  check(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  const int64_t n = x.size(dim);
  check(split_size > 0 || n == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", n);
  return even_sizes(n, split_size);
}

std::vector<Tensor> chunks(const Tensor& x, int64_t count, int64_t dim) {
  check(x.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(count > 0, "chunk expects `chunks` to be greater than 0, got: ", count);
  const int64_t n = x.size(dim), size = n / count + (n % count != 0);
  // An empty dimension still gives as many pieces as were asked for.
  return split_with_sizes(x, size == 0 ? Dims(size_t(count), 0) : even_sizes(n, size), dim);
}

std::vector<Tensor> at_indices(const Tensor& x, Ints indices, int64_t dim) {
  check(x.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(slice(x, dim, start, end));
    start = end;
  }
  out.push_back(slice(x, dim, start));
  return out;
}

std::vector<Tensor> sections(const Tensor& x, int64_t count, int64_t dim) {
  check(x.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  const int64_t n = x.size(dim);
  check(count > 0, "number of sections must be larger than 0, got ", count);
  std::vector<int64_t> ends(size_t(count) - 1);
  for (int64_t i = 0; i + 1 < count; ++i) ends[size_t(i)] = (i + 1) * (n / count) + std::min(i + 1, n % count);
  return at_indices(x, ends, dim);
}

/// The dimension that hsplit and its like cut, with their errors.
int64_t named_dim(const Tensor& x, const char* name, int64_t dim, int64_t at_least) {
  check(x.dim() >= at_least, "torch.", name, " requires a tensor with at least ", at_least,
        " dimension, but got a tensor with ", x.dim(), " dimensions!");
  return x.dim() == 1 ? 0 : dim;
}
std::vector<Tensor> even_split(const Tensor& x, const char* name, int64_t dim, int64_t count) {
  check(count > 0 && x.size(dim) % count == 0, "torch.", name, " attempted to split along dimension ", dim,
        ", but the size of the dimension ", x.size(dim), " is not divisible by the split_size ", count, "!");
  return sections(x, count, dim);
}

Tensor move_dims(const Tensor& x, Ints source, Ints destination) {
  check(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
        " dims) should contain the same number of dims as destination (", destination, " dims)");
  const auto normalised = [&](Ints dims, const char* which) {
    Dims out;
    for (int64_t d : dims) {
      const int64_t w = wrap_dim(d, x.dim());
      check(std::find(out.begin(), out.end(), w) == out.end(), "movedim: repeated dim in `", which, "` (", dims, ")");
      out.push_back(w);
    }
    return out;
  };
  const Dims from = normalised(source, "source"), to = normalised(destination, "destination");
  if (x.dim() == 0) return view(x, Ints());
  Dims order(size_t(x.dim()), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  for (int64_t d = 0; d < x.dim(); ++d)
    if (std::find(from.begin(), from.end(), d) == from.end()) rest.push_back(d);
  size_t next = 0;
  for (int64_t& o : order)
    if (o < 0) o = rest[next++];
  return permute(x, order);
}

Tensor rolled(const Tensor& x, int64_t shift, int64_t dim) {
  const int64_t n = x.size(dim);
  if (n == 0) return x;
  const int64_t s = ((shift % n) + n) % n;
  return s == 0 ? x : cat({narrow(x, dim, n - s, s), narrow(x, dim, 0, n - s)}, dim);
}

std::vector<Tensor> cloned(std::vector<Tensor> list) {
  for (Tensor& t : list) t = clone(t, MemoryFormat::Contiguous);
  return list;
}

/// The positions in 0 .. n that a padded dimension shows, as an index.
template <class F>
Tensor padded_index(int64_t n, int64_t before, int64_t after, F&& source) {
  Tensor index = allocate({{std::max<int64_t>(n + before + after, 0)}, kInt64});
  int64_t* data = index.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) data[i] = source(i - before);
  return index;
}

Tensor pad_by_index(const Tensor& x, Ints pad, std::string_view mode) {
  const int64_t dims = int64_t(pad.size()) / 2;
  const bool known = mode == "reflect" || mode == "replicate" || mode == "circular";
  check<NotImplementedError>(known, "Unrecognised padding mode ", mode);
  check_int32("pad", pad);
  check<NotImplementedError>(
      dims >= 1 && dims <= 3 && (x.dim() == dims + 1 || x.dim() == dims + 2), "Padding size ", pad.size(),
      " is not supported for ", x.dim(),
      "D input tensor.\nSupported combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads "
      "last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding "
      "size = 6 (pads last 3 dimensions)");
  for (int64_t d = x.dim() == dims + 2 ? 1 : 0; d < x.dim(); ++d)
    check(x.sizes()[d] > 0 || mode == "circular", "Expected ", dims + 1, "D or ", dims + 2,
          "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
          x.sizes());
  Tensor out = x;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t d = x.dim() - 1 - i, n = x.sizes()[d], before = pad[2 * i], after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    if (mode == "reflect")
      check(before < n && after < n,
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
            before, ", ", after, ") at dimension ", d, " of input ", x.sizes());
    if (mode == "circular") check(before <= n && after <= n, "Padding value causes wrapping around more than once.");
    check(n + before + after >= (mode == "circular" ? 0 : 1), "input (dimension ", d, ": ", n,
          ") is too small for the padding (", before, ", ", after, ")");
    // What negative padding cuts off is gone before the ends are joined, but not before an edge is mirrored.
    const int64_t cut = std::max<int64_t>(-before, 0), kept = n - cut - std::max<int64_t>(-after, 0);
    const Tensor index = padded_index(n, before, after, [&](int64_t k) -> int64_t {
      if (mode == "replicate") return std::clamp<int64_t>(k, 0, n - 1);
      if (mode == "circular") return k < cut ? k + kept : k >= cut + kept ? k - kept : k;
      return k < 0 ? -k : k >= n ? 2 * (n - 1) - k : k;
    });
    out = index_select(out, d, to(index, x.device()));
  }
  return out.is_same(x) ? clone(x) : out;
}

/// The window of im2col and col2im, checked.
cpu::Sliding sliding(const char* name, int64_t rows, int64_t columns, Ints kernel, Ints dilation, Ints padding,
                     Ints stride) {
  for (const Ints& list : {kernel, dilation, padding, stride})
    check(list.size() == 2, name, ": expected kernel_size, dilation, padding and stride of 2 numbers, got ", list);
  check(kernel[0] > 0 && kernel[1] > 0, "kernel size should be greater than zero, but got kernel_height: ", kernel[0],
        " kernel_width: ", kernel[1]);
  for (const Ints& list : {kernel, dilation, padding, stride}) check_int32(name, list);
  check(dilation[0] > 0 && dilation[1] > 0,
        "dilation should be greater than zero, but got dilation_height: ", dilation[0],
        " dilation_width: ", dilation[1]);
  check(padding[0] >= 0 && padding[1] >= 0, "padding should be non-negative, but got pad_height: ", padding[0],
        " pad_width: ", padding[1]);
  check(stride[0] > 0 && stride[1] > 0, "stride should be greater than zero, but got stride_height: ", stride[0],
        " stride_width: ", stride[1]);
  const cpu::Sliding w{rows, columns, kernel, dilation, padding, stride};
  check(w.places(0) > 0 && w.places(1) > 0, "Given input with spatial size (", rows, ", ", columns,
        "), kernel_size=", kernel, ", dilation=", dilation, ", padding=", padding,
        ", calculated shape of the array of sliding blocks as (", w.places(0), ", ", w.places(1),
        "), but its components must be at least one.");
  return w;
}
void check_planes(const Tensor& x, int64_t ndim) {
  bool valid = x.dim() == ndim || x.dim() == ndim - 1;
  for (int64_t d = x.dim() == ndim ? 1 : 0; valid && d < x.dim(); ++d) valid = x.sizes()[d] > 0;
  check(valid, "Expected ", ndim - 1, "D or ", ndim,
        "D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: ",
        x.sizes());
}

}  // namespace

OP_DEFINE(cat){{
    .doc = R"(The tensors side by side along a dimension.

Shape: equal sizes but for ``dim``, where the result has their sum; a tensor of shape (0,) is left out. Dtype: promoted.
Errors: RuntimeError where sizes differ in another dimension, for 0-dim tensors; ValueError for an empty list.)",
    .infer = cat_meta,
    .kernel = {[](Tensor& out, Tensors tensors, int64_t dim) {
      cpu::join(out, tensors, cat_dim(tensors, dim), false);
    }},
    .saves = "tensors.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, Tensors tensors, int64_t dim) {
          Grads grads(tensors.size());
          const int64_t d = cat_dim(tensors, dim);
          int64_t at = 0;
          for (size_t i = 0; i < tensors.size(); ++i) {
            if (is_nothing(tensors[i])) continue;
            const int64_t n = tensors[i].sizes()[d];
            if (needs_grad(i)) grads[i] = narrow(g, d, at, n);
            at += n;
          }
          return grads;
        },
    .out_apart = true,
    .autocast = on_cpu(Autocast::widest),
    .onnx = "Concat(tensors, axis=dim)",
}};

OP_DEFINE(concat){{
    .doc = R"(Another name of cat.)",
    .composite = [](Tensors tensors, int64_t dim) { return cat(tensors, dim); },
    .out_apart = true,
}};
OP_DEFINE(concatenate){{
    .doc = R"(Another name of cat.)",
    .composite = [](Tensors tensors, int64_t dim) { return cat(tensors, dim); },
    .out_apart = true,
}};

OP_DEFINE(stack){{
    .doc = R"(The tensors as the indices of a new dimension.

Shape: all equal. Dtype: promoted. Errors: RuntimeError where sizes differ or the list is empty.)",
    .infer =
        [](Tensors tensors, int64_t dim) {
          check(!tensors.empty(), "stack expects a non-empty TensorList");
          const int64_t d = wrap_dim(dim, tensors[0].dim() + 1);
          for (size_t i = 1; i < tensors.size(); ++i)
            check(Ints(tensors[i].sizes()) == Ints(tensors[0].sizes()),
                  "stack expects each tensor to be equal size, but got ", tensors[0].sizes(), " at entry 0 and ",
                  tensors[i].sizes(), " at entry ", i);
          Meta meta{tensors[0].sizes(), promote_list(tensors)};
          meta.sizes.insert(size_t(d), int64_t(tensors.size()));
          return meta;
        },
    .kernel = {[](Tensor& out, Tensors tensors, int64_t dim) {
      cpu::join(out, tensors, wrap_dim(dim, out.dim()), true);
    }},
    .vjp =
        [](const Tensor& g, const Tensor&, Tensors tensors, int64_t dim) {
          Grads grads(tensors.size());
          for (size_t i = 0; i < tensors.size(); ++i)
            if (needs_grad(i)) grads[i] = select(g, dim, int64_t(i));
          return grads;
        },
    .autocast = on_cpu(Autocast::widest),
}};

OP_DEFINE(hstack){{
    .doc = R"(The tensors side by side along dimension 1, or 0 if they have only one.)",
    .composite =
        [](Tensors tensors) {
          check(!tensors.empty(), "hstack expects a non-empty TensorList");
          const std::vector<Tensor> list = map(tensors, at_least_1d);
          return cat(list, list[0].dim() == 1 ? 0 : 1);
        },
}};
OP_DEFINE(vstack){{
    .doc = R"(The tensors one below the other: along dimension 0, vectors as rows.)",
    .composite =
        [](Tensors tensors) {
          check(!tensors.empty(), "vstack expects a non-empty TensorList");
          return cat(map(tensors, at_least_2d), 0);
        },
}};
OP_DEFINE(row_stack){{
    .doc = R"(Another name of vstack.)",
    .composite = [](Tensors tensors) { return vstack(tensors); },
}};
OP_DEFINE(dstack){{
    .doc = R"(The tensors one behind the other: along dimension 2, of matrices and vectors a new one.)",
    .composite =
        [](Tensors tensors) {
          check(!tensors.empty(), "dstack expects a non-empty TensorList");
          return cat(map(tensors, at_least_3d), 2);
        },
}};
OP_DEFINE(column_stack){{
    .doc = R"(The tensors side by side along dimension 1, vectors as columns.)",
    .composite =
        [](Tensors tensors) {
          check(!tensors.empty(), "column_stack expects a non-empty TensorList");
          return cat(map(tensors, [](const Tensor& x) { return x.dim() <= 1 ? reshape(x, {x.numel(), 1}) : x; }), 1);
        },
}};

OP_DEFINE(block_diag){{
    .doc = R"(The matrix with the tensors as blocks on its diagonal and zeros elsewhere; a vector is a row.)",
    .composite =
        [](Tensors tensors) {
          std::vector<Tensor> rows;
          int64_t columns = 0, at = 0;
          for (size_t i = 0; i < tensors.size(); ++i) {
            check(tensors[i].dim() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i,
                  " has ", tensors[i].dim(), " dimensions");
            rows.push_back(at_least_2d(tensors[i]));
            columns += rows.back().sizes()[1];
          }
          if (rows.empty()) return empty({1, 0});
          const DType dtype = promote_list(tensors);
          for (Tensor& r : rows) {
            const int64_t n = r.sizes()[1];
            r = constant_pad_nd(r.dtype() == dtype ? r : cast(r, dtype), {at, columns - at - n});
            at += n;
          }
          return cat(rows, 0);
        },
}};

OP_DEFINE(meshgrid){{
    .doc =
        R"(The coordinates of a grid: each vector expanded over the grid that all span. ``indexing`` "ij" has the first
vector run along dimension 0, "xy" along dimension 1. Errors: RuntimeError for tensors of more than one dimension.)",
    .composite =
        [](Tensors tensors, std::string_view indexing) {
          check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
          check(indexing == "ij" || indexing == "xy",
                "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
          const bool swap = indexing == "xy" && tensors.size() >= 2;
          Dims grid;
          for (const Tensor& t : tensors) {
            check(t.dim() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape ",
                  t.sizes());
            check(t.dtype() == tensors[0].dtype(), "meshgrid expects all tensors to have the same dtype");
            grid.push_back(t.numel());
          }
          if (swap) std::swap(grid[0], grid[1]);
          std::vector<Tensor> out;
          for (size_t i = 0; i < tensors.size(); ++i) {
            Dims sizes(tensors.size(), 1);
            sizes[swap && i < 2 ? 1 - i : i] = tensors[i].numel();
            out.push_back(expand(view(tensors[i], sizes), grid));
          }
          return out;
        },
}};

OP_DEFINE(cartesian_prod){{
    .doc = R"(All tuples with one element of each vector, as rows.)",
    .composite =
        [](Tensors tensors) {
          for (const Tensor& t : tensors) check(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
          if (tensors.size() == 1) return tensors[0];
          std::vector<Tensor> grid = meshgrid(tensors);
          for (Tensor& t : grid) t = flatten(t);
          return stack(grid, 1);
        },
}};

OP_DEFINE(combinations){{
    .doc = R"(All ways to choose ``r`` elements of a vector in order, as rows.)",
    .composite =
        [](const Tensor& x, int64_t r, bool with_replacement) {
          check(x.dim() == 1, "Expect a 1D vector, but got shape ", x.sizes());
          check(r >= 0, "Expect a non-negative number, but got ", r);
          check_int32("r", r);
          if (r == 0) return empty({0}, x.dtype(), {}, x.device());
          const int64_t n = x.numel(), step = with_replacement ? 0 : 1;
          std::vector<int64_t> rows;
          std::vector<int64_t> at(size_t(r), 0);
          for (int64_t i = 0; i < r; ++i) at[size_t(i)] = i * step;
          while (n > 0 && at.back() < n) {
            rows.insert(rows.end(), at.begin(), at.end());
            int64_t i = r - 1;
            while (i > 0 && at[size_t(i)] >= n - 1 - (r - 1 - i) * step) --i;
            ++at[size_t(i)];
            for (int64_t k = i + 1; k < r; ++k) at[size_t(k)] = at[size_t(k - 1)] + step;
          }
          Tensor places = empty({int64_t(rows.size()) / r, r}, kInt64);
          std::copy(rows.begin(), rows.end(), places.data<int64_t>());
          return index(x, {to(places, x.device())});
        },
}};

OP_DEFINE(broadcast_tensors){{
    .doc = R"(Views of the tensors, expanded to their common shape.)",
    .composite =
        [](Tensors tensors) {
          Dims sizes;
          for (const Tensor& t : tensors) sizes = broadcast(sizes, t.sizes());
          std::vector<Tensor> out;
          for (const Tensor& t : tensors) out.push_back(expand(t, sizes));
          return out;
        },
}};
OP_DEFINE(broadcast_to){{
    .doc = R"(Another name of expand.)",
    .composite = [](const Tensor& x, Ints size) { return expand(x, size); },
}};

OP_DEFINE(atleast_1d){
    {.doc = R"(A view with at least one dimension.)", .composite = at_least_1d},
    {.doc = R"(Each tensor with at least one dimension.)",
     .composite = [](Tensors tensors) { return map(tensors, at_least_1d); }},
};
OP_DEFINE(atleast_2d){
    {.doc = R"(A view with at least two dimensions; a vector becomes a row.)", .composite = at_least_2d},
    {.doc = R"(Each tensor with at least two dimensions.)",
     .composite = [](Tensors tensors) { return map(tensors, at_least_2d); }},
};
OP_DEFINE(atleast_3d){
    {.doc = R"(A view with at least three dimensions; a vector lies along the second.)", .composite = at_least_3d},
    {.doc = R"(Each tensor with at least three dimensions.)",
     .composite = [](Tensors tensors) { return map(tensors, at_least_3d); }},
};

// ---- taking apart ----

OP_DEFINE(split_with_sizes){{
    .doc = R"(Views of consecutive pieces of a dimension, of the given sizes.

Errors: RuntimeError where the sizes do not sum to the dimension's.)",
    .composite =
        [](const Tensor& x, Ints sizes, int64_t dim) {
          check(x.dim() > 0, "split expects at least a 1-dimensional tensor");
          const int64_t d = wrap_dim(dim, x.dim());
          int64_t total = 0;
          for (int64_t n : sizes) {
            check(n >= 0,
                  "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", sizes);
            total += n;
          }
          check(total == x.sizes()[d], "split_with_sizes expects split_sizes to sum exactly to ", x.sizes()[d],
                " (input tensor's size at dimension ", d, "), but got split_sizes=", sizes);
          return pieces(x, sizes, d);
        },
    .vjp = [](const Tensors& grads, const Tensors&, const Tensor&, Ints,
              int64_t dim) { return Grads{grads.empty() ? Tensor() : cat(grads, dim)}; },
    .view = true,
}};

OP_DEFINE(split){
    {
        .doc = R"(Views of consecutive pieces of a dimension, each ``split_size`` long, the last what is left.)",
        .composite = [](const Tensor& x, int64_t split_size,
                        int64_t dim) { return split_with_sizes(x, split_sizes(x, split_size, dim), dim); },
    },
    {
        .doc = R"(Views of consecutive pieces of a dimension, of the given sizes.)",
        .composite = [](const Tensor& x, Ints split_size, int64_t dim) { return split_with_sizes(x, split_size, dim); },
    }};
OP_DEFINE(chunk){{
    .doc = R"(Views of at most ``chunks`` consecutive pieces of a dimension, equally long but for the last.)",
    .composite = chunks,
}};

OP_DEFINE(tensor_split){
    {
        .doc =
            R"(Views of ``sections`` consecutive pieces of a dimension; the first are one longer if it does not divide.)",
        .composite = sections,
    },
    {
        .doc = R"(Views of a dimension cut before each of the indices.)",
        .composite = at_indices,
    },
    {
        .doc = R"(The same with the sections or the indices in a tensor of int64, which a GPU has to be waited for.)",
        .composite =
            [](const Tensor& x, const Tensor& where, int64_t dim) {
              check(where.dtype() == kInt64,
                    "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
                    scalar_name(where.dtype()));
              check(where.dim() <= 1,
                    "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                    "tensor, but got a tensor with ",
                    where.dim(), " dims");
              if (where.dim() == 0) return sections(x, where.item<int64_t>(), dim);
              const Tensor list = contiguous(to(where, Device(kCPU)));
              return at_indices(x, Ints(list.data<int64_t>(), size_t(list.numel())), dim);
            },
    }};

OP_DEFINE(hsplit){
    {.doc = R"(Views of equal pieces of dimension 1, of a vector's only one.)",
     .composite = [](const Tensor& x, int64_t n) { return even_split(x, "hsplit", named_dim(x, "hsplit", 1, 1), n); }},
    {.doc = R"(Views of dimension 1, of a vector's only one, cut before each of the indices.)",
     .composite = [](const Tensor& x, Ints indices) { return at_indices(x, indices, named_dim(x, "hsplit", 1, 1)); }},
};
OP_DEFINE(vsplit){
    {.doc = R"(Views of equal pieces of dimension 0.)",
     .composite = [](const Tensor& x, int64_t n) { return even_split(x, "vsplit", named_dim(x, "vsplit", 0, 2), n); }},
    {.doc = R"(Views of dimension 0, cut before each of the indices.)",
     .composite = [](const Tensor& x, Ints indices) { return at_indices(x, indices, named_dim(x, "vsplit", 0, 2)); }},
};
OP_DEFINE(dsplit){
    {.doc = R"(Views of equal pieces of dimension 2.)",
     .composite = [](const Tensor& x, int64_t n) { return even_split(x, "dsplit", named_dim(x, "dsplit", 2, 3), n); }},
    {.doc = R"(Views of dimension 2, cut before each of the indices.)",
     .composite = [](const Tensor& x, Ints indices) { return at_indices(x, indices, named_dim(x, "dsplit", 2, 3)); }},
};

OP_DEFINE(unbind){{
    .doc = R"(Views at each index of a dimension, without that dimension.)",
    .composite =
        [](const Tensor& x, int64_t dim) {
          check<IndexError>(x.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
          const int64_t d = wrap_dim(dim, x.dim());
          Dims sizes = x.sizes(), strides = x.strides();
          sizes.erase(size_t(d));
          strides.erase(size_t(d));
          std::vector<Tensor> out;
          out.reserve(size_t(x.sizes()[d]));
          for (int64_t i = 0; i < x.sizes()[d]; ++i)
            out.push_back(alias(x, sizes, strides, x.storage_offset() + i * x.strides()[d]));
          return out;
        },
    .vjp = [](const Tensors& grads, const Tensors&, const Tensor&,
              int64_t dim) { return Grads{grads.empty() ? Tensor() : stack(grads, dim)}; },
    .view = true,
}};

OP_DEFINE(unsafe_split){{
    .doc = R"(split, for pieces that are not changed in place.)",
    .composite = [](const Tensor& x, int64_t split_size, int64_t dim) { return unrelated(split(x, split_size, dim)); },
}};
OP_DEFINE(unsafe_split_with_sizes){{
    .doc = R"(split_with_sizes, for pieces that are not changed in place.)",
    .composite = [](const Tensor& x, Ints sizes, int64_t dim) { return unrelated(split_with_sizes(x, sizes, dim)); },
}};
OP_DEFINE(unsafe_chunk){{
    .doc = R"(chunk, for pieces that are not changed in place.)",
    .composite = [](const Tensor& x, int64_t count, int64_t dim) { return unrelated(chunks(x, count, dim)); },
}};

// ---- other orders ----

OP_DEFINE(unfold){{
    .doc =
        R"(A view with all windows of ``size`` that lie ``step`` apart in a dimension; the window is the new last dimension.)",
    .composite =
        [](const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
          const int64_t d = wrap_dim(dimension, x.dim()), n = x.dim() == 0 ? 1 : x.sizes()[d];
          check(size >= 0, "size is ", size, " but must be >= 0");
          check(size <= n, "maximum size for tensor at dimension ", d, " is ", n, " but size is ", size);
          check(step > 0, "step is ", step, " but must be > 0");
          check_int32("step", step);
          Dims sizes = x.sizes(), strides = x.strides();
          const int64_t stride = x.dim() == 0 ? 1 : strides[d];
          if (x.dim() > 0) {
            sizes[d] = (n - size) / step + 1;
            strides[d] = step * stride;
          }
          sizes.push_back(size);
          strides.push_back(stride);
          return alias(x, std::move(sizes), std::move(strides), x.storage_offset());
        },
    .saves = "self.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
          if (x.dim() == 0) return Grads{size ? reshape(g, {}) : zeros({}, g.dtype(), {}, g.device())};
          const int64_t d = wrap_dim(dimension, x.dim());
          const Tensor places = reshape(unfold(arange(x.sizes()[d], kInt64, {}, g.device()), 0, size, step), {-1});
          const Tensor windows = flatten(movedim(g, -1, d + 1), d, d + 1);
          Tensor out = zeros(x.sizes(), g.dtype(), {}, g.device());
          return Grads{in_place(index_add, out, d, places, windows)};
        },
    .view = true,
}};

OP_DEFINE(movedim){{
                       .doc = R"(A view with one dimension moved to another place; the others keep their order.)",
                       .composite = [](const Tensor& x, int64_t source,
                                       int64_t destination) { return move_dims(x, {source}, {destination}); },
                   },
                   {
                       .doc = R"(A view with dimensions moved to other places; the others keep their order.)",
                       .composite = move_dims,
                   }};
OP_DEFINE(moveaxis){{
                        .doc = R"(Another name of movedim.)",
                        .composite = [](const Tensor& x, int64_t source,
                                        int64_t destination) { return move_dims(x, {source}, {destination}); },
                    },
                    {
                        .doc = R"(Another name of movedim.)",
                        .composite = move_dims,
                    }};
OP_DEFINE(swapaxes){{
    .doc = R"(Another name of transpose.)",
    .composite = [](const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); },
    .view = true,
    .in_place = true,
}};
OP_DEFINE(swapdims){{
    .doc = R"(Another name of transpose.)",
    .composite = [](const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); },
    .view = true,
    .in_place = true,
}};

OP_DEFINE(flatten){{
    .doc = R"(The dimensions from ``start_dim`` to ``end_dim`` as one: a view where the strides allow it.)",
    .composite =
        [](const Tensor& x, int64_t start_dim, int64_t end_dim) {
          const int64_t start = wrap_dim(start_dim, x.dim()), end = wrap_dim(end_dim, x.dim());
          check(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
          if (x.dim() == 0) return reshape(x, {1});
          if (start == end) return x;
          Dims sizes(x.sizes().begin(), x.sizes().begin() + start);
          sizes.push_back(product(Ints(x.sizes()).slice(size_t(start), size_t(end - start + 1))));
          for (int64_t d = end + 1; d < x.dim(); ++d) sizes.push_back(x.sizes()[d]);
          return reshape(x, sizes);
        },
    .onnx = "Flatten(self, axis=start_dim)",
}};

OP_DEFINE(unflatten){{
    .doc = R"(A view with one dimension as several; one of ``sizes`` may be -1.)",
    .composite =
        [](const Tensor& x, int64_t dim, Ints sizes) {
          const int64_t d = wrap_dim(dim, x.dim());
          check(!sizes.empty(), "unflatten: sizes must be non-empty");
          const int64_t n = x.dim() == 0 ? 1 : x.sizes()[d];
          int64_t known = 1, unknown = 0;
          for (int64_t s : sizes) s == -1 ? ++unknown : known *= s;
          check(unknown <= 1, "only one dimension can be inferred");
          check(unknown ? known > 0 && n % known == 0 : known == n, "unflatten: Provided sizes ", sizes,
                " don't multiply up to the size of dim ", d, " (", n, ") in the input tensor");
          Dims all(x.sizes().begin(), x.sizes().begin() + d);
          for (int64_t s : sizes) all.push_back(s == -1 ? n / known : s);
          for (int64_t k = d + 1; k < x.dim(); ++k) all.push_back(x.sizes()[k]);
          return view(x, all);
        },
}};
OP_DEFINE(ravel){{
    .doc = R"(All elements in one dimension: a view where the strides allow it.)",
    .composite = [](const Tensor& x) { return reshape(contiguous(x), {-1}); },
}};

OP_DEFINE(numpy_T){{
    .doc = R"(The view with the dimensions in reverse order: ``x.T``.)",
    .composite =
        [](const Tensor& x) {
          Dims order(size_t(x.dim()), 0);
          for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(order.size() - 1 - i);
          return permute(x, order);
        },
}};
OP_DEFINE(mT){{
    .doc = R"(The view with the last two dimensions exchanged. Errors: RuntimeError for fewer than two.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", x.dim(),
                "-D tensor.");
          return transpose(x, -2, -1);
        },
}};
OP_DEFINE(matrix_H){{
    .doc = R"(The conjugate transpose of a matrix: ``x.H``.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() == 0 || x.dim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got ", x.dim(),
                "-D tensor.", x.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
          return conj(x.dim() == 0 ? x : transpose(x, 0, 1));
        },
}};
OP_DEFINE(mH){{
    .doc = R"(The conjugate transpose of matrices, in the last two dimensions.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() >= 2, "tensor.mH is only supported on matrices or batches of matrices. Got ", x.dim(),
                "-D tensor.");
          return conj(transpose(x, -2, -1));
        },
}};
OP_DEFINE(adjoint){{
    .doc = R"(The conjugate transpose of matrices, in the last two dimensions.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() >= 2, "tensor.adjoint() is only supported on matrices or batches of matrices. Got ", x.dim(),
                "-D tensor.");
          return conj(transpose(x, -2, -1));
        },
}};

OP_DEFINE(expand_as){{
    .doc = R"(self expanded to the size of ``other``; a view.)",
    .composite = [](const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); },
}};
OP_DEFINE(view_as){{
    .doc = R"(self viewed in the size of ``other``.)",
    .composite = [](const Tensor& x, const Tensor& other) { return view(x, other.sizes()); },
}};
OP_DEFINE(reshape_as){{
    .doc = R"(self in the size of ``other``: a view where the strides allow it.)",
    .composite = [](const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); },
}};

OP_DEFINE(repeat){{
    .doc =
        R"(Copies of self beside each other, so many in each dimension; more numbers than dimensions add leading ones.)",
    .composite =
        [](const Tensor& x, Ints repeats) {
          check(int64_t(repeats.size()) >= x.dim(),
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
          check_int32("repeats", repeats);
          const size_t shift = repeats.size() - size_t(x.dim());
          Dims apart, both, result;
          for (size_t i = 0; i < repeats.size(); ++i) {
            const int64_t n = i < shift ? 1 : x.sizes()[i - shift];
            check(repeats[i] >= 0, "Trying to create tensor with negative dimension ", n * repeats[i], " from repeats ",
                  repeats);
            for (int64_t k : {int64_t(1), n}) apart.push_back(k);
            for (int64_t k : {repeats[i], n}) both.push_back(k);
            result.push_back(n * repeats[i]);
          }
          return view(clone(expand(reshape(x, apart), both), MemoryFormat::Contiguous), result);
        },
    .onnx = "Tile(self, repeats)",
}};
OP_DEFINE(tile){{
    .doc = R"(Copies of self beside each other; fewer numbers than dimensions stand for the last ones.)",
    .composite =
        [](const Tensor& x, Ints dims) {
          Dims all(size_t(std::max<int64_t>(x.dim() - int64_t(dims.size()), 0)), 1);
          for (int64_t d : dims) all.push_back(d);
          return repeat(x, all);
        },
}};

OP_DEFINE(roll){{
    .doc = R"(The elements shifted along dimensions, those beyond the end at the beginning again; without ``dims`` along
the flattened tensor. Errors: RuntimeError where shifts and dims differ in number.)",
    .composite =
        [](const Tensor& x, Ints shifts, Ints dims) {
          check(!shifts.empty(), "`shifts` required");
          if (dims.empty() && shifts.size() == 1) {
            const Tensor flat = contiguous(x);
            return view(x.numel() ? rolled(view(flat, {-1}), shifts[0], 0) : clone(flat), x.sizes());
          }
          check(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
                ", dims:", dims.size());
          Tensor out = x;
          for (size_t i = 0; i < dims.size(); ++i) {
            check<IndexError>(x.dim() > 0, "Dimension specified as ", dims[i], " but tensor has no dimensions");
            out = rolled(out, shifts[i], dims[i]);
          }
          return out.is_same(x) ? clone(x) : out;
        },
}};

OP_DEFINE(flip){{
    .doc = R"(The elements in reverse order along dimensions; a copy.)",
    .infer =
        [](const Tensor& x, Ints dims) {
          wrap_dims(dims, x.dim());
          return Meta{x.sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints dims) { cpu::flip(out, x, wrap_dims(dims, x.dim())); }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, Ints dims) { return Grads{flip(g, dims)}; },
}};
OP_DEFINE(fliplr){{
    .doc = R"(The elements in reverse order along dimension 1.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() >= 2, "Input must be >= 2-d.");
          return flip(x, {1});
        },
}};
OP_DEFINE(flipud){{
    .doc = R"(The elements in reverse order along dimension 0.)",
    .composite =
        [](const Tensor& x) {
          check(x.dim() >= 1, "Input must be >= 1-d.");
          return flip(x, {0});
        },
}};
OP_DEFINE(rot90){{
    .doc = R"(A plane turned by ``k`` quarters, from the first towards the second of ``dims``.)",
    .composite =
        [](const Tensor& x, int64_t k, Ints dims) {
          check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
          check(x.dim() >= 2, "expected total dims >= 2, but got total dims = ", x.dim());
          check(dims[0] != dims[1] && std::abs(dims[0] - dims[1]) != x.dim(),
                "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
          const int64_t a = wrap_dim(dims[0], x.dim()), b = wrap_dim(dims[1], x.dim());
          switch ((k % 4 + 4) % 4) {
            case 1:
              return transpose(flip(x, {b}), a, b);
            case 2:
              return flip(x, {a, b});
            case 3:
              return transpose(flip(x, {a}), a, b);
            default:
              return clone(x, MemoryFormat::Contiguous);
          }
        },
}};

// ---- views as copies ----

OP_DEFINE(alias_copy){{
    .doc = R"(A copy of self.)",
    .composite = [](const Tensor& x) { return clone(x); },
}};
OP_DEFINE(as_strided_copy){{
    .doc = R"(as_strided as a copy.)",
    .composite = [](const Tensor& x, Ints size, Ints stride,
                    OptInt offset) { return clone(as_strided(x, size, stride, offset), MemoryFormat::Contiguous); },
}};
OP_DEFINE(detach_copy){{
    .doc = R"(detach as a copy.)",
    .composite = [](const Tensor& x) { return clone(detach(x)); },
}};
OP_DEFINE(diagonal_copy){{
    .doc = R"(diagonal as a copy.)",
    .composite = [](const Tensor& x, int64_t offset, int64_t dim1,
                    int64_t dim2) { return clone(diagonal(x, offset, dim1, dim2), MemoryFormat::Contiguous); },
}};
OP_DEFINE(expand_copy){{
    .doc = R"(expand as a copy.)",
    .composite = [](const Tensor& x, Ints size,
                    bool implicit) { return clone(expand(x, size, implicit), MemoryFormat::Contiguous); },
}};
OP_DEFINE(narrow_copy){{
    .doc = R"(narrow as a copy.)",
    .composite =
        [](const Tensor& x, int64_t dim, int64_t start, int64_t length) {
          check(x.dim() == 0 || dim < x.dim(), "dim ", dim, " is out of range for ", x.dim(), " dimensions");
          return clone(narrow(x, dim, start, length), MemoryFormat::Contiguous);
        },
}};
OP_DEFINE(permute_copy){{
    .doc = R"(permute as a copy.)",
    .composite = [](const Tensor& x, Ints dims) { return clone(permute(x, dims), MemoryFormat::Contiguous); },
}};
OP_DEFINE(select_copy){{
    .doc = R"(select as a copy.)",
    .composite = [](const Tensor& x, int64_t dim,
                    int64_t index) { return clone(select(x, dim, index), MemoryFormat::Contiguous); },
}};
OP_DEFINE(slice_copy){{
    .doc = R"(A slice as a copy.)",
    .composite = [](const Tensor& x, int64_t dim, OptInt start, OptInt end,
                    int64_t step) { return clone(slice(x, dim, start, end, step), MemoryFormat::Contiguous); },
}};
OP_DEFINE(split_copy){{
    .doc = R"(split as copies.)",
    .composite = [](const Tensor& x, int64_t split_size, int64_t dim) { return cloned(split(x, split_size, dim)); },
}};
OP_DEFINE(split_with_sizes_copy){{
    .doc = R"(split_with_sizes as copies.)",
    .composite = [](const Tensor& x, Ints sizes, int64_t dim) { return cloned(split_with_sizes(x, sizes, dim)); },
}};
OP_DEFINE(squeeze_copy){
    {.doc = R"(squeeze as a copy.)",
     .composite = [](const Tensor& x) { return clone(squeeze(x), MemoryFormat::Contiguous); }},
    {.doc = R"(squeeze as a copy.)",
     .composite = [](const Tensor& x, Ints dim) { return clone(squeeze(x, dim), MemoryFormat::Contiguous); }},
};
OP_DEFINE(t_copy){{
    .doc = R"(t as a copy.)",
    .composite = [](const Tensor& x) { return clone(t(x), MemoryFormat::Contiguous); },
}};
OP_DEFINE(transpose_copy){{
    .doc = R"(transpose as a copy.)",
    .composite = [](const Tensor& x, int64_t a,
                    int64_t b) { return clone(transpose(x, a, b), MemoryFormat::Contiguous); },
}};
OP_DEFINE(unbind_copy){{
    .doc = R"(unbind as copies.)",
    .composite = [](const Tensor& x, int64_t dim) { return cloned(unbind(x, dim)); },
}};
OP_DEFINE(unfold_copy){{
    .doc = R"(Tensor.unfold as a copy.)",
    .composite = [](const Tensor& x, int64_t dimension, int64_t size,
                    int64_t step) { return clone(unfold(x, dimension, size, step), MemoryFormat::Contiguous); },
}};
OP_DEFINE(unsqueeze_copy){{
    .doc = R"(unsqueeze as a copy.)",
    .composite = [](const Tensor& x, int64_t dim) { return clone(unsqueeze(x, dim), MemoryFormat::Contiguous); },
}};
OP_DEFINE(view_copy){
    {.doc = R"(view as a copy.)",
     .composite = [](const Tensor& x, Ints size) { return clone(view(x, size), MemoryFormat::Contiguous); }},
    {.doc = R"(view as a copy.)",
     .composite = [](const Tensor& x, DType dtype) { return clone(view(x, dtype), MemoryFormat::Contiguous); }},
};
OP_DEFINE(view_as_complex_copy){{
    .doc = R"(view_as_complex as a copy.)",
    .composite = [](const Tensor& x) { return clone(view_as_complex(x), MemoryFormat::Contiguous); },
}};
OP_DEFINE(view_as_real_copy){{
    .doc = R"(view_as_real as a copy.)",
    .composite = [](const Tensor& x) { return clone(view_as_real(x), MemoryFormat::Contiguous); },
}};

// ---- padding and windows ----

OP_DEFINE(constant_pad_nd){{
    .doc =
        R"(self between borders of ``value``. ``pad`` holds pairs, before and after, from the last dimension on towards the
first; negative ones cut off.)",
    .infer =
        [](const Tensor& x, Ints pad, Scalar) {
          check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
          check(int64_t(pad.size()) <= 2 * x.dim(),
                "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
                pad.size(), " while the input has ", x.dim(), " dimensions.");
          check_int32("pad", pad);
          Meta meta{x.sizes(), x.dtype()};
          for (size_t i = 0; i < pad.size() / 2; ++i) {
            int64_t& n = meta.sizes[meta.sizes.size() - 1 - i];
            const int64_t kept = n + std::min<int64_t>(pad[2 * i], 0) + std::min<int64_t>(pad[2 * i + 1], 0);
            const int64_t size = n + pad[2 * i] + pad[2 * i + 1];
            check(size >= 0 && kept >= 0, "The input size ", n, ", plus negative padding ", pad[2 * i], " and ",
                  pad[2 * i + 1], ", resulted in a negative output size, which is invalid.");
            n = size;
          }
          return meta;
        },
    .kernel = {cpu::constant_pad},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, Ints pad, Scalar) {
          Dims back = pad.dims();
          for (int64_t& p : back) p = -p;
          return Grads{constant_pad_nd(g, back)};
        },
}};

OP_DEFINE(pad){{
    .doc =
        R"(The input between borders. ``pad`` holds pairs, before and after, from the last dimension on towards the first;
negative ones cut off. ``mode`` says what the borders hold: "constant" ``value`` (0 if None), "reflect" the elements mirrored
at the edge, "replicate" the edge, "circular" the elements of the other end; all but the first pad one to three dimensions
of an input with one or two more.
Errors: RuntimeError for padding that the mode cannot take from the input, NotImplementedError for other dimensions.)",
    .composite =
        [](const Tensor& x, Ints pad, std::string_view mode, OptDouble value) {
          check(pad.size() % 2 == 0, "Padding length must be divisible by 2");
          check(int64_t(pad.size()) <= 2 * x.dim(),
                "Padding length should be less than or equal to two times the input dimension but got padding length ",
                pad.size(), " and input of dimension ", x.dim());
          if (mode == "constant") return constant_pad_nd(x, pad, Scalar(value.value_or(0)));
          check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
          return pad_by_index(x, pad, mode);
        },
}};

OP_DEFINE(pixel_shuffle){{
    .doc = R"(Groups of r*r channels as blocks of r x r pixels: (*, C r r, H, W) to (*, C, H r, W r).)",
    .composite =
        [](const Tensor& x, int64_t r) {
          check(x.dim() >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", x.dim(),
                " dimension(s)");
          check(r > 0, "pixel_shuffle expects a positive upscale_factor, but got ", r);
          check_int32("upscale_factor", r);
          const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
          check(c % (r * r) == 0,
                "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                "upscale_factor, but input.size(-3)=",
                c, " is not divisible by ", r * r);
          const Ints batch = Ints(x.sizes()).slice(0, size_t(x.dim() - 3));
          const int64_t n = product(batch);
          const Tensor blocks = permute(reshape(x, {n, c / (r * r), r, r, h, w}), {0, 1, 4, 2, 5, 3});
          Dims sizes = batch.dims();
          for (int64_t s : {c / (r * r), h * r, w * r}) sizes.push_back(s);
          return reshape(clone(blocks, MemoryFormat::Contiguous), sizes);
        },
}};
OP_DEFINE(pixel_unshuffle){{
    .doc = R"(Blocks of r x r pixels as r*r channels: (*, C, H r, W r) to (*, C r r, H, W).)",
    .composite =
        [](const Tensor& x, int64_t r) {
          check(x.dim() >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ",
                x.dim(), " dimension(s)");
          check(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
          const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
          check(h % r == 0,
                "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
                " is not divisible by ", r);
          check(w % r == 0, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
                " is not divisible by ", r);
          const Ints batch = Ints(x.sizes()).slice(0, size_t(x.dim() - 3));
          const int64_t n = product(batch);
          const Tensor channels = permute(reshape(x, {n, c, h / r, r, w / r, r}), {0, 1, 3, 5, 2, 4});
          Dims sizes = batch.dims();
          for (int64_t s : {c * r * r, h / r, w / r}) sizes.push_back(s);
          return reshape(clone(channels, MemoryFormat::Contiguous), sizes);
        },
}};

namespace {
Tensor shuffled(const Tensor& x, int64_t groups) {
  check(x.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", x.sizes());
  const int64_t c = x.sizes()[1];
  check(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  check(c % groups == 0, "Number of channels must be divisible by groups. Got ", c, " channels and ", groups,
        " groups.");
  const int64_t rest = product(Ints(x.sizes()).slice(2, size_t(x.dim() - 2)));
  const Tensor apart = transpose(reshape(x, {x.sizes()[0], groups, c / groups, rest}), 1, 2);
  return reshape(clone(apart, MemoryFormat::Contiguous), x.sizes());
}
}  // namespace
OP_DEFINE(channel_shuffle){{
    .doc =
        R"(The channels (dimension 1) of ``groups`` groups dealt out in turn. Source: Zhang et al. 2017, arXiv:1707.01083.)",
    .composite = shuffled,
}};
OP_DEFINE(native_channel_shuffle){{
    .doc = R"(Another name of channel_shuffle.)",
    .composite = shuffled,
}};

OP_DEFINE(im2col){{
    .doc = R"(The sliding windows of images as columns: (N, C, H, W) to (N, C * kernel, places); functional.unfold.)",
    .infer =
        [](const Tensor& x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
          check_planes(x, 4);
          const cpu::Sliding w = sliding("im2col", x.size(-2), x.size(-1), kernel, dilation, padding, stride);
          Meta meta{x.sizes(), x.dtype()};
          const size_t n = meta.sizes.size();
          meta.sizes[n - 3] *= kernel[0] * kernel[1];
          meta.sizes[n - 2] = w.places(0) * w.places(1);
          meta.sizes.resize(n - 1);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
      cpu::im2col(out, contiguous(x.detach()), {x.size(-2), x.size(-1), kernel, dilation, padding, stride});
    }},
    .saves = "input.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
          return Grads{col2im(g, {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride)};
        },
}};

OP_DEFINE(col2im){{
    .doc =
        R"(Images from the columns that im2col makes, overlapping windows summed: (N, C * kernel, places) to (N, C, H, W);
functional.fold.)",
    .infer =
        [](const Tensor& x, Ints output_size, Ints kernel, Ints dilation, Ints padding, Ints stride) {
          check(output_size.size() == 2, "output_size is expected to have 2 numbers, got ", output_size);
          check_planes(x, 3);
          const cpu::Sliding w = sliding("col2im", output_size[0], output_size[1], kernel, dilation, padding, stride);
          const int64_t area = kernel[0] * kernel[1], places = w.places(0) * w.places(1);
          check(x.size(-2) % area == 0,
                "Expected size of input's dimension 1 to be divisible by the product of "
                "kernel_size, but got input.size(1)=",
                x.size(-2), " and kernel_size=", kernel, ".");
          check(x.size(-1) == places, "Given output_size=", output_size, ", kernel_size=", kernel,
                ", dilation=", dilation, ", padding=", padding, ", stride=", stride,
                ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", w.places(0),
                " * ", w.places(1), " = ", places, ", but got input.size(2)=", x.size(-1), ".");
          Meta meta{x.sizes(), x.dtype()};
          const size_t n = meta.sizes.size();
          meta.sizes[n - 2] /= area;
          meta.sizes[n - 1] = output_size[0];
          meta.sizes.push_back(output_size[1]);
          return meta;
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints output_size, Ints kernel, Ints dilation, Ints padding,
                  Ints stride) {
      cpu::col2im(out, contiguous(x.detach()), {output_size[0], output_size[1], kernel, dilation, padding, stride});
    }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, Ints, Ints kernel, Ints dilation, Ints padding,
              Ints stride) { return Grads{im2col(g, kernel, dilation, padding, stride)}; },
}};

}  // namespace rush
