// The runtime on simulated GPUs, below tensors: memory, copies, launches, streams, events, faults, the race checker.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "cuda/races.h"
#include "cuda/runtime.h"
#include "cuda_test.h"
#include "rushlight/cuda.h"

namespace rush::cuda {
namespace {

using Where = Runtime::Where;

class CudaRuntime : public CudaTest {
 protected:
  void TearDown() override {
    for (auto [device, data] : owned_) runtime().free(device, data);
  }
  float* floats(int device, size_t n) {
    void* data = runtime().allocate(device, n * sizeof(float));
    owned_.emplace_back(device, data);
    return static_cast<float*>(data);
  }
  std::vector<std::pair<int, void*>> owned_;
};

// y[i] += a, as a .cuh kernel looks when it is compiled for the host.
struct Pack {
  int64_t unrelated;
  float* y;
};
const Kernel add_kernel{"none", "add_kernel", [](const Shape& shape, Dim3 index, void* const* arguments) {
                          const Pack pack = *static_cast<const Pack*>(arguments[0]);
                          const float a = *static_cast<const float*>(arguments[1]);
                          for (unsigned t = 0; t < shape.block.x; ++t) pack.y[index.x * shape.block.x + t] += a;
                        }};

TEST_F(CudaRuntime, CopiesAndLaunchesInOrder) {
  EXPECT_EQ(device_count(), 2);
  float* y = floats(0, 64);
  std::vector<float> host(64, 1.5f), back(64);
  runtime().copy(0, nullptr, y, Where::Device, host.data(), Where::Host, 256);
  launch(add_kernel, 0, {{4}, {16}}, Pack{7, y}, 2.0f);
  runtime().copy(0, nullptr, back.data(), Where::Host, y, Where::Device, 256);
  EXPECT_EQ(back, std::vector<float>(64, 3.5f));
}

TEST_F(CudaRuntime, ShortNumbersInArgumentsStayWhatTheyAre) {
  struct Short {
    uint32_t value, padding;
    uint32_t* to;
  };
  static const Kernel store{"none", "store", [](const Shape&, Dim3, void* const* arguments) {
                              const Short& s = *static_cast<const Short*>(arguments[0]);
                              *s.to = s.value;
                            }};
  auto* to = reinterpret_cast<uint32_t*>(floats(1, 64));
  const auto address = reinterpret_cast<uintptr_t>(to) + 8;  // which value and padding together happen to be
  launch(store, 1, {{1}, {1}}, Short{uint32_t(address), uint32_t(address >> 32), to});
  uint32_t back = 0;
  read(1, to, &back, sizeof back);
  EXPECT_EQ(back, uint32_t(address));
}

TEST_F(CudaRuntime, CopiesBetweenDevicesAndSets) {
  float *a = floats(0, 64), *b = floats(1, 64);
  runtime().set(0, nullptr, a, 0, 256);
  launch(add_kernel, 0, {{1}, {64}}, Pack{0, a}, 4.0f);
  runtime().copy(0, nullptr, b, Where::Device, a, Where::Device, 256);
  runtime().synchronize(0);
  std::vector<float> back(64);
  runtime().copy(1, nullptr, back.data(), Where::Host, b, Where::Device, 256);
  EXPECT_EQ(back, std::vector<float>(64, 4.0f));
}

TEST_F(CudaRuntime, CapacityIsReal) {
  const auto [free, total] = runtime().memory_info(0);
  EXPECT_EQ(total, size_t(256) << 20);
  EXPECT_EQ(runtime().allocate(0, free + 1), nullptr);
  void* all = runtime().allocate(0, free);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(runtime().memory_info(0).first, 0u);
  EXPECT_EQ(runtime().allocate(0, 1), nullptr);
  runtime().free(0, all);
  EXPECT_EQ(runtime().memory_info(0).first, free);
  EXPECT_THROW(runtime().free(0, all), Error);
}

TEST_F(CudaRuntime, AddressesAreChecked) {
  float* y = floats(0, 64);
  std::vector<char> host(4 << 20);
  EXPECT_THROW(runtime().copy(0, nullptr, y, Where::Host, host.data(), Where::Host, 4), Error);
  EXPECT_THROW(runtime().copy(0, nullptr, host.data(), Where::Device, y, Where::Device, 4), Error);
  EXPECT_THROW(runtime().copy(0, nullptr, y, Where::Device, host.data(), Where::Host, host.size()), Error);
  EXPECT_THROW(launch(add_kernel, 0, {{1}, {2048}}, Pack{0, y}, 1.0f), Error);
}

TEST_F(CudaRuntime, StreamsRunAtTheSameTimeAndEventsOrderThem) {
  const Stream a(0), b(0);
  std::promise<void> open;
  std::atomic<int> step = 0;
  runtime().call(0, a.handle(), [gate = open.get_future().share(), &step] {
    gate.wait();
    step = 1;
  });
  Event event;
  event.record(a);
  runtime().call(0, b.handle(), [&step] { EXPECT_EQ(step, 0); });  // not held up by a
  b.synchronize();
  b.wait(event);
  runtime().call(0, b.handle(), [&step] { EXPECT_EQ(step.exchange(2), 1); });
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(a.query());
  EXPECT_FALSE(b.query());
  open.set_value();
  b.synchronize();
  EXPECT_EQ(step, 2);
  EXPECT_TRUE(event.query());
}

TEST_F(CudaRuntime, EventsMeasureTime) {
  const Event start(true), end(true), plain;
  EXPECT_TRUE(start.query());
  start.record();
  runtime().call(0, nullptr, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  end.record();
  end.synchronize();
  EXPECT_GE(start.elapsed(end), 5.0);
  EXPECT_THROW(start.elapsed(plain), ValueError);
}

TEST_F(CudaRuntime, PageableMemoryIsCopiedBeforeTheCallReturns) {
  float* y = floats(0, 64);
  std::promise<void> open;
  runtime().call(0, nullptr, [gate = open.get_future().share()] { gate.wait(); });
  std::vector<float> host(64, 1.0f), back(64);
  runtime().copy(0, nullptr, y, Where::Device, host.data(), Where::Host, 256);
  host.assign(64, 9.0f);
  open.set_value();
  runtime().copy(0, nullptr, back.data(), Where::Host, y, Where::Device, 256);
  EXPECT_EQ(back, std::vector<float>(64, 1.0f));
}

TEST_F(CudaRuntime, PinnedMemoryIsCopiedLater) {
  float* y = floats(0, 64);
  auto* host = static_cast<float*>(runtime().allocate_pinned(256));
  EXPECT_TRUE(runtime().is_pinned(host + 63));
  std::promise<void> open;
  runtime().call(0, nullptr, [gate = open.get_future().share()] { gate.wait(); });
  host[0] = 1.0f;
  runtime().copy(0, nullptr, y, Where::Device, host, Where::Host, 256);
  host[0] = 2.0f;
  open.set_value();
  float back;
  runtime().copy(0, nullptr, &back, Where::Host, y, Where::Device, 4);
  EXPECT_EQ(back, 2.0f);
  runtime().free_pinned(host);
  EXPECT_FALSE(runtime().is_pinned(host));
}

TEST_F(CudaRuntime, CurrentDeviceAndStreamBelongToTheThread) {
  EXPECT_EQ(current_device(), 0);
  const Stream side(1, -1);
  EXPECT_EQ(side.priority(), -1);
  {
    const StreamGuard guard(side);
    EXPECT_EQ(current_device(), 1);
    EXPECT_EQ(current_stream(), side);
    std::thread([] {
      EXPECT_EQ(current_device(), 0);
      EXPECT_EQ(current_stream(1), default_stream(1));
    }).join();
  }
  EXPECT_EQ(current_device(), 0);
  EXPECT_EQ(current_stream(1), default_stream(1));
  EXPECT_THROW(set_device(2), Error);
}

TEST_F(CudaRuntime, HostAccessIsReported) {
  float* y = floats(1, 64);
  EXPECT_DEATH(*static_cast<volatile float*>(y + 3) = 1.0f, "host access to device memory.*cuda:1");
}

TEST(CudaRaces, UnorderedWorkIsReported) {
  setenv("RUSHLIGHT_SIM_RACES", "1", 1);
  RaceChecker races;
  unsetenv("RUSHLIGHT_SIM_RACES");
  static char memory[300];
  const Access write[] = {{memory, 100, true}}, read[] = {{memory + 50, 100, false}},
               apart[] = {{memory + 200, 9, true}};
  races.access(1, "mul", write);
  races.access(1, "sum", read);
  races.access(2, "neg", apart);
  try {
    races.access(2, "add", read);
    FAIL() << "no race found";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("add reads memory"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("that mul writes"), std::string::npos) << e.what();
  }
  races.waits(3, races.now(1));  // an event
  races.access(3, "add", read);
  races.host_waits(1);  // a synchronisation: whatever is put on any stream comes after it
  races.access(4, "add", read);
  EXPECT_THROW(races.access(1, "exp", write), Error);  // over what 3 and 4 read
}

}  // namespace
}  // namespace rush::cuda
