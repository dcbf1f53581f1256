// Names of dtypes and devices, type promotion, numbers as text.
#include "rushlight/dtype.h"

#include <atomic>
#include <charconv>
#include <ostream>

namespace rush {

namespace {
constexpr std::string_view kNames[kDTypes] = {"bool",    "uint8",    "int8",    "int16",   "int32",     "int64",
                                              "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
constexpr std::string_view kScalarNames[kDTypes] = {"Bool",  "Byte",   "Char",         "Short",
                                                    "Int",   "Long",   "Half",         "BFloat16",
                                                    "Float", "Double", "ComplexFloat", "ComplexDouble"};
std::atomic<DType> default_float{kFloat32};
}  // namespace

std::string_view name_of(DType t) { return kNames[int(t)]; }
std::string_view scalar_name(DType t) { return kScalarNames[int(t)]; }
std::ostream& operator<<(std::ostream& out, DType t) { return out << "torch." << name_of(t); }

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == kComplex128 || b == kComplex128 || a == kFloat64 || b == kFloat64;
    return wide ? kComplex128 : kComplex64;
  }
  if (is_floating(a) && is_floating(b)) {
    if (is_half(a) && is_half(b)) return kFloat32;
    return std::max(a, b);
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == kBool) return b;
  if (b == kBool) return a;
  if (a == kUInt8 || b == kUInt8) {  // uint8 fits into int16 and wider
    const DType other = a == kUInt8 ? b : a;
    return other == kInt8 ? kInt16 : other;
  }
  return std::max(a, b);
}

DType default_dtype() { return default_float.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  check<TypeError>(is_floating(t), "only floating-point types are supported as the default type, got ", t);
  default_float = t;
}

Device::Device(std::string_view name) {
  const std::string whole(name);
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (kind == "cpu")
    type = DeviceType::CPU;
  else if (kind == "cuda")
    type = DeviceType::CUDA;
  else if (kind == "meta")
    type = DeviceType::Meta;
  else
    raise("Expected one of cpu, cuda, meta device type at start of device string: ", whole);
  if (colon == name.npos) return;
  const std::string_view number = name.substr(colon + 1);
  int value = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  check(error == std::errc() && end == number.data() + number.size() && value >= 0 && value < 128,
        "Invalid device string: '", whole, "'");
  index = int8_t(value);
}

std::ostream& operator<<(std::ostream& out, Device d) {
  constexpr const char* names[] = {"cpu", "cuda", "meta"};
  out << names[int(d.type)];
  if (d.index >= 0) out << ':' << int(d.index);
  return out;
}

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool:
      return kBool;
    case Kind::Int:
      return kInt64;
    case Kind::Float:
      return default_dtype();
    default:
      return complex_of(default_dtype());
  }
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return out << (s.to<bool>() ? "True" : "False");
    case Scalar::Kind::Int:
      return out << s.to_int();
    case Scalar::Kind::Float:
      return out << s.to_double();
    default:
      return out << s.to_complex();
  }
}

}  // namespace rush
