// Memory that tensors share. A view is another tensor over the same Storage. Small memory lies behind the Storage
// itself, in one block.
#pragma once
#include <array>
#include <functional>
#include <memory>

#include "rushlight/dtype.h"
#include "rushlight/intrusive.h"

namespace rush {

/// What something kept with a storage is, and of which part of it: its kind, then sizes, strides, an offset.
using KeptKey = std::array<int64_t, 7>;

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
  void bump_version() {
    version_.fetch_add(1);
    forget_kept();
  }
  /// A change that version() does not count: one of a tensor from `.data`.
  void changed_unseen() {
    seen_.store(0);
    forget_kept();
  }
  /// Grows (or shrinks) the memory, keeping its contents. Throws Error unless it is resizable(): memory that another
  /// library owns, or was ever shown (NumPy, the buffer protocol, DLPack), stays where it is.
  void resize(int64_t bytes);
  bool resizable() const;
  /// Another library is shown the memory, and nobody will say when it stops looking.
  void mark_exported() {
    exported_ = true;
    mark_shown();
  }
  /// Somebody has the address, and may write there without a word.
  void mark_shown() {
    shown_ = true;
    changed_unseen();
  }

  // Weights are read again and again in an order that is not theirs. What a kernel made of this memory can be kept with
  // it: it is dropped when the memory changes. Any thread may call these.

  /// What was kept under the key, or null.
  Ref<Storage> find_kept(const KeptKey& key) const {
    return kept_.load(std::memory_order_acquire) ? look_up_kept(key) : Ref<Storage>();
  }
  /// Whether `bytes` more should be kept: from the second time on that this is asked about the same contents, unless
  /// others can write to them or kept_limit() would be passed.
  bool worth_keeping(int64_t bytes);
  /// Keeps what was made of the contents that worth_keeping() was asked about, unless they have changed since.
  void keep(const KeptKey& key, Ref<Storage> made);

 private:
  Storage(void* data, int64_t bytes, Device device) : data_(data), bytes_(bytes), device_(device) {}
  ~Storage();
  struct Kept;
  Ref<Storage> look_up_kept(const KeptKey& key) const;
  void forget_kept() {
    if (kept_.load()) [[unlikely]]
      drop_kept();
  }
  void drop_kept();
  bool seen() const { return seen_.load() == version_.load() + 1; }
  void free_data();
  void* data_;
  int64_t bytes_;
  std::atomic<Kept*> kept_{nullptr};
  std::atomic<uint32_t> version_{0};
  std::atomic<uint32_t> seen_{0};  // version + 1 when worth_keeping() was first asked about these contents
  Device device_;
  bool borrowed_ = false;
  bool exported_ = false;
  bool shown_ = false;
  uint32_t room_ = 0;  // bytes behind this object, in the same block
  std::unique_ptr<std::function<void()>> release_;
};

/// The most bytes that storages keep together; at first an eighth of the machine's memory, at most 1 GiB. With 0,
/// nothing more is kept.
int64_t kept_limit();
void set_kept_limit(int64_t bytes);
/// Bytes that storages keep now.
int64_t kept_bytes();

/// What fill(memory) makes of the source's contents, kept with them under `key`; null where it is not (yet) worth
/// keeping, or without a source.
template <class Fill>
Ref<Storage> kept(Storage* source, const KeptKey& key, int64_t bytes, const Fill& fill) {
  if (!source) return {};
  if (Ref<Storage> found = source->find_kept(key)) return found;
  if (!source->worth_keeping(bytes)) return {};
  Ref<Storage> made = Storage::allocate(bytes, kCPU);
  fill(made->data());
  source->keep(key, made);
  return made;
}

}  // namespace rush
