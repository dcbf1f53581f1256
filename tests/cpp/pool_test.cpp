// Pooling and its gradients against loops over each window, in one to three dimensions.
#include "kernels/cpu/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <vector>

namespace {
using namespace rush;
using cpu::Extent, cpu::Pooling;

int64_t volume(const Extent& e) { return e[0] * e[1] * e[2]; }

Pooling make(int64_t planes, Extent input, Extent kernel, Extent stride, Extent padding = {0, 0, 0},
             Extent dilation = {1, 1, 1}, bool ceil = false) {
  Pooling p{planes, input, {}, kernel, stride, padding, dilation};
  for (int d = 0; d < 3; ++d) {
    const int64_t room = input[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    p.output[d] = (room + (ceil ? stride[d] - 1 : 0)) / stride[d] + 1;
    if (ceil && (p.output[d] - 1) * stride[d] >= input[d] + padding[d]) --p.output[d];
  }
  return p;
}

Pooling adaptive(int64_t planes, Extent input, Extent output) {
  Pooling p{planes, input, output};
  p.adaptive = true;
  return p;
}

std::vector<Pooling> cases() {
  return {
      make(1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
      make(3, {1, 1, 50}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}),
      make(2, {1, 8, 8}, {1, 2, 2}, {1, 2, 2}),
      make(2, {1, 35, 70}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      make(2, {1, 20, 37}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, true),
      make(2, {1, 9, 41}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}),
      make(2, {1, 13, 64}, {1, 2, 3}, {1, 3, 3}, {0, 1, 1}),
      make(2, {5, 6, 19}, {2, 3, 3}, {2, 1, 2}, {1, 1, 1}, {1, 1, 1}, true),
      make(0, {1, 4, 4}, {1, 2, 2}, {1, 2, 2}),
      make(2, {1, 30, 45}, {1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {1, 2, 3}),
      adaptive(3, {1, 7, 7}, {1, 1, 1}),
      adaptive(2, {1, 11, 30}, {1, 4, 7}),
      adaptive(2, {5, 4, 3}, {2, 7, 3}),
      adaptive(2, {1, 1, 10}, {1, 1, 0}),
  };
}

std::string describe(const Pooling& p) {
  std::ostringstream text;
  text << "planes " << p.planes << (p.adaptive ? " adaptive" : "");
  for (int d = 0; d < 3; ++d)
    text << "; " << p.input[d] << " -> " << p.output[d] << " kernel " << p.kernel[d] << " stride " << p.stride[d]
         << " padding " << p.padding[d] << " dilation " << p.dilation[d];
  return text.str();
}

// Calls body(x index in its plane, y index in its plane, window size with padding, without) for all of a plane's
// windows.
template <class Body>
void for_each_element(const Pooling& p, const Body& body) {
  for (int64_t o = 0; o < volume(p.output); ++o) {
    const Extent at{o / (p.output[1] * p.output[2]), o / p.output[2] % p.output[1], o % p.output[2]};
    std::vector<int64_t> seen[3];
    int64_t padded = 1, clipped = 1;
    for (int d = 0; d < 3; ++d) {
      int64_t in_padding = 0;
      if (p.adaptive) {
        const double scale = double(p.input[d]) / double(p.output[d]);
        for (auto i = int64_t(std::floor(double(at[d]) * scale)); double(i) < double(at[d] + 1) * scale - 1e-9; ++i)
          seen[d].push_back(i);
        in_padding = int64_t(seen[d].size());
      } else {
        for (int64_t k = 0; k < p.kernel[d]; ++k) {
          const int64_t i = at[d] * p.stride[d] - p.padding[d] + k * p.dilation[d];
          if (i >= 0 && i < p.input[d]) seen[d].push_back(i);
          in_padding += i < p.input[d] + p.padding[d];
        }
      }
      padded *= in_padding;
      clipped *= int64_t(seen[d].size());
    }
    for (const int64_t z : seen[0])
      for (const int64_t y : seen[1])
        for (const int64_t x : seen[2]) body(size_t((z * p.input[1] + y) * p.input[2] + x), size_t(o), padded, clipped);
  }
}

template <class T>
std::vector<T> values(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> value(0, 20);  // few, so that there are equal ones
  std::vector<T> result(static_cast<size_t>(n));
  for (T& x : result) x = static_cast<T>(static_cast<float>(value(generator)));
  return result;
}

template <class T>
class MaxPool : public testing::Test {};
using MaxTypes = testing::Types<float, double, BFloat16, Half, int64_t, uint8_t>;
TYPED_TEST_SUITE(MaxPool, MaxTypes);

TYPED_TEST(MaxPool, ValuesIndicesAndGradient) {
  using T = TypeParam;
  for (const Pooling& p : cases()) {
    SCOPED_TRACE(describe(p));
    const auto in = size_t(volume(p.input)), out = size_t(volume(p.output));
    auto x = values<T>(p.planes * volume(p.input), 1);
    if constexpr (!std::is_integral_v<T>) {
      for (size_t i = 0; i < x.size(); i += 5) x[i] = T(-std::numeric_limits<float>::infinity());
      for (size_t i = 3; i < x.size(); i += 97) x[i] = T(std::nanf(""));
    }
    const auto gy = values<T>(p.planes * volume(p.output), 2);
    std::vector<T> y(gy.size()), only_y(gy.size()), gx(x.size(), T(1.f));
    std::vector<int64_t> indices(gy.size(), -7);
    cpu::max_pool<T>(p, x.data(), y.data(), indices.data());
    cpu::max_pool<T>(p, x.data(), only_y.data(), nullptr);
    cpu::max_pool_backward<T>(p.planes, volume(p.input), volume(p.output), gy.data(), indices.data(), gx.data());
    std::vector<int64_t> best(gy.size(), -1);
    for (size_t plane = 0; plane < size_t(p.planes); ++plane)
      for_each_element(p, [&](size_t xi, size_t yi, int64_t, int64_t) {
        int64_t& b = best[plane * out + yi];
        const double value = double(x[plane * in + xi]);
        if (b < 0 || value > double(x[plane * in + size_t(b)]) || std::isnan(value)) b = int64_t(xi);
      });
    EXPECT_EQ(indices, best);
    std::vector<double> sums(x.size());
    int64_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const T expected = x[i / out * in + size_t(best[i])];
      wrong += !(y[i] == expected || (std::isnan(double(y[i])) && std::isnan(double(expected))));
      wrong += !(y[i] == only_y[i] || std::isnan(double(y[i])));
      sums[i / out * in + size_t(best[i])] += double(gy[i]);
    }
    if constexpr (!std::is_same_v<T, uint8_t>) {
      for (size_t i = 0; i < gx.size(); ++i) wrong += !(gx[i] == T(float(sums[i])));
    }
    EXPECT_EQ(wrong, 0);
  }
}

template <class T>
class AvgPool : public testing::Test {};
using AvgTypes = testing::Types<float, double, BFloat16, Half>;
TYPED_TEST_SUITE(AvgPool, AvgTypes);

TYPED_TEST(AvgPool, ValuesAndGradient) {
  using T = TypeParam;
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : std::is_same_v<T, float> ? 1e-5 : 0.02;
  for (const Pooling& p : cases()) {
    if (volume(p.dilation) != 1) continue;
    SCOPED_TRACE(describe(p));
    const auto in = size_t(volume(p.input)), out = size_t(volume(p.output));
    const auto x = values<T>(p.planes * volume(p.input), 1), gy = values<T>(p.planes * volume(p.output), 2);
    for (const int64_t override : {0, 3})
      for (const bool include : {false, true}) {
        std::vector<T> y(gy.size()), gx(x.size(), T(9.f));
        cpu::avg_pool<T>(p, include, override, x.data(), y.data());
        cpu::avg_pool_backward<T>(p, include, override, gy.data(), gx.data());
        std::vector<double> expected_y(y.size()), expected_gx(x.size());
        for (size_t plane = 0; plane < size_t(p.planes); ++plane)
          for_each_element(p, [&](size_t xi, size_t yi, int64_t padded, int64_t clipped) {
            const double by = double(override ? override : include ? padded : clipped);
            expected_y[plane * out + yi] += double(x[plane * in + xi]) / by;
            expected_gx[plane * in + xi] += double(gy[plane * out + yi]) / by;
          });
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(double(y[i]), expected_y[i], tolerance * (1 + std::abs(expected_y[i])));
        for (size_t i = 0; i < gx.size(); ++i)
          ASSERT_NEAR(double(gx[i]), expected_gx[i], tolerance * (1 + std::abs(expected_gx[i])));
      }
  }
}
}  // namespace
