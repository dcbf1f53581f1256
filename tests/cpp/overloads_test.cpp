// Overload sets called with as few arguments as they take: never ambiguous, and the first schema that fits.
#include <gtest/gtest.h>

#include "rushlight/ops.h"

namespace rush {
namespace {

TEST(Overloads, ConvolutionWithoutPadding) {
  EXPECT_EQ(conv1d(ones({1, 1, 5}), ones({1, 1, 3})).sizes(), Dims({1, 1, 3}));
  EXPECT_EQ(conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3})).sizes(), Dims({1, 1, 3, 3}));
  EXPECT_EQ(conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3}), ones({1})).sizes(), Dims({1, 1, 3, 3}));
  EXPECT_EQ(conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3}), {}, Ints({2})).sizes(), Dims({1, 1, 2, 2}));
  EXPECT_EQ(conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3}), {}, Ints({1}), "same").sizes(), Dims({1, 1, 5, 5}));
  EXPECT_EQ(conv3d(ones({1, 1, 3, 3, 3}), ones({1, 1, 3, 3, 3})).numel(), 1);
}

TEST(Overloads, ReductionsOfAllAndOfOneDimension) {
  const Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(max(x).item<int64_t>(), 5);
  EXPECT_EQ(max(x, 0)[1].sizes(), Dims({3}));
  EXPECT_EQ(max(x, x).sizes(), Dims({2, 3}));
  EXPECT_EQ(min(x).item<int64_t>(), 0);
  EXPECT_EQ(sum(x).item<int64_t>(), 15);
  EXPECT_EQ(any(x).dim(), 0);
  EXPECT_EQ(all(x).dim(), 0);
  EXPECT_EQ(median(x).dim(), 0);
  const Tensor y = cast(x, kFloat32);
  EXPECT_EQ(mean(y).dim(), 0);
  EXPECT_EQ(prod(y).dim(), 0);
  EXPECT_EQ(std(y).dim(), 0);
  EXPECT_EQ(var(y).dim(), 0);
  EXPECT_EQ(norm(y).dim(), 0);
}

TEST(Overloads, NumbersForTensors) {
  const Tensor x = full({2}, 3.0);
  EXPECT_EQ(pow(2, x).select(0, 0).item<double>(), 8);
  EXPECT_EQ(pow(x, 2).select(0, 0).item<double>(), 9);
  EXPECT_EQ(xlogy(0, x).select(0, 0).item<double>(), 0);
  EXPECT_EQ(lerp(x, x, 0.5).select(0, 0).item<double>(), 3);
}

TEST(Overloads, SplittingAndRepeating) {
  const Tensor x = arange(6);
  EXPECT_EQ(split(x, 2).size(), 3u);
  EXPECT_EQ(tensor_split(x, 4).size(), 4u);
  EXPECT_EQ(repeat_interleave(x, 2).numel(), 12);
  EXPECT_EQ(narrow(x, 0, 1, 2).numel(), 2);
  EXPECT_EQ(narrow(x, 0, full({}, 1, kInt64), 2).numel(), 2);
  EXPECT_EQ(where(x > 2).size(), 1u);
}

}  // namespace
}  // namespace rush
