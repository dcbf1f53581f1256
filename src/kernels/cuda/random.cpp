// Launches of random fills. Each takes a stretch of the generator's offsets of its own.
#include "kernels/cuda/random.cuh"

#include <cmath>
#include <numbers>

#include "cuda/graphs.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/random.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"
#include "rushlight/cuda.h"
#include "tensor/sizes.h"

namespace rush::cuda {

namespace {

constexpr uint64_t kDraws = 16, kManyDraws = 1 << 16;  // words that an element may take

/// The next stretch of a generator's numbers; in a graph that is captured, of each replay's.
RandomStart start(Device device, Generator& g, uint64_t draws = kDraws) {
  const auto next = [draws](Generator& from) {
    const std::lock_guard lock(from.mutex());
    return from.philox(draws);
  };
  if (!is_capturing(current_stream(device.index))) {
    const auto s = next(g);
    return {s.seed, s.offset, nullptr};
  }
  check(&g == &default_generator(device), "a graph draws random numbers from its device's default generator only");
  const Tensor memory = rush::allocate({Ints({2}), kInt64, device, {}});
  auto* const words = static_cast<uint64_t*>(memory.data_ptr());
  at_replay(current_stream(device.index), [memory, words, device, &g, next] {
    const auto s = next(g);
    for_each(device, 1, WriteRandomStart{words, s.seed, s.offset});
  });
  return {0, 0, words};
}

template <class D>
void draw(Tensor& out, Generator& generator, const D& distribution, uint64_t draws = kDraws) {
  const auto s = start(out.device(), generator, draws);
  for_each(out.device(), out.numel(), Draw<D>{array_of(out), axes_of(out.sizes(), out.strides()), s, distribution});
}

/// f.operator()<T>() with double for float64 and float for the other floating dtypes.
template <class F>
void for_precision(DType t, F&& f) {
  if (!is_floating(t)) raise<NotImplementedError>("not implemented for '", scalar_name(t), "'");
  t == kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

/// Contiguous memory of x, broadcast, in the order in which the dense tensor `like` lies in memory.
Tensor laid_out_as(const Tensor& x, const Tensor& like) {
  if (x.strides() == like.strides() && x.sizes() == like.sizes()) return x;
  Tensor out = allocate({like.sizes(), x.dtype(), like.device(), like.strides()});
  cpu::copy(out, x);
  return out;
}

Tensor contiguous_as(const Tensor& x, Ints sizes) {
  return contiguous(Ints(x.sizes()) == sizes ? x : expand(x, sizes));
}

}  // namespace

void uniform(Tensor& out, double from, double to, Generator& generator) {
  Tensor parts = real_view(out);
  for_precision(parts.dtype(), [&]<class T>() { draw(parts, generator, Uniform<T>{T(from), T(to)}); });
}
void normal(Tensor& out, double mean, double std, Generator& generator) {
  if (out.is_complex()) std /= std::numbers::sqrt2;
  Tensor parts = real_view(out);
  for_precision(parts.dtype(), [&]<class T>() { draw(parts, generator, Normal<T>{T(mean), T(std)}); });
}
void log_normal(Tensor& out, double mean, double std, Generator& generator) {
  for_precision(out.dtype(), [&]<class T>() { draw(out, generator, LogNormal<T>{T(mean), T(std)}); });
}
void exponential(Tensor& out, double lambda, Generator& generator) {
  for_precision(out.dtype(), [&]<class T>() { draw(out, generator, Exponential<T>{T(lambda)}); });
}
void cauchy(Tensor& out, double median, double sigma, Generator& generator) {
  for_precision(out.dtype(), [&]<class T>() { draw(out, generator, Cauchy<T>{T(median), T(sigma)}); });
}
void geometric(Tensor& out, double p, Generator& generator) {
  if (out.dtype() == kBool || out.is_complex())
    raise<NotImplementedError>("not implemented for '", scalar_name(out.dtype()), "'");
  draw(out, generator, Geometric{std::log1p(-p)});
}
void bernoulli(Tensor& out, double p, Generator& generator) { draw(out, generator, Bernoulli{p}); }
void bernoulli(Tensor& out, const Tensor& p, Generator& generator) {
  const Tensor wanted = contiguous_as(p, out.sizes());
  check(all(logical_and(ge(wanted, 0), le(wanted, 1))).item<bool>(), "Expected p_in >= 0 && p_in <= 1 to be true");
  draw(out, generator, BernoulliEach{array_of(wanted)});
}
void integers(Tensor& out, int64_t from, uint64_t range, Generator& generator) {
  draw(out, generator, Integers{from, range});
}
void integers(Tensor& out, Generator& generator) {
  uint64_t range = 0;  // from 0 to the largest, or the largest up to which all are representable
  switch (out.dtype()) {
    case kFloat16:
      range = (1 << 11) + 1;
      break;
    case kBFloat16:
      range = (1 << 8) + 1;
      break;
    case kFloat32:
      range = (1 << 24) + 1;
      break;
    case kFloat64:
      range = (uint64_t{1} << 53) + 1;
      break;
    default:
      for_integral(out.dtype(), [&]<class T>() { range = uint64_t(std::numeric_limits<T>::max()) + 1; });
  }
  draw(out, generator, Integers{0, range});
}
void permutation(Tensor& out, Generator& generator) {
  Tensor keys = allocate_like(out, out.sizes(), kInt64);
  draw(keys, generator, Integers{0, 0});
  const Tensor order = argsort(keys, -1, false);
  cpu::copy(out, order);
}
void poisson(Tensor& out, const Tensor& rates, Generator& generator) {
  draw(out, generator, Poisson{array_of(contiguous_as(rates, out.sizes()))}, kManyDraws);
}

void multinomial(Tensor& out, const Tensor& weights, bool replacement, Generator& generator) {
  const Tensor w = cast(weights, kFloat64);
  check(all(logical_and(isfinite(w), ge(w, 0))).item<bool>(),
        "probability tensor contains either `inf`, `nan` or element < 0");
  check(all(gt(sum(w, Ints({-1})), 0)).item<bool>(), "invalid multinomial distribution (sum of probabilities <= 0)");
  if (!replacement) {  // the largest of weight / exponential come in the order of successive draws
    Tensor race = allocate_like(w, w.sizes(), kFloat64);
    exponential(race, 1, generator);
    return cpu::copy(out, rush::topk(w / race, out.sizes().back(), -1, true, true)[1]);
  }
  const Tensor sums = contiguous(rush::cumsum(w, -1));
  const auto s = start(out.device(), generator);
  for_each(out.device(), out.numel(),
           SampleColumns{out.data<int64_t>(), sums.data<double>(), w.sizes().back(), out.sizes().back(), s});
}

void dropout(Tensor& out, Tensor& mask, const Tensor& x, double p, Generator& generator) {
  const Tensor in = laid_out_as(x, out);
  const auto s = start(out.device(), generator);
  for_precision(x.dtype(), [&]<class T>() {
    const T scale = p == 1 ? T(0) : T(1) / T(1 - p);
    for_each(out.device(), out.numel(), Dropout<T>{array_of(out), array_of(mask), array_of(in), s, 1 - p, scale});
  });
}
void dropout_backward(Tensor& out, const Tensor& g, const Tensor& mask, double scale) {
  const Tensor in = laid_out_as(g, out), kept = laid_out_as(mask, out);
  for_precision(out.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(), DropoutGrad<T>{array_of(out), array_of(in), array_of(kept), T(scale)});
  });
}
void random_slopes(Tensor& out, Tensor& slopes, const Tensor& x, double lower, double upper, Generator& generator) {
  const Tensor in = laid_out_as(x, out);
  const auto s = start(out.device(), generator);
  for_precision(out.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(),
             RandomSlopes<T>{array_of(out), array_of(slopes), array_of(in), s, T(lower), T(upper)});
  });
}

}  // namespace rush::cuda
