// The two 16-bit floating-point types, BFloat16 and Half. They are for storage: both turn into float without being
// asked, so arithmetic on them is float arithmetic, and a float turns back by rounding to nearest even.
//
//   rush::Half h = 1.5f;      h += 2;      float f = h * h;
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rush {

/// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  constexpr BFloat16(float value) : bits(round(value)) {}
  constexpr operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

  static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 result(0.0f);
    result.bits = bits;
    return result;
  }

 private:
  static constexpr uint16_t round(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    if ((x & 0x7fffffff) > 0x7f800000)
      return static_cast<uint16_t>(x >> 16 | 0x40);  // rounding could make NaN infinity
    return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
};

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct Half {
  uint16_t bits;

  Half() = default;
  constexpr Half(float value) : bits(round(value)) {}
  constexpr operator float() const { return widen(bits); }

  static constexpr Half from_bits(uint16_t bits) {
    Half result(0.0f);
    result.bits = bits;
    return result;
  }

 private:
  static constexpr uint16_t round(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t sign = all >> 16 & 0x8000;
    uint32_t x = all & 0x7fffffff;
    if (x > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
    if (x >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 65536 and more; 65520 rounds to it below
    if (x < 0x38800000) {  // below 2^-14 the result is subnormal: adding 0.5 leaves it, rounded, in the low bits
      x = std::bit_cast<uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3f000000;
      return static_cast<uint16_t>(sign | x);
    }
    x = (x - (uint32_t{127 - 15} << 23) + 0xfff + (x >> 13 & 1)) >> 13;
    return static_cast<uint16_t>(sign | x);
  }

  static constexpr float widen(uint16_t bits) {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
  }
};

/// True for BFloat16 and Half.
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;

/// The type that arithmetic on T is done in: float for the half types, else T itself.
template <class T>
using compute_t = std::conditional_t<is_half_type<T>, float, T>;

template <class T>
requires is_half_type<T>
constexpr T& operator+=(T& a, float b) { return a = T(float(a) + b); }
template <class T>
requires is_half_type<T>
constexpr T& operator-=(T& a, float b) { return a = T(float(a) - b); }
template <class T>
requires is_half_type<T>
constexpr T& operator*=(T& a, float b) { return a = T(float(a) * b); }
template <class T>
requires is_half_type<T>
constexpr T& operator/=(T& a, float b) { return a = T(float(a) / b); }

static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16> && std::is_trivial_v<BFloat16>);
static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half> && std::is_trivial_v<Half>);

}  // namespace rush

/// Limits of the half types, as for float.
template <>
struct std::numeric_limits<rush::BFloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false,
                        is_iec559 = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_bounded = true;
  static constexpr int radix = 2, digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr int min_exponent = -125, max_exponent = 128;
  static constexpr rush::BFloat16 min() { return rush::BFloat16::from_bits(0x0080); }
  static constexpr rush::BFloat16 max() { return rush::BFloat16::from_bits(0x7f7f); }
  static constexpr rush::BFloat16 lowest() { return rush::BFloat16::from_bits(0xff7f); }
  static constexpr rush::BFloat16 denorm_min() { return rush::BFloat16::from_bits(0x0001); }
  static constexpr rush::BFloat16 epsilon() { return rush::BFloat16::from_bits(0x3c00); }
  static constexpr rush::BFloat16 infinity() { return rush::BFloat16::from_bits(0x7f80); }
  static constexpr rush::BFloat16 quiet_NaN() { return rush::BFloat16::from_bits(0x7fc0); }
};

template <>
struct std::numeric_limits<rush::Half> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, is_iec559 = true;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_bounded = true;
  static constexpr int radix = 2, digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, max_exponent = 16;
  static constexpr rush::Half min() { return rush::Half::from_bits(0x0400); }
  static constexpr rush::Half max() { return rush::Half::from_bits(0x7bff); }
  static constexpr rush::Half lowest() { return rush::Half::from_bits(0xfbff); }
  static constexpr rush::Half denorm_min() { return rush::Half::from_bits(0x0001); }
  static constexpr rush::Half epsilon() { return rush::Half::from_bits(0x1400); }
  static constexpr rush::Half infinity() { return rush::Half::from_bits(0x7c00); }
  static constexpr rush::Half quiet_NaN() { return rush::Half::from_bits(0x7e00); }
};
