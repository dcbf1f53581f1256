// Losses over classes. A row of classes that lie together is read twice, the second time from the cache; where classes
// lie apart (images), a block of neighbouring places goes through all classes together. Compiled for each instruction
// set, since most of the time goes into exponentials.
#include "kernels/cpu/class_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/integers.h"
#include "kernels/math.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/class_losses.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kGrain = 16384, kLanes = 16, kBlock = 256;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
constexpr Wide<T> kLowest = -std::numeric_limits<Wide<T>>::infinity();

// With a shift of 0 where all are -inf, the logarithm is -inf too; a NaN passes into the sum.
template <class T>
void finish(const ClassLosses& job, int64_t i, Wide<T> shift, Wide<T> sum, Wide<T> chosen) {
  const Wide<T> total = shift + std::log(sum);
  static_cast<T*>(job.log_sum)[i] = T(total);
  static_cast<T*>(job.losses)[i] = job.target[i] == job.ignore_index ? T(0) : T(total - chosen);
}

template <class T>
void row(const ClassLosses& job, int64_t n) {
  using W = Wide<T>;
  const int64_t classes = job.classes;
  const T* x = static_cast<const T*>(job.input) + n * classes;
  W shift, sum = 0;
  if constexpr (std::is_same_v<T, float>) {
    const float high = lane_max(x, classes);
    shift = high == kLowest<T> ? 0.0f : high;
    sum = float(vector_sum<float>(classes, [&](auto d, int64_t i) HWY_ATTR {
      return exp_falling(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    }));
  } else {
    W highs[kLanes], sums[kLanes] = {};
    std::fill_n(highs, kLanes, kLowest<T>);
    int64_t c = 0;
    for (; c + kLanes <= classes; c += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) highs[k] = W(x[c + k]) > highs[k] ? W(x[c + k]) : highs[k];
    for (; c < classes; ++c) highs[0] = std::max(highs[0], W(x[c]));
    const W high = *std::max_element(highs, highs + kLanes);
    shift = high == kLowest<T> ? W(0) : high;
    for (c = 0; c + kLanes <= classes; c += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) sums[k] += formula::exp(W(x[c + k]) - shift);
    for (; c < classes; ++c) sums[0] += formula::exp(W(x[c]) - shift);
    for (W part : sums) sum += part;
  }
  finish<T>(job, n, shift, sum, job.target[n] == job.ignore_index ? W(0) : W(x[job.target[n]]));
}

/// The k-th block of places: those of one batch entry.
template <class T>
void block(const ClassLosses& job, int64_t k) {
  using W = Wide<T>;
  const int64_t blocks = ceil_div(job.inner, kBlock), n = k / blocks, first = k % blocks * kBlock;
  const int64_t count = std::min(kBlock, job.inner - first);
  const T* base = static_cast<const T*>(job.input) + n * job.classes * job.inner + first;
  W high[kBlock], sum[kBlock];
  std::fill_n(high, count, kLowest<T>);
  std::fill_n(sum, count, W(0));
  for (int64_t c = 0; c < job.classes; ++c) {
    const T* x = base + c * job.inner;
    for (int64_t j = 0; j < count; ++j) high[j] = W(x[j]) > high[j] ? W(x[j]) : high[j];
  }
  for (int64_t j = 0; j < count; ++j) high[j] = high[j] == kLowest<T> ? W(0) : high[j];
  for (int64_t c = 0; c < job.classes; ++c) {
    const T* x = base + c * job.inner;
    for (int64_t j = 0; j < count; ++j) sum[j] += formula::exp(W(x[j]) - high[j]);
  }
  for (int64_t j = 0; j < count; ++j) {
    const int64_t i = n * job.inner + first + j, chosen = job.target[i];
    finish<T>(job, i, high[j], sum[j], chosen == job.ignore_index ? W(0) : W(base[chosen * job.inner + j]));
  }
}

/// The i-th place's gradient of its loss, 0 where it is ignored.
template <class T>
Wide<T> own_grad(const ClassLosses& job, int64_t i) {
  return job.target[i] == job.ignore_index ? Wide<T>(0) : Wide<T>(static_cast<const T*>(job.grad)[i]);
}

template <class T>
void row_backward(const ClassLosses& job, int64_t n) {
  using W = Wide<T>;
  const W own = own_grad<T>(job, n), factor = own + W(static_cast<const T*>(job.grad_log_sum)[n]);
  const W log_total = W(static_cast<const T*>(job.log_sum)[n]);
  const T* x = static_cast<const T*>(job.input) + n * job.classes;
  T* out = static_cast<T*>(job.out) + n * job.classes;
  if constexpr (std::is_same_v<T, float>)
    for_vectors<float>(job.classes, [&](auto d, int64_t c) HWY_ATTR {
      const auto e = exp_falling(d, hn::Sub(hn::LoadU(d, x + c), hn::Set(d, log_total)));
      hn::StoreU(hn::Mul(hn::Set(d, factor), e), d, out + c);
    });
  else
    for (int64_t c = 0; c < job.classes; ++c) out[c] = T(factor * formula::exp(W(x[c]) - log_total));
  const int64_t chosen = job.target[n];
  if (chosen != job.ignore_index) out[chosen] = T(factor * formula::exp(W(x[chosen]) - log_total) - own);
}

/// All places of class k % classes in batch entry k / classes.
template <class T>
void class_backward(const ClassLosses& job, int64_t k) {
  using W = Wide<T>;
  const int64_t first = k / job.classes * job.inner, c = k % job.classes;
  const T* x = static_cast<const T*>(job.input) + k * job.inner;
  T* out = static_cast<T*>(job.out) + k * job.inner;
  for (int64_t j = 0; j < job.inner; ++j) {
    const int64_t i = first + j;
    const W own = own_grad<T>(job, i), factor = own + W(static_cast<const T*>(job.grad_log_sum)[i]);
    out[j] = T(factor * formula::exp(W(x[j]) - W(static_cast<const T*>(job.log_sum)[i])) -
               (job.target[i] == c ? own : W(0)));
  }
}

void each(const ClassLosses& job, int64_t units, int64_t cost, void (*f)(const ClassLosses&, int64_t)) {
  parallel_for(0, units, std::max<int64_t>(1, kGrain / std::max<int64_t>(cost, 1)), [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) f(job, i);
  });
}

void forward(const ClassLosses& job) {
  for_floating(job.dtype, [&]<class T>() {
    if (job.inner == 1)
      each(job, job.batch, 4 * job.classes, row<T>);
    else
      each(job, job.batch * ceil_div(job.inner, kBlock), 4 * job.classes * std::min(kBlock, job.inner), block<T>);
  });
}

void backward(const ClassLosses& job) {
  for_floating(job.dtype, [&]<class T>() {
    if (job.inner == 1)
      each(job, job.batch, 2 * job.classes, row_backward<T>);
    else
      each(job, job.batch * job.classes, 2 * job.inner, class_backward<T>);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
void class_losses(const ClassLosses& job) { HWY_DYNAMIC_DISPATCH(forward)(job); }
void class_losses_backward(const ClassLosses& job) { HWY_DYNAMIC_DISPATCH(backward)(job); }
}  // namespace rush::cpu
#endif
