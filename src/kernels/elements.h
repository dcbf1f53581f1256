// From one element type to another, for the CPU and for device code: the rules of conversion, and reading and writing
// an element whose type is known at run time only.
#pragma once
#include <complex>
#include <type_traits>

#include "kernels/math.h"
#include "rushlight/element.h"

namespace rush {

template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<std::complex<R>> = true;

template <class To, class From>
RUSH_FN To convert(From x) {
  if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      return To(typename To::value_type(x.real()), typename To::value_type(x.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return x.real() != 0 || x.imag() != 0;
    } else {
      return convert<To>(x.real());
    }
  } else if constexpr (is_half_type<From>) {
    return convert<To>(float(x));
  } else if constexpr (is_half_type<To>) {
    return To(float(x));
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return To(int32_t(x));
  } else {
    return To(x);
  }
}

/// Calls f.template operator()<T>() with the type that `t` names.
template <class F>
RUSH_FN auto with_type(DType t, const F& f) {
  switch (t) {
    case kBool:
      return f.template operator()<bool>();
    case kUInt8:
      return f.template operator()<uint8_t>();
    case kInt8:
      return f.template operator()<int8_t>();
    case kInt16:
      return f.template operator()<int16_t>();
    case kInt32:
      return f.template operator()<int32_t>();
    case kInt64:
      return f.template operator()<int64_t>();
    case kFloat16:
      return f.template operator()<Half>();
    case kBFloat16:
      return f.template operator()<BFloat16>();
    case kFloat32:
      return f.template operator()<float>();
    case kFloat64:
      return f.template operator()<double>();
    case kComplex64:
      return f.template operator()<std::complex<float>>();
    default:
      return f.template operator()<std::complex<double>>();
  }
}

template <class T>
RUSH_CALL T load_other(const void* data, DType t, int64_t i) {
  return with_type(t, [&]<class S>() { return convert<T>(static_cast<const S*>(data)[i]); });
}
template <class T>
RUSH_CALL void store_other(void* data, DType t, int64_t i, T x) {
  with_type(t, [&]<class S>() { static_cast<S*>(data)[i] = convert<S>(x); });
}
/// Element i of an array of type `t`, as a T.
template <class T>
RUSH_FN T load(const void* data, DType t, int64_t i) {
  return t == dtype_of<T> ? static_cast<const T*>(data)[i] : load_other<T>(data, t, i);
}
template <class T>
RUSH_FN void store(void* data, DType t, int64_t i, T x) {
  if (t == dtype_of<T>)
    static_cast<T*>(data)[i] = x;
  else
    store_other<T>(data, t, i, x);
}

}  // namespace rush
