// What each optimizer computes once for a parameter, and the way of a step: checks the tensors, gives the kernel flat
// memory, and takes results back. What is computed for each element is in kernels/steps.h.
#include "rushlight/optim/steps.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu/optim.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/optim.h"
#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush::optim {
namespace {

// ---- the optimizers: rule(options), and factors(options, counters, k), which gives k (see kernels/steps.h) for one
// parameter, moves the counters but for the number of steps, which comes first and is counted already

using steps::Prepare;

Prepare coupled(double weight_decay, bool maximize) {
  return {.sign = maximize ? -1. : 1., .weight_decay = weight_decay};
}
template <class O>
Prepare either(const O& o) {
  if (!o.decoupled_weight_decay) return coupled(o.weight_decay, o.maximize);
  return {.sign = o.maximize ? -1. : 1., .kept = 1 - o.lr * o.weight_decay};
}
template <class O>
Prepare prepare(const O& o) {
  if constexpr (requires { o.decoupled_weight_decay; })
    return either(o);
  else if constexpr (requires { o.weight_decay; })
    return coupled(o.weight_decay, o.maximize);
  else
    return coupled(0, o.maximize);
}

/// What a counter or state starts with.
template <class O>
double initial(const O&, std::string_view) {
  return 0;
}

cpu::Rule rule(const SGDOptions& o) {
  if (o.momentum == 0) return steps::Sgd<false>{o.lr};
  return steps::Sgd<true>{o.lr, o.momentum, o.nesterov};
}
void factors(const SGDOptions& o, double*, double* k) { k[0] = 1 - o.dampening; }

cpu::Rule rule(const AdamOptions& o) {
  if (o.amsgrad) return steps::Adam<true>{o.betas.first, o.betas.second, o.eps};
  return steps::Adam<false>{o.betas.first, o.betas.second, o.eps};
}
void factors(const AdamOptions& o, double* c, double* k) {
  k[0] = o.lr / (1 - std::pow(o.betas.first, c[0]));
  k[1] = 1 / std::sqrt(1 - std::pow(o.betas.second, c[0]));
}

template <bool kMomentum>
cpu::Rule rule_with(const RMSpropOptions& o) {
  if (o.centered) return steps::RMSprop<kMomentum, true>{o.lr, o.alpha, o.eps, o.momentum};
  return steps::RMSprop<kMomentum, false>{o.lr, o.alpha, o.eps, o.momentum};
}
cpu::Rule rule(const RMSpropOptions& o) { return o.momentum > 0 ? rule_with<true>(o) : rule_with<false>(o); }
void factors(const RMSpropOptions&, double*, double*) {}

cpu::Rule rule(const AdagradOptions& o) { return steps::Adagrad{o.eps}; }
double initial(const AdagradOptions& o, std::string_view name) {
  return name == "sum" ? o.initial_accumulator_value : 0;
}
void factors(const AdagradOptions& o, double* c, double* k) { k[0] = o.lr / (1 + (c[0] - 1) * o.lr_decay); }

cpu::Rule rule(const AdadeltaOptions& o) { return steps::Adadelta{o.lr, o.rho, o.eps}; }
void factors(const AdadeltaOptions&, double*, double*) {}

cpu::Rule rule(const AdamaxOptions& o) { return steps::Adamax{o.betas.first, o.betas.second, o.eps}; }
void factors(const AdamaxOptions& o, double* c, double* k) { k[0] = o.lr / (1 - std::pow(o.betas.first, c[0])); }

cpu::Rule rule(const NAdamOptions& o) { return steps::NAdam{o.betas.first, o.betas.second, o.eps}; }
double initial(const NAdamOptions&, std::string_view name) { return name == "mu_product" ? 1 : 0; }
void factors(const NAdamOptions& o, double* c, double* k) {
  const auto mu = [&](double step) { return o.betas.first * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay)); };
  c[1] = float(c[1] * mu(c[0]));
  k[0] = o.lr * (1 - mu(c[0])) / (1 - c[1]);
  k[1] = o.lr * mu(c[0] + 1) / (1 - c[1] * mu(c[0] + 1));
  k[2] = 1 / std::sqrt(1 - std::pow(o.betas.second, c[0]));
}

cpu::Rule rule(const RAdamOptions& o) { return steps::RAdam{o.betas.first, o.betas.second, o.eps}; }
void factors(const RAdamOptions& o, double* c, double* k) {
  const double decayed = std::pow(o.betas.second, c[0]), remaining = 1 - decayed;
  const double end = 2 / (1 - o.betas.second) - 1;  // the longest simple average that beta2 stands for
  const double rho = end - 2 * c[0] * decayed / remaining;
  k[0] = o.lr / (1 - std::pow(o.betas.first, c[0]));
  k[1] = rho > 5;
  if (rho > 5) k[0] *= std::sqrt((rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho) * remaining);
}

cpu::Rule rule(const ASGDOptions&) { return steps::Asgd{}; }
double initial(const ASGDOptions& o, std::string_view name) { return name == "eta" ? o.lr : name == "mu" ? 1 : 0; }
void factors(const ASGDOptions& o, double* c, double* k) {
  k[0] = 1 - o.lambd * c[1];
  k[1] = c[1];
  k[2] = c[2];
  c[1] = o.lr / std::pow(1 + o.lambd * o.lr * c[0], o.alpha);
  c[2] = 1 / std::max(1., c[0] - o.t0);
}

cpu::Rule rule(const RpropOptions& o) {
  return steps::Rprop{o.etas.first, o.etas.second, o.step_sizes.first, o.step_sizes.second};
}
double initial(const RpropOptions& o, std::string_view name) { return name == "step_size" ? o.lr : 0; }
void factors(const RpropOptions&, double*, double*) {}

// ---- tensors

/// Whether the kernels can take these; throws Error for a list of another length or a tensor of another size. Those
/// that are undefined will be made.
bool suits(Tensors params, Tensors others, const char* name) {
  check(others.size() == params.size(), "got ", params.size(), " params and ", others.size(), " ", name);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor &p = params[i], &t = others[i];
    if (!t.defined()) continue;
    if (t.is_meta() || !is_differentiable(t.dtype()) || t.dtype() != p.dtype() || t.device() != params[0].device())
      return false;
    check(t.sizes() == p.sizes(), name, "[", i, "] of shape ", t.sizes(), " does not match its parameter of shape ",
          p.sizes());
  }
  return true;
}

bool suits_as_counter(Tensors params, Tensors counters, const char* name) {
  check(counters.size() == params.size(), "got ", params.size(), " params and ", counters.size(), " ", name);
  for (const Tensor& t : counters)
    if (t.defined() && (!t.is_cpu() || t.numel() != 1 || (t.dtype() != kFloat32 && t.dtype() != kFloat64)))
      return false;
  return true;
}

double counted(const Tensor& t) { return t.dtype() == kFloat32 ? *t.data<float>() : *t.data<double>(); }
void set_counted(const Tensor& t, double value) {
  t.dtype() == kFloat32 ? *t.data<float>() = float(value) : *t.data<double>() = value;
  t.bump_version();
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
  void finish() {
    for (auto& [t, copy] : written_) cpu::copy(t, copy);
  }

 private:
  std::vector<Tensor> copies_;
  std::vector<std::pair<Tensor, Tensor>> written_;
};

/// The options' states, those that are needed, as (position in the lists, name).
template <class O, class F>
void each_state(const O& o, const F& f) {
  size_t at = 0;
  for (size_t i = 0; i < O::states.size(); ++i)
    if (o.has_state(i)) f(at++, O::states[i]);
}

}  // namespace

template <class O>
bool step(StepLists& lists, const O& o) {
  const std::vector<Tensor>& params = lists.params;
  bool fits = suits(params, params, "params") && suits(params, lists.grads, "grads");
  check(lists.counters.size() == O::counters.size(), O::name, " has ", O::counters.size(), " counters, got lists of ",
        lists.counters.size());
  for (size_t c = 0; fits && c < O::counters.size(); ++c)
    fits = suits_as_counter(params, lists.counters[c], O::counters[c]);
  size_t needed = 0;
  each_state(o, [&](size_t at, const char* name) {
    needed = at + 1;
    fits = fits && at < lists.states.size() && suits(params, lists.states[at], name);
  });
  check(lists.states.size() == needed, O::name, " with these options has ", needed, " states, got lists of ",
        lists.states.size());
  if (!fits) return false;
  if (params.empty()) return true;

  const NoGrad guard;
  Flat flat;
  std::vector<cpu::StepTensor> tensors;
  tensors.reserve(params.size());
  constexpr size_t kCounters = O::counters.size();
  double before[kCounters + 1] = {-1}, after[kCounters + 1] = {}, k[steps::kMaxFactors] = {};
  if constexpr (kCounters == 0) factors(o, after, k);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    if constexpr (kCounters > 0) {  // mostly the same for all
      double now[kCounters];
      for (size_t c = 0; c < kCounters; ++c) {
        Tensor& t = lists.counters[c][i];
        if (!t.defined()) t = full({}, initial(o, O::counters[c]), kFloat32);
        now[c] = counted(t);
      }
      if (!std::equal(now, now + kCounters, before)) {
        std::copy_n(now, kCounters, before);
        std::copy_n(now, kCounters, after);
        after[0] += 1;
        factors(o, after, k);
      }
      for (size_t c = 0; c < kCounters; ++c) set_counted(lists.counters[c][i], after[c]);
    }
    const bool pairs = p.is_complex();
    cpu::StepTensor& to = tensors.emplace_back();
    to.dtype = pairs ? real_of(p.dtype()) : p.dtype();
    to.numel = p.numel() * (pairs ? 2 : 1);
    std::copy_n(k, steps::kMaxFactors, to.factors);
    to.arrays[0] = flat.write(p, p);
    to.arrays[1] = flat.read(p, lists.grads[i]);
    each_state(o, [&](size_t at, const char* name) {
      Tensor& t = lists.states[at][i];
      if (!t.defined()) {
        const double start = initial(o, name);
        t = full_like(p, pairs ? Scalar(std::complex<double>(start, start)) : Scalar(start));
        if constexpr (std::is_same_v<O, SGDOptions>) to.factors[0] = 1;  // it becomes the first gradient, undamped
      }
      to.arrays[2 + at] = flat.write(p, t);
    });
  }
  if (params[0].is_cpu())
    cpu::step(tensors, prepare(o), rule(o));
  else
    cuda::step(params[0].device(), tensors, prepare(o), rule(o));
  flat.finish();
  return true;
}

template bool step(StepLists&, const SGDOptions&);
template bool step(StepLists&, const AdamOptions&);
template bool step(StepLists&, const RMSpropOptions&);
template bool step(StepLists&, const AdagradOptions&);
template bool step(StepLists&, const AdadeltaOptions&);
template bool step(StepLists&, const AdamaxOptions&);
template bool step(StepLists&, const NAdamOptions&);
template bool step(StepLists&, const RAdamOptions&);
template bool step(StepLists&, const ASGDOptions&);
template bool step(StepLists&, const RpropOptions&);

}  // namespace rush::optim
