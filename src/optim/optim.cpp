// Optimizers and schedules of the C++ frontend; the arithmetic is in steps.cpp, matrix_steps.cpp and the kernels below.
#include "rushlight/optim.h"

#include <algorithm>
#include <cmath>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"
#include "rushlight/optim/steps.h"

namespace rush::optim {
namespace {

std::vector<Tensor> pick(const std::vector<Tensor>& all, const std::vector<size_t>& numbers) {
  std::vector<Tensor> some;
  some.reserve(numbers.size());
  for (const size_t i : numbers) some.push_back(all[i]);
  return some;
}

/// Throws ValueError unless all numbers are at least 0 and the betas below 1.
struct CheckOption {
  void operator()(std::string_view name, double value) const {
    if (name == "t0" || name == "beta2_decay") return;
    check<ValueError>(value >= 0, "Invalid ",
                      name == "lr"    ? "learning rate"
                      : name == "eps" ? "epsilon value"
                                      : name,
                      name == "lr" || name == "eps" ? ": " : " value: ", value);
  }
  void operator()(std::string_view name, const Pair& pair) const {
    if (name != "betas") return;
    check<ValueError>(0 <= pair.first && pair.first < 1, "Invalid beta parameter at index 0: ", pair.first);
    check<ValueError>(0 <= pair.second && pair.second < 1, "Invalid beta parameter at index 1: ", pair.second);
  }
  template <class T>
  void operator()(std::string_view, const T&) const {}
};

/// What OneCycleLR cycles; null where there is no such option.
template <class O>
double* momentum_of(O& o) {
  if constexpr (requires { o.betas; })
    return &o.betas.first;
  else if constexpr (requires { o.momentum; })
    return &o.momentum;
  else
    return nullptr;
}

}  // namespace

std::vector<Tensor>& ParamGroup::state_of(std::string_view name) {
  for (auto& [key, tensors] : state)
    if (key == name) return tensors;
  return state.emplace_back(std::string(name), std::vector<Tensor>(params.size())).second;
}

void Optimizer::add_group(std::vector<Tensor> params, double lr, double momentum) {
  check<ValueError>(!params.empty(), "optimizer got an empty parameter list");
  for (const Tensor& p : params) {
    check<ValueError>(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const ParamGroup& group : groups_)
      for (const Tensor& other : group.params)
        check<ValueError>(!other.is_same(p), "some parameters appear in more than one parameter group");
  }
  groups_.push_back({.params = std::move(params), .lr = lr, .momentum = momentum});
}

void Optimizer::step() {
  const NoGrad guard;
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<size_t> active;
    for (size_t i = 0; i < groups_[g].params.size(); ++i)
      if (groups_[g].params[i].grad().defined()) active.push_back(i);
    if (!active.empty()) step_group(groups_[g], g, active);
  }
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    const EnableGrad guard;
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  const NoGrad guard;
  for (ParamGroup& group : groups_)
    for (Tensor& p : group.params) {
      if (!p.grad().defined()) continue;
      p.set_grad(set_to_none ? Tensor() : zeros_like(p.grad()));
    }
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors result;
  size_t first = 0;
  for (const ParamGroup& group : groups_) {
    for (size_t i = 0; i < group.params.size(); ++i)
      for (const auto& [name, tensors] : group.state)
        if (tensors[i].defined()) result.emplace_back(text("state.", first + i, ".", name), tensors[i]);
    first += group.params.size();
  }
  return result;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  const NoGrad guard;
  size_t first = 0;
  for (ParamGroup& group : groups_) {
    for (const std::string& name : state_names())
      for (size_t i = 0; i < group.params.size(); ++i) {
        const std::string key = text("state.", first + i, ".", name);
        const auto found =
            std::find_if(state.begin(), state.end(), [&](const auto& item) { return item.first == key; });
        if (found == state.end()) continue;
        const Tensor& value = found->second;
        const Dims sizes = state_sizes(name, group.params[i].sizes());
        check(value.dim() == 0 || value.sizes() == sizes, key, " of shape ", value.sizes(),
              " does not match its parameter of shape ", group.params[i].sizes());
        group.state_of(name)[i] = clone(value);
      }
    first += group.params.size();
  }
}

template <class O>
void RuleOptimizer<O>::add_param_group(std::vector<Tensor> params, const O& o) {
  O::each(o, CheckOption());
  if constexpr (std::is_same_v<O, SGDOptions>)
    check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                      "Nesterov momentum requires a momentum and zero dampening");
  if constexpr (std::is_same_v<O, AdadeltaOptions>) check<ValueError>(o.rho <= 1, "Invalid rho value: ", o.rho);
  if constexpr (std::is_same_v<O, RpropOptions>)
    check<ValueError>(0 < o.etas.first && o.etas.first < 1 && 1 < o.etas.second, "Invalid eta values: ", o.etas.first,
                      ", ", o.etas.second);
  if constexpr (std::is_same_v<O, AdafactorOptions>) {
    check<ValueError>(o.beta2_decay <= 0, "beta2_decay should be <= 0 but is: ", o.beta2_decay);
    check<ValueError>(o.d >= 1, "Clipping threshold d should be >= 1 but is: ", o.d);
    check<ValueError>(o.eps.first.value_or(0) >= 0 && o.eps.second >= 0, "eps should be >= 0");
  }
  if constexpr (std::is_same_v<O, MuonOptions>)
    for (const Tensor& p : params)
      check<ValueError>(p.dim() == 2,
                        "Muon only supports 2D parameters whereas we found a parameter with size: ", p.sizes());
  O own = o;
  const double* momentum = momentum_of(own);
  add_group(std::move(params), o.lr, momentum ? *momentum : 0);
  options_.push_back(o);
}

template <class O>
void RuleOptimizer<O>::step_group(ParamGroup& group, size_t number, const std::vector<size_t>& active) {
  O o = options_[number];
  o.lr = group.lr;
  if (double* momentum = momentum_of(o)) *momentum = group.momentum;
  StepLists lists{pick(group.params, active), {}, {}, {}};
  for (const Tensor& p : lists.params) lists.grads.push_back(p.grad());
  for (const char* name : O::counters) lists.counters.push_back(pick(group.state_of(name), active));
  std::vector<const char*> names;
  for (size_t i = 0; i < O::states.size(); ++i)
    if (o.has_state(i)) names.push_back(O::states[i]);
  for (const char* name : names) lists.states.push_back(pick(group.state_of(name), active));
  check<NotImplementedError>(optim::step(lists, o), O::name,
                             ": parameters, gradients and state must be of one floating dtype and on one device");
  for (size_t i = 0; i < active.size(); ++i) {  // some may have been made
    for (size_t c = 0; c < O::counters.size(); ++c) group.state_of(O::counters[c])[active[i]] = lists.counters[c][i];
    for (size_t s = 0; s < names.size(); ++s) group.state_of(names[s])[active[i]] = lists.states[s][i];
  }
}

template <class O>
std::vector<std::string> RuleOptimizer<O>::state_names() const {
  std::vector<std::string> names(O::counters.begin(), O::counters.end());
  names.insert(names.end(), O::states.begin(), O::states.end());
  return names;
}

template <class O>
Dims RuleOptimizer<O>::state_sizes(std::string_view name, const Dims& param) const {
  if constexpr (requires { &O::state_sizes; })
    for (size_t i = 0; i < O::states.size(); ++i)
      if (name == O::states[i]) return O::state_sizes(i, param).value_or(param);
  return param;
}

template class RuleOptimizer<SGDOptions>;
template class RuleOptimizer<AdamOptions>;
template class RuleOptimizer<RMSpropOptions>;
template class RuleOptimizer<AdagradOptions>;
template class RuleOptimizer<AdadeltaOptions>;
template class RuleOptimizer<AdamaxOptions>;
template class RuleOptimizer<NAdamOptions>;
template class RuleOptimizer<RAdamOptions>;
template class RuleOptimizer<ASGDOptions>;
template class RuleOptimizer<RpropOptions>;
template class RuleOptimizer<AdafactorOptions>;
template class RuleOptimizer<MuonOptions>;

// ---- schedules ----

namespace {
double cosine(double start, double end, double fraction) {
  return end + (start - end) * (1 + std::cos(std::numbers::pi * fraction)) / 2;
}
}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (ParamGroup& group : optimizer.param_groups())
    if (group.initial_lr == 0) group.initial_lr = group.lr;
}

void LRScheduler::set() {
  const double momentum = get_momentum(epoch_);
  for (ParamGroup& group : optimizer_.param_groups()) {
    group.lr = get_lr(group, epoch_);
    if (momentum >= 0) group.momentum = momentum;
  }
}

void LRScheduler::step() {
  ++epoch_;
  set();
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (const ParamGroup& group : optimizer_.param_groups()) rates.push_back(group.lr);
  return rates;
}

double StepLR::get_lr(const ParamGroup& group, int64_t epoch) const {
  return group.initial_lr * std::pow(gamma_, double(epoch / step_size_));
}

double CosineAnnealingLR::get_lr(const ParamGroup& group, int64_t epoch) const {
  return cosine(group.initial_lr, eta_min_, double(epoch) / double(T_max_));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  check<ValueError>(options.total_steps > 0, "Expected positive integer total_steps, but got ", options.total_steps);
  check<ValueError>(options.pct_start >= 0 && options.pct_start <= 1,
                    "Expected float between 0 and 1 pct_start, but got ", options.pct_start);
  for (ParamGroup& group : optimizer.param_groups()) group.initial_lr = options.max_lr / options.div_factor;
  set();
}

/// The value at a step on the way through four stops; without three phases the third is left out.
double OneCycleLR::along(int64_t epoch, const double (&stops)[4]) const {
  const double rise = options_.pct_start * double(options_.total_steps);
  const double ends[] = {rise - 1, options_.three_phase ? 2 * rise - 2 : -1, double(options_.total_steps - 1)};
  double begin = 0, from = stops[0];
  for (int phase = 0;; ++phase) {
    if (phase == 1 && !options_.three_phase) continue;
    if (double(epoch) <= ends[phase] || phase == 2) {
      const double fraction = (double(epoch) - begin) / (ends[phase] - begin), to = stops[phase + 1];
      return options_.linear ? (to - from) * fraction + from : cosine(from, to, fraction);
    }
    begin = ends[phase];
    from = stops[phase + 1];
  }
}

double OneCycleLR::get_lr(const ParamGroup& group, int64_t epoch) const {
  check<ValueError>(epoch <= options_.total_steps, "Tried to step ", epoch,
                    " times. The specified number of total steps is ", options_.total_steps);
  return along(epoch,
               {group.initial_lr, options_.max_lr, group.initial_lr, group.initial_lr / options_.final_div_factor});
}

double OneCycleLR::get_momentum(int64_t epoch) const {
  if (!options_.cycle_momentum) return -1;
  const double low = options_.base_momentum, high = options_.max_momentum;
  return along(epoch, {high, low, high, high});
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer), options_(options), best_(options.maximize ? -INFINITY : INFINITY) {
  check<ValueError>(options.factor < 1, "Factor should be < 1.0.");
}

void ReduceLROnPlateau::step(double metric) {
  const double sign = options_.maximize ? 1 : -1;
  const double needed = options_.absolute ? best_ + sign * options_.threshold : best_ * (1 + sign * options_.threshold);
  if (options_.maximize ? metric > needed : metric < needed) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;
  for (ParamGroup& group : optimizer_.param_groups()) {
    const double lr = std::max(group.lr * options_.factor, options_.min_lr);
    if (group.lr - lr > options_.eps) group.lr = lr;
  }
  cooldown_left_ = options_.cooldown;
  bad_epochs_ = 0;
}

}  // namespace rush::optim
