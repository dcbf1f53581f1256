// Launches of Fourier transforms: the dimension is made the last one, and lines go through passes between two buffers.
#include "kernels/cuda/fft.cuh"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

/// Beyond it a pass of this radix costs more than the detour.
constexpr int64_t kMaxRadix = 64;

template <class T>
std::complex<T>* numbers(const Tensor& t) {
  return t.data<std::complex<T>>();
}

template <class T>
Tensor roots_of(const Tensor& like, int64_t n) {
  const Tensor roots = allocate_like(like, {n}, like.dtype());
  for_each(like.device(), n, Roots<T>{numbers<T>(roots), n});
  return roots;
}

template <class T>
Tensor transformed(Tensor lines, double factor, bool forward);

template <class T>
Tensor by_convolution(const Tensor& lines, double factor, bool forward) {
  const int64_t n = lines.sizes()[1], count = lines.sizes()[0];
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const Device device = lines.device();
  const Tensor roots = roots_of<T>(lines, 2 * n);
  Tensor padded = allocate_like(lines, {count, m}, lines.dtype()), filter = allocate_like(lines, {1, m}, lines.dtype());
  for_each(device, count * m, ChirpIn<T>{numbers<T>(padded), numbers<T>(lines), numbers<T>(roots), n, m, forward});
  for_each(device, m, ChirpFilter<T>{numbers<T>(filter), numbers<T>(roots), n, m, forward});
  padded = transformed<T>(padded, 1, true);
  filter = transformed<T>(filter, 1, true);
  for_each(device, count * m, Filter<T>{numbers<T>(padded), numbers<T>(filter), m});
  padded = transformed<T>(padded, 1 / double(m), false);
  const Tensor out = allocate_like(lines, {count, n}, lines.dtype());
  for_each(device, count * n,
           ChirpOut<T>{numbers<T>(out), numbers<T>(padded), numbers<T>(roots), n, m, forward, T(factor)});
  return out;
}

/// Of contiguous lines (count, n), whose memory is left as it is.
template <class T>
Tensor transformed(Tensor lines, double factor, bool forward) {
  const int64_t n = lines.sizes()[1];
  std::vector<int64_t> radices;
  int64_t rest = n;
  for (int64_t r = 4; rest > 1; r = r == 4 ? 2 : r == 3 ? 5 : r + 1) {
    while (rest % r == 0) {
      radices.push_back(r);
      rest /= r;
    }
    if (rest > 1 && r > kMaxRadix) return by_convolution<T>(lines, factor, forward);
  }
  if (radices.empty()) radices.push_back(1);
  const Tensor roots = roots_of<T>(lines, n);
  Tensor from = lines, spare;
  for (int64_t i = 0, done = 1; i < int64_t(radices.size()); done *= radices[size_t(i++)]) {
    const bool last = i + 1 == int64_t(radices.size());
    const Tensor to = spare.defined() ? spare : allocate_like(lines, lines.sizes(), lines.dtype());
    for_each(lines.device(), lines.numel(),
             FourierPass<T>{numbers<T>(to), numbers<T>(from), numbers<T>(roots), n, radices[size_t(i)], done, forward,
                            last ? T(factor) : T(1)});
    spare = i ? from : Tensor();
    from = to;
  }
  return from;
}

Tensor last(const Tensor& x, int64_t dim) { return x.dim() ? transpose(x, dim, -1) : reshape(x, {1}); }

/// Complex `x`, its dimension the last one, to the same sizes.
Tensor transformed(const Tensor& x, double factor, bool forward) {
  const Tensor lines = reshape(contiguous(x), {-1, x.sizes().back()});
  return reshape(x.dtype() == kComplex128 ? transformed<double>(lines, factor, forward)
                                          : transformed<float>(lines, factor, forward),
                 x.sizes());
}

void put(Tensor& out, int64_t dim, const Tensor& result) {
  Tensor to = last(out, dim);
  copy(to, result, true);
}

}  // namespace

void fft_c2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (out.numel()) put(out, dim, transformed(last(x, dim), factor, forward));
}

void fft_r2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (out.numel() == 0) return;
  const Tensor all = transformed(cast(last(x, dim), out.dtype()), factor, forward);
  put(out, dim, narrow(all, -1, 0, last(out, dim).sizes().back()));
}

void fft_c2r(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (out.numel() == 0) return;
  const Tensor half = contiguous(last(x, dim));
  Dims sizes = half.sizes();
  const int64_t n = last(out, dim).sizes().back();
  sizes[sizes.size() - 1] = n;
  const Tensor full = allocate_like(half, sizes, half.dtype());
  const auto go = [&]<class T>() {
    for_each(out.device(), full.numel(), Mirror<T>{numbers<T>(full), numbers<T>(half), n});
  };
  half.dtype() == kComplex128 ? go.template operator()<double>() : go.template operator()<float>();
  put(out, dim, real(transformed(full, factor, forward)));
}

}  // namespace rush::cuda
