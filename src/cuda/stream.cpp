// Current devices and streams of threads, streams' pools, events.
#include <array>
#include <mutex>

#include "cuda/runtime.h"
#include "rushlight/cuda.h"
#include "rushlight/cuda_error.h"

namespace rush::cuda {
namespace {

constexpr int kStreamsInPool = 32, kPriorities = 4;  // priorities 0, -1, -2, -3

// Ids of streams: 0 is the default one, then come those of priority 0, of -1 and so on.
constexpr int kIds = 1 + kPriorities * kStreamsInPool;

struct Pool {
  std::mutex mutex;
  StreamHandle handles[kIds] = {};  // null until first used
  int next[kPriorities] = {};
};

Pool& pool(int device) {
  static auto* const pools = new std::array<Pool, kMaxDevices>;
  return (*pools)[size_t(device)];
}

/// Events would draw other streams into the graph, whose work and memory nobody has recorded.
void check_not_capturing(const Stream& stream) {
  check(!is_capturing(stream), "a graph is captured on one stream: no event can be recorded or waited for meanwhile");
}

constexpr int priority_of(int id) { return id == 0 ? 0 : -(id - 1) / kStreamsInPool; }

thread_local int8_t device_now = 0;
thread_local std::array<int16_t, kMaxDevices> streams_now = {};  // ids

int checked(int device) {
  if (device < 0) return device_now;
  const int count = device_count();
  if (count == 0) runtime();  // says what is missing
  check<AcceleratorError>(device < count, "CUDA error: invalid device ordinal ", device, ": there ",
                          count == 1 ? "is 1" : "are ", count == 1 ? "" : std::to_string(count), " CUDA device",
                          count == 1 ? "" : "s");
  return device;
}

}  // namespace

int current_device() { return device_now; }
void set_device(int device) {
  check<AcceleratorError>(device >= 0, "CUDA error: invalid device ordinal ", device);
  device_now = int8_t(checked(device));
}
Device indexed(Device device) { return {DeviceType::CUDA, checked(device.index)}; }

DeviceGuard::DeviceGuard(int device) : before_(device_now) {
  if (device >= 0) set_device(device);
}
DeviceGuard::~DeviceGuard() { device_now = int8_t(before_); }

// ---- streams ----

Stream::Stream(int device, int priority) : device_(int16_t(checked(device))) {
  const int level = std::min(std::max(-priority, 0), kPriorities - 1);
  Pool& p = pool(device_);
  const std::lock_guard lock(p.mutex);
  id_ = int16_t(1 + level * kStreamsInPool + p.next[level]++ % kStreamsInPool);
}

int Stream::priority() const { return priority_of(id_); }

void* Stream::handle() const {
  if (id_ == 0) return nullptr;
  Pool& p = pool(device_);
  const std::lock_guard lock(p.mutex);
  StreamHandle& handle = p.handles[id_];
  if (!handle) {
    const auto [least, greatest] = runtime().priority_range();
    handle = runtime().create_stream(device_, std::max(std::min(priority(), least), greatest));
  }
  return handle;
}

bool Stream::query() const {
  const bool done = runtime().query(device_, handle());
  if (done) check_failure(device_);
  return done;
}
void Stream::synchronize() const {
  runtime().synchronize(device_, handle());
  check_failure(device_);
}
void Stream::wait(const Stream& other) const {
  if (*this == other) return;
  const Event event;
  event.record(other);
  wait(event);
}

Stream default_stream(int device) { return {checked(device), 0, nullptr}; }
Stream current_stream(int device) {
  const int d = device < 0 ? device_now : device;
  return stream_from_id(d, streams_now[size_t(d)]);
}
Stream stream_from_id(int device, int id) {
  check<ValueError>(device >= 0 && device < kMaxDevices && id >= 0 && id < kIds, "there is no stream ", id,
                    " on device ", device);
  return {device, id, nullptr};
}
void set_current_stream(const Stream& stream) { streams_now[size_t(stream.device())] = int16_t(stream.id()); }

StreamGuard::StreamGuard(const Stream& stream)
    : device_before_(device_now), stream_before_(current_stream(stream.device())) {
  device_now = int8_t(stream.device());
  set_current_stream(stream);
}
StreamGuard::~StreamGuard() {
  set_current_stream(stream_before_);
  device_now = int8_t(device_before_);
}

// ---- events ----

struct Event::State {
  bool timing, blocking;
  int device = -1;
  EventHandle handle = nullptr;

  ~State() {
    if (handle && started()) runtime().destroy_event(device, handle);
  }
};

Event::Event(bool timing, bool blocking) : state_(std::make_shared<State>(State{timing, blocking})) {}

void Event::record(const Stream& stream) const {
  check_not_capturing(stream);
  State& s = *state_;
  if (!s.handle) {
    s.handle = runtime().create_event(stream.device(), s.timing, s.blocking);
    s.device = stream.device();
  }
  check(s.device == stream.device(), "Event device ", s.device, " does not match recording stream's device ",
        stream.device(), ".");
  runtime().record(s.device, s.handle, stream.handle());
}
bool Event::query() const {
  if (!state_->handle) return true;
  const bool done = runtime().query_event(state_->handle);
  if (done) check_failure(state_->device);
  return done;
}
void Event::synchronize() const {
  if (!state_->handle) return;
  runtime().synchronize_event(state_->handle);
  check_failure(state_->device);
}
double Event::elapsed(const Event& end) const {
  check<ValueError>(state_->timing && end.state_->timing,
                    "Both events must be created with argument 'enable_timing=True'.");
  check<ValueError>(state_->handle && end.state_->handle,
                    "Both events must be recorded before calculating elapsed time.");
  return runtime().elapsed_milliseconds(state_->handle, end.state_->handle);
}
int Event::device() const { return state_->device; }
void* Event::handle() const { return state_->handle; }

void Stream::wait(const Event& event) const {
  check_not_capturing(*this);
  if (event.state_->handle) runtime().wait(device_, handle(), event.state_->handle);
}

void synchronize(int device) {
  const int d = checked(device);
  runtime().synchronize(d);
  check_failure(d);
}

}  // namespace rush::cuda
