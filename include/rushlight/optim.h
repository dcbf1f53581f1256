// Optimizers and learning rate schedules of the C++ frontend: Python's options and state, and the same arithmetic.
//
//   rush::optim::AdamW optimizer(model.parameters(), {.lr = 3e-4, .weight_decay = 0.1});
//   rush::optim::CosineAnnealingLR schedule(optimizer, epochs);
//   for (auto& [x, y] : batches) {
//     optimizer.zero_grad();
//     loss(model(x), y).backward();
//     optimizer.step();
//   }
//   schedule.step();
#pragma once
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/optim/steps.h"
#include "rushlight/serialize.h"
#include "rushlight/tensor.h"

namespace rush::optim {

/// Parameters that share options, and their state, which is one tensor for each of them under each name.
struct ParamGroup {
  std::vector<Tensor> params;
  double lr;
  double initial_lr = 0;                                                // set by a schedule
  double momentum;                                                      // or beta1: what OneCycleLR cycles
  std::vector<std::pair<std::string, std::vector<Tensor>>> state = {};  // undefined before the first step

  std::vector<Tensor>& state_of(std::string_view name);
};

/// Base of the optimizers. Throws ValueError where there are no parameters, or one that is not a leaf.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  /// Moves each parameter that has a gradient.
  void step();
  /// The same after `closure` has computed gradients anew; returns the loss that it returned.
  Tensor step(const std::function<Tensor()>& closure);
  /// Removes the gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  std::vector<ParamGroup>& param_groups() { return groups_; }

  /// The state, named as rush::load names what Python saved as `{"state": ...}`: "state.0.exp_avg".
  NamedTensors state_dict() const;
  /// Takes over state, from C++ or from Python; names that are not of this optimizer are ignored. Throws Error where a
  /// shape is not that of the parameter.
  void load_state_dict(const NamedTensors& state);

 protected:
  Optimizer() = default;
  void add_group(std::vector<Tensor> params, double lr, double momentum);
  /// Moves the parameters of a group; `active` are the numbers of those that have a gradient.
  virtual void step_group(ParamGroup& group, size_t number, const std::vector<size_t>& active) = 0;
  virtual std::vector<std::string> state_names() const = 0;
  /// The sizes of the state of that name of a parameter of these sizes.
  virtual Dims state_sizes(std::string_view name, const Dims& param) const = 0;

  std::vector<ParamGroup> groups_;
};

/// An optimizer whose groups have options of type O, and which is one call of rush::optim::step for each of them. See
/// Python's optimizer of the same name for what the options mean; their defaults are the same. Throws ValueError for
/// options that are out of range.
template <class O>
class RuleOptimizer : public Optimizer {
 public:
  explicit RuleOptimizer(std::vector<Tensor> params, const O& options = {}) {
    add_param_group(std::move(params), options);
  }
  void add_param_group(std::vector<Tensor> params, const O& options);
  /// A group's options, as they were given; the current rate is in param_groups().
  O& options(size_t group = 0) { return options_[group]; }

 protected:
  void step_group(ParamGroup& group, size_t number, const std::vector<size_t>& active) override;
  std::vector<std::string> state_names() const override;
  Dims state_sizes(std::string_view name, const Dims& param) const override;

  std::vector<O> options_;
};

using SGD = RuleOptimizer<SGDOptions>;
using Adam = RuleOptimizer<AdamOptions>;
using RMSprop = RuleOptimizer<RMSpropOptions>;
using Adagrad = RuleOptimizer<AdagradOptions>;
using Adadelta = RuleOptimizer<AdadeltaOptions>;
using Adamax = RuleOptimizer<AdamaxOptions>;
using NAdam = RuleOptimizer<NAdamOptions>;
using RAdam = RuleOptimizer<RAdamOptions>;
using ASGD = RuleOptimizer<ASGDOptions>;
using Rprop = RuleOptimizer<RpropOptions>;
using Adafactor = RuleOptimizer<AdafactorOptions>;
using Muon = RuleOptimizer<MuonOptions>;

struct AdamWOptions {
  double lr = 1e-3;
  Pair betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};
/// Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& o = {})
      : Adam(std::move(params), {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize, true}) {}
};

// ---- schedules ----

/// Base of the schedules: sets the rates of all groups when made and in each step, from their initial rates. The
/// optimizer must outlive it.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  /// Goes to the next epoch.
  void step();
  int64_t last_epoch() const { return epoch_; }
  /// The current rates, one for each group.
  std::vector<double> get_last_lr() const;

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  /// The rate of a group in this epoch.
  virtual double get_lr(const ParamGroup& group, int64_t epoch) const = 0;
  /// The momentum, or beta1, in this epoch; a negative one leaves it.
  virtual double get_momentum(int64_t) const { return -1; }
  void set();

  Optimizer& optimizer_;
  int64_t epoch_ = 0;
};

/// The initial rate times f(epoch).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> f) : LRScheduler(optimizer), f_(std::move(f)) { set(); }

 protected:
  double get_lr(const ParamGroup& group, int64_t epoch) const override { return group.initial_lr * f_(epoch); }

 private:
  std::function<double(int64_t)> f_;
};

/// Multiplies the rate by gamma every step_size epochs.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
    set();
  }

 protected:
  double get_lr(const ParamGroup& group, int64_t epoch) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

/// Half a cosine wave from the initial rate to eta_min in T_max epochs.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0)
      : LRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
    set();
  }

 protected:
  double get_lr(const ParamGroup& group, int64_t epoch) const override;

 private:
  int64_t T_max_;
  double eta_min_;
};

struct OneCycleLROptions {
  double max_lr;
  int64_t total_steps;
  double pct_start = 0.3;
  bool linear = false;  // anneal_strategy "linear" instead of "cos"
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
/// One rise of the rate and one fall, over batches; momentum runs the other way. Throws ValueError beyond total_steps.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 protected:
  double get_lr(const ParamGroup& group, int64_t epoch) const override;
  double get_momentum(int64_t epoch) const override;

 private:
  double along(int64_t epoch, const double (&stops)[4]) const;
  OneCycleLROptions options_;
};

struct ReduceLROnPlateauOptions {
  bool maximize = false;  // mode "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool absolute = false;  // threshold_mode "abs"
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
/// Multiplies the rate by a factor when a metric has not improved for more than `patience` epochs.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metric);

 private:
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooldown_left_ = 0;
};

}  // namespace rush::optim
