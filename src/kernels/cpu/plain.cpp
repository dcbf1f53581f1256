// Plain strided loops, in complex double for every dtype.
#include <cmath>

#include "kernels/cpu/reductions.h"

namespace rush::cpu {
namespace {
using C = std::complex<double>;
template <class T> C widen(T v) { if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, C>) return C(v); else return C(double(v)); }
template <class T> T narrow(C v) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, C>) return T(v);
  else if constexpr (std::is_same_v<T, bool>) return v != C(0);
  else if constexpr (std::is_integral_v<T>) return T(int64_t(v.real()));
  else return T(float(v.real()));
}
template <> double narrow<double>(C v) { return v.real(); }
C load(const Tensor& t, int64_t at) { return for_all(t.dtype(), [&]<class T>() { return widen(t.data<T>()[at]); }); }
void store(Tensor& t, int64_t at, C v) { for_all(t.dtype(), [&]<class T>() { t.data<T>()[at] = narrow<T>(v); }); }
int64_t place(int64_t linear, Ints sizes, Ints strides) {
  int64_t at = 0;
  for (size_t d = sizes.size(); d-- > 0;) { at += linear % sizes[d] * strides[d]; linear /= sizes[d]; }
  return at;
}
}  // namespace
void sum(Tensor& out, const Tensor& x, const Dims& dims) {
  Dims so(size_t(x.dim()), 0);
  size_t k = 0;
  const bool keep = out.dim() == x.dim();
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) k += keep;
    else so[d] = out.strides()[k++];
  }
  for (int64_t i = 0; i < out.numel(); ++i) store(out, i, 0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t o = place(i, x.sizes(), so);
    store(out, o, load(out, o) + load(x, place(i, x.sizes(), x.strides())));
  }
}
}  // namespace rush::cpu
