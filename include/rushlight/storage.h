// Memory that tensors share. A view is another tensor over the same Storage. Small memory lies behind the Storage
// itself, in one block.
#pragma once
#include <functional>
#include <memory>

#include "rushlight/dtype.h"
#include "rushlight/intrusive.h"

namespace rush {

class Storage : public Counted {
 public:
  /// `bytes` of memory on the device, from its caching allocator; not set to anything.
  static Ref<Storage> allocate(int64_t bytes, Device device);
  /// Somebody else's memory; `release` is called when the last tensor over it is gone.
  static Ref<Storage> wrap(void* data, int64_t bytes, Device device, std::function<void()> release);
  static void destroy(Storage* s);

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Counts the in-place changes of all tensors over this storage: a saved tensor remembers the count.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }
  /// Grows (or shrinks) the memory, keeping its contents. Throws Error unless it is resizable(): memory that another
  /// library owns, or was ever shown (NumPy, the buffer protocol, DLPack), stays where it is.
  void resize(int64_t bytes);
  bool resizable() const;
  /// Another library is shown the memory, and nobody will say when it stops looking.
  void mark_exported() { exported_ = true; }

 private:
  Storage(void* data, int64_t bytes, Device device) : data_(data), bytes_(bytes), device_(device) {}
  ~Storage();
  void free_data();
  void* data_;
  int64_t bytes_;
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool borrowed_ = false;
  bool exported_ = false;
  uint32_t room_ = 0;  // bytes behind this object, in the same block
  std::unique_ptr<std::function<void()>> release_;
};

}  // namespace rush
