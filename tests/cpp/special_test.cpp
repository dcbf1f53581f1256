// Special functions against values computed with mpmath at 120 bits: the worst relative error of each is printed and
// held below its limit.
#include "kernels/special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace rush::formula {
namespace {

namespace s = special;

struct Value {
  double x, y, want;  // y is the second argument, where there is one
};
struct Row {
  const char* name;
  double (*one)(double);
  double (*two)(double, double);
  std::vector<Value> values;
  double limit = 4e-15;  // more where the argument's own rounding is magnified, or the function has a zero nearby
};

const Row rows[] = {
    {"lgamma",
     s::lgamma,
     nullptr,
     {{0.1, 0, 0x1.2058e35f3deeep+1},
      {1.5, 0, -0x1.eeb95b094c191p-4},
      {3.7, 0, 0x1.6d9625e359b87p+0},
      {30.25, 0, 0x1.206ab4a5dc0ccp+6},
      {100000.0, 0, 0x1.00a97b57f4c2ep+20},
      {-0.5, 0, 0x1.43f89a3f0edd6p+0},
      {-2.3, 0, 0x1.7a6faef4eca4fp-2}}},
    {"digamma",
     s::digamma,
     nullptr,
     {{0.1, 0, -0x1.4d8f668552b02p+3},
      {1.0, 0, -0x1.2788cfc6fb619p-1},
      {1.5, 0, 0x1.2aed059bd608ap-5},
      {7.25, 0, 0x1.e9137b7a7e563p+0},
      {100000.0, 0, 0x1.7069d82dcebc1p+3},
      {-0.5, 0, 0x1.2aed059bd608ap-5},
      {-2.3, 0, 0x1.a89e0b93fee8fp+1}},
     2e-14},
    {"trigamma",
     [](double x) { return s::polygamma(1, x); },
     nullptr,
     {{0.1, 0, 0x1.95bbb2c5c8286p+6},
      {0.75, 0, 0x1.455c4ff28f0bfp+1},
      {3.5, 0, 0x1.52494db9b8c8cp-2},
      {100.0, 0, 0x1.4952e891b603ap-7},
      {-0.3, 0, 0x1.be3ec0bef688ap+3}}},
    {"polygamma3",
     [](double x) { return s::polygamma(3, x); },
     nullptr,
     {{0.1, 0, 0x1.d4c90697c9621p+15}, {1.5, 0, 0x1.68ba30a420963p+0}, {20.0, 0, 0x1.1a759789606a5p-12}}},
    {"zeta",
     nullptr,
     s::zeta,
     {{2.0, 1.0, 0x1.a51a6625307d3p+0},
      {1.5, 0.5, 0x1.31b2cc3836765p+2},
      {3.0, 20.0, 0x1.58792789208aap-10},
      {10.0, 2.5, 0x1.c872dbb07343bp-14},
      {1.01, 3.0, 0x1.8c5359c24b876p+6}}},
    {"i0",
     s::i0,
     nullptr,
     {{0.5, 0, 0x1.104072392c800p+0},
      {5.0, 0, 0x1.b3d683d659cecp+4},
      {29.0, 0, 0x1.106e5a77a6c37p+38},
      {31.0, 0, 0x1.e69b800ddbe76p+40},
      {100.0, 0, 0x1.8a6f2011ec0d2p+139},
      {700.0, 0, 0x1.c8cdeeadb5df0p+1003}}},
    {"i1",
     s::i1,
     nullptr,
     {{0.5, 0, 0x1.081571ddea056p-2},
      {5.0, 0, 0x1.855eca4b8fc01p+4},
      {29.0, 0, 0x1.0bb127a17904fp+38},
      {31.0, 0, 0x1.deb187339e909p+40},
      {100.0, 0, 0x1.8874f981a92abp+139},
      {-700.0, 0, -0x1.c87a5f5ceb9dfp+1003}}},
    {"i0e",
     s::i0e,
     nullptr,
     {{0.1, 0, 0x1.d06f8854d0076p-1},
      {20.0, 0, 0x1.6fbd7af5eb8d6p-4},
      {35.0, 0, 0x1.1535ec5a94da4p-4},
      {5000.0, 0, 0x1.71c1abf682cb8p-8}}},
    {"i1e",
     s::i1e,
     nullptr,
     {{0.1, 0, 0x1.7315ba734f4fdp-5},
      {-20.0, 0, -0x1.666ceca7946abp-4},
      {35.0, 0, 0x1.1138aa8c6c425p-4},
      {5000.0, 0, 0x1.71b8349af8472p-8}}},
    {"k0",
     s::k0,
     nullptr,
     {{1e-08, 0, 0x1.2895f6bc9a934p+4},
      {0.1, 0, 0x1.36aa32a31d695p+1},
      {1.0, 0, 0x1.af2107c43e11ap-2},
      {5.0, 0, 0x1.e3ccb54316c2cp-9},
      {50.0, 0, 0x1.49cfa9f978b3dp-75},
      {300.0, 0, 0x1.5250d1dcd3a9bp-437}}},
    {"k1",
     s::k1,
     nullptr,
     {{1e-08, 0, 0x1.7d783fffffff9p+26},
      {0.1, 0, 0x1.3b52b24a3662ap+3},
      {1.0, 0, 0x1.342d2f39d89c2p-1},
      {5.0, 0, 0x1.09115a7922411p-8},
      {50.0, 0, 0x1.4d17d74654ab6p-75},
      {300.0, 0, 0x1.52e10c445456ap-437}}},
    {"k0e",
     s::k0e,
     nullptr,
     {{0.1, 0, 0x1.5756763336907p+1}, {10.0, 0, 0x1.9107f639e5cb1p-2}, {10000.0, 0, 0x1.9aae4bbdecb50p-7}}},
    {"k1e",
     s::k1e,
     nullptr,
     {{0.1, 0, 0x1.5c7c6064e53f5p+3}, {10.0, 0, 0x1.a49ffdebfef6bp-2}, {10000.0, 0, 0x1.9ab38d6d5fa3cp-7}}},
    {"spherical_j0",
     s::spherical_j0,
     nullptr,
     {{0.1, 0, 0x1.ff25a7e6ebdf7p-1},
      {0.49, 0, 0x1.ebc18b301b3f7p-1},
      {3.0, 0, 0x1.815a092491c7ap-5},
      {40.0, 0, 0x1.3132c719b98ccp-6}}},
    {"airy_ai",
     s::airy_ai,
     nullptr,
     {{-50.0, 0, -0x1.4b887ce1f56efp-3},
      {-12.0, 0, -0x1.109c28c3cf34fp-4},
      {-8.5, 0, -0x1.52379aa33d405p-2},
      {-3.3, 0, -0x1.ab317aca273c9p-2},
      {-1.5, 0, 0x1.db661389897f8p-2},
      {0.5, 0, 0x1.da822d7438440p-3},
      {1.9, 0, 0x1.4c8cab4defab5p-5},
      {2.5, 0, 0x1.01a74da795df8p-6},
      {10.0, 0, 0x1.e5e028a1f8cdap-34},
      {60.0, 0, 0x1.9e4a3ba75944dp-451}},
     3e-14},
    {"erfinv",
     s::erfinv,
     nullptr,
     {{1e-10, 0, 0x1.85c4480205e36p-34},
      {0.1, 0, 0x1.6bf442539fd74p-4},
      {0.49, 0, 0x1.dd0ca888f8b2bp-2},
      {0.51, 0, 0x1.f3d6444db0a4ap-2},
      {0.9, 0, 0x1.29c0146770651p+0},
      {0.999999, 0, 0x1.babd964830d58p+1},
      {-0.9999999999999, 0, -0x1.50bc24952c773p+2}}},
    {"erfcx",
     s::erfcx,
     nullptr,
     {{-20.0, 0, 0x1.0e398d7d01704p+578},
      {-1.0, 0, 0x1.409321304c1fep+2},
      {0.1, 0, 0x1.cafc68c67a05ep-1},
      {3.0, 0, 0x1.6e9827d229d2dp-3},
      {30.0, 0, 0x1.33f3abfd60d6fp-6},
      {1000.0, 0, 0x1.27cc34c9b7f2dp-11}}},
    {"ndtr",
     s::ndtr,
     nullptr,
     {{-30.0, 0, 0x1.7795ad05ea397p-656},
      {-3.0, 0, 0x1.61de1f985b5d7p-10},
      {0.2, 0, 0x1.2894ba87dce1cp-1},
      {4.0, 0, 0x1.fffbd94a1aad4p-1}},
     5e-14},
    {"log_ndtr",
     s::log_ndtr,
     nullptr,
     {{-30.0, 0, -0x1.c6523d0b3e882p+8},
      {-3.0, 0, -0x1.a6e4fc8593c02p+2},
      {-0.5, 0, -0x1.2d088d9f06be4p+0},
      {0.2, 0, -0x1.178de1f56d054p-1},
      {4.0, 0, -0x1.09ae8d0ec846fp-15}}},
    {"ndtri",
     s::ndtri,
     nullptr,
     {{1e-200, 0, -0x1.e34a1d1f58ae2p+4},
      {1e-10, 0, -0x1.97203597a2155p+2},
      {0.01, 0, -0x1.29c5c4630ff0fp+1},
      {0.3, 0, -0x1.0c7e39582c5fbp-1},
      {0.6, 0, 0x1.036d6c4a04b59p-2},
      {0.95, 0, 0x1.a515209676abbp+0}}},
    {"igamma",
     nullptr,
     s::igamma,
     {{0.5, 0.2, 0x1.e442b6bec21ecp-2},
      {2.5, 1.0, 0x1.34f37283a59adp-3},
      {3.0, 10.0, 0x1.fe95027ff1c39p-1},
      {50.0, 45.0, 0x1.f9735852ae139p-3},
      {1000.0, 1010.0, 0x1.415f227810fd7p-1}}},
    {"igammac",
     nullptr,
     s::igammac,
     {{0.5, 0.2, 0x1.0ddea4a09ef0ap-1},
      {2.5, 1.0, 0x1.b2c3235f16995p-1},
      {3.0, 10.0, 0x1.6afd800e3c6c3p-9},
      {50.0, 80.0, 0x1.12461cdfa636fp-13},
      {1000.0, 1010.0, 0x1.7d41bb0fde052p-2}}},
};

TEST(SpecialFunctions, AgreeWithKnownValues) {
  for (const Row& row : rows) {
    double worst = 0, where = 0;
    for (const Value& v : row.values) {
      const double got = row.one ? row.one(v.x) : row.two(v.x, v.y), error = std::abs(got - v.want) / std::abs(v.want);
      if (!(error <= worst)) worst = error, where = v.x;
    }
    std::printf("  %-14s %.2g at %g\n", row.name, worst, where);
    EXPECT_LE(worst, row.limit) << row.name << " at " << where;
  }
}

TEST(SpecialFunctions, Edges) {
  EXPECT_EQ(s::digamma(0.0), -INFINITY);
  EXPECT_EQ(s::digamma(-0.0), INFINITY);
  EXPECT_TRUE(std::isnan(s::digamma(-3)));
  EXPECT_EQ(s::zeta(1, 2), INFINITY);
  EXPECT_TRUE(std::isnan(s::zeta(0.5, 2)));
  EXPECT_EQ(s::erfinv(1), INFINITY);
  EXPECT_EQ(s::erfinv(-1), -INFINITY);
  EXPECT_TRUE(std::isnan(s::erfinv(1.5)));
  EXPECT_EQ(s::ndtri(0), -INFINITY);
  EXPECT_EQ(s::ndtri(0.5), 0);
  EXPECT_EQ(s::k0(0), INFINITY);
  EXPECT_TRUE(std::isnan(s::k1(-1)));
  EXPECT_TRUE(std::isnan(s::i0(std::numeric_limits<double>::infinity())));  // as PyTorch has it
  EXPECT_EQ(s::igamma(2, 0), 0);
  EXPECT_EQ(s::igammac(2, INFINITY), 0);
  EXPECT_EQ(s::entr(0), 0);
  EXPECT_EQ(s::entr(-1), -INFINITY);
  EXPECT_EQ(s::sinc(0), 1);
}

TEST(SpecialFunctions, OrthogonalPolynomials) {
  using enum s::Polynomial;
  const double x = 0.3, t = std::acos(x);
  EXPECT_NEAR(s::orthogonal<T>(x, 5.0), std::cos(5 * t), 1e-14);
  EXPECT_NEAR(s::orthogonal<U>(x, 5.0), std::sin(6 * t) / std::sin(t), 1e-14);
  EXPECT_NEAR(s::orthogonal<V>(x, 5.0), std::cos(5.5 * t) / std::cos(0.5 * t), 1e-14);
  EXPECT_NEAR(s::orthogonal<W>(x, 5.0), std::sin(5.5 * t) / std::sin(0.5 * t), 1e-14);
  EXPECT_NEAR(s::orthogonal<H>(x, 3.0), 8 * x * x * x - 12 * x, 1e-14);
  EXPECT_NEAR(s::orthogonal<He>(x, 3.0), x * x * x - 3 * x, 1e-14);
  EXPECT_NEAR(s::orthogonal<L>(x, 2.0), 0.5 * (x * x - 4 * x + 2), 1e-14);
  EXPECT_NEAR(s::orthogonal<P>(x, 3.0), 0.5 * (5 * x * x * x - 3 * x), 1e-14);
  EXPECT_EQ(s::shifted<T>(0.75, 2.0), s::orthogonal<T>(0.5, 2.0));
  EXPECT_EQ(s::orthogonal<P>(x, 0.0), 1);
  EXPECT_EQ(s::orthogonal<P>(x, -1.0), 0);
}

}  // namespace
}  // namespace rush::formula
