// Launches of optimizer steps: as many parameters at a time as arguments hold.
#include "kernels/cuda/optim.cuh"

#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/optim.h"

namespace rush::cuda {

namespace {

/// Calls step.operator()<T>(list, elements) for groups of tensors of one dtype; describe(tensor) gives its arrays.
template <class Tensor, class Describe, class Step>
void in_groups(std::span<const Tensor> tensors, const Describe& describe, const Step& step) {
  StepTensors list{};
  int64_t total = 0;
  const auto flush = [&] {
    if (list.count == 0) return;
    list.dtype == kFloat64 ? step.template operator()<double>(list, total)
                           : step.template operator()<float>(list, total);
    list.count = total = 0;
  };
  for (const Tensor& t : tensors) {
    if (list.count == kStepTensors || (list.count > 0 && list.dtype != t.dtype)) flush();
    if (t.numel == 0) continue;
    list.dtype = t.dtype;
    StepTensor& to = list.tensors[list.count++] = describe(t);
    to.end = total += t.numel;
  }
  flush();
}

char* at(const void* p) { return const_cast<char*>(static_cast<const char*>(p)); }

}  // namespace

void sgd_step(Device device, std::span<const cpu::SgdTensor> tensors, const cpu::SgdOptions& o) {
  in_groups(
      tensors,
      [](const cpu::SgdTensor& t) {
        return StepTensor{at(t.param), at(t.grad), at(t.momentum_buffer), nullptr, nullptr, 0, 0, 0};
      },
      [&]<class T>(const StepTensors& list, int64_t n) {
        for_each(device, n,
                 SgdStep<T>{list, T(o.lr), T(o.momentum), T(o.dampening), T(o.weight_decay), o.nesterov, o.maximize});
      });
}

void adam_step(Device device, std::span<const cpu::AdamTensor> tensors, const cpu::AdamOptions& o) {
  in_groups(
      tensors,
      [&](const cpu::AdamTensor& t) {
        return StepTensor{at(t.param),
                          at(t.grad),
                          at(t.exp_avg),
                          at(t.exp_avg_sq),
                          at(t.max_exp_avg_sq),
                          0,
                          o.lr / (1 - std::pow(o.beta1, t.step)),
                          std::sqrt(1 - std::pow(o.beta2, t.step))};
      },
      [&]<class T>(const StepTensors& list, int64_t n) {
        for_each(
            device, n,
            AdamStep<T>{list, T(o.lr), T(o.beta1), T(o.beta2), T(o.eps), T(o.weight_decay), o.maximize, o.decoupled});
      });
}

}  // namespace rush::cuda
