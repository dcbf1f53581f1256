// Element types, devices and memory formats, and PyTorch's rules for which type a mixed operation has.
#pragma once
#include <complex>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

#include "rushlight/element.h"
#include "rushlight/error.h"

namespace rush {

/// PyTorch's name without "torch.": "float32".
std::string_view name_of(DType t);
/// PyTorch's name in messages about types: "Float", "Long", "ComplexFloat".
std::string_view scalar_name(DType t);
std::ostream& operator<<(std::ostream& out, DType t);

/// The smallest type that holds both in PyTorch's lattice: promote(kInt64, kFloat16) is kFloat16.
DType promote(DType a, DType b);
/// Whether a result of type `from` may be written to a tensor of type `to` (complex to real, float to integral and
/// non-bool to bool may not).
constexpr bool can_cast(DType from, DType to) {
  return !(is_complex(from) && !is_complex(to)) && !(!is_integral(from) && is_integral(to)) &&
         !(from != kBool && to == kBool);
}

/// float32 unless set_default_dtype changed it.
DType default_dtype();
void set_default_dtype(DType t);

// The visitors call f.template operator()<T>() with the C++ type of `t`, and raise for a type outside their set:
//   for_floating(x.dtype(), [&]<class T>() { kernel(x.data<T>()); });
// clang-format off
#define RUSH_CASE(type) \
  case dtype_of<type>:  \
    return f.template operator()<type>();
template <class F>
decltype(auto) for_all(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(bool)
    RUSH_CASE(uint8_t)
    RUSH_CASE(int8_t) RUSH_CASE(int16_t) RUSH_CASE(int32_t) RUSH_CASE(int64_t) RUSH_CASE(Half) RUSH_CASE(BFloat16)
        RUSH_CASE(float) RUSH_CASE(double) RUSH_CASE(std::complex<float>) RUSH_CASE(std::complex<double>)
  }
  raise("unknown dtype");
}
template <class F>
decltype(auto) for_real(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(bool)
    RUSH_CASE(uint8_t)
    RUSH_CASE(int8_t) RUSH_CASE(int16_t) RUSH_CASE(int32_t) RUSH_CASE(int64_t) RUSH_CASE(Half) RUSH_CASE(BFloat16)
        RUSH_CASE(float) RUSH_CASE(double) default
        : raise<NotImplementedError>("not implemented for '", scalar_name(t), "': needs a real dtype");
  }
}
template <class F>
decltype(auto) for_floating(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(Half)
    RUSH_CASE(BFloat16)
    RUSH_CASE(float) RUSH_CASE(double) default
        : raise<NotImplementedError>("not implemented for '", scalar_name(t), "': needs a floating-point dtype");
  }
}
template <class F>
decltype(auto) for_floating_or_complex(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(Half)
    RUSH_CASE(BFloat16)
    RUSH_CASE(float) RUSH_CASE(double) RUSH_CASE(std::complex<float>) RUSH_CASE(std::complex<double>) default
        : raise<NotImplementedError>("not implemented for '", scalar_name(t),
                                     "': needs a floating-point or complex dtype");
  }
}
template <class F>
decltype(auto) for_integral(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(bool)
    RUSH_CASE(uint8_t)
    RUSH_CASE(int8_t) RUSH_CASE(int16_t) RUSH_CASE(int32_t) RUSH_CASE(int64_t) default
        : raise<NotImplementedError>("not implemented for '", scalar_name(t), "': needs an integral dtype");
  }
}
/// The index types, int32 and int64.
template <class F>
decltype(auto) for_index(DType t, F&& f) {
  switch (t) {
    RUSH_CASE(int32_t)
    RUSH_CASE(int64_t) default : raise<IndexError>("expected indices of dtype int32 or int64, got ", name_of(t));
  }
}
/// By size only, for kernels that move elements without looking at them: 1, 2, 4, 8 or 16 bytes.
template <class F>
decltype(auto) for_bytes(DType t, F&& f) {
  struct alignas(16) Sixteen {
    uint64_t half[2];
  };
  switch (size_of(t)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Sixteen>();
  }
}
#undef RUSH_CASE
// clang-format on

enum class DeviceType : int8_t { CPU, CUDA, Meta };

/// Where a tensor's memory lies. An index of -1 stands for the current device of the type.
struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;
  constexpr Device() = default;
  constexpr Device(DeviceType t, int i = -1) : type(t), index(int8_t(i)) {}
  /// "cpu", "cuda", "cuda:1", "meta". Throws Error for anything else.
  explicit Device(std::string_view name);
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_cuda() const { return type == DeviceType::CUDA; }
  bool is_meta() const { return type == DeviceType::Meta; }
};
inline constexpr Device kCPU{DeviceType::CPU}, kMeta{DeviceType::Meta};
std::ostream& operator<<(std::ostream& out, Device d);

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// A Python number: bool, int, float or complex.
class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };
  constexpr Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  constexpr Scalar(int v) : kind_(Kind::Int), int_(v) {}
  constexpr Scalar(int64_t v) : kind_(Kind::Int), int_(v) {}
  constexpr Scalar(long long v) : kind_(Kind::Int), int_(v) {}
  constexpr Scalar(float v) : kind_(Kind::Float), float_(v) {}
  constexpr Scalar(double v) : kind_(Kind::Float), float_(v) {}
  constexpr Scalar(std::complex<double> v) : kind_(Kind::Complex), float_(v.real()), imag_(v.imag()) {}
  constexpr Scalar(std::complex<float> v) : Scalar(std::complex<double>(v)) {}
  constexpr Scalar(Half v) : Scalar(float(v)) {}
  constexpr Scalar(BFloat16 v) : Scalar(float(v)) {}
  constexpr Kind kind() const { return kind_; }
  constexpr bool is_bool() const { return kind_ == Kind::Bool; }
  constexpr bool is_int() const { return kind_ <= Kind::Int; }
  constexpr bool is_float() const { return kind_ == Kind::Float; }
  constexpr bool is_complex() const { return kind_ == Kind::Complex; }
  /// The value as T. Floats truncate to integers; the imaginary part is dropped for a real T.
  template <class T>
  constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_int() ? int_ != 0 : float_ != 0 || (is_complex() && imag_ != 0);
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      using R = typename T::value_type;
      return is_int() ? T(R(int_)) : T(R(float_), is_complex() ? R(imag_) : R(0));
    } else if constexpr (std::is_integral_v<T>) {
      return is_int() ? T(int_) : T(int64_t(float_));
    } else {
      return is_int() ? T(double(int_)) : T(float_);
    }
  }
  double to_double() const { return to<double>(); }
  int64_t to_int() const { return to<int64_t>(); }
  std::complex<double> to_complex() const { return to<std::complex<double>>(); }
  bool operator==(const Scalar& o) const {
    return is_int() && o.is_int() ? int_ == o.int_ : to_complex() == o.to_complex();
  }
  /// The type that a tensor made of this number has: bool, int64, the default float type or its complex type.
  DType dtype() const;

 private:
  Kind kind_;
  union {
    int64_t int_;
    double float_;
  };
  double imag_ = 0;
};
std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace rush
