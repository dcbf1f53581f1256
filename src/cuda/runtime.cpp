// Which runtime a process has, and what is the same for all of them: launching on current streams, failures.
#include "cuda/runtime.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "cuda/driver.h"
#include "cuda/simulator.h"
#include "rushlight/cuda.h"
#include "rushlight/cuda_error.h"

namespace rush::cuda {
namespace {

std::atomic<Runtime*> the_runtime{nullptr};
bool forked = false;
constexpr std::string_view unnamed = "an operation";
struct Operation {
  const std::string_view* name;
  std::vector<Access> accesses;
};
thread_local std::vector<Operation> operations;  // the innermost last

Runtime& start() {
  static std::mutex mutex;
  check(!forked,
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
        "start method");
  const std::lock_guard lock(mutex);
  if (Runtime* r = the_runtime.load()) return *r;
  Runtime* r = simulated_devices() > 0 ? start_simulator() : start_driver();
  pthread_atfork(nullptr, nullptr, [] {
    the_runtime.store(nullptr);
    forked = true;
  });
  the_runtime.store(r);
  return *r;
}

}  // namespace

Runtime& runtime() {
  Runtime* r = the_runtime.load(std::memory_order_acquire);
  return r ? *r : start();
}

bool started() { return the_runtime.load(std::memory_order_acquire) != nullptr; }

int device_count() {
  if (Runtime* r = the_runtime.load()) return r->device_count();
  const int simulated = simulated_devices();
  return simulated > 0 ? simulated : driver_devices();
}

void begin_operation(const std::string_view& name) { operations.push_back({&name, {}}); }
void end_operation() { operations.pop_back(); }
void set_accesses(std::span<const Access> accesses) {
  operations.back().accesses.assign(accesses.begin(), accesses.end());
}
const std::string_view& current_operation() { return operations.empty() ? unnamed : *operations.back().name; }
std::span<const Access> current_accesses() {
  return operations.empty() ? std::span<const Access>() : operations.back().accesses;
}

IndexCheck index_check(int device) {
  return {runtime().failure(device), uint64_t(reinterpret_cast<uintptr_t>(&current_operation()))};
}

void check_failure(int device) {
  Failure& shared = *runtime().failure(device);
  unsigned state = 2;
  if (__atomic_load_n(&shared.state, __ATOMIC_RELAXED) != state ||
      !__atomic_compare_exchange_n(&shared.state, &state, 1u, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  const Failure f = shared;
  __atomic_store_n(&shared.state, 0u, __ATOMIC_RELEASE);  // room for the next
  raise<DeviceAssertError>("CUDA error: device-side assert triggered: index ", f.index,
                           " is out of bounds for dimension ", f.dim, " with size ", f.size, " in ",
                           *reinterpret_cast<const std::string_view*>(uintptr_t(f.operation)));
}

void detail::launch(const Kernel& kernel, int device, const Shape& shape, std::span<const Argument> arguments) {
  check_failure(device);
  runtime().launch(device, current_stream(device).handle(), kernel, shape, arguments);
  check_failure(device);  // its own, where the runtime has waited
}

void read(int device, const void* from, void* to, size_t bytes) {
  const Stream stream = current_stream(device);
  runtime().copy(device, stream.handle(), to, Runtime::Where::Host, from, Runtime::Where::Device, bytes);
  stream.synchronize();
}

}  // namespace rush::cuda
