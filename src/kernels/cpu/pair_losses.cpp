// Losses of pairs, summed on the way: one pass over memory. Compiled for each instruction set; those with logarithms of
// floats are written with vectors. Sums do not depend on the number of threads.
#include "kernels/cpu/pair_losses.h"

#include <atomic>
#include <type_traits>
#include <vector>

#include "kernels/formulas.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pair_losses.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace m = formula;

constexpr int64_t kGrain = 16384;

// ---- the losses with logarithms on vectors of floats

template <class D, class V = hn::Vec<D>>
HWY_INLINE V loss_of(const m::EntropyLoss&, D d, V x, V t) {
  const V one = hn::Set(d, 1.0f), lowest = hn::Set(d, -100.0f), rest = hn::Sub(one, x);
  const V below = log_sum(d, rest, hn::Sub(hn::Sub(one, rest), x));  // with what the difference lost
  const V no = hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), lowest, below), yes = hn::Max(lowest, log(d, x));
  return hn::NegMulAdd(t, yes, hn::Mul(hn::Sub(t, one), no));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V loss_of(const m::LogitEntropyLoss&, D d, V x, V t) {
  return hn::MulSub(hn::Sub(hn::Set(d, 1.0f), t), x, hn::Sub(hn::Min(x, hn::Zero(d)), log1p_exp(d, x)));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V loss_of(const m::DivergenceLoss&, D d, V x, V t) {
  return hn::NegMulAdd(t, x, hn::IfThenElse(hn::Eq(t, hn::Zero(d)), t, hn::Mul(t, log(d, t))));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V loss_of(const m::LogDivergenceLoss&, D d, V x, V t) {
  return hn::Mul(exp(d, t), hn::Sub(t, x));
}

template <class T, class F>
constexpr bool has_vectors = std::is_same_v<T, float>&& requires(const F& f, hn::ScalableTag<float> d) {
  loss_of(f, d, hn::Zero(d), hn::Zero(d));
};

template <class T, class F>
double sum(const T* x, const T* t, int64_t n, const F& f) {
  if constexpr (has_vectors<T, F>)
    return vector_sum<float>(
        n, [&](auto d, int64_t i) HWY_ATTR { return loss_of(f, d, hn::LoadU(d, x + i), hn::LoadU(d, t + i)); });
  else
    return lane_sum<compute_t<T>>(n, [&](int64_t i) HWY_ATTR { return f(compute_t<T>(x[i]), compute_t<T>(t[i])); });
}
template <class T, class F>
void each(T* HWY_RESTRICT out, const T* x, const T* t, int64_t n, const F& f) {
  if constexpr (has_vectors<T, F>)
    for_vectors<float>(n, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(loss_of(f, d, hn::LoadU(d, x + i), hn::LoadU(d, t + i)), d, out + i);
    });
  else
    for (int64_t i = 0; i < n; ++i) out[i] = T(f(compute_t<T>(x[i]), compute_t<T>(t[i])));
}

template <class T>
bool are_probabilities(const T* x, int64_t n) {
  bool inside = true;
  if constexpr (std::is_same_v<T, float>)
    for_vectors<float>(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = hn::LoadU(d, x + i);
      inside &= hn::AllTrue(d, hn::And(hn::Ge(v, hn::Zero(d)), hn::Le(v, hn::Set(d, 1.0f))));
    });
  else
    for (int64_t i = 0; i < n; ++i) inside &= (compute_t<T>(x[i]) >= 0) & (compute_t<T>(x[i]) <= 1);
  return inside;
}

template <class F, class T>
bool run(T* out, const T* x, const T* t, int64_t n, const F& f, bool reduce, double scale) {
  const int64_t chunk = chunk_size(n, kGrain);
  std::vector<double> partial(size_t(n ? (n - 1) / chunk + 1 : 0));
  std::atomic<bool> valid = true;
  parallel_for(0, n, kGrain, [&](int64_t lo, int64_t hi) {
    for (int64_t at = lo; at < hi; at += chunk) {
      const int64_t count = std::min(chunk, hi - at);
      if constexpr (std::is_same_v<F, m::EntropyLoss>)
        if (!are_probabilities(x + at, count)) valid = false;
      if (reduce)
        partial[size_t(at / chunk)] = sum(x + at, t + at, count, f);
      else
        each(out + at, x + at, t + at, count, f);
    }
  });
  if (!reduce) return valid;
  double total = 0;
  for (double p : partial) total += p;
  *out = T(total * scale);
  return valid;
}

bool losses_of(PairLoss kind, double width, DType t, void* out, const void* a, const void* b, int64_t n, bool reduce,
               double scale) {
  bool valid = true;
  for_floating(t, [&]<class T>() {
    const auto with = [&](const auto& f) {
      valid = run(static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b), n, f, reduce, scale);
    };
    switch (kind) {
      case PairLoss::squared:
        return with(m::SquaredLoss());
      case PairLoss::smooth:
        return with(m::SmoothLoss{width});
      case PairLoss::huber:
        return with(m::HuberLoss{width});
      case PairLoss::entropy:
        return with(m::EntropyLoss());
      case PairLoss::logit_entropy:
        return with(m::LogitEntropyLoss());
      case PairLoss::divergence:
        return with(m::DivergenceLoss());
      case PairLoss::log_divergence:
        return with(m::LogDivergenceLoss());
    }
  });
  return valid;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(losses_of);

bool pair_losses(PairLoss kind, double width, DType t, void* out, const void* a, const void* b, int64_t n, bool reduce,
                 double scale) {
  return HWY_DYNAMIC_DISPATCH(losses_of)(kind, width, t, out, a, b, n, reduce, scale);
}
}  // namespace rush::cpu
#endif
