// Moving elements without computing on them: between dtypes, contiguous to strided and back.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"

namespace rush::cpu {

/// dst[i] = src[i] for i < n with another dtype, both contiguous.
using CastFunction = void (*)(void* dst, const void* src, int64_t n);
/// As C++ converts, but: non-zero is true, a complex number loses its imaginary part to a real one, floats go to 8- and
/// 16-bit integers through int32.
CastFunction cast_function(DType to, DType from);

/// memcpy, also quick where `to` lies a little further in its page than `from` does: there each load would wait for the
/// stores before it, of whose addresses the CPU compares the low 12 bits.
void copy_bytes(char* to, const char* from, int64_t n);
/// dst[i] = src[i * stride], elements of `bytes` bytes.
void gather(void* dst, const void* src, int64_t stride, int64_t n, int64_t bytes);
/// dst[i * stride] = src[i].
void scatter(void* dst, int64_t stride, const void* src, int64_t n, int64_t bytes);

}  // namespace rush::cpu
