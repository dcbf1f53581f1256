// Every operator as a C++ function: rush::add(a, b), rush::max(x, 0). The index files are the list; op.h says how a
// line becomes a function. After them, what C++ users write with symbols.
#pragma once
#include "rushlight/op.h"

namespace rush {

#define OP(name, ...) extern const Op<__VA_ARGS__> name;
#include "rushlight/ops/all.def"
#undef OP

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }

/// The in-place form of an operator: `in_place(add, x, y)` is Python's x.add_(y). Returns x.
template <Text S, class... A>
Tensor& in_place(const Op<S>& op, Tensor& self, const A&... rest) {
  static constexpr const Schema& schema = schema_of<S>;
  static_assert(1 + sizeof...(A) <= schema.count, "too many arguments");
  Value args[schema.count] = {Value(self), Value(rest)...};
  for (size_t i = 1 + sizeof...(A); i < schema.count; ++i) args[i] = op.template overload<0>().defaults[i];
  dispatch_in_place(op.template overload<0>(), args);
  return self;
}

}  // namespace rush
