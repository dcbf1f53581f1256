// Exponentials, logarithms and powers of vectors of floats, for kernels that are compiled once for each instruction
// set. The formulas of math.h become vector code by themselves; these are for what is used most, where a compiler knows
// neither the minimum of two vectors that keeps NaN nor AVX-512's scaling by a power of two.
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
HWY_INLINE V polynomial(D d, V, hn::TFromD<D> c) {
  return hn::Set(d, c);
}
template <class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V polynomial(D d, V x, hn::TFromD<D> c, Rest... rest) {
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

/// e^x = 2^n (1 + r + r^2 q), |r| <= 0.35.
template <class V>
struct ExpParts {
  V n, r, q;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<V> exp_parts(D d, V x) {
  const auto shift = hn::Set(d, 0x1.8p23f);  // adding it leaves the nearest integer in the low bits
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, 0x1.715476p0f), shift), shift);
  // ln 2 in two parts, the first so short that its product is exact without a fused addition.
  const V r = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x));
  return {n, r, polynomial(d, r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b0p-5f, 0x1.12398ep-7f, 0x1.6a4d5cp-10f)};
}

/// e^x for x <= 88.8, below 1 ulp, NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_falling(D d, V x) {
  const auto [n, r, q] = exp_parts(d, hn::Max(hn::Set(d, -104.0f), x));
  const V one = hn::Set(d, 1.0f);
#if HWY_NATIVE_FMA
  const V p = hn::MulAdd(r, hn::MulAdd(r, q, one), one);
#else  // without fused additions the two largest terms are better added by themselves
  const V p = hn::Add(one, hn::MulAdd(hn::Mul(r, r), q, r));
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

/// 1 / (1 + e^-x), below 1 ulp: the denominator is summed without error and divided by 2^max(n, 0), so that it stays
/// near 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  const auto [n, r, q] = exp_parts(d, hn::Neg(hn::Max(hn::Set(d, -104.0f), hn::Min(hn::Set(d, 104.0f), x))));
  const V m = hn::MulAdd(hn::Mul(r, r), q, r);
  // 2^min(-n, 0) + 2^min(n, 0) (1 + m), where one of the powers is 1 and the other 2^-|n|.
  const V small = scaled(d, one, hn::Or(n, hn::SignBit(d)));
  const V ones = hn::Add(one, small), part = hn::IfThenElse(hn::Gt(n, zero), m, hn::Mul(small, m));
  const V sum = hn::Add(ones, part);
  const V rest = hn::Add(hn::Sub(small, hn::Sub(ones, one)), hn::Sub(part, hn::Sub(sum, ones)));
  const V y = hn::Div(one, sum);
  const V error = hn::NegMulAdd(rest, y, hn::NegMulAdd(sum, y, one));
  return scaled(d, hn::MulAdd(y, error, y), hn::Min(hn::Neg(n), zero));
}

/// A positive normal number as 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt 2.
template <class D>
struct LogParts {
  hn::Vec<hn::RebindToSigned<D>> k;
  hn::Vec<D> f;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE LogParts<D> log_parts(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr int root = 0x3f3504f3;  // sqrt(1/2)
  const auto u = hn::Add(hn::BitCast(di, x), hn::Set(di, 0x3f800000 - root));
  const auto m = hn::BitCast(d, hn::Add(hn::And(u, hn::Set(di, 0x7fffff)), hn::Set(di, root)));
  return {hn::Sub(hn::ShiftRight<23>(u), hn::Set(di, 127)), hn::Sub(m, hn::Set(d, 1.0f))};
}

/// k ln 2 + log(1 + f) + more, where more is small.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of_parts(D d, V k, V f, V more) {
  const V square = hn::Mul(f, f);
  V y = hn::Mul(hn::Mul(square, f), polynomial(d, f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547246p-3f,
                                               0x1.22da2p-3f, -0x1.0d8534p-3f, 0x1.055b6cp-3f, -0x1.38b5ecp-4f));
  y = hn::MulAdd(square, hn::Set(d, -0.5f), hn::MulAdd(k, hn::Set(d, 0x1.7f7d1cp-20f), y));
  y = hn::Add(y, more);
  const V large = hn::Mul(k, hn::Set(d, 0x1.62e4p-1f)), sum = hn::Add(large, f);
  return hn::Add(sum, hn::Add(y, hn::Sub(f, hn::Sub(sum, large))));
}
/// log(high + low) for a positive normal number high and a low within its rounding, below 1 ulp; NaN for NaN in low.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_sum(D d, V high, V low) {
  const hn::RebindToSigned<D> di;
  const auto [whole, f] = log_parts(d, high);
  const auto down = hn::ShiftLeft<23>(hn::Max(hn::Sub(hn::Set(di, 127), whole), hn::Zero(di)));  // 2^-k
  const V rest = hn::Mul(low, hn::BitCast(d, down));
  const V more = hn::MulAdd(rest, hn::MulSub(hn::Mul(f, f), hn::Set(d, 0.8f), f), rest);  // rest / (1 + f)
  return log_of_parts(d, hn::ConvertTo(d, whole), f, more);
}
/// log(x), below 1 ulp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const V zero = hn::Zero(d);
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const auto [whole, f] = log_parts(d, hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p24f)), x));
  const V k = hn::Sub(hn::ConvertTo(d, whole), hn::IfThenElseZero(tiny, hn::Set(d, 24.0f)));
  const V y = hn::IfThenElse(hn::Lt(x, hn::Inf(d)), log_of_parts(d, k, f, zero), x);
  const V at_zero = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(hn::Inf(d)), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), at_zero);
}
/// log(1 + x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f), top = hn::Max(one, x), sum = hn::Add(one, x);
  const V y = log_sum(d, sum, hn::Sub(hn::Min(one, x), hn::Sub(sum, top)));
  const V ends = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), hn::Neg(hn::Inf(d)), y);
  const V inside = hn::IfThenElse(hn::Eq(hn::Add(x, x), x), x, ends);  // zeros and infinity
  return hn::IfThenElse(hn::Lt(sum, hn::Zero(d)), hn::NaN(d), inside);
}
/// log(1 + e^-|x|), which rounds e^-|x| first.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_exp(D d, V x) {
  const V one = hn::Set(d, 1.0f), e = exp_falling(d, hn::Neg(hn::Abs(x))), sum = hn::Add(one, e);
  return log_sum(d, sum, hn::Sub(e, hn::Sub(sum, one)));
}

/// The exponent y (k + log2(1 + f)) of 2 as a whole number and a rest; computed in double.
template <class V>
struct Exponent {
  V whole, rest;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE Exponent<V> exponent_of_power(D d, V k, V f, V y) {
  const hn::Rebind<double, D> dd;
  const auto wide = hn::PromoteTo(dd, f);
  const auto fraction =
      polynomial(dd, wide, 0x1.71547652ef92cp+0, -0x1.7154767bacd09p-1, 0x1.ec709c00f5213p-2, -0x1.715435ed1fa54p-2,
                 0x1.277732d02fde3p-2, -0x1.ec8d7388228cbp-3, 0x1.a615ca932c2f6p-3, -0x1.6eb02dc7e1041p-3,
                 0x1.45a29df504113p-3, -0x1.417fe7eece110p-3, 0x1.3d25c210b56b2p-3, -0x1.61abf12045912p-4);
  const auto log = hn::MulAdd(wide, fraction, hn::PromoteTo(dd, k));
  const auto product = hn::Max(hn::Set(dd, -240.0), hn::Mul(hn::PromoteTo(dd, y), log));
  const auto exponent = hn::Min(hn::Set(dd, 240.0), product), whole = hn::Round(exponent);
  return {hn::DemoteTo(d, whole), hn::DemoteTo(d, hn::Sub(exponent, whole))};
}
/// x^y, below 2 ulp, with the cases of C's Annex F.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow(D d, V x, V y) {
  const V one = hn::Set(d, 1.0f), inf = hn::Inf(d), zero = hn::Zero(d), a = hn::Abs(x);
  const auto tiny = hn::Lt(a, hn::Set(d, 0x1p-126f));
  const auto [whole, f] = log_parts(d, hn::IfThenElse(tiny, hn::Mul(a, hn::Set(d, 0x1p24f)), a));
  V k = hn::ConvertTo(d, whole);
  k = hn::IfThenElse(tiny, hn::Sub(k, hn::Set(d, 24.0f)), k);
  k = hn::IfThenElse(hn::Lt(a, inf), k, a);  // the logarithms of infinity and NaN
  k = hn::IfThenElse(hn::Eq(a, zero), hn::Neg(inf), k);

  const hn::Half<D> half;
  const auto low = exponent_of_power(half, hn::LowerHalf(half, k), hn::LowerHalf(half, f), hn::LowerHalf(half, y));
  const auto high = exponent_of_power(half, hn::UpperHalf(half, k), hn::UpperHalf(half, f), hn::UpperHalf(half, y));
  const V n = hn::Combine(d, high.whole, low.whole), r = hn::Combine(d, high.rest, low.rest);
  V m = scaled(d,
               polynomial(d, r, 1.0f, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6aee8p-5f, 0x1.3b2d4ep-7f, 0x1.5f3e54p-10f,
                          0x1.41fbaap-13f),
               n);

  m = hn::IfThenElse(hn::Or(hn::Eq(y, zero), hn::Eq(a, one)), one, m);
  const V y_half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto is_whole = hn::Eq(hn::Trunc(y), y), is_odd = hn::AndNot(hn::Eq(hn::Trunc(y_half), y_half), is_whole);
  m = hn::Or(m, hn::IfThenElseZero(is_odd, hn::AndNot(a, x)));  // the sign of x
  const auto is_none = hn::AndNot(is_whole, hn::And(hn::Lt(x, zero), hn::Lt(a, inf)));
  return hn::IfThenElse(hn::AndNot(hn::Eq(y, zero), is_none), hn::NaN(d), m);
}

/// One step of third order from the processor's estimate.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rsqrt(D d, V x) {
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-100f));  // subnormal numbers have no estimate
  x = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p60f)), x);
  const V y = hn::ApproximateReciprocalSqrt(x);
  const V error = hn::NegMulAdd(hn::Mul(x, y), y, hn::Set(d, 1.0f));
  const V better = hn::MulAdd(hn::Mul(y, error), hn::MulAdd(error, hn::Set(d, 0.375f), hn::Set(d, 0.5f)), y);
  const V at_ends = hn::IfThenElse(hn::IsNaN(error), y, better);  // 0, infinity, below 0
  return hn::IfThenElse(tiny, hn::Mul(at_ends, hn::Set(d, 0x1p30f)), at_ends);
}

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif
