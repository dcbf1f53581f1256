// Subscripts as C++ values, and what Python's x[...] and x[...] = v do.
//
//   using namespace rush::indexing;
//   Tensor column = get(x, {Ellipsis, 0}), rows = get(x, {Slice(1, None, 2)}), picked = get(x, {index, None});
//   set(x, {Slice(), 3}, 0.5);
#pragma once
#include <span>

#include "rushlight/tensor.h"

namespace rush::indexing {

/// A new dimension of size 1 as an index; an absent bound in a Slice.
inline constexpr std::nullopt_t None = std::nullopt;

struct EllipsisType {};
/// As many full slices as the tensor has dimensions left.
inline constexpr EllipsisType Ellipsis;

/// start:stop:step, bounds clipped as Python's are; the step is positive.
struct Slice {
  Slice(OptInt start = {}, OptInt stop = {}, OptInt step = {}) : start(start), stop(stop), step(step) {}
  OptInt start, stop, step;
};

/// One subscript: an integer, a Slice, None, Ellipsis, a bool or a tensor of integers, or of bools as a mask.
class Index {
 public:
  enum class Kind : uint8_t { Int, Slice, None, Ellipsis, Bool, Tensor };
  Index(int64_t i) : kind_(Kind::Int), integer_(i) {}
  Index(int i) : Index(int64_t(i)) {}
  Index(bool b) : kind_(Kind::Bool), integer_(b) {}
  Index(std::nullopt_t) : kind_(Kind::None) {}
  Index(EllipsisType) : kind_(Kind::Ellipsis) {}
  Index(const Slice& s) : kind_(Kind::Slice), slice_(s) {}
  Index(Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}
  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

/// x[indices]: a view unless there is a bool or a tensor with dimensions among the indices. Throws IndexError for an
/// index outside its dimension, for more indices than dimensions and for index tensors that do not broadcast;
/// ValueError for a step that is not positive.
Tensor get(const Tensor& x, std::span<const Index> indices);
inline Tensor get(const Tensor& x, std::initializer_list<Index> indices) {
  return get(x, std::span(indices.begin(), indices.size()));
}

/// x[indices] = value, which is broadcast to the shape of x[indices]. A number takes x's dtype. Throws as `get` does,
/// and Error where the shapes do not broadcast.
void set(const Tensor& x, std::span<const Index> indices, const Tensor& value);
inline void set(const Tensor& x, std::initializer_list<Index> indices, const Tensor& value) {
  set(x, std::span(indices.begin(), indices.size()), value);
}

}  // namespace rush::indexing
