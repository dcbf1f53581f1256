// Launches of losses. A target out of range is reported as a device assert.
#include "kernels/cuda/losses.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

/// Targets contiguous on the input's device, and how the input divides.
struct Targets {
  Tensor held;
  Classes classes;
  int64_t positions;
  Targets(const Tensor& input, const Tensor& target, int64_t ignore_index) : held(contiguous(target)) {
    const int64_t dim = input.dim() == 1 ? 0 : 1;
    classes = {array_of(held), input.sizes()[dim], 1, ignore_index, index_check(input.device().index)};
    for (int64_t d = dim + 1; d < input.dim(); ++d) classes.inner *= input.sizes()[d];
    positions = held.numel();
  }
};

template <class F>
void for_precision(DType t, F&& f) {
  t == kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}
template <class F>
void with_complex(DType t, F&& f) {
  if (t == kComplex64) return f.template operator()<std::complex<float>>();
  if (t == kComplex128) return f.template operator()<std::complex<double>>();
  for_precision(t, f);
}

Tensor expanded(const Tensor& x, Ints sizes) { return contiguous(Ints(x.sizes()) == sizes ? x : expand(x, sizes)); }

}  // namespace

void pair_loss(Tensor& out, const Tensor& a, const Tensor& b, cpu::PairLoss kind, double width, bool reduce,
               double scale) {
  const Dims sizes = reduce ? broadcast(a.sizes(), b.sizes()) : out.sizes();
  const DType t = reduce && is_half(out.dtype()) ? kFloat32 : out.dtype();
  const Tensor x = expanded(a, sizes), y = expanded(b, sizes);
  Tensor losses = reduce ? allocate_like(out, sizes, t) : out;
  for_precision(t, [&]<class T>() {
    for_each(out.device(), losses.numel(),
             PairLossOf<T>{array_of(losses), array_of(x), array_of(y), int64_t(kind), T(width)});
  });
  if (!reduce) return;
  Dims all;
  for (size_t d = 0; d < sizes.size(); ++d) all.push_back(int64_t(d));
  Tensor* const outs[] = {&out};
  folds::FoldOptions options;
  options.scale = scale;
  fold(cpu::FoldKind::sum, t, options, losses, all, outs, 1);
}

void pick_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  const Targets t(input, target, ignore_index);
  const Tensor x = contiguous(input);
  with_complex(x.dtype(), [&]<class T>() {
    for_each(out.device(), t.positions, PickClass<T>{array_of(out), array_of(x), t.classes});
  });
}

void put_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  const Targets t(out, target, ignore_index);
  const Tensor x = expanded(input, target.sizes());
  cpu::fill(out, Scalar(0));
  with_complex(x.dtype(), [&]<class T>() {
    for_each(out.device(), t.positions, PutClass<T>{array_of(out), array_of(x), t.classes});
  });
}

void class_losses(Tensor& losses, Tensor& log_sum, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  const Targets t(input, target, ignore_index);
  const Tensor x = contiguous(input);
  for_precision(x.dtype(), [&]<class T>() {
    for_teams(x.device(), t.positions, t.classes.classes,
              ClassLosses<T>{array_of(losses), array_of(log_sum), array_of(x), t.classes});
  });
}

void class_losses_backward(Tensor& out, const Tensor& grad, const Tensor& grad_log_sum, const Tensor& input,
                           const Tensor& target, const Tensor& log_sum, int64_t ignore_index) {
  const Targets t(input, target, ignore_index);
  const Tensor x = contiguous(input), g = expanded(grad, target.sizes()), h = expanded(grad_log_sum, target.sizes());
  const Tensor logs = expanded(log_sum, target.sizes());
  for_precision(x.dtype(), [&]<class T>() {
    for_each(out.device(), out.numel(),
             ClassLossesGrad<T>{array_of(out), array_of(g), array_of(h), array_of(x), array_of(logs), t.classes});
  });
}

void label_margins(Tensor& losses, Tensor& slopes, const Tensor& input, const Tensor& target) {
  const int64_t n = input.dim() == 0 ? 1 : input.sizes().back();
  const Tensor x = contiguous(input), labels = contiguous(target);
  // Worth waiting for: a device assert, the other way, would end the use of the device.
  if (labels.numel()) {
    const Tensor low = to(amin(labels), kCPU), high = to(amax(labels), kCPU);
    check<ValueError>(low.item().to_int() >= -1 && high.item().to_int() < n, "target ",
                      (low.item().to_int() < -1 ? low : high).item().to_int(), " is out of range [-1, ", n, ")");
  }
  for_precision(x.dtype(), [&]<class T>() {
    for_each(x.device(), n ? x.numel() / n : 0,
             LabelMargins<T>{array_of(losses), array_of(slopes), array_of(x), array_of(labels), n,
                             index_check(x.device().index)});
  });
}

}  // namespace rush::cuda
