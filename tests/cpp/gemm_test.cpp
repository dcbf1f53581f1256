// Matrix products against three plain loops, over shapes that meet every path: vectors, tails, blocks, all strides.
#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "rushlight/parallel.h"

namespace {
using namespace rush;
using cpu::Strided;

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> value(-8, 8);  // small integers: sums are exact wherever they fit
  std::vector<T> values(static_cast<size_t>(n));
  for (T& x : values) {
    if constexpr (is_complex<T>) {
      x = T(value(generator), value(generator));
    } else {
      x = static_cast<T>(value(generator));
    }
  }
  return values;
}

template <class T>
using Wide = std::conditional_t<is_half_type<T>, float, T>;

struct Shape {
  int64_t m, n, k;
};

enum class Order { rows, columns, sparse };  // contiguous rows, contiguous columns, gaps in both directions

template <class T>
struct Matrix {
  std::vector<T> values;
  int64_t row, col;
  Matrix(int64_t rows, int64_t cols, Order order, unsigned seed)
      : row(order == Order::rows      ? cols
            : order == Order::columns ? 1
                                      : 3 * cols + 1),
        col(order == Order::columns ? rows
            : order == Order::rows  ? 1
                                    : 2) {
    values = random_values<T>(rows * cols == 0 ? 0 : (rows - 1) * row + (cols - 1) * col + 1, seed);
  }
  const T& operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * row + j * col)]; }
  Strided<const T> in() const { return {values.data(), row, col}; }
  Strided<T> out() { return {values.data(), row, col}; }
};

template <class T>
void compare(Shape s, Order a_order, Order b_order, Order c_order, int alpha, int beta, bool with_bias) {
  SCOPED_TRACE("m " + std::to_string(s.m) + " n " + std::to_string(s.n) + " k " + std::to_string(s.k) + " orders " +
               std::to_string(int(a_order)) + std::to_string(int(b_order)) + std::to_string(int(c_order)) + " beta " +
               std::to_string(beta));
  const Matrix<T> a(s.m, s.k, a_order, 1), b(s.k, s.n, b_order, 2);
  Matrix<T> c(s.m, s.n, c_order, 3);
  const std::vector<T> rows = random_values<T>(s.m, 4), cols = random_values<T>(s.n, 5);
  if constexpr (std::is_floating_point_v<T>) {
    if (beta == 0)
      for (T& x : c.values) x = std::nanf("");  // must not be read
  }
  const Matrix<T> before = c;
  cpu::gemm<T>(s.m, s.n, s.k, a.in(), b.in(), c.out(), Wide<T>(alpha), Wide<T>(beta),
               with_bias ? cpu::Bias<T>{rows.data(), cols.data()} : cpu::Bias<T>{});
  int64_t wrong = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      Wide<T> sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += Wide<T>(a(i, k)) * Wide<T>(b(k, j));
      sum *= Wide<T>(alpha);
      if (beta != 0) sum += Wide<T>(beta) * Wide<T>(before(i, j));
      if (with_bias) sum += Wide<T>(rows[size_t(i)]) + Wide<T>(cols[size_t(j)]);
      wrong += !(c(i, j) == T(sum));
    }
  EXPECT_EQ(wrong, 0);
}

constexpr Order orders[] = {Order::rows, Order::columns, Order::sparse};

template <class T>
class Gemm : public testing::Test {};
using Types = testing::Types<float, double, BFloat16, Half, int8_t, uint8_t, int16_t, int32_t, int64_t,
                             std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, EveryOrderOfEveryOperand) {
  for (const Shape s : {Shape{1, 1, 1}, {1, 37, 19}, {41, 1, 23}, {3, 70, 33}, {8, 8, 8}, {29, 67, 31}})
    for (const Order a : orders)
      for (const Order b : orders)
        for (const Order c : orders) compare<TypeParam>(s, a, b, c, 2, 1, false);
}

TYPED_TEST(Gemm, ScalesAndBias) {
  for (const Shape s : {Shape{1, 5, 3}, {17, 33, 5}, {16, 32, 1}})
    for (const int beta : {0, 1, 3}) compare<TypeParam>(s, Order::rows, Order::rows, Order::rows, 2, beta, true);
}

TYPED_TEST(Gemm, EmptySizes) {
  for (const Shape s : {Shape{0, 4, 4}, {4, 0, 4}, {4, 5, 0}, {1, 1, 0}, {0, 0, 0}})
    for (const int beta : {0, 2}) compare<TypeParam>(s, Order::rows, Order::rows, Order::rows, 1, beta, false);
}

TEST(GemmBlocks, ManyPanelsAndDepths) {
  for (const Shape s : {Shape{150, 530, 400}, {130, 70, 1000}, {13, 300, 900}, {300, 20, 500}, {64, 64, 64}})
    for (const Order a : {Order::rows, Order::columns})
      for (const Order b : {Order::rows, Order::columns}) {
        compare<float>(s, a, b, Order::rows, 1, 0, false);
        compare<float>(s, a, b, Order::columns, 2, 3, true);
        compare<double>(s, a, b, Order::rows, 1, 1, false);
      }
  compare<BFloat16>({70, 90, 800}, Order::rows, Order::columns, Order::rows, 1, 0, true);
  compare<float>({3000, 5, 3000}, Order::columns, Order::rows, Order::rows, 1, 0, true);  // a in several pieces
}

TEST(GemmBlocks, EveryNumberOfRowsAndColumns) {
  for (int64_t m = 1; m <= 30; ++m)
    for (int64_t n = 1; n <= 34; n += 3) compare<float>({m, n, 11}, Order::rows, Order::rows, Order::rows, 1, 0, false);
}

TEST(GemmBlocks, FewRowsMeetContiguousColumns) {
  for (const int64_t k : {255, 256, 512, 519})
    for (int64_t m = 1; m <= 17; ++m)
      for (const Order a : orders)
        for (const Order c : orders) {
          compare<float>({m, m % 5 + 64, k}, a, Order::columns, c, 1, 0, m % 2 == 0);
          compare<double>({m, m + 3, k}, a, Order::columns, c, 2, m % 3, true);
        }
  for (int64_t m = 1; m <= 17; m += 3) {
    compare<Half>({m, 37, 259}, Order::rows, Order::columns, Order::rows, 1, 0, true);
    compare<BFloat16>({m, 37, 259}, Order::rows, Order::columns, Order::rows, 1, 0, true);
  }
}

TEST(GemmBlocks, ComplexPartsOnTheirOwn) {
  for (const Order a : orders)
    for (const Order b : orders)
      for (const int beta : {0, 3}) {
        compare<std::complex<float>>({170, 150, 170}, a, b, a, 2, beta, false);
        compare<std::complex<double>>({37, 50, 400}, a, b, b, 1, beta, false);
      }
}

TEST(GemmBlocks, BiasOfColumnsIsAddedLast) {
  for (const int64_t n : {31, 64}) {
    const int64_t m = 33, k = 900;
    const auto a = random_values<float>(m * k, 1), b = random_values<float>(n * k, 2),
               bias = random_values<float>(n, 3);
    std::vector<float> c(size_t(m * n), 1), plain = c;
    cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, {plain.data(), n, 1}, 2, 3);
    cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, {c.data(), n, 1}, 2, 3, {nullptr, bias.data()});
    for (int64_t i = 0; i < m * n; ++i) ASSERT_EQ(c[size_t(i)], plain[size_t(i)] + bias[size_t(i % n)]);
  }
}

TEST(GemmBytes, SumsOfAllValuesAreExact) {
  std::mt19937 generator(1);
  for (const Shape s : {Shape{0, 3, 4}, {3, 5, 0}, {1, 1, 1}, {7, 33, 6}, {64, 64, 64}, {31, 70, 2003}})
    for (const Order order : orders) {
      Matrix<uint8_t> a(s.m, s.k, order, 1);
      Matrix<int8_t> b(s.k, s.n, order, 2);
      for (uint8_t& x : a.values) x = generator() % 4 ? 255 : uint8_t(generator());  // pairs of products pass 16 bits
      for (int8_t& x : b.values) x = generator() % 4 ? (generator() % 8 ? 127 : -128) : int8_t(generator());
      Matrix<int32_t> c(s.m, s.n, order, 3);
      cpu::gemm_u8s8(s.m, s.n, s.k, a.in(), b.in(), c.out());
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          int32_t sum = 0;
          for (int64_t k = 0; k < s.k; ++k) sum += int32_t(a(i, k)) * int32_t(b(k, j));
          ASSERT_EQ(c(i, j), sum) << s.m << " " << s.n << " " << s.k << " at " << i << ", " << j;
        }
    }
}

TEST(GemmBlocks, ThreadsDoNotChangeTheResult) {
  const int before = num_threads();
  const int64_t n = 333, k = 777;
  for (const int64_t m : {7, 201})
    for (const Strided<const float> order : {Strided<const float>{nullptr, n, 1}, {nullptr, 1, k}}) {
      std::vector<float> a(size_t(m * k)), b(size_t(k * n)), one(size_t(m * n)), three(size_t(m * n));
      for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(float(i));
      for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(float(i));
      set_num_threads(1);
      cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), order.row, order.col}, {one.data(), n, 1});
      set_num_threads(3);
      cpu::gemm<float>(m, n, k, {a.data(), k, 1}, {b.data(), order.row, order.col}, {three.data(), n, 1});
      set_num_threads(before);
      EXPECT_EQ(one, three);
    }
}

TEST(BatchedGemm, RepeatsABroadcastOperand) {
  for (const int64_t batch : {0, 1, 5}) {
    const int64_t m = 9, n = 40, k = 12;
    const auto a = random_values<float>(batch * m * k, 1), b = random_values<float>(k * n, 2);
    std::vector<float> c(size_t(batch * m * n));
    cpu::batched_gemm<float>(batch, m, n, k, {a.data(), k, 1}, m * k, {b.data(), n, 1}, 0, {c.data(), n, 1}, m * n);
    for (int64_t i = 0; i < batch * m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t x = 0; x < k; ++x) sum += a[size_t(i * k + x)] * b[size_t(x * n + j)];
        ASSERT_EQ(c[size_t(i * n + j)], sum);
      }
  }
}
}  // namespace
