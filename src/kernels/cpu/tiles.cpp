// The driver of the tile engine: see tiles.h. In order of speed: operands that are all as the tile wants them go to it
// whole; contiguous ones of other dtypes, and single numbers, pass through L1 buffers; the rest is walked with strides
// after dimensions were sorted and merged.
#include "kernels/cpu/tiles.h"

#include <hwy/targets.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/cpu/casts.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

namespace rush::cpu {
namespace {

int detect_simd_level() {
#if defined(__x86_64__) && !defined(HWY_COMPILE_ONLY_STATIC)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const int best = avx512 ? 2 : avx2;
  const char* wanted = std::getenv("RUSHLIGHT_CPU_CAPABILITY");
  if (!wanted) return best;
  static constexpr std::string_view names[] = {"default", "avx2", "avx512"};
  const auto level = int(std::find(names, names + 3, std::string_view(wanted)) - names);
  if (level == 3) {
    std::fprintf(stderr, "RUSHLIGHT_CPU_CAPABILITY must be default, avx2 or avx512, got '%s': not used\n", wanted);
    return best;
  }
  // Of Highway's targets the better have the lower bits.
  if (level < 2) hwy::DisableTargets(level == 1 ? HWY_AVX2 - 1 : HWY_SSE4 - 1);
  return std::min(level, best);
#elif defined(__F16C__)
  return 1;  // one set was compiled; the level only says that float16 conversions may be used
#else
  return 0;
#endif
}

constexpr int64_t kBufferBytes = 4096;
constexpr int kMaxDims = 64;
constexpr int64_t kAllArrays[kMaxOperands] = {1, 1, 1, 1, 1, 1, 1, 1};

// Below this many elements in the innermost dimension a tile spans several rows, which costs a copy into a buffer.
constexpr int64_t kShortRow = 128;

/// One operand during a run. `linear` says that element i of the iteration lies at data + i * stride.
struct Lane {
  char* data;
  DType dtype, type;  // stored and computed
  bool linear;
  int64_t stride;
  int64_t bytes;
  const int64_t* strides;
  CastFunction cast;  // to the compute type for arguments, from it for results; null if they are the same
};

/// The sizes after sorting and merging, and the operands.
struct Plan {
  const TileKernel* kernel;
  const void* formula;
  int count;
  int dims;
  int64_t numel;
  int64_t tile;  // elements that fit a buffer
  const int64_t* sizes;
  Lane lanes[kMaxOperands];
};

/// Buffers of one thread. Not initialised: only what is used is touched.
struct Buffers {
  alignas(64) char computed[kMaxOperands][kBufferBytes];
  alignas(64) char stored[kMaxOperands][kBufferBytes];
  const void* filled_from[kMaxOperands] = {};  // a computed buffer that holds this one element...
  int64_t filled[kMaxOperands] = {};           // ...so often
};

/// Calls piece(offset in elements of the lane, its stride, first element of the tile, count) for runs of the tile.
template <class Piece>
void for_pieces(const Plan& plan, const Lane& lane, int64_t begin, int64_t n, const int64_t* index, Piece piece) {
  if (lane.linear) {
    piece(begin * lane.stride, lane.stride, int64_t{0}, n);
    return;
  }
  const int last = plan.dims - 1;
  int64_t at[kMaxDims];
  int64_t row = 0;
  for (int d = 0; d < last; ++d) {
    at[d] = index[d];
    row += index[d] * lane.strides[d];
  }
  int64_t column = index[last];
  const int64_t stride = lane.strides[last], width = plan.sizes[last];
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(n - done, width - column);
    piece(row + column * stride, stride, done, count);
    done += count;
    column = 0;
    for (int d = last - 1; d >= 0; --d) {
      row += lane.strides[d];
      if (++at[d] < plan.sizes[d]) break;
      row -= lane.strides[d] * plan.sizes[d];
      at[d] = 0;
    }
  }
}

/// The argument's next n elements as the tile wants them: where they lie, or in a buffer.
const void* load(const Plan& plan, int k, int64_t begin, int64_t n, const int64_t* index, bool one_row, Buffers& b) {
  const Lane& lane = plan.lanes[k];
  int64_t offset = 0, stride = 0;
  const bool single = lane.linear || one_row;
  if (single) {
    for_pieces(plan, lane, begin, n, index, [&](int64_t o, int64_t s, int64_t, int64_t) { offset = o, stride = s; });
    const char* from = lane.data + offset * lane.bytes;
    if (stride == 1) {
      if (!lane.cast) return from;
      b.filled_from[k] = nullptr;
      lane.cast(b.computed[k], from, n);
      return b.computed[k];
    }
    if (stride == 0) {
      if (b.filled_from[k] == from && b.filled[k] >= n) return b.computed[k];
      const void* one = from;
      alignas(16) char converted[16];
      if (lane.cast) {
        lane.cast(converted, from, 1);
        one = converted;
      }
      gather(b.computed[k], one, 0, n, size_of(lane.type));
      b.filled_from[k] = from;
      b.filled[k] = n;
      return b.computed[k];
    }
  }
  b.filled_from[k] = nullptr;
  char* into = lane.cast ? b.stored[k] : b.computed[k];
  for_pieces(plan, lane, begin, n, index, [&](int64_t o, int64_t s, int64_t at, int64_t count) {
    gather(into + at * lane.bytes, lane.data + o * lane.bytes, s, count, lane.bytes);
  });
  if (lane.cast) lane.cast(b.computed[k], into, n);
  return b.computed[k];
}

/// Where the result's next n elements lie if the tile may write them there at once, else null.
void* place(const Plan& plan, int k, int64_t begin, const int64_t* index, bool one_row) {
  const Lane& lane = plan.lanes[k];
  if (lane.cast) return nullptr;
  if (lane.linear) return lane.stride == 1 ? lane.data + begin * lane.bytes : nullptr;
  if (!one_row || lane.strides[plan.dims - 1] != 1) return nullptr;
  int64_t offset = 0;
  for (int d = 0; d < plan.dims; ++d) offset += index[d] * lane.strides[d];
  return lane.data + offset * lane.bytes;
}

void store(const Plan& plan, int k, int64_t begin, int64_t n, const int64_t* index, Buffers& b) {
  const Lane& lane = plan.lanes[k];
  const char* from = b.computed[k];
  if (lane.cast) {
    if (lane.linear && lane.stride == 1) return lane.cast(lane.data + begin * lane.bytes, from, n);
    lane.cast(b.stored[k], from, n);
    from = b.stored[k];
  }
  for_pieces(plan, lane, begin, n, index, [&](int64_t o, int64_t s, int64_t at, int64_t count) {
    scatter(lane.data + o * lane.bytes, s, from + at * lane.bytes, count, lane.bytes);
  });
}

void run_range(const Plan& plan, int64_t begin, int64_t end) {
  Buffers b;
  const TileKernel& kernel = *plan.kernel;
  const TileFunction run = kernel.run[simd_level];
  const int last = plan.dims - 1;
  const bool long_rows = plan.sizes[last] >= kShortRow;
  bool all_linear = true;
  for (int k = 0; k < plan.count; ++k) all_linear &= plan.lanes[k].linear;
  int64_t index[kMaxDims];
  for (int64_t i = begin, n; i < end; i += n) {
    n = std::min(plan.tile, end - i);
    bool one_row = false;
    if (!all_linear) {
      int64_t rest = i;
      for (int d = last; d > 0; --d) {
        index[d] = rest % plan.sizes[d];
        rest /= plan.sizes[d];
      }
      index[0] = rest;
      if (long_rows) n = std::min(n, plan.sizes[last] - index[last]);
      one_row = n <= plan.sizes[last] - index[last];
    }
    void* out[2];
    const void* in[kMaxOperands];
    for (int k = 0; k < kernel.outs; ++k) {
      out[k] = place(plan, k, i, index, one_row);
      if (!out[k]) out[k] = b.computed[k];
    }
    for (int k = kernel.outs; k < plan.count; ++k) in[k - kernel.outs] = load(plan, k, i, n, index, one_row, b);
    run(plan.formula, out, in, n);
    for (int k = 0; k < kernel.outs; ++k) {
      if (out[k] == b.computed[k]) store(plan, k, i, n, index, b);
    }
  }
}

int64_t tile_size(const TileKernel& kernel, const Lane* lanes, int count) {
  int64_t widest = 1;
  for (int k = 0; k < count; ++k) widest = std::max({widest, size_of(kernel.types[k]), lanes[k].bytes});
  return kBufferBytes / widest;
}

Lane make_lane(const TileKernel& kernel, int k, void* data, DType dtype) {
  const DType type = kernel.types[k];
  Lane lane{static_cast<char*>(data), dtype, type, true, 0, size_of(dtype), nullptr, nullptr};
  if (dtype != type) lane.cast = k < kernel.outs ? cast_function(dtype, type) : cast_function(type, dtype);
  return lane;
}

/// Everything lies as the tile wants it; `step` is 0 for a number and 1 for an array. Writing large results around the
/// cache was tried, and was slower than letting them through.
void run_plain(const TileKernel& kernel, TileFunction run, const void* formula, int64_t n, void* const* data,
               const int64_t* step) {
  if (n <= kernel.grain) [[likely]] {
    run(formula, data, data + kernel.outs, n);
    return;
  }
  parallel_for(0, n, kernel.grain, [&](int64_t lo, int64_t hi) {
    void* at[kMaxOperands];
    for (int k = 0; k < kernel.outs + kernel.ins; ++k) {
      at[k] = static_cast<char*>(data[k]) + lo * step[k] * size_of(kernel.types[k]);
    }
    run(formula, at, at + kernel.outs, hi - lo);
  });
}

}  // namespace

int simd_level = detect_simd_level();

Tensor wrapped(const Tensor& x, DType t) { return wraps(x, t) ? rush::cast(x, t) : x; }

void run_tiles(const TileKernel& kernel, const void* formula, Ints sizes, const Operand* operands) {
  const int count = kernel.outs + kernel.ins;
  assume(sizes.size() <= kMaxDims && count <= kMaxOperands, "too many dimensions or operands");
  // Sort dimensions by the results' strides, then the arguments', so that the innermost is the densest. Sizes of 1 go.
  int order[kMaxDims];
  int dims = 0;
  int64_t numel = 1;
  for (int d = 0; d < int(sizes.size()); ++d) {
    numel *= sizes[d];
    if (sizes[d] == 1) continue;
    int at = dims++;
    const auto before = [&](int a, int c) {  // dimension a goes outside of c
      for (int k = 0; k < count; ++k) {
        const int64_t s = std::abs(operands[k].strides[a]), t = std::abs(operands[k].strides[c]);
        if (s != t && (k < kernel.outs || (s != 0 && t != 0))) return s > t;
      }
      return a < c;
    };
    for (; at > 0 && before(d, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = d;
  }
  if (numel == 0) return;
  // Merge neighbours that every operand walks through evenly.
  int64_t merged[kMaxDims], strides[kMaxOperands][kMaxDims];
  int top = 0;
  for (int i = 0; i < dims; ++i) {
    const int d = order[i];
    bool joins = top > 0;
    for (int k = 0; joins && k < count; ++k) joins = strides[k][top - 1] == operands[k].strides[d] * sizes[d];
    if (!joins) merged[top++] = 1;
    merged[top - 1] *= sizes[d];
    for (int k = 0; k < count; ++k) strides[k][top - 1] = operands[k].strides[d];
  }
  if (top == 0) {
    merged[top++] = 1;
    for (int k = 0; k < count; ++k) strides[k][0] = 0;
    for (int k = 0; k < kernel.outs; ++k) strides[k][0] = 1;
  }
  Plan plan{&kernel, formula, count, top, numel, 0, merged, {}};
  bool plain = true;
  void* data[kMaxOperands];
  for (int k = 0; k < count; ++k) {
    Lane& lane = plan.lanes[k] = make_lane(kernel, k, operands[k].data, operands[k].dtype);
    lane.strides = strides[k];
    lane.stride = strides[k][top - 1];
    for (int d = 0; d + 1 < top; ++d) lane.linear &= strides[k][d] == strides[k][d + 1] * merged[d + 1];
    plain &= lane.linear && lane.stride == 1 && !lane.cast;
    data[k] = lane.data;
  }
  if (plain) return run_plain(kernel, kernel.run[simd_level], formula, numel, data, kAllArrays);
  plan.tile = tile_size(kernel, plan.lanes, count);
  parallel_for(0, numel, kernel.grain, [&](int64_t lo, int64_t hi) { run_range(plan, lo, hi); });
}

void run_tiles(const TileKernel& kernel, const void* formula, const Tensor* const* tensors) {
  const int count = kernel.outs + kernel.ins;
  const TensorImpl& first = *tensors[0]->impl();
  const int64_t numel = first.numel;
  if (numel == 0) return;
  if (first.device.is_cuda()) return cuda::run_pointwise(kernel.cuda, formula, kernel.types, count, tensors);
  // Contiguous operands with as many elements as the result lie in its order, whatever their sizes of 1 are.
  bool plain = true, simple = true;
  int numbers = 0;
  void* data[kMaxOperands];
  int64_t step[kMaxOperands];
  for (int k = 0; k < count; ++k) {
    const TensorImpl& t = *tensors[k]->impl();
    const bool whole = t.numel == numel && t.contiguous, number = !whole && t.numel == 1 && k >= kernel.outs;
    data[k] = tensors[k]->data_ptr();
    step[k] = whole;
    numbers += number;
    simple &= whole || number;
    plain &= number || (whole && t.dtype == kernel.types[k]);
  }
  if (plain && numbers == 0) [[likely]] {
    return run_plain(kernel, kernel.run[simd_level], formula, numel, data, kAllArrays);
  }
  if (plain && simple && numbers == 1 && kernel.with_number[0][0]) {
    const int k = step[kernel.outs] == 0 ? kernel.outs : kernel.outs + 1;
    alignas(16) char converted[16];
    if (const DType dtype = tensors[k]->dtype(); dtype != kernel.types[k]) {
      cast_function(kernel.types[k], dtype)(converted, data[k], 1);
      data[k] = converted;
    }
    return run_plain(kernel, kernel.with_number[k - kernel.outs][simd_level], formula, numel, data, step);
  }
  if (simple) {
    const int64_t sizes[1] = {numel};
    Plan plan{&kernel, formula, count, 1, numel, 0, sizes, {}};
    for (int k = 0; k < count; ++k) {
      plan.lanes[k] = make_lane(kernel, k, data[k], tensors[k]->dtype());
      plan.lanes[k].stride = step[k];
    }
    plan.tile = tile_size(kernel, plan.lanes, count);
    parallel_for(0, numel, kernel.grain, [&](int64_t lo, int64_t hi) { run_range(plan, lo, hi); });
    return;
  }
  Dims strides[kMaxOperands];
  Operand operands[kMaxOperands];
  for (int k = 0; k < count; ++k) {
    strides[k] = broadcast_strides(tensors[k]->sizes(), tensors[k]->strides(), first.sizes);
    operands[k] = {data[k], tensors[k]->dtype(), strides[k].data()};
  }
  run_tiles(kernel, formula, first.sizes, operands);
}

}  // namespace rush::cpu
