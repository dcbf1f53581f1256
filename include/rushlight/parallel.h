// The thread pool's interface: parallel_for splits a range into chunks whose borders do not depend on the number of
// threads, so results do not either.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
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
/// Cores that the CPU quota of this process's cgroup pays for, rounded up; 0 if there is none. `proc_cgroup` is the
/// text of /proc/self/cgroup and `mount` the folder /sys/fs/cgroup: arguments so that a test can bring its own.
int cgroup_cores(const std::string& proc_cgroup, const std::string& mount);

using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context);
}  // namespace detail

/// The length of the ranges into which parallel_for cuts `n` elements (the last may be shorter). A function of its
/// arguments alone, so that a reduction may keep one partial result for each range, at index (lo - begin) / chunk_size,
/// and have the same bits with any number of threads.
constexpr int64_t chunk_size(int64_t n, int64_t grain) {
  constexpr int64_t max_chunks = 1024, cache_line = 64;
  const int64_t chunks = std::clamp<int64_t>((n - 1) / std::max<int64_t>(grain, 1) + 1, 1, max_chunks);
  const int64_t size = std::max<int64_t>((n - 1) / chunks + 1, 1);
  return size < 8 * cache_line ? size : (size + cache_line - 1) / cache_line * cache_line;
}

/// Calls body(lo, hi) on disjoint ranges that cover [begin, end). A range no larger than `grain` runs on the calling
/// thread at once, without touching the pool. The first exception thrown by a body is rethrown here; ranges not begun
/// by then are dropped. Any thread may call it; while one of them has the pool, the others do their work alone.
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
