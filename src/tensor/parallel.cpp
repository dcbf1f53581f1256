// The thread pool behind parallel_for. A job's chunks are dealt to the threads as contiguous runs, so that a thread
// meets the same memory again in the next kernel; a thread that runs out takes chunks from the end of another's run, so
// a worker that wakes late, or never, costs nothing. The pool is never destroyed: its threads sleep until the process
// is gone.
#include "rushlight/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "rushlight/error.h"

namespace rush {
namespace {

thread_local bool inside_job = false;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Spins until `done` holds, for as long as sleeping and waking would take. False if it gave up.
template <class Done>
bool spin_until(Done done) {
  using Clock = std::chrono::steady_clock;
  const auto limit = Clock::now() + std::chrono::microseconds(40);
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause_core();
    }
  } while (Clock::now() < limit);
  return false;
}

int allowed_cores() {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                          : static_cast<int>(std::thread::hardware_concurrency());
  std::stringstream text;
  text << std::ifstream("/proc/self/cgroup").rdbuf();
  if (const int quota = detail::cgroup_cores(text.str(), "/sys/fs/cgroup")) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

int default_threads() {
  if (const char* text = std::getenv("RUSHLIGHT_NUM_THREADS")) {
    const int n = std::atoi(text);
    if (n < 1) throw Error("RUSHLIGHT_NUM_THREADS must be a positive integer, got '" + std::string(text) + "'");
    return n;
  }
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {  // may be a list, one number for each level of nesting
    if (const int n = std::atoi(text); n >= 1) return n;
  }
  return allowed_cores();
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> setting{default_threads()};
  return setting;
}

class Pool {
 public:
  // Runs the job on this thread and the workers. False, with nothing done, if another thread has the pool or no worker
  // could be started.
  bool run(int64_t begin, int64_t end, int64_t chunk, detail::RangeBody body, void* context) {
    std::unique_lock lock(owner_, std::try_to_lock);
    if (!lock) return false;
    resize(thread_setting().load(std::memory_order_relaxed));
    if (workers_.empty()) return false;

    const auto chunks = static_cast<uint64_t>((end - begin - 1) / chunk + 1);
    job_ = {begin, end, chunk, body, context, std::min<uint64_t>(workers_.size() + 1, chunks)};
    for (uint64_t i = 0; i < job_.runs; ++i)
      runs_[i].span.store(chunks * i / job_.runs | (chunks * (i + 1) / job_.runs) << 32, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);

    gate_.store(open, std::memory_order_release);
    epoch_.fetch_add(1);  // sequentially consistent with sleepers_: either we see the sleeper, or it sees the new epoch
    if (sleepers_.load() > 0) futex_wake(epoch_, static_cast<int>(job_.runs) - 1);

    inside_job = true;
    work(0);
    inside_job = false;

    gate_.fetch_and(~open, std::memory_order_acq_rel);
    const auto left = [&] { return (gate_.load(std::memory_order_acquire) & count_mask) == 0; };
    if (!left() && !(spins_ && spin_until(left))) {
      // What is tested is what is slept on: the last worker may leave, and wake nobody, between two reads.
      for (uint32_t gate = gate_.fetch_or(awaited) | awaited; gate & count_mask; gate = gate_.load())
        futex_wait(gate_, gate);
    }
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  struct Job {
    int64_t begin, end, chunk;
    detail::RangeBody body;
    void* context;
    uint64_t runs;
  };
  // Chunks [low half, high half) not yet taken.
  struct alignas(64) Run {
    std::atomic<uint64_t> span{0};
  };
  // gate_: may a worker enter the job, does the owner sleep until the last has left, how many are inside.
  static constexpr uint32_t open = 1u << 31, awaited = 1u << 30, count_mask = awaited - 1;

  void resize(int threads) {
    if (threads == threads_) return;
    threads_ = threads;
    stop_.store(true);
    epoch_.fetch_add(1);
    futex_wake(epoch_, INT_MAX);
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stop_.store(false);
    spins_ = threads <= allowed_cores();
    runs_ = std::make_unique<Run[]>(threads);

    sigset_t all, before;  // signals are for the program's own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      const uint32_t seen = epoch_.load();
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i, seen] { serve(i, seen); });
    } catch (const std::system_error&) {
      // The system gives no more threads: go on with those there are; results do not depend on their number.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void serve(uint64_t index, uint32_t seen) {
    pthread_setname_np(pthread_self(), "rushlight");
    inside_job = true;
    for (;;) {
      const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      if (!(spins_ && spin_until(changed))) {
        sleepers_.fetch_add(1);
        while (epoch_.load() == seen) futex_wait(epoch_, seen);
        sleepers_.fetch_sub(1);
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (stop_.load()) return;
      uint32_t gate = gate_.load(std::memory_order_acquire);
      while ((gate & open) && !gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) {
      }
      if (!(gate & open)) continue;
      work(index % job_.runs);
      const uint32_t before = gate_.fetch_sub(1, std::memory_order_acq_rel);
      if ((before & awaited) && (before & count_mask) == 1) futex_wake(gate_, 1);
    }
  }

  void work(uint64_t own) {
    for (uint64_t i = 0; i < job_.runs; ++i) {
      std::atomic<uint64_t>& span = runs_[(own + i) % job_.runs].span;
      uint64_t s = span.load(std::memory_order_relaxed);
      while (static_cast<uint32_t>(s) < s >> 32) {
        const bool front = i == 0;
        if (!span.compare_exchange_weak(s, front ? s + 1 : s - (uint64_t{1} << 32), std::memory_order_relaxed))
          continue;
        run_chunk(front ? static_cast<uint32_t>(s) : (s >> 32) - 1);
        s = span.load(std::memory_order_relaxed);
      }
    }
  }

  void run_chunk(uint64_t index) {
    if (failed_.load(std::memory_order_relaxed)) return;
    const int64_t lo = job_.begin + static_cast<int64_t>(index) * job_.chunk;
    try {
      job_.body(job_.context, lo, std::min(lo + job_.chunk, job_.end));
    } catch (...) {
      const std::lock_guard lock(error_lock_);
      if (!failed_.load(std::memory_order_relaxed)) error_ = std::current_exception();
      failed_.store(true, std::memory_order_release);
    }
  }

  std::mutex owner_;
  int threads_ = 0;  // as asked for; fewer may have started
  std::vector<std::thread> workers_;
  std::unique_ptr<Run[]> runs_;
  bool spins_ = false;  // more threads than cores: whoever spins keeps another from working
  Job job_{};
  std::mutex error_lock_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false}, stop_{false};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> sleepers_{0};
  alignas(64) std::atomic<uint32_t> gate_{0};
};

std::atomic<Pool*>& the_pool() {
  // A forked child has none of the workers, and locks in whatever state they were: it starts with a new pool.
  static std::atomic<Pool*> pool{[] {
    pthread_atfork(nullptr, nullptr, [] { the_pool().store(new Pool); });
    return new Pool;
  }()};
  return pool;
}

}  // namespace

int num_threads() { return thread_setting().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  if (n < 1) throw Error("set_num_threads: expected a positive number of threads, got " + std::to_string(n));
  thread_setting().store(n, std::memory_order_relaxed);
}

bool in_parallel() { return inside_job; }

namespace detail {

int cgroup_cores(const std::string& proc_cgroup, const std::string& mount) {
  double cores = 0;
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0) cores = cores > 0 ? std::min(cores, quota / period) : quota / period;
  };
  // A limit may stand at any level above the process. Inside a container the path may not be visible; its root is.
  const auto each_level = [](std::string path, auto&& read) {
    for (;; path.resize(path.rfind('/'))) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      read(path);
      if (path.find('/') == std::string::npos) return;
    }
  };
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* root : {"", "/unified"})
        each_level(path, [&](const std::string& level) {
          std::ifstream file(mount + root + level + "/cpu.max");
          double quota = 0, period = 0;
          if (file >> quota >> period) limit(quota, period);  // "max 100000" has no number in front: no limit
        });
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& root : {"/" + controllers, std::string("/cpu")})
        each_level(path, [&](const std::string& level) {
          const std::string folder = mount + root + level;
          double quota = 0, period = 0;
          if (std::ifstream(folder + "/cpu.cfs_quota_us") >> quota &&
              std::ifstream(folder + "/cpu.cfs_period_us") >> period)
            limit(quota, period);
        });
    }
  }
  return static_cast<int>(std::ceil(cores - 1e-6));
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body, void* context) {
  if (begin >= end) return;
  const int64_t chunk = chunk_size(end - begin, grain);
  if (chunk < end - begin && !inside_job && num_threads() > 1 &&
      the_pool().load(std::memory_order_acquire)->run(begin, end, chunk, body, context))
    return;
  for (int64_t lo = begin; lo < end; lo += chunk) body(context, lo, std::min(lo + chunk, end));
}

}  // namespace detail
}  // namespace rush
