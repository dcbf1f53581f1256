// Matrix products: by a library where there is one (cuda/products.h), else by the kernel of our own.
#include "kernels/cpu/matmul.h"

#include "cuda/products.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/matmul.cuh"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

void batched_product(Tensor& out, int64_t batch, int64_t m, int64_t n, int64_t k, const cpu::Matrices& a,
                     const cpu::Matrices& b, const Scalar& alpha, const Scalar& beta, const Tensor& bias) {
  if (out.numel() == 0) return;
  const Gemm gemm{out.dtype(),
                  batch,
                  m,
                  n,
                  k,
                  {a.tensor.data_ptr(), a.batch, a.row, a.col},
                  {b.tensor.data_ptr(), b.batch, b.row, b.col},
                  out.data_ptr(),
                  bias.defined() ? bias.data_ptr() : nullptr,
                  alpha,
                  beta};
  if (library_gemm(out.device().index, gemm)) return;
  for_all(out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      using C = compute_t<T>;
      const int64_t rows = (m + kTile - 1) / kTile, columns = (n + kTile - 1) / kTile;
      for_teams(out.device(), batch * rows * columns, kTeam,
                Product<T>{out.data<T>(),
                           {a.tensor.data<T>(), a.batch, a.row, a.col},
                           {b.tensor.data<T>(), b.batch, b.row, b.col},
                           bias.defined() ? bias.data<T>() : nullptr,
                           m,
                           n,
                           k,
                           rows,
                           columns,
                           alpha.to<C>(),
                           beta.to<C>()});
    }
  });
}

void cdist(Tensor& out, const Tensor& a, const Tensor& b, double p) {
  const Tensor left = contiguous(a), right = contiguous(b);
  const auto go = [&]<class T>() {
    for_each(out.device(), out.numel(),
             Distance<T>{array_of(out), array_of(left), array_of(right), a.sizes()[1], b.sizes()[1], a.sizes()[2], p});
  };
  out.dtype() == kFloat64 ? go.template operator()<double>() : go.template operator()<float>();
}

}  // namespace rush::cuda
