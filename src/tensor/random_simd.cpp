// Vectorised loops for random numbers, compiled for each instruction set; random.cpp is the only user.
#include "tensor/random_simd.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/random_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rush::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Twist(uint32_t* state) {
  constexpr int64_t words = 624, distance = 397;
  const hn::CappedTag<uint32_t, 16> d;
  const auto one = [state](int64_t j) {
    const uint32_t next = state[(j + 1) % words];
    const uint32_t y = (state[j] & 0x80000000) | (next & 0x7fffffff);
    state[j] = state[(j + distance) % words] ^ y >> 1 ^ ((0u - (next & 1)) & 0x9908b0df);
  };
  // Words `from` to from + 16 * blocks - 1, which are mixed with the words `offset` from them.
  const auto many = [&](int64_t from, int64_t blocks, int64_t offset) HWY_ATTR {
    for (int64_t j = from; j < from + 16 * blocks; j += static_cast<int64_t>(hn::Lanes(d))) {
      const auto next = hn::LoadU(d, state + j + 1);
      const auto y =
          hn::Or(hn::And(hn::LoadU(d, state + j), hn::Set(d, 0x80000000)), hn::And(next, hn::Set(d, 0x7fffffff)));
      const auto odd = hn::Sub(hn::Zero(d), hn::And(next, hn::Set(d, 1)));
      const auto mixed = hn::Xor(hn::ShiftRight<1>(y), hn::And(odd, hn::Set(d, 0x9908b0df)));
      hn::StoreU(hn::Xor(hn::LoadU(d, state + j + offset), mixed), d, state + j);
    }
  };
  // The first 227 words are mixed with old words ahead, the others with new ones behind.
  many(0, 14, distance);
  for (int64_t j = 224; j < 227; ++j) one(j);
  many(227, 24, distance - words);
  for (int64_t j = 611; j < words; ++j) one(j);
}

void Temper(const uint32_t* HWY_RESTRICT state, uint32_t* HWY_RESTRICT out, int64_t n) {
  const hn::ScalableTag<uint32_t> d;
  const auto temper = [d](auto y) HWY_ATTR {
    y = hn::Xor(y, hn::ShiftRight<11>(y));
    y = hn::Xor(y, hn::And(hn::ShiftLeft<7>(y), hn::Set(d, 0x9d2c5680)));
    y = hn::Xor(y, hn::And(hn::ShiftLeft<15>(y), hn::Set(d, 0xefc60000)));
    return hn::Xor(y, hn::ShiftRight<18>(y));
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(temper(hn::LoadU(d, state + i)), d, out + i);
  for (; i < n; ++i) out[i] = hn::GetLane(temper(hn::Set(d, state[i])));
}

void UniformFloats(const uint32_t* HWY_RESTRICT draws, float* HWY_RESTRICT out, int64_t n, float from, float to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  // Rounded once on every machine, so that a seed gives the same bits.
  const auto scaled = [=](auto u) HWY_ATTR {
#if HWY_NATIVE_FMA
    return hn::MulAdd(u, hn::Set(d, to - from), hn::Set(d, from));
#else
    if (from == 0) return hn::Mul(u, hn::Set(d, to));
    HWY_ALIGN float lanes[HWY_LANES(float)];
    hn::Store(u, d, lanes);
    for (size_t l = 0; l < hn::Lanes(d); ++l) lanes[l] = std::fma(lanes[l], to - from, from);
    return hn::Load(d, lanes);
#endif
  };
  const auto value = [=](auto bits) HWY_ATTR {
    const auto u = hn::Mul(hn::ConvertTo(d, hn::And(bits, hn::Set(di, 0xffffff))), hn::Set(d, 0x1p-24f));
    const auto x = scaled(u);
    return hn::IfThenElse(hn::Lt(x, hn::Set(d, to)), x, hn::Set(d, from));
  };
  const auto* bits = reinterpret_cast<const int32_t*>(draws);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(value(hn::LoadU(di, bits + i)), d, out + i);
  for (; i < n; ++i) out[i] = hn::GetLane(value(hn::Set(di, bits[i])));
}

// Calls store(i, mask) for each vector of results and store_one(i, result) for the rest.
template <class Store, class StoreOne>
HWY_INLINE void Below(const uint32_t* draws, int64_t n, uint64_t threshold, Store store, StoreOne store_one) {
  const hn::ScalableTag<uint32_t> d;
  const auto high_limit = hn::Set(d, static_cast<uint32_t>(threshold >> 32));
  const auto low_limit = hn::Set(d, static_cast<uint32_t>(threshold));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> high, low;
    hn::LoadInterleaved2(d, draws + 2 * i, high, low);
    high = hn::And(high, hn::Set(d, 0x1fffff));
    store(i, hn::Or(hn::Lt(high, high_limit), hn::And(hn::Eq(high, high_limit), hn::Lt(low, low_limit))));
  }
  for (; i < n; ++i)
    store_one(i, (static_cast<uint64_t>(draws[2 * i] & 0x1fffff) << 32 | draws[2 * i + 1]) < threshold);
}

void BelowFloats(const uint32_t* HWY_RESTRICT draws, float* HWY_RESTRICT out, int64_t n, uint64_t threshold) {
  const hn::ScalableTag<float> d;
  Below(
      draws, n, threshold,
      [=](int64_t i, auto mask)
          HWY_ATTR { hn::StoreU(hn::IfThenElseZero(hn::RebindMask(d, mask), hn::Set(d, 1.0f)), d, out + i); },
      [=](int64_t i, bool result) { out[i] = result; });
}

void BelowBytes(const uint32_t* HWY_RESTRICT draws, uint8_t* HWY_RESTRICT out, int64_t n, uint64_t threshold) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> db;
  Below(
      draws, n, threshold,
      [=](int64_t i, auto mask)
          HWY_ATTR { hn::StoreU(hn::U8FromU32(hn::IfThenElseZero(mask, hn::Set(d, 1))), db, out + i); },
      [=](int64_t i, bool result) { out[i] = result; });
}

// Logarithm of positive normal numbers: Cephes' logf (S. L. Moshier), within 1 ulp.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto c = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto bits = hn::BitCast(di, x);
  auto e = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126)));
  const auto m = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x7fffff)), hn::Set(di, 0x3f000000)));  // [0.5, 1)
  const auto small = hn::Lt(m, c(0.707106781186547524f));
  e = hn::Sub(e, hn::IfThenElseZero(small, c(1.0f)));
  x = hn::Add(hn::Sub(m, c(1.0f)), hn::IfThenElseZero(small, m));
  const auto z = hn::Mul(x, x);
  auto y = c(7.0376836292e-2f);
  for (const float next : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                           2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = hn::MulAdd(y, x, c(next));
  y = hn::MulAdd(hn::Mul(y, x), z, hn::Mul(e, c(-2.12194440e-4f)));
  y = hn::NegMulAdd(z, c(0.5f), y);
  return hn::MulAdd(e, c(0.693359375f), hn::Add(x, y));
}

// Sine and cosine of 0 <= x < 8192: Cephes' sinf and cosf, within 1 ulp.
template <class D, class V>
HWY_INLINE void SinCos(D d, V x, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  const auto c = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  auto octant = hn::ConvertTo(di, hn::Mul(x, c(1.27323954473516f)));
  octant = hn::And(hn::Add(octant, hn::Set(di, 1)), hn::Set(di, ~1));
  const auto y = hn::ConvertTo(d, octant);
  x = hn::MulAdd(y, c(-0.78515625f), x);
  x = hn::MulAdd(y, c(-2.4187564849853515625e-4f), x);
  x = hn::MulAdd(y, c(-3.77489497744594108e-8f), x);
  const auto z = hn::Mul(x, x);
  auto p = hn::MulAdd(c(2.443315711809948e-5f), z, c(-1.388731625493765e-3f));
  p = hn::MulAdd(p, z, c(4.166664568298827e-2f));
  p = hn::Add(hn::MulSub(hn::Mul(p, z), z, hn::Mul(z, c(0.5f))), c(1.0f));
  auto q = hn::MulAdd(c(-1.9515295891e-4f), z, c(8.3321608736e-3f));
  q = hn::MulAdd(q, z, c(-1.6666654611e-1f));
  q = hn::MulAdd(hn::Mul(q, z), x, x);
  const auto swap = hn::RebindMask(d, hn::Eq(hn::And(octant, hn::Set(di, 2)), hn::Set(di, 2)));
  const auto sine_sign = hn::BitCast(d, hn::ShiftLeft<29>(hn::And(octant, hn::Set(di, 4))));
  const auto cosine_sign = hn::BitCast(d, hn::ShiftLeft<29>(hn::And(hn::Add(octant, hn::Set(di, 2)), hn::Set(di, 4))));
  sine = hn::Xor(hn::IfThenElse(swap, p, q), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(swap, q, p), cosine_sign);
}

// A pair of uniform values to a pair of normal ones.
template <class D, class V>
HWY_INLINE void BoxMuller(D d, V& a, V& b, float mean, float std) {
  const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), Log(d, hn::Sub(hn::Set(d, 1.0f), a))));
  V sine, cosine;
  SinCos(d, hn::Mul(b, hn::Set(d, 6.283185307179586f)), sine, cosine);
  a = hn::MulAdd(hn::Mul(radius, cosine), hn::Set(d, std), hn::Set(d, mean));
  b = hn::MulAdd(hn::Mul(radius, sine), hn::Set(d, std), hn::Set(d, mean));
}

void NormalBlocks(float* HWY_RESTRICT data, int64_t blocks, float mean, float std) {
  const hn::CappedTag<float, 16> wide;
  if (hn::Lanes(wide) == 16) {  // two blocks at a time
    for (; blocks >= 2; blocks -= 2, data += 32) {
      const auto first = hn::LoadU(wide, data), second = hn::LoadU(wide, data + 16);
      auto a = hn::ConcatLowerLower(wide, second, first), b = hn::ConcatUpperUpper(wide, second, first);
      BoxMuller(wide, a, b, mean, std);
      hn::StoreU(hn::ConcatLowerLower(wide, b, a), wide, data);
      hn::StoreU(hn::ConcatUpperUpper(wide, b, a), wide, data + 16);
    }
  }
  const hn::CappedTag<float, 8> d;
  for (; blocks > 0; --blocks, data += 16)
    for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
      auto a = hn::LoadU(d, data + j), b = hn::LoadU(d, data + j + 8);
      BoxMuller(d, a, b, mean, std);
      hn::StoreU(a, d, data + j);
      hn::StoreU(b, d, data + j + 8);
    }
}

}  // namespace rush::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::simd {

HWY_EXPORT(Twist);
HWY_EXPORT(Temper);
HWY_EXPORT(UniformFloats);
HWY_EXPORT(BelowFloats);
HWY_EXPORT(BelowBytes);
HWY_EXPORT(NormalBlocks);

void twist(uint32_t* state) { HWY_DYNAMIC_DISPATCH(Twist)(state); }

void temper(const uint32_t* state, uint32_t* out, int64_t n) { HWY_DYNAMIC_DISPATCH(Temper)(state, out, n); }

void uniform(const uint32_t* draws, float* out, int64_t n, float from, float to) {
  HWY_DYNAMIC_DISPATCH(UniformFloats)(draws, out, n, from, to);
}

void below(const uint32_t* draws, float* out, int64_t n, uint64_t threshold) {
  HWY_DYNAMIC_DISPATCH(BelowFloats)(draws, out, n, threshold);
}

void below(const uint32_t* draws, uint8_t* out, int64_t n, uint64_t threshold) {
  HWY_DYNAMIC_DISPATCH(BelowBytes)(draws, out, n, threshold);
}

void normal(float* data, int64_t blocks, float mean, float std) {
  HWY_DYNAMIC_DISPATCH(NormalBlocks)(data, blocks, mean, std);
}

}  // namespace rush::simd
#endif
