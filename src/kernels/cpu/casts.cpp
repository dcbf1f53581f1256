// All pairs of dtypes, each a plain loop that the compiler vectorises for every instruction set; only float16 needs
// the machine's own conversion.
#include "kernels/cpu/casts.h"

#include <array>
#include <complex>
#include <cstring>

#include "kernels/cpu/tiles.h"
#include "kernels/elements.h"
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace rush::cpu {
namespace {

template <class To, class From>
RUSH_FN void loop(void* dst, const void* src, int64_t n) {
  To* to = static_cast<To*>(dst);
  const From* from = static_cast<const From*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

// Half to and from float eight at a time with F16C; other types go by way of float in a small buffer.
#if defined(__x86_64__) && (!defined(HWY_COMPILE_ONLY_STATIC) || defined(__F16C__))
#define RUSH_F16C
[[gnu::target("avx2,fma,f16c")]] void half_to_float(float* dst, const Half* src, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i))));
  }
  for (; i < n; ++i) dst[i] = src[i];
}
[[gnu::target("avx2,fma,f16c")]] void float_to_half(Half* dst, const float* src, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) dst[i] = src[i];
}
#endif

template <class To, class From>
struct Cast {
  static void baseline(void* dst, const void* src, int64_t n) { loop<To, From>(dst, src, n); }
#if defined(__x86_64__) && !defined(HWY_COMPILE_ONLY_STATIC)
  [[gnu::target("avx2,fma,f16c")]] static void avx2(void* dst, const void* src, int64_t n) {
    loop<To, From>(dst, src, n);
  }
#else
  static constexpr CastFunction avx2 = baseline;
#endif
#ifdef RUSH_F16C
  static void through_float(void* dst, const void* src, int64_t n) {
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>) {
      half_to_float(static_cast<float*>(dst), static_cast<const Half*>(src), n);
    } else if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>) {
      float_to_half(static_cast<Half*>(dst), static_cast<const float*>(src), n);
    } else {
      constexpr int64_t step = 512;
      float buffer[step];
      for (int64_t i = 0; i < n; i += step) {
        const int64_t count = std::min(step, n - i);
        Cast<float, From>::best()(buffer, static_cast<const From*>(src) + i, count);
        Cast<To, float>::best()(static_cast<To*>(dst) + i, buffer, count);
      }
    }
  }
#endif
  static CastFunction best() {
#ifdef RUSH_F16C
    constexpr bool half = std::is_same_v<To, Half> || std::is_same_v<From, Half>;
    if constexpr (half && !std::is_same_v<To, From>) {
      if (simd_level > 0) return through_float;
    }
#endif
    return simd_level > 0 ? avx2 : baseline;
  }
};

using Pick = CastFunction (*)();
template <class To, class... From>
constexpr std::array<Pick, kDTypes> row() {
  return {&Cast<To, From>::best...};
}
template <class... T>
struct Table {
  static constexpr std::array<Pick, kDTypes> rows[kDTypes] = {row<T, T...>()...};
};
using AllCasts = Table<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double,
                       std::complex<float>, std::complex<double>>;

template <class T>
void gather_elements(void* dst, const void* src, int64_t stride, int64_t n) {
  T* to = static_cast<T*>(dst);
  const T* from = static_cast<const T*>(src);
  if (stride == 0) {
    const T value = *from;
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}
template <class T>
void scatter_elements(void* dst, int64_t stride, const void* src, int64_t n) {
  T* to = static_cast<T*>(dst);
  const T* from = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) to[i * stride] = from[i];
}
struct Sixteen {
  uint64_t half[2];
};

}  // namespace

CastFunction cast_function(DType to, DType from) { return AllCasts::rows[int(to)][int(from)](); }

void copy_bytes(char* to, const char* from, int64_t n) {
  constexpr int64_t page = 4096, piece = 256;
  const auto ahead = static_cast<int64_t>((to - from) & (page - 1));
  if (n > page && ahead > 0 && ahead < page / 2)
    for (; n >= piece; n -= piece) std::memcpy(to + n - piece, from + n - piece, piece);
  std::memcpy(to, from, size_t(n));
}

void gather(void* dst, const void* src, int64_t stride, int64_t n, int64_t bytes) {
  if (stride == 1) {
    std::memcpy(dst, src, size_t(n * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return gather_elements<uint8_t>(dst, src, stride, n);
    case 2:
      return gather_elements<uint16_t>(dst, src, stride, n);
    case 4:
      return gather_elements<uint32_t>(dst, src, stride, n);
    case 8:
      return gather_elements<uint64_t>(dst, src, stride, n);
    default:
      return gather_elements<Sixteen>(dst, src, stride, n);
  }
}

void scatter(void* dst, int64_t stride, const void* src, int64_t n, int64_t bytes) {
  if (stride == 1) {
    std::memcpy(dst, src, size_t(n * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return scatter_elements<uint8_t>(dst, stride, src, n);
    case 2:
      return scatter_elements<uint16_t>(dst, stride, src, n);
    case 4:
      return scatter_elements<uint32_t>(dst, stride, src, n);
    case 8:
      return scatter_elements<uint64_t>(dst, stride, src, n);
    default:
      return scatter_elements<Sixteen>(dst, stride, src, n);
  }
}

}  // namespace rush::cpu
