// Kernels for the driver: compiled by NVRTC when first used, and kept on disk, in $RUSHLIGHT_CACHE or
// $XDG_CACHE_HOME/rushlight or ~/.cache/rushlight.
#pragma once
#include "cuda/runtime.h"

namespace rush::cuda {

/// Device code of one kernel.
struct Binary {
  std::string image;   // a cubin
  std::string symbol;  // the kernel's name in it
};

/// For an architecture: 75 is sm_75. Throws Error with the compiler's messages, or saying which library is missing.
Binary compile(const Kernel& kernel, int architecture);

/// What the compiler says while it compiles kernels of one file anew: warnings, registers that spill. For tests.
std::string compiler_messages(std::span<const Kernel* const> kernels, int architecture);

}  // namespace rush::cuda
