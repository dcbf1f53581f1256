// Launches of connectionist temporal classification.
#include "kernels/cuda/ctc.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

/// What the kernels need to know of the batch, and what holds it. f(Alignments<T>).
template <class F>
void with_alignments(const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                     int64_t blank, bool backward, F&& f) {
  const Tensor probs = contiguous(log_probs), labels = contiguous(cast(targets, kInt64));
  const Dims& sizes = probs.sizes();
  const int64_t batch = sizes[1];
  const Tensor list = rush::allocate({{batch, 3}, kInt64, kCPU, {}});
  int64_t states = 1, at = 0;
  for (int64_t n = 0; n < batch; ++n) {
    int64_t* entry = list.data<int64_t>() + 3 * n;
    entry[0] = targets.dim() == 2 ? n * targets.sizes()[1] : at;
    entry[1] = input_lengths[size_t(n)];
    entry[2] = target_lengths[size_t(n)];
    at += target_lengths[size_t(n)];
    states = std::max(states, 2 * target_lengths[size_t(n)] + 1);
  }
  Tensor there = allocate_like(probs, list.sizes(), kInt64);
  copy(there, list);
  const Tensor alpha = allocate_like(probs, {batch, sizes[0], states}, probs.dtype());
  const Tensor beta = backward ? allocate_like(probs, alpha.sizes(), probs.dtype()) : alpha;
  const auto go = [&]<class T>() {
    f(states,
      Alignments<T>{probs.data<T>(), labels.data<int64_t>(), there.data<int64_t>(), alpha.data<T>(), beta.data<T>(),
                    sizes[0], batch, sizes[2], states, blank, index_check(probs.device().index)});
  };
  if (probs.dtype() == kFloat64) return go.template operator()<double>();
  check<NotImplementedError>(probs.dtype() == kFloat32, "not implemented for '", scalar_name(probs.dtype()),
                             "': needs float32 or float64");
  go.template operator()<float>();
}

}  // namespace

void ctc_losses(Tensor& out, const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                int64_t blank) {
  with_alignments(log_probs, targets, input_lengths, target_lengths, blank, false,
                  [&]<class T>(int64_t states, const Alignments<T>& all) {
                    for_teams(out.device(), all.batch, states, CtcLosses<T>{out.data<T>(), all});
                  });
}

void ctc_losses_backward(Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         Ints input_lengths, Ints target_lengths, int64_t blank) {
  const Tensor g = contiguous(cast(grad, out.dtype()));
  cpu::fill(out, Scalar(0));
  with_alignments(log_probs, targets, input_lengths, target_lengths, blank, true,
                  [&]<class T>(int64_t states, const Alignments<T>& all) {
                    for_teams(out.device(), all.batch, states, CtcGradient<T>{out.data<T>(), g.data<T>(), all});
                  });
}

}  // namespace rush::cuda
