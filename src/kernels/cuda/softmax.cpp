// Launches of softmax.
#include "kernels/cuda/softmax.cuh"
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

template <class F>
void for_precision(const Tensor& out, bool log, F&& f) {
  if (!is_floating(out.dtype())) raise<NotImplementedError>("not implemented for '", scalar_name(out.dtype()), "'");
  const auto typed = [&]<class T>() { log ? f.template operator()<T, true>() : f.template operator()<T, false>(); };
  out.dtype() == kFloat64 ? typed.template operator()<double>() : typed.template operator()<float>();
}

}  // namespace

void softmax(Tensor& out, const Tensor& x, int64_t dim, bool log) {
  const Rows rows(x, dim);
  const Tensor in = contiguous(x);
  for_precision(out, log, [&]<class T, bool kLog>() {
    for_teams(out.device(), rows.count, rows.n, Softmax<T, kLog>{array_of(out), array_of(in), rows.n, rows.inner});
  });
}

void softmax_backward(Tensor& out, const Tensor& grad, const Tensor& result, int64_t dim, bool log) {
  const Rows rows(grad, dim);
  const Tensor g = contiguous(grad), y = contiguous(result);
  for_precision(out, log, [&]<class T, bool kLog>() {
    for_teams(out.device(), rows.count, rows.n,
              SoftmaxGrad<T, kLog>{array_of(out), array_of(g), array_of(y), rows.n, rows.inner});
  });
}

}  // namespace rush::cuda
