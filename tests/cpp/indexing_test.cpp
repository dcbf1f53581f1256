// Subscripts from C++: views, advanced indices, assignment, gradients. The table tests compare with PyTorch.
#include "rushlight/indexing.h"

#include <gtest/gtest.h>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

using namespace indexing;
using V = std::vector<double>;

Tensor count(Ints sizes) { return view(cast(arange(product(sizes)), kFloat32), sizes); }
Tensor integers(std::initializer_list<int64_t> values) {
  Tensor t = empty({int64_t(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}
V list(const Tensor& t) {
  const Tensor c = contiguous(cast(t.detach(), kFloat64));
  return {c.data<double>(), c.data<double>() + c.numel()};
}
Dims sizes(const Tensor& t) { return t.sizes(); }

TEST(Indexing, BasicSubscriptsAreViews) {
  const Tensor x = count({3, 4});
  const Tensor part = get(x, {Slice(0, None, 2), None, -1});
  EXPECT_EQ(sizes(part), Dims({2, 1}));
  EXPECT_EQ(list(part), V({3, 11}));
  EXPECT_EQ(part.storage(), x.storage());
  EXPECT_EQ(list(get(x, {Ellipsis, 0})), V({0, 4, 8}));
  EXPECT_EQ(sizes(get(x, {Slice(5, 9)})), Dims({0, 4}));
}

TEST(Indexing, TensorsPickAndTheirDimensionsMove) {
  const Tensor x = count({2, 3, 4, 5}), i = integers({0, 1});
  EXPECT_EQ(sizes(get(x, {i, Slice(), i})), Dims({2, 3, 5}));
  EXPECT_EQ(sizes(get(x, {Slice(), i, i})), Dims({2, 2, 5}));
  EXPECT_EQ(sizes(get(x, {Slice(), i, Slice(), i})), Dims({2, 2, 4}));
  EXPECT_EQ(sizes(get(x, {true, i})), Dims({2, 3, 4, 5}));
  EXPECT_EQ(list(get(count({3, 4}), {integers({2, -3}), integers({1, 0})})), V({9, 0}));
}

TEST(Indexing, AssignmentWritesThroughViewsAndMasks) {
  Tensor x = count({2, 3});
  set(x, {x > 3}, -1);
  EXPECT_EQ(list(x), V({0, 1, 2, 3, -1, -1}));
  set(x, {Slice(), integers({0, 2})}, count({1, 1, 2, 2}));
  EXPECT_EQ(list(x), V({0, 1, 1, 2, -1, 3}));
}

TEST(Indexing, GradientsReachTheWhole) {
  Tensor x = count({2, 3}).requires_grad_();
  sum(get(x, {1, Slice(1, None)}) * 2 + get(x, {integers({0, 0}), integers({1, 1})})).backward();
  EXPECT_EQ(list(x.grad()), V({0, 2, 0, 0, 2, 2}));
  Tensor v = count({2}).requires_grad_();
  Tensor y = zeros({3});
  set(y, {integers({2, 0})}, v);
  sum(y * count({3})).backward();
  EXPECT_EQ(list(v.grad()), V({2, 0}));
}

TEST(Indexing, BadIndicesAreIndexErrors) {
  const Tensor x = count({3, 4});
  EXPECT_THROW(get(x, {0, 0, 0}), IndexError);
  EXPECT_THROW(get(x, {Slice(), 4}), IndexError);
  EXPECT_THROW(get(x, {integers({3})}), IndexError);
  EXPECT_THROW(get(x, {integers({0, 1}), integers({0, 1, 2})}), IndexError);
  EXPECT_THROW(get(x, {x > 0, 0}), IndexError);
  EXPECT_THROW(get(x, {Slice(None, None, -1)}), ValueError);
  EXPECT_THROW(set(x, {integers({0, 1})}, count({5})), Error);
}

}  // namespace
}  // namespace rush
