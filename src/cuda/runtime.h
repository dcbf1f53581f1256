// The machine with GPUs, behind one interface: the driver's (driver.cpp) and a simulated one (simulator.cpp). Nothing
// here knows tensors. The allocator (allocator.h), current devices and streams (rushlight/cuda.h) and kernels build on
// it.
//
//   launch(fill_kernel, device, {blocks, threads}, pointer, n, value);   // on the device's current stream
//
// Note [Device addresses] A device tensor holds a device address. The host may pass it on, do arithmetic with it and
// compare it, but must not dereference it: on the simulator too that ends the process with a report. A kernel gets
// device addresses in its arguments, by value, alone or anywhere in a struct at a multiple of 8 bytes, and sees there
// what it may dereference. Addresses that were written into device memory do not work on the simulator: what needs
// many of them takes them by value, up to kMaxArgumentBytes in a launch. Pinned host memory has one address for both.
//
// Note [Device asserts] A kernel that checks indices takes an IndexCheck. The first of its threads to find one out of
// range reports it, and all leave such elements out. The next launch or synchronisation throws what was reported, once,
// naming operator, index, size and dimension. Nothing is broken by then, so the device goes on. The simulator waits for
// such kernels, so that what throws is the call that is wrong; CUDA_LAUNCH_BLOCKING=1 makes either runtime wait for
// all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/cuda/failure.cuh"
#include "rushlight/error.h"

namespace rush::cuda {

inline constexpr size_t kMaxArgumentBytes = 4096;
inline constexpr int kMaxDevices = 64;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// The shape of a launch. `shared` are bytes of dynamic shared memory.
struct Shape {
  Dim3 grid, block;
  size_t shared = 0;
};

/// A kernel, named once. The driver compiles `name`, a C++ name expression such as "rush::cuda::fill<float>", from
/// `file` in src/kernels/cuda; the simulator calls `run_block`, the same source compiled for the host.
struct Kernel {
  const char* file;
  const char* name;
  /// Runs all threads of block `index` of a launch. `arguments` are the addresses of the kernel's arguments.
  void (*run_block)(const Shape& shape, Dim3 index, void* const* arguments);
};

/// One argument of a launch, as bytes.
struct Argument {
  const void* data;
  size_t size;
};

struct Properties {
  std::string name, uuid;
  int major = 0, minor = 0;  // compute capability
  int64_t total_memory = 0, l2_cache = 0;
  int multiprocessors = 0, warp_size = 32, max_threads_per_block = 1024, max_threads_per_multiprocessor = 0,
      registers_per_multiprocessor = 0;
  size_t shared_memory_per_block = 48 << 10, shared_memory_per_block_optin = 0, shared_memory_per_multiprocessor = 0;
  bool integrated = false, multi_gpu_board = false;
};

// Opaque: the driver's CUstream and CUevent, or the simulator's objects. Null is the default stream of the device.
using StreamHandle = void*;
using EventHandle = void*;

/// Memory that an operation reads or writes, for the race checker.
struct Access {
  const void* data;
  size_t bytes;
  bool write;
};

/// Every function throws Error if the device reports one. Functions that take a device index expect a valid one.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual bool simulated() const = 0;
  virtual int device_count() const = 0;
  virtual const Properties& properties(int device) = 0;
  /// Makes the device's context the calling thread's, for libraries that use the current one.
  virtual void make_current(int device) = 0;
  virtual bool can_access_peer(int device, int peer) = 0;

  // ---- memory, uncached ----
  /// Null if there is not enough.
  virtual void* allocate(int device, size_t bytes) = 0;
  virtual void free(int device, void* data) = 0;
  /// Free and total bytes.
  virtual std::pair<size_t, size_t> memory_info(int device) = 0;
  /// Host memory that copies reach asynchronously and kernels directly.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(void* data) = 0;
  virtual bool is_pinned(const void* data) = 0;

  // ---- work on a stream of `device`; returns before it is done ----
  enum class Where : uint8_t { Host, Device };
  /// Copies between any two places, two devices too. Where host memory is not pinned, returns when it is done with it.
  virtual void copy(int device, StreamHandle stream, void* to, Where to_where, const void* from, Where from_where,
                    size_t bytes) = 0;
  virtual void set(int device, StreamHandle stream, void* data, int byte, size_t bytes) = 0;
  virtual void launch(int device, StreamHandle stream, const Kernel& kernel, const Shape& shape,
                      std::span<const Argument> arguments) = 0;
  /// Calls a host function in the stream's order. It must not call the runtime.
  virtual void call(int device, StreamHandle stream, std::function<void()> function) = 0;
  /// On the simulator, the address at which a function called by call() reaches device memory; else `data` itself.
  virtual void* reach(const void* data) = 0;

  // ---- streams and events ----
  /// Lower numbers are more urgent; the range is {least, greatest} urgent.
  virtual std::pair<int, int> priority_range() = 0;
  virtual StreamHandle create_stream(int device, int priority) = 0;
  virtual bool query(int device, StreamHandle stream) = 0;
  virtual void synchronize(int device, StreamHandle stream) = 0;
  virtual void synchronize(int device) = 0;
  virtual EventHandle create_event(int device, bool timing, bool blocking) = 0;
  virtual void destroy_event(int device, EventHandle event) = 0;
  virtual void record(int device, EventHandle event, StreamHandle stream) = 0;
  /// The stream, of any device, goes on when the event is done. An event never recorded is done.
  virtual void wait(int device, StreamHandle stream, EventHandle event) = 0;
  virtual bool query_event(EventHandle event) = 0;
  virtual void synchronize_event(EventHandle event) = 0;
  virtual double elapsed_milliseconds(EventHandle start, EventHandle end) = 0;

  // ---- errors ----
  /// Where kernels on the device report failures.
  virtual Failure* failure(int device) = 0;
  /// Whether operations should announce what memory they touch.
  virtual bool checks_races() const { return false; }
};

/// The runtime of this process, chosen and started at first use: the simulator if RUSHLIGHT_SIM_GPUS is positive, else
/// the driver if it has devices. Throws Error saying what is missing if there is neither, or in a forked child of a
/// process that had one.
Runtime& runtime();
/// Whether this process has a running runtime: runtime() was called and the process has not forked since.
bool started();

namespace detail {
void launch(const Kernel& kernel, int device, const Shape& shape, std::span<const Argument> arguments);
}  // namespace detail

/// Launches the kernel on the current stream of `device`. The arguments' types must be exactly the kernel's
/// parameters'.
template <class... Parameters>
void launch(const Kernel& kernel, int device, const Shape& shape, const Parameters&... parameters) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  static_assert((sizeof(Parameters) + ... + 0) <= kMaxArgumentBytes);
  const Argument arguments[] = {{&parameters, sizeof(Parameters)}..., {nullptr, 0}};
  detail::launch(kernel, device, shape, {arguments, sizeof...(Parameters)});
}

/// Waits for what is on the current stream of `device`, and copies from its memory to the host's.
void read(int device, const void* from, void* to, size_t bytes);

/// Names what the calling thread launches and allocates until end_operation, in errors and for the race checker. They
/// nest; the front door calls them for operators. `name` itself must stay where it is: static.
void begin_operation(const std::string_view& name);
void end_operation();
/// The memory that the operation's launches read and write.
void set_accesses(std::span<const Access> accesses);
const std::string_view& current_operation();
std::span<const Access> current_accesses();
/// What a kernel with index checks is given: reports failures as those of current_operation().
IndexCheck index_check(int device);
/// Throws DeviceAssertError if a kernel on the device has reported a failure since the last call. Called where the host
/// has synchronised with it.
void check_failure(int device);

}  // namespace rush::cuda
