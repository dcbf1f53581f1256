// CRC-32 by carry-less multiplication: 64 bytes a step are folded onto the next 64, which leaves the remainder as it is
// (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009). What is left at the
// end, and what is short, goes through a table. A checkpoint is then written as fast as the file takes it.
#include <array>
#include <cstring>

#include "serialize/zip.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "serialize/crc32.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef RUSH_CRC32_CPP
#define RUSH_CRC32_CPP
namespace rush::serialize {
namespace {

/// x times a polynomial, modulo that of CRC-32. The bit of the highest power is the lowest, as everywhere here.
constexpr uint32_t times_x(uint32_t r) { return r >> 1 ^ (r & 1 ? 0xedb88320u : 0); }

/// x^n, in the place where a product of two such polynomials needs a factor.
consteval uint64_t power(int n) {
  uint32_t r = 0x80000000u;
  for (int i = 0; i < n; ++i) r = times_x(r);
  return uint64_t(r) << 1;
}

constexpr auto kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = times_x(table[i]);
  }
  return table;
}();

uint32_t by_table(uint32_t c, const uint8_t* p, size_t size) {
  for (; size > 0; --size) c = c >> 8 ^ kTable[(c ^ *p++) & 0xff];
  return c;
}

}  // namespace
}  // namespace rush::serialize
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::serialize {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The register after p's bytes, of which there are at least 64; `p` and `size` move on to what is left.
uint32_t fold(uint32_t c, const uint8_t*& p, size_t& size) {
  const hn::FixedTag<uint64_t, 2> d;
  using V = hn::Vec<decltype(d)>;
  const hn::FixedTag<uint8_t, 16> bytes;
  const auto load = [&](const uint8_t* from) { return hn::BitCast(d, hn::LoadU(bytes, from)); };
  const auto pair = [&](uint64_t low, uint64_t high) {
    const uint64_t both[2] = {low, high};
    return hn::LoadU(d, both);
  };
  const auto onto = [](V x, V k, V next) { return hn::Xor(hn::Xor(hn::CLMulLower(x, k), hn::CLMulUpper(x, k)), next); };
  const V far = pair(power(512 + 32), power(512 - 32)), near = pair(power(128 + 32), power(128 - 32));
  V a = hn::Xor(load(p), pair(c, 0)), b = load(p + 16), e = load(p + 32), f = load(p + 48);
  for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
    a = onto(a, far, load(p));
    b = onto(b, far, load(p + 16));
    e = onto(e, far, load(p + 32));
    f = onto(f, far, load(p + 48));
  }
  uint8_t rest[16];
  hn::StoreU(hn::BitCast(bytes, onto(onto(onto(a, near, b), near, e), near, f)), bytes, rest);
  return by_table(0, rest, 16);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::serialize
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::serialize {
namespace {
HWY_EXPORT(fold);
}  // namespace

uint32_t crc32(const void* data, size_t size) {
  uint32_t c = ~0u;
  const auto* p = static_cast<const uint8_t*>(data);
  if (size >= 64) c = HWY_DYNAMIC_DISPATCH(fold)(c, p, size);
  return ~by_table(c, p, size);
}

}  // namespace rush::serialize
#endif
