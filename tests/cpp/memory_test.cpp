// Conversions, and what changes a tensor's own memory. The table tests in Python go further.
#include <gtest/gtest.h>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

TEST(Memory, ToGivesItselfWhereNothingChanges) {
  const Tensor x = ones({2});
  EXPECT_TRUE(to(x, kFloat32).is_same(x));
  EXPECT_TRUE(to_float(x).is_same(x));
  EXPECT_TRUE(to(x, Device(kCPU)).is_same(x));
  EXPECT_FALSE(to(x, kFloat32, false, true).is_same(x));
  EXPECT_EQ(to_half(x).dtype(), kFloat16);
  EXPECT_EQ(type_as(x, arange(3)).dtype(), kInt64);
  EXPECT_TRUE(to(x, Device(kMeta)).is_meta());
  EXPECT_THROW(to(to(x, Device(kMeta)), Device(kCPU)), NotImplementedError);
}

TEST(Memory, GradientGoesBackThroughConversion) {
  Tensor x = ones({3}).requires_grad_();
  sum(to_double(x) * 3).backward();
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(sum(x.grad()).item<double>(), 9);
}

TEST(Memory, ConjugateAndParts) {
  const Tensor z = full({2}, std::complex<double>(1, 2));
  EXPECT_EQ(sum(imag(conj(z))).item<double>(), -4);
  EXPECT_THROW(imag(ones({1})), Error);
}

TEST(Memory, ResizeAndSet) {
  const Tensor x = arange(6), same = resize_(x, {2, 2});
  EXPECT_TRUE(same.is_same(x));
  EXPECT_EQ(x.sizes(), Dims({2, 2}));
  const Tensor y = arange(8);
  set_(x, y, 2, {3});
  EXPECT_EQ(sum(x).item<int64_t>(), 2 + 3 + 4);
  EXPECT_THROW(resize_(ones({2}).requires_grad_(), {3}), Error);
}

}  // namespace
}  // namespace rush
