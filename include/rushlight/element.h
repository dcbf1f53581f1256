// The element types by themselves: a header that device code includes too. What is said about them is in dtype.h.
#pragma once
#include <complex>
#include <cstdint>

#include "rushlight/half.h"

namespace rush {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
};
inline constexpr int kDTypes = 12;

inline constexpr DType kBool = DType::Bool, kUInt8 = DType::UInt8, kInt8 = DType::Int8, kInt16 = DType::Int16,
                       kInt32 = DType::Int32, kInt64 = DType::Int64, kFloat16 = DType::Float16,
                       kBFloat16 = DType::BFloat16, kFloat32 = DType::Float32, kFloat64 = DType::Float64,
                       kComplex64 = DType::Complex64, kComplex128 = DType::Complex128;

/// Bytes of one element.
constexpr int64_t size_of(DType t) {
  constexpr int64_t sizes[kDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[int(t)];
}
constexpr bool is_complex(DType t) { return t >= DType::Complex64; }
constexpr bool is_floating(DType t) { return t >= DType::Float16 && t <= DType::Float64; }
constexpr bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
/// Integers, bool included.
constexpr bool is_integral(DType t) { return t <= DType::Int64; }
constexpr bool is_signed(DType t) { return t != DType::Bool && t != DType::UInt8; }
/// Only these can have gradients.
constexpr bool is_differentiable(DType t) { return t >= DType::Float16; }
/// The real type of a complex type's parts; any other type itself.
constexpr DType real_of(DType t) { return t == kComplex64 ? kFloat32 : t == kComplex128 ? kFloat64 : t; }
/// The complex type whose parts have this type (float16 and bfloat16 widen to complex64).
constexpr DType complex_of(DType t) { return is_complex(t) ? t : t == kFloat64 ? kComplex128 : kComplex64; }

template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(!sizeof(T), "not an element type");
  return kBool;
}();
template <>
inline constexpr DType dtype_of<bool> = kBool;
template <>
inline constexpr DType dtype_of<uint8_t> = kUInt8;
template <>
inline constexpr DType dtype_of<int8_t> = kInt8;
template <>
inline constexpr DType dtype_of<int16_t> = kInt16;
template <>
inline constexpr DType dtype_of<int32_t> = kInt32;
template <>
inline constexpr DType dtype_of<int64_t> = kInt64;
template <>
inline constexpr DType dtype_of<Half> = kFloat16;
template <>
inline constexpr DType dtype_of<BFloat16> = kBFloat16;
template <>
inline constexpr DType dtype_of<float> = kFloat32;
template <>
inline constexpr DType dtype_of<double> = kFloat64;
template <>
inline constexpr DType dtype_of<std::complex<float>> = kComplex64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = kComplex128;

}  // namespace rush
