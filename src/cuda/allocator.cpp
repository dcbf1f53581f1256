#include "cuda/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "cuda/graphs.h"

namespace rush::cuda {
namespace {

// PyTorch's sizes: what programs know about memory use and fragmentation then holds here too.
constexpr size_t kRounding = 512;           // every size is rounded to this
constexpr size_t kSmall = 1 << 20;          // up to here from the small pool
constexpr size_t kSmallSegment = 2 << 20;   // what the small pool asks the device for
constexpr size_t kLarge = 10 << 20;         // from here on segments of their own
constexpr size_t kLargeSegment = 20 << 20;  // what smaller ones ask the device for
constexpr size_t kLargeRounding = 2 << 20;  // what segments of their own are rounded to
constexpr size_t kListedInError = 5;

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

std::string readable(size_t bytes) {
  char number[32];
  if (bytes < 1 << 10)
    snprintf(number, sizeof number, "%zu bytes", bytes);
  else if (bytes < 1 << 20)
    snprintf(number, sizeof number, "%.2f KiB", double(bytes) / (1 << 10));
  else if (bytes < 1 << 30)
    snprintf(number, sizeof number, "%.2f MiB", double(bytes) / (1 << 20));
  else
    snprintf(number, sizeof number, "%.2f GiB", double(bytes) / (1 << 30));
  return number;
}

/// A piece of a segment. Pieces of one segment are linked in the order of their addresses.
struct Block {
  char* data;
  size_t size;       // rounded
  size_t requested;  // 0 while free
  int stream;        // Stream::id() of the stream it is for
  bool small;
  bool used = false;
  Block *previous = nullptr, *next = nullptr;
  std::string_view operation = {};  // that asked for it
  std::vector<Stream> others = {};  // streams that use it besides its own
  size_t events = 0;                // of those, that it waits for after it was freed
  uint64_t graph = 0;               // the graph whose own it is

  bool split() const { return previous || next; }
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->size, a->data) < std::tie(b->stream, b->size, b->data);
  }
};
using Pool = std::set<Block*, BySize>;

class DeviceAllocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}

  void* allocate(size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_finished();
    const size_t size = round_up(bytes, kRounding);
    const bool small = size <= kSmall;
    const int stream = current_stream(device_).id();
    const uint64_t graph = stream == held_stream_ ? holding_ : 0;
    if (Block* own = graph ? freed_by(graph, size) : nullptr) return give_out(own, bytes);
    Block* block = from_pool(size, stream, small);
    if (!block) block = from_device(size, stream, small);
    if (!block && release_free_segments()) {
      ++stats_.alloc_retries;
      block = from_device(size, stream, small);
    }
    if (!block) {
      ++stats_.ooms;
      raise_out_of_memory(bytes);
    }
    const size_t rest = block->size - size;
    if (small ? rest >= kRounding : rest > kSmall) {
      if (block->split()) count(MemoryStats::inactive_split, *block, -1);
      auto* tail = new Block{block->data + size, rest, 0, stream, small};
      tail->previous = block;
      tail->next = block->next;
      if (tail->next) tail->next->previous = tail;
      block->next = tail;
      block->size = size;
      pool(small).insert(tail);
      count(MemoryStats::inactive_split, *tail, 1);
    } else if (block->split()) {
      count(MemoryStats::inactive_split, *block, -1);
    }
    block->graph = graph;
    count(MemoryStats::active, *block, 1);
    return give_out(block, bytes);
  }

  void free(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(static_cast<char*>(data));
    assume(found != live_.end(), "memory of cuda:", device_, " is freed that was not allocated");
    Block* block = found->second;
    live_.erase(found);
    block->used = false;
    count(MemoryStats::allocation, *block, -1);
    add(MemoryStats::requested_bytes, block->small, -int64_t(block->requested));
    for (const Stream& other : std::exchange(block->others, {})) {
      if (is_capturing(other)) continue;  // nothing of it runs yet, and the program keeps what its replays use
      const Event event;
      event.record(other);
      ++block->events;
      pending_.emplace_back(event, block);
    }
    if (block->events == 0) give_back(block);
  }

  void record_stream(const void* data, const Stream& stream) {
    const std::lock_guard lock(mutex_);
    auto after = live_.upper_bound(static_cast<char*>(const_cast<void*>(data)));
    if (after == live_.begin()) return;
    Block* block = std::prev(after)->second;
    if (static_cast<const char*>(data) >= block->data + block->size || stream.id() == block->stream) return;
    if (std::find(block->others.begin(), block->others.end(), stream) == block->others.end())
      block->others.push_back(stream);
  }

  void hold(int stream, uint64_t graph) {
    const std::lock_guard lock(mutex_);
    held_stream_ = stream;
    holding_ = graph;
    held_[graph];
  }
  void end_hold() {
    const std::lock_guard lock(mutex_);
    held_stream_ = -1;
  }
  void release(uint64_t graph) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(graph);
    if (found == held_.end()) return;
    const auto freed = std::move(found->second);
    held_.erase(found);
    for (const auto& [size, block] : freed) give_back(block);
  }

  void empty_cache() {
    const std::lock_guard lock(mutex_);
    release_free_segments();
  }
  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset(bool peaks) {
    const std::lock_guard lock(mutex_);
    for (auto& kind : stats_.values)
      for (auto& value : kind) {
        if (peaks)
          value.peak = value.current;
        else
          value.allocated = value.freed = 0;
      }
    if (!peaks) stats_.alloc_retries = stats_.ooms = stats_.device_allocs = stats_.device_frees = 0;
  }
  void set_fraction(double fraction) {
    const std::lock_guard lock(mutex_);
    limit_ = size_t(fraction * double(runtime().memory_info(device_).second));
  }

 private:
  void* give_out(Block* block, size_t bytes) {
    block->used = true;
    block->requested = bytes;
    block->operation = current_operation();
    live_[block->data] = block;
    count(MemoryStats::allocation, *block, 1);
    add(MemoryStats::requested_bytes, block->small, int64_t(bytes));
    return block->data;
  }
  /// A block of this size that the graph has freed.
  Block* freed_by(uint64_t graph, size_t size) {
    auto& freed = held_[graph];
    const auto fit = freed.find(size);
    if (fit == freed.end()) return nullptr;
    Block* block = fit->second;
    freed.erase(fit);
    return block;
  }

  Pool& pool(bool small) { return small ? small_ : large_; }

  void add(MemoryStats::Kind kind, bool small, int64_t amount) {
    for (const size_t column : {size_t(0), size_t(small ? 1 : 2)}) {
      MemoryStats::Value& value = stats_.values[kind][column];
      value.current += amount;
      value.peak = std::max(value.peak, value.current);
      (amount > 0 ? value.allocated : value.freed) += std::abs(amount);
    }
  }
  /// One more block (or less), and its bytes.
  void count(MemoryStats::Kind kind, const Block& block, int sign) {
    add(kind, block.small, sign);
    add(MemoryStats::bytes_of(kind), block.small, sign * int64_t(block.size));
  }

  Block* from_pool(size_t size, int stream, bool small) {
    Block key{nullptr, size, 0, stream, small};
    Pool& free = pool(small);
    const auto fit = free.lower_bound(&key);
    if (fit == free.end() || (*fit)->stream != stream) return nullptr;
    Block* block = *fit;
    free.erase(fit);
    return block;
  }

  Block* from_device(size_t size, int stream, bool small) {
    const size_t segment = small ? kSmallSegment : size < kLarge ? kLargeSegment : round_up(size, kLargeRounding);
    if (segment > limit_ || size_t(stats_.values[MemoryStats::reserved_bytes][0].current) > limit_ - segment)
      return nullptr;
    void* data = runtime().allocate(device_, segment);
    if (!data) return nullptr;
    ++stats_.device_allocs;
    auto* block = new Block{static_cast<char*>(data), segment, 0, stream, small};
    count(MemoryStats::segment, *block, 1);
    return block;
  }

  /// Puts a free block into its pool, joined with free neighbours; a graph's own stays with it.
  void give_back(Block* block) {
    if (const auto graph = held_.find(block->graph); graph != held_.end()) {
      block->used = true;
      graph->second.emplace(block->size, block);
      return;
    }
    block->used = false;
    block->graph = 0;
    count(MemoryStats::active, *block, -1);
    block->requested = 0;
    for (Block* neighbour : {block->previous, block->next}) {
      if (!neighbour || neighbour->used || neighbour->events) continue;
      count(MemoryStats::inactive_split, *neighbour, -1);
      pool(block->small).erase(neighbour);
      if (neighbour == block->previous) {
        block->data = neighbour->data;
        block->previous = neighbour->previous;
        if (block->previous) block->previous->next = block;
      } else {
        block->next = neighbour->next;
        if (block->next) block->next->previous = block;
      }
      block->size += neighbour->size;
      delete neighbour;
    }
    pool(block->small).insert(block);
    if (block->split()) count(MemoryStats::inactive_split, *block, 1);
  }

  void free_finished(bool wait = false) {
    std::erase_if(pending_, [&](const auto& entry) {
      const auto& [event, block] = entry;
      if (wait)
        runtime().synchronize_event(event.handle());
      else if (!runtime().query_event(event.handle()))
        return false;
      if (--block->events == 0) give_back(block);
      return true;
    });
  }

  /// Whether there was one.
  bool release_free_segments() {
    free_finished(true);
    bool any = false;
    for (Pool* free : {&small_, &large_})
      std::erase_if(*free, [&](Block* block) {
        if (block->split()) return false;
        runtime().free(device_, block->data);
        ++stats_.device_frees;
        count(MemoryStats::segment, *block, -1);
        delete block;
        return any = true;
      });
    return any;
  }

  [[noreturn]] void raise_out_of_memory(size_t bytes) {
    const auto [free, total] = runtime().memory_info(device_);
    const auto in_use = size_t(stats_.values[MemoryStats::allocated_bytes][0].current);
    const auto reserved = size_t(stats_.values[MemoryStats::reserved_bytes][0].current);
    std::string limit, largest;
    if (limit_ != SIZE_MAX) limit = text(" ", readable(limit_), " allowed;");
    std::vector<const Block*> blocks;
    for (const auto& [address, block] : live_) blocks.push_back(block);
    const size_t listed = std::min(blocks.size(), kListedInError);
    std::partial_sort(blocks.begin(), blocks.begin() + ptrdiff_t(listed), blocks.end(),
                      [](const Block* a, const Block* b) { return a->size > b->size; });
    for (size_t i = 0; i < listed; ++i)
      largest +=
          text(i ? ", " : " The largest tensors: ", readable(blocks[i]->requested), " made in ", blocks[i]->operation);
    raise<OutOfMemoryError>("CUDA out of memory. Tried to allocate ", readable(bytes), ". GPU ", device_,
                            " has a total capacity of ", readable(total), " of which ", readable(free), " is free.",
                            limit, " Of the allocated memory ", readable(in_use), " is allocated by tensors, and ",
                            readable(reserved - in_use), " is reserved for them but unallocated.", largest,
                            largest.empty() ? "" : ".");
  }

  const int device_;
  std::mutex mutex_;
  Pool small_, large_;                                      // free blocks
  std::map<char*, Block*> live_;                            // by address
  std::vector<std::pair<Event, Block*>> pending_;           // freed, but other streams may not be done
  std::map<uint64_t, std::multimap<size_t, Block*>> held_;  // of each graph, what it has freed, by size
  int held_stream_ = -1;                                    // that a graph is captured on
  uint64_t holding_ = 0;                                    // that graph
  size_t limit_ = SIZE_MAX;
  MemoryStats stats_;
};

DeviceAllocator& allocator(int device) {
  static auto* const all = [] {  // never freed: tensors may outlive static objects
    auto* made = new std::deque<DeviceAllocator>;
    for (int d = 0; d < kMaxDevices; ++d) made->emplace_back(d);
    return made;
  }();
  return (*all)[size_t(device)];
}

/// Blocks of 2^k bytes; a freed one waits until the streams that used it have gone past.
class PinnedAllocator {
 public:
  void* allocate(size_t bytes) {
    const size_t size = std::bit_ceil(std::max<size_t>(bytes, kRounding));
    const std::lock_guard lock(mutex_);
    auto& free = free_[size];
    for (auto it = free.begin(); it != free.end(); ++it) {
      std::erase_if(it->events, [](const Event& e) { return runtime().query_event(e.handle()); });
      if (!it->events.empty()) continue;
      void* data = it->data;
      free.erase(it);
      live_[static_cast<char*>(data)] = {size, {}};
      return data;
    }
    void* data = runtime().allocate_pinned(size);
    live_[static_cast<char*>(data)] = {size, {}};
    return data;
  }
  void free(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(static_cast<char*>(data));
    free_[found->second.size].push_back({data, std::move(found->second.events)});
    live_.erase(found);
  }
  void record(const void* data, const Stream& stream) {
    const std::lock_guard lock(mutex_);
    auto after = live_.upper_bound(static_cast<char*>(const_cast<void*>(data)));
    if (after == live_.begin()) return;
    const auto found = std::prev(after);
    if (static_cast<const char*>(data) >= found->first + found->second.size || is_capturing(stream)) return;
    found->second.events.emplace_back();
    found->second.events.back().record(stream);
  }
  void empty_cache() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_)
      std::erase_if(blocks, [](const Free& block) {
        for (const Event& e : block.events)
          if (!runtime().query_event(e.handle())) return false;
        runtime().free_pinned(block.data);
        return true;
      });
  }

 private:
  struct Free {
    void* data;
    std::vector<Event> events;
  };
  struct Live {
    size_t size;
    std::vector<Event> events;
  };
  std::mutex mutex_;
  std::map<size_t, std::deque<Free>> free_;
  std::map<char*, Live> live_;
};

PinnedAllocator& pinned() {
  static auto* const made = new PinnedAllocator;
  return *made;
}

int checked(int device) { return indexed({DeviceType::CUDA, device}).index; }

}  // namespace

void* allocate(int device, size_t bytes) {
  runtime();  // says what is wrong where there is none, in a forked child for instance
  return bytes ? allocator(device).allocate(bytes) : nullptr;
}
void free(int device, void* data) noexcept {
  if (!data || !started()) return;
  try {
    allocator(device).free(data);
  } catch (const Error&) {  // of the device, which says it again at the next synchronisation
  }
}
void record_stream(int device, const void* data, const Stream& stream) {
  if (data) allocator(device).record_stream(data, stream);
}

void hold_memory(int device, int stream, uint64_t id) { allocator(device).hold(stream, id); }
void end_hold(int device) { allocator(device).end_hold(); }
void release_memory(int device, uint64_t id) { allocator(device).release(id); }

void* allocate_pinned(size_t bytes) {
  runtime();
  return bytes ? pinned().allocate(bytes) : nullptr;
}
void free_pinned(void* data) noexcept {
  if (data && started()) pinned().free(data);
}
void record_pinned(const void* data, const Stream& stream) { pinned().record(data, stream); }

MemoryStats memory_stats(int device) {
  const int d = checked(device);
  return started() ? allocator(d).stats() : MemoryStats{};
}
void reset_peak_memory_stats(int device) { allocator(checked(device)).reset(true); }
void reset_accumulated_memory_stats(int device) { allocator(checked(device)).reset(false); }
std::pair<size_t, size_t> memory_info(int device) { return runtime().memory_info(checked(device)); }
void set_memory_fraction(double fraction, int device) {
  check<ValueError>(fraction >= 0 && fraction <= 1, "Invalid fraction value: ", fraction, ". Allowed range: 0~1");
  allocator(checked(device)).set_fraction(fraction);
}
void empty_cache() {
  if (!started()) return;
  for (int d = 0; d < device_count(); ++d) allocator(d).empty_cache();
  pinned().empty_cache();
}

}  // namespace rush::cuda
