// What reductions, scans and normalizations share: which dimensions are left, and how gradients come back.
#pragma once
#include "ops/common.h"

namespace rush {

/// The sizes that are left when `dims` (normalised) are reduced.
inline Dims reduced(Ints sizes, const Dims& dims, bool keepdim) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (std::find(dims.begin(), dims.end(), int64_t(i)) == dims.end())
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

/// The dimensions that `dim` names, all if there are none.
inline Dims dims_of(const Tensor& x, OptInts dim) { return wrap_dims(dim.value_or(Ints()), x.dim(), true); }
inline Dims dims_of(const Tensor& x, OptInt dim) {
  return dim ? Dims{wrap_dim(*dim, x.dim())} : wrap_dims({}, x.dim(), true);
}
/// `dims` without those that a 0-dim tensor only pretends to have.
inline Dims real_dims(const Tensor& x, const Dims& dims) { return x.dim() ? dims : Dims(); }

/// How many elements each result comes from.
inline int64_t reduced_count(Ints sizes, const Dims& dims) {
  int64_t n = 1;
  if (!sizes.empty())
    for (int64_t d : dims) n *= sizes[size_t(d)];
  return n;
}

/// A reduction's gradient (or result) with the reduced dimensions back in place, to broadcast against the input.
inline Tensor restore_dims(const Tensor& g, const Dims& dims, int64_t ndim, bool keepdim) {
  if (keepdim || ndim == 0 || g.dim() == ndim) return g;
  Dims sizes = g.sizes();
  Dims sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t d : sorted) sizes.insert(size_t(d), 1);
  return reshape(g, sizes);
}

/// The gradient of values picked at `indices` along `dim`.
inline Tensor picked_backward(const Tensor& g, int64_t dim, const Tensor& indices, Ints sizes, bool keepdim) {
  if (sizes.empty()) return g;
  if (keepdim) return scatter_add(zeros(sizes, g.dtype(), {}, g.device()), dim, indices, g);
  return scatter_add(zeros(sizes, g.dtype(), {}, g.device()), dim, unsqueeze(indices, dim), unsqueeze(g, dim));
}

/// x with dimension `dim` moved to the end.
inline Tensor dim_to_end(const Tensor& x, int64_t dim) {
  if (x.dim() == 0 || dim == x.dim() - 1) return x;
  Dims order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  return permute(x, order);
}

/// x with `value` where the mask is true.
inline Tensor masked(const Tensor& x, const Tensor& mask, const Tensor& value) { return where(mask, value, x); }

}  // namespace rush
