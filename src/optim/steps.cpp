// Checks the tensors of a step, gives the kernel flat memory, and takes results back.
#include "rushlight/optim/steps.h"

#include <utility>
#include <vector>

#include "kernels/cpu/optim.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/optim.h"

namespace rush::optim {
namespace {

bool suits(const Tensor& t) { return !t.is_meta() && t.is_floating_point(); }

/// Whether the kernels can take these; throws Error for a list of another length or a tensor of another size.
bool suits(Tensors params, Tensors others, const char* name) {
  check(others.size() == params.size(), "got ", params.size(), " params and ", others.size(), " ", name);
  for (size_t i = 0; i < params.size(); ++i) {
    if (!suits(others[i]) || others[i].dtype() != params[i].dtype() || others[i].device() != params[0].device())
      return false;
    check(others[i].sizes() == params[i].sizes(), name, "[", i, "] of shape ", others[i].sizes(),
          " does not match its parameter of shape ", params[i].sizes());
  }
  return true;
}

/// Memory in which the tensors of one parameter lie side by side, element by element: their own where all have the
/// parameter's dense strides, else copies of them. finish() writes the copies back.
class Flat {
 public:
  void* read(const Tensor& param, const Tensor& t) {
    if (param.is_contiguous() && t.is_contiguous()) return t.data_ptr();
    const bool dense = is_dense(param.sizes(), param.strides());
    const Dims strides = dense ? param.strides() : contiguous_strides(param.sizes());
    if (t.strides() == strides) return t.data_ptr();
    Tensor copy = allocate({.sizes = t.sizes(), .dtype = t.dtype(), .device = t.device(), .strides = strides});
    cpu::copy(copy, t);
    copies_.push_back(copy);
    return copy.data_ptr();
  }
  void* write(const Tensor& param, const Tensor& t) {
    const size_t before = copies_.size();
    void* memory = read(param, t);
    if (copies_.size() > before) written_.emplace_back(t, copies_.back());
    t.bump_version();
    return memory;
  }
  void* write_any(const Tensor& param, Tensors list, size_t i) {
    return list.empty() ? nullptr : write(param, list[i]);
  }
  void finish() {
    for (auto& [t, copy] : written_) cpu::copy(t, copy);
  }

 private:
  std::vector<Tensor> copies_;
  std::vector<std::pair<Tensor, Tensor>> written_;
};

}  // namespace

bool sgd_step(Tensors params, Tensors grads, Tensors momentum_buffers, const SgdStep& o) {
  if (!suits(params, params, "params") || !suits(params, grads, "grads")) return false;
  if (!momentum_buffers.empty() && !suits(params, momentum_buffers, "momentum_buffers")) return false;
  Flat flat;
  std::vector<cpu::SgdTensor> tensors;
  tensors.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    tensors.push_back(
        {p.dtype(), p.numel(), flat.write(p, p), flat.read(p, grads[i]), flat.write_any(p, momentum_buffers, i)});
  }
  if (params.empty()) return true;
  const cpu::SgdOptions options{o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, o.maximize};
  params[0].is_cpu() ? cpu::sgd_step(tensors, options) : cuda::sgd_step(params[0].device(), tensors, options);
  flat.finish();
  return true;
}

bool adam_step(Tensors params, Tensors grads, Tensors exp_avgs, Tensors exp_avg_sqs, Tensors max_exp_avg_sqs,
               Tensors steps, const AdamStep& o) {
  if (!suits(params, params, "params") || !suits(params, grads, "grads") || !suits(params, exp_avgs, "exp_avgs") ||
      !suits(params, exp_avg_sqs, "exp_avg_sqs"))
    return false;
  if (!max_exp_avg_sqs.empty() && !suits(params, max_exp_avg_sqs, "max_exp_avg_sqs")) return false;
  check(steps.size() == params.size(), "got ", params.size(), " params and ", steps.size(), " steps");
  for (const Tensor& s : steps)
    if (!s.is_cpu() || s.dtype() != kFloat32 || s.numel() != 1) return false;
  Flat flat;
  std::vector<cpu::AdamTensor> tensors;
  tensors.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    const float step = *steps[i].data<float>() += 1;
    steps[i].bump_version();
    tensors.push_back({p.dtype(), p.numel(), flat.write(p, p), flat.read(p, grads[i]), flat.write(p, exp_avgs[i]),
                       flat.write(p, exp_avg_sqs[i]), flat.write_any(p, max_exp_avg_sqs, i), step});
  }
  if (params.empty()) return true;
  const cpu::AdamOptions options{o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.maximize, o.decoupled};
  params[0].is_cpu() ? cpu::adam_step(tensors, options) : cuda::adam_step(params[0].device(), tensors, options);
  flat.finish();
  return true;
}

}  // namespace rush::optim
