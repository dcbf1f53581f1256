// The caching CPU allocator. Three tiers:
//   up to 1 KB    size classes cut from slabs; free blocks in a list of the thread, surplus in a shared one
//   up to 64 KB   size classes; free blocks in a list of the thread, surplus back to a heap
//   above         a heap: best fit among touched pages, then among others; splitting and merging, so that the same
//                 pages serve changing shapes
// Blocks have no header: cpu_free is told the size. Everything here is leaked on purpose, so that tensors may be freed
// at any time while threads and the process end.
#include "rushlight/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "rushlight/error.h"

namespace rush {
namespace {

constexpr size_t alignment = 64, slab_limit = 1024, cache_limit = 64 << 10, page = 4096, huge_page = 2 << 20;
constexpr size_t slab_classes = slab_limit / alignment, classes = slab_classes + 4 * 6;
constexpr size_t slab_size = 64 << 10;

constexpr size_t class_of(size_t bytes) {
  if (bytes <= slab_limit) return (std::max<size_t>(bytes, 1) - 1) / alignment;
  const int power = std::bit_width(bytes - 1) - 1;  // four classes from 2^power to 2^(power + 1)
  return slab_classes + (power - 10) * 4 + ((bytes - 1) >> (power - 2) & 3);
}

constexpr size_t class_size(size_t index) {
  if (index < slab_classes) return (index + 1) * alignment;
  const size_t step = index - slab_classes;
  return (slab_limit << step / 4) / 4 * (5 + step % 4);
}
static_assert(class_of(slab_limit + 1) == slab_classes && class_of(cache_limit) == classes - 1);
static_assert(class_size(slab_classes) == 1280 && class_size(classes - 1) == cache_limit);
static_assert(class_size(class_of(1281)) == 1536 && class_size(class_of(1280)) == 1280);

// Free blocks that one thread keeps of each class.
constexpr uint32_t list_limit(size_t index) {
  return static_cast<uint32_t>(std::clamp<size_t>((256 << 10) / class_size(index), 4, 128));
}

struct FreeBlock {
  FreeBlock* next;
};

struct FreeList {
  FreeBlock* head = nullptr;
  uint32_t count = 0;

  void push(void* block) {
    head = new (block) FreeBlock{head};
    ++count;
  }
  void* pop() {
    FreeBlock* block = head;
    head = block->next;
    --count;
    return block;
  }
};

// Address space from the system, handed out in blocks. A free block is `dirty` if its pages may be in memory. Callers
// lock.
class Heap {
 public:
  explicit Heap(size_t segment) : segment_(segment) {}

  // Null if the system has no more.
  void* allocate(size_t size) {
    auto found = fit(size);
    if (found == blocks_.end()) {
      if (!grow(size)) return nullptr;
      found = fit(size);
    }
    const uintptr_t address = found->first;
    const Free block = remove(found);
    if (block.size > size) insert(address + size, {block.size - size, block.dirty});
    used_ += size;
    window_peak_ = std::max(window_peak_, used_);
    if (!block.dirty) trim(std::max(window_peak_, last_peak_));
    return reinterpret_cast<void*>(address);
  }

  void free(void* pointer, size_t size) {
    auto address = reinterpret_cast<uintptr_t>(pointer);
    used_ -= size;
    Free block{size, true};
    auto next = blocks_.lower_bound(address);
    if (next != blocks_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second.size == address && mergeable(previous->second)) {
        address = previous->first;
        block.size += remove(previous).size;
      }
    }
    if (next != blocks_.end() && next->first == reinterpret_cast<uintptr_t>(pointer) + size && mergeable(next->second))
      block.size += remove(next).size;
    insert(address, block);
    if (++frees_ % 64 == 0) end_window();
  }

  // Gives pages back until those in use and those kept are within what `peak` bytes in use need, with some room.
  void trim(size_t peak) {
    if (used_ + dirty_ > peak + peak / 8 + slack) release(peak + peak / 8 + slack - std::min(used_, peak));
  }

  // Gives pages of free blocks back, the largest first, until at most `keep` dirty bytes remain.
  void release(size_t keep) {
    for (auto it = dirty_by_size_.end(); it != dirty_by_size_.begin() && dirty_ > keep;) {
      const auto [size, address] = *--it;
      const uintptr_t first = (address + page - 1) / page * page, last = (address + size) / page * page;
      if (first >= last) continue;  // not a whole page
      madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
      it = dirty_by_size_.erase(it);
      clean_by_size_.emplace(size, address);
      blocks_.find(address)->second.dirty = false;
      dirty_ -= size;
    }
  }

  size_t used() const { return used_; }
  size_t dirty() const { return dirty_; }

 private:
  static constexpr size_t slack = 64 << 20;
  struct Free {
    size_t size;
    bool dirty;
  };
  using Blocks = std::map<uintptr_t, Free>;
  using BySize = std::set<std::pair<size_t, uintptr_t>>;

  // The smallest block that is large enough, if possible one whose pages are in memory.
  Blocks::iterator fit(size_t size) {
    for (const BySize* blocks : {&dirty_by_size_, &clean_by_size_})
      if (const auto it = blocks->lower_bound({size, 0}); it != blocks->end()) return blocks_.find(it->second);
    return blocks_.end();
  }
  BySize& by_size(const Free& block) { return block.dirty ? dirty_by_size_ : clean_by_size_; }

  // A freed block is dirty. Merged with a clean one it would make that count as dirty as well, so a large clean block
  // stays apart: it is the untouched end of a segment, or was given back.
  static bool mergeable(const Free& neighbour) { return neighbour.dirty || neighbour.size <= huge_page; }

  void insert(uintptr_t address, Free block) {
    blocks_.emplace(address, block);
    by_size(block).emplace(block.size, address);
    if (block.dirty) dirty_ += block.size;
  }

  Free remove(Blocks::iterator it) {
    const Free block = it->second;
    by_size(block).erase({block.size, it->first});
    blocks_.erase(it);
    if (block.dirty) dirty_ -= block.size;
    return block;
  }

  bool grow(size_t size) {
    // Clean blocks may lie apart from dirty neighbours; joined they may be enough.
    if (merge_all(size)) return true;
    const size_t wanted = (std::max(size, segment_) + huge_page - 1) / huge_page * huge_page;
    for (const size_t length : {wanted, (size + page - 1) / page * page}) {
      void* memory = mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) continue;
      const auto start = reinterpret_cast<uintptr_t>(memory);
      const uintptr_t aligned = (start + huge_page - 1) / huge_page * huge_page;
      if (aligned > start) munmap(memory, aligned - start);
      if (start + huge_page > aligned) munmap(reinterpret_cast<void*>(aligned + length), start + huge_page - aligned);
      if (segment_ >= 16 * huge_page) madvise(reinterpret_cast<void*>(aligned), length, MADV_HUGEPAGE);
      insert(aligned, {length, false});
      return true;
    }
    return false;
  }

  // Merges all neighbours. True if a block of `size` bytes came out of it.
  bool merge_all(size_t size) {
    bool enough = false;
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      const auto next = std::next(it);
      if (next == blocks_.end() || it->first + it->second.size != next->first) {
        it = next;
        continue;
      }
      const uintptr_t address = it->first;
      const Free a = remove(it), b = remove(next);
      insert(address, {a.size + b.size, a.dirty || b.dirty});
      enough = enough || a.size + b.size >= size;
      it = blocks_.find(address);
    }
    return enough;
  }

  // Every second of use, forgets the peak of the second before last: what has not been needed since is given back.
  void end_window() {
    const auto now = std::chrono::steady_clock::now();
    if (now - window_start_ < std::chrono::seconds(1)) return;
    window_start_ = now;
    trim(std::max(last_peak_, window_peak_));
    last_peak_ = window_peak_;
    window_peak_ = used_;
  }

  const size_t segment_;
  Blocks blocks_;
  BySize dirty_by_size_, clean_by_size_;
  size_t used_ = 0, dirty_ = 0, window_peak_ = 0, last_peak_ = 0, frees_ = 0;
  std::chrono::steady_clock::time_point window_start_ = std::chrono::steady_clock::now();
};

// What a thread keeps for itself: free blocks, and the part of the count of live bytes that it has not handed on. Only
// the thread changes it; others read the count.
struct ThreadCache {
  FreeList lists[classes];
  std::atomic<int64_t> live{0};
  ThreadCache *next = nullptr, *previous = nullptr;
};
constexpr int64_t count_limit = 64 << 10;

struct Shared {
  std::mutex mutex;
  Heap medium{4 << 20}, large{64 << 20};
  FreeList slabs[slab_classes];
  ThreadCache* threads = nullptr;
  std::atomic<int64_t> live{0};  // without what threads have not handed on
  int64_t peak = 0;
  pthread_key_t key{};

  static Shared& get() {
    static Shared* const shared = new Shared;
    return *shared;
  }

  Shared() {
    // Key destructors run after those of thread_local objects, and again if one of them has made a new cache.
    pthread_key_create(&key, [](void* cache) { get().end_thread(static_cast<ThreadCache*>(cache)); });
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); }, [] { get().mutex.unlock(); });
  }

  Heap& heap(size_t size) { return size <= cache_limit ? medium : large; }

  void* from_heap(size_t size) {
    void* block = heap(size).allocate(size);
    if (!block) {
      medium.release(0);
      large.release(0);
      block = heap(size).allocate(size);
    }
    return block;
  }

  // A block of the class, and a few more for the thread's list. Null if there is no memory.
  void* refill(FreeList& list, size_t index) {
    const std::lock_guard lock(mutex);
    const size_t size = class_size(index);
    if (index >= slab_classes) return from_heap(size);
    FreeList& shared = slabs[index];
    if (!shared.count) {
      auto* slab = static_cast<std::byte*>(from_heap(slab_size));
      if (!slab) return nullptr;
      for (size_t end = slab_size / size * size; end > 0; end -= size) shared.push(slab + end - size);
    }
    for (uint32_t n = std::min(shared.count - 1, list_limit(index) / 2); n > 0; --n) list.push(shared.pop());
    return shared.pop();
  }

  void give_back(FreeList& list, size_t index, uint32_t keep) {
    const std::lock_guard lock(mutex);
    while (list.count > keep) {
      void* block = list.pop();
      if (index < slab_classes)
        slabs[index].push(block);
      else
        medium.free(block, class_size(index));
    }
  }

  void begin_thread(ThreadCache* cache) {
    pthread_setspecific(key, cache);
    const std::lock_guard lock(mutex);
    cache->next = threads;
    if (threads) threads->previous = cache;
    threads = cache;
  }
  void end_thread(ThreadCache* cache);
  void take_count(ThreadCache& thread) {
    const std::lock_guard lock(mutex);
    note_peak();
    live.fetch_add(thread.live.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  }

  // Callers of these two lock.
  int64_t all_live() const {
    int64_t sum = live.load(std::memory_order_relaxed);
    for (const ThreadCache* t = threads; t; t = t->next) sum += t->live.load(std::memory_order_relaxed);
    return sum;
  }
  void note_peak() { peak = std::max(peak, all_live()); }
};

constinit thread_local ThreadCache* thread_cache = nullptr;

[[gnu::noinline, gnu::cold]] ThreadCache& begin_thread() {
  thread_cache = new ThreadCache;
  Shared::get().begin_thread(thread_cache);
  return *thread_cache;
}
inline ThreadCache& this_thread() {
  ThreadCache* cache = thread_cache;
  return cache ? *cache : begin_thread();
}

void Shared::end_thread(ThreadCache* cache) {
  for (size_t i = 0; i < classes; ++i) give_back(cache->lists[i], i, 0);
  {
    const std::lock_guard lock(mutex);
    live.fetch_add(cache->live.load(std::memory_order_relaxed), std::memory_order_relaxed);
    (cache->previous ? cache->previous->next : threads) = cache->next;
    if (cache->next) cache->next->previous = cache->previous;
  }
  delete cache;
  thread_cache = nullptr;
}

// Small blocks: no other thread's cache line is touched. The peak is looked at when a thread hands its count on, so it
// may miss up to count_limit bytes of each.
inline void count(ThreadCache& thread, int64_t bytes) {
  const int64_t now = thread.live.load(std::memory_order_relaxed) + bytes;
  thread.live.store(now, std::memory_order_relaxed);
  if (now > count_limit || now < -count_limit) [[unlikely]]
    Shared::get().take_count(thread);
}

[[noreturn]] void out_of_memory(size_t bytes) {
  char text[160];
  constexpr double gib = 1 << 30;
  std::snprintf(text, sizeof text,
                "CPU out of memory: tried to allocate %.2f GiB (%zu bytes) with %.2f GiB in use by tensors",
                bytes / gib, bytes, cpu_memory_allocated() / gib);
  throw OutOfMemoryError(text);
}

// Under AddressSanitizer every block is the system's own, so that use after free is found.
#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

size_t large_size(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

void* cpu_allocate(size_t bytes) {
  void* block = nullptr;
  if (caching && bytes <= cache_limit) [[likely]] {
    ThreadCache& thread = this_thread();
    const size_t index = class_of(bytes);
    FreeList& list = thread.lists[index];
    block = list.head ? list.pop() : Shared::get().refill(list, index);
    if (block) [[likely]] {
      count(thread, int64_t(bytes));
      return block;
    }
    out_of_memory(bytes);
  }
  if (!caching) {
    // The sanitizer ends the process where a request is absurd instead of refusing it.
    if (bytes >> 38 || posix_memalign(&block, alignment, std::max<size_t>(bytes, 1)) != 0) block = nullptr;
  }
  Shared& shared = Shared::get();
  {
    const std::lock_guard lock(shared.mutex);
    if (caching && bytes <= SIZE_MAX / 2) block = shared.from_heap(large_size(bytes));
    if (block) {
      shared.live.fetch_add(int64_t(bytes), std::memory_order_relaxed);
      shared.note_peak();
    }
  }
  if (!block) out_of_memory(bytes);
  return block;
}

void cpu_free(void* pointer, size_t bytes) noexcept {
  if (!pointer) return;
  if (caching && bytes <= cache_limit) [[likely]] {
    ThreadCache& thread = this_thread();
    const size_t index = class_of(bytes);
    FreeList& list = thread.lists[index];
    list.push(pointer);
    count(thread, -int64_t(bytes));
    if (list.count > list_limit(index)) Shared::get().give_back(list, index, list_limit(index) / 2);
    return;
  }
  Shared& shared = Shared::get();
  shared.live.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
  if (!caching) {
    std::free(pointer);
  } else {
    const std::lock_guard lock(shared.mutex);
    shared.large.free(pointer, large_size(bytes));
  }
}

int64_t cpu_memory_allocated() {
  Shared& shared = Shared::get();
  const std::lock_guard lock(shared.mutex);
  return shared.all_live();
}
int64_t cpu_max_memory_allocated() {
  Shared& shared = Shared::get();
  const std::lock_guard lock(shared.mutex);
  shared.note_peak();
  return shared.peak;
}
void cpu_reset_peak() {
  Shared& shared = Shared::get();
  const std::lock_guard lock(shared.mutex);
  shared.peak = shared.all_live();
}

int64_t cpu_memory_cached() {
  if (!caching) return 0;
  Shared& shared = Shared::get();
  const std::lock_guard lock(shared.mutex);
  const size_t held = shared.medium.used() + shared.medium.dirty() + shared.large.used() + shared.large.dirty();
  return static_cast<int64_t>(held) - shared.all_live();
}

void cpu_empty_cache() {
  if (!caching) return;
  Shared& shared = Shared::get();
  for (size_t i = 0; i < classes; ++i) shared.give_back(this_thread().lists[i], i, 0);
  const std::lock_guard lock(shared.mutex);
  shared.medium.release(0);
  shared.large.release(0);
}

}  // namespace rush
