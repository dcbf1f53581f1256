// Copies between devices are moves of contiguous memory; layouts and dtypes change on a GPU, where the element-wise
// kernel takes any.
#include "kernels/cuda/copy.h"

#include "cuda/allocator.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cuda/creation.cuh"
#include "kernels/cuda/pointwise.h"
#include "kernels/formulas.h"
#include "rushlight/cuda.h"

namespace rush::cuda {

namespace {

using Where = Runtime::Where;

Where where(const Tensor& t) { return t.device().is_cuda() ? Where::Device : Where::Host; }

/// On one GPU, from whatever layout and dtype to whatever other.
void change(Tensor& out, const Tensor& x) {
  cpu::for_compute(cpu::Any{}, x.dtype(), [&]<class T>() {
    const formula::Identity same;
    const DType types[] = {dtype_of<T>, dtype_of<T>};
    const Tensor* const tensors[] = {&out, &x};
    run_pointwise(pointwise_kernel<formula::Identity, T>(), &same, types, 2, tensors);
  });
}

/// Memory to memory: as many elements of one dtype, which lie alike without gaps. On a stream of the source's GPU, if
/// it is on one, with which the other GPU's stream is kept in order.
void move(Tensor& out, const Tensor& x, bool non_blocking) {
  const Stream stream = current_stream(x.device().is_cuda() ? x.device().index : out.device().index);
  const bool two = where(out) == where(x) && out.device() != x.device();
  if (two) stream.wait(current_stream(out.device().index));
  runtime().copy(stream.device(), stream.handle(), out.data_ptr(), where(out), x.data_ptr(), where(x),
                 size_t(out.numel() * out.itemsize()));
  if (two) current_stream(out.device().index).wait(stream);
  if (where(out) == Where::Host && !non_blocking) stream.synchronize();
  for (const Tensor* host : {static_cast<const Tensor*>(&out), &x})
    if (where(*host) == Where::Host) record_pinned(host->data_ptr(), stream);
}

Tensor fresh(Ints sizes, DType dtype, Device device) { return rush::allocate({sizes, dtype, device, {}}); }

}  // namespace

void copy(Tensor& out, const Tensor& x, bool non_blocking) {
  if (out.numel() == 0) return;
  const bool dense = is_dense(out.sizes(), out.strides()) && Ints(out.sizes()) == Ints(x.sizes()) &&
                     Ints(out.strides()) == Ints(x.strides());
  if (out.dtype() == x.dtype() && (dense || (out.is_contiguous() && x.is_contiguous() && out.numel() == x.numel()))) {
    if (out.data_ptr() != x.data_ptr()) move(out, x, non_blocking);
    return;
  }
  if (out.device() == x.device()) return change(out, x);
  if (out.device().is_cuda() && x.numel() == 1 && x.is_cpu()) return change(out, x);
  // Where there is a choice, the source's GPU prepares what is moved, and the move is of as few bytes as can be.
  if (x.device().is_cuda()) {
    Tensor ready = x;
    if (x.dtype() != out.dtype() || !x.is_contiguous()) {
      ready = fresh(x.sizes(), out.dtype(), x.device());
      change(ready, x);
    }
    if (out.is_contiguous() && out.numel() == x.numel()) return move(out, ready, non_blocking);
    Tensor here = fresh(x.sizes(), out.dtype(), out.device());
    move(here, ready, false);
    return out.device().is_cuda() ? change(out, here) : cpu::copy(out, here);
  }
  Tensor ready = x;
  if (!x.is_contiguous()) {
    ready = fresh(x.sizes(), x.dtype(), kCPU);
    cpu::copy(ready, x);
  }
  Tensor there = fresh(x.sizes(), x.dtype(), out.device());
  move(there, ready, non_blocking);
  change(out, there);
}

void fill(Tensor& out, const Scalar& value) {
  if (out.numel() > 0) change(out, Tensor(value));
}

namespace {

/// f(Sequence) with what T needs of out filled in.
template <class F>
void sequence(Tensor& out, F&& f) {
  cpu::for_compute(cpu::Types<double, int64_t, std::complex<double>>{},
                   out.dtype() == kFloat32 || is_half(out.dtype()) ? kFloat64
                   : out.dtype() == kComplex64                     ? kComplex128
                                                                   : out.dtype(),
                   [&]<class T>() {
                     Sequence<T> s{};
                     s.out = static_cast<char*>(out.data_ptr());
                     s.stride = out.dim() == 0 ? 1 : out.strides()[0];
                     s.n = s.half = out.numel();
                     s.dtype = out.dtype();
                     f(s);
                     for_each(out.device(), s.n, s);
                   });
}

/// From both ends.
void between(Tensor& out, const Scalar& start, const Scalar& end, double base) {
  const int64_t n = out.numel();
  if (is_integral(out.dtype())) {
    Sequence<double> s{};
    s.out = static_cast<char*>(out.data_ptr());
    s.stride = out.dim() == 0 ? 1 : out.strides()[0];
    s.n = n;
    s.half = n == 1 ? 1 : n / 2;
    s.start = base != 0 ? start.to_double() : double(start.to_int());
    s.end = base != 0 ? end.to_double() : double(end.to_int());
    s.step = n > 1 ? (s.end - s.start) / double(n - 1) : 0;
    s.base = base;
    s.dtype = out.dtype();
    return for_each(out.device(), n, s);
  }
  sequence(out, [&]<class T>(Sequence<T>& s) {
    s.start = start.to<T>();
    s.end = end.to<T>();
    if (n > 1) s.step = T((s.end - s.start) / double(n - 1));
    s.half = n == 1 ? 1 : n / 2;
    s.base = base;
  });
}

}  // namespace

void arange(Tensor& out, const Scalar& start, const Scalar& step) {
  sequence(out, [&]<class T>(Sequence<T>& s) {
    s.start = start.to<T>();
    s.step = step.to<T>();
  });
}
void linspace(Tensor& out, const Scalar& start, const Scalar& end) { between(out, start, end, 0); }
void logspace(Tensor& out, const Scalar& start, const Scalar& end, double base) { between(out, start, end, base); }

}  // namespace rush::cuda
