// What kernels keep with a storage until it changes. A few locks for all storages guard the lists, since a weight may
// change on one thread while another reads it.
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "rushlight/storage.h"

namespace rush {

struct Storage::Kept {
  struct Entry {
    KeptKey key;
    Ref<Storage> made;
  };
  std::vector<Entry> entries;
  int64_t bytes = 0;
};

namespace {

std::mutex& lock_of(const Storage* s) {
  static std::mutex locks[16];
  return locks[reinterpret_cast<uintptr_t>(s) / 64 % 16];
}

int64_t default_limit() {
  const int64_t memory = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::min<int64_t>(int64_t{1} << 30, memory / 8);
}

std::atomic<int64_t>& limit() {
  static std::atomic<int64_t> bytes = default_limit();
  return bytes;
}
std::atomic<int64_t> total = 0;

}  // namespace

int64_t kept_limit() { return limit(); }
void set_kept_limit(int64_t bytes) { limit() = bytes; }
int64_t kept_bytes() { return total; }

Ref<Storage> Storage::look_up_kept(const KeptKey& key) const {
  const std::lock_guard guard(lock_of(this));
  if (const Kept* const kept = kept_.load())
    for (const Kept::Entry& entry : kept->entries)
      if (entry.key == key) return entry.made;
  return {};
}

bool Storage::worth_keeping(int64_t bytes) {
  if (borrowed_ || shown_ || !device_.is_cpu() || total + bytes > limit()) return false;
  if (seen()) return true;
  seen_.store(version_.load() + 1);
  return false;
}

void Storage::keep(const KeptKey& key, Ref<Storage> made) {
  {
    const std::lock_guard guard(lock_of(this));
    Kept* kept = kept_.load();
    if (!kept) kept_.store(kept = new Kept);
    if (std::any_of(kept->entries.begin(), kept->entries.end(), [&](const auto& entry) { return entry.key == key; }))
      return;
    total += made->bytes();
    kept->bytes += made->bytes();
    kept->entries.push_back({key, std::move(made)});
  }
  if (!seen()) drop_kept();  // the writer may have looked before there was anything to drop
}

void Storage::drop_kept() {
  const std::unique_ptr<Kept> dropped = [&] {
    const std::lock_guard guard(lock_of(this));
    return std::unique_ptr<Kept>(kept_.exchange(nullptr));
  }();
  if (dropped) total -= dropped->bytes;
}

}  // namespace rush
