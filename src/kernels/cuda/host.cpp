// Blocks of simulated threads: fibers on ucontext, one after the other in order, each up to its next barrier.
#include "kernels/cuda/host.h"

#include <ucontext.h>

#include <atomic>
#include <memory>
#include <vector>

namespace rush::cuda {

constinit thread_local Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

constexpr size_t kStack = 256 << 10;

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done;
};
struct Block {
  std::vector<Fiber> fibers;
  ucontext_t scheduler;
  size_t running = 0;
  void (*thread)(void* const*);
  void* const* arguments;
};
/// What a thread of the host keeps for the blocks it runs; made when first needed, since thread-local memory of a
/// library is scarce.
struct Keeper {
  Block block;
  std::vector<std::unique_ptr<char[]>> arrays;
};
Keeper& keeper() {
  thread_local const std::unique_ptr<Keeper> keeper(new Keeper);
  return *keeper;
}

void enter() {
  Block& block = keeper().block;
  block.thread(block.arguments);
  block.fibers[block.running].done = true;
}

/// Lets the fiber begin where the block's threads do. Apart from the loop around it, as compilers take getcontext() for
/// a function that returns twice.
[[gnu::noinline]] void prepare(Fiber& f, ucontext_t& scheduler) {
  f.done = false;
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack.get();
  f.context.uc_stack.ss_size = kStack;
  f.context.uc_link = &scheduler;
  makecontext(&f.context, enter, 0);
}

}  // namespace

size_t next_shared_array() {
  static std::atomic<size_t> next{0};
  return next++;
}

void* shared_array(size_t which, size_t bytes) {
  std::vector<std::unique_ptr<char[]>>& arrays = keeper().arrays;
  if (arrays.size() <= which) arrays.resize(which + 1);
  if (!arrays[which]) arrays[which].reset(new char[bytes]);
  return arrays[which].get();
}

void switch_thread() {
  Block& block = keeper().block;
  swapcontext(&block.fibers[block.running].context, &block.scheduler);
}

void run_threads(const Shape& shape, Dim3 index, void (*thread)(void* const*), void* const* arguments) {
  threadIdx = {0, 0, 0};
  blockIdx = index;
  blockDim = shape.block;
  gridDim = shape.grid;
  const size_t threads = shape.block.x;
  if (threads == 1) return thread(arguments);
  Block& block = keeper().block;
  block.thread = thread;
  block.arguments = arguments;
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  for (size_t i = 0; i < threads; ++i) {
    Fiber& f = block.fibers[i];
    if (!f.stack) f.stack.reset(new char[kStack]);
    prepare(f, block.scheduler);
  }
  for (size_t left = threads; left > 0;) {
    for (size_t i = 0; i < threads; ++i) {
      Fiber& f = block.fibers[i];
      if (f.done) continue;
      block.running = i;
      threadIdx.x = unsigned(i);
      swapcontext(&block.scheduler, &f.context);
      left -= f.done;
    }
  }
}

}  // namespace rush::cuda
