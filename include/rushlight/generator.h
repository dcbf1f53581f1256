// Random numbers on the CPU, the same as PyTorch's: a seed gives the same bits, and each fill turns bits into values in
// the same way, so that weights, shuffles and dropout masks agree. Values that pass through a logarithm, sine or cosine
// in float may differ in the last place. GPUs draw by counting (Philox 4x32-10): a generator of theirs is a seed and
// how far it has come.
//
//   rush::Generator generator(0);
//   rush::random::normal(weights, 1000, 0.0, 0.02, generator);
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "rushlight/dtype.h"

namespace rush {

/// A Mersenne Twister (MT19937: Matsumoto and Nishimura 1998) with the state that PyTorch's CPU generator has; for a
/// GPU the state of Philox. Its functions do not lock; the fills in rush::random hold mutex() while they draw.
class Generator {
 public:
  static constexpr uint64_t default_seed = 67280421310721;

  explicit Generator(uint64_t seed = default_seed) { manual_seed(seed); }
  /// Throws Error for a device that has no generators.
  explicit Generator(Device device);
  Generator(const Generator& other);  // same state, from there on its own
  Generator& operator=(const Generator& other);

  /// Starts over. The low 32 bits decide the numbers; initial_seed() tells all 64.
  void manual_seed(uint64_t seed);

  /// Seeds from the system's entropy and returns the seed.
  uint64_t seed();
  uint64_t initial_seed() const { return seed_; }
  Device device() const { return device_; }

  /// What a kernel on a GPU draws from: the i-th thread from subsequence i of the seed's numbers, from the offset on.
  struct Philox {
    uint64_t seed, offset;
  };
  /// `draws` is the number of 32-bit numbers that each thread will take; the offset moves on by it, rounded up to 4.
  /// Throws Error unless device() is a GPU.
  Philox philox(uint64_t draws);

  /// The state in the bytes that torch.Generator.get_state() gives, little-endian:
  ///
  ///     offset  0    uint64   seed
  ///             8    int32    left: 625 - next, or 1 before the first draw
  ///            12    int32    1
  ///            16    uint64   next: index of the next word
  ///            24    uint64   the 624 words of 32 bits, each in 8 bytes
  ///          5016    double   0
  ///          5024    double   the second normal value of the last pair drawn singly, if ...
  ///          5032    double   0
  ///          5040    int32    ... this is 1; then 12 bytes 0
  ///
  /// For a GPU it is 16 bytes: the seed and Philox's offset.
  static constexpr size_t state_bytes = 5056, philox_state_bytes = 16;
  std::vector<uint8_t> get_state() const;

  /// Throws Error if `state` is not of this layout.
  void set_state(std::span<const uint8_t> state);

  /// The next 32 bits.
  uint32_t random() {
    if (next_ == words) twist();
    uint32_t y = state_[next_++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680;
    y ^= y << 15 & 0xefc60000;
    return y ^ y >> 18;
  }

  /// The next 64 bits: two draws, the first is the upper half.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }

  /// The next `n` values of random().
  void random(uint32_t* out, int64_t n);

  /// Uniform on [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }

  /// Standard normal by Box and Muller; every second call returns the second value of a pair.
  double normal();

  std::mutex& mutex() const { return mutex_; }

 private:
  static constexpr uint32_t words = 624;
  void twist();

  alignas(64) uint32_t state_[words];
  uint32_t next_ = words;
  bool fresh_ = true;  // nothing drawn since seeding
  bool has_normal_ = false;
  double next_normal_ = 0;
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;  // Philox's
  Device device_;
  mutable std::mutex mutex_;
};

/// The generator used where none is given, on the CPU and on each GPU.
Generator& default_generator();
Generator& default_generator(Device device);

/// Fills of contiguous memory. They check nothing but what only the data can tell. T is float, double, Half or BFloat16
/// for the continuous distributions, and every non-complex element type for the others, unless said otherwise.
namespace random {

/// Uniform on [from, to): 24 bits for float and the half types, 53 for double.
template <class T>
void uniform(T* out, int64_t n, double from, double to, Generator& generator);

/// Normal, as PyTorch draws it into contiguous memory: from 16 elements on in blocks of 16, below that one by one.
template <class T>
void normal(T* out, int64_t n, double mean, double std, Generator& generator);

/// Normal, one by one: what PyTorch does for tensors that are not contiguous.
template <class T>
void normal_serial(T* out, int64_t n, double mean, double std, Generator& generator);

template <class T>
void log_normal(T* out, int64_t n, double mean, double std, Generator& generator);
template <class T>
void exponential(T* out, int64_t n, double lambda, Generator& generator);
template <class T>
void cauchy(T* out, int64_t n, double median, double sigma, Generator& generator);

/// Number of trials up to the first success. T may also be an integer type.
template <class T>
void geometric(T* out, int64_t n, double p, Generator& generator);

/// 1 with probability p, else 0. (PyTorch does the same except on Intel processors, where it takes the stream of a
/// library.)
template <class T>
void bernoulli(T* out, int64_t n, double p, Generator& generator);

/// 1 with probability p[i], else 0.
template <class P>
void bernoulli(uint8_t* out, const P* p, int64_t n, Generator& generator);

/// Integers from `from` to from + range - 1. Range 0 stands for all 64-bit integers, whatever `from` is.
template <class T>
void integers(T* out, int64_t n, int64_t from, uint64_t range, Generator& generator);

/// Integers from 0 to the largest T; for floating T, to the largest up to which all are representable.
template <class T>
void integers(T* out, int64_t n, Generator& generator);

/// A permutation of 0 .. n - 1.
void permutation(int64_t* out, int64_t n, Generator& generator);

/// For each of the `rows` rows of weights, `samples` column indices: out is (rows, samples), weights (rows, columns).
/// Throws Error if a weight is negative or not finite, or all of a row are 0. T is float or double.
template <class T>
void multinomial(int64_t* out, const T* weights, int64_t rows, int64_t columns, int64_t samples, bool replacement,
                 Generator& generator);

}  // namespace random
}  // namespace rush
