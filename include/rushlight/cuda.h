// CUDA devices, real or simulated: which one is current, streams, events, memory.
//
//   if (rush::cuda::is_available()) {
//     Tensor x = rush::ones({3}, kFloat32, "cuda:0");
//     rush::cuda::Stream side(0);
//     {
//       rush::cuda::StreamGuard guard(side);                // work of this thread goes to the side stream
//       side.wait(rush::cuda::default_stream(0));           // x was made on the default one
//       x += 1;
//     }
//     rush::cuda::default_stream(0).wait(side);
//   }
//
// A process that uses no device pays nothing: nothing is opened, reserved or started before the first use of one.
#pragma once
#include <array>
#include <memory>

#include "rushlight/tensor.h"

namespace rush::cuda {

/// Number of devices: of the simulator if RUSHLIGHT_SIM_GPUS is set, else of the driver. Starts nothing.
int device_count();
inline bool is_available() { return device_count() > 0; }

/// The device that "cuda" stands for on this thread; 0 at first.
int current_device();
/// Throws Error unless 0 <= device < device_count().
void set_device(int device);
/// `device` with its index, the current device's if it has none. Throws Error if there is no such device.
Device indexed(Device device);

/// Makes a device current for a scope. A negative index changes nothing.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int before_;
};

class Event;

/// A queue of work on a device, in order. Streams of a device come from a pool and live as long as the process; a
/// Stream is a small value that names one.
class Stream {
 public:
  /// The next stream of the pool (there are 32 for each priority, handed out in turn). Lower numbers are more urgent:
  /// 0 and below. A negative device stands for the current one.
  explicit Stream(int device = -1, int priority = 0);

  int device() const { return device_; }
  int priority() const;
  /// 0 for the default stream; unique on the device.
  int id() const { return id_; }
  bool operator==(const Stream&) const = default;

  /// Whether all work put on it is done.
  bool query() const;
  /// Waits until it is. Throws Error if the device reports one.
  void synchronize() const;
  /// Work put on this stream from now on waits for the event, or for all work on the other stream so far.
  void wait(const Event& event) const;
  void wait(const Stream& other) const;
  /// The driver's CUstream.
  void* handle() const;

 private:
  friend Stream default_stream(int), stream_from_id(int, int);
  Stream(int device, int id, std::nullptr_t) : device_(int16_t(device)), id_(int16_t(id)) {}
  int16_t device_, id_;
};

Stream default_stream(int device = -1);
Stream current_stream(int device = -1);
/// The stream with Stream::id() == id. Throws Error if there is none.
Stream stream_from_id(int device, int id);
/// Makes it its device's current stream on this thread. Does not change the current device.
void set_current_stream(const Stream& stream);

/// Makes a stream and its device current for a scope.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;

 private:
  int device_before_;
  Stream stream_before_;
};

/// A mark in a stream that others can wait for. Copies share it.
class Event {
 public:
  /// `timing`: elapsed() may be asked. `blocking`: synchronize() sleeps instead of spinning.
  explicit Event(bool timing = false, bool blocking = false);
  /// Marks the place the stream has come to. The event then belongs to that stream's device.
  void record(const Stream& stream = current_stream()) const;
  /// Whether everything before the mark is done; true if it was never recorded.
  bool query() const;
  void synchronize() const;
  /// Milliseconds from this event to `end`, both done and made with timing. Throws Error if they are not.
  double elapsed(const Event& end) const;
  /// The device it was recorded on, -1 before.
  int device() const;
  /// The driver's CUevent, null before it is recorded.
  void* handle() const;

 private:
  friend class Stream;
  struct State;
  std::shared_ptr<State> state_;
};

/// Waits for all work on the device, the current one if negative. Throws Error if the device reports one.
void synchronize(int device = -1);

/// Work that is recorded once and then done again and again with one call. What is put on the current stream between
/// capture_begin() and capture_end() is not done, but by each replay(), with the same memory; what is allocated
/// meanwhile is the graph's own until it dies. Random numbers are new at each replay. Waiting meanwhile is an error.
class Graph {
 public:
  Graph();
  /// On the current stream, which must not be the default one.
  void capture_begin();
  void capture_end();
  /// On the current stream of the device it was captured on.
  void replay() const;
  /// Forgets what was captured.
  void reset();

 private:
  struct State;
  std::shared_ptr<State> state_;
};
bool is_capturing(const Stream& stream = current_stream());

// ---- memory: a negative device stands for the current one ----

/// What the caching allocator of a device has given out and holds, as torch.cuda.memory_stats names it.
struct MemoryStats {
  enum Kind {
    allocation,      // blocks given out
    segment,         // pieces of memory from the device
    active,          // blocks given out, or freed while other streams may still use them
    inactive_split,  // free blocks that are part of a segment
    allocated_bytes,
    reserved_bytes,  // of the segments
    active_bytes,
    inactive_split_bytes,
    requested_bytes,  // before rounding
    kinds
  };
  static constexpr Kind bytes_of(Kind k) { return Kind(k + allocated_bytes - allocation); }
  struct Value {
    int64_t current = 0, peak = 0, allocated = 0, freed = 0;  // the last two only grow
  };
  std::array<std::array<Value, 3>, kinds> values;  // of all, of the pool for blocks up to 1 MiB, of the other
  int64_t alloc_retries = 0, ooms = 0, device_allocs = 0, device_frees = 0;
};
MemoryStats memory_stats(int device = -1);
void reset_peak_memory_stats(int device = -1);
void reset_accumulated_memory_stats(int device = -1);
/// Free and total bytes of the device.
std::pair<size_t, size_t> memory_info(int device = -1);
/// Bounds what this process takes to a part of the device's memory.
void set_memory_fraction(double fraction, int device = -1);
/// Gives memory that is cached and not in use back to the devices.
void empty_cache();
/// Work on the stream uses the tensor's memory: it is not given out again before what is on the stream by the time it
/// is freed is done.
void record_stream(const Tensor& t, const Stream& stream);

}  // namespace rush::cuda
