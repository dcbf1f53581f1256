// Reading and writing at indices.
#include "ops/common.h"

namespace rush {

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
