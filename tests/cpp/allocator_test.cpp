// The caching CPU allocator: alignment, reuse, exact counts, several threads, ends of threads and forks, running out.
#include "rushlight/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "rushlight/error.h"

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

struct Block {
  unsigned char* data;
  size_t bytes;
};

// Allocates and frees at random; each block is filled with its own value and checked before it goes.
void churn(unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  const auto drop = [&](size_t i) {
    const Block block = blocks[i];
    const auto value = static_cast<unsigned char>(reinterpret_cast<uintptr_t>(block.data) >> 6);
    for (size_t k = 0; k < block.bytes; k += std::max<size_t>(block.bytes / 7, 1)) ASSERT_EQ(block.data[k], value);
    rush::cpu_free(block.data, block.bytes);
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int step = 0; step < steps; ++step) {
    const size_t bytes = random() % (size_t{1} << (1 + random() % 21));
    auto* data = static_cast<unsigned char*>(rush::cpu_allocate(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, static_cast<int>(reinterpret_cast<uintptr_t>(data) >> 6), bytes);
    blocks.push_back({data, bytes});
    while (blocks.size() > 100 || (!blocks.empty() && random() % 3 == 0)) drop(random() % blocks.size());
  }
  while (!blocks.empty()) drop(blocks.size() - 1);
}

TEST(Allocator, BlocksAreApartAndAligned) {
  const int64_t before = rush::cpu_memory_allocated();
  churn(1, 5000);
  EXPECT_EQ(rush::cpu_memory_allocated(), before);
}

TEST(Allocator, ThreadsAndTheirEnds) {
  const int64_t before = rush::cpu_memory_allocated();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back(churn, 10 * round + t, 1000);
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(rush::cpu_memory_allocated(), before);
}

TEST(Allocator, FreedByAnotherThread) {
  for (const size_t bytes : {40, 1000, 5000, 100000}) {
    std::vector<void*> blocks(500);
    for (void*& block : blocks) block = rush::cpu_allocate(bytes);
    std::thread([&] {
      for (void* block : blocks) rush::cpu_free(block, bytes);
    }).join();
  }
}

TEST(Allocator, FreedWhileThreadEnds) {
  struct Late {
    void* data = nullptr;
    ~Late() { rush::cpu_free(data, 100); }
  };
  std::thread([] {
    static thread_local Late late;
    late.data = rush::cpu_allocate(100);
  }).join();
}

TEST(Allocator, CountsBytesExactly) {
  const int64_t before = rush::cpu_memory_allocated();
  rush::cpu_reset_peak();
  void* a = rush::cpu_allocate(12);
  void* b = rush::cpu_allocate(1000000);
  EXPECT_EQ(rush::cpu_memory_allocated() - before, 1000012);
  rush::cpu_free(b, 1000000);
  EXPECT_EQ(rush::cpu_memory_allocated() - before, 12);
  EXPECT_EQ(rush::cpu_max_memory_allocated() - before, 1000012);
  rush::cpu_reset_peak();
  EXPECT_EQ(rush::cpu_max_memory_allocated() - before, 12);
  rush::cpu_free(a, 12);
  rush::cpu_free(nullptr, 5);
  EXPECT_NE(a = rush::cpu_allocate(0), nullptr);
  rush::cpu_free(a, 0);
}

TEST(Allocator, ReusesPages) {
  if (!caching) GTEST_SKIP() << "no cache under AddressSanitizer";
  for (const size_t bytes : {64, 3000, 200000, 40000000}) {
    void* first = rush::cpu_allocate(bytes);
    rush::cpu_free(first, bytes);
    void* second = rush::cpu_allocate(bytes);
    EXPECT_EQ(first, second) << bytes;
    rush::cpu_free(second, bytes);
  }
}

TEST(Allocator, CacheIsBounded) {
  if (!caching) GTEST_SKIP() << "no cache under AddressSanitizer";
  // Two blocks live at a time, in ever new sizes: what is kept stays near that, not near the sum of all sizes.
  for (size_t bytes = 1 << 20; bytes < 60 << 20; bytes += 3 << 19) {
    void* a = rush::cpu_allocate(bytes);
    void* b = rush::cpu_allocate(bytes / 2);
    rush::cpu_free(a, bytes);
    rush::cpu_free(b, bytes / 2);
  }
  EXPECT_LT(rush::cpu_memory_cached(), 300 << 20);
  rush::cpu_empty_cache();
  EXPECT_LT(rush::cpu_memory_cached(), 32 << 20);
}

TEST(Allocator, OutOfMemory) {
  const int64_t before = rush::cpu_memory_allocated();
  for (const size_t bytes : {size_t{1} << 50, SIZE_MAX - 100, SIZE_MAX / 2}) {
    try {
      rush::cpu_allocate(bytes);
      FAIL();
    } catch (const rush::OutOfMemoryError& error) {
      EXPECT_NE(std::string(error.what()).find("out of memory"), std::string::npos);
    }
  }
  EXPECT_EQ(rush::cpu_memory_allocated(), before);
}

TEST(Allocator, SurvivesFork) {
  if (!caching) GTEST_SKIP() << "AddressSanitizer's allocator may be locked in a child whose parent has other threads";
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (unsigned seed = 0; !stop; ++seed) churn(seed, 100);
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      churn(i, 200);
      _exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

}  // namespace
