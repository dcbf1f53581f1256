// The driver's GPUs. libcuda is opened when it is first needed, and the few functions used of it are declared here: no
// CUDA header is needed to build, and the library needs none to load.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/graphs.h"
#include "cuda/nvrtc.h"
#include "rushlight/cuda_error.h"

namespace rush::cuda {
namespace {

// Of the driver's interface, with its values; handles are pointers, device addresses 64-bit integers.
using Status = int;
constexpr Status kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
using Address = unsigned long long;
constexpr unsigned kStreamNonBlocking = 1, kEventBlockingSync = 1, kEventDisableTiming = 2;
constexpr int kCaptureRelaxed = 2;  // other threads, and loading of kernels, go on as ever
constexpr unsigned kHostPortable = 1, kHostMapped = 2;
constexpr int kPointerMemoryType = 2, kMemoryTypeHost = 1, kMaxDynamicShared = 8;
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kSharedPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessors = 16,
  kIntegrated = 18,
  kL2Cache = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kMultiGpuBoard = 84,
  kSharedPerBlockOptin = 97,
};

struct Library {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  bool complete = handle != nullptr;

  template <class F>
  F* find(const char* name) {
    auto* found = handle ? reinterpret_cast<F*>(dlsym(handle, name)) : nullptr;
    complete = complete && found;
    return found;
  }

#define RUSH_DRIVER(name, symbol, ...) Status (*name)(__VA_ARGS__) = find<Status(__VA_ARGS__)>(symbol)
  RUSH_DRIVER(init, "cuInit", unsigned flags);
  RUSH_DRIVER(error_string, "cuGetErrorString", Status, const char**);
  RUSH_DRIVER(device_count, "cuDeviceGetCount", int*);
  RUSH_DRIVER(device_get, "cuDeviceGet", int*, int ordinal);
  RUSH_DRIVER(device_name, "cuDeviceGetName", char*, int size, int device);
  RUSH_DRIVER(device_uuid, "cuDeviceGetUuid", unsigned char*, int device);
  RUSH_DRIVER(device_memory, "cuDeviceTotalMem_v2", size_t*, int device);
  RUSH_DRIVER(device_attribute, "cuDeviceGetAttribute", int*, Attribute, int device);
  RUSH_DRIVER(can_access_peer, "cuDeviceCanAccessPeer", int*, int device, int peer);
  RUSH_DRIVER(retain_context, "cuDevicePrimaryCtxRetain", void** context, int device);
  RUSH_DRIVER(set_context, "cuCtxSetCurrent", void* context);
  RUSH_DRIVER(synchronize_context, "cuCtxSynchronize");
  RUSH_DRIVER(priority_range, "cuCtxGetStreamPriorityRange", int* least, int* greatest);
  RUSH_DRIVER(memory_allocate, "cuMemAlloc_v2", Address*, size_t);
  RUSH_DRIVER(memory_free, "cuMemFree_v2", Address);
  RUSH_DRIVER(memory_info, "cuMemGetInfo_v2", size_t* free, size_t* total);
  RUSH_DRIVER(host_allocate, "cuMemHostAlloc", void**, size_t, unsigned flags);
  RUSH_DRIVER(host_free, "cuMemFreeHost", void*);
  RUSH_DRIVER(pointer_attribute, "cuPointerGetAttribute", void* value, int attribute, Address);
  RUSH_DRIVER(copy, "cuMemcpyAsync", Address to, Address from, size_t, void* stream);
  RUSH_DRIVER(set, "cuMemsetD8Async", Address, unsigned char, size_t, void* stream);
  RUSH_DRIVER(stream_create, "cuStreamCreateWithPriority", void**, unsigned flags, int priority);
  RUSH_DRIVER(stream_query, "cuStreamQuery", void*);
  RUSH_DRIVER(stream_synchronize, "cuStreamSynchronize", void*);
  RUSH_DRIVER(stream_wait, "cuStreamWaitEvent", void* stream, void* event, unsigned flags);
  RUSH_DRIVER(host_function, "cuLaunchHostFunc", void* stream, void (*)(void*), void*);
  RUSH_DRIVER(event_create, "cuEventCreate", void**, unsigned flags);
  RUSH_DRIVER(event_destroy, "cuEventDestroy_v2", void*);
  RUSH_DRIVER(event_record, "cuEventRecord", void* event, void* stream);
  RUSH_DRIVER(event_query, "cuEventQuery", void*);
  RUSH_DRIVER(event_synchronize, "cuEventSynchronize", void*);
  RUSH_DRIVER(event_elapsed, "cuEventElapsedTime", float* milliseconds, void* start, void* end);
  RUSH_DRIVER(module_load, "cuModuleLoadData", void** module, const void* image);
  RUSH_DRIVER(module_function, "cuModuleGetFunction", void** function, void* module, const char* name);
  RUSH_DRIVER(function_attribute, "cuFuncSetAttribute", void* function, int attribute, int value);
  RUSH_DRIVER(launch, "cuLaunchKernel", void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
              void** extra);
  RUSH_DRIVER(begin_capture, "cuStreamBeginCapture_v2", void* stream, int mode);
  RUSH_DRIVER(end_capture, "cuStreamEndCapture", void* stream, void** graph);
  RUSH_DRIVER(graph_make, "cuGraphInstantiateWithFlags", void** executable, void* graph, unsigned long long flags);
  RUSH_DRIVER(graph_launch, "cuGraphLaunch", void* executable, void* stream);
  RUSH_DRIVER(graph_destroy, "cuGraphDestroy", void* graph);
  RUSH_DRIVER(executable_destroy, "cuGraphExecDestroy", void* executable);
#undef RUSH_DRIVER
};

Library& library() {
  static Library& opened = *new Library;
  return opened;
}

void checked(Status status, const char* doing) {
  if (status == kSuccess) return;
  const char* reason = nullptr;
  library().error_string(status, &reason);
  raise<AcceleratorError>("CUDA error: ", reason ? reason : "unknown error", " (", status, ") in ", doing);
}

Address address(const void* data) { return static_cast<Address>(reinterpret_cast<uintptr_t>(data)); }

class Driver final : public Runtime, public Graphs {
 public:
  explicit Driver(int devices) : cu_(library()), devices_(size_t(devices)) {
    for (int i = 0; i < devices; ++i) {
      Device& d = devices_[size_t(i)];
      checked(cu_.device_get(&d.ordinal, i), "cuDeviceGet");
      d.properties = describe(d.ordinal);
    }
  }

  bool simulated() const override { return false; }
  int device_count() const override { return int(devices_.size()); }
  const Properties& properties(int device) override { return devices_[size_t(device)].properties; }

  void make_current(int index) override {
    thread_local int current = -1;
    if (current == index) return;
    Device& device = devices_[size_t(index)];
    std::call_once(device.opened, [&] { checked(cu_.retain_context(&device.context, device.ordinal), "opening"); });
    checked(cu_.set_context(device.context), "cuCtxSetCurrent");
    current = index;
  }

  bool can_access_peer(int device, int peer) override {
    int can = 0;
    checked(cu_.can_access_peer(&can, devices_[size_t(device)].ordinal, devices_[size_t(peer)].ordinal), "asking");
    return can;
  }

  void* allocate(int device, size_t bytes) override {
    make_current(device);
    Address data = 0;
    const Status status = cu_.memory_allocate(&data, bytes);
    if (status == kOutOfMemory) return nullptr;
    checked(status, "cuMemAlloc");
    return reinterpret_cast<void*>(static_cast<uintptr_t>(data));
  }
  void free(int device, void* data) override {
    make_current(device);
    checked(cu_.memory_free(address(data)), "cuMemFree");
  }
  std::pair<size_t, size_t> memory_info(int device) override {
    make_current(device);
    std::pair<size_t, size_t> info;
    checked(cu_.memory_info(&info.first, &info.second), "cuMemGetInfo");
    return info;
  }
  void* allocate_pinned(size_t bytes) override {
    make_current(0);
    void* data = nullptr;
    const Status status = cu_.host_allocate(&data, bytes, kHostPortable | kHostMapped);
    check<OutOfMemoryError>(status != kOutOfMemory, "CUDA error: out of memory: no ", bytes, " bytes of pinned memory");
    checked(status, "cuMemHostAlloc");
    return data;
  }
  void free_pinned(void* data) override { checked(cu_.host_free(data), "cuMemFreeHost"); }
  bool is_pinned(const void* data) override {
    make_current(0);
    int kind = 0;
    return cu_.pointer_attribute(&kind, kPointerMemoryType, address(data)) == kSuccess && kind == kMemoryTypeHost;
  }

  void copy(int device, StreamHandle stream, void* to, Where to_where, const void* from, Where from_where,
            size_t bytes) override {
    if (bytes == 0) return;
    make_current(device);
    checked(cu_.copy(address(to), address(from), bytes, stream), "cuMemcpyAsync");
    // The driver may still be reading pageable memory of a copy to the device; the other way it waits by itself.
    if (from_where == Where::Host && to_where == Where::Device && !is_pinned(from)) synchronize(device, stream);
  }
  void set(int device, StreamHandle stream, void* data, int byte, size_t bytes) override {
    if (bytes == 0) return;
    make_current(device);
    checked(cu_.set(address(data), static_cast<unsigned char>(byte), bytes, stream), "cuMemsetD8Async");
  }
  void launch(int device, StreamHandle stream, const Kernel& kernel, const Shape& shape,
              std::span<const Argument> arguments) override {
    make_current(device);
    void* const function = find(device, kernel);
    if (shape.shared > devices_[size_t(device)].properties.shared_memory_per_block)
      checked(cu_.function_attribute(function, kMaxDynamicShared, int(shape.shared)), kernel.name);
    void* addresses[64];
    check(arguments.size() <= std::size(addresses), kernel.name, " has ", arguments.size(), " arguments");
    for (size_t i = 0; i < arguments.size(); ++i) addresses[i] = const_cast<void*>(arguments[i].data);
    checked(cu_.launch(function, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
                       unsigned(shape.shared), stream, addresses, nullptr),
            kernel.name);
  }
  void call(int device, StreamHandle stream, std::function<void()> function) override {
    make_current(device);
    auto held = std::make_unique<std::function<void()>>(std::move(function));
    checked(cu_.host_function(
                stream,
                [](void* data) {
                  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(data));
                  (*owned)();
                },
                held.get()),
            "cuLaunchHostFunc");
    held.release();
  }
  void* reach(const void* data) override { return const_cast<void*>(data); }

  std::pair<int, int> priority_range() override {
    make_current(0);
    std::pair<int, int> range;
    checked(cu_.priority_range(&range.first, &range.second), "cuCtxGetStreamPriorityRange");
    return range;
  }
  StreamHandle create_stream(int device, int priority) override {
    make_current(device);
    void* stream = nullptr;
    checked(cu_.stream_create(&stream, kStreamNonBlocking, priority), "cuStreamCreate");
    return stream;
  }
  bool query(int device, StreamHandle stream) override {
    make_current(device);
    return ready(cu_.stream_query(stream));
  }
  void synchronize(int device, StreamHandle stream) override {
    make_current(device);
    checked(cu_.stream_synchronize(stream), "cuStreamSynchronize");
  }
  void synchronize(int device) override {
    make_current(device);
    checked(cu_.synchronize_context(), "cuCtxSynchronize");
  }
  EventHandle create_event(int device, bool timing, bool blocking) override {
    make_current(device);
    void* event = nullptr;
    const unsigned flags = (timing ? 0 : kEventDisableTiming) | (blocking ? kEventBlockingSync : 0);
    checked(cu_.event_create(&event, flags), "cuEventCreate");
    return event;
  }
  void destroy_event(int device, EventHandle event) override {
    make_current(device);
    checked(cu_.event_destroy(event), "cuEventDestroy");
  }
  void record(int device, EventHandle event, StreamHandle stream) override {
    make_current(device);
    checked(cu_.event_record(event, stream), "cuEventRecord");
  }
  void wait(int device, StreamHandle stream, EventHandle event) override {
    make_current(device);
    checked(cu_.stream_wait(stream, event, 0), "cuStreamWaitEvent");
  }
  bool query_event(EventHandle event) override { return ready(cu_.event_query(event)); }
  void synchronize_event(EventHandle event) override { checked(cu_.event_synchronize(event), "cuEventSynchronize"); }
  double elapsed_milliseconds(EventHandle start, EventHandle end) override {
    float milliseconds = 0;
    checked(cu_.event_elapsed(&milliseconds, start, end), "cuEventElapsedTime");
    return milliseconds;
  }

  void begin_capture(int device, StreamHandle stream) override {
    make_current(device);
    checked(cu_.begin_capture(stream, kCaptureRelaxed), "cuStreamBeginCapture");
  }
  GraphHandle end_capture(int device, StreamHandle stream) override {
    make_current(device);
    void *graph = nullptr, *executable = nullptr;
    checked(cu_.end_capture(stream, &graph), "cuStreamEndCapture");
    const Status status = cu_.graph_make(&executable, graph, 0);
    cu_.graph_destroy(graph);
    checked(status, "cuGraphInstantiate");
    return executable;
  }
  void launch_graph(int device, StreamHandle stream, GraphHandle graph) override {
    make_current(device);
    checked(cu_.graph_launch(graph, stream), "cuGraphLaunch");
  }
  void destroy_graph(int device, GraphHandle graph) override {
    make_current(device);
    checked(cu_.executable_destroy(graph), "cuGraphExecDestroy");
  }

  Failure* failure(int index) override {
    Device& device = devices_[size_t(index)];
    std::call_once(device.watched, [&] {
      device.failure = static_cast<Failure*>(allocate_pinned(sizeof(Failure)));
      *device.failure = {};
    });
    return device.failure;
  }

 private:
  struct Device {
    int ordinal = 0;
    void* context = nullptr;
    std::once_flag opened, watched;
    Properties properties;
    Failure* failure = nullptr;
    std::map<const Kernel*, void*> functions;  // guarded by mutex_
  };

  static bool ready(Status status) {
    if (status == kNotReady) return false;
    checked(status, "asking whether work is done");
    return true;
  }

  Properties describe(int device) {
    const auto attribute = [&](Attribute a) {
      int value = 0;
      checked(cu_.device_attribute(&value, a, device), "cuDeviceGetAttribute");
      return value;
    };
    Properties p;
    char name[256] = {};
    checked(cu_.device_name(name, sizeof name, device), "cuDeviceGetName");
    p.name = name;
    unsigned char uuid[16] = {};
    checked(cu_.device_uuid(uuid, device), "cuDeviceGetUuid");
    for (int i = 0; i < 16; ++i) {
      char digits[4];
      snprintf(digits, sizeof digits, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
      p.uuid += digits;
    }
    size_t bytes = 0;
    checked(cu_.device_memory(&bytes, device), "cuDeviceTotalMem");
    p.total_memory = int64_t(bytes);
    p.major = attribute(kMajor);
    p.minor = attribute(kMinor);
    p.l2_cache = attribute(kL2Cache);
    p.multiprocessors = attribute(kMultiprocessors);
    p.warp_size = attribute(kWarpSize);
    p.max_threads_per_block = attribute(kMaxThreadsPerBlock);
    p.max_threads_per_multiprocessor = attribute(kMaxThreadsPerMultiprocessor);
    p.registers_per_multiprocessor = attribute(kRegistersPerMultiprocessor);
    p.shared_memory_per_block = size_t(attribute(kSharedPerBlock));
    p.shared_memory_per_block_optin = size_t(attribute(kSharedPerBlockOptin));
    p.shared_memory_per_multiprocessor = size_t(attribute(kSharedPerMultiprocessor));
    p.integrated = attribute(kIntegrated) != 0;
    p.multi_gpu_board = attribute(kMultiGpuBoard) != 0;
    return p;
  }

  void* find(int index, const Kernel& kernel) {
    Device& device = devices_[size_t(index)];
    const std::lock_guard lock(mutex_);
    void*& function = device.functions[&kernel];
    if (function) return function;
    const Binary binary = compile(kernel, 10 * device.properties.major + device.properties.minor);
    void *module = nullptr, *found = nullptr;
    checked(cu_.module_load(&module, binary.image.data()), kernel.name);
    checked(cu_.module_function(&found, module, binary.symbol.c_str()), kernel.name);
    return function = found;
  }

  Library& cu_;
  std::deque<Device> devices_;
  std::mutex mutex_;
};

/// What CUDA_VISIBLE_DEVICES leaves of `count` devices: entries up to the first that names none.
int visible(int count) {
  const char* setting = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!setting) return count;
  int n = 0;
  for (std::string_view rest(setting); !rest.empty() && n < count;) {
    const std::string entry(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    char* end;
    const long index = std::strtol(entry.c_str(), &end, 10);
    const bool number = end != entry.c_str();
    if (number ? index < 0 || index >= count : entry.find("GPU-") == entry.npos && entry.find("MIG-") == entry.npos)
      break;
    ++n;
  }
  return n;
}

}  // namespace

int driver_devices() {
  // The management library counts without starting the driver, which would be of no use in forked children. Where it
  // is missing, as on embedded machines, the driver must tell.
  static const int count = [] {
    if (!library().complete) return 0;
    if (void* management = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
      const auto init = reinterpret_cast<Status (*)()>(dlsym(management, "nvmlInit_v2"));
      const auto get = reinterpret_cast<Status (*)(unsigned*)>(dlsym(management, "nvmlDeviceGetCount_v2"));
      unsigned n = 0;
      if (init && get && init() == kSuccess && get(&n) == kSuccess) return visible(int(n));
    }
    int n = 0;
    return library().init(0) == kSuccess && library().device_count(&n) == kSuccess ? n : 0;
  }();
  return std::min(count, kMaxDevices);
}

Runtime* start_driver() {
  check(library().handle,
        "no CUDA device is available: libcuda.so.1 of the NVIDIA driver is not found, and "
        "RUSHLIGHT_SIM_GPUS asks for no simulated ones");
  check(library().complete, "no CUDA device is available: the NVIDIA driver is too old");
  int count = 0;
  const Status status = library().init(0);
  if (status == kSuccess) library().device_count(&count);
  check(count > 0, "no CUDA device is available: the NVIDIA driver finds none (status ", status, ")");
  return new Driver(std::min(count, kMaxDevices));
}

}  // namespace rush::cuda
