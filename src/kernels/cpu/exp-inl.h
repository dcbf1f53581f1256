// Exponentials of vectors of floats, for kernels that are compiled once for each instruction set. The formulas of
// math.h become vector code by themselves; these are for what is used most, where a compiler knows neither the minimum
// of two vectors that keeps NaN nor AVX-512's scaling by a power of two.
#if defined(RUSH_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSH_EXP_INL_H
#undef RUSH_EXP_INL_H
#else
#define RUSH_EXP_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// c0 + x (c1 + x (c2 + ...)).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V, float c) {
  return hn::Set(d, c);
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V polynomial(D d, V x, float c, Rest... rest) {
  return hn::MulAdd(x, polynomial(d, x, rest...), hn::Set(d, c));
}

/// p 2^n for whole |n| < 252 and p near 1, rounded once where the result is normal.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scaled(D d, V p, V n) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(V) == 64) return V{_mm512_scalef_ps(p.raw, n.raw)};
#endif
  const hn::RebindToSigned<D> di;
  const auto whole = hn::ConvertTo(di, n), half = hn::ShiftRight<1>(whole);
  const auto power = [&](auto k) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127)))); };
  return hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(whole, half)));
}

/// e^x for x <= 88.8, below 1 ulp, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_falling(D d, V x) {
  const auto shift = hn::Set(d, 0x1.8p23f);  // adding it leaves the nearest integer in the low bits
  x = hn::Max(hn::Set(d, -104.0f), x);
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, 0x1.715476p0f), shift), shift);
  // ln 2 in two parts, the first so short that its product is exact without a fused addition.
  const V r = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x));
#if HWY_NATIVE_FMA
  const V p =
      polynomial(d, r, 1.0f, 1.0f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b0p-5f, 0x1.12398ep-7f, 0x1.6a4d5cp-10f);
#else  // without fused additions the two largest terms are better added by themselves
  const V q = polynomial(d, r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b0p-5f, 0x1.12398ep-7f, 0x1.6a4d5cp-10f);
  const V p = hn::Add(hn::Set(d, 1.0f), hn::MulAdd(hn::Mul(r, r), q, r));
#endif
  return scaled(d, p, n);
}
/// e^x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  return exp_falling(d, hn::Min(hn::Set(d, 89.0f), x));
}

/// The normal distribution's upper tail for a >= 0: 2 to a polynomial, whose coefficients are fitted up to 6 and bring
/// it to 0 beyond. Its error is 2 ulp where it is above 1/4, and one of an ulp of the exponent further out.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_tail(D d, V a) {
  const V exponent =
      hn::MulAdd(a,
                 polynomial(d, a, -0x1.26aef0p+0f, -0x1.d6374ap-2f, -0x1.ae46dep-5f, 0x1.cf9946p-8f, -0x1.be5a38p-14f,
                            -0x1.dd5946p-13f, 0x1.00c7ccp-14f, -0x1.17f55ep-17f, 0x1.49a824p-21f, -0x1.4b8cf6p-26f),
                 hn::Set(d, -1.0f));
  const V n = hn::Round(exponent), f = hn::Sub(exponent, n);
  return scaled(
      d, polynomial(d, f, 1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6d8p-5f, 0x1.3ce8b2p-7f, 0x1.5bda90p-10f), n);
}
/// |x|, or where the tail is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tail_distance(D d, V x) {
  return hn::Min(hn::Set(d, 12.2f), hn::Abs(x));
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif
