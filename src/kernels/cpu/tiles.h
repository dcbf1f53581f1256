// The loop under every pointwise kernel. A formula is compiled once per compute type into a tile function on contiguous
// arrays; everything else, which is the same for all of them, is here once and knows no formula: broadcasting, strides,
// conversion of dtypes, threads.
//
// Note [Compute types] Tiles exist for bool, int64, float, double and the complex types only. float16 and bfloat16
// compute in float, all integers in int64 and wrap when stored. An operand of another dtype or layout is brought into a
// buffer in L1, a tile at a time; one that is already as the tile wants it is used where it lies.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cuda/pointwise.h"
#include "kernels/math.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// out[k][i] = f(in[0][i], in[1][i], ...) for i < n; `formula` is the functor f.
using TileFunction = void (*)(const void* formula, void* const* out, const void* const* in, int64_t n);

inline constexpr int kMaxOperands = 8;

/// A tile function for each instruction set, and what it expects.
struct TileKernel {
  TileFunction run[3];              // baseline, AVX2, AVX-512
  TileFunction with_number[2][3];   // of two arguments, the first or the second being a single number; or null
  uint8_t outs, ins;                // how many of each
  DType types[kMaxOperands];        // compute types: results, then arguments
  int64_t grain;                    // elements that are worth a thread
  cuda::PointwiseKernel cuda = {};  // the same formula's kernel on a GPU
};

/// 0: baseline, 1: AVX2 with FMA, 2: AVX-512. Found when the library is loaded.
extern int simd_level;

/// One tensor as the loop sees it. Strides count elements and are 0 where it is broadcast.
struct Operand {
  void* data;
  DType dtype;
  const int64_t* strides;
};

/// Runs the kernel over `sizes`; results first, then arguments. Operands in CPU memory.
void run_tiles(const TileKernel& kernel, const void* formula, Ints sizes, const Operand* operands);
/// The same with tensors on any device: the first gives the sizes, the others are broadcast to it. On a GPU single
/// numbers may be CPU tensors.
void run_tiles(const TileKernel& kernel, const void* formula, const Tensor* const* tensors);

/// The type that arithmetic on this dtype is done in.
constexpr DType compute_type(DType t) { return is_half(t) ? kFloat32 : (is_integral(t) && t != kBool ? kInt64 : t); }

// ---- compiling formulas into tiles

/// An array as a formula's loop reads it, and a number in the place of one.
template <class T>
struct Array {
  const T* data;
  RUSH_FN T operator[](int64_t i) const { return data[i]; }
};
template <class T>
struct Number {
  T value;
  RUSH_FN T operator[](int64_t) const { return value; }
};

// An element whose result the branch-free formula gets wrong (sin of 1e30) may be sent to F::slow instead.
template <class F, class Out, class... In>
RUSH_FN void tile_loop(const F f, int64_t n, Out* out, const In... in) {
  if constexpr (requires { F::is_hard(in[0]...); }) {
    bool hard = false;
    for (int64_t i = 0; i < n; ++i) hard |= F::is_hard(in[i]...);
    if (hard) {
      for (int64_t i = 0; i < n; ++i) out[i] = F::is_hard(in[i]...) ? F::slow(in[i]...) : f(in[i]...);
      return;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f(in[i]...);
}
// Two results: the formula returns a pair.
template <class F, class First, class Second, class... In>
RUSH_FN void tile_loop_two(const F f, int64_t n, First* first, Second* second, const In... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const auto y = f(in[i]...);
    first[i] = y.first;
    second[i] = y.second;
  }
}

using cuda::is_pair;

/// A loop for the formula that is written with vectors (vector_tiles.h) and chooses its instruction set itself, or
/// null.
template <class F, class... In>
inline constexpr std::nullptr_t kVectorTile = nullptr;

template <class F, class... In>
struct Tile {
  using Result = std::remove_cvref_t<std::invoke_result_t<const F&, In...>>;

  /// kNumber: which argument is a single number, -1 for none.
  template <int kNumber, size_t... I>
  RUSH_FN static void body(const void* formula, void* const* out, const void* const* in, int64_t n,
                           std::index_sequence<I...>) {
    const F f = *static_cast<const F*>(formula);
    if constexpr (is_pair<Result>) {
      tile_loop_two(f, n, static_cast<typename Result::first_type*>(out[0]),
                    static_cast<typename Result::second_type*>(out[1]), Array<In>{static_cast<const In*>(in[I])}...);
    } else {
      tile_loop(f, n, static_cast<Result*>(out[0]), argument<kNumber == int(I), In>(in[I])...);
    }
  }
  template <bool kIsNumber, class T>
  RUSH_FN static auto argument(const void* data) {
    if constexpr (kIsNumber)
      return Number<T>{*static_cast<const T*>(data)};
    else
      return Array<T>{static_cast<const T*>(data)};
  }
  static constexpr std::make_index_sequence<sizeof...(In)> kIns{};

  template <int kNumber>
  static void baseline(const void* f, void* const* out, const void* const* in, int64_t n) {
    body<kNumber>(f, out, in, n, kIns);
  }
#if defined(__x86_64__) && !defined(HWY_COMPILE_ONLY_STATIC)
  template <int kNumber>
  [[gnu::target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")]] static void avx2(const void* f, void* const* out,
                                                                          const void* const* in, int64_t n) {
    body<kNumber>(f, out, in, n, kIns);
  }
  template <int kNumber>
  [[gnu::target(
      "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,"
      "prefer-vector-width=512")]] static void
  avx512(const void* f, void* const* out, const void* const* in, int64_t n) {
    body<kNumber>(f, out, in, n, kIns);
  }
#else
  template <int kNumber>
  static constexpr TileFunction avx2 = baseline<kNumber>;
  template <int kNumber>
  static constexpr TileFunction avx512 = baseline<kNumber>;
#endif

  static constexpr TileKernel make() {
    int64_t grain = 32768;
    if constexpr (requires { F::kGrain; }) grain = F::kGrain;  // a slow formula may say less
    TileKernel k{{baseline<-1>, avx2<-1>, avx512<-1>}, {}, 1, sizeof...(In), {}, grain,
                 cuda::pointwise_kernel<F, In...>()};
    constexpr bool kVectors = !std::is_null_pointer_v<std::remove_cv_t<decltype(kVectorTile<F, In...>)>>;
    if constexpr (kVectors) {
#if defined(HWY_COMPILE_ONLY_STATIC)
      k.run[0] = k.run[1] = k.run[2] = kVectorTile<F, In...>;
#else  // without fused multiplication and addition the formula's own loop is more accurate
      k.run[1] = k.run[2] = kVectorTile<F, In...>;
#endif
    }
    if constexpr (sizeof...(In) == 2 && !is_pair<Result> && !kVectors) {
      k.with_number[0][0] = baseline<0>, k.with_number[0][1] = avx2<0>, k.with_number[0][2] = avx512<0>;
      k.with_number[1][0] = baseline<1>, k.with_number[1][1] = avx2<1>, k.with_number[1][2] = avx512<1>;
    }
    int at = 0;
    if constexpr (is_pair<Result>) {
      k.outs = 2;
      k.types[at++] = dtype_of<typename Result::first_type>;
      k.types[at++] = dtype_of<typename Result::second_type>;
    } else {
      k.types[at++] = dtype_of<Result>;
    }
    ((k.types[at++] = dtype_of<In>), ...);
    return k;
  }
  static constexpr TileKernel kernel = make();
};

/// out = f(in...) elementwise, with arguments taken as the types In.
template <class... In, class F, class... Tensors>
void apply(const F& f, Tensor& out, const Tensors&... in) {
  const Tensor* const tensors[] = {&out, &in...};
  run_tiles(Tile<F, In...>::kernel, &f, tensors);
}

/// Which compute types an operator has.
template <class... T>
struct Types {};
using Floating = Types<float, double>;
using Real = Types<float, double, int64_t>;
using Complex = Types<std::complex<float>, std::complex<double>>;
using FloatingOrComplex = Types<float, double, std::complex<float>, std::complex<double>>;
using Numeric = Types<float, double, int64_t, std::complex<float>, std::complex<double>>;
using Integral = Types<int64_t, bool>;
using Any = Types<float, double, int64_t, bool, std::complex<float>, std::complex<double>>;

/// Calls f.template operator()<T>() with the compute type of `t`, a bool counting as an integer unless bool is among
/// the types. Raises NotImplementedError if it is not.
template <class F, class... T>
void for_compute(Types<T...>, DType t, F&& f) {
  DType want = compute_type(t);
  if (want == kBool && !(std::is_same_v<T, bool> || ...)) want = kInt64;
  const bool found = ((want == dtype_of<T> ? (f.template operator()<T>(), true) : false) || ...);
  if (!found) raise<NotImplementedError>("not implemented for '", scalar_name(t), "'");
}

/// An integer wraps around in a narrower type: numbers weigh less in promotion than what they meet.
inline bool wraps(const Tensor& x, DType t) {
  return x.dtype() != t && x.itemsize() > int64_t(size_of(t)) && is_integral(t) && is_integral(x.dtype());
}
Tensor wrapped(const Tensor& x, DType t);

/// out = F()(in...) with all arguments in the compute type of `t`.
template <class F, class List, class... Tensors>
void map(DType t, Tensor& out, const Tensors&... in) {
  if ((wraps(in, t) || ...)) return map<F, List>(t, out, wrapped(in, t)...);
  for_compute(List{}, t, [&]<class T>() { apply<std::conditional_t<true, T, Tensors>...>(F{}, out, in...); });
}

}  // namespace rush::cpu
