// Memory that kernels work in: each thread keeps one growing buffer for each purpose, since fresh pages cost more than
// filling them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace rush::cpu {

/// What a buffer is for. Two that are in use by one thread at the same time need different names.
enum class Scratch { a, b, c, operand, gather, count };

namespace detail {
struct Buffer {
  static constexpr std::align_val_t alignment{64};
  void* data = nullptr;
  size_t size = 0;
  ~Buffer() { ::operator delete(data, alignment); }
};

inline void* scratch_bytes(Scratch purpose, size_t need) {
  thread_local Buffer buffers[static_cast<int>(Scratch::count)];
  Buffer& buffer = buffers[static_cast<int>(purpose)];
  if (need > buffer.size) {
    ::operator delete(std::exchange(buffer.data, nullptr), Buffer::alignment);
    const size_t size = (need + need / 4 + 4095) / 4096 * 4096;
    buffer.size = 0;
    buffer.data = ::operator new(size, Buffer::alignment);
    buffer.size = size;
  }
  return buffer.data;
}
}  // namespace detail

/// Room for n elements, aligned to a cache line. It holds until the thread next asks for the same purpose.
template <class T>
T* scratch(Scratch purpose, int64_t n) {
  return static_cast<T*>(detail::scratch_bytes(purpose, static_cast<size_t>(n) * sizeof(T)));
}

}  // namespace rush::cpu
