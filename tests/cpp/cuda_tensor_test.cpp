// Tensors on simulated GPUs from C++: making and moving them, what mixes and what does not, streams in backward.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "cuda/libraries.h"
#include "cuda/runtime.h"
#include "cuda_test.h"
#include "rushlight/autograd.h"
#include "rushlight/cuda.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

class CudaTensor : public CudaTest {
 protected:
  const Device first{DeviceType::CUDA, 0}, second{DeviceType::CUDA, 1};
};

TEST_F(CudaTensor, MovesAndComesBack) {
  const Tensor x = arange(6).reshape({2, 3});
  const Tensor there = x.to(first);
  EXPECT_EQ(there.device(), first);
  EXPECT_TRUE(there.to(Device("cuda")).is_same(there));
  EXPECT_TRUE(there.t().to(first).dim() == 2);
  EXPECT_EQ(there.select(0, 1).select(0, 2).item<int64_t>(), 5);
  const Tensor other = there.cuda(second);
  EXPECT_EQ(other.device(), second);
  EXPECT_TRUE(other.cpu().equal(x));
  EXPECT_TRUE(x.t().to(first).cpu().equal(x.t()));
  EXPECT_TRUE(x.to(second, kFloat64).cpu().equal(x.to(kFloat64)));
}

TEST_F(CudaTensor, DevicesDoNotMix) {
  const Tensor a = arange(3).to(first), b = arange(3).to(second);
  EXPECT_THROW(a + b, Error);
  EXPECT_THROW(a + arange(3), Error);
  EXPECT_THROW(empty({1}, {}, {}, Device(DeviceType::CUDA, 9)), Error);
}

TEST_F(CudaTensor, AMemoryChangeOnTheDeviceIsCounted) {
  Tensor a = arange(3).to(first);
  const uint32_t before = a.version();
  a.copy_(arange(3));
  EXPECT_EQ(a.version(), before + 1);
}

TEST_F(CudaTensor, BackwardRunsOnTheStreamOfForward) {
  const cuda::Stream side(0);
  Tensor x = arange(3).to(kFloat32).requires_grad_();
  Tensor y;
  {
    const cuda::StreamGuard guard(side);
    y = x.to(first);
  }
  cuda::current_stream(0).wait(side);
  std::promise<void> open;
  cuda::runtime().call(0, side.handle(), [gate = open.get_future().share()] { gate.wait(); });
  std::atomic<bool> opened = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    opened = true;
    open.set_value();
  });
  y.backward(ones({3}).to(first));  // its copy to the CPU is behind what holds the side stream up
  EXPECT_TRUE(opened);
  EXPECT_TRUE(x.grad().equal(ones({3})));
  later.join();
}

TEST_F(CudaTensor, PinnedMemoryIsNotGivenOutWhileItIsCopied) {
  std::promise<void> open;
  cuda::runtime().call(0, nullptr, [gate = open.get_future().share()] { gate.wait(); });
  Tensor x = ones({100}).pin_memory();
  const void* address = x.data_ptr();
  const Tensor there = x.to(first, {}, true);
  x = Tensor();
  Tensor next = ones({100}).pin_memory();
  EXPECT_NE(next.data_ptr(), address);
  open.set_value();
  cuda::synchronize(0);
  EXPECT_TRUE(there.cpu().equal(ones({100})));
  const Tensor again = ones({100}).pin_memory();
  EXPECT_EQ(again.data_ptr(), address);
}

TEST(CudaLibraries, WhatIsMissingSaysWhereItWasLookedFor) {
  const cuda::Library& none = cuda::find_library("librushlight_no_such_library");
  EXPECT_FALSE(none.found());
  EXPECT_EQ(none.handle(), nullptr);
  EXPECT_EQ(none.tried.back(), "the loader's folders");
}

}  // namespace
}  // namespace rush
