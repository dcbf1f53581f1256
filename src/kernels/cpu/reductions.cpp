// Which fold each reduction is.
#include "kernels/cpu/reductions.h"

#include <cmath>

#include "kernels/cuda/fold.h"

namespace rush::cpu {

namespace {
template <size_t N>
void fold_by(FoldKind kind, DType dtype, Tensor* const (&outs)[N], const Tensor& x, const Dims& dims,
             const FoldOptions& options = {}) {
  if (x.is_cpu()) {
    const bool in_float = is_half(dtype) || dtype == kFloat32;  // bfloat16 is widened by the fold, not before it
    const DType elements = in_float ? (x.dtype() == kBFloat16 ? kBFloat16 : kFloat32) : dtype;
    return fold(find_fold(kind, elements), options, x, dims, outs, N);
  }
  cuda::fold(kind, dtype, options, x, dims, outs, N);
}
void one(FoldKind kind, DType dtype, Tensor& out, const Tensor& x, const Dims& dims, const FoldOptions& options = {}) {
  fold_by(kind, dtype, {&out}, x, dims, options);
}
}  // namespace

void sum(Tensor& out, const Tensor& x, const Dims& dims) {
  if (x.dtype() == kBool && out.dtype() == kInt64) return one(FoldKind::count, kBool, out, x, dims);
  one(FoldKind::sum, out.dtype(), out, x, dims);
}
void nansum(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::nansum, out.dtype(), out, x, dims); }
void mean(Tensor& out, const Tensor& x, const Dims& dims) {
  FoldOptions options;
  int64_t n = 1;
  for (int64_t d : dims) n *= x.sizes()[d];
  options.scale = 1 / double(n);
  if (n == 0) options.scale = std::nan("");
  one(FoldKind::sum, out.dtype(), out, x, dims, options);
}
void prod(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::prod, out.dtype(), out, x, dims); }
void amax(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::max, x.dtype(), out, x, dims); }
void amin(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::min, x.dtype(), out, x, dims); }
void any(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::any, kBool, out, x, dims); }
void all(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::all, kBool, out, x, dims); }
void count_nonzero(Tensor& out, const Tensor& x, const Dims& dims) { one(FoldKind::count, kBool, out, x, dims); }

void var_mean(Tensor& variance, Tensor& mean, const Tensor& x, const Dims& dims, double correction, bool root) {
  FoldOptions options;
  options.correction = correction;
  options.root = root;
  fold_by(FoldKind::moments, x.dtype(), {&variance, &mean}, x, dims, options);
}

void vector_norm(Tensor& out, const Tensor& x, double order, const Dims& dims) {
  FoldOptions options;
  options.power = order;
  FoldKind kind = FoldKind::sum_power;
  if (order == 0) kind = FoldKind::count;
  if (order == 1) kind = FoldKind::sum_abs;
  if (order == 2) kind = FoldKind::sum_square;
  if (std::isinf(order)) kind = order > 0 ? FoldKind::max_abs : FoldKind::min_abs;
  one(kind, x.dtype(), out, x, dims, options);
}

void arg_extreme(Tensor& values, Tensor& indices, const Tensor& x, const Dims& dims, bool largest) {
  fold_by(largest ? FoldKind::argmax : FoldKind::argmin, x.dtype(), {&values, &indices}, x, dims);
}

}  // namespace rush::cpu
