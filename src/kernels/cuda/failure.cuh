// How a kernel reports an index out of range: the first thread to fail writes what it saw to memory that the host reads
// at its next synchronisation, and the kernel goes on without that element. See Note [Device asserts] in runtime.h.
#pragma once
#include "kernels/math.h"

namespace rush::cuda {

struct Failure {
  unsigned state;  // 0: none, 1: being written, 2: written
  int dim;
  int64_t index, size;
  uint64_t operation;  // address of the operator's name, a std::string_view, on the host
};

/// An argument of kernels that check indices; made on the host by cuda::index_check().
struct IndexCheck {
  Failure* failure;
  uint64_t operation;

  /// Whether 0 <= index < size; reports it if not.
  RUSH_FN bool operator()(int64_t index, int64_t size, int dim) const {
    if (uint64_t(index) < uint64_t(size)) return true;
#ifdef __CUDACC__
    if (atomicCAS(&failure->state, 0u, 1u) != 0) return false;
#else
    unsigned none = 0;
    if (!__atomic_compare_exchange_n(&failure->state, &none, 1u, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return false;
#endif
    failure->dim = dim;
    failure->index = index;
    failure->size = size;
    failure->operation = operation;
#ifdef __CUDACC__
    __threadfence_system();
    atomicExch(&failure->state, 2u);
#else
    __atomic_store_n(&failure->state, 2u, __ATOMIC_RELEASE);
#endif
    return false;
  }
};

}  // namespace rush::cuda
