// Random fills of tensors of any layout, and dropout. What the distributions are is in rushlight/generator.h.
#include "kernels/cpu/random.h"

#include "kernels/cuda/kernels.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "kernels/cpu/pointwise.h"
#include "rushlight/parallel.h"
#include "tensor/sizes.h"

namespace rush::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// Calls fill with a contiguous tensor whose elements become those of `out` in the order of memory.
template <class Fill>
void in_memory_order(Tensor& out, Fill&& fill) {
  if (out.is_contiguous()) return fill(out);
  std::vector<int64_t> order(size_t(out.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return out.strides()[a] > out.strides()[b]; });
  Dims sizes, strides;
  for (int64_t d : order) {
    sizes.push_back(out.sizes()[d]);
    strides.push_back(out.strides()[d]);
  }
  Tensor sorted = alias(out, sizes, strides, out.storage_offset());
  if (sorted.is_contiguous()) return fill(sorted);
  Tensor whole = allocate({sizes, out.dtype(), {}, {}});
  fill(whole);
  copy(sorted, whole);
}

Tensor contiguous_as(const Tensor& x, DType dtype) {
  if (x.is_contiguous() && x.dtype() == dtype) return x;
  Tensor out = allocate({x.sizes(), dtype, {}, {}});
  copy(out, x);
  return out;
}

bool same_layout(const Tensor& a, const Tensor& b) { return a.strides() == b.strides() && a.sizes() == b.sizes(); }

/// Contiguous memory of x, broadcast, in the order in which the dense tensor `like` lies in memory.
Tensor laid_out_as(const Tensor& x, const Tensor& like) {
  if (same_layout(x, like)) return x;
  Tensor out = allocate({like.sizes(), x.dtype(), {}, like.strides()});
  copy(out, x);
  return out;
}

// A rejection method with transformed uniform numbers for large rates, a product of uniform numbers for small ones.
// W. Hormann, The transformed rejection method for generating Poisson random variables, Insurance: Mathematics and
// Economics 12 (1993) 39, algorithm PTRS.
double poisson_one(double rate, Generator& generator) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double stop = std::exp(-rate);
    double product = 1;
    int64_t count = 0;
    while ((product *= generator.uniform()) > stop) ++count;
    return double(count);
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = std::log(rate);
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), sure = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = generator.uniform() - 0.5, v = generator.uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= sure) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

}  // namespace

void uniform(Tensor& out, double from, double to, Generator& generator) {
  if (!out.is_cpu()) return cuda::uniform(out, from, to, generator);
  Tensor parts = real_view(out);
  in_memory_order(parts, [&](Tensor& t) {
    for_floating(t.dtype(), [&]<class T>() { random::uniform(t.data<T>(), t.numel(), from, to, generator); });
  });
}

void normal(Tensor& out, double mean, double std, Generator& generator) {
  if (!out.is_cpu()) return cuda::normal(out, mean, std, generator);
  if (out.is_complex()) std /= std::numbers::sqrt2;
  Tensor parts = real_view(out);
  const bool blocks = parts.is_contiguous();
  in_memory_order(parts, [&](Tensor& t) {
    for_floating(t.dtype(), [&]<class T>() {
      if (blocks)
        random::normal(t.data<T>(), t.numel(), mean, std, generator);
      else
        random::normal_serial(t.data<T>(), t.numel(), mean, std, generator);
    });
  });
}

void log_normal(Tensor& out, double mean, double std, Generator& generator) {
  if (!out.is_cpu()) return cuda::log_normal(out, mean, std, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_floating(t.dtype(), [&]<class T>() { random::log_normal(t.data<T>(), t.numel(), mean, std, generator); });
  });
}

void exponential(Tensor& out, double lambda, Generator& generator) {
  if (!out.is_cpu()) return cuda::exponential(out, lambda, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_floating(t.dtype(), [&]<class T>() { random::exponential(t.data<T>(), t.numel(), lambda, generator); });
  });
}

void cauchy(Tensor& out, double median, double sigma, Generator& generator) {
  if (!out.is_cpu()) return cuda::cauchy(out, median, sigma, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_floating(t.dtype(), [&]<class T>() { random::cauchy(t.data<T>(), t.numel(), median, sigma, generator); });
  });
}

void geometric(Tensor& out, double p, Generator& generator) {
  if (!out.is_cpu()) return cuda::geometric(out, p, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_real(t.dtype(), [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>)
        raise<NotImplementedError>("not implemented for 'Bool'");
      else
        random::geometric(t.data<T>(), t.numel(), p, generator);
    });
  });
}

void bernoulli(Tensor& out, double p, Generator& generator) {
  if (!out.is_cpu()) return cuda::bernoulli(out, p, generator);
  if (out.is_complex()) {
    Tensor real = allocate({out.sizes(), real_of(out.dtype()), {}, out.strides()});
    bernoulli(real, p, generator);
    return copy(out, real);
  }
  in_memory_order(out, [&](Tensor& t) {
    for_real(t.dtype(), [&]<class T>() { random::bernoulli(t.data<T>(), t.numel(), p, generator); });
  });
}

void bernoulli(Tensor& out, const Tensor& p, Generator& generator) {
  if (!out.is_cpu()) return cuda::bernoulli(out, p, generator);
  Tensor whole = allocate({out.sizes(), p.dtype(), {}, {}});
  copy(whole, p);
  Tensor drawn = allocate({out.sizes(), kUInt8, {}, {}});
  for_floating(p.dtype(), [&]<class T>() {
    const T* probability = whole.data<T>();
    for (int64_t i = 0; i < whole.numel(); ++i)
      check(probability[i] >= T(0) && probability[i] <= T(1), "Expected p_in >= 0 && p_in <= 1 to be true, got ",
            double(probability[i]));
    random::bernoulli(drawn.data<uint8_t>(), probability, whole.numel(), generator);
  });
  copy(out, drawn);
}

void integers(Tensor& out, int64_t from, uint64_t range, Generator& generator) {
  if (!out.is_cpu()) return cuda::integers(out, from, range, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_real(t.dtype(), [&]<class T>() { random::integers(t.data<T>(), t.numel(), from, range, generator); });
  });
}

void integers(Tensor& out, Generator& generator) {
  if (!out.is_cpu()) return cuda::integers(out, generator);
  in_memory_order(out, [&](Tensor& t) {
    for_real(t.dtype(), [&]<class T>() { random::integers(t.data<T>(), t.numel(), generator); });
  });
}

void permutation(Tensor& out, Generator& generator) {
  if (!out.is_cpu()) return cuda::permutation(out, generator);
  if (out.dtype() == kInt64) return random::permutation(out.data<int64_t>(), out.numel(), generator);
  Tensor order = allocate({out.sizes(), kInt64, {}, {}});
  random::permutation(order.data<int64_t>(), order.numel(), generator);
  copy(out, order);
}

void multinomial(Tensor& out, const Tensor& weights, bool replacement, Generator& generator) {
  if (!out.is_cpu()) return cuda::multinomial(out, weights, replacement, generator);
  const Tensor w = contiguous_as(weights, weights.dtype() == kFloat64 ? kFloat64 : kFloat32);
  const int64_t columns = w.sizes().back(), rows = w.dim() == 2 ? w.sizes()[0] : 1;
  const int64_t samples = out.sizes().back();
  if (w.dtype() == kFloat64)
    random::multinomial(out.data<int64_t>(), w.data<double>(), rows, columns, samples, replacement, generator);
  else
    random::multinomial(out.data<int64_t>(), w.data<float>(), rows, columns, samples, replacement, generator);
}

void poisson(Tensor& out, const Tensor& rates, Generator& generator) {
  if (!out.is_cpu()) return cuda::poisson(out, rates, generator);
  const Tensor in = laid_out_as(rates, out);
  const std::lock_guard lock(generator.mutex());
  for_floating(out.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i) {
      const double rate = double(in.data<T>()[i]);
      check(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
      out.data<T>()[i] = T(poisson_one(rate, generator));
    }
  });
}

void dropout(Tensor& out, Tensor& mask, const Tensor& x, double p, Generator& generator) {
  if (!out.is_cpu()) return cuda::dropout(out, mask, x, p, generator);
  random::bernoulli(mask.data<bool>(), mask.numel(), 1 - p, generator);
  for_floating(x.dtype(), [&]<class T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Wide scale = p == 1 ? Wide(0) : Wide(1) / Wide(1 - p);
    dropout_backward(out, x, mask, double(scale));
  });
}

void dropout_backward(Tensor& out, const Tensor& g, const Tensor& mask, double scale) {
  if (!out.is_cpu()) return cuda::dropout_backward(out, g, mask, scale);
  const Tensor in = laid_out_as(g, out), kept = laid_out_as(mask, out);
  for_floating(out.dtype(), [&]<class T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Wide factor = Wide(scale);
    const T* from = in.data<T>();
    const bool* keep = kept.data<bool>();
    T* to = out.data<T>();
    parallel_for(0, out.numel(), kGrain, [=](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) to[i] = T(Wide(from[i]) * (Wide(keep[i]) * factor));  // no branch on chance
    });
  });
}

void random_slopes(Tensor& out, Tensor& slopes, const Tensor& x, double lower, double upper, Generator& generator) {
  if (!out.is_cpu()) return cuda::random_slopes(out, slopes, x, lower, upper, generator);
  const Tensor in = laid_out_as(x, out);
  const std::lock_guard lock(generator.mutex());
  for_floating(out.dtype(), [&]<class T>() {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < out.numel(); ++i) {
      const Wide v = Wide(in.data<T>()[i]);
      const Wide slope = v <= 0 ? Wide(generator.uniform() * (upper - lower) + lower) : Wide(1);
      slopes.data<T>()[i] = T(slope);
      out.data<T>()[i] = T(v * slope);
    }
  });
}

}  // namespace rush::cpu
