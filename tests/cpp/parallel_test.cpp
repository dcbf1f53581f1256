// The thread pool: coverage, bits that do not depend on the number of threads, nesting, exceptions, several callers,
// fork.
#include "rushlight/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "rushlight/error.h"

namespace {

using rush::parallel_for;

struct WithThreads {
  explicit WithThreads(int n) : before(rush::num_threads()) { rush::set_num_threads(n); }
  ~WithThreads() { rush::set_num_threads(before); }
  int before;
};

float chunked_sum(const std::vector<float>& x, int64_t grain) {
  const auto n = static_cast<int64_t>(x.size());
  const int64_t chunk = rush::chunk_size(n, grain);
  std::vector<float> partial((n - 1) / chunk + 1);
  parallel_for(0, n, grain, [&](int64_t lo, int64_t hi) {
    partial[lo / chunk] = std::accumulate(x.begin() + lo, x.begin() + hi, 0.0f);
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0f);
}

TEST(Parallel, VisitsEveryElementOnce) {
  for (const int threads : {1, 2, 5}) {
    const WithThreads with(threads);
    for (const int64_t n : {0, 1, 2, 63, 1000, 100003}) {
      for (const int64_t grain : {1, 7, 512, 1000000}) {
        std::vector<std::atomic<int>> hits(n);
        parallel_for(-5, n - 5, grain, [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) hits[i + 5]++;
        });
        for (const auto& hit : hits) ASSERT_EQ(hit, 1);
      }
    }
  }
}

TEST(Parallel, BitsDoNotDependOnThreads) {
  std::vector<float> x(300000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  std::set<float> results;
  for (const int threads : {1, 2, 3, 7}) {
    const WithThreads with(threads);
    for (int repeat = 0; repeat < 20; ++repeat) results.insert(chunked_sum(x, 1000));
  }
  EXPECT_EQ(results.size(), 1u);
}

TEST(Parallel, NestedRunsInline) {
  const WithThreads with(3);
  std::atomic<int> inner{0};
  EXPECT_FALSE(rush::in_parallel());
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(rush::in_parallel());
    const auto self = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t lo, int64_t hi) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner += static_cast<int>(hi - lo);
    });
  });
  EXPECT_FALSE(rush::in_parallel());
  EXPECT_EQ(inner, 800);
}

TEST(Parallel, UsesSeveralThreads) {
  const WithThreads with(2);
  std::atomic<int> arrived{0};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {  // each waits for the other
    ++arrived;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(arrived, 2);
  });
}

TEST(Parallel, RethrowsAndGoesOn) {
  for (const int threads : {1, 4}) {
    const WithThreads with(threads);
    for (int repeat = 0; repeat < 50; ++repeat) {
      EXPECT_THROW(parallel_for(0, 1000, 1,
                                [&](int64_t lo, int64_t) {
                                  if (lo % 2) throw std::invalid_argument("odd");
                                }),
                   std::invalid_argument);
      EXPECT_FALSE(rush::in_parallel());
      std::atomic<int64_t> sum{0};
      parallel_for(0, 1000, 10, [&](int64_t lo, int64_t hi) { sum += hi - lo; });
      EXPECT_EQ(sum, 1000);
    }
  }
}

TEST(Parallel, SeveralCallers) {
  const WithThreads with(3);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([] {
      for (int repeat = 0; repeat < 300; ++repeat) {
        std::atomic<int64_t> sum{0};
        parallel_for(0, 5000, 100, [&](int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) sum += i;
        });
        ASSERT_EQ(sum, 12497500);
      }
    });
  for (auto& caller : callers) caller.join();
}

TEST(Parallel, SurvivesFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a forked child";
#endif
  const WithThreads with(3);
  const auto sum = [] {
    std::atomic<int64_t> total{0};
    parallel_for(0, 100000, 10, [&](int64_t lo, int64_t hi) { total += hi - lo; });
    return total.load();
  };
  ASSERT_EQ(sum(), 100000);
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    if (pid == 0) _exit(sum() == 100000 && sum() == 100000 ? 0 : 1);
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(sum(), 100000);
  }
}

TEST(Parallel, RejectsNoThreads) { EXPECT_THROW(rush::set_num_threads(0), rush::Error); }

TEST(Parallel, ReadsCgroupQuota) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("rushlight_cgroup_" + std::to_string(getpid()));
  const auto put = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  EXPECT_EQ(rush::detail::cgroup_cores("0::/a/b\n", root), 0);
  put("a/b/cpu.max", "max 100000");
  EXPECT_EQ(rush::detail::cgroup_cores("0::/a/b\n", root), 0);
  put("a/cpu.max", "250000 100000");
  EXPECT_EQ(rush::detail::cgroup_cores("0::/a/b\n", root), 3);
  put("cpu.max", "50000 100000");
  EXPECT_EQ(rush::detail::cgroup_cores("0::/elsewhere\n", root), 1);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(rush::detail::cgroup_cores("5:cpu,cpuacct:/job/step\n1:name=systemd:/x\n", root), 2);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(rush::detail::cgroup_cores("5:cpu,cpuacct:/job\n", root), 0);
  fs::remove_all(root);
}

}  // namespace
