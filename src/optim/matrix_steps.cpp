// Steps of the optimizers for which a parameter is a matrix, not only its elements: Adafactor, which keeps moments of
// its rows and columns, and Muon, which makes its momentum orthogonal. They are compositions of operators, so they run
// wherever those do.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"
#include "rushlight/optim/steps.h"

namespace rush::optim {
namespace {

/// Checks that `others` is as long as `params`.
void check_length(Tensors params, Tensors others, const char* name) {
  check(others.size() == params.size(), "got ", params.size(), " params and ", others.size(), " ", name);
}

void check_grad(const Tensor& p, const Tensor& g) {
  check(is_floating(p.dtype()), "expected a parameter of a floating dtype, got ", name_of(p.dtype()));
  check(p.sizes() == g.sizes(), "grad of shape ", g.sizes(), " does not match its parameter of shape ", p.sizes());
}

/// Makes the state `t` if it is undefined, else checks that it has these sizes and the gradient's dtype.
void need_state(Tensor& t, const Tensor& grad, const Dims& sizes, const char* name) {
  if (!t.defined()) t = zeros(sizes, grad.dtype(), {}, grad.device());
  check(t.sizes() == sizes && t.dtype() == grad.dtype(), name, " of shape ", t.sizes(), " and dtype ",
        name_of(t.dtype()), " does not fit a gradient of shape ", grad.sizes(), ", which needs shape ", sizes,
        " and dtype ", name_of(grad.dtype()));
}

// ---- Adafactor

/// The distance from 1 to the next number of a dtype.
double eps_of(DType t) { return std::ldexp(1., t == kFloat64 ? -52 : t == kFloat32 ? -23 : t == kFloat16 ? -10 : -7); }

double root_mean_square(const Tensor& t) { return linalg_vector_norm(t).item<double>() / std::sqrt(double(t.numel())); }

Tensor mean_square(const Tensor& t, int64_t dim) {
  return square(linalg_vector_norm(t, 2, Ints({dim}), true)) / double(t.size(dim));
}

/// The running mean of squared gradients: itself for vectors, else the product of its rows' and columns' means.
struct Moments {
  Tensor variance, row, col;

  Tensor moved(const Tensor& g, double weight, double eps) const {
    if (!row.defined()) return clone(variance.lerp_(square(g), weight));
    row.lerp_(mean_square(g, -1), weight);
    col.lerp_(mean_square(g, -2), weight);
    return row / clamp_min(mean(row, Ints({-2}), true), eps) * col;
  }
};

void step_one(const Tensor& p, const Tensor& g, const Moments& moments, double step, const AdafactorOptions& o) {
  const double eps = o.eps.first.value_or(eps_of(p.dtype()));
  const double rate = std::max(o.eps.second, root_mean_square(p)) * std::min(o.lr, 1 / std::sqrt(step));
  if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  const Tensor update = moments.moved(g, std::pow(step, o.beta2_decay), eps);
  update.clamp_min_(eps * eps).rsqrt_().mul_(g);
  const double clipped = rate / std::max(1., root_mean_square(update) / o.d);
  p.add_(update, o.maximize ? clipped : -clipped);
}

// ---- Muon

/// Pulls all singular values of matrices (n, rows, columns), which are not tall, towards 1 by the quintic Newton-Schulz
/// iteration.
Tensor orthogonalize(Tensor x, const MuonOptions& o) {
  const auto [a, b, c] = o.ns_coefficients;
  x = x / clamp_min(linalg_vector_norm(x, 2, Ints({-2, -1}), true), o.eps);
  for (int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = bmm(x, transpose(x, -2, -1));
    x = baddbmm(x, baddbmm(gram, gram, gram, b, c), x, a);
  }
  return x;
}

double adjustment(const MuonOptions& o, double rows, double columns) {
  if (o.adjust_lr_fn == "original") return std::sqrt(std::max(1., rows / columns));
  if (o.adjust_lr_fn == "match_rms_adamw") return 0.2 * std::sqrt(std::max(rows, columns));
  if (o.adjust_lr_fn == "spectral_unclamped") return std::sqrt(rows / columns);
  raise<ValueError>("Adjust learning rate function ", o.adjust_lr_fn, " is not supported");
}

constexpr int64_t kStacked = 1 << 22;  // elements; products of larger matrices fill the machine one by one

/// Updates that are orthogonalized at once: they are of one shape, tall ones lying on their side.
struct Stack {
  std::vector<size_t> members;
  std::vector<Tensor> matrices;
};

bool is_tall(const Tensor& t) { return t.size(0) > t.size(1); }

bool takes(const Stack& stack, const Tensor& matrix) {
  const Tensor& first = stack.matrices[0];
  return first.sizes() == matrix.sizes() && first.device() == matrix.device() &&
         first.numel() * int64_t(stack.matrices.size() + 1) <= kStacked;
}

}  // namespace

template <>
bool step(StepLists& lists, const AdafactorOptions& o) {
  const NoGrad guard;
  check_length(lists.params, lists.grads, "grads");
  check(lists.counters.size() == 1 && lists.states.size() == 3, "Adafactor has 1 counter and 3 states");
  check_length(lists.params, lists.counters[0], "step");
  for (size_t s = 0; s < 3; ++s) check_length(lists.params, lists.states[s], o.states[s]);
  for (size_t i = 0; i < lists.params.size(); ++i) {  // what can be wrong is found before anything moves
    const Tensor& g = lists.grads[i];
    check_grad(lists.params[i], g);
    for (size_t s = 0; s < 3; ++s)
      if (const auto sizes = o.state_sizes(s, g.sizes())) need_state(lists.states[s][i], g, *sizes, o.states[s]);
    Tensor& counter = lists.counters[0][i];
    if (!counter.defined()) counter = zeros({});
    check(counter.numel() == 1, "step must have one element, got shape ", counter.sizes());
  }
  for (size_t i = 0; i < lists.params.size(); ++i) {
    const Tensor &g = lists.grads[i], &counter = lists.counters[0][i];
    counter.add_(1);
    if (g.numel() == 0) continue;
    step_one(lists.params[i], g, {lists.states[0][i], lists.states[1][i], lists.states[2][i]}, counter.item<double>(),
             o);
  }
  return true;
}

template <>
bool step(StepLists& lists, const MuonOptions& o) {
  const NoGrad guard;
  adjustment(o, 1, 1);  // throws for a name that is none, before anything has moved
  check<ValueError>(o.ns_steps < 100, "Number of steps must be less than 100 for computational efficiency");
  check_length(lists.params, lists.grads, "grads");
  check(lists.counters.empty() && lists.states.size() == 1, "Muon has 1 state");
  check_length(lists.params, lists.states[0], o.states[0]);
  for (size_t i = 0; i < lists.params.size(); ++i) {  // what can be wrong is found before anything moves
    const Tensor& g = lists.grads[i];
    check_grad(lists.params[i], g);
    check<ValueError>(g.dim() == 2, "Param gradient must be a 2D matrix");
    need_state(lists.states[0][i], g, g.sizes(), o.states[0]);
  }
  std::vector<Stack> stacks;
  for (size_t i = 0; i < lists.params.size(); ++i) {
    const Tensor &g = lists.grads[i], &average = lists.states[0][i];
    average.lerp_(g, 1 - o.momentum);
    if (g.numel() == 0) continue;
    const Tensor update = cast(o.nesterov ? lerp(g, average, o.momentum) : clone(average), kBFloat16);
    const Tensor matrix = is_tall(update) ? t(update) : update;
    auto stack = std::find_if(stacks.begin(), stacks.end(), [&](const Stack& s) { return takes(s, matrix); });
    if (stack == stacks.end()) stack = stacks.insert(stack, Stack());
    stack->members.push_back(i);
    stack->matrices.push_back(matrix);
  }
  for (const Stack& s : stacks) {
    const Tensor updates = orthogonalize(stack(s.matrices), o);
    for (size_t k = 0; k < s.members.size(); ++k) {
      const Tensor &p = lists.params[s.members[k]], update = select(updates, 0, int64_t(k));
      if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
      p.add_(is_tall(p) ? t(update) : update, -o.lr * adjustment(o, double(p.size(0)), double(p.size(1))));
    }
  }
  return true;
}

}  // namespace rush::optim
