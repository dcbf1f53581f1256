// The tile engine against plain loops over indices: every layout, dtype and instruction set gives the same elements.
#include "kernels/cpu/tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cpu/pointwise.h"
#include "kernels/formulas.h"

namespace rush {
namespace {

const DType kAll[] = {kBool,    kUInt8,    kInt8,    kInt16,   kInt32,     kInt64,
                      kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128};

double read(const Tensor& t, int64_t at) {
  return for_all(t.dtype(), [&]<class T>() {
    if constexpr (formula::is_complex<T>)
      return double(t.data<T>()[at].real());
    else
      return double(t.data<T>()[at]);
  });
}
void write(const Tensor& t, int64_t at, double v) {
  for_all(t.dtype(), [&]<class T>() {
    if constexpr (is_half_type<T>)
      t.data<T>()[at] = T(float(v));
    else
      t.data<T>()[at] = T(v);
  });
}
int64_t place(int64_t linear, const Dims& sizes, const Dims& strides) {
  int64_t at = 0;
  for (auto d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    at += linear % sizes[d] * strides[d];
    linear /= sizes[d];
  }
  return at;
}
/// Element `linear` of `t` broadcast to `sizes`.
double element(const Tensor& t, int64_t linear, const Dims& sizes) {
  return read(t, place(linear, sizes, broadcast_strides(t.sizes(), t.strides(), sizes)));
}

/// Small whole numbers, so that every dtype holds them and sums are exact.
Tensor numbers(const Dims& sizes, DType dtype, int seed) {
  const Tensor t = allocate({sizes, dtype});
  for (int64_t i = 0; i < t.numel(); ++i) write(t, i, double((i * 7 + seed * 3) % 11));
  return t;
}
Tensor transposed(const Tensor& t, int64_t a, int64_t b) {
  Dims sizes = t.sizes(), strides = t.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return alias(t, sizes, strides, t.storage_offset());
}
Tensor every_second(const Tensor& t, int64_t d) {
  Dims sizes = t.sizes(), strides = t.strides();
  const int64_t offset = t.storage_offset() + strides[d];
  sizes[d] /= 2;
  strides[d] *= 2;
  return alias(t, sizes, strides, offset);
}

struct Layout {
  const char* name;
  std::function<Tensor(const Dims&, DType, int)> make;
};
const Layout layouts[] = {
    {"contiguous", [](const Dims& s, DType t, int seed) { return numbers(s, t, seed); }},
    {"transposed",
     [](const Dims& s, DType t, int seed) {
       if (s.size() < 2) return numbers(s, t, seed);
       Dims turned = s;
       std::swap(turned[0], turned[s.size() - 1]);
       return transposed(numbers(turned, t, seed), 0, int64_t(s.size()) - 1);
     }},
    {"sliced",
     [](const Dims& s, DType t, int seed) {
       if (s.empty()) return numbers(s, t, seed);
       Dims twice = s;
       twice[s.size() - 1] *= 2;
       return every_second(numbers(twice, t, seed), int64_t(s.size()) - 1);
     }},
};

void expect_elements(const Tensor& out, const std::function<double(int64_t)>& want, const std::string& what) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double got = element(out, i, out.sizes());
    ASSERT_EQ(got, want(i)) << what << " at " << i;
  }
}

class Tiles : public testing::Test {
 protected:
  /// Runs the body for each instruction set that this machine has.
  static void for_levels(const std::function<void()>& body) {
    const int best = cpu::simd_level;
    for (int level = 0; level <= best; ++level) {
      cpu::simd_level = level;
      body();
    }
    cpu::simd_level = best;
  }
};

TEST_F(Tiles, BroadcastLayoutsAndSizes) {
  const std::vector<std::array<Dims, 3>> shapes = {
      {Dims{}, {}, {}},
      {Dims{7}, {7}, {7}},
      {Dims{7}, {1}, {7}},
      {Dims{7}, {7}, {}},
      {Dims{0}, {0}, {1}},
      {Dims{3, 5}, {5}, {3, 5}},
      {Dims{3, 5}, {3, 1}, {5}},
      {Dims{40, 300}, {300}, {1}},
      {Dims{40, 300}, {40, 1}, {40, 300}},
      {Dims{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 4, 1}},
      {Dims{5, 1, 70, 3}, {70, 1}, {5, 1, 1, 3}},
      {Dims{3000}, {3000}, {3000}},
      {Dims{2, 2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 1, 2}, {1, 2, 1, 2, 1, 2, 1}},
  };
  for_levels([&] {
    for (const auto& [sizes, sa, sb] : shapes) {
      for (const Layout& lo : layouts) {
        for (const Layout& la : layouts) {
          for (const Layout& lb : layouts) {
            Tensor out = lo.make(sizes, kFloat32, 0);
            const Tensor a = la.make(sa, kFloat32, 1), b = lb.make(sb, kFloat32, 2);
            cpu::add(out, a, b, 1);
            expect_elements(
                out, [&, &sizes = sizes](int64_t i) { return element(a, i, sizes) + element(b, i, sizes); },
                text(lo.name, " = ", la.name, " + ", lb.name, ", ", sizes));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TEST_F(Tiles, MixedDtypes) {
  for_levels([&] {
    for (const DType ta : kAll) {
      for (const DType tb : kAll) {
        const DType result = promote(ta, tb);
        for (const Layout& layout : layouts) {
          Tensor out = layout.make({6, 210}, result, 0);
          const Tensor a = layout.make({6, 210}, ta, 1), b = layout.make({210}, tb, 2);
          cpu::add(out, a, b, 1);
          expect_elements(
              out,
              [&](int64_t i) {
                const double sum = element(a, i, out.sizes()) + element(b, i, out.sizes());
                return result == kBool ? double(sum != 0) : sum;
              },
              text(ta, " + ", tb, " ", layout.name));
          if (HasFatalFailure()) return;
          Tensor less = layout.make({6, 210}, kBool, 0);
          if (is_complex(result)) continue;
          cpu::lt(less, a, b);
          expect_elements(
              less, [&](int64_t i) { return double(element(a, i, out.sizes()) < element(b, i, out.sizes())); },
              text(ta, " < ", tb, " ", layout.name));
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_F(Tiles, CopyCastsBetweenAllDtypesAndLayouts) {
  for_levels([&] {
    for (const DType to : kAll) {
      for (const DType from : kAll) {
        for (const Layout& lo : layouts) {
          for (const Layout& li : layouts) {
            for (const Dims& sizes : {Dims{5, 3, 7}, Dims{40, 70}, Dims{2, 33, 65}}) {
              Tensor out = lo.make(sizes, to, 0);
              const Tensor in = li.make(sizes, from, 1);
              cpu::copy(out, in);
              expect_elements(
                  out,
                  [&](int64_t i) {
                    const double v = element(in, i, sizes);
                    return to == kBool ? double(v != 0) : v;
                  },
                  text(from, " ", li.name, " to ", to, " ", lo.name, " ", sizes));
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  });
}

TEST_F(Tiles, HalfConversionsAgreeWithTheScalarOnes) {
  Tensor half = allocate({Dims{65536}, kFloat16}), wide = allocate({Dims{65536}, kFloat32});
  for (int i = 0; i < 65536; ++i) half.data<Half>()[i] = Half::from_bits(uint16_t(i));
  for_levels([&] {
    cpu::copy(wide, half);
    for (int i = 0; i < 65536; ++i) {
      const float want = Half::from_bits(uint16_t(i)), got = wide.data<float>()[i];
      ASSERT_TRUE(want == got || (want != want && got != got)) << i;
    }
  });
  for (int64_t i = 0; i < 65536; ++i)
    wide.data<float>()[i] = std::ldexp(float(i * 7919 % 65521) / 32768, int(i % 44) - 27);
  for_levels([&] {
    cpu::copy(half, wide);
    for (int i = 0; i < 65536; ++i) ASSERT_EQ(half.data<Half>()[i].bits, Half(wide.data<float>()[i]).bits) << i;
  });
}

TEST_F(Tiles, LargeOnesUseThreadsAndStreams) {
  const int64_t n = (int64_t{1} << 22) + 4099;
  const Tensor a = allocate({Dims{n}, kFloat32}), b = allocate({Dims{n + 1}, kFloat32});
  for (int64_t i = 0; i < n; ++i) a.data<float>()[i] = float(i % 1000), b.data<float>()[i + 1] = float(i % 77);
  const Tensor shifted = alias(b, {n}, {1}, 1);
  Tensor room = allocate({Dims{n + 1}, kFloat32});
  Tensor out = alias(room, {n}, {1}, 1);
  cpu::mul(out, a, shifted);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.data<float>()[i], float(i % 1000) * float(i % 77)) << i;
  cpu::add(out, out, a, 2);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out.data<float>()[i], float(i % 1000) * float(i % 77 + 2)) << i;
}

TEST_F(Tiles, SeveralResultsAndConditions) {
  const Tensor x = numbers({3, 700}, kFloat64, 1);
  Tensor mantissa = allocate({Dims{3, 700}, kFloat64}), exponent = allocate({Dims{3, 700}, kInt32});
  cpu::frexp(mantissa, exponent, x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    int e = 0;
    EXPECT_EQ(mantissa.data<double>()[i], std::frexp(x.data<double>()[i], &e));
    EXPECT_EQ(exponent.data<int32_t>()[i], e);
  }
  const Tensor condition = numbers({700}, kBool, 2);
  Tensor out = allocate({Dims{3, 700}, kFloat64});
  cpu::where(out, condition, x, Tensor(Scalar(-1.0)));
  expect_elements(
      out, [&](int64_t i) { return element(condition, i, x.sizes()) != 0 ? element(x, i, x.sizes()) : -1; }, "where");
}

TEST_F(Tiles, IntegersFollowPython) {
  const double as[] = {7, -7, 7, -7, 0, 6}, bs[] = {3, 3, -3, -3, 5, -2};
  const double quotients[] = {2, -3, -3, 2, 0, -3}, rests[] = {1, 2, -2, -1, 0, 0};
  for (const DType t : {kInt8, kInt64, kFloat32, kFloat64}) {
    const Tensor a = allocate({Dims{6}, t}), b = allocate({Dims{6}, t});
    for (int i = 0; i < 6; ++i) write(a, i, as[i]), write(b, i, bs[i]);
    Tensor out = allocate({Dims{6}, t});
    cpu::floor_divide(out, a, b);
    expect_elements(
        out, [&](int64_t i) { return quotients[i]; }, text("// ", t));
    cpu::remainder(out, a, b);
    expect_elements(
        out, [&](int64_t i) { return rests[i]; }, text("% ", t));
  }
  Tensor out = allocate({Dims{2}, kInt64});
  EXPECT_THROW(cpu::remainder(out, numbers({2}, kInt64, 1), Tensor(0)), Error);
  const Tensor lowest = allocate({Dims{2}, kInt64});
  lowest.data<int64_t>()[0] = lowest.data<int64_t>()[1] = std::numeric_limits<int64_t>::min();
  cpu::floor_divide(out, lowest, Tensor(-1));
  EXPECT_EQ(out.data<int64_t>()[0], std::numeric_limits<int64_t>::min());
}

TEST_F(Tiles, IntegersWrapWhenStored) {
  Tensor out = allocate({Dims{1}, kUInt8});
  const Tensor a = allocate({Dims{1}, kUInt8});
  a.data<uint8_t>()[0] = 200;
  cpu::add(out, a, a, 1);
  EXPECT_EQ(out.data<uint8_t>()[0], 144);
}

TEST_F(Tiles, UnsupportedDtypesRaise) {
  Tensor out = allocate({Dims{2}, kComplex64});
  EXPECT_THROW(cpu::maximum(out, out, out), NotImplementedError);
  Tensor bits = allocate({Dims{2}, kFloat32});
  EXPECT_THROW(cpu::bitwise_and(bits, bits, bits), NotImplementedError);
}

TEST_F(Tiles, HugeAnglesAreExact) {
  const Tensor x = allocate({Dims{4}, kFloat64});
  const double values[] = {1e22, 0.5, -1e300, INFINITY};
  std::copy(values, values + 4, x.data<double>());
  Tensor out = allocate({Dims{4}, kFloat64});
  cpu::sin(out, x);
  EXPECT_EQ(out.data<double>()[0], std::sin(1e22));
  EXPECT_NEAR(out.data<double>()[1], std::sin(0.5), 1e-16);
  EXPECT_EQ(out.data<double>()[2], std::sin(-1e300));
  EXPECT_TRUE(std::isnan(out.data<double>()[3]));
}

TEST_F(Tiles, Sequences) {
  Tensor out = allocate({Dims{5}, kInt32});
  cpu::arange(out, 3, -2);
  expect_elements(
      out, [](int64_t i) { return 3.0 - 2.0 * double(i); }, "arange");
  out = allocate({Dims{5}, kFloat32});
  cpu::linspace(out, 0, 1);
  expect_elements(
      out, [](int64_t i) { return double(i) / 4; }, "linspace");
  cpu::logspace(out, 0, 4, 2);
  expect_elements(
      out, [](int64_t i) { return std::exp2(double(i)); }, "logspace");
}

}  // namespace
}  // namespace rush
