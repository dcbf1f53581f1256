// Automatic mixed precision: while autocast is on, operators that gain from a shorter type get their arguments cast to
// it, and those that would lose too much get float32. Which do what is in their definitions (`.autocast`), with
// PyTorch's lists.
//
//   {
//     rush::AutocastGuard guard(rush::DeviceType::CPU);   // bfloat16
//     loss = criterion(model(x), y);
//   }
//   loss.backward();
#pragma once
#include <array>

#include "rushlight/autograd.h"

namespace rush {

namespace autocast {

/// Of this thread: whether operators on tensors of this device type cast.
bool is_enabled(DeviceType device);
void set_enabled(DeviceType device, bool enabled);
/// The shorter type: at first bfloat16 on the CPU, float16 on CUDA. Throws ValueError for any other.
DType dtype(DeviceType device);
void set_dtype(DeviceType device, DType dtype);
/// Whether the cast of a float32 leaf that requires grad is kept until the outermost scope ends.
bool is_cache_enabled();
void set_cache_enabled(bool enabled);
void clear_cache();
/// How many scopes are open; each returns the number after the change.
int increment_nesting();
int decrement_nesting();

/// Makes the front door look at calls if autocast or a profiler is on.
void watch();
/// Calls the operator with cast arguments if its policy asks for it; else returns false and does nothing. For dispatch.
bool run(const OpInfo& op, const Value* args, Results& out);

}  // namespace autocast

/// Calls are not cast while it lives.
struct NoAutocast {
  std::array<bool, 2> before;
  NoAutocast();
  ~NoAutocast();
};

/// Autocast on (or off) for a scope, as torch.autocast.
class AutocastGuard {
 public:
  explicit AutocastGuard(DeviceType device, OptDType dtype = {}, bool enabled = true, bool cache_enabled = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;

 private:
  DeviceType device_;
  bool enabled_, cache_enabled_;
  DType dtype_;
};

}  // namespace rush
