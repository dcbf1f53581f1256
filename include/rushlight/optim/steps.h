// Options of the optimizers, and a step over lists of tensors, one call for all: what the optimizers of both languages
// stand on.
//
//   rush::optim::StepLists lists{params, grads};
//   rush::optim::step(lists, rush::optim::SGDOptions{.lr = 0.1});
//
// An options struct has, beside the options that Python's optimizer of that name has:
//   counters, states   the names of its state: tensors of one element, such as the number of steps, then tensors that
//                      look like the parameter (unless state_sizes says otherwise); has_state says which of the
//                      latter these options need;
//   each(o, f)         calls f(name, option) for every option.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/tensor.h"

namespace rush::optim {

using Pair = std::pair<double, double>;
template <size_t n>
using Names = std::array<const char*, n>;

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;

  static constexpr const char* name = "SGD";
  static constexpr Names<0> counters{};
  static constexpr Names<1> states{"momentum_buffer"};
  bool has_state(size_t) const { return momentum != 0; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("momentum", o.momentum), f("dampening", o.dampening), f("weight_decay", o.weight_decay);
    f("nesterov", o.nesterov), f("maximize", o.maximize);
  }
};

struct AdamOptions {
  double lr = 1e-3;
  Pair betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false, decoupled_weight_decay = false;

  static constexpr const char* name = "Adam";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<3> states{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  bool has_state(size_t i) const { return i < 2 || amsgrad; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("betas", o.betas), f("eps", o.eps), f("weight_decay", o.weight_decay);
    f("amsgrad", o.amsgrad), f("maximize", o.maximize), f("decoupled_weight_decay", o.decoupled_weight_decay);
  }
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;

  static constexpr const char* name = "RMSprop";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<3> states{"square_avg", "momentum_buffer", "grad_avg"};
  bool has_state(size_t i) const { return i == 0 || (i == 1 ? momentum > 0 : centered); }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("alpha", o.alpha), f("eps", o.eps), f("weight_decay", o.weight_decay), f("momentum", o.momentum);
    f("centered", o.centered), f("maximize", o.maximize);
  }
};

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;

  static constexpr const char* name = "Adagrad";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<1> states{"sum"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("lr_decay", o.lr_decay), f("weight_decay", o.weight_decay), f("eps", o.eps);
    f("initial_accumulator_value", o.initial_accumulator_value), f("maximize", o.maximize);
  }
};

struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* name = "Adadelta";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<2> states{"square_avg", "acc_delta"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("rho", o.rho), f("eps", o.eps), f("weight_decay", o.weight_decay), f("maximize", o.maximize);
  }
};

struct AdamaxOptions {
  double lr = 2e-3;
  Pair betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* name = "Adamax";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<2> states{"exp_avg", "exp_inf"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("betas", o.betas), f("eps", o.eps), f("weight_decay", o.weight_decay), f("maximize", o.maximize);
  }
};

struct NAdamOptions {
  double lr = 2e-3;
  Pair betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;

  static constexpr const char* name = "NAdam";
  static constexpr Names<2> counters{"step", "mu_product"};
  static constexpr Names<2> states{"exp_avg", "exp_avg_sq"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("betas", o.betas), f("eps", o.eps), f("weight_decay", o.weight_decay);
    f("momentum_decay", o.momentum_decay), f("decoupled_weight_decay", o.decoupled_weight_decay);
    f("maximize", o.maximize);
  }
};

struct RAdamOptions {
  double lr = 1e-3;
  Pair betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;

  static constexpr const char* name = "RAdam";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<2> states{"exp_avg", "exp_avg_sq"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("betas", o.betas), f("eps", o.eps), f("weight_decay", o.weight_decay);
    f("decoupled_weight_decay", o.decoupled_weight_decay), f("maximize", o.maximize);
  }
};

struct ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* name = "ASGD";
  static constexpr Names<3> counters{"step", "eta", "mu"};
  static constexpr Names<1> states{"ax"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("lambd", o.lambd), f("alpha", o.alpha), f("t0", o.t0), f("weight_decay", o.weight_decay);
    f("maximize", o.maximize);
  }
};

struct RpropOptions {
  double lr = 1e-2;
  Pair etas = {0.5, 1.2}, step_sizes = {1e-6, 50};
  bool maximize = false;

  static constexpr const char* name = "Rprop";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<2> states{"prev", "step_size"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("etas", o.etas), f("step_sizes", o.step_sizes), f("maximize", o.maximize);
  }
};

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::pair<OptDouble, double> eps = {{}, 1e-3};  // none: the parameter's dtype's own
  double d = 1, weight_decay = 0;
  bool maximize = false;

  static constexpr const char* name = "Adafactor";
  static constexpr Names<1> counters{"step"};
  static constexpr Names<3> states{"variance", "row_var", "col_var"};
  bool has_state(size_t) const { return true; }
  /// The sizes of a state of a parameter; none where it has no such state.
  static std::optional<Dims> state_sizes(size_t i, Dims sizes) {
    const size_t n = sizes.size();
    if ((i == 0) != (n < 2)) return {};
    if (i > 0) sizes[i == 1 ? n - 1 : n - 2] = 1;
    return sizes;
  }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("beta2_decay", o.beta2_decay), f("eps", o.eps), f("d", o.d), f("weight_decay", o.weight_decay);
    f("maximize", o.maximize);
  }
};

struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  std::string adjust_lr_fn = "original";

  static constexpr const char* name = "Muon";
  static constexpr Names<0> counters{};
  static constexpr Names<1> states{"momentum_buffer"};
  bool has_state(size_t) const { return true; }
  template <class O, class F>
  static void each(O& o, F&& f) {
    f("lr", o.lr), f("weight_decay", o.weight_decay), f("momentum", o.momentum), f("nesterov", o.nesterov);
    f("ns_coefficients", o.ns_coefficients), f("eps", o.eps), f("ns_steps", o.ns_steps);
    f("adjust_lr_fn", o.adjust_lr_fn);
  }
};

/// Calls f.operator()<O>() for each of them.
template <class F>
void for_each_options(F&& f) {
  f.template operator()<SGDOptions>(), f.template operator()<AdamOptions>(), f.template operator()<RMSpropOptions>();
  f.template operator()<AdagradOptions>(), f.template operator()<AdadeltaOptions>();
  f.template operator()<AdamaxOptions>(), f.template operator()<NAdamOptions>(), f.template operator()<RAdamOptions>();
  f.template operator()<ASGDOptions>(), f.template operator()<RpropOptions>();
  f.template operator()<AdafactorOptions>(), f.template operator()<MuonOptions>();
}

/// What a step works on. Each list is as long as `params`; there is one for each counter and for each state that the
/// options need, in their order. A counter is a float32 or float64 tensor of one element on the CPU.
struct StepLists {
  std::vector<Tensor> params, grads;
  std::vector<std::vector<Tensor>> counters, states;
};

/// A step of the optimizer that the options are of. Counters and states that are undefined are made, with what they
/// start with. Returns false, having changed nothing, unless all tensors are on one device and each parameter's have
/// its dtype, which is floating or complex; complex numbers count as pairs of reals. Throws Error for a list of another
/// length or a tensor of another shape.
template <class O>
bool step(StepLists& lists, const O& options);
/// Those of whole matrices take real tensors of any devices, and never return false.
template <>
bool step(StepLists& lists, const AdafactorOptions& options);
template <>
bool step(StepLists& lists, const MuonOptions& options);

/// Multiplies every gradient by `inv_scale`, and sets `found_inf` to 1 if one held inf or nan; both are float32 tensors
/// of one element.
void unscale(Tensors grads, Tensor found_inf, const Tensor& inv_scale);

}  // namespace rush::optim
