// CPU memory for tensors: cached, because pages fresh from the system cost more than most kernels that fill them.
//
//   void* p = cpu_allocate(bytes);   // 64-byte aligned
//   cpu_free(p, bytes);              // the same number of bytes
#pragma once
#include <cstddef>
#include <cstdint>

namespace rush {

/// Memory for `bytes` bytes, aligned to 64, contents undefined; never null, also for 0 bytes. Throws OutOfMemoryError.
void* cpu_allocate(size_t bytes);

/// Gives back what cpu_allocate(bytes) returned, on any thread, also while threads and the process end. Null is
/// ignored.
void cpu_free(void* pointer, size_t bytes) noexcept;

/// Bytes asked for and not yet freed, in this process.
int64_t cpu_memory_allocated();

/// The largest value cpu_memory_allocated() has had since the start or the last cpu_reset_peak().
int64_t cpu_max_memory_allocated();
void cpu_reset_peak();

/// Bytes kept for reuse or lost to rounding: what the process holds beyond cpu_memory_allocated().
int64_t cpu_memory_cached();

/// Returns cached memory to the system, except for small blocks kept by other threads.
void cpu_empty_cache();

}  // namespace rush
