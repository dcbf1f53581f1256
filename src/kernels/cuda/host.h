// The device's C++ as the host compiler sees it, so that the simulated GPU runs the same kernel sources. A block's
// threads are one thread by default: kernels are written for any number of threads, so that is fast and right. With
// RUSHLIGHT_SIM_THREADS=n each block has n, as fibers that switch at __syncthreads, which shows a missing barrier.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#include "cuda/runtime.h"

#define __global__ static
/// An array that the threads of a block share.
#define RUSH_SHARED(type, name, size)                \
  static const size_t name##_ = next_shared_array(); \
  type* const name = static_cast<type*>(shared_array(name##_, sizeof(type) * (size)))

namespace rush::cuda {

extern constinit thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;

/// Runs thread(arguments) as each thread of the block `index`.
void run_threads(const Shape& shape, Dim3 index, void (*thread)(void* const*), void* const* arguments);
/// A number for each array in the sources, and where it is for the block that runs on this thread of the host.
size_t next_shared_array();
void* shared_array(size_t which, size_t bytes);
/// Lets the block's other threads run up to here.
void switch_thread();

inline void __syncthreads() {
  if (blockDim.x > 1) switch_thread();
}

template <class W>
W atomicCAS(W* at, W expected, W wanted) {
  __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}

}  // namespace rush::cuda
