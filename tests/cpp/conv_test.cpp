// Convolutions and their gradients against loops over every product, in one to three dimensions.
#include "kernels/cpu/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>
#include <vector>

#include "kernels/cpu/winograd.h"
#include "rushlight/parallel.h"

namespace {
using namespace rush;
using cpu::Convolution, cpu::Extent;

Convolution make(int64_t batch, int64_t in, int64_t out, int64_t groups, Extent input, Extent kernel,
                 Extent stride = {1, 1, 1}, Extent padding = {0, 0, 0}, Extent dilation = {1, 1, 1}) {
  Convolution c{batch, in, out, groups, input, {}, kernel, stride, padding, dilation};
  for (int d = 0; d < 3; ++d) c.output[d] = c.output_size(d);
  return c;
}

std::vector<Convolution> cases() {
  std::vector<Convolution> all{
      make(1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}),
      make(2, 3, 5, 1, {1, 1, 17}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}),
      make(3, 4, 6, 2, {1, 1, 40}, {1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {1, 1, 2}),
      make(2, 5, 19, 1, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      make(2, 16, 40, 1, {1, 14, 14}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      make(1, 3, 33, 1, {1, 35, 37}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}),
      make(2, 6, 4, 2, {1, 13, 10}, {1, 3, 2}, {1, 3, 2}, {0, 1, 0}, {1, 2, 3}),
      make(2, 20, 33, 1, {1, 6, 5}, {1, 1, 1}),
      make(2, 7, 9, 1, {1, 6, 5}, {1, 1, 1}, {1, 2, 2}),
      make(2, 4, 5, 1, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}),
      make(2, 3, 4, 1, {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 2, 1}),
      make(2, 70, 50, 1, {1, 1, 20}, {1, 1, 9}, {1, 1, 1}, {0, 0, 4}),  // depth beyond one K block
      make(2, 5, 5, 5, {1, 19, 70}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      make(2, 3, 6, 3, {1, 9, 41}, {1, 5, 3}, {1, 2, 2}, {0, 2, 1}),
      make(1, 2, 2, 2, {4, 5, 36}, {2, 3, 3}, {1, 1, 3}, {1, 1, 0}, {1, 1, 2}),
      make(9, 18, 33, 1, {1, 9, 7}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),  // few pixels of many images
      make(2, 40, 16, 1, {1, 5, 4}, {1, 1, 1}, {1, 2, 2}),
      make(1, 17, 20, 1, {3, 4, 5}, {2, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}),
      make(0, 3, 4, 1, {1, 5, 5}, {1, 3, 3}),
      make(0, 32, 40, 1, {1, 5, 5}, {1, 3, 3}),
      make(2, 0, 4, 1, {1, 5, 5}, {1, 3, 3}),
      make(2, 3, 0, 1, {1, 5, 5}, {1, 3, 3}),
      make(2, 3, 4, 1, {1, 2, 2}, {1, 3, 3}),
  };
  // As a transposed convolution with output_padding 1 has it: fewer outputs than would fit.
  all.push_back(make(2, 3, 4, 1, {1, 8, 8}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 3, 3}));
  all.back().output = {1, 2, 1};
  return all;
}

std::string describe(const Convolution& c) {
  std::ostringstream text;
  text << "batch " << c.batch << " channels " << c.in_channels << " -> " << c.out_channels << " groups " << c.groups;
  for (int d = 0; d < 3; ++d)
    text << "; " << c.input[d] << " -> " << c.output[d] << " kernel " << c.kernel[d] << " stride " << c.stride[d]
         << " padding " << c.padding[d] << " dilation " << c.dilation[d];
  return text.str();
}

int64_t volume(const Extent& e) { return e[0] * e[1] * e[2]; }

// Calls body(x index, weight index, y index) for each product of the convolution.
template <class Body>
void for_each_product(const Convolution& c, const Body& body) {
  const int64_t in = c.groups ? c.in_channels / c.groups : 0, out = c.out_channels / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out_channels; ++o)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t q = 0; q < volume(c.output); ++q)
          for (int64_t k = 0; k < volume(c.kernel); ++k) {
            const Extent at{q / (c.output[1] * c.output[2]), q / c.output[2] % c.output[1], q % c.output[2]};
            const Extent tap{k / (c.kernel[1] * c.kernel[2]), k / c.kernel[2] % c.kernel[1], k % c.kernel[2]};
            int64_t source = 0;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t p = at[d] * c.stride[d] + tap[d] * c.dilation[d] - c.padding[d];
              inside &= p >= 0 && p < c.input[d];
              source = source * c.input[d] + p;
            }
            if (!inside) continue;
            const int64_t channel = o / out * in + i;
            body(size_t((n * c.in_channels + channel) * volume(c.input) + source),
                 size_t((o * in + i) * volume(c.kernel) + k), size_t((n * c.out_channels + o) * volume(c.output) + q));
          }
}

template <class T>
std::vector<T> values(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> value(-4, 4);  // small integers, so that float sums are exact
  std::vector<T> result(static_cast<size_t>(n));
  for (T& x : result) x = static_cast<T>(static_cast<float>(value(generator)));
  return result;
}

template <class T>
std::vector<T> rounded(const std::vector<double>& sums) {
  std::vector<T> result;
  for (const double x : sums) result.push_back(static_cast<T>(static_cast<float>(x)));
  return result;
}

template <class T>
int64_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  int64_t count = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += !(a[i] == b[i]);
  return count;
}

template <class T>
class Conv : public testing::Test {};
using Types = testing::Types<float, double, BFloat16, Half>;
TYPED_TEST_SUITE(Conv, Types);

TYPED_TEST(Conv, AllThreeAgreeWithPlainLoops) {
  using T = TypeParam;
  for (const Convolution& c : cases()) {
    SCOPED_TRACE(describe(c));
    const auto x = values<T>(c.batch * c.in_channels * volume(c.input), 1);
    const auto w = values<T>(c.out_channels * (c.in_channels / c.groups) * volume(c.kernel), 2);
    const auto gy = values<T>(c.batch * c.out_channels * volume(c.output), 3);
    const auto out_bias = values<T>(c.out_channels, 4), in_bias = values<T>(c.in_channels, 5);
    std::vector<double> y(gy.size()), gx(x.size()), gw(w.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = out_bias[i / size_t(volume(c.output)) % size_t(c.out_channels)];
    for (size_t i = 0; i < gx.size(); ++i) gx[i] = in_bias[i / size_t(volume(c.input)) % size_t(c.in_channels)];
    for_each_product(c, [&](size_t xi, size_t wi, size_t yi) {
      y[yi] += double(x[xi]) * double(w[wi]);
      gx[xi] += double(gy[yi]) * double(w[wi]);
      gw[wi] += double(gy[yi]) * double(x[xi]);
    });
    std::vector<T> got_y(y.size(), T(99.f)), got_gx(gx.size(), T(99.f)), got_gw(gw.size(), T(99.f));
    cpu::conv_forward<T>(c, x.data(), w.data(), out_bias.data(), got_y.data());
    cpu::conv_backward_data<T>(c, gy.data(), w.data(), got_gx.data(), in_bias.data());
    cpu::conv_backward_weight<T>(c, x.data(), gy.data(), got_gw.data());
    EXPECT_EQ(differences(got_y, rounded<T>(y)), 0);
    EXPECT_EQ(differences(got_gx, rounded<T>(gx)), 0);
    EXPECT_EQ(differences(got_gw, rounded<T>(gw)), 0);
    cpu::conv_forward<T>(c, x.data(), w.data(), nullptr, got_y.data());
    for (size_t i = 0; i < y.size(); ++i)
      y[i] -= double(out_bias[i / size_t(volume(c.output)) % size_t(c.out_channels)]);
    EXPECT_EQ(differences(got_y, rounded<T>(y)), 0);
  }
}

// The greatest difference, relative to the greatest element.
double distance(const std::vector<float>& a, const std::vector<double>& b) {
  double difference = 0, greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double(a[i]) - b[i]));
    greatest = std::max(greatest, std::abs(b[i]));
  }
  return difference / greatest;
}

// Floats take Winograd's way, doubles the plain one.
TEST(Winograd, AgreesWithThePlainSum) {
  const std::vector<Convolution> all{
      make(2, 32, 40, 1, {1, 14, 14}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      make(1, 37, 70, 1, {1, 10, 31}, {1, 3, 3}, {1, 1, 1}, {0, 0, 2}),
      make(3, 64, 32, 1, {1, 7, 5}, {1, 3, 3}, {1, 1, 1}, {0, 2, 1}),
      make(8, 32, 33, 1, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),  // several batches of tiles
      make(1, 32, 32, 1, {1, 4, 130}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),  // several segments in a row
      make(9, 48, 35, 1, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),    // tiles of 2 x 2
      make(40, 33, 32, 1, {1, 4, 3}, {1, 3, 3}, {1, 1, 1}, {0, 0, 1}),
  };
  std::mt19937 generator(1);
  std::normal_distribution<float> value;
  const auto random = [&](int64_t n) {
    std::vector<float> result(static_cast<size_t>(n));
    for (float& x : result) x = value(generator);
    return result;
  };
  const auto wide = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
  for (const Convolution& c : all) {
    SCOPED_TRACE(describe(c));
    ASSERT_TRUE(cpu::winograd_suits(c));
    const auto x = random(c.batch * c.in_channels * volume(c.input)), w = random(c.out_channels * c.in_channels * 9);
    const auto gy = random(c.batch * c.out_channels * volume(c.output));
    const auto out_bias = random(c.out_channels), in_bias = random(c.in_channels);
    std::vector<float> y(gy.size()), gx(x.size()), gw(w.size());
    std::vector<double> wide_y(gy.size()), wide_gx(x.size()), wide_gw(w.size());
    cpu::conv_forward<float>(c, x.data(), w.data(), out_bias.data(), y.data());
    cpu::conv_backward_data<float>(c, gy.data(), w.data(), gx.data(), in_bias.data());
    cpu::conv_backward_weight<float>(c, x.data(), gy.data(), gw.data());
    cpu::conv_forward<double>(c, wide(x).data(), wide(w).data(), wide(out_bias).data(), wide_y.data());
    cpu::conv_backward_data<double>(c, wide(gy).data(), wide(w).data(), wide_gx.data(), wide(in_bias).data());
    cpu::conv_backward_weight<double>(c, wide(x).data(), wide(gy).data(), wide_gw.data());
    EXPECT_LT(distance(y, wide_y), 5e-6);
    EXPECT_LT(distance(gx, wide_gx), 5e-6);
    EXPECT_LT(distance(gw, wide_gw), 5e-6);
  }
}

class ConvThreads : public testing::TestWithParam<Convolution> {};
TEST_P(ConvThreads, DoNotChangeTheResult) {
  const Convolution& c = GetParam();
  std::vector<float> x(size_t(c.batch * c.in_channels * volume(c.input)));
  std::vector<float> w(size_t(c.out_channels * c.in_channels * volume(c.kernel)));
  std::vector<float> gy(size_t(c.batch * c.out_channels * volume(c.output)));
  for (auto* v : {&x, &w, &gy})
    for (size_t i = 0; i < v->size(); ++i) (*v)[i] = std::sin(float(i));
  std::vector<float> results[2];
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    std::vector<float> y(gy.size()), gx(x.size()), gw(w.size());
    cpu::conv_forward<float>(c, x.data(), w.data(), nullptr, y.data());
    cpu::conv_backward_data<float>(c, gy.data(), w.data(), gx.data());
    cpu::conv_backward_weight<float>(c, x.data(), gy.data(), gw.data());
    for (auto* v : {&y, &gx, &gw}) results[threads > 1].insert(results[threads > 1].end(), v->begin(), v->end());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}
INSTANTIATE_TEST_SUITE_P(Shapes, ConvThreads,
                         testing::Values(make(3, 20, 40, 1, {1, 30, 30}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
                                         make(3, 40, 70, 1, {1, 30, 30}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
                                         make(2, 40, 70, 1, {1, 15, 9}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
                                         make(5, 40, 70, 1, {1, 15, 9}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1})));
}  // namespace
