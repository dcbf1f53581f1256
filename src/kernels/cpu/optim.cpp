// Optimizer steps. The elements of all parameters are one range, which is split among the threads; a piece of it covers
// parts of one or several parameters. float and double are computed as they are; half types go through float, a block
// at a time, and are rounded once. Every element is read and written once.
#include "kernels/cpu/optim.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optim.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

/// The loop over a rule; the compiler makes vector code of it.
template <class F, class T, size_t... I>
HWY_ATTR void loop(const F f, const steps::Prepare prepare, T* const* arrays, const double* factors, int64_t n,
                   std::index_sequence<I...>) {
  T *const params = arrays[0], *const grads = arrays[1];
  T* const states[] = {nullptr, arrays[2 + I]...};
  const double k[] = {factors[0], factors[1], factors[2]};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T s[] = {states[1 + I][i]..., T(0)}, p = params[i];
    const T g = prepare(p, grads[i]);
    f(p, g, s, k);
    params[i] = p;
    ((states[1 + I][i] = s[I]), ...);
  }
}

/// The same over arrays of a half type, through blocks of float; the gradient is not written back.
template <class F, class H>
HWY_ATTR void loop_in_float(const F& f, const steps::Prepare& prepare, H* const* arrays, const double* factors,
                            int64_t n) {
  constexpr int64_t kBlock = 256;
  constexpr int kArrays = 2 + F::kStates;
  float block[kArrays][kBlock];
  float* blocks[kArrays];
  for (int a = 0; a < kArrays; ++a) blocks[a] = block[a];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    for (int a = 0; a < kArrays; ++a) std::copy_n(arrays[a] + i, count, block[a]);
    loop<F, float>(f, prepare, blocks, factors, count, std::make_index_sequence<F::kStates>());
    for (int a = 0; a < kArrays; ++a)
      if (a != 1) std::copy_n(block[a], count, arrays[a] + i);
  }
}

template <class T, class F>
void part_in(const F& f, const StepTensor& t, int64_t lo, int64_t n, const steps::Prepare& prepare) {
  T* arrays[2 + F::kStates];
  for (int a = 0; a < 2 + F::kStates; ++a) arrays[a] = static_cast<T*>(t.arrays[a]) + lo;
  if constexpr (std::is_floating_point_v<T>)
    loop<F, T>(f, prepare, arrays, t.factors, n, std::make_index_sequence<F::kStates>());
  else
    loop_in_float(f, prepare, arrays, t.factors, n);
}

/// Elements [lo, lo + n) of a parameter.
void step_part(const StepTensor& t, int64_t lo, int64_t n, const steps::Prepare& prepare, const Rule& rule) {
  std::visit([&](const auto& f) { for_floating(t.dtype, [&]<class T>() { part_in<T>(f, t, lo, n, prepare); }); }, rule);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(step_part);

void step(std::span<const StepTensor> tensors, const steps::Prepare& prepare, const Rule& rule) {
  const auto part = HWY_DYNAMIC_DISPATCH(step_part);
  int64_t total = 0;
  for (const StepTensor& t : tensors) total += t.numel;
  const int64_t grain = std::visit([](const auto& f) { return f.kGrain; }, rule);
  parallel_for(0, total, grain, [&](int64_t lo, int64_t hi) {
    int64_t begin = 0;
    for (const StepTensor& t : tensors) {
      if (begin >= hi) break;
      const int64_t end = begin + t.numel, first = std::max(lo, begin), last = std::min(hi, end);
      if (first < last) part(t, first - begin, last - first, prepare, rule);
      begin = end;
    }
  });
}

}  // namespace rush::cpu
#endif
