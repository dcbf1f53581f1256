// Orders: sorting, the largest elements, distinct elements.
#include "kernels/cpu/sorting.h"

#include "ops/common.h"

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
Groups group_rows(const Tensor& rows, const std::vector<int64_t>& order) {
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

Tensor list_of(const std::vector<int64_t>& values, Ints sizes) {
  Tensor t = empty(sizes, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

std::array<Tensor, 3> grouped(const Tensor& x, int64_t dim, const Groups& g, Ints inverse_sizes, bool inverse,
                              bool counts) {
  const Tensor first = list_of(g.first, {int64_t(g.first.size())});
  return {index_select(x.detach(), dim, first), inverse ? list_of(g.group_of, inverse_sizes) : empty({0}, kInt64),
          counts ? list_of(g.sizes, {int64_t(g.sizes.size())}) : empty({0}, kInt64)};
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
          const auto [values, places] = sort(reshape(x.detach(), {-1}));
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
          return grouped(wide, d, group_rows(rows, cpu::sorted_rows(rows)), {rows.sizes()[0]}, return_inverse,
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

}  // namespace rush
