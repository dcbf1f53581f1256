// Multi-tensor steps against the same formulas written for one number in double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rushlight/optim/steps.h"

namespace rush {
namespace {

/// A tensor whose element i is f(i), in row-major order, with the given strides.
template <class F>
Tensor made(DType dtype, const Dims& sizes, const Dims& strides, const F& f) {
  Tensor t = allocate({.sizes = sizes, .dtype = dtype, .strides = strides});
  for_floating(dtype, [&]<class T>() {
    for (int64_t i = 0; i < t.numel(); ++i) {
      int64_t offset = 0, rest = i;
      for (int64_t d = t.dim() - 1; d >= 0; --d) {
        offset += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      t.data<T>()[offset] = static_cast<T>(float(f(i)));
    }
  });
  return t;
}

double element(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    offset += i % t.size(d) * t.stride(d);
    i /= t.size(d);
  }
  return for_floating(t.dtype(), [&]<class T>() { return double(t.data<T>()[offset]); });
}

struct Layout {
  Dims sizes, param, grad;
};
const std::vector<Layout> layouts = {
    {{}, {}, {}},
    {{7}, {1}, {1}},
    {{3, 5}, {5, 1}, {1, 3}},  // a transposed gradient
    {{3, 5}, {1, 3}, {1, 3}},
    {{0, 4}, {4, 1}, {4, 1}},
    {{4, 3}, {6, 2}, {3, 1}},  // a parameter with gaps
    {{70000}, {1}, {1}},       // several pieces
};

double tolerance(DType t) { return t == kFloat64 ? 1e-6 : t == kFloat32 ? 1e-5 : t == kFloat16 ? 4e-3 : 3e-2; }
double start(int64_t i) { return std::sin(double(i)); }
double slope(int64_t i) { return std::cos(double(i) * 3); }

class OptimSteps : public testing::TestWithParam<DType> {
 protected:
  std::vector<Tensor> all(bool grad, double (*f)(int64_t)) const {
    std::vector<Tensor> result;
    for (const Layout& l : layouts) result.push_back(made(GetParam(), l.sizes, grad ? l.grad : l.param, f));
    return result;
  }
};

TEST_P(OptimSteps, Sgd) {
  for (const bool nesterov : {false, true}) {
    std::vector<Tensor> params = all(false, start), grads = all(true, slope), buffers = all(true, start);
    optim::StepLists lists{params, grads, {}, {buffers}};
    const optim::SGDOptions options{.lr = 0.1,
                                    .momentum = 0.5,
                                    .dampening = nesterov ? 0 : 0.25,
                                    .weight_decay = 0.01,
                                    .nesterov = nesterov,
                                    .maximize = true};
    ASSERT_TRUE(optim::step(lists, options));
    for (size_t t = 0; t < params.size(); ++t)
      for (int64_t i = 0; i < params[t].numel(); ++i) {
        const double g = -slope(i) + 0.01 * start(i), b = 0.5 * start(i) + (1 - options.dampening) * g;
        ASSERT_NEAR(element(buffers[t], i), b, tolerance(GetParam()));
        ASSERT_NEAR(element(params[t], i), start(i) - 0.1 * (nesterov ? g + 0.5 * b : b), tolerance(GetParam()));
      }
  }
}

TEST_P(OptimSteps, Adam) {
  const auto zero = [](int64_t) { return 0.0; };
  for (const bool decoupled : {false, true}) {
    std::vector<Tensor> params = all(false, start), grads = all(true, slope), means = all(false, zero),
                        squares = all(true, zero), largest = all(false, [](int64_t i) { return double(i % 2); }), steps;
    for (size_t t = 0; t < params.size(); ++t) steps.push_back(made(kFloat32, {}, {}, [](int64_t) { return 1.0; }));
    const uint32_t version = params[0].version();
    optim::StepLists lists{params, grads, {steps}, {means, squares, largest}};
    ASSERT_TRUE(optim::step(
        lists,
        optim::AdamOptions{.lr = 0.1, .weight_decay = 0.1, .amsgrad = true, .decoupled_weight_decay = decoupled}));
    EXPECT_GT(params[0].version(), version);
    for (size_t t = 0; t < params.size(); ++t) {
      EXPECT_EQ(element(steps[t], 0), 2);
      for (int64_t i = 0; i < params[t].numel(); ++i) {
        const double p = decoupled ? start(i) * 0.99 : start(i), g = slope(i) + (decoupled ? 0 : 0.1 * p);
        const double m = 0.1 * g, v = std::max(0.001 * g * g, double(i % 2));
        const double want = p - 0.1 / (1 - 0.81) * m / (std::sqrt(v) / std::sqrt(1 - 0.999 * 0.999) + 1e-8);
        if (is_half(GetParam()) && i % 2 == 0) continue;  // v is too small for these types
        ASSERT_NEAR(element(params[t], i), want, tolerance(GetParam())) << t << " " << i;
      }
    }
  }
}

/// Each optimizer, whose state is made at the first step, on plain memory and where every tensor has to be copied; the
/// tensors of the second are several pieces of work, and the first are one.
TEST_P(OptimSteps, LayoutsMakeNoDifference) {
  optim::for_each_options([&]<class O>() {
    std::vector<double> first;
    for (const Dims& strides : {Dims{130, 1}, Dims{1, 300}, Dims{264, 2}}) {
      const Tensor p = made(GetParam(), {300, 130}, strides, start);
      optim::StepLists lists{{p}, {made(GetParam(), {300, 130}, {1, 300}, slope)}, {}, {}};
      lists.counters.assign(O::counters.size(), {Tensor()});
      const O options;
      for (size_t i = 0; i < O::states.size(); ++i)
        if (options.has_state(i)) lists.states.push_back({Tensor()});
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(optim::step(lists, options));
      std::vector<double> moved;
      for (int64_t i = 0; i < p.numel(); ++i) moved.push_back(element(p, i));
      if (first.empty()) first = moved;
      if constexpr (std::is_same_v<O, optim::AdafactorOptions> || std::is_same_v<O, optim::MuonOptions>)  // have sums
        for (size_t i = 0; i < moved.size(); ++i) ASSERT_NEAR(moved[i], first[i], tolerance(GetParam())) << O::name;
      else
        EXPECT_EQ(moved, first) << O::name;
      EXPECT_NE(moved[1], start(1)) << O::name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, OptimSteps, testing::Values(kFloat32, kFloat64, kFloat16, kBFloat16));

TEST(OptimStepsErrors, SizesAndKinds) {
  const auto one = [](int64_t) { return 1.0; };
  const Tensor a = made(kFloat32, {2}, {1}, one), b = made(kFloat32, {3}, {1}, one);
  const auto run = [](optim::StepLists lists) { return optim::step(lists, optim::SGDOptions()); };
  EXPECT_THROW(run({{a}, {b}, {}, {}}), Error);
  EXPECT_THROW(run({{a}, {}, {}, {}}), Error);
  EXPECT_THROW(run({{a}, {a}, {}, {{a}}}), Error);
  EXPECT_FALSE(run({{a}, {made(kFloat64, {2}, {1}, one)}, {}, {}}));
  EXPECT_EQ(element(a, 0), 1);
}

}  // namespace
}  // namespace rush
