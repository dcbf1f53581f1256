// The 16-bit floating-point types: every bit pattern survives the way through float, and rounding is to nearest even.
#include "rushlight/half.h"

#include <gtest/gtest.h>

#include <cmath>

using rush::BFloat16, rush::Half;
using Both = testing::Types<BFloat16, Half>;

template <class T>
class HalfTypes : public testing::Test {};
TYPED_TEST_SUITE(HalfTypes, Both);

TYPED_TEST(HalfTypes, EveryPatternSurvivesFloat) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const TypeParam x = TypeParam::from_bits(static_cast<uint16_t>(bits));
    const float f = x;
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(float(TypeParam(f))));
    } else {
      EXPECT_EQ(TypeParam(f).bits, bits);
    }
  }
}

TYPED_TEST(HalfTypes, RoundsToNearestEven) {
  for (int bits = 0;
       TypeParam::from_bits(static_cast<uint16_t>(bits + 1)) < float(std::numeric_limits<TypeParam>::max()); ++bits) {
    const double low = float(TypeParam::from_bits(static_cast<uint16_t>(bits)));
    const double high = float(TypeParam::from_bits(static_cast<uint16_t>(bits + 1)));
    const double middle = (low + high) / 2;
    if (double(float(middle)) != middle) continue;
    EXPECT_EQ(TypeParam(float(middle)).bits, bits + (bits & 1));
    EXPECT_EQ(TypeParam(std::nextafter(float(middle), -1.0f)).bits, bits);
    EXPECT_EQ(TypeParam(std::nextafter(float(middle), INFINITY)).bits, bits + 1);
  }
}

TEST(Half, OverflowsToInfinityAndKeepsSign) {
  EXPECT_EQ(Half(65519.0f), 65504.0f);
  EXPECT_EQ(Half(65520.0f), INFINITY);
  EXPECT_EQ(Half(-1e10f), -INFINITY);
  EXPECT_TRUE(std::signbit(float(Half(-0.0f))));
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()), INFINITY);
  BFloat16 x = 1.5f;
  x += 2;
  EXPECT_EQ(x * x, 12.25f);
}
