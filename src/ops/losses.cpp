// Losses. Those that training spends its time in have kernels; the others are composites of differentiable operators.
#include "kernels/cpu/losses.h"

#include <cmath>
#include <numbers>

#include "ops/common.h"

namespace rush {

namespace {

using cpu::PairLoss;
using std::string_view;

void check_reduction(string_view reduction) {
  check<ValueError>(reduction == "none" || reduction == "mean" || reduction == "sum", reduction,
                    " is not a valid value for reduction");
}

Tensor reduced(const Tensor& losses, string_view reduction) {
  check_reduction(reduction);
  return reduction == "mean" ? mean(losses) : reduction == "sum" ? sum(losses) : losses;
}

// ---- pairs

Meta pair_meta(const Tensor& a, const Tensor& b, string_view reduction) {
  check_reduction(reduction);
  const DType dtype = promote_tensors(a, b);
  if (!is_floating(dtype))
    raise<NotImplementedError>("not implemented for '", scalar_name(dtype), "': needs a floating-point dtype");
  const Dims sizes = broadcast(a.sizes(), b.sizes());
  return reduction == "none" ? Meta{sizes, dtype} : Meta{{}, dtype};
}

int64_t pair_count(const Tensor& a, const Tensor& b) { return product(broadcast(a.sizes(), b.sizes())); }

void run_pairs(Tensor& out, const Tensor& a, const Tensor& b, PairLoss kind, double width, string_view reduction) {
  const double scale = reduction == "mean" ? 1 / double(pair_count(a, b)) : 1;
  cpu::pair_loss(out, a, b, kind, width, reduction != "none", scale);
}

PairLoss kind_of(string_view kind) {
  if (kind == "entropy") return PairLoss::entropy;
  if (kind == "logits") return PairLoss::logit_entropy;
  check<ValueError>(kind == "divergence" || kind == "log_divergence", kind, " is not a kind of loss");
  return kind == "divergence" ? PairLoss::divergence : PairLoss::log_divergence;
}

/// Both gradients from the slope of the loss in the first argument.
Grads pair_grads(const Tensor& g, const Tensor& slope, string_view reduction) {
  const Tensor ga = slope * (reduction == "mean" ? g / double(slope.numel()) : g);
  return {ga, needs_grad(1) ? -ga : Tensor()};
}

// ---- classes

/// What the operators over classes rely on, whoever calls them.
void check_places(const Tensor& input, const Tensor& target) {
  check(is_integral(target.dtype()), "expected numbers of classes, got ", scalar_name(target.dtype()));
  Dims places = input.sizes();
  check(!places.empty(), "expected an input with a dimension of classes");
  places.erase(places.size() == 1 ? 0 : 1);
  check(Ints(target.sizes()) == Ints(places), "expected a target of shape ", places, " for an input of shape ",
        input.sizes(), ", got ", target.sizes());
}
int64_t class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

Dims without_classes(const Tensor& input) {
  Dims sizes = input.sizes();
  sizes.erase(size_t(class_dim(input)));
  return sizes;
}

void check_classes(const Tensor& input, const Tensor& target, const Tensor& weight) {
  check<ValueError>(input.dim() >= 1, "Expected 1 or more dimensions (got 0)");
  check(input.dim() == 1 || target.dim() > 0, "input tensor should be 1D where the target is a single class, got ",
        input.sizes());
  if (input.dim() > 1)
    check<ValueError>(input.sizes()[0] == target.sizes()[0], "Expected input batch_size (", input.sizes()[0],
                      ") to match target batch_size (", target.sizes()[0], ").");
  check(input.dim() > 2 || target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  const Dims want = without_classes(input);
  check(want == target.sizes() || (input.dim() == 1 && target.numel() == 1), "Expected target size ", want, ", got ",
        target.sizes());
  check(target.dtype() == kInt64 || target.dtype() == kUInt8, "expected scalar type Long but found ",
        scalar_name(target.dtype()));
  const int64_t classes = input.sizes()[class_dim(input)];
  check(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
        "weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ", weight.defined() ? Ints(weight.sizes()) : Ints());
}

/// The weights of classes, to broadcast against the input.
Tensor along_classes(const Tensor& weight, const Tensor& input) {
  Dims shape(size_t(input.dim()), 1);
  shape[size_t(class_dim(input))] = weight.numel();
  return reshape(weight.detach(), shape);
}

/// The weight of each target, 0 for those that are ignored.
Tensor weights_of(const Tensor& weight, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  if (!weight.defined()) return ne(target, ignore_index);
  return pick_class(expand(along_classes(weight, input), input.sizes()), target, ignore_index);
}

/// Losses (0 where ignored), not yet weighted, brought to one number.
Tensor reduce_classes(const Tensor& losses, const Tensor& weight, const Tensor& input, const Tensor& target,
                      int64_t ignore_index, string_view reduction) {
  check_reduction(reduction);
  if (!weight.defined() && reduction != "mean") return reduction == "sum" ? sum(losses) : losses;
  const Tensor weights = weights_of(weight, input, target, ignore_index);
  const Tensor weighted = weight.defined() ? losses * weights : losses;
  if (reduction == "none") return weighted;
  return reduction == "sum" ? sum(weighted) : sum(weighted) / sum(weights);
}

Tensor log_probs_of(const Tensor& input) { return log_softmax(input, class_dim(input)); }

/// Distributions over classes as targets.
Tensor cross_entropy_of_probs(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                              string_view reduction, double smoothing) {
  check(is_floating(target.dtype()), "Expected floating point type for target with class probabilities, got ",
        scalar_name(target.dtype()));
  check(ignore_index < 0, "ignore_index is not supported for floating point target");
  const int64_t dim = class_dim(input), classes = input.sizes()[dim];
  const Tensor goal = smoothing > 0 ? target * (1 - smoothing) + smoothing / double(classes) : target;
  const Tensor parts = log_probs_of(input) * goal;
  const Tensor losses = -sum(weight.defined() ? parts * along_classes(weight, input) : parts, Ints(dim));
  check_reduction(reduction);
  if (reduction == "none") return losses;
  return reduction == "sum" ? sum(losses) : sum(losses) / double(input.numel() / std::max<int64_t>(classes, 1));
}

/// Part of each target's probability spread evenly over all classes.
Tensor smoothed_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                              string_view reduction, double smoothing) {
  const int64_t dim = class_dim(input), classes = input.sizes()[dim];
  const Tensor logs = log_probs_of(input);
  const Tensor spread = -sum(weight.defined() ? logs * along_classes(weight, input) : logs, Ints(dim));
  const Tensor all = where(ne(target, ignore_index), spread, Tensor(0.0));
  const Tensor chosen = nll_loss(logs, target, weight, ignore_index, reduction);
  const Tensor even = reduction == "none"  ? all
                      : reduction == "sum" ? sum(all)
                                           : sum(all) / sum(weights_of(weight, input, target, ignore_index));
  return chosen * (1 - smoothing) + even * (smoothing / double(classes));
}

Tensor where_equal(const Tensor& target, double value, const Tensor& then) {
  return where(eq(target, value), then, Tensor(0.0));
}

// ---- connectionist temporal classification

void check_ctc(const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths, int64_t blank) {
  const int64_t time = log_probs.sizes()[0], batch = log_probs.sizes()[1], classes = log_probs.sizes()[2];
  check(is_floating(log_probs.dtype()), "log_probs must have a floating-point dtype, got ", log_probs.dtype());
  check(targets.dtype() == kInt64 || targets.dtype() == kInt32, "targets must be of dtype int64 or int32, got ",
        targets.dtype());
  check(blank >= 0 && blank < classes, "blank must be in label range");
  check(int64_t(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  check(int64_t(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  check(targets.dim() == 1 || targets.dim() == 2, "targets must be 1- or 2-dimensional, got ", targets.sizes());
  int64_t total = 0, longest = 0;
  for (int64_t n : target_lengths) {
    check(n >= 0, "Expected target_lengths to have value at least 0, but got value ", n);
    check(!__builtin_add_overflow(total, n, &total), "the sum of target_lengths overflows");
    longest = std::max(longest, n);
  }
  if (targets.dim() == 1)
    check(targets.numel() >= total, "Expected tensor to have size at least ", total, " at dimension 0, but got size ",
          targets.numel(), " for argument #2 'targets'");
  else
    check(targets.sizes()[0] == batch && targets.sizes()[1] >= longest, "Expected tensor to have size at least ",
          longest, " at dimension 1, but got size ", targets.sizes(), " for argument #2 'targets'");
  for (int64_t n : input_lengths) {
    check(n >= 0, "Expected input_lengths to have value at least 0, but got value ", n);
    check(n <= time, "Expected input_lengths to have value at most ", time, ", but got value ", n);
  }
}

std::vector<int64_t> lengths_of(const Tensor& t) {
  check(is_integral(t.dtype()), "lengths must be integral, got ", t.dtype());
  const Tensor c = contiguous(to(t, kCPU, kInt64));
  return {c.data<int64_t>(), c.data<int64_t>() + c.numel()};
}

}  // namespace

OP_DEFINE(mse_loss){{
    .doc = R"(The squared difference ``(input - target)^2``.)",
    .infer = pair_meta,
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b, string_view reduction) {
      run_pairs(out, a, b, PairLoss::squared, 0, reduction);
    }},
    .saves = "input, target",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b,
              string_view reduction) { return pair_grads(g * 2, a - b, reduction); },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(l1_loss){{
    .doc = R"(The absolute difference ``|input - target|``.)",
    .composite =
        [](const Tensor& a, const Tensor& b, string_view reduction) {
          return is_floating(promote_tensors(a, b)) ? smooth_l1_loss(a, b, reduction, 0)
                                                    : reduced(abs(a - b), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(smooth_l1_loss){{
    .doc =
        R"(``z^2 / (2 beta)`` where ``z = |input - target|`` is below ``beta``, else ``z - beta / 2``; l1_loss for beta 0.)",
    .infer =
        [](const Tensor& a, const Tensor& b, string_view reduction, double beta) {
          check(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
          return pair_meta(a, b, reduction);
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b, string_view reduction, double beta) {
      run_pairs(out, a, b, PairLoss::smooth, beta, reduction);
    }},
    .saves = "input, target",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b, string_view reduction, double beta) {
          return pair_grads(g, beta == 0 ? sign(a - b) : clamp((a - b) / beta, -1.0, 1.0), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(huber_loss){{
    .doc = R"(``z^2 / 2`` where ``z = |input - target|`` is at most ``delta``, else ``delta (z - delta / 2)``.)",
    .infer =
        [](const Tensor& a, const Tensor& b, string_view reduction, double delta) {
          check(delta > 0, "huber_loss does not support non-positive values for delta.");
          return pair_meta(a, b, reduction);
        },
    .kernel = {[](Tensor& out, const Tensor& a, const Tensor& b, string_view reduction, double delta) {
      run_pairs(out, a, b, PairLoss::huber, delta, reduction);
    }},
    .saves = "input, target",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b, string_view reduction,
              double delta) { return pair_grads(g, clamp(a - b, -delta, delta), reduction); },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(pick_class){{
    .doc = R"(The input at the target class of each place, 0 where that is ``ignore_index``.

Errors: IndexError for a target that is no class.)",
    .infer =
        [](const Tensor& x, const Tensor& target, int64_t) {
          check_places(x, target);
          return Meta{target.sizes(), x.dtype()};
        },
    .kernel = {cpu::pick_class},
    .saves = "input.shape, target",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& target, int64_t ignore_index) {
          return Grads{put_class(g, target, x.dim() == 1 ? -x.sizes()[0] : x.sizes()[1], ignore_index), Tensor()};
        },
}};

OP_DEFINE(put_class){{
    .doc =
        R"(Zeros with the input at the target class of each place. A negative number of classes stands for no batch.)",
    .infer =
        [](const Tensor& x, const Tensor& target, int64_t classes, int64_t) {
          check(is_integral(target.dtype()) && Ints(x.sizes()) == Ints(target.sizes()) &&
                    (target.dim() == 0) == (classes < 0),
                "expected numbers of classes for an input of shape ", x.sizes(), ", got ", scalar_name(target.dtype()),
                " of shape ", target.sizes());
          Dims sizes = target.sizes();
          if (classes < 0)
            sizes = {-classes};
          else
            sizes.insert(1, classes);
          return Meta{sizes, x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& target, int64_t, int64_t ignore_index) {
      cpu::put_class(out, x, target, ignore_index);
    }},
    .saves = "target",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& target, int64_t, int64_t ignore_index) {
          return Grads{pick_class(g, target, ignore_index), Tensor()};
        },
}};

OP_DEFINE(nll_loss){{
    .doc = R"(Minus the input at the target class, times the class's weight; the mean is weighted too.

Shape: input (C), (N, C) or (N, C, d1, ...), target the same without C.
Errors: IndexError for a target that is neither a class nor ``ignore_index``.)",
    .composite =
        [](const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
           string_view reduction) {
          check_classes(input, target, weight);
          return reduce_classes(-pick_class(input, target, ignore_index), weight, input, target, ignore_index,
                                reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(class_losses){{
    .doc = R"(``log_sum - input[target]`` with ``log_sum = log(sum(exp(input)))`` over the classes, in one pass.)",
    .infer =
        [](const Tensor& x, const Tensor& target, int64_t) {
          check_places(x, target);
          return std::array{Meta{target.sizes(), x.dtype()}, Meta{target.sizes(), x.dtype()}};
        },
    .kernel = {cpu::class_losses},
    .saves = "input, target, log_sum",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, const Tensor& target, int64_t ignore_index) {
          if (!grad_enabled())
            return Grads{class_losses_backward(g[0], g[1], x, target, results[1], ignore_index), Tensor()};
          const int64_t dim = class_dim(x), classes = x.dim() == 1 ? -x.sizes()[0] : x.sizes()[1];
          const Tensor total = where(ne(target, ignore_index), g[0], Tensor(0.0)) + g[1];
          return Grads{unsqueeze(total, dim) * exp(x - unsqueeze(results[1], dim)) -
                           put_class(g[0], target, classes, ignore_index),
                       Tensor()};
        },
}};

OP_DEFINE(class_losses_backward){{
    .doc = R"(The gradient of class_losses, in one pass.)",
    .infer =
        [](const Tensor& g, const Tensor& g_log_sum, const Tensor& x, const Tensor& target, const Tensor& log_sum,
           int64_t) {
          check_places(x, target);
          for (const Tensor* t : {&g, &g_log_sum, &log_sum})
            check(Ints(t->sizes()) == Ints(target.sizes()) && t->dtype() == x.dtype(),
                  "expected gradients and sums like the "
                  "target's places, in the input's dtype, got shape ",
                  t->sizes());
          return Meta{x.sizes(), x.dtype()};
        },
    .kernel = {cpu::class_losses_backward},
}};

OP_DEFINE(cross_entropy){{
    .doc =
        R"(The cross-entropy between logits and targets: ``-log(softmax(input))`` at the target class, times its weight.

Shape: input (C), (N, C) or (N, C, d1, ...), target the same without C for classes, or with it for probabilities.
``label_smoothing`` gives that part of each target's probability to all classes alike.
Errors: IndexError for a target that is neither a class nor ``ignore_index``.)",
    .composite =
        [](const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index, string_view reduction,
           double label_smoothing) {
          check(label_smoothing >= 0 && label_smoothing <= 1,
                "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
          if (input.sizes() == target.sizes() && input.dim() > 0)
            return cross_entropy_of_probs(input, target, weight, ignore_index, reduction, label_smoothing);
          check_classes(input, target, weight);
          if (label_smoothing > 0)
            return smoothed_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing);
          return reduce_classes(class_losses(input, target, ignore_index)[0], weight, input, target, ignore_index,
                                reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(pair_losses){{
    .doc =
        R"(Losses of probabilities, reduced: ``kind`` "entropy" is ``-(target log(input) + (1 - target) log(1 - input))`` with
logarithms not below -100, "logits" the same for sigmoid(input), "divergence" ``target (log(target) - input)``, and
"log_divergence" that for the logarithm of the target.

Errors: on the CPU RuntimeError where the entropy's input is not between 0 and 1.)",
    .infer = [](const Tensor& x, const Tensor& t, string_view,
                string_view reduction) { return pair_meta(x, t, reduction); },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& t, string_view kind, string_view reduction) {
      run_pairs(out, x, t, kind_of(kind), 0, reduction);
    }},
    .saves = "input, target",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& t, string_view kind, string_view reduction) {
          const Tensor h = reduction == "mean" ? g / double(pair_count(x, t)) : g;
          const bool by_input = needs_grad(0), by_target = needs_grad(1);
          switch (kind_of(kind)) {
            case PairLoss::entropy:
              return Grads{by_input ? h * (x - t) / clamp_min(x * (1 - x), 1e-12) : Tensor(),
                           by_target ? h * (log1p(-x) - log(x)) : Tensor()};
            case PairLoss::logit_entropy:
              return Grads{by_input ? h * (sigmoid(x) - t) : Tensor(), by_target ? -h * x : Tensor()};
            case PairLoss::divergence:
              return Grads{by_input ? -h * t : Tensor(), by_target ? h * (log(t) + 1 - x) : Tensor()};
            default:
              return Grads{by_input ? -h * exp(t) : Tensor(), by_target ? h * exp(t) * (t + 1 - x) : Tensor()};
          }
        },
}};

OP_DEFINE(binary_cross_entropy){{
    .doc = R"(The cross-entropy between probabilities and targets, both from 0 to 1.

Errors: RuntimeError where an input is not between 0 and 1.)",
    .composite =
        [](const Tensor& input, const Tensor& target, const Tensor& weight, string_view reduction) {
          if (input.device().is_cuda() && input.numel() > 0) {
            NoGrad guard;
            check(amin(input, {}).item<double>() >= 0 && amax(input, {}).item<double>() <= 1,
                  "all elements of input should be between 0 and 1");
          }
          if (!weight.defined()) return pair_losses(input, target, "entropy", reduction);
          return reduced(pair_losses(input, target, "entropy", "none") * weight, reduction);
        },
    .autocast = {Autocast::unsafe, Autocast::fp32},
}};

OP_DEFINE(binary_cross_entropy_with_logits){{
    .doc = R"(The cross-entropy between sigmoid(input) and targets; ``pos_weight`` weighs the targets' share of 1.)",
    .composite =
        [](const Tensor& input, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
           string_view reduction) {
          if (!weight.defined() && !pos_weight.defined()) return pair_losses(input, target, "logits", reduction);
          const Tensor losses = pos_weight.defined()
                                    ? (1 - target) * input - ((pos_weight - 1) * target + 1) * log_sigmoid(input)
                                    : pair_losses(input, target, "logits", "none");
          return reduced(weight.defined() ? losses * weight : losses, reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(kl_div){{
    .doc =
        R"(``target (log(target) - input)``, the Kullback-Leibler divergence of log-probabilities from target; the target may be
given as a logarithm too.)",
    .composite =
        [](const Tensor& input, const Tensor& target, string_view reduction, bool log_target) {
          const Tensor x = is_integral(promote_tensors(input, target)) ? cast(input, default_dtype()) : input;
          return pair_losses(x, target, log_target ? "log_divergence" : "divergence", reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(poisson_nll_loss){{
    .doc =
        R"(The negative log-likelihood of counts under a Poisson distribution whose rate, or its logarithm, is input. ``full`` adds
Stirling's approximation of the rest for counts above 1.)",
    .composite =
        [](const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, string_view reduction) {
          Tensor losses = log_input ? exp(input) - target * input : input - target * log(input + eps);
          if (full) {
            const Tensor rest = target * log(target) - target + 0.5 * log(2 * std::numbers::pi * target);
            losses = losses + where(target <= 1, Tensor(0.0), rest);
          }
          return reduced(losses, reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(hinge_embedding_loss){{
    .doc = R"(``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.)",
    .composite =
        [](const Tensor& input, const Tensor& target, double margin, string_view reduction) {
          const Tensor apart = where(ne(target, 1), clamp_min(margin - input, 0.0), Tensor(0.0));
          return reduced(apart + where(ne(target, -1), input, Tensor(0.0)), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(margin_ranking_loss){{
    .doc = R"(``max(0, margin - target (input1 - input2))``: target 1 wants the first higher, -1 the second.)",
    .composite =
        [](const Tensor& a, const Tensor& b, const Tensor& target, double margin, string_view reduction) {
          check(a.dim() == b.dim() && a.dim() == target.dim(),
                "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: ", a.sizes(),
                ", input2: ", b.sizes(), ", target: ", target.sizes());
          return reduced(clamp_min(-target * (a - b) + margin, 0.0), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(cosine_embedding_loss){{
    .doc = R"(``1 - cos`` of the angle between vectors where the target is 1, ``max(0, cos - margin)`` where it is -1.

Shape: inputs (N, D) with target (N), or (D) with a 0-dim target.)",
    .composite =
        [](const Tensor& a, const Tensor& b, const Tensor& target, double margin, string_view reduction) {
          check(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
          const int64_t dim = target.dim();
          check(a.dim() == dim + 1 && b.dim() == dim + 1, dim, "D target tensor expects ", dim + 1,
                "D input tensors, but found inputs with sizes ", a.sizes(), " and ", b.sizes(), ".");
          constexpr double eps = 1e-12;
          const Tensor sizes = (sum(a * a, Ints(dim)) + eps) * (sum(b * b, Ints(dim)) + eps);
          const Tensor cosine = sum(a * b, Ints(dim)) / sqrt(sizes);
          // -1 is a whole number here: unsigned targets meet it as their largest value.
          const Tensor apart = where(eq(target, Scalar(-1)), clamp_min(cosine - margin, 0.0), Tensor(0.0));
          return reduced(where_equal(target, 1, 1 - cosine) + apart, reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(soft_margin_loss){{
    .doc = R"(``log(1 + exp(-target * input))``.)",
    .composite = [](const Tensor& input, const Tensor& target,
                    string_view reduction) { return reduced(-log_sigmoid(target * input), reduction); },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(multi_margin_loss){{
    .doc =
        R"(The mean over the other classes of ``max(0, margin - input[target] + input)^p``, times the target's weight.

Shape: input (N, C) or (C), target (N) or 0-dim.)",
    .composite =
        [](const Tensor& input, const Tensor& target, Scalar p, Scalar margin, const Tensor& weight,
           string_view reduction) {
          check<ValueError>(p.to_double() == 1 || p.to_double() == 2, "only p == 1 and p == 2 supported");
          check_reduction(reduction);
          check(target.dtype() == kInt64, "expected scalar type Long but found ", scalar_name(target.dtype()));
          check(input.dim() <= 2 && (input.dim() == 0 ? input.numel() : input.sizes().back()) > 0,
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", input.sizes());
          const Tensor rows = input.dim() == 2 ? input : reshape(input, {1, -1});
          const int64_t n = rows.sizes()[0], classes = rows.sizes()[1];
          check(target.dim() <= 1 && target.numel() == n, "inconsistent target size, expected ", n, " but got ",
                target.sizes());
          check(!weight.defined() || (weight.dim() <= 1 && weight.numel() == classes),
                "inconsistent weight size, expected ", classes, " but got ",
                weight.defined() ? Ints(weight.sizes()) : Ints());
          constexpr int64_t none = -100;
          const Tensor goal = reshape(target, {n});
          Tensor z = clamp_min(rows - unsqueeze(pick_class(rows, goal, none), 1) + Tensor(margin), 0.0);
          if (p.to_double() == 2) z = z * z;
          z = z * (1 - put_class(ones({n}, rows.dtype(), {}, rows.device()), goal, classes, none));
          Tensor losses = sum(z, Ints({1})) / double(classes);
          if (weight.defined()) losses = losses * weights_of(weight, rows, goal, none);
          return reduced(input.dim() == 2 || target.dim() == 1 ? losses : reshape(losses, {}), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(label_margins){{
    .doc = R"(The multi-label hinge loss of each row and its slopes.)",
    .infer =
        [](const Tensor& x, const Tensor& target) {
          check(x.sizes() == target.sizes(), "inconsistent target size: ", target.sizes(),
                " for input of size: ", x.sizes());
          Dims rows = x.sizes();
          if (!rows.empty()) rows.erase(rows.size() - 1);
          return std::array{Meta{rows, x.dtype()}, Meta{x.sizes(), x.dtype()}};
        },
    .kernel = {cpu::label_margins},
    .saves = "input.shape, slopes",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, const Tensor&) {
          return Grads{(x.dim() ? unsqueeze(g[0], -1) : g[0]) * results[1].detach(), Tensor()};
        },
}};

OP_DEFINE(multilabel_margin_loss){{
    .doc =
        R"(``max(0, 1 - input[j] + input[i])``, summed over all target classes j and other classes i, over the number of classes.

Shape: input (N, C) or (C), target the same: the target classes of a row, closed by -1.)",
    .composite =
        [](const Tensor& input, const Tensor& target, string_view reduction) {
          check(input.dim() <= 2 && (input.dim() == 0 || input.sizes().back() > 0),
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", input.sizes());
          return reduced(label_margins(input, target)[0], reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(triplet_margin_loss){{
    .doc =
        R"(``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the distance d of the p-norm; ``swap`` takes the smaller
distance of the negative to the other two.)",
    .composite =
        [](const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p, double eps,
           bool swap, string_view reduction) {
          check(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
                "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
                "got: anchor ",
                anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
          const Tensor near = pairwise_distance(anchor, positive, p, eps);
          Tensor far = pairwise_distance(anchor, negative, p, eps);
          if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
          return reduced(clamp_min(near - far + margin, 0.0), reduction);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(ctc_losses){{
    .doc =
        R"(Minus the log probability of each target of the batch. The gradient is the one at log_probs from log_softmax.)",
    .infer =
        [](const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths, int64_t blank) {
          check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
          return Meta{{log_probs.sizes()[1]}, log_probs.dtype()};
        },
    .kernel = {cpu::ctc_losses},
    .saves = "log_probs, targets",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& log_probs, const Tensor& targets, Ints input_lengths,
           Ints target_lengths, int64_t blank) {
          return Grads{ctc_losses_backward(g, log_probs, targets, input_lengths, target_lengths, blank), Tensor()};
        },
}};

OP_DEFINE(ctc_losses_backward){{
    .doc = R"(The gradient of ctc_losses at log_probs.)",
    .infer =
        [](const Tensor& g, const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
           int64_t blank) {
          check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
          check(g.dim() == 1 && g.sizes()[0] == log_probs.sizes()[1] && g.dtype() == log_probs.dtype(),
                "expected a gradient for each of ", log_probs.sizes()[1], " losses, got shape ", g.sizes());
          return Meta{log_probs.sizes(), log_probs.dtype()};
        },
    .kernel = {cpu::ctc_losses_backward},
}};

OP_DEFINE(ctc_loss){
    {
        .doc =
            R"(Connectionist temporal classification: minus the log probability of the targets over all alignments with the inputs.
The mean divides each loss by its target's length first.

Shape: log_probs (T, N, C) or (T, C), targets (N, S) or all joined, lengths (N).
Source: Graves et al. 2006, Connectionist temporal classification, ICML.)",
        .composite =
            [](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
               const Tensor& target_lengths, int64_t blank, string_view reduction, bool zero_infinity) {
              return ctc_loss(log_probs, targets, Ints(lengths_of(input_lengths)), Ints(lengths_of(target_lengths)),
                              blank, reduction, zero_infinity);
            },
        .autocast = on_cpu(Autocast::fp32),
    },
    {
        .doc = R"(The same with lengths as integers.)",
        .composite =
            [](const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths, int64_t blank,
               string_view reduction, bool zero_infinity) {
              check_reduction(reduction);
              const bool batched = log_probs.dim() == 3;
              check(batched || log_probs.dim() == 2, "log_probs must be 2- or 3-dimensional, got ", log_probs.sizes());
              Tensor losses = ctc_losses(batched ? log_probs : unsqueeze(log_probs, 1), targets, input_lengths,
                                         target_lengths, blank);
              if (zero_infinity) losses = where(isinf(losses), Tensor(0.0), losses);
              if (reduction == "mean") {
                Tensor lengths = empty({int64_t(target_lengths.size())}, kFloat64, {}, kCPU);
                for (size_t i = 0; i < target_lengths.size(); ++i)
                  lengths.data<double>()[i] = double(std::max<int64_t>(target_lengths[i], 1));
                return mean(losses / to(lengths, losses.device(), losses.dtype()));
              }
              if (reduction == "sum") return sum(losses);
              return batched ? losses : select(losses, 0, 0);
            },
        .autocast = on_cpu(Autocast::fp32),
    }};

}  // namespace rush
