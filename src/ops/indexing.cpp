// Reading and writing at indices.
#include "kernels/cpu/indexing.h"
#include "ops/common.h"

namespace rush {

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
          grads[0] = index_put(zeros(x.sizes(), g.dtype(), {}, g.device()), indices, g, true);
          return grads;
        },
}};

OP_DEFINE(index_put){{
    .doc = R"(A copy of self with ``values``, broadcast, written to the positions that ``index`` would read.

With ``accumulate`` they are added to what is there, also where a position occurs several times; else one of the values
for a repeated position stays.
Errors: IndexError as ``index``; RuntimeError where values does not broadcast or has another dtype.)",
    .infer =
        [](const Tensor& x, Tensors indices, const Tensor& values, bool) {
          check(x.dtype() == values.dtype(), "Index put requires the source and destination dtypes match, got ",
                scalar_name(x.dtype()), " for the destination and ", scalar_name(values.dtype()), " for the source.");
          const Dims sizes = cpu::Selection(x, indices).sizes();
          bool fits = values.sizes().size() <= sizes.size();
          for (size_t i = 1; fits && i <= values.sizes().size(); ++i) {
            const int64_t have = values.sizes()[values.sizes().size() - i];
            fits = have == 1 || have == sizes[sizes.size() - i];
          }
          check(fits, "shape mismatch: value tensor of shape ", values.sizes(),
                " cannot be broadcast to indexing result of shape ", sizes);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, Tensors indices, const Tensor& values, bool accumulate) {
      if (!out.is_same(x)) in_place(copy, out, x);
      cpu::index_put(out, cpu::Selection(out, indices), values, accumulate ? cpu::Write::add : cpu::Write::assign);
    }},
    .saves = "indices, values.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, Tensors indices, const Tensor& values, bool accumulate) {
          Grads grads(2 + indices.size());
          if (needs_grad(0))
            grads[0] = accumulate ? g : index_put(g, indices, zeros(values.sizes(), g.dtype(), {}, g.device()));
          if (needs_grad(1 + indices.size())) grads[1 + indices.size()] = index(g, indices);
          return grads;
        },
    .overwrites = true,
}};

OP_DEFINE(index_add){{
    .doc =
        R"(A copy of self with slice i of ``source``, times ``alpha``, added at index ``index[i]`` of dimension ``dim``.)",
    .infer =
        [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar) {
          check<IndexError>(index.dim() <= 1,
                            "index_add_(): Index is supposed to be a vector, but got dim: ", index.dim());
          check(index.dtype() == kInt64 || index.dtype() == kInt32,
                "index_add_(): Expected dtype int32/int64 for index but got: ", index.dtype());
          check(x.dtype() == source.dtype(), "index_add_(): self (", scalar_name(x.dtype()), ") and source (",
                scalar_name(source.dtype()), ") must have the same scalar type");
          const int64_t d = wrap_dim(dim, x.dim());
          check(source.dim() == 0 || source.sizes()[d] == index.numel(), "index_add_(): Number of indices (",
                index.numel(), ") should be equal to source.size(dim): (", source.dim() ? source.sizes()[d] : 1,
                "), for dim: ", d);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
      if (!out.is_same(x)) in_place(copy, out, x);
      const Tensor places = contiguous(cast(index, kInt64));
      for (int64_t i = 0; i < places.numel(); ++i) {
        Tensor row = out.dim() ? select(out, dim, places.data<int64_t>()[i]) : out;
        const Tensor add_row = source.dim() ? select(source, dim, i) : source;
        in_place(add, row, add_row, alpha);
      }
    }},
    .saves = "index, source.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar) {
          return Grads{g, Tensor(), Tensor()};
        },
    .in_place = true,
}};

}  // namespace rush
