// Random numbers on the GPU: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), keyed
// by the seed and counted by the generator's offset and the element's index, so that they depend neither on the GPU nor
// on how the work is spread.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

/// The stream of one element.
class Random {
 public:
  RUSH_FN Random(uint64_t seed, uint64_t offset, int64_t element)
      : key_{uint32_t(seed), uint32_t(seed >> 32)},
        counter_{uint32_t(offset), uint32_t(offset >> 32), uint32_t(element), uint32_t(uint64_t(element) >> 32)} {}

  RUSH_FN uint32_t bits() {
    if (left_ == 0) refill();
    return words_[--left_];
  }
  RUSH_FN uint64_t bits64() {
    const uint64_t high = bits();
    return high << 32 | bits();
  }
  /// On [0, 1).
  template <class T>
  RUSH_FN T uniform() {
    if constexpr (std::is_same_v<T, double>)
      return double(bits64() >> 11) * 0x1p-53;
    else
      return float(bits() >> 8) * 0x1p-24f;
  }
  /// By Box and Muller.
  template <class T>
  RUSH_FN T normal() {
    const T radius = formula::sqrt(-2 * formula::log(1 - uniform<T>()));
    return radius * formula::cos(T(2 * formula::kPi) * uniform<T>());
  }

 private:
  RUSH_FN void refill() {
    uint32_t k0 = key_[0], k1 = key_[1], c0 = counter_[0], c1 = counter_[1], c2 = counter_[2], c3 = counter_[3];
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t(0xd2511f53) * c0, b = uint64_t(0xcd9e8d57) * c2;
      c0 = uint32_t(b >> 32) ^ c1 ^ k0;
      c1 = uint32_t(b);
      c2 = uint32_t(a >> 32) ^ c3 ^ k1;
      c3 = uint32_t(a);
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    words_[3] = c0;
    words_[2] = c1;
    words_[1] = c2;
    words_[0] = c3;
    left_ = 4;
    if (++counter_[0] == 0) ++counter_[1];
  }
  uint32_t key_[2], counter_[4], words_[4];
  int left_ = 0;
};

/// Where the streams of a launch's elements begin: at a seed and an offset, or, in a graph, at those that each replay
/// writes to memory before.
struct RandomStart {
  uint64_t seed, offset;
  const uint64_t* replayed;  // both, or null
  RUSH_FN Random operator()(int64_t element) const {
    return replayed ? Random(replayed[0], replayed[1], element) : Random(seed, offset, element);
  }
};
struct WriteRandomStart {
  uint64_t* to;
  uint64_t seed, offset;
  RUSH_FN void operator()(int64_t) const {
    to[0] = seed;
    to[1] = offset;
  }
};

// ---- distributions: one value from a stream, computed in T

template <class T>
struct Uniform {
  T from, to;
  RUSH_FN T operator()(Random& r, int64_t) const {
    const T x = r.uniform<T>() * (to - from) + from;
    return x < to ? x : from;  // rounding may reach the end
  }
};
template <class T>
struct Normal {
  T mean, std;
  RUSH_FN T operator()(Random& r, int64_t) const { return r.normal<T>() * std + mean; }
};
template <class T>
struct LogNormal {
  T mean, std;
  RUSH_FN T operator()(Random& r, int64_t) const { return formula::exp(r.normal<T>() * std + mean); }
};
template <class T>
struct Exponential {
  T lambda;
  RUSH_FN T operator()(Random& r, int64_t) const { return -formula::log(1 - r.uniform<T>()) / lambda; }
};
template <class T>
struct Cauchy {
  T median, sigma;
  RUSH_FN T operator()(Random& r, int64_t) const {
    return median + sigma * formula::tan(T(formula::kPi) * (r.uniform<T>() - T(0.5)));
  }
};
struct Geometric {
  double log_failure;
  RUSH_FN double operator()(Random& r, int64_t) const {
    return formula::ceil(formula::log(1 - r.uniform<double>()) / log_failure + (r.bits() == 0 ? 1 : 0));
  }
};
struct Bernoulli {
  double p;
  RUSH_FN bool operator()(Random& r, int64_t) const { return r.uniform<double>() < p; }
};
struct BernoulliEach {
  Array p;
  RUSH_FN bool operator()(Random& r, int64_t i) const { return r.uniform<double>() < p.at<double>(i); }
};
/// Range 0 stands for all.
struct Integers {
  int64_t from;
  uint64_t range;
  RUSH_FN int64_t operator()(Random& r, int64_t) const {
    if (range == 0) return int64_t(r.bits64());
    const uint64_t x = range >> 32 ? r.bits64() : r.bits();
    return int64_t(uint64_t(from) + x % range);
  }
};
/// Hormann's transformed rejection for large rates (Insurance: Mathematics and Economics 12 (1993) 39, algorithm PTRS),
/// a product of uniform numbers for small ones.
struct Poisson {
  Array rates;
  RUSH_FN double operator()(Random& r, int64_t i) const {
    const double rate = rates.at<double>(i);
    if (!(rate > 0)) return rate == 0 ? 0 : formula::kNan;
    if (rate < 10) {
      const double stop = formula::exp(-rate);
      double product = 1;
      int64_t count = 0;
      while ((product *= r.uniform<double>()) > stop) ++count;
      return double(count);
    }
    const double b = 0.931 + 2.53 * formula::sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = formula::log(rate);
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), sure = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
      const double u = r.uniform<double>() - 0.5, v = r.uniform<double>(), us = 0.5 - formula::abs(u);
      const double k = formula::floor((2 * a / us + b) * u + rate + 0.43);
      if (us >= 0.07 && v <= sure) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      if (formula::log(v) + formula::log(inverse_alpha) - formula::log(a / (us * us) + b) <=
          -rate + k * log_rate - std::lgamma(k + 1))
        return k;
    }
  }
};

template <class Distribution>
struct Draw {
  Array out;
  Axes axes;
  RandomStart start;
  Distribution distribution;
  RUSH_FN void operator()(int64_t i) const {
    Random r = start(i);
    out.put(axes.place(i), distribution(r, i));
  }
};

/// out, mask and x lie alike.
template <class T>
struct Dropout {
  Array out, mask, x;
  RandomStart start;
  double p;  // of keeping
  T scale;
  RUSH_FN void operator()(int64_t i) const {
    Random r = start(i);
    const bool keep = r.uniform<double>() < p;
    mask.put(i, keep);
    out.put(i, x.at<T>(i) * (keep ? scale : T(0)));
  }
};
template <class T>
struct DropoutGrad {
  Array out, grad, mask;
  T scale;
  RUSH_FN void operator()(int64_t i) const { out.put(i, grad.at<T>(i) * (mask.at<bool>(i) ? scale : T(0))); }
};
template <class T>
struct RandomSlopes {
  Array out, slopes, x;
  RandomStart start;
  T lower, upper;
  RUSH_FN void operator()(int64_t i) const {
    Random r = start(i);
    const T v = x.at<T>(i), slope = v <= 0 ? r.uniform<T>() * (upper - lower) + lower : T(1);
    slopes.put(i, slope);
    out.put(i, v * slope);
  }
};

/// Sample i of a row: the first column up to which the weights sum to more than a random part of all; `sums` are
/// cumulative.
struct SampleColumns {
  int64_t* out;
  const double* sums;
  int64_t columns, samples;
  RandomStart start;
  RUSH_FN void operator()(int64_t i) const {
    const double* row = sums + i / samples * columns;
    Random r = start(i);
    const double wanted = r.uniform<double>() * row[columns - 1];
    int64_t begin = 0, end = columns - 1;
    while (begin < end) {
      const int64_t middle = begin + (end - begin) / 2;
      if (row[middle] > wanted)
        end = middle;
      else
        begin = middle + 1;
    }
    out[i] = begin;
  }
};

}  // namespace rush::cuda
