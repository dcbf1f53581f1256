// Launches of optimizer steps: as many parameters at a time as arguments hold.
#include "kernels/cuda/optim.cuh"

#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/optim.h"

namespace rush::cuda {

void step(Device device, std::span<const cpu::StepTensor> tensors, const steps::Prepare& prepare,
          const cpu::Rule& rule) {
  StepTensors list{};
  int64_t total = 0;
  const auto flush = [&] {
    std::visit(
        [&]<class F>(const F& f) {
          if (list.dtype == kFloat64)
            for_each(device, total, Step<F, double>{list, prepare, f});
          else
            for_each(device, total, Step<F, float>{list, prepare, f});
        },
        rule);
    list.count = total = 0;
  };
  for (const cpu::StepTensor& t : tensors) {
    if (list.count == kStepTensors || (list.count > 0 && list.dtype != t.dtype)) flush();
    if (t.numel == 0) continue;
    list.dtype = t.dtype;
    StepTensor& to = list.tensors[list.count++];
    for (size_t a = 0; a < std::size(to.arrays); ++a) to.arrays[a] = static_cast<char*>(t.arrays[a]);
    std::copy_n(t.factors, steps::kMaxFactors, to.factors);
    to.end = total += t.numel;
  }
  flush();
}

}  // namespace rush::cuda
