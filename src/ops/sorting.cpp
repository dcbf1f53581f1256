// Orders: sorting, the largest elements, distinct elements, histograms.
#include "kernels/cpu/sorting.h"

#include <cmath>

#include "ops/common.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

using Pair = std::array<Meta, 2>;

Pair sort_meta(const Tensor& x, int64_t dim) {
  check<TypeError>(!x.is_complex(), "Sort does not support complex dtypes on CPU");
  wrap_dim(dim, x.dim());
  return {Meta{x.sizes(), x.dtype()}, Meta{x.sizes(), kInt64}};
}
void run_sort(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool descending) {
  cpu::sort(values, indices, x, wrap_dim(dim, x.dim()), descending);
}

/// The gradient of picked values goes to where they were picked.
Grads picked_gradient(const Tensor& g, const Tensor& x, int64_t dim, const Tensor& indices) {
  return Grads{scatter(zeros(x.sizes(), g.dtype(), {}, g.device()), dim, indices, g)};
}

/// The groups of rows that are equal, rows in `order`: for each group one row; for each row its group; the groups'
/// sizes.
struct Groups {
  std::vector<int64_t> first, group_of, sizes;
};
Groups group_rows(const Tensor& given, const std::vector<int64_t>& order) {
  const Tensor rows = to(given, kCPU);
  Groups g;
  g.group_of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !cpu::equal_rows(rows, order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.sizes.push_back(0);
    }
    ++g.sizes.back();
    g.group_of[size_t(order[i])] = int64_t(g.first.size()) - 1;
  }
  return g;
}

Tensor list_of(const std::vector<int64_t>& values, Ints sizes, Device device) {
  Tensor t = empty(sizes, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return to(t, device);
}

std::array<Tensor, 3> grouped(const Tensor& x, int64_t dim, const Groups& g, Ints inverse_sizes, bool inverse,
                              bool counts) {
  const Device device = x.device();
  const Tensor first = list_of(g.first, {int64_t(g.first.size())}, device);
  return {index_select(x.detach(), dim, first),
          inverse ? list_of(g.group_of, inverse_sizes, device) : empty({0}, kInt64, {}, device),
          counts ? list_of(g.sizes, {int64_t(g.sizes.size())}, device) : empty({0}, kInt64, {}, device)};
}

void check_unique(const Tensor& x) {
  check<NotImplementedError>(!x.is_complex(), "\"unique\" not implemented for '", scalar_name(x.dtype()), "'");
}

/// The slices of a dimension as the rows of a contiguous matrix.
Tensor slices(const Tensor& x, int64_t d) {
  if (x.numel() == 0) {
    for (int64_t k = 0; k < x.dim(); ++k)
      check(k == d || x.sizes()[k] > 0,
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  }
  const int64_t n = x.sizes()[d];
  return reshape(clone(movedim(x.detach(), d, 0), MemoryFormat::Contiguous), {n, n ? x.numel() / n : 0});
}

std::vector<int64_t> in_place_order(int64_t n) {
  std::vector<int64_t> order(size_t(n), 0);
  for (int64_t i = 0; i < n; ++i) order[size_t(i)] = i;
  return order;
}

}  // namespace

OP_DEFINE(sort){
    {
        .doc =
            R"(The elements along a dimension in ascending or descending order, and the indices they had. NaN counts as greater
than any number; equal elements keep their order.

Errors: TypeError for complex dtypes.)",
        .infer = [](const Tensor& x, int64_t dim, bool) { return sort_meta(x, dim); },
        .kernel = {run_sort},
        .saves = "self.shape, indices",
        .vjp = [](const Tensors& grads, const Tensors& results, const Tensor& x, int64_t dim,
                  bool) { return picked_gradient(grads[0], x, dim, results[1]); },
    },
    {
        .doc = R"(The same; ``stable`` is always so.)",
        .infer = [](const Tensor& x, OptBool, int64_t dim, bool) { return sort_meta(x, dim); },
        .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, OptBool, int64_t dim, bool descending) {
          run_sort(values, indices, x, dim, descending);
        }},
        .saves = "self.shape, indices",
        .vjp = [](const Tensors& grads, const Tensors& results, const Tensor& x, OptBool, int64_t dim,
                  bool) { return picked_gradient(grads[0], x, dim, results[1]); },
    }};

OP_DEFINE(argsort){
    {
        .doc = R"(The indices that sort a dimension.)",
        .composite = [](const Tensor& x, int64_t dim, bool descending) { return sort(x.detach(), dim, descending)[1]; },
    },
    {
        .doc = R"(The same; ``stable`` is always so.)",
        .composite = [](const Tensor& x, bool, int64_t dim,
                        bool descending) { return sort(x.detach(), dim, descending)[1]; },
    }};

OP_DEFINE(msort){{
    .doc = R"(The elements along the first dimension in ascending order.)",
    .composite = [](const Tensor& x) { return sort(x, 0)[0]; },
}};

OP_DEFINE(topk){{
    .doc =
        R"(The ``k`` greatest (or, without ``largest``, smallest) elements along a dimension and their indices, in order if
``sorted``. NaN counts as greater than any number.

Errors: RuntimeError where k is outside 0 .. the dimension's size.)",
    .infer =
        [](const Tensor& x, int64_t k, int64_t dim, bool, bool) {
          const int64_t d = wrap_dim(dim, x.dim());
          check(k >= 0 && k <= (x.dim() ? x.sizes()[d] : 1), "selected index k out of range");
          check<NotImplementedError>(x.dtype() != kBool && !x.is_complex(), "topk does not support ",
                                     name_of(x.dtype()), " dtypes on CPU");
          Pair metas{Meta{x.sizes(), x.dtype()}, Meta{x.sizes(), kInt64}};
          if (x.dim())
            for (Meta& m : metas) m.sizes[d] = k;
          return metas;
        },
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted) {
      cpu::topk(values, indices, x, k, wrap_dim(dim, x.dim()), largest, sorted);
    }},
    .saves = "self.shape, indices",
    .vjp = [](const Tensors& grads, const Tensors& results, const Tensor& x, int64_t, int64_t dim, bool,
              bool) { return picked_gradient(grads[0], x, dim, results[1]); },
}};

OP_DEFINE(unique2){{
    .doc =
        R"(The distinct elements in ascending order; for each element of the input the index of its value (empty unless
``return_inverse``); how often each occurs (empty unless ``return_counts``). Every NaN is distinct.)",
    .composite =
        [](const Tensor& x, bool, bool return_inverse, bool return_counts) {
          check_unique(x);
          const auto [values, order] = sort(reshape(x.detach(), {-1}));
          const Tensor places = to(order, kCPU);
          const Tensor rows = reshape(values, {-1, 1});
          Groups g = group_rows(rows, in_place_order(values.numel()));
          if (return_inverse) {
            std::vector<int64_t> inverse(g.group_of.size());
            for (size_t i = 0; i < inverse.size(); ++i) inverse[size_t(places.data<int64_t>()[i])] = g.group_of[i];
            g.group_of = std::move(inverse);
          }
          return grouped(values, 0, g, x.sizes(), return_inverse, return_counts);
        },
}};

OP_DEFINE(unique_dim){{
    .doc = R"(The distinct slices of a dimension in lexicographic order, with inverse and counts as ``_unique2``.)",
    .composite =
        [](const Tensor& x, int64_t dim, bool, bool return_inverse, bool return_counts) {
          check_unique(x);
          const int64_t d = wrap_dim(dim, x.dim());
          const Tensor wide = x.dim() ? x : reshape(x, {1});
          const Tensor rows = slices(wide, d);
          return grouped(wide, d, group_rows(rows, cpu::sorted_rows(to(rows, kCPU))), {rows.sizes()[0]}, return_inverse,
                         return_counts);
        },
}};

OP_DEFINE(unique_consecutive){{
    .doc =
        R"(The elements, or the slices of a dimension, without those equal to the one before; with inverse and counts as
``_unique2``.)",
    .composite =
        [](const Tensor& x, bool return_inverse, bool return_counts, OptInt dim) {
          check_unique(x);
          if (!dim) {
            const Tensor flat = contiguous(reshape(x.detach(), {-1}));
            return grouped(flat, 0, group_rows(reshape(flat, {-1, 1}), in_place_order(flat.numel())), x.sizes(),
                           return_inverse, return_counts);
          }
          const int64_t d = wrap_dim(*dim, x.dim());
          const Tensor wide = x.dim() ? x : reshape(x, {1});
          const Tensor rows = slices(wide, d);
          return grouped(wide, d, group_rows(rows, in_place_order(rows.sizes()[0])), {rows.sizes()[0]}, return_inverse,
                         return_counts);
        },
}};

// ---- histograms ----

namespace {

using Range = std::optional<std::span<const double>>;

Tensor points_of(const Tensor& x) {
  check<NotImplementedError>(x.is_floating_point(), "\"histogramdd\" not implemented for '", scalar_name(x.dtype()),
                             "'");
  check(x.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ", x.dim());
  const int64_t d = x.sizes().back();
  return reshape(contiguous(to(x.detach(), kCPU, kFloat64)), {d ? x.numel() / d : 0, d});
}

/// Equal bins from the least to the greatest element of each dimension, or over `range`, a pair for each.
std::vector<Tensor> equal_bins(const Tensor& x, Ints bins, const Range& range) {
  const Tensor points = points_of(x);
  const int64_t dims = points.sizes()[1], n = points.sizes()[0];
  check(int64_t(bins.size()) == dims,
        "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  check_int32("bins", bins);
  check(!range || int64_t(range->size()) == 2 * dims, "torch.histogramdd: for a ", dims,
        "-dimensional histogram range should have ", 2 * dims, " elements, but got ", range ? range->size() : 0);
  std::vector<Tensor> edges;
  for (int64_t d = 0; d < dims; ++d) {
    check(bins[size_t(d)] > 0, "torch.histogram(): bins must be > 0, but got ", bins[size_t(d)], " for dimension ", d);
    double low = 0, high = n ? 0 : 1;
    if (range) {
      low = (*range)[size_t(2 * d)];
      high = (*range)[size_t(2 * d + 1)];
      check(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high,
            " for dimension ", d);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const double v = points.data<double>()[i * dims + d];
        low = i == 0 || !(v >= low) ? v : low;
        high = i == 0 || !(v <= high) ? v : high;
      }
    }
    check(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d, "'s range [", low, ", ", high,
          "] is not finite");
    if (low == high) {
      low -= 0.5;
      high += 0.5;
    }
    edges.push_back(linspace(Scalar(low), Scalar(high), bins[size_t(d)] + 1, x.dtype(), {}, x.device()));
  }
  return edges;
}

/// The weights of the points in each bin, the last of a dimension closed at both ends. With `density` divided by their
/// sum and the size of the bin.
Tensor count_bins(const Tensor& x, Tensors edges, const Tensor& weight, bool density) {
  const Tensor points = points_of(x);
  const int64_t dims = points.sizes()[1], n = points.sizes()[0];
  check(int64_t(edges.size()) == dims,
        "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  Dims sizes;
  std::vector<Tensor> borders;
  for (const Tensor& e : edges) {
    check(e.dim() == 1, "torch.histogramdd: bins tensors should have one dimension, but got ", e.dim());
    check(e.numel() > 0, "torch.histogramdd: bins tensors should have at least 1 element");
    check(e.dtype() == x.dtype(),
          "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with ", "dtype ",
          scalar_name(x.dtype()), " and bins with dtype ", scalar_name(e.dtype()));
    sizes.push_back(e.numel() - 1);
    borders.push_back(contiguous(to(e.detach(), kCPU, kFloat64)));
  }
  Tensor weights;
  if (weight.defined()) {
    check(weight.numel() == n,
          "torch.histogramdd: weight should have the shape of input without its last dimension, but got ",
          weight.sizes());
    check(weight.dtype() == x.dtype(),
          "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the "
          "same dtype, but got ",
          scalar_name(x.dtype()), " and ", scalar_name(weight.dtype()));
    weights = contiguous(to(weight.detach(), kCPU, kFloat64));
  }
  Tensor hist = zeros(sizes, kFloat64);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    bool inside = true;
    for (int64_t d = 0; d < dims && inside; ++d) {
      const double v = points.data<double>()[i * dims + d];
      const double *first = borders[size_t(d)].data<double>(), *last = first + sizes[size_t(d)];
      inside = v >= *first && v <= *last && first != last;
      const int64_t bin = std::upper_bound(first, last, v) - first - 1;
      at = at * sizes[size_t(d)] + std::min(bin, sizes[size_t(d)] - 1);
    }
    if (!inside) continue;
    const double w = weights.defined() ? weights.data<double>()[i] : 1;
    hist.data<double>()[at] += w;
    total += w;
  }
  if (density) {
    hist = hist / Tensor(total);
    for (int64_t d = 0; d < dims; ++d) {
      Dims shape(size_t(dims), 1);
      shape[size_t(d)] = sizes[size_t(d)];
      const Tensor& b = borders[size_t(d)];
      hist = hist / reshape(narrow(b, 0, 1, sizes[size_t(d)]) - narrow(b, 0, 0, sizes[size_t(d)]), shape);
    }
  }
  return to(hist, x.device(), x.dtype());
}

std::array<Tensor, 2> histogram_of(const Tensor& x, const Tensor& edges, const Tensor& weight, bool density) {
  if (weight.defined())
    check(Ints(weight.sizes()) == Ints(x.sizes()),
          "torch.histogram: if weight tensor is provided it should have the same shape as "
          "the input tensor, but got input ",
          x.sizes(), " and weight ", weight.sizes());
  return {count_bins(reshape(x, {-1, 1}), {edges}, weight, density), edges};
}

}  // namespace

OP_DEFINE(histogram){
    {
        .doc =
            R"(How many elements lie in each of ``bins`` equal bins from the least element to the greatest, or over ``range``; the
sums of their weights, if given. ``density`` makes the integral 1. Returns the histogram and the edges of its bins.)",
        .composite =
            [](const Tensor& x, int64_t bins, Range range, const Tensor& weight, bool density) {
              return histogram_of(x, equal_bins(reshape(x, {-1, 1}), {bins}, range)[0], weight, density);
            },
    },
    {
        .doc = R"(The same with the edges of the bins, ascending, in a tensor.)",
        .composite = [](const Tensor& x, const Tensor& bins, const Tensor& weight,
                        bool density) { return histogram_of(x, bins, weight, density); },
    }};
OP_DEFINE(histogramdd_bin_edges){{
    .doc = R"(The edges of equal bins in each dimension of points (*, D); ``range`` holds two numbers for each.)",
    .composite = [](const Tensor& x, Ints bins, Range range) { return equal_bins(x, bins, range); },
}};
OP_DEFINE(histogramdd_from_bin_tensors){{
    .doc = R"(How many points (*, D) lie in each bin of a D-dimensional histogram with the given edges.)",
    .composite = count_bins,
}};

}  // namespace rush
