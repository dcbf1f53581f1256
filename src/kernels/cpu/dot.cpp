// Dot products of two vectors, summed as reductions are (Note [Sums]), long ones by several threads.
#include <algorithm>
#include <vector>

#include "kernels/cpu/matmul.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dot.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
double dot_of(const T* a, const T* b, int64_t n) {
  return vector_sum<T>(n,
                       [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
}

double dot_floats(const float* a, const float* b, int64_t n) { return dot_of(a, b, n); }
double dot_doubles(const double* a, const double* b, int64_t n) { return dot_of(a, b, n); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(dot_floats);
HWY_EXPORT(dot_doubles);

namespace {
constexpr int64_t kPart = 32768;

/// The sum of f(a, b, count) over parts whose size does not depend on the number of threads.
template <class T, class F>
void by_parts(Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  const T *p = a.data<T>(), *q = b.data<T>();
  const int64_t n = a.numel(), parts = (n + kPart - 1) / kPart;
  double sum = 0;
  if (parts <= 1) {
    sum = f(p, q, n);
  } else {
    std::vector<double> sums(static_cast<size_t>(parts));
    parallel_for(0, parts, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i)
        sums[size_t(i)] = f(p + i * kPart, q + i * kPart, std::min(kPart, n - i * kPart));
    });
    for (double part : sums) sum += part;
  }
  *out.data<T>() = T(sum);
}
}  // namespace

void dot(Tensor& out, const Tensor& a, const Tensor& b) {
  if (out.is_cpu() && a.is_contiguous() && b.is_contiguous()) {
    if (out.dtype() == kFloat32) return by_parts<float>(out, a, b, HWY_DYNAMIC_DISPATCH(dot_floats));
    if (out.dtype() == kFloat64) return by_parts<double>(out, a, b, HWY_DYNAMIC_DISPATCH(dot_doubles));
  }
  product(out, 1, 1, a.numel(), {a, 1, a.strides()[0]}, {b, b.strides()[0], 1});
}
}  // namespace rush::cpu
#endif
