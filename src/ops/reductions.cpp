// Reductions: sums and their kin.
#include "kernels/cpu/reductions.h"
#include "ops/common.h"

namespace rush {

namespace {

/// The sizes that are left when `dims` (normalised) are reduced.
Dims reduced(Ints sizes, const Dims& dims, bool keepdim) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (std::find(dims.begin(), dims.end(), int64_t(i)) == dims.end())
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

DType sum_dtype(DType t, OptDType asked) { return asked.value_or(is_integral(t) ? kInt64 : t); }

/// A reduction's gradient (or result) with the reduced dimensions back in place, to broadcast against the input.
Tensor restore_dims(const Tensor& g, const Dims& dims, int64_t ndim, bool keepdim) {
  if (keepdim || ndim == 0) return g;
  Dims sizes = g.sizes();
  Dims sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t d : sorted) sizes.insert(size_t(d), 1);
  return reshape(g, sizes);
}

}  // namespace

OP_DEFINE(sum){
    {
        .doc = R"(The sum of all elements; integers sum as int64.)",
        .infer =
            [](const Tensor& x, OptDType dtype) {
              return Meta{{}, sum_dtype(x.dtype(), dtype)};
            },
        .kernel = {[](Tensor& out, const Tensor& x, OptDType) { cpu::sum(out, x, wrap_dims({}, x.dim(), true)); }},
        .saves = "self.shape",
        .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, OptDType) { return Grads{expand(g, x.sizes())}; },
    },
    {
        .doc = R"(The sum over the named dimensions, all if none are named; ``keepdim`` leaves them with size 1.)",
        .infer =
            [](const Tensor& x, OptInts dim, bool keepdim, OptDType dtype) {
              return Meta{reduced(x.sizes(), wrap_dims(dim.value_or(Ints()), x.dim(), true), keepdim),
                          sum_dtype(x.dtype(), dtype)};
            },
        .kernel = {[](Tensor& out, const Tensor& x, OptInts dim, bool, OptDType) {
          cpu::sum(out, x, wrap_dims(dim.value_or(Ints()), x.dim(), true));
        }},
        .saves = "self.shape",
        .vjp =
            [](const Tensor& g, const Tensor&, const Tensor& x, OptInts dim, bool keepdim, OptDType) {
              const Dims dims = wrap_dims(dim.value_or(Ints()), x.dim(), true);
              return Grads{expand(restore_dims(g, dims, x.dim(), keepdim), x.sizes())};
            },
    }};

OP_DEFINE(sum_to_size){{
    .doc = R"(The sum over the dimensions along which ``size`` was broadcast to self's: broadcasting undone.)",
    .composite =
        [](const Tensor& x, Ints size) {
          if (Ints(x.sizes()) == size) return x;
          check(int64_t(size.size()) <= x.dim(), "size {", size, "} is not expandable to size {", x.sizes(), "}.");
          const int64_t lead = x.dim() - int64_t(size.size());
          Dims dims;
          for (int64_t i = 0; i < x.dim(); ++i) {
            if (i < lead) {
              dims.push_back(i);
              continue;
            }
            check(size[i - lead] == x.sizes()[i] || size[i - lead] == 1, "size {", size,
                  "} is not expandable to size {", x.sizes(), "}.");
            if (size[i - lead] == 1 && x.sizes()[i] != 1) dims.push_back(i);
          }
          const Tensor summed = dims.empty() ? x : sum(x, Ints(dims), true, x.dtype());
          return lead ? view(summed, size) : summed;
        },
}};

}  // namespace rush
