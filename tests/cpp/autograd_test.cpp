// Autograd against closed forms: values, second derivatives, in-place changes, views, errors.
#include "rushlight/autograd.h"

#include <gtest/gtest.h>

#include "rushlight/ops.h"

namespace rush {
namespace {

Tensor scalar(double v) { return full({}, v); }
Tensor numbers(std::initializer_list<double> values) {
  Tensor t = empty({int64_t(values.size())});
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
std::vector<double> list(const Tensor& t) {
  const Tensor c = contiguous(cast(t.detach(), kFloat64));
  return {c.data<double>(), c.data<double>() + c.numel()};
}
using V = std::vector<double>;

TEST(Autograd, SecondDerivativeOfCube) {
  Tensor x = scalar(3).requires_grad_();
  const Tensor y = x * x * x;
  const Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
  EXPECT_EQ(g.item<double>(), 27);
  EXPECT_EQ(autograd::grad({g}, {x})[0].item<double>(), 18);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, LeavesAccumulate) {
  Tensor x = numbers({1, 2, 3}).requires_grad_();
  for (int i = 1; i <= 2; ++i) {
    sum(x * 2).backward();
    EXPECT_EQ(list(x.grad()), V({2. * i, 2. * i, 2. * i}));
  }
}

TEST(Autograd, BroadcastIsUndone) {
  Tensor a = ones({3, 1}).requires_grad_(), b = ones({1, 4}).requires_grad_();
  sum(a + b * 2).backward();
  EXPECT_EQ(list(a.grad()), V(3, 4));
  EXPECT_EQ(list(b.grad()), V(4, 6));
}

TEST(Autograd, InPlaceOnResult) {
  Tensor x = numbers({1, 2}).requires_grad_();
  Tensor y = x * 3;
  in_place(mul, y, x);  // 3 x^2
  sum(y).backward();
  EXPECT_EQ(list(x.grad()), V({6, 12}));
}

TEST(Autograd, InPlaceOnViewReachesBase) {
  Tensor x = numbers({1, 2, 3}).requires_grad_();
  Tensor y = x * 1;
  Tensor part = slice(y, 0, 1, 3);
  in_place(mul, part, Tensor(10));
  EXPECT_EQ(list(y), V({1, 20, 30}));
  sum(y * y).backward();
  EXPECT_EQ(list(x.grad()), V({2, 400, 600}));
}

TEST(Autograd, ViewSeesChangeOfBase) {
  Tensor x = numbers({1, 2}).requires_grad_();
  Tensor y = x * 1;
  const Tensor part = select(y, 0, 1);
  in_place(mul, y, Tensor(5));
  part.backward();
  EXPECT_EQ(list(x.grad()), V({0, 5}));
}

TEST(Autograd, WriteIntoPlainTensor) {
  Tensor buffer = zeros({3});
  Tensor w = scalar(2).requires_grad_();
  Tensor place = select(buffer, 0, 1);
  in_place(copy, place, w);
  EXPECT_TRUE(buffer.requires_grad());
  sum(buffer * 4).backward();
  EXPECT_EQ(w.grad().item<double>(), 4);
}

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(AutogradErrors, SayWhatIsWrong) {
  Tensor x = numbers({1, 2}).requires_grad_();
  EXPECT_NE(message([&] { in_place(add, x, Tensor(1)); }).find("a leaf Variable that requires grad"),
            std::string::npos);
  EXPECT_NE(message([&] { (x * 2).backward(); }).find("only for scalar outputs"), std::string::npos);
  EXPECT_NE(message([&] { numbers({1}).backward(); }).find("does not require grad"), std::string::npos);
  const Tensor y = sum(x * x);
  y.backward();
  EXPECT_NE(message([&] { y.backward(); }).find("a second time"), std::string::npos);
  Tensor h = x * 2;
  const Tensor z = sum(h * h);
  in_place(add, h, Tensor(1));
  const std::string changed = message([&] { z.backward(); });
  EXPECT_NE(changed.find("modified by an inplace operation"), std::string::npos) << changed;
  EXPECT_NE(changed.find("mul"), std::string::npos) << changed;
  EXPECT_NE(message([&] { ones({2, 3}) + ones({4, 3}); }).find("must match the size of tensor"), std::string::npos);
}

TEST(Autograd, DeepGraphsAreFreedWithoutRecursion) {
  Tensor x = scalar(1).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = y + x;
  y.backward();
  EXPECT_EQ(x.grad().item<double>(), 200001);
}

TEST(Autograd, HooksChangeAndSeeGradients) {
  Tensor x = scalar(2).requires_grad_();
  Tensor y = x * 3;
  retain_grad(y);
  double seen = 0;
  register_hook(y, [&](const Tensor& g) {
    seen = g.item<double>();
    return g * 10;
  });
  (y * y).backward();
  EXPECT_EQ(seen, 12);
  EXPECT_EQ(y.grad().item<double>(), 120);
  EXPECT_EQ(x.grad().item<double>(), 360);
}

}  // namespace
}  // namespace rush
