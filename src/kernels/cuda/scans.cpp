// Launches of cumulative operations.
#include "kernels/cuda/scans.cuh"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

struct Rows {
  int64_t n = 1, inner = 1, count = 1;
  Rows(const Tensor& x, int64_t dim) {
    if (x.dim() > 0) n = x.sizes()[dim];
    for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.sizes()[d];
    count = n ? x.numel() / n : 0;
  }
};

template <class Op>
void scan(Tensor& out, const Tensor& x, int64_t dim) {
  if (out.numel() == 0) return;
  // As PyTorch does, elements take out's dtype first.
  const Tensor in = contiguous(x.dtype() == out.dtype() ? x : cast(x, out.dtype()));
  const Rows rows(x, dim);
  const auto go = [&]<class T>() {
    for_teams(out.device(), rows.count, rows.n, Scan<T, Op>{array_of(out), array_of(in), rows.n, rows.inner});
  };
  switch (out.dtype()) {
    case kFloat16:
    case kBFloat16:
    case kFloat32:
      return go.template operator()<float>();
    case kFloat64:
      return go.template operator()<double>();
    case kComplex64:
      return go.template operator()<std::complex<float>>();
    case kComplex128:
      return go.template operator()<std::complex<double>>();
    default:
      if constexpr (std::is_same_v<Op, ScanLogAddExp>)
        raise<NotImplementedError>("not implemented for '", scalar_name(x.dtype()), "'");
      else
        go.template operator()<int64_t>();
  }
}

}  // namespace

void cumsum(Tensor& out, const Tensor& x, int64_t dim) { scan<ScanSum>(out, x, dim); }
void cumprod(Tensor& out, const Tensor& x, int64_t dim) { scan<ScanProduct>(out, x, dim); }
void logcumsumexp(Tensor& out, const Tensor& x, int64_t dim) { scan<ScanLogAddExp>(out, x, dim); }

void cum_extreme(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool largest) {
  const Tensor in = contiguous(x);
  const Rows rows(x, dim);
  const auto go = [&]<class T>() {
    const auto run = [&]<bool kLargest>() {
      for_teams(x.device(), rows.count, rows.n,
                ScanBest<T, kLargest>{array_of(values), array_of(indices), array_of(in), rows.n, rows.inner});
    };
    largest ? run.template operator()<true>() : run.template operator()<false>();
  };
  if (is_integral(x.dtype())) return go.template operator()<int64_t>();
  x.dtype() == kFloat64 ? go.template operator()<double>() : go.template operator()<float>();
}

}  // namespace rush::cuda
