// Text of tensors in C++; the table of what PyTorch prints is tests/python/test_print.py.
#include "rushlight/print.h"

#include <gtest/gtest.h>

#include "rushlight/ops.h"

namespace rush {
namespace {

std::string text_of(const Tensor& t) { return text(t); }

TEST(Print, Numbers) {
  EXPECT_EQ(text_of(reshape(arange(1, 5, 1, kFloat32), {2, 2})),
            "tensor([[1., 2.],\n"
            "        [3., 4.]])");
  EXPECT_EQ(text_of(arange(3)), "tensor([0, 1, 2])");
  EXPECT_EQ(text_of(full({}, -1.5)), "tensor(-1.5000)");
  EXPECT_EQ(text_of(full({2}, true)), "tensor([True, True])");
  EXPECT_EQ(text_of(full({1}, std::complex<double>(1, -2))), "tensor([1.-2.j])");
  EXPECT_EQ(text_of(full({1}, 1e-5, kFloat64)), "tensor([1.0000e-05], dtype=torch.float64)");
  EXPECT_EQ(text_of(arange(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
}

TEST(Print, Notes) {
  EXPECT_EQ(text_of(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(text_of(empty({0})), "tensor([])");
  EXPECT_EQ(text_of(empty({0, 3}, kInt64)), "tensor([], size=(0, 3), dtype=torch.int64)");
  EXPECT_EQ(text_of(empty({2}, kFloat32, {}, kMeta)), "tensor(..., device='meta', size=(2,))");
  const Tensor leaf = ones({1}).requires_grad_();
  EXPECT_EQ(text_of(leaf), "tensor([1.], requires_grad=True)");
  EXPECT_EQ(text_of(leaf + leaf), "tensor([2.], grad_fn=<AddBackward0>)");
}

TEST(Print, Options) {
  const PrintOptions before = print_options();
  print_options() = PrintOptions::profile("short");
  EXPECT_EQ(text_of(full({2}, 0.125)), "tensor([0.12, 0.12])");
  print_options().sci_mode = true;
  EXPECT_EQ(text_of(full({1}, 2.)), "tensor([2.00e+00])");
  print_options() = before;
  EXPECT_THROW(PrintOptions::profile("long"), ValueError);
}

}  // namespace
}  // namespace rush
