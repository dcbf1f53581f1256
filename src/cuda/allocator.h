// The caching allocators over the runtime's memory: one for each device, and one for pinned host memory. What is freed
// is kept and given out again without asking the device, which would have to wait for its work.
//
//   void* p = cuda::allocate(device, bytes);     // for the device's current stream
//   cuda::free(device, p);                       // at once, also while work that uses it is queued on that stream
#pragma once
#include <cstddef>

#include "rushlight/cuda.h"

namespace rush::cuda {

/// Memory for the current stream of the device; null for 0 bytes. Throws OutOfMemoryError.
void* allocate(int device, size_t bytes);
/// Gives it back to the stream it was allocated on, and to others' use once the streams of record_stream() are done.
/// Null is ignored. Does nothing in a forked child, which can't use the device.
void free(int device, void* data) noexcept;
/// Another stream uses the memory at `data`, which lies in what allocate() returned.
void record_stream(int device, const void* data, const Stream& stream);

/// Pinned host memory, cached likewise.
void* allocate_pinned(size_t bytes);
void free_pinned(void* data) noexcept;
/// A stream copies from or to pinned memory at `data`: it is not given out again before that is done. Other memory is
/// ignored.
void record_pinned(const void* data, const Stream& stream);

}  // namespace rush::cuda
