// Copies between any two layouts and dtypes, and fills. Contiguous to contiguous is memcpy or one cast loop; a
// transpose goes block by block through L1, so that both sides are read and written in whole cache lines; the rest is
// the tile engine with a tile that only moves.
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/casts.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/cuda/copy.h"
#include "rushlight/parallel.h"

namespace rush::cpu {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 18;

template <int kBytes>
void move_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  std::memcpy(out[0], in[0], size_t(n * kBytes));
}

TileKernel move_kernel(DType t) {
  TileFunction move = move_tile<1>;
  switch (size_of(t)) {
    case 2:
      move = move_tile<2>;
      break;
    case 4:
      move = move_tile<4>;
      break;
    case 8:
      move = move_tile<8>;
      break;
    case 16:
      move = move_tile<16>;
      break;
    default:
      break;
  }
  return {{move, move, move}, {}, 1, 1, {t, t}, std::max<int64_t>(kGrainBytes / size_of(t), 1)};
}

/// memcpy past the cache, where whole lines are written.
void stream(char* to, const char* from, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint8_t> d;
  constexpr int64_t kLine = 64, N = std::min<int64_t>(hn::MaxLanes(d), kLine);
  int64_t i = std::min<int64_t>(-reinterpret_cast<intptr_t>(to) & (kLine - 1), n);
  std::memcpy(to, from, size_t(i));
  for (; i + kLine <= n; i += kLine)
    for (int64_t k = 0; k < kLine; k += N)
      hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(from + i + k)), d,
                 reinterpret_cast<uint8_t*>(to + i + k));
  std::memcpy(to + i, from + i, size_t(n - i));
}

/// The blocks that a transpose goes by: several lines of each row, since a row is often a page of its own. What no
/// cache holds is fetched a block ahead and written past the caches, in longer pieces.
template <class T, bool kLarge>
struct Blocks {
  static constexpr int64_t kSide = std::clamp<int64_t>(256 / sizeof(T), 16, 64);
  static constexpr int64_t kRows = kLarge ? kSide / 2 : kSide, kColumns = kLarge ? kSide * 4 : kSide;
};
constexpr int64_t kLargeBytes = int64_t{16} << 20;

/// out[i, j] = in[j, i]. Through a block in L1, as strides are often powers of two, and then the lines of a column
/// would drive each other out of the cache before they are whole.
template <class T, bool kLarge>
void transpose_block(T* out, int64_t out_stride, const T* in, int64_t in_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kRow = Blocks<T, kLarge>::kColumns + 16;  // not a power of two: rows fall on different sets
  alignas(64) T block[Blocks<T, kLarge>::kRows * kRow];
  if constexpr (sizeof(T) >= 2 && sizeof(T) <= 8) {
    HWY_NAMESPACE::transpose(in, in_stride, columns, rows, block, kRow);
  } else {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) block[i * kRow + j] = in[j * in_stride + i];
  }
  for (int64_t i = 0; i < rows; ++i) {
    char* to = reinterpret_cast<char*>(out + i * out_stride);
    const char* from = reinterpret_cast<const char*>(block + i * kRow);
    kLarge ? stream(to, from, columns * int64_t(sizeof(T))) : void(std::memcpy(to, from, size_t(columns) * sizeof(T)));
  }
}

template <class T, bool kLarge>
void transpose_by(Tensor& out, const Tensor& x, Ints x_strides, int64_t fast, int64_t slow) {
  constexpr int64_t kRows = Blocks<T, kLarge>::kRows, kColumns = Blocks<T, kLarge>::kColumns;
  const Dims& sizes = out.sizes();
  const int64_t rows = sizes[slow], columns = sizes[fast];
  const int64_t outer = out.numel() / (rows * columns), item = x.itemsize(), step = x_strides[fast] * item;
  const CastFunction cast = out.dtype() == x.dtype() ? nullptr : cast_function(out.dtype(), x.dtype());
  const int64_t row_blocks = (rows + kRows - 1) / kRows, column_blocks = (columns + kColumns - 1) / kColumns;
  // A task is a band of rows of one outer index.
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (kRows * columns * int64_t(sizeof(T))));
  parallel_for(0, outer * row_blocks, grain, [&](int64_t lo, int64_t hi) {
    alignas(64) T block[kRows * kColumns];
    for (int64_t task = lo; task < hi; ++task) {
      const int64_t row = task % row_blocks * kRows;
      int64_t rest = task / row_blocks, out_at = row * out.strides()[slow], x_at = row * x_strides[slow];
      for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
        if (d == fast || d == slow) continue;
        out_at += rest % sizes[d] * out.strides()[d];
        x_at += rest % sizes[d] * x_strides[d];
        rest /= sizes[d];
      }
      const int64_t height = std::min(kRows, rows - row);
      for (int64_t b = 0; b < column_blocks; ++b) {
        const int64_t column = b * kColumns, width = std::min(kColumns, columns - column);
        T* to = static_cast<T*>(out.data_ptr()) + out_at + column;
        const char* from = static_cast<const char*>(x.data_ptr()) + x_at * item + column * step;
        if constexpr (kLarge)
          for (int64_t j = width; j < width + std::min(kColumns, columns - column - width); ++j)
            for (int64_t i = 0; i < height * item; i += 64) __builtin_prefetch(from + j * step + i, 0, 2);
        if (!cast) {
          transpose_block<T, kLarge>(to, out.strides()[slow], reinterpret_cast<const T*>(from), x_strides[fast], height,
                                     width);
        } else {
          for (int64_t j = 0; j < width; ++j) cast(block + j * kRows, from + j * step, height);
          transpose_block<T, kLarge>(to, out.strides()[slow], block, kRows, height, width);
        }
      }
    }
    if constexpr (kLarge) hwy::FlushStream();
  });
}

/// out[i, j] = x[j, i] where both are contiguous along their last index here: `fast` is the dimension along which out
/// is, `slow` that along which x is. All other dimensions are outer.
void transpose(Tensor& out, const Tensor& x, Ints x_strides, int64_t fast, int64_t slow) {
  for_bytes(out.dtype(), [&]<class T>() {
    if (out.numel() * out.itemsize() < kLargeBytes)
      transpose_by<T, false>(out, x, x_strides, fast, slow);
    else
      transpose_by<T, true>(out, x, x_strides, fast, slow);
  });
}

/// The longest dimension with stride 1, or -1.
int64_t unit_dim(Ints sizes, Ints strides) {
  int64_t best = -1;
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d) {
    if (strides[d] == 1 && sizes[d] > 1 && (best < 0 || sizes[d] > sizes[best])) best = d;
  }
  return best;
}

}  // namespace

void copy(Tensor& out, const Tensor& x) {
  const int64_t n = out.numel();
  if (n == 0) return;
  if (!out.is_cpu() || !x.is_cpu()) return cuda::copy(out, x);
  if (out.is_contiguous() && x.is_contiguous() && x.numel() == n) {
    const int64_t to_bytes = out.itemsize(), from_bytes = x.itemsize();
    char* to = static_cast<char*>(out.data_ptr());
    const char* from = static_cast<const char*>(x.data_ptr());
    if (to == from && out.dtype() == x.dtype()) return;
    const CastFunction cast = out.dtype() == x.dtype() ? nullptr : cast_function(out.dtype(), x.dtype());
    parallel_for(0, n, kGrainBytes / std::max(to_bytes, from_bytes), [&](int64_t lo, int64_t hi) {
      if (cast)
        cast(to + lo * to_bytes, from + lo * from_bytes, hi - lo);
      else
        std::memcpy(to + lo * to_bytes, from + lo * from_bytes, size_t((hi - lo) * to_bytes));
    });
    return;
  }
  const Dims x_strides = broadcast_strides(x.sizes(), x.strides(), out.sizes());
  const int64_t fast = unit_dim(out.sizes(), out.strides()), slow = unit_dim(out.sizes(), x_strides);
  if (fast >= 0 && slow >= 0 && fast != slow && out.sizes()[fast] >= 8 && out.sizes()[slow] >= 8 &&
      out.strides()[slow] != 1 && x_strides[fast] != 1) {
    return transpose(out, x, x_strides, fast, slow);
  }
  const TileKernel kernel = move_kernel(out.dtype());
  const Tensor* const tensors[] = {&out, &x};
  run_tiles(kernel, nullptr, tensors);
}

void fill(Tensor& out, const Scalar& value) {
  if (!out.is_cpu()) return cuda::fill(out, value);
  alignas(16) char element[16];
  for_all(out.dtype(), [&]<class T>() {
    const T v = [&] {
      if constexpr (is_half_type<T>)
        return T(value.to<float>());
      else
        return value.to<T>();
    }();
    std::memcpy(element, &v, sizeof v);
  });
  if (out.is_contiguous()) {
    const int64_t bytes = out.itemsize();
    char* to = static_cast<char*>(out.data_ptr());
    parallel_for(0, out.numel(), kGrainBytes / bytes,
                 [&](int64_t lo, int64_t hi) { gather(to + lo * bytes, element, 0, hi - lo, bytes); });
    return;
  }
  const TileKernel kernel = move_kernel(out.dtype());
  const Dims still(size_t(out.dim()), 0);
  const Operand operands[] = {{out.data_ptr(), out.dtype(), out.strides().data()},
                              {element, out.dtype(), still.data()}};
  run_tiles(kernel, nullptr, out.sizes(), operands);
}

void fill(Tensor& out, const Tensor&, const Tensor& value) { copy(out, value); }

namespace {

/// out[i] = f(i), out 1-dim; f is computed in double, or in int64 for integers.
template <class F>
void fill_with(Tensor& out, F f) {
  const int64_t stride = out.dim() == 0 ? 1 : out.strides()[0];
  for_all(out.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    parallel_for(0, out.numel(), 32768, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        const auto v = f.template operator()<T>(i);
        if constexpr (is_half_type<T>)
          to[i * stride] = T(float(v));
        else
          to[i * stride] = T(v);
      }
    });
  });
}

/// A value that T can be made of: complex for complex T, int64 for integers, double otherwise.
template <class T>
auto wide(const Scalar& s) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return s.to_complex();
  else if constexpr (std::is_integral_v<T>)
    return s.to_int();
  else
    return s.to_double();
}

}  // namespace

void arange(Tensor& out, const Scalar& start, const Scalar& step) {
  if (!out.is_cpu()) return cuda::arange(out, start, step);
  fill_with(out, [&]<class T>(int64_t i) {
    if constexpr (std::is_integral_v<T>) {
      return start.to_int() + i * step.to_int();
    } else {
      const auto from = wide<T>(start), by = wide<T>(step);
      return from + by * double(i);
    }
  });
}

void linspace(Tensor& out, const Scalar& start, const Scalar& end) {
  if (!out.is_cpu()) return cuda::linspace(out, start, end);
  const int64_t n = out.numel();
  fill_with(out, [&]<class T>(int64_t i) {
    if constexpr (std::is_integral_v<T>) {
      const double from = double(start.to_int()), to = double(end.to_int());
      const double step = n > 1 ? (to - from) / double(n - 1) : 0;
      return int64_t(i < n / 2 ? from + step * double(i) : to - step * double(n - 1 - i));
    } else {
      const auto from = wide<T>(start), to = wide<T>(end);
      if (n == 1) return from;
      const auto step = (to - from) / double(n - 1);
      return i < n / 2 ? from + step * double(i) : to - step * double(n - 1 - i);
    }
  });
}

void logspace(Tensor& out, const Scalar& start, const Scalar& end, double base) {
  if (!out.is_cpu()) return cuda::logspace(out, start, end, base);
  const int64_t n = out.numel();
  fill_with(out, [&]<class T>(int64_t i) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      const auto from = start.to_complex(), to = end.to_complex();
      const auto step = n > 1 ? (to - from) / double(n - 1) : std::complex<double>(0);
      return std::pow(std::complex<double>(base), i < n / 2 ? from + step * double(i) : to - step * double(n - 1 - i));
    } else {
      const double from = start.to_double(), to = end.to_double(), step = n > 1 ? (to - from) / double(n - 1) : 0;
      return std::pow(base, i < n / 2 ? from + step * double(i) : to - step * double(n - 1 - i));
    }
  });
}

}  // namespace rush::cpu
