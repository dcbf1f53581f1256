// The thread pool's interface: parallel_for splits a range into chunks whose borders do not depend on the number of
// threads, so results do not either.
#pragma once
#include <cstdint>
#include <type_traits>

namespace rush {

/// Threads that parallel work uses, the caller's included. At first: RUSHLIGHT_NUM_THREADS or OMP_NUM_THREADS if set,
/// else the cores this process may use (affinity and cgroup quota).
int num_threads();

/// Sets num_threads(). Throws Error if n < 1.
void set_num_threads(int n);

/// True inside a body that parallel_for runs on several threads; a nested call runs inline.
bool in_parallel();

namespace detail {
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context);
}  // namespace detail

/// Calls body(lo, hi) on disjoint ranges that cover [begin, end). A range no larger than `grain` runs on the calling
/// thread at once, without touching the pool. The first exception thrown by a body is rethrown here.
template <class Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
  if (end - begin <= grain) {
    if (begin < end) body(begin, end);
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      begin, end, grain, [](void* context, int64_t lo, int64_t hi) { (*static_cast<Plain*>(context))(lo, hi); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace rush
