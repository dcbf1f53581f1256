// Folds over every layout, against plain loops.
#include <gtest/gtest.h>

#include "kernels/cpu/reductions.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

using namespace rush;

namespace {

/// 0, 1, ... as floats, moved about so that neighbours differ.
Tensor numbers(Dims sizes) {
  Tensor x = allocate({sizes, kFloat32});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = float((i * 7919) % 1009) - 500;
  return x;
}
double at(const Tensor& x, Ints index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * x.strides()[d];
  return double(x.data<float>()[offset]);
}
/// The sum over dims, element by element.
Tensor plain_sum(const Tensor& x, const Dims& dims, Tensor out) {
  std::fill_n(out.data<float>(), out.numel(), 0.0f);
  std::vector<double> sums(size_t(out.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    Dims index(size_t(x.dim()));
    int64_t rest = i, o = 0;
    for (int64_t d = x.dim(); d-- > 0;) index[size_t(d)] = rest % x.sizes()[d], rest /= x.sizes()[d];
    for (int64_t d = 0; d < x.dim(); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) o = o * x.sizes()[d] + index[size_t(d)];
    sums[size_t(o)] += at(x, index);
  }
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = float(sums[size_t(i)]);
  return out;
}

}  // namespace

TEST(Reductions, EveryLayout) {
  const Tensor base = numbers({5, 70, 3, 130});
  for (const Tensor& x :
       {base, permute(base, {3, 1, 0, 2}), permute(base, {2, 0, 3, 1}), expand(narrow(base, 2, 1, 1), {5, 70, 3, 130})})
    for (int mask = 1; mask < 16; ++mask) {
      Dims dims, left;
      for (int64_t d = 0; d < 4; ++d) (mask >> d & 1 ? dims : left).push_back(mask >> d & 1 ? d : x.sizes()[d]);
      const Tensor got = sum(x, Ints(dims)), want = plain_sum(x, dims, allocate({left, kFloat32}));
      for (int64_t i = 0; i < got.numel(); ++i)
        ASSERT_FLOAT_EQ(got.data<float>()[i], want.data<float>()[i]) << mask << " " << x.strides();
    }
}

TEST(Reductions, ThreadsDoNotChangeBits) {
  const Tensor x = numbers({3000, 700}) / 3;
  const int threads = num_threads();
  for (const Dims& dims : {Dims{0}, Dims{1}, Dims{0, 1}}) {
    set_num_threads(1);
    const Tensor one = sum(x, Ints(dims)), spread = rush::std(x, Ints(dims), true);
    set_num_threads(4);
    EXPECT_TRUE(equal(one, sum(x, Ints(dims))));
    EXPECT_TRUE(equal(spread, rush::std(x, Ints(dims), true)));
  }
  set_num_threads(threads);
}

TEST(Reductions, SumsOfManyFloatsAreExact) {
  const Tensor x = full({1 << 24}, 0.1, kFloat32);
  EXPECT_FLOAT_EQ(sum(x).item<float>(), float(double(0.1f) * (1 << 24)));
}

TEST(Reductions, NanIsLargestAndSmallest) {
  Tensor x = numbers({300, 200});
  x.data<float>()[77 * 200 + 5] = std::nanf("");
  EXPECT_TRUE(std::isnan(max(x).item<double>()));
  EXPECT_TRUE(std::isnan(min(x).item<double>()));
  EXPECT_EQ(argmax(x).item<int64_t>(), 77 * 200 + 5);
  EXPECT_EQ(rush::select(max(x, 0)[1], 0, 5).item<int64_t>(), 77);
  EXPECT_EQ(rush::select(min(x, 1)[1], 0, 77).item<int64_t>(), 5);
}
