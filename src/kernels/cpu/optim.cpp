// Optimizer steps. The elements of all parameters are one range, which is split among the threads; a piece of it covers
// parts of one or several parameters. float and double are computed as they are; half types go through float, a block
// at a time, and are rounded once. Every element is read and written once.
#include "kernels/cpu/optim.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optim.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef RUSH_OPTIM_CPP
#define RUSH_OPTIM_CPP
namespace rush::cpu {
namespace {
/// Adam's factors for one parameter: they depend on its step.
struct AdamFactors {
  double step_size, inverse_root_of_bias2;
};
}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(d, i) for i in [0, n), a vector at a time, then single elements.
template <class T, class Body>
HWY_INLINE void vectors(int64_t n, const Body& body) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(hn::CappedTag<T, 1>(), i);
}

template <class T>
void sgd(T* param, const T* grad, T* buffer, int64_t n, const SgdOptions& o) {
  vectors<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto set = [&](double x) HWY_ATTR { return hn::Set(d, static_cast<T>(x)); };
    const auto p = hn::LoadU(d, param + i);
    auto g = hn::LoadU(d, grad + i);
    if (o.maximize) g = hn::Neg(g);
    if (o.weight_decay != 0) g = hn::MulAdd(set(o.weight_decay), p, g);
    if (buffer) {
      const auto b = hn::MulAdd(set(1 - o.dampening), g, hn::Mul(set(o.momentum), hn::LoadU(d, buffer + i)));
      hn::StoreU(b, d, buffer + i);
      g = o.nesterov ? hn::MulAdd(set(o.momentum), b, g) : b;
    }
    hn::StoreU(hn::NegMulAdd(set(o.lr), g, p), d, param + i);
  });
}

template <class T>
void adam(T* param, const T* grad, T* mean, T* square, T* largest, int64_t n, const AdamOptions& o, AdamFactors f) {
  vectors<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto set = [&](double x) HWY_ATTR { return hn::Set(d, static_cast<T>(x)); };
    auto p = hn::LoadU(d, param + i);
    auto g = hn::LoadU(d, grad + i);
    if (o.maximize) g = hn::Neg(g);
    if (o.weight_decay != 0) {
      if (o.decoupled)
        p = hn::Mul(p, set(1 - o.lr * o.weight_decay));
      else
        g = hn::MulAdd(set(o.weight_decay), p, g);
    }
    auto m = hn::LoadU(d, mean + i);
    m = hn::MulAdd(set(1 - o.beta1), hn::Sub(g, m), m);
    hn::StoreU(m, d, mean + i);
    auto v = hn::Mul(hn::LoadU(d, square + i), set(o.beta2));
    v = hn::MulAdd(hn::Mul(set(1 - o.beta2), g), g, v);
    hn::StoreU(v, d, square + i);
    if (largest) {
      const auto old = hn::LoadU(d, largest + i);
      v = hn::IfThenElse(hn::Or(hn::Gt(old, v), hn::IsNaN(old)), old, v);  // a NaN stays
      hn::StoreU(v, d, largest + i);
    }
    const auto denominator = hn::MulAdd(hn::Sqrt(v), set(f.inverse_root_of_bias2), set(o.eps));
    hn::StoreU(hn::NegMulAdd(set(f.step_size), hn::Div(m, denominator), p), d, param + i);
  });
}

/// Calls step(float pointers..., count) for blocks of half-precision arrays, then rounds the first `written` back.
template <class H, size_t arrays, class Step>
void in_float(H* const (&data)[arrays], const bool (&written)[arrays], int64_t n, const Step& step) {
  constexpr int64_t kBlock = 256;
  float block[arrays][kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    for (size_t a = 0; a < arrays; ++a)
      if (data[a]) std::copy_n(data[a] + i, count, block[a]);
    step(block, count);
    for (size_t a = 0; a < arrays; ++a)
      if (data[a] && written[a]) std::copy_n(block[a], count, data[a] + i);
  }
}

void sgd_part(const SgdTensor& t, int64_t lo, int64_t n, const SgdOptions& o) {
  for_floating(t.dtype, [&]<class T>() {
    const auto at = [&](void* p) { return p ? static_cast<T*>(p) + lo : nullptr; };
    T* const data[] = {at(t.param), at(const_cast<void*>(t.grad)), at(t.momentum_buffer)};
    if constexpr (std::is_floating_point_v<T>)
      sgd(data[0], data[1], data[2], n, o);
    else
      in_float(data, {true, false, true}, n,
               [&](auto& b, int64_t count) { sgd<float>(b[0], b[1], data[2] ? b[2] : nullptr, count, o); });
  });
}

void adam_part(const AdamTensor& t, int64_t lo, int64_t n, const AdamOptions& o, AdamFactors f) {
  for_floating(t.dtype, [&]<class T>() {
    const auto at = [&](void* p) { return p ? static_cast<T*>(p) + lo : nullptr; };
    T* const data[] = {at(t.param), at(const_cast<void*>(t.grad)), at(t.exp_avg), at(t.exp_avg_sq),
                       at(t.max_exp_avg_sq)};
    if constexpr (std::is_floating_point_v<T>)
      adam(data[0], data[1], data[2], data[3], data[4], n, o, f);
    else
      in_float(data, {true, false, true, true, true}, n, [&](auto& b, int64_t count) {
        adam<float>(b[0], b[1], b[2], b[3], data[4] ? b[4] : nullptr, count, o, f);
      });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(sgd_part);
HWY_EXPORT(adam_part);

namespace {

/// Calls part(index of a tensor, first element, count) on pieces that cover all elements of all tensors.
template <class T, class Part>
void for_parts(std::span<const T> tensors, const Part& part) {
  constexpr int64_t kGrain = 4096;  // 2 us of Adam: roots and quotients cost more than memory
  std::vector<int64_t> ends;
  ends.reserve(tensors.size());
  int64_t total = 0;
  for (const T& t : tensors) ends.push_back(total += t.numel);
  parallel_for(0, total, kGrain, [&](int64_t lo, int64_t hi) {
    for (size_t i = std::upper_bound(ends.begin(), ends.end(), lo) - ends.begin(); lo < hi; ++i) {
      const int64_t begin = ends[i] - tensors[i].numel, end = std::min(ends[i], hi);
      if (lo < end) part(i, lo - begin, end - lo);
      lo = std::max(lo, end);
    }
  });
}

}  // namespace

void sgd_step(std::span<const SgdTensor> tensors, const SgdOptions& options) {
  const auto part = HWY_DYNAMIC_DISPATCH(sgd_part);
  for_parts(tensors, [&](size_t i, int64_t lo, int64_t n) { part(tensors[i], lo, n, options); });
}

void adam_step(std::span<const AdamTensor> tensors, const AdamOptions& options) {
  std::vector<AdamFactors> factors;
  factors.reserve(tensors.size());
  double step = 0;
  for (const AdamTensor& t : tensors) {
    if (factors.empty() || t.step != step) {
      step = t.step;
      factors.push_back(
          {options.lr / (1 - std::pow(options.beta1, step)), 1 / std::sqrt(1 - std::pow(options.beta2, step))});
    } else {
      factors.push_back(factors.back());
    }
  }
  const auto part = HWY_DYNAMIC_DISPATCH(adam_part);
  for_parts(tensors, [&](size_t i, int64_t lo, int64_t n) { part(tensors[i], lo, n, options, factors[i]); });
}

}  // namespace rush::cpu
#endif
