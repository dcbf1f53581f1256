// Joining, padding, flipping and unfolding: elements move, none but the overlaps of col2im are computed on.
#include "kernels/cpu/joining.h"

#include "kernels/cuda/kernels.h"

#include <cstring>
#include <optional>

#include "kernels/cpu/casts.h"
#include "kernels/cpu/pointwise.h"
#include "rushlight/ops.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {
constexpr int64_t kGrainBytes = int64_t{1} << 17;

/// The distance between the runs of memory that x is from dimension `dim` on; none if it isn't runs at one distance.
std::optional<int64_t> run_distance(const Tensor& x, int64_t dim) {
  int64_t run = 1, distance = 0, rows = 1;
  for (int64_t d = x.dim() - 1; d >= 0; --d) {
    const int64_t size = x.sizes()[d], stride = x.strides()[d];
    if (size == 1) continue;
    if (d < dim && rows == 1) distance = stride;
    if (stride != (d >= dim ? run : distance * rows)) return {};
    (d >= dim ? run : rows) *= size;
  }
  return distance;
}

/// `rows` runs of `bytes` bytes, which lie at a distance in both.
void copy_runs(char* to, int64_t to_distance, const char* from, int64_t distance, int64_t bytes, int64_t rows) {
  const auto each = [=](auto copy) {
    for (int64_t i = 0; i < rows; ++i) copy(to + i * to_distance, from + i * distance);
  };
  switch (bytes) {
    case 2:
      return each([](char* a, const char* b) { std::memcpy(a, b, 2); });
    case 4:
      return each([](char* a, const char* b) { std::memcpy(a, b, 4); });
    case 8:
      return each([](char* a, const char* b) { std::memcpy(a, b, 8); });
    default:
      return each([bytes](char* a, const char* b) { copy_bytes(a, b, bytes); });
  }
}
}  // namespace

void join(Tensor& out, Tensors tensors, int64_t dim, bool stacked) {
  if (!out.is_cpu()) return cuda::join(out, tensors, dim, stacked);
  // Seen from outside `dim`, each tensor is `rows` runs of memory, which lie in turn in each row of the result.
  const Ints sizes = out.sizes();
  const int64_t rows = product(sizes.slice(0, size_t(dim)));
  int64_t inner = 1;
  for (size_t d = size_t(dim) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  struct Part {
    const char* data;
    int64_t bytes, at, distance;
  };
  std::vector<Part> parts;
  parts.reserve(tensors.size());
  int64_t at = 0, position = 0;
  for (const Tensor& t : tensors) {
    if (!stacked && t.dim() == 1 && t.numel() == 0) continue;
    const int64_t length = stacked ? 1 : t.sizes()[dim], bytes = length * inner * out.itemsize();
    const std::optional<int64_t> distance = t.dtype() == out.dtype() ? run_distance(t, dim) : std::nullopt;
    if (distance && t.numel() > 0) {
      parts.push_back({static_cast<const char*>(t.data_ptr()), bytes, at, *distance * out.itemsize()});
    } else if (t.numel() > 0) {
      Dims window = sizes, strides = out.strides();
      window[dim] = length;
      int64_t offset = out.storage_offset() + position * strides[dim];
      if (stacked) {
        window.erase(size_t(dim));
        strides.erase(size_t(dim));
      }
      Tensor part = alias(out, window, strides, offset);
      copy(part, t);
    }
    at += bytes;
    position += length;
  }
  if (at == 0 || rows == 0 || parts.empty()) return;
  char* to = static_cast<char*>(out.data_ptr());
  if (rows >= int64_t(parts.size())) {  // by bands of rows that stay in L1
    const int64_t band = std::max<int64_t>(16384 / at, 1);
    parallel_for(0, rows, std::max<int64_t>(kGrainBytes / at, 1), [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; i += band)
        for (const Part& p : parts)
          copy_runs(to + i * at + p.at, at, p.data + i * p.distance, p.distance, p.bytes, std::min(band, hi - i));
    });
    return;
  }
  parallel_for(0, rows * int64_t(parts.size()), std::max<int64_t>(kGrainBytes * int64_t(parts.size()) / at, 1),
               [&](int64_t lo, int64_t hi) {
                 const int64_t n = int64_t(parts.size());
                 for (int64_t i = lo; i < hi; ++i) {
                   const Part& p = parts[size_t(i % n)];
                   copy_bytes(to + i / n * at + p.at, p.data + i / n * p.distance, p.bytes);
                 }
               });
}

void constant_pad(Tensor& out, const Tensor& x, Ints pad, Scalar value) {
  Dims sizes = out.sizes();
  int64_t to = out.storage_offset(), from = x.storage_offset();
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    to += std::max<int64_t>(before, 0) * out.strides()[d];
    from += std::max<int64_t>(-before, 0) * x.strides()[d];
    sizes[d] -= std::max<int64_t>(before, 0) + std::max<int64_t>(after, 0);
  }
  if (product(sizes) != out.numel()) fill(out, value);
  for (int64_t n : sizes)
    if (n <= 0) return;
  Tensor window = alias(out, sizes, out.strides(), to);
  copy(window, alias(x, sizes, x.strides(), from));
}

void flip(Tensor& out, const Tensor& x, const Dims& dims) {
  if (!out.is_cpu()) return cuda::flip(out, x, dims);
  if (x.numel() == 0) return;
  const Tensor from = contiguous(x.detach());
  const Dims& sizes = out.sizes();
  const auto is_flipped = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  int64_t ndim = x.dim(), run = 1;  // elements that stay together
  while (ndim > 0 && !is_flipped(ndim - 1)) run *= sizes[--ndim];
  if (ndim == 0) return copy(out, x);
  const int64_t last = sizes[ndim - 1], lines = out.numel() / run / last;
  for_bytes(x.dtype(), [&]<class T>() {
    const T* source = from.data<T>();
    T* target = out.data<T>();
    parallel_for(0, lines, std::max<int64_t>(kGrainBytes / (last * run * int64_t(sizeof(T))), 1),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t line = lo; line < hi; ++line) {
                     int64_t rest = line, mirrored = 0, step = 1;
                     for (int64_t d = ndim - 1; d-- > 0; rest /= sizes[d], step *= sizes[d]) {
                       const int64_t i = rest % sizes[d];
                       mirrored += (is_flipped(d) ? sizes[d] - 1 - i : i) * step;
                     }
                     const T* in = source + mirrored * last * run;
                     T* at = target + line * last * run;
                     if (run == 1)
                       for (int64_t i = 0; i < last; ++i) at[i] = in[last - 1 - i];
                     else
                       for (int64_t i = 0; i < last; ++i) std::copy_n(in + (last - 1 - i) * run, run, at + i * run);
                   }
                 });
  });
}

namespace {

/// Calls f(column, pixel, n) for each row of the places where kernel element (i, j) falls into the plane: n places from
/// `column` on, whose pixels are `stride` apart.
template <class F>
void for_rows(const Sliding& w, int64_t i, int64_t j, F&& f) {
  const int64_t down = w.places(0), across = w.places(1);
  const int64_t x0 = j * w.dilation[1] - w.padding[1], step = w.stride[1];
  const int64_t first = std::min(across, x0 >= 0 ? 0 : (-x0 + step - 1) / step);
  const int64_t end = x0 >= w.columns ? first : std::min(across, (w.columns - 1 - x0) / step + 1);
  for (int64_t a = 0; a < down; ++a) {
    const int64_t y = a * w.stride[0] + i * w.dilation[0] - w.padding[0];
    if (y < 0 || y >= w.rows || end <= first) continue;
    f(a * across + first, y * w.columns + x0 + first * step, end - first);
  }
}

}  // namespace

void im2col(Tensor& out, const Tensor& x, const Sliding& w) {
  if (!out.is_cpu()) return cuda::im2col(out, x, w);
  const int64_t area = w.kernel[0] * w.kernel[1], columns = w.places(0) * w.places(1), plane = w.rows * w.columns;
  const int64_t lines = columns ? out.numel() / columns : 0;
  for_bytes(x.dtype(), [&]<class T>() {
    const T* in = x.data<T>();
    T* to = out.data<T>();
    parallel_for(0, lines, std::max<int64_t>(16384 / std::max<int64_t>(columns, 1), 1), [&](int64_t lo, int64_t hi) {
      for (int64_t line = lo; line < hi; ++line) {
        const int64_t k = line % area;
        const T* from = in + line / area * plane;
        T* row = to + line * columns;
        std::fill_n(row, columns, T{});
        for_rows(w, k / w.kernel[1], k % w.kernel[1], [&](int64_t column, int64_t pixel, int64_t n) {
          for (int64_t c = 0; c < n; ++c) row[column + c] = from[pixel + c * w.stride[1]];
        });
      }
    });
  });
}

void col2im(Tensor& out, const Tensor& x, const Sliding& w) {
  if (!out.is_cpu()) return cuda::col2im(out, x, w);
  const int64_t area = w.kernel[0] * w.kernel[1], columns = w.places(0) * w.places(1), plane = w.rows * w.columns;
  const int64_t planes = plane ? out.numel() / plane : 0;
  for_all(x.dtype(), [&]<class T>() {
    const T* in = x.data<T>();
    T* to = out.data<T>();
    using Sum = std::conditional_t<is_half(dtype_of<T>), float, T>;
    parallel_for(0, planes, std::max<int64_t>(16384 / std::max<int64_t>(columns * area, 1), 1),
                 [&](int64_t lo, int64_t hi) {
                   std::vector<std::conditional_t<std::is_same_v<Sum, bool>, uint8_t, Sum>> sums(size_t(plane), 0);
                   for (int64_t p = lo; p < hi; ++p) {
                     std::fill(sums.begin(), sums.end(), 0);
                     for (int64_t k = 0; k < area; ++k) {
                       const T* row = in + (p * area + k) * columns;
                       for_rows(w, k / w.kernel[1], k % w.kernel[1], [&](int64_t column, int64_t pixel, int64_t n) {
                         for (int64_t c = 0; c < n; ++c) sums[size_t(pixel + c * w.stride[1])] += Sum(row[column + c]);
                       });
                     }
                     for (int64_t i = 0; i < plane; ++i) to[p * plane + i] = T(sums[size_t(i)]);
                   }
                 });
  });
}

}  // namespace rush::cpu
