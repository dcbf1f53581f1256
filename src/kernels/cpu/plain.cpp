// Plain strided loops, in complex double for every dtype.
#include <cmath>

#include "kernels/cpu/pointwise.h"
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
template <class F> void map2(Tensor& out, const Tensor& a, const Tensor& b, F f) {
  const Dims sa = broadcast_strides(a.sizes(), a.strides(), out.sizes()), sb = broadcast_strides(b.sizes(), b.strides(), out.sizes());
  for (int64_t i = 0; i < out.numel(); ++i)
    store(out, place(i, out.sizes(), out.strides()), f(load(a, place(i, out.sizes(), sa)), load(b, place(i, out.sizes(), sb))));
}
template <class F> void map1(Tensor& out, const Tensor& a, F f) { map2(out, a, a, [&](C x, C) { return f(x); }); }
}  // namespace
void copy(Tensor& out, const Tensor& x) { map1(out, x, [](C v) { return v; }); }
void fill(Tensor& out, const Tensor&, const Tensor& value) { const C v = load(value, 0); for (int64_t i = 0; i < out.numel(); ++i) store(out, place(i, out.sizes(), out.strides()), v); }
void arange(Tensor& out, const Scalar& start, const Scalar& step) { for (int64_t i = 0; i < out.numel(); ++i) store(out, i, start.to_double() + double(i) * step.to_double()); }
void add(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha) { map2(out, a, b, [&](C x, C y) { return x + y * alpha.to_complex(); }); }
void sub(Tensor& out, const Tensor& a, const Tensor& b, Scalar alpha) { map2(out, a, b, [&](C x, C y) { return x - y * alpha.to_complex(); }); }
void mul(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return x.imag() == 0 && y.imag() == 0 ? C(x.real() * y.real()) : x * y; }); }
void div(Tensor& out, const Tensor& a, const Tensor& b, OptStr mode) { map2(out, a, b, [&](C x, C y) { C q = y.imag() == 0 ? C(x.real() / y.real(), x.imag() / y.real()) : x / y; return !mode ? q : *mode == "floor" ? C(std::floor(q.real())) : C(std::trunc(q.real())); }); }
void neg(Tensor& out, const Tensor& x) { map1(out, x, [](C v) { return -v; }); }
void eq(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x == y); }); }
void ne(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x != y); }); }
void lt(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x.real() < y.real()); }); }
void le(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x.real() <= y.real()); }); }
void gt(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x.real() > y.real()); }); }
void ge(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(x.real() >= y.real()); }); }
void bitwise_and(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(double(int64_t(x.real()) & int64_t(y.real()))); }); }
void bitwise_or(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(double(int64_t(x.real()) | int64_t(y.real()))); }); }
void bitwise_xor(Tensor& out, const Tensor& a, const Tensor& b) { map2(out, a, b, [](C x, C y) { return C(double(int64_t(x.real()) ^ int64_t(y.real()))); }); }
void bitwise_not(Tensor& out, const Tensor& x) { map1(out, x, [&](C v) { return x.dtype() == kBool ? C(v == C(0)) : C(double(~int64_t(v.real()))); }); }
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
