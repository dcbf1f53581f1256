// A simulated machine with N GPUs. A device is a range of addresses with a capacity, a stream is a thread with a queue,
// and a kernel is its own source compiled for the host.
//
// Note [Two ranges] One stretch of address space holds, for each device, the addresses that tensors have, which nobody
// may touch, and at a fixed distance from them the memory itself. A launch moves every argument word that lies in the
// first part into the second; the distance is a multiple of 4 GiB, so that a short number at the start of a word stays
// what it is, whatever the padding behind it holds. So the host faults when it dereferences a device address, whoever
// computes it and however, while kernels need no translation of their own; a mapping that is opened while kernels run
// would miss what the host does meanwhile, and protection keys are not on every machine. The memory of what is not
// allocated is closed too, so a kernel that strays faults as well. The signal handler says what happened before the
// process ends.
#include "cuda/simulator.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda/graphs.h"
#include "cuda/races.h"
#include "rushlight/cuda_error.h"
#include "rushlight/parallel.h"

namespace rush::cuda {
namespace {

constexpr size_t kPage = 2 << 20;                // what devices allocate in
constexpr size_t kRoom = 4;                      // addresses for each byte of capacity, so that fragments don't matter
constexpr size_t kDistance = size_t{1} << 32;    // what the distance of the two ranges is a multiple of
constexpr size_t kStaged = 64 << 10;             // up to here a copy from pageable memory goes through a buffer
constexpr int64_t kThreadsWorthSharing = 16384;  // simulated threads that are worth another thread of the host
constexpr size_t kPinnedAlignment = 4096;

using Clock = std::chrono::steady_clock;

// What the worker of a stream does at the moment: for the report of a fault.
thread_local std::string_view running;

/// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Clock::time_point when;
  VectorClock clock;

  void set() {
    const std::lock_guard lock(mutex);
    done = true;
    when = Clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  bool query() {
    const std::lock_guard lock(mutex);
    return done;
  }
};

struct SimulatedEvent {
  std::mutex mutex;
  std::shared_ptr<Mark> mark;
  bool timing;

  std::shared_ptr<Mark> get() {
    const std::lock_guard lock(mutex);
    return mark;
  }
};

/// A queue and the thread that works it off, started with the first task. Never destroyed.
class SimulatedStream {
 public:
  using Tasks = std::vector<std::function<void()>>;

  explicit SimulatedStream(int agent) : agent(agent) {}
  const int agent;  // its number for the race checker

  void begin_capture() {
    const std::lock_guard lock(mutex_);
    captured_ = std::make_unique<Tasks>();
  }
  std::unique_ptr<Tasks> end_capture() {
    const std::lock_guard lock(mutex_);
    return std::move(captured_);
  }
  bool capturing() {
    const std::lock_guard lock(mutex_);
    return captured_ != nullptr;
  }
  /// Throws Error if the stream is being captured.
  void check_not_capturing() {
    const std::lock_guard lock(mutex_);
    check<AcceleratorError>(!captured_, "CUDA error: operation not permitted when stream is capturing");
  }
  void put(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (captured_) return captured_->push_back(std::move(task));
    tasks_.push_back(std::move(task));
    ++submitted_;
    if (!std::exchange(started_, true)) start();
    if (idle_) available_.notify_one();
  }
  bool query() {
    check_not_capturing();
    const std::lock_guard lock(mutex_);
    return finished_ == submitted_;
  }
  void synchronize() {
    check_not_capturing();
    std::unique_lock lock(mutex_);
    const uint64_t target = submitted_;
    ++waiters_;
    done_.wait(lock, [&] { return finished_ >= target; });
    --waiters_;
    check<AcceleratorError>(error_.empty(), "CUDA error: ", error_);
  }

 private:
  void start() {
    sigset_t all, before;  // signals for the process are its own threads' business
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { work(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      idle_ = true;
      available_.wait(lock, [&] { return !tasks_.empty(); });
      idle_ = false;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      std::string failed;
      try {
        task();
      } catch (const std::exception& e) {
        failed = e.what();
      }
      lock.lock();
      if (error_.empty()) error_ = std::move(failed);
      ++finished_;
      if (waiters_) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable available_, done_;
  std::deque<std::function<void()>> tasks_;
  std::unique_ptr<Tasks> captured_;  // what is put on it meanwhile
  std::string error_;                // of the first task that failed; stays
  uint64_t submitted_ = 0, finished_ = 0;
  int waiters_ = 0;
  bool started_ = false, idle_ = false;
};

struct SimulatedDevice {
  std::mutex mutex;
  std::map<char*, size_t> free_ranges, used_ranges;
  size_t used = 0;
  std::vector<std::unique_ptr<SimulatedStream>> streams;  // the first is the default stream
  Properties properties;
  Failure* failure;
};

class Simulator final : public Runtime, public Graphs {
 public:
  Simulator(int devices, size_t capacity) : capacity_(capacity), room_(kRoom * capacity), devices_(devices) {
    const size_t all = (room_ * devices_.size() + kDistance - 1) / kDistance * kDistance;
    void* memory = mmap(nullptr, 2 * all + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != MAP_FAILED, "the simulated GPUs find no ", 2 * all, " bytes of address space");
    begin_ = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage);
    end_ = begin_ + all;
    for (int d = 0; d < devices; ++d) {
      SimulatedDevice& device = devices_[d];
      device.free_ranges[begin_ + d * room_] = room_;
      device.streams.push_back(std::make_unique<SimulatedStream>(next_agent_++));
      device.failure = static_cast<Failure*>(Simulator::allocate_pinned(sizeof(Failure)));
      *device.failure = {};
      Properties& p = device.properties;
      p.name = "Rushlight simulated GPU";
      p.uuid = text("00000000-0000-0000-0000-0000000000", d < 10 ? "0" : "", d);
      p.major = 8;
      p.total_memory = int64_t(capacity);
      p.multiprocessors = num_threads();
      p.max_threads_per_multiprocessor = 2048;
      p.registers_per_multiprocessor = 65536;
      p.l2_cache = 4 << 20;
      p.shared_memory_per_block_optin = p.shared_memory_per_multiprocessor = 164 << 10;
    }
    install_handler();
  }

  bool simulated() const override { return true; }
  int device_count() const override { return int(devices_.size()); }
  const Properties& properties(int device) override { return devices_[device].properties; }
  void make_current(int) override {}
  bool can_access_peer(int device, int peer) override { return device != peer; }

  // ---- memory ----
  void* allocate(int index, size_t bytes) override {
    SimulatedDevice& device = devices_[index];
    bytes = (bytes + kPage - 1) / kPage * kPage;
    const std::lock_guard lock(device.mutex);
    if (bytes > capacity_ - device.used) return nullptr;
    for (auto range = device.free_ranges.begin(); range != device.free_ranges.end(); ++range) {
      const auto [address, size] = *range;
      if (size < bytes) continue;
      if (mprotect(inside(address), bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
      device.free_ranges.erase(range);
      if (size > bytes) device.free_ranges[address + bytes] = size - bytes;
      device.used_ranges[address] = bytes;
      device.used += bytes;
      return address;
    }
    return nullptr;
  }

  void free(int index, void* data) override {
    synchronize(index);
    SimulatedDevice& device = devices_[index];
    const std::lock_guard lock(device.mutex);
    const auto used = device.used_ranges.find(static_cast<char*>(data));
    check<AcceleratorError>(used != device.used_ranges.end(),
                            "CUDA error: invalid argument: free of what was not allocated");
    auto [address, size] = *used;
    device.used_ranges.erase(used);
    device.used -= size;
    // Fresh pages in their place: gives the memory back and closes it.
    mmap(inside(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    auto next = device.free_ranges.lower_bound(address);
    if (next != device.free_ranges.end() && address + size == next->first) {
      size += next->second;
      next = device.free_ranges.erase(next);
    }
    if (next != device.free_ranges.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == address) {
        previous->second += size;
        return;
      }
    }
    device.free_ranges[address] = size;
  }

  std::pair<size_t, size_t> memory_info(int index) override {
    SimulatedDevice& device = devices_[index];
    const std::lock_guard lock(device.mutex);
    return {capacity_ - device.used, capacity_};
  }

  void* allocate_pinned(size_t bytes) override {
    bytes = std::max<size_t>((bytes + kPinnedAlignment - 1) / kPinnedAlignment, 1) * kPinnedAlignment;
    void* data = std::aligned_alloc(kPinnedAlignment, bytes);
    check<OutOfMemoryError>(data, "CUDA error: out of memory: no ", bytes, " bytes of pinned memory");
    const std::lock_guard lock(pinned_mutex_);
    pinned_[static_cast<char*>(data)] = bytes;
    return data;
  }
  void free_pinned(void* data) override {
    {
      const std::lock_guard lock(pinned_mutex_);
      pinned_.erase(static_cast<char*>(data));
    }
    std::free(data);
  }
  bool is_pinned(const void* data) override {
    const auto* address = static_cast<const char*>(data);
    const std::lock_guard lock(pinned_mutex_);
    const auto after = pinned_.upper_bound(const_cast<char*>(address));
    if (after == pinned_.begin()) return false;
    const auto range = std::prev(after);
    return address < range->first + range->second;
  }

  // ---- work ----
  void copy(int device, StreamHandle handle, void* to, Where to_where, const void* from, Where from_where,
            size_t bytes) override {
    if (bytes == 0) return;
    check_place(to, to_where, bytes);
    check_place(from, from_where, bytes);
    SimulatedStream& stream = stream_of(device, handle);
    void* target = reach(to);
    const void* source = reach(from);
    // Pageable memory is done with when this returns: what the host does with it afterwards races with nothing.
    const bool from_pageable = from_where == Where::Host && !is_pinned(from);
    const bool to_pageable = to_where == Where::Host && !is_pinned(to);
    if (from_pageable || to_pageable) stream.check_not_capturing();
    const Access accesses[] = {{from, from_pageable ? 0 : bytes, false}, {to, to_pageable ? 0 : bytes, true}};
    if (watched(stream)) races_.access(stream.agent, current_operation(), accesses);
    if (from_pageable && bytes <= kStaged) {
      std::vector<char> staged(static_cast<const char*>(source), static_cast<const char*>(source) + bytes);
      stream.put([target, staged = std::move(staged)] { std::memcpy(target, staged.data(), staged.size()); });
    } else {
      stream.put([target, source, bytes] { std::memmove(target, source, bytes); });
      if (from_pageable || to_pageable) wait_for(stream);
    }
  }

  void set(int device, StreamHandle handle, void* data, int byte, size_t bytes) override {
    if (bytes == 0) return;
    check_place(data, Where::Device, bytes);
    const Access access{data, bytes, true};
    SimulatedStream& stream = stream_of(device, handle);
    if (watched(stream)) races_.access(stream.agent, current_operation(), {&access, 1});
    stream.put([target = reach(data), byte, bytes] { std::memset(target, byte, bytes); });
  }

  void launch(int device, StreamHandle handle, const Kernel& kernel, const Shape& shape,
              std::span<const Argument> arguments) override {
    constexpr size_t kAlignment = 16;
    const int64_t blocks = int64_t(shape.grid.x) * shape.grid.y * shape.grid.z;
    const int64_t threads = int64_t(shape.block.x) * shape.block.y * shape.block.z;
    check<AcceleratorError>(blocks > 0 && threads > 0 && threads <= 1024 && shape.grid.y < 65536 &&
                                shape.grid.z < 65536 &&
                                shape.shared <= devices_[device].properties.shared_memory_per_block_optin,
                            "CUDA error: invalid configuration argument: ", kernel.name, " with ", blocks,
                            " blocks of ", threads, " threads");
    size_t size = 0;
    for (const Argument& a : arguments) size = (size + kAlignment - 1) / kAlignment * kAlignment + a.size;
    struct Packed {
      std::vector<std::max_align_t> bytes;
      std::vector<void*> addresses;
    };
    auto packed = std::make_shared<Packed>();
    packed->bytes.resize((size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    auto* next = reinterpret_cast<char*>(packed->bytes.data());
    const auto* const failure = reinterpret_cast<const char*>(devices_[device].failure);
    bool checks_indices = false;
    for (const Argument& a : arguments) {
      packed->addresses.push_back(next);
      std::memcpy(next, a.data, a.size);
      for (size_t i = 0; i + sizeof(char*) <= a.size; i += sizeof(char*)) {
        char* word;
        std::memcpy(&word, next + i, sizeof word);
        checks_indices = checks_indices || word == failure;
        if (word < begin_ || word >= end_) continue;
        word = inside(word);
        std::memcpy(next + i, &word, sizeof word);
      }
      next += (a.size + kAlignment - 1) / kAlignment * kAlignment;
    }
    SimulatedStream& stream = stream_of(device, handle);
    if (watched(stream)) races_.operation(stream.agent);
    stream.put([packed = std::move(packed), &kernel, shape, blocks, threads] {
      parallel_for(0, blocks, std::max<int64_t>(kThreadsWorthSharing / threads, 1), [&](int64_t begin, int64_t end) {
        running = kernel.name;
        for (int64_t b = begin; b < end; ++b) {
          const int64_t plane = int64_t(shape.grid.x) * shape.grid.y;
          const Dim3 index{unsigned(b % shape.grid.x), unsigned(b % plane / shape.grid.x), unsigned(b / plane)};
          kernel.run_block(shape, index, packed->addresses.data());
        }
        running = {};
      });
    });
    if (checks_indices || blocking_) finish(stream);
  }

  void call(int device, StreamHandle handle, std::function<void()> function) override {
    SimulatedStream& stream = stream_of(device, handle);
    if (watched(stream)) races_.operation(stream.agent);
    stream.put([function = std::move(function), name = current_operation()] {
      running = name;
      function();
      running = {};
    });
    if (blocking_) finish(stream);
  }

  void* reach(const void* data) override {
    auto* address = static_cast<char*>(const_cast<void*>(data));
    return address >= begin_ && address < end_ ? inside(address) : address;
  }

  // ---- streams and events ----
  std::pair<int, int> priority_range() override { return {0, -3}; }
  StreamHandle create_stream(int index, int) override {
    SimulatedDevice& device = devices_[index];
    const std::lock_guard lock(device.mutex);
    device.streams.push_back(std::make_unique<SimulatedStream>(next_agent_++));
    return device.streams.back().get();
  }
  bool query(int device, StreamHandle handle) override {
    SimulatedStream& stream = stream_of(device, handle);
    if (!stream.query()) return false;
    races_.host_waits(stream.agent);
    return true;
  }
  void synchronize(int device, StreamHandle handle) override { wait_for(stream_of(device, handle)); }
  void synchronize(int index) override {
    SimulatedDevice& device = devices_[index];
    std::vector<SimulatedStream*> streams;
    {
      const std::lock_guard lock(device.mutex);
      for (const auto& stream : device.streams) streams.push_back(stream.get());
    }
    for (SimulatedStream* stream : streams) wait_for(*stream);
  }
  EventHandle create_event(int, bool timing, bool) override { return new SimulatedEvent{{}, nullptr, timing}; }
  void destroy_event(int, EventHandle event) override { delete static_cast<SimulatedEvent*>(event); }
  void record(int device, EventHandle handle, StreamHandle stream_handle) override {
    auto* event = static_cast<SimulatedEvent*>(handle);
    SimulatedStream& stream = stream_of(device, stream_handle);
    auto mark = std::make_shared<Mark>();
    mark->clock = races_.now(stream.agent);
    {
      const std::lock_guard lock(event->mutex);
      event->mark = mark;
    }
    stream.put([mark] { mark->set(); });
  }
  void wait(int device, StreamHandle handle, EventHandle event) override {
    const auto mark = static_cast<SimulatedEvent*>(event)->get();
    if (!mark) return;
    SimulatedStream& stream = stream_of(device, handle);
    races_.waits(stream.agent, mark->clock);
    stream.put([mark] { mark->wait(); });
  }
  bool query_event(EventHandle event) override {
    const auto mark = static_cast<SimulatedEvent*>(event)->get();
    if (!mark) return true;
    if (!mark->query()) return false;
    races_.host_waits(mark->clock);
    return true;
  }
  void synchronize_event(EventHandle event) override {
    const auto mark = static_cast<SimulatedEvent*>(event)->get();
    if (!mark) return;
    mark->wait();
    races_.host_waits(mark->clock);
  }
  double elapsed_milliseconds(EventHandle start, EventHandle end) override {
    const auto *a = static_cast<SimulatedEvent*>(start), *b = static_cast<SimulatedEvent*>(end);
    check<ValueError>(a->timing && b->timing, "Both events must be created with argument 'enable_timing=True'.");
    check<ValueError>(a->mark && b->mark, "Both events must be recorded before calculating elapsed time.");
    check<AcceleratorError>(a->mark->query() && b->mark->query(), "CUDA error: device not ready");
    return std::chrono::duration<double, std::milli>(b->mark->when - a->mark->when).count();
  }

  // ---- graphs ----
  void begin_capture(int device, StreamHandle handle) override { stream_of(device, handle).begin_capture(); }
  GraphHandle end_capture(int device, StreamHandle handle) override {
    return new std::shared_ptr<SimulatedStream::Tasks>(stream_of(device, handle).end_capture());
  }
  void launch_graph(int device, StreamHandle handle, GraphHandle graph) override {
    SimulatedStream& stream = stream_of(device, handle);
    stream.put([tasks = *static_cast<std::shared_ptr<SimulatedStream::Tasks>*>(graph)] {
      for (const auto& task : *tasks) task();
    });
  }
  void destroy_graph(int, GraphHandle graph) override {
    delete static_cast<std::shared_ptr<SimulatedStream::Tasks>*>(graph);
  }

  Failure* failure(int device) override { return devices_[device].failure; }
  bool checks_races() const override { return races_.enabled(); }

  // ---- faults ----
  /// Async-signal-safe.
  void report_fault(const char* address) const {
    const char* const inside_end = end_ + (end_ - begin_);
    if (address < begin_ || address >= inside_end) return;
    const bool host = address < end_;
    const size_t offset = size_t(host ? address - begin_ : address - end_);
    char line[400];
    const int device = int(offset / room_);
    const int length =
        host ? snprintf(line, sizeof line,
                        "rushlight: host access to device memory: address %p belongs to the simulated device cuda:%d. "
                        "Copy the tensor to the CPU before reading it there.\n",
                        static_cast<const void*>(address), device)
             : snprintf(line, sizeof line,
                        "rushlight: CUDA error: an illegal memory access was encountered: %.*s on the simulated device "
                        "cuda:%d touches address %p, which is not allocated.\n",
                        running.empty() ? 8 : int(running.size()), running.empty() ? "a kernel" : running.data(),
                        device, static_cast<const void*>(address - (end_ - begin_)));
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, size_t(length));
  }

 private:
  static void install_handler();

  char* inside(char* address) const { return address + (end_ - begin_); }
  SimulatedStream& stream_of(int device, StreamHandle handle) {
    return handle ? *static_cast<SimulatedStream*>(handle) : *devices_[device].streams.front();
  }
  /// What a graph does is done at another time and on another stream than it is recorded.
  bool watched(SimulatedStream& stream) const { return races_.enabled() && !stream.capturing(); }
  /// Waits where the program does not: the race checker is not told, and what is recorded can't be waited for.
  static void finish(SimulatedStream& stream) {
    if (!stream.capturing()) stream.synchronize();
  }
  void wait_for(SimulatedStream& stream) {
    stream.synchronize();
    races_.host_waits(stream.agent);
  }
  void check_place(const void* data, Where where, size_t bytes) {
    const auto* address = static_cast<const char*>(data);
    const bool on_device = address >= begin_ && address < end_;
    check<AcceleratorError>(on_device == (where == Where::Device), "CUDA error: invalid argument: ", data, " is ",
                            on_device ? "a device address" : "no device address");
    if (!on_device) return;
    SimulatedDevice& device = devices_[size_t(address - begin_) / room_];
    const std::lock_guard lock(device.mutex);
    auto range = device.used_ranges.upper_bound(const_cast<char*>(address));
    check<AcceleratorError>(range != device.used_ranges.begin(), "CUDA error: invalid argument: ", data,
                            " is not allocated");
    --range;
    check<AcceleratorError>(address + bytes <= range->first + range->second, "CUDA error: invalid argument: ", bytes,
                            " bytes at ", data, " are not allocated");
  }

  const size_t capacity_, room_;
  const bool blocking_ = [] {
    const char* setting = std::getenv("CUDA_LAUNCH_BLOCKING");
    return setting && std::string_view(setting) == "1";
  }();
  char *begin_, *end_;
  std::deque<SimulatedDevice> devices_;
  std::atomic<int> next_agent_{1};
  std::mutex pinned_mutex_;
  std::map<char*, size_t> pinned_;
  RaceChecker races_;
};

Simulator* the_simulator = nullptr;
struct sigaction previous_action;

void on_fault(int signal, siginfo_t* info, void* context) {
  the_simulator->report_fault(static_cast<const char*>(info->si_addr));
  if (previous_action.sa_flags & SA_SIGINFO) return previous_action.sa_sigaction(signal, info, context);
  // Comes again when this handler returns, and is then handled as if it had never been caught.
  sigaction(SIGSEGV, &previous_action, nullptr);
}

void Simulator::install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_action);
}

/// A number with an optional K, M or G.
size_t parse_bytes(const char* setting) {
  char* end;
  const double number = std::strtod(setting, &end);
  double scale = 1;
  switch (*end) {
    case 'G':
    case 'g':
      scale = 1 << 30;
      break;
    case 'M':
    case 'm':
      scale = 1 << 20;
      break;
    case 'K':
    case 'k':
      scale = 1 << 10;
      break;
  }
  check<ValueError>(end != setting && number > 0,
                    "RUSHLIGHT_SIM_GPU_MEMORY must be a size such as 2147483648 or 2G, "
                    "got '",
                    setting, "'");
  return (size_t(number * scale) + kPage - 1) / kPage * kPage;
}

}  // namespace

int simulated_devices() {
  const char* setting = std::getenv("RUSHLIGHT_SIM_GPUS");
  if (!setting || !*setting) return 0;
  char* end;
  const long n = std::strtol(setting, &end, 10);
  check<ValueError>(*end == 0 && n >= 0 && n <= kMaxDevices, "RUSHLIGHT_SIM_GPUS must be a number from 0 to ",
                    kMaxDevices, ", got '", setting, "'");
  return int(n);
}

Runtime* start_simulator() {
  const char* memory = std::getenv("RUSHLIGHT_SIM_GPU_MEMORY");
  return the_simulator = new Simulator(simulated_devices(), memory && *memory ? parse_bytes(memory) : size_t(2) << 30);
}

}  // namespace rush::cuda
