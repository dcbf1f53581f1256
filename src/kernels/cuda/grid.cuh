// How work is spread over a GPU: a kernel is a functor, called for each index by the threads of the grid (each), or for
// each index by all threads of a block together (teams). Functors are named structs with pointers and numbers in them,
// handed over by value; kernels/cuda/launch.h launches them.
//
//   struct Fill { float* out; float value; RUSH_FN void operator()(int64_t i) const { out[i] = value; } };
//
// A team's functor may use __syncthreads and the functions below; it is right for any number of threads, one included,
// that is a power of two.
#pragma once
#ifdef __CUDACC_RTC__
#include "kernels/cuda/std.cuh"
#else
#include "kernels/cuda/host.h"
#endif
#include "kernels/elements.h"
#include "kernels/math.h"

namespace rush::cuda {

inline constexpr int kTeam = 256;  // threads in a block, at most

template <class F>
__global__ void each(const F f, const int64_t n) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <class F>
__global__ void teams(const F f, const int64_t n) {
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    f(i);
    __syncthreads();  // shared memory is used again
  }
}

// ---- within a team

/// Calls f(i) for i < n, the threads taking turns.
template <class F>
RUSH_FN void share(int64_t n, const F& f) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
}

/// Every thread's x combined by op, in all threads. T needs no constructor.
template <class T, class Op>
RUSH_FN T combine(T x, const Op& op) {
  RUSH_SHARED(T, slots, kTeam);
  slots[threadIdx.x] = x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) slots[threadIdx.x] = op(slots[threadIdx.x], slots[threadIdx.x + half]);
    __syncthreads();
  }
  const T all = slots[0];
  __syncthreads();
  return all;
}

// ---- atomics

/// *at = op(*at) as one step.
template <class T, class Op>
RUSH_FN void update(T* at, const Op& op) {
  static_assert(sizeof(T) <= 8);
  if constexpr (sizeof(T) == 8) {
    using Word = unsigned long long;
    Word* word = reinterpret_cast<Word*>(at);
    for (Word old = *word, seen;; old = seen) {
      seen = atomicCAS(word, old, std::bit_cast<Word>(op(std::bit_cast<T>(old))));
      if (seen == old) return;
    }
  } else {  // a part of an aligned word of four bytes
    const uint64_t address = reinterpret_cast<uint64_t>(at);
    unsigned* word = reinterpret_cast<unsigned*>(address & ~uint64_t{3});
    const unsigned shift = unsigned(address & 3) * 8,
                   mask = sizeof(T) == 4 ? ~0u : ((1u << (8 * sizeof(T) % 32)) - 1) << shift;
    for (unsigned old = *word, seen;; old = seen) {
      using Bits = std::conditional_t<sizeof(T) == 4, unsigned, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;
      const unsigned fresh = std::bit_cast<Bits>(op(std::bit_cast<T>(Bits(old >> shift))));
      seen = atomicCAS(word, old, (old & ~mask) | fresh << shift);
      if (seen == old) return;
    }
  }
}

template <class T>
RUSH_FN void atomic_add(T* at, T x) {
#ifdef __CUDACC_RTC__
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
    atomicAdd(at, x);
    return;
  }
  if constexpr (std::is_same_v<T, int64_t>) {
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(x));
    return;
  }
#endif
  if constexpr (is_complex_type<T>) {
    auto* parts = reinterpret_cast<typename T::value_type*>(at);
    atomic_add(parts, x.real());
    atomic_add(parts + 1, x.imag());
  } else {
    update(at, [x](T old) { return T(old + x); });
  }
}

}  // namespace rush::cuda
