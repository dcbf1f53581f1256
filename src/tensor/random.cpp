// The CPU generator and the fills that turn its bits into values. Drawing is serial, as the values are those that
// PyTorch draws one after the other; what is costly about a value is computed from the drawn bits on all threads. The
// comparisons behind the details are in tests/cpp/generator_test.cpp.
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>

#include "rushlight/allocator.h"
#include "rushlight/error.h"
#include "rushlight/generator.h"
#include "rushlight/half.h"
#include "rushlight/parallel.h"
#include "tensor/random_simd.h"

namespace rush {

// ---- the generator -------------------------------------------------------------------------------------------------

Generator::Generator(const Generator& other) { *this = other; }

Generator& Generator::operator=(const Generator& other) {
  std::memcpy(state_, other.state_, sizeof state_);
  next_ = other.next_;
  fresh_ = other.fresh_;
  has_normal_ = other.has_normal_;
  next_normal_ = other.next_normal_;
  seed_ = other.seed_;
  offset_ = other.offset_;
  device_ = other.device_;
  return *this;
}

Generator::Generator(Device device) : device_(device) {
  check(!device.is_meta(), "Generator: no generator for device ", device);
  manual_seed(default_seed);
}

Generator::Philox Generator::philox(uint64_t draws) {
  check(device_.is_cuda(), "Expected a 'cuda' device type for generator but found '", device_, "'");
  const Philox now{seed_, offset_};
  offset_ += (draws + 3) / 4 * 4;
  return now;
}

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < words; ++i) state_[i] = 1812433253 * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
  next_ = words;
  fresh_ = true;
  has_normal_ = false;
}

uint64_t Generator::seed() {
  std::random_device device;
  const uint64_t high = device();
  manual_seed(high << 32 | device());
  return seed_;
}

void Generator::twist() {
  simd::twist(state_);
  next_ = 0;
  fresh_ = false;
}

void Generator::random(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (next_ == words) twist();
    const int64_t count = std::min<int64_t>(n, words - next_);
    simd::temper(state_ + next_, out, count);
    next_ += static_cast<uint32_t>(count);
    out += count;
    n -= count;
  }
}

double Generator::normal() {
  if (has_normal_) {
    has_normal_ = false;
    return next_normal_;
  }
  const double theta = 2 * std::numbers::pi * uniform();
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  next_normal_ = radius * std::sin(theta);
  has_normal_ = true;
  return radius * std::cos(theta);
}

namespace {

struct StateLayout {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t words[624];
  double unused_x, normal, unused_rho;
  int32_t has_normal;
  int32_t unused[3];
};
static_assert(sizeof(StateLayout) == Generator::state_bytes && std::endian::native == std::endian::little);

}  // namespace

std::vector<uint8_t> Generator::get_state() const {
  if (device_.is_cuda()) {
    std::vector<uint8_t> bytes(philox_state_bytes);
    std::memcpy(bytes.data(), &seed_, 8);
    std::memcpy(bytes.data() + 8, &offset_, 8);
    return bytes;
  }
  StateLayout layout{};
  layout.seed = seed_;
  layout.left = fresh_ ? 1 : static_cast<int32_t>(words + 1 - next_);
  layout.seeded = 1;
  layout.next = fresh_ ? 0 : next_;
  std::copy_n(state_, words, layout.words);
  layout.normal = has_normal_ ? next_normal_ : 0;
  layout.has_normal = has_normal_;
  std::vector<uint8_t> bytes(sizeof layout);
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

void Generator::set_state(std::span<const uint8_t> state) {
  if (device_.is_cuda()) {
    check(state.size() == philox_state_bytes, "RNG state is wrong size: expected ", size_t(philox_state_bytes),
          " bytes, got ", state.size());
    std::memcpy(&seed_, state.data(), 8);
    std::memcpy(&offset_, state.data() + 8, 8);
    return;
  }
  StateLayout layout;
  if (state.size() != sizeof layout)
    throw Error("set_state: expected the " + std::to_string(sizeof layout) + " bytes of a CPU generator's state, got " +
                std::to_string(state.size()));
  std::memcpy(&layout, state.data(), sizeof layout);
  const bool fresh = layout.left == 1 && layout.next == 0;
  if (layout.seeded != 1 || layout.left < 1 || (!fresh && layout.next + layout.left != words + 1))
    throw Error("set_state: these bytes are no valid mt19937 state");
  seed_ = layout.seed;
  for (uint32_t i = 0; i < words; ++i) state_[i] = static_cast<uint32_t>(layout.words[i]);
  fresh_ = fresh;
  next_ = fresh ? words : static_cast<uint32_t>(layout.next);
  has_normal_ = layout.has_normal != 0;
  next_normal_ = layout.normal;
}

Generator& default_generator() {
  static Generator* const generator = [] {
    pthread_atfork([] { default_generator().mutex().lock(); }, [] { default_generator().mutex().unlock(); },
                   [] { default_generator().mutex().unlock(); });
    return new Generator;
  }();
  return *generator;
}

Generator& default_generator(Device device) {
  if (device.is_cpu()) return default_generator();
  static std::map<int, Generator>& generators = *new std::map<int, Generator>;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  return generators.try_emplace(device.index, device).first->second;
}

// ---- fills ---------------------------------------------------------------------------------------------------------

namespace random {
namespace {

constexpr int64_t cheap_segment = 2048;        // draws and values stay in the first-level cache
constexpr int64_t costly_segment = 64 * 1024;  // enough values for all threads
constexpr int64_t costly_grain = 1024;
constexpr int64_t block = 16;  // of PyTorch's normal_: pairs are eight apart

struct Free {
  size_t bytes;
  void operator()(void* pointer) const { cpu_free(pointer, bytes); }
};

template <class T>
std::unique_ptr<T[], Free> buffer(int64_t n) {
  const size_t bytes = n * sizeof(T);
  return {static_cast<T*>(cpu_allocate(bytes)), Free{bytes}};
}

// Draws segment after segment, `draws` for each element, and calls fill(lo, hi, drawn) for ranges of elements, costly
// ones in parallel. The caller holds the lock.
template <class Fill>
void in_segments(int64_t n, int draws, bool costly, Generator& generator, Fill fill) {
  const int64_t segment = std::min(n, costly ? costly_segment : cheap_segment);
  const auto drawn = buffer<uint32_t>(segment * draws);
  for (int64_t lo = 0; lo < n; lo += segment) {
    const int64_t count = std::min(segment, n - lo);
    generator.random(drawn.get(), count * draws);
    parallel_for(0, count, costly ? costly_grain : segment,
                 [&](int64_t a, int64_t b) { fill(lo + a, lo + b, drawn.get() + a * draws); });
  }
}

uint64_t join(const uint32_t* draws) { return static_cast<uint64_t>(draws[0]) << 32 | draws[1]; }
double fraction(uint64_t bits) { return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
double fraction(const uint32_t* draws) { return fraction(join(draws)); }
float fraction(uint32_t draw) { return static_cast<float>(draw & 0xffffff) * 0x1p-24f; }

// out[i] = value(u) for uniform u with 53 bits.
template <class T, class Value>
void from_fraction(T* out, int64_t n, Generator& generator, Value value) {
  const std::lock_guard lock(generator.mutex());
  in_segments(n, 2, true, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
    for (int64_t i = lo; i < hi; ++i, draws += 2) out[i] = static_cast<T>(value(fraction(draws)));
  });
}

// A value that rounding takes up to `to` becomes `from`.
template <class T>
void uniform_unlocked(T* out, int64_t n, double from, double to, Generator& generator) {
  if constexpr (std::is_same_v<T, double>) {
    in_segments(n, 2, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      for (int64_t i = lo; i < hi; ++i, draws += 2) {
        const double value = std::fma(fraction(draws), to - from, from);
        out[i] = value < to ? value : from;
      }
    });
  } else {
    const auto low = static_cast<float>(from), high = static_cast<float>(to);
    in_segments(n, 1, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      if constexpr (std::is_same_v<T, float>) {
        simd::uniform(draws, out + lo, hi - lo, low, high);
      } else {
        float values[cheap_segment];
        simd::uniform(draws, values, hi - lo, low, high);
        for (int64_t i = lo; i < hi; ++i) {
          const T value = values[i - lo];
          out[i] = value < T(high) ? value : T(low);
        }
      }
    });
  }
}

// Box and Muller in place on blocks of uniform values.
void normal_blocks(float* data, int64_t blocks, double mean, double std) {
  simd::normal(data, blocks, static_cast<float>(mean), static_cast<float>(std));
}

void normal_blocks(double* data, int64_t blocks, double mean, double std) {
  for (double* end = data + block * blocks; data < end; data += block)
    for (int64_t j = 0; j < block / 2; ++j) {
      const double radius = std::sqrt(-2 * std::log(1 - data[j])), theta = 2 * std::numbers::pi * data[j + block / 2];
      data[j] = std::fma(radius * std::cos(theta), std, mean);
      data[j + block / 2] = std::fma(radius * std::sin(theta), std, mean);
    }
}

// Remainders by the same number, by two multiplications (Lemire, Kaser and Kurz 2019, arXiv:1902.01961).
class Remainder {
 public:
  explicit Remainder(uint32_t divisor) : divisor_(divisor), inverse_(UINT64_MAX / divisor + 1) {}
  uint32_t operator()(uint32_t x) const {
    return static_cast<uint32_t>(static_cast<unsigned __int128>(inverse_ * x) * divisor_ >> 64);
  }

 private:
  uint64_t divisor_, inverse_;
};

}  // namespace

template <class T>
void uniform(T* out, int64_t n, double from, double to, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  uniform_unlocked(out, n, from, to, generator);
}

template <class T>
void normal_serial(T* out, int64_t n, double mean, double std, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(std::fma(generator.normal(), std, mean));
}

template <class T>
void normal(T* out, int64_t n, double mean, double std, Generator& generator) {
  if (n < block) return normal_serial(out, n, mean, std, generator);
  const std::lock_guard lock(generator.mutex());
  const int64_t blocks = n / block;
  if constexpr (is_half_type<T>) {
    in_segments(blocks, block, true, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      float values[block];
      for (int64_t b = lo; b < hi; ++b, draws += block) {
        simd::uniform(draws, values, block, 0, 1);
        normal_blocks(values, 1, mean, std);
        std::copy_n(values, block, out + b * block);
      }
    });
  } else {
    uniform_unlocked(out, n, 0, 1, generator);
    parallel_for(0, blocks, costly_grain / block,
                 [&](int64_t lo, int64_t hi) { normal_blocks(out + lo * block, hi - lo, mean, std); });
  }
  if (n % block == 0) return;
  // The last 16 values are drawn anew, those of them that were already right as well.
  std::conditional_t<std::is_same_v<T, double>, double, float> tail[block];
  uniform_unlocked(tail, block, 0, 1, generator);
  normal_blocks(tail, 1, mean, std);
  std::copy_n(tail, block, out + n - block);
}

template <class T>
void log_normal(T* out, int64_t n, double mean, double std, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(std::exp(std::fma(generator.normal(), std, mean)));
}

template <class T>
void exponential(T* out, int64_t n, double lambda, Generator& generator) {
  from_fraction(out, n, generator, [=](double u) { return -1 / lambda * std::log1p(-u); });
}

template <class T>
void cauchy(T* out, int64_t n, double median, double sigma, Generator& generator) {
  from_fraction(out, n, generator,
                [=](double u) { return std::fma(sigma, std::tan(std::numbers::pi * (u - 0.5)), median); });
}

template <class T>
void geometric(T* out, int64_t n, double p, Generator& generator) {
  const double scale = std::log1p(-p);
  from_fraction(out, n, generator, [=](double u) { return std::ceil(std::log(u) / scale); });
}

template <class T>
void bernoulli(T* out, int64_t n, double p, Generator& generator) {
  const auto threshold = static_cast<uint64_t>(std::ceil(p * 0x1p53));  // u < p, in units of the last of u's bits
  const std::lock_guard lock(generator.mutex());
  in_segments(n, 2, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
    if constexpr (std::is_same_v<T, float>) {
      simd::below(draws, out + lo, hi - lo, threshold);
    } else if constexpr (sizeof(T) == 1) {
      simd::below(draws, reinterpret_cast<uint8_t*>(out + lo), hi - lo, threshold);
    } else {
      for (int64_t i = lo; i < hi; ++i, draws += 2)
        out[i] = static_cast<T>((join(draws) & ((uint64_t{1} << 53) - 1)) < threshold);
    }
  });
}

template <class P>
void bernoulli(uint8_t* out, const P* p, int64_t n, Generator& generator) {
  constexpr bool is_double = std::is_same_v<P, double>;
  const std::lock_guard lock(generator.mutex());
  in_segments(n, is_double ? 2 : 1, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
    for (int64_t i = lo; i < hi; ++i) {
      if constexpr (is_double)
        out[i] = fraction(draws + 2 * (i - lo)) < p[i];
      else
        out[i] = fraction(draws[i - lo]) < static_cast<float>(p[i]);
    }
  });
}

template <class T>
void integers(T* out, int64_t n, int64_t from, uint64_t range, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  const auto value = [from](uint64_t offset) { return static_cast<T>(static_cast<int64_t>(offset + from)); };
  if (range == 0 || range >= uint64_t{1} << 28) {  // wide ranges take 64 bits, so that the remainder is nearly uniform
    in_segments(n, 2, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      for (int64_t i = lo; i < hi; ++i, draws += 2)
        out[i] = range ? value(join(draws) % range) : static_cast<T>(static_cast<int64_t>(join(draws)));
    });
  } else {
    const Remainder remainder(static_cast<uint32_t>(range));
    in_segments(n, 1, true, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      for (int64_t i = lo; i < hi; ++i) out[i] = value(remainder(draws[i - lo]));
    });
  }
}

template <class T>
void integers(T* out, int64_t n, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    constexpr uint64_t range = uint64_t{1} << (std::is_same_v<T, double> ? 53 : 63);
    in_segments(n, 2, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      for (int64_t i = lo; i < hi; ++i, draws += 2)
        out[i] = static_cast<T>(join(draws) % (range + std::is_same_v<T, double>));
    });
  } else {
    constexpr uint32_t range = std::is_same_v<T, float>      ? (1 << 24) + 1
                               : std::is_same_v<T, Half>     ? (1 << 11) + 1
                               : std::is_same_v<T, BFloat16> ? (1 << 8) + 1
                                                             : static_cast<uint32_t>(std::numeric_limits<T>::max()) + 1;
    in_segments(n, 1, false, generator, [&](int64_t lo, int64_t hi, const uint32_t* draws) {
      for (int64_t i = lo; i < hi; ++i) out[i] = static_cast<T>(draws[i - lo] % range);
    });
  }
}

void permutation(int64_t* out, int64_t n, Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  std::iota(out, out + n, 0);
  const bool wide = n >= UINT32_MAX / 20;  // where a remainder of 32 bits would be uneven by more than 5 %
  in_segments(std::max<int64_t>(n - 1, 0), wide ? 2 : 1, false, generator,
              [&](int64_t lo, int64_t hi, const uint32_t* draws) {
                for (int64_t i = lo; i < hi; ++i) {
                  const int64_t skip = wide ? static_cast<int64_t>(join(draws + 2 * (i - lo)) % (n - i))
                                            : draws[i - lo] % static_cast<uint32_t>(n - i);
                  std::swap(out[i], out[i + skip]);
                }
              });
}

template <class T>
void multinomial(int64_t* out, const T* weights, int64_t rows, int64_t columns, int64_t samples, bool replacement,
                 Generator& generator) {
  for (int64_t i = 0; i < rows * columns; ++i)
    if (!(weights[i] >= 0 && std::isfinite(weights[i])))
      throw Error("multinomial: probability tensor contains either inf, nan or element < 0");
  const auto need_positive = [](T sum) {
    if (!(sum > 0)) throw Error("multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
  };
  if (rows * samples == 0) return;
  const auto scores = buffer<T>(rows * columns);
  if (replacement && samples > 1) {
    const std::lock_guard lock(generator.mutex());
    for (int64_t row = 0; row < rows; ++row, weights += columns) {
      std::partial_sum(weights, weights + columns, scores.get());
      const T sum = scores[columns - 1];
      need_positive(sum);
      for (int64_t i = 0; i < columns; ++i) scores[i] /= sum;
      scores[columns - 1] = 1;
      for (int64_t i = 0; i < samples; ++i)
        *out++ = std::lower_bound(scores.get(), scores.get() + columns, generator.uniform()) - scores.get();
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    need_positive(std::accumulate(weights + row * columns, weights + (row + 1) * columns, T(0)));
  // The first of independent exponential clocks with these rates to ring is a draw by weight, the next one among the
  // rest.
  exponential(scores.get(), rows * columns, 1, generator);
  for (int64_t i = 0; i < rows * columns; ++i) scores[i] = weights[i] / scores[i];
  const auto order = buffer<int64_t>(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const T* const score = scores.get() + row * columns;
    std::iota(order.get(), order.get() + columns, 0);
    const auto earlier = [score](int64_t a, int64_t b) {
      return score[a] > score[b] || (score[a] == score[b] && a < b);
    };
    std::partial_sort(order.get(), order.get() + samples, order.get() + columns, earlier);
    out = std::copy_n(order.get(), samples, out);
  }
}

#define RUSH_CONTINUOUS(T)                                              \
  template void uniform(T*, int64_t, double, double, Generator&);       \
  template void normal(T*, int64_t, double, double, Generator&);        \
  template void normal_serial(T*, int64_t, double, double, Generator&); \
  template void log_normal(T*, int64_t, double, double, Generator&);    \
  template void exponential(T*, int64_t, double, Generator&);           \
  template void cauchy(T*, int64_t, double, double, Generator&);        \
  template void bernoulli(uint8_t*, const T*, int64_t, Generator&);     \
  RUSH_COUNTING(T)                                                      \
  RUSH_DISCRETE(T)
#define RUSH_COUNTING(T) template void geometric(T*, int64_t, double, Generator&);
#define RUSH_DISCRETE(T)                                              \
  template void bernoulli(T*, int64_t, double, Generator&);           \
  template void integers(T*, int64_t, int64_t, uint64_t, Generator&); \
  template void integers(T*, int64_t, Generator&);

RUSH_CONTINUOUS(float)
RUSH_CONTINUOUS(double)
RUSH_CONTINUOUS(Half)
RUSH_CONTINUOUS(BFloat16)
RUSH_COUNTING(uint8_t)
RUSH_COUNTING(int8_t)
RUSH_COUNTING(int16_t)
RUSH_COUNTING(int32_t)
RUSH_COUNTING(int64_t)
RUSH_DISCRETE(bool)
RUSH_DISCRETE(uint8_t)
RUSH_DISCRETE(int8_t)
RUSH_DISCRETE(int16_t)
RUSH_DISCRETE(int32_t)
RUSH_DISCRETE(int64_t)

template void multinomial(int64_t*, const float*, int64_t, int64_t, int64_t, bool, Generator&);
template void multinomial(int64_t*, const double*, int64_t, int64_t, int64_t, bool, Generator&);

}  // namespace random
}  // namespace rush
