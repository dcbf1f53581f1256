// The vectorised inner loops of random.cpp.
#pragma once
#include <cstdint>

namespace rush::simd {

/// The next 624 words of a Mersenne Twister, in place.
void twist(uint32_t* state);

/// The draws that words of the state stand for.
void temper(const uint32_t* state, uint32_t* out, int64_t n);

/// from + (to - from) * u, u the low 24 bits of each draw as a fraction; `from` where that is rounded up to `to`.
void uniform(const uint32_t* draws, float* out, int64_t n, float from, float to);

/// out[i] = 1 if the 53 low bits of (draws[2i], draws[2i + 1]) are below `threshold`, else 0.
void below(const uint32_t* draws, float* out, int64_t n, uint64_t threshold);
void below(const uint32_t* draws, uint8_t* out, int64_t n, uint64_t threshold);

/// Box and Muller on blocks of 16 uniform values in place: data[j] and data[j + 8] give a pair.
void normal(float* data, int64_t blocks, float mean, float std);

}  // namespace rush::simd
