// Arithmetic on counts that kernels share.
#pragma once
#include <cstdint>

namespace rush::cpu {

/// a / b rounded up, of a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace rush::cpu
