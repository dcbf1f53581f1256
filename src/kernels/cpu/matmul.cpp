// Matrix products by dtype, over gemm.h.
#include "kernels/cpu/matmul.h"

#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/kernels.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

template <class T>
Strided<const T> operand(const Matrices& m) {
  return {m.tensor.data<T>(), m.row, m.col};
}

}  // namespace

void product(Tensor& out, int64_t m, int64_t n, int64_t k, const Matrices& a, const Matrices& b, const Scalar& alpha,
             const Scalar& beta, const Tensor& bias, Clamp clamp) {
  if (!out.is_cpu()) return cuda::batched_product(out, 1, m, n, k, a, b, alpha, beta, bias);
  for_all(out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      gemm<T>(m, n, k, operand<T>(a), operand<T>(b), {out.data<T>(), n, 1}, alpha.to<compute_t<T>>(),
              beta.to<compute_t<T>>(), {nullptr, bias.defined() ? bias.data<T>() : nullptr},
              {b.weight ? b.tensor.storage().get() : nullptr}, clamp);
  });
}

void batched_product(Tensor& out, int64_t batch, int64_t m, int64_t n, int64_t k, const Matrices& a, const Matrices& b,
                     const Scalar& alpha, const Scalar& beta) {
  if (!out.is_cpu()) return cuda::batched_product(out, batch, m, n, k, a, b, alpha, beta, {});
  for_all(out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      batched_gemm<T>(batch, m, n, k, operand<T>(a), a.batch, operand<T>(b), b.batch, {out.data<T>(), n, 1}, m * n,
                      alpha.to<compute_t<T>>(), beta.to<compute_t<T>>());
  });
}

namespace {

template <class T, class Term>
T fold(const T* a, const T* b, int64_t k, Term&& term) {
  T sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += term(std::abs(a[i] - b[i]));
  return sum;
}

template <class T>
T distance(const T* a, const T* b, int64_t k, double p) {
  if (p == 2) return std::sqrt(fold(a, b, k, [](T d) { return d * d; }));
  if (p == 1) return fold(a, b, k, [](T d) { return d; });
  if (p == 0) return fold(a, b, k, [](T d) { return T(d != 0); });
  if (std::isinf(p)) {
    T most = 0;
    for (int64_t i = 0; i < k; ++i) {
      const T d = std::abs(a[i] - b[i]);
      if (d > most || d != d) most = d;
    }
    return most;
  }
  return std::pow(fold(a, b, k, [p](T d) { return std::pow(d, T(p)); }), T(1 / p));
}

}  // namespace

void cdist(Tensor& out, const Tensor& a, const Tensor& b, double p) {
  if (!out.is_cpu()) return cuda::cdist(out, a, b, p);
  const int64_t m = a.sizes()[1], n = b.sizes()[1], k = a.sizes()[2];
  for_floating(out.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const auto widened = [](const Tensor& x) {
      if (x.is_contiguous() && x.dtype() == dtype_of<C>) return x;
      Tensor copied = allocate({x.sizes(), dtype_of<C>});
      copy(copied, x);
      return copied;
    };
    const Tensor left = widened(a), right = widened(b);
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, n * k));
    parallel_for(0, a.sizes()[0] * m, grain, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i)
        for (int64_t j = 0; j < n; ++j)
          out.data<T>()[i * n + j] =
              T(distance<C>(left.data<C>() + i * k, right.data<C>() + (i / m * n + j) * k, k, p));
    });
  });
}

}  // namespace rush::cpu
