// Pooling by dtype, over pool.h.
#include "kernels/cpu/pooling.h"

#include "kernels/cuda/kernels.h"

#include "kernels/cpu/pointwise.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

Tensor packed(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor copied = allocate({x.sizes(), x.dtype()});
  copy(copied, x);
  return copied;
}

template <class F>
void for_pooled(DType t, F&& f) {
  for_real(t, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) f.template operator()<T>();
  });
}

int64_t elements(const Extent& e) { return e[0] * e[1] * e[2]; }

/// Indices come back for the gradient, and who has them may have written to them.
void check_inside(const Tensor& indices, int64_t size) {
  const int64_t* at = indices.data<int64_t>();
  bool outside = false;
  for (int64_t i = 0; i < indices.numel(); ++i) outside |= uint64_t(at[i]) >= uint64_t(size);
  check(!outside, "an index is out of range of the ", size, " elements of a plane");
}

/// The start of each window along one dimension: evenly spaced ones, shifted by the sample.
template <class T>
std::vector<int64_t> window_starts(T sample, int64_t in, int64_t out, int64_t kernel) {
  std::vector<int64_t> starts(static_cast<size_t>(out));
  if (out <= 0) return starts;
  const T alpha = out > 1 ? T(in - kernel) / T(out - 1) : T(0);
  for (int64_t i = 0; i + 1 < out; ++i) {
    const T at = std::trunc((T(i) + sample) * alpha) - std::trunc(sample * alpha);
    starts[size_t(i)] = at > 0 ? int64_t(std::min(at, T(in - kernel))) : 0;  // whatever the sample is
  }
  starts[size_t(out) - 1] = in - kernel;
  return starts;
}

}  // namespace

Extent spatial_extent(const Tensor& x, size_t spatial) {
  return extent(std::span<const int64_t>(x.sizes().end() - spatial, spatial), 1);
}

int64_t planes_of(const Tensor& x, size_t spatial) {
  return product(Ints(x.sizes()).slice(0, size_t(x.dim()) - spatial));
}

void max_pool(Tensor& values, Tensor* indices, const Pooling& pool, const Tensor& x) {
  if (!values.is_cpu()) return cuda::max_pool(values, indices, pool, x);
  const Tensor in = packed(x);
  for_pooled(x.dtype(), [&]<class T>() {
    max_pool<T>(pool, in.data<T>(), values.data<T>(), indices ? indices->data<int64_t>() : nullptr);
  });
}

void avg_pool(Tensor& out, const Pooling& pool, bool count_include_pad, int64_t divisor_override, const Tensor& x) {
  if (!out.is_cpu()) return cuda::avg_pool(out, pool, count_include_pad, divisor_override, x);
  const Tensor in = packed(x);
  for_floating(x.dtype(),
               [&]<class T>() { avg_pool<T>(pool, count_include_pad, divisor_override, in.data<T>(), out.data<T>()); });
}

void avg_pool_backward(Tensor& out, const Pooling& pool, bool count_include_pad, int64_t divisor_override,
                       const Tensor& grad) {
  if (!out.is_cpu()) return cuda::avg_pool_backward(out, pool, count_include_pad, divisor_override, grad);
  const Tensor g = packed(grad);
  for_floating(grad.dtype(), [&]<class T>() {
    avg_pool_backward<T>(pool, count_include_pad, divisor_override, g.data<T>(), out.data<T>());
  });
}

void fractional_max_pool(Tensor& values, Tensor& indices, const Pooling& pool, const Tensor& x, const Tensor& samples) {
  if (!values.is_cpu()) return cuda::fractional_max_pool(values, indices, pool, x, samples);
  const Tensor in = packed(x), drawn = packed(samples);
  const size_t dims = size_t(samples.sizes().back());
  for_floating(x.dtype(), [&]<class T>() {
    const int64_t in_size = elements(pool.input), out_size = elements(pool.output);
    parallel_for(0, pool.planes, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t p = lo; p < hi; ++p) {
        std::array<std::vector<int64_t>, 3> starts;
        for (size_t d = 0; d < 3; ++d) {
          // PyTorch's order: width, height for planes, but depth, height, width for volumes. The depth of a plane is 1.
          const size_t which = dims == 3 ? d : 2 - d;
          const T sample = which < dims ? drawn.data<T>()[p * int64_t(dims) + int64_t(which)] : T(0);
          starts[d] = window_starts(compute_t<T>(sample), pool.input[d], pool.output[d], pool.kernel[d]);
        }
        const T* plane = in.data<T>() + p * in_size;
        int64_t at = p * out_size;
        for (int64_t i : starts[0])
          for (int64_t j : starts[1])
            for (int64_t k : starts[2]) {
              int64_t best = (i * pool.input[1] + j) * pool.input[2] + k;
              for (int64_t a = i; a < i + pool.kernel[0]; ++a)
                for (int64_t b = j; b < j + pool.kernel[1]; ++b)
                  for (int64_t c = k; c < k + pool.kernel[2]; ++c) {
                    const int64_t here = (a * pool.input[1] + b) * pool.input[2] + c;
                    const auto v = compute_t<T>(plane[here]), most = compute_t<T>(plane[best]);
                    if (v > most || v != v) best = here;
                  }
              values.data<T>()[at] = plane[best];
              indices.data<int64_t>()[at++] = best;
            }
      }
    });
  });
}

void pool_scatter(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  if (!out.is_cpu()) return cuda::pool_scatter(out, x, indices, spatial);
  const Tensor in = packed(x), at = packed(indices);
  check_inside(at, elements(spatial_extent(out, spatial)));
  for_floating(x.dtype(), [&]<class T>() {
    max_pool_backward<T>(planes_of(x, spatial), elements(spatial_extent(out, spatial)),
                         elements(spatial_extent(x, spatial)), in.data<T>(), at.data<int64_t>(), out.data<T>());
  });
}

void max_unpool(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  if (!out.is_cpu()) return cuda::max_unpool(out, x, indices, spatial);
  const Tensor in = packed(x), where = packed(indices);
  const int64_t from = elements(spatial_extent(x, spatial)), to = elements(spatial_extent(out, spatial));
  fill(out, Scalar(0));
  for_pooled(x.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < in.numel(); ++i) {
      const int64_t index = where.data<int64_t>()[i];
      check(index >= 0 && index < to, "Found an invalid max index: ", index, " (output volumes are of size ",
            Ints(out.sizes()).slice(size_t(out.dim()) - spatial, spatial), ")");
      out.data<T>()[i / from * to + index] = in.data<T>()[i];
    }
  });
}

void pool_gather(Tensor& out, const Tensor& x, const Tensor& indices, size_t spatial) {
  if (!out.is_cpu()) return cuda::pool_gather(out, x, indices, spatial);
  const Tensor in = packed(x), where = packed(indices);
  const int64_t from = elements(spatial_extent(x, spatial)), to = elements(spatial_extent(indices, spatial));
  check_inside(where, from);
  for_pooled(x.dtype(), [&]<class T>() {
    parallel_for(0, out.numel(), 1 << 14, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) out.data<T>()[i] = in.data<T>()[i / to * from + where.data<int64_t>()[i]];
    });
  });
}

}  // namespace rush::cpu
