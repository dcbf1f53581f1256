// The generator and its fills against values that PyTorch 2.15 gave, on an x86-64 processor with AVX-512 that is not
// Intel's. A row {what, seed, n, last, next} was obtained as
//
//     g = torch.Generator().manual_seed(seed)
//     last = torch.empty(n, dtype=dtype).what_(arguments as in draw() below, generator=g)[-3:].tolist()
//     next = torch.empty(1, dtype=torch.int64).random_(2**20, generator=g).item()
//
// so `next` tells whether as many bits were drawn as PyTorch draws.
#include "rushlight/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "rushlight/error.h"
#include "rushlight/half.h"
#include "rushlight/parallel.h"

namespace {

namespace random = rush::random;
using rush::BFloat16;
using rush::Generator;
using rush::Half;

template <class T>
std::vector<T> linspace(int64_t n) {
  std::vector<T> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(static_cast<double>(i) / std::max<int64_t>(n - 1, 1));
  return values;
}

template <class T>
void draw(const std::string& what, T* out, int64_t n, Generator& g) {
  constexpr bool half = rush::is_half_type<T>;
  if constexpr (std::is_floating_point_v<T> || half) {
    if (what == "uniform") return random::uniform(out, n, half ? -0.3 : -0.5, half ? 0.9 : 2, g);
    if (what == "normal") return random::normal(out, n, 0.5, 2, g);
    if (what == "normal_serial")
      return random::normal_serial(out, n, 0.5, 2, g);  // into every second element of a tensor
    if (what == "log_normal") return random::log_normal(out, n, 0.5, 0.25, g);
    if (what == "exponential") return random::exponential(out, n, 1.5, g);
    if (what == "cauchy") return random::cauchy(out, n, 0.5, 2, g);
    if (what == "bernoulli_each") {  // bernoulli_(torch.linspace(0, 1, n))
      std::vector<uint8_t> ones(n);
      random::bernoulli(ones.data(), linspace<T>(n).data(), n, g);
      std::copy(ones.begin(), ones.end(), out);
      return;
    }
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    if (what == "wide")
      return random::integers(out, n, -(int64_t{1} << 40), uint64_t{1} << 41, g);  // random_(-2**40, 2**40)
    if (what == "all_bits") return random::integers(out, n, INT64_MIN, 0, g);      // random_(-2**63, None)
    if (what == "permutation") return random::permutation(out, n, g);              // torch.randperm(n)
  }
  if constexpr (!std::is_same_v<T, bool>)
    if (what == "geometric") return random::geometric(out, n, 0.3, g);
  if (what == "bernoulli") return random::bernoulli(out, n, 0.3, g);
  if (what == "integers") return random::integers(out, n, -5, 105, g);  // random_(-5, 100)
  if (what == "integers_full") return random::integers(out, n, g);      // random_()
  FAIL() << what;
}

template <class Value>
struct Row {
  std::string what;
  uint64_t seed;
  int64_t n;
  std::vector<Value> last;
  int64_t next;
};

template <class T, class Value = std::conditional_t<std::is_integral_v<T>, int64_t, double>>
void check(const std::vector<Row<Value>>& rows) {
  for (const auto& [what, seed, n, last, next] : rows) {
    SCOPED_TRACE(what + " seed " + std::to_string(seed) + " n " + std::to_string(n));
    Generator generator(seed);
    const std::unique_ptr<T[]> out(new T[n]);
    draw(what, out.get(), n, generator);
    for (size_t i = 0; i < last.size(); ++i) {
      const T value = out[n - last.size() + i];
      if constexpr (std::is_integral_v<T>)
        EXPECT_EQ(value, last[i]);
      else if constexpr (std::is_same_v<T, double>)
        EXPECT_DOUBLE_EQ(value, last[i]);
      else if constexpr (std::is_same_v<T, float>)
        EXPECT_FLOAT_EQ(value, static_cast<float>(last[i]));
      else
        EXPECT_EQ(static_cast<float>(value), static_cast<float>(static_cast<T>(last[i])));
    }
    EXPECT_EQ(generator.random() % (1 << 20), next);
  }
}

TEST(Generator, MatchesPyTorch_float) {
  check<float>({
      {"uniform", 0, 1, {0.740641475}, 305711},
      {"uniform", 1, 5, {0.507673144, 1.33671117, -0.426796108}, 836489},
      {"uniform", 42, 15, {1.67351103, 0.919288218, 1.35273516}, 912756},
      {"uniform", 0, 16, {-0.0778526366, 0.234721124, 0.796304464}, 170584},
      {"uniform", 1, 17, {0.658864021, 0.637465835, 0.931179941}, 1015065},
      {"uniform", 42, 100, {0.32820937, 0.306854516, -0.459493279}, 438974},
      {"uniform", 7, 1000, {0.118138164, 0.518825173, 1.95037568}, 76041},
      {"normal", 0, 1, {3.58199215}, 963395},
      {"normal", 1, 5, {0.623354495, 1.74263465, -0.403811932}, 966604},
      {"normal", 42, 15, {2.72058058, -2.8795979, -1.47791982}, 184779},
      {"normal", 0, 16, {2.97531581, 2.73355436, 0.00544369221}, 170584},
      {"normal", 1, 17, {-1.09613967, 0.236753583, -1.0968796}, 745431},
      {"normal", 42, 100, {0.746598244, 1.19973552, 1.73456144}, 263160},
      {"normal", 7, 1000, {5.39479876, 0.838432074, -1.19755101}, 751270},
      {"normal_serial", 0, 5, {-3.85757875, 1.63686252, -1.66904473}, 374564},
      {"normal_serial", 42, 1000, {-0.634183586, 2.2889874, 1.57468104}, 319278},
      {"log_normal", 0, 5, {0.956286848, 1.90048254, 1.25717783}, 374564},
      {"log_normal", 42, 1000, {1.43079042, 2.06189084, 1.88576794}, 319278},
      {"exponential", 0, 1, {2.33888412}, 435829},
      {"exponential", 1, 5, {0.177935213, 0.12994644, 0.541389346}, 229520},
      {"exponential", 42, 15, {1.23230338, 1.36272168, 0.316043049}, 235796},
      {"exponential", 0, 16, {0.648406982, 0.438324958, 0.387499332}, 854131},
      {"exponential", 1, 17, {0.0627249405, 0.0832976922, 0.681544423}, 412649},
      {"exponential", 42, 100, {0.617578626, 0.0400947966, 2.17391753}, 769598},
      {"exponential", 7, 1000, {0.00386968325, 1.70106399, 0.774476588}, 196000},
      {"cauchy", 0, 5, {0.243401319, 8.36614704, 1.47997785}, 610581},
      {"cauchy", 42, 1000, {-2.17147136, -6.71321058, -0.0146795548}, 319278},
      {"geometric", 0, 5, {3, 1, 2}, 610581},
      {"geometric", 42, 1000, {5, 7, 3}, 319278},
      {"bernoulli", 0, 1, {0}, 435829},
      {"bernoulli", 1, 5, {1, 1, 0}, 229520},
      {"bernoulli", 42, 15, {0, 0, 0}, 235796},
      {"bernoulli", 0, 16, {0, 0, 0}, 854131},
      {"bernoulli", 1, 17, {1, 1, 0}, 412649},
      {"bernoulli", 42, 100, {0, 1, 0}, 769598},
      {"bernoulli", 7, 1000, {1, 0, 0}, 196000},
      {"bernoulli_each", 0, 5, {1, 1, 1}, 152315},
      {"bernoulli_each", 42, 1000, {1, 1, 1}, 702965},
      {"integers", 0, 5, {93, 25, 38}, 152315},
      {"integers", 42, 1000, {-4, 66, 78}, 702965},
      {"integers_full", 0, 5, {1484222, 2214888, 5157545}, 152315},
      {"integers_full", 42, 1000, {9179809, 7884227, 497446}, 702965},
  });
}

TEST(Generator, MatchesPyTorch_double) {
  check<double>({
      {"uniform", 0, 1, {1.9251325045163827}, 435829},
      {"uniform", 1, 5, {0.085631284862098422, -0.057251931380611187, 0.89017014037248643}, 229520},
      {"uniform", 42, 15, {1.6062993270787169, 1.6762526044592436, 0.44383238817639853}, 235796},
      {"uniform", 0, 16, {1.0547631216988191, 0.70462100195427135, 0.60200124761089868}, 854131},
      {"uniform", 1, 17, {-0.27550800512563323, -0.20636020426509094, 1.1005986418781391}, 412649},
      {"uniform", 42, 100, {1.0100265871177034, -0.35407657702385503, 1.9041130563249662}, 769598},
      {"uniform", 7, 1000, {-0.48553072169846845, 1.8051071404132941, 1.2176273907992199}, 196000},
      {"normal", 0, 1, {3.5819922164880866}, 963395},
      {"normal", 1, 5, {0.62335451647469664, 1.7426346573708431, -0.40381192940776589}, 966604},
      {"normal", 42, 15, {2.7205806208796051, -2.8795977935942649, -1.4779197622931453}, 184779},
      {"normal", 0, 16, {-1.9537626780021662, 0.64277694241023386, 1.1760348061014756}, 854131},
      {"normal", 1, 17, {2.6667146017276684, 2.2793490316575138, -3.3571667080161558}, 886073},
      {"normal", 42, 100, {0.98232622247028956, 2.6672712063576074, -1.4183267876121544}, 881691},
      {"normal", 7, 1000, {-1.2258585860895013, -2.2856926249123566, -0.45556236783040294}, 582121},
      {"exponential", 0, 5, {0.41002939592934096, 1.6900790961439212, 0.69047029054853859}, 610581},
      {"exponential", 42, 1000, {0.15257139128740124, 0.060018888619699243, 0.36295125331011358}, 319278},
      {"bernoulli_each", 0, 5, {1, 0, 1}, 610581},
      {"bernoulli_each", 42, 1000, {1, 1, 1}, 319278},
      {"integers_full", 0, 5, {4137753702977065, 8293357854226700, 5809860774058864}, 610581},
      {"integers_full", 42, 1000, {1842492823458552, 775472196126366, 3781454655124063}, 319278},
  });
}

TEST(Generator, MatchesPyTorch_Half) {
  check<Half>({
      {"uniform", 0, 5, {-0.193848, -0.141602, 0.0689087}, 152315},
      {"uniform", 42, 1000, {0.356689, 0.263916, -0.264404}, 702965},
      {"normal", 0, 5, {-3.85742, 1.63672, -1.66895}, 374564},
      {"normal", 1, 16, {3.875, 0.957031, 1.43555}, 167302},
      {"normal", 42, 17, {0.583496, -0.00315094, 2.21875}, 184779},
      {"normal", 7, 100, {0.184814, 1.4209, -1.80664}, 950621},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
      {"integers_full", 0, 5, {1661, 999, 982}, 152315},
      {"integers_full", 42, 1000, {619, 935, 119}, 702965},
  });
}

TEST(Generator, MatchesPyTorch_BFloat16) {
  check<BFloat16>({
      {"uniform", 0, 5, {-0.193359, -0.141602, 0.0688477}, 152315},
      {"uniform", 42, 1000, {0.357422, 0.263672, -0.263672}, 702965},
      {"normal", 0, 5, {-3.85938, 1.64062, -1.67188}, 374564},
      {"normal", 1, 16, {3.875, 0.957031, 1.4375}, 167302},
      {"normal", 42, 17, {0.582031, -0.00314331, 2.21875}, 184779},
      {"normal", 7, 100, {0.18457, 1.42188, -1.80469}, 950621},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
      {"integers_full", 0, 5, {47, 62, 69}, 152315},
      {"integers_full", 42, 1000, {26, 238, 151}, 702965},
  });
}

TEST(Generator, MatchesPyTorch_int64) {
  check<int64_t>({
      {"integers", 0, 1, {69}, 305711},
      {"integers", 1, 5, {34, 33, 68}, 836489},
      {"integers", 42, 15, {15, 34, 31}, 912756},
      {"integers", 0, 16, {49, 53, 6}, 170584},
      {"integers", 1, 17, {53, 70, 22}, 1015065},
      {"integers", 42, 100, {89, 6, 99}, 438974},
      {"integers", 7, 1000, {9, 16, 56}, 76041},
      {"integers_full", 0, 5, {1895649597198586619, 827948490035658087, 7815051614634499795}, 610581},
      {"integers_full", 42, 1000, {2523858284150936592, 8305413185067322936, 8227354374233650672}, 319278},
      {"bernoulli", 0, 5, {0, 0, 0}, 610581},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
      {"geometric", 0, 5, {3, 1, 2}, 610581},
      {"geometric", 42, 1000, {5, 7, 3}, 319278},
      {"wide", 0, 5, {291447657211, -258354086553, -1058178736429}, 610581},
      {"wide", 42, 1000, {810846934032, 316498546232, 234167203312}, 319278},
      {"all_bits", 0, 5, {-7327722439656189189, -8395423546819117721, 7815051614634499795}, 610581},
      {"all_bits", 42, 1000, {2523858284150936592, -917958851787452872, 8227354374233650672}, 319278},
      {"permutation", 0, 1, {0}, 985772},
      {"permutation", 0, 5, {1, 3, 2}, 963395},
      {"permutation", 1, 100, {87, 65, 53}, 606363},
      {"permutation", 42, 1000, {638, 96, 455}, 497562},
  });
}

TEST(Generator, MatchesPyTorch_int32) {
  check<int32_t>({
      {"integers_full", 42, 1000, {1116476131, 2088259263, 1946654618}, 702965},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
  });
}

TEST(Generator, MatchesPyTorch_int16) {
  check<int16_t>({
      {"integers_full", 42, 1000, {4835, 20159, 6042}, 702965},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
  });
}

TEST(Generator, MatchesPyTorch_int8) {
  check<int8_t>({
      {"integers_full", 42, 1000, {99, 63, 26}, 702965},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
  });
}

TEST(Generator, MatchesPyTorch_uint8) {
  check<uint8_t>({
      {"integers_full", 42, 1000, {227, 191, 154}, 702965},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
  });
}

TEST(Generator, MatchesPyTorch_bool) {
  check<bool>({
      {"integers_full", 42, 1000, {1, 1, 0}, 702965},
      {"bernoulli", 42, 1000, {1, 1, 0}, 319278},
  });
}

TEST(Generator, MultinomialMatchesPyTorch) {
  // torch.multinomial(torch.arange(1, 51, dtype=dtype), samples, replacement,
  // generator=torch.Generator().manual_seed(7))
  const auto test = [](auto zero) {
    using T = decltype(zero);
    std::vector<T> weights(100);
    for (int i = 0; i < 50; ++i) weights[99 - i] = weights[i] = static_cast<T>(i + 1);
    const auto sample = [&](int64_t rows, int64_t samples, bool replacement) {
      Generator generator(7);
      std::vector<int64_t> out(rows * samples);
      random::multinomial(out.data(), weights.data(), rows, 50, samples, replacement, generator);
      return out;
    };
    using Indices = std::vector<int64_t>;
    EXPECT_EQ(sample(1, 8, false), (Indices{16, 35, 37, 13, 31, 45, 11, 28}));
    EXPECT_EQ(sample(1, 8, true), (Indices{26, 25, 46, 40, 48, 45, 26, 37}));
    EXPECT_EQ(sample(1, 1, true), (Indices{16}));
    EXPECT_EQ(sample(2, 3, true), (Indices{26, 25, 46, 20, 36, 30}));  // second row reversed
  };
  test(0.0f);
  test(0.0);
  Generator generator(0);
  int64_t out[1];
  for (const std::vector<float>& bad : {std::vector{0.0f, 0.0f}, {-1.0f, 2.0f}, {NAN, 1.0f}, {INFINITY, 1.0f}})
    for (const bool replacement : {false, true})
      EXPECT_THROW(random::multinomial(out, bad.data(), 1, 2, 1, replacement, generator), rush::Error);
}

TEST(Generator, StateHasPyTorchsBytes) {
  // g.manual_seed(5); torch.randn(3, generator=g, dtype=torch.float64): FNV-1a hash of g.get_state()'s bytes
  Generator generator(5);
  double values[3];
  random::normal(values, 3, 0, 1, generator);
  const std::vector<uint8_t> state = generator.get_state();
  ASSERT_EQ(state.size(), 5056u);
  uint64_t hash = 1469598103934665603u;
  for (const uint8_t byte : state) hash = (hash ^ byte) * 1099511628211u;
  EXPECT_EQ(hash, 6901903223367887584u);

  Generator other(1);
  other.set_state(state);
  EXPECT_EQ(other.initial_seed(), 5u);
  EXPECT_DOUBLE_EQ(other.normal(), 0.6675243015344896);
  EXPECT_EQ(other.random() % (1 << 20), 558088u);
}

TEST(Generator, StateComesBackAtAnyPoint) {
  for (const int64_t drawn : {0, 1, 623, 624, 625, 1248}) {
    Generator generator(3);
    std::vector<uint32_t> skip(drawn);
    generator.random(skip.data(), drawn);
    Generator other(4);
    other.set_state(generator.get_state());
    const Generator copy = generator;
    EXPECT_EQ(copy.get_state(), generator.get_state());
    for (int i = 0; i < 700; ++i) ASSERT_EQ(other.random(), generator.random());
    EXPECT_EQ(other.get_state(), generator.get_state());
  }
}

TEST(Generator, RejectsBadState) {
  Generator generator(0);
  std::vector<uint8_t> state = generator.get_state();
  EXPECT_THROW(generator.set_state(std::span(state).first(5048)), rush::Error);
  EXPECT_THROW(generator.set_state(std::vector<uint8_t>(5056)), rush::Error);
  state[17] = 200;  // next word far outside
  EXPECT_THROW(generator.set_state(state), rush::Error);
}

TEST(Generator, BlocksGiveTheSameDraws) {
  Generator one(9), many(9);
  std::vector<uint32_t> block(5000);
  int64_t at = 0;
  for (const int64_t n : {1, 3, 620, 700, 17, 1300, 2000}) {
    many.random(block.data() + at, n);
    at += n;
  }
  for (int64_t i = 0; i < at; ++i) ASSERT_EQ(block[i], one.random()) << i;
}

TEST(Generator, SeedsAreKeptWhole) {
  Generator generator;
  EXPECT_EQ(generator.initial_seed(), 67280421310721u);
  generator.manual_seed((uint64_t{1} << 40) + 5);
  EXPECT_EQ(generator.initial_seed(), (uint64_t{1} << 40) + 5);
  EXPECT_EQ(generator.random(), Generator(5).random());
  std::set<uint64_t> seeds;
  for (int i = 0; i < 8; ++i) seeds.insert(generator.seed());
  EXPECT_EQ(seeds.size(), 8u);
  EXPECT_TRUE(seeds.count(generator.initial_seed()));
}

TEST(Generator, ValuesDoNotDependOnThreads) {
  const int before = rush::num_threads();
  std::vector<float> normal[3], clocks[3];
  for (const int threads : {1, 2, 3}) {
    rush::set_num_threads(threads);
    Generator generator(11);
    normal[threads - 1].resize(200001);
    clocks[threads - 1].resize(200001);
    random::normal(normal[threads - 1].data(), 200001, 0, 1, generator);
    random::exponential(clocks[threads - 1].data(), 200001, 1, generator);
  }
  rush::set_num_threads(before);
  EXPECT_TRUE(normal[0] == normal[1] && normal[0] == normal[2]);
  EXPECT_TRUE(clocks[0] == clocks[1] && clocks[0] == clocks[2]);
}

TEST(Generator, UniformStaysBelowItsBound) {
  // Near 1000 a float has steps of 2^-14: many values round up to 1001, and become 1000.
  Generator generator(0);
  std::vector<float> values(1000000);
  random::uniform(values.data(), 1000000, 1000, 1001, generator);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1001);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 1000);
}

TEST(Generator, DistributionsHaveTheirMoments) {
  Generator generator(2);
  constexpr int64_t n = 400000;
  std::vector<float> x(n);
  const auto mean = [&](auto f) {
    double sum = 0;
    for (const float value : x) sum += f(value);
    return sum / n;
  };
  random::normal(x.data(), n, 1, 2, generator);
  EXPECT_NEAR(mean([](double v) { return v; }), 1, 0.02);
  EXPECT_NEAR(mean([](double v) { return (v - 1) * (v - 1); }), 4, 0.05);
  EXPECT_NEAR(mean([](double v) { return (v - 1) * (v - 1) * (v - 1); }), 0, 0.2);
  random::bernoulli(x.data(), n, 0.25, generator);
  EXPECT_NEAR(mean([](double v) { return v; }), 0.25, 0.004);
}

}  // namespace
