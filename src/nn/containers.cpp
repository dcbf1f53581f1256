// Modules that hold modules.
#include "rushlight/nn/containers.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "ops/inference.h"
#include "rushlight/autograd.h"
#include "rushlight/nn/activations.h"
#include "rushlight/nn/convolutions.h"
#include "rushlight/nn/linear.h"
#include "rushlight/nn/normalizations.h"

namespace rush::nn {
namespace {

int64_t position(int64_t index, int64_t size, int64_t end) {
  check<IndexError>(-size <= index && index < end, "index ", index, " is out of range for ", size, " modules");
  return index < 0 ? index + size : index;
}

/// The module at `i` if it is of exactly this class, else null.
template <class M, class Row>
const M* exactly(const Row& row, size_t i) {
  return i < row.size() && typeid(*row[i].second) == typeid(M) ? static_cast<const M*>(row[i].second.get()) : nullptr;
}

/// The bounds of the ReLU or ReLU6 at `i`, if there is one.
template <class Row>
std::optional<std::pair<double, double>> bounds_of(const Row& row, size_t i) {
  if (exactly<ReLU6Impl>(row, i)) return std::pair{0.0, 6.0};
  if (exactly<ReLUImpl>(row, i)) return std::pair{0.0, std::numeric_limits<double>::infinity()};
  return std::nullopt;
}

bool plain(std::initializer_list<Tensor> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor& t) { return !t.defined() || (t.dtype() == kFloat32 && t.device().is_cpu()); });
}

/// Runs the linear layer at `first` with the ReLU behind it in one pass over x, where that gives the same: how many
/// modules ran, maybe none.
template <class Row>
size_t run_fused_linear(const Row& row, size_t first, Tensor& x) {
  const auto* linear = exactly<LinearImpl>(row, first);
  const auto bounds = linear && x.defined() ? bounds_of(row, first + 1) : std::nullopt;
  if (!bounds || !plain({x, linear->weight, linear->bias})) return 0;
  x = fused_linear(x, linear->weight, linear->bias, bounds->first, bounds->second);
  return 2;
}

/// The same for the convolution at `first`, with the batch norm and the ReLU behind it.
template <class Row>
size_t run_fused_convolution(const Row& row, size_t first, Tensor& x) {
  const auto* conv = exactly<ConvImpl<2>>(row, first);
  if (!conv || !x.defined() || conv->options.padding_mode != "zeros" || !conv->options.padding.name().empty() ||
      x.dim() != 4)
    return 0;
  const auto& o = conv->options;
  FusedConvolution fused{conv->weight, conv->bias, o.stride.all(), o.padding.all(), o.dilation.all(), o.groups};
  size_t next = first + 1;
  if (const auto* norm = exactly<BatchNormImpl<2>>(row, next);
      norm && !norm->is_training() && norm->running_mean.defined()) {
    fused.mean = norm->running_mean, fused.var = norm->running_var;
    fused.norm_weight = norm->weight, fused.norm_bias = norm->bias;
    fused.eps = norm->options.eps;
    ++next;
  }
  if (const auto bounds = bounds_of(row, next)) {
    std::tie(fused.low, fused.high) = *bounds;
    ++next;
  }
  if (next == first + 1 ||
      !plain({x, fused.weight, fused.bias, fused.mean, fused.var, fused.norm_weight, fused.norm_bias}))
    return 0;
  x = fused_convolution(x, fused);
  return next - first;
}

}  // namespace

Module& ModuleRow::operator[](int64_t index) const {
  const auto count = int64_t(size());
  return *children_[size_t(position(index, count, count))].second;
}

void ModuleRow::insert(int64_t index, std::shared_ptr<Module> module) {
  const auto count = int64_t(size()), at = position(index, count, count + 1);
  append(std::move(module));  // then every module behind moves up by one, the names stay
  for (auto i = size_t(count); i > size_t(at); --i) std::swap(children_[i].second, children_[i - 1].second);
}

Tensor SequentialImpl::forward(const Tensor& input) {
  const bool unseen = !grad_enabled() && !modes().autocast;  // by autograd, autocast and profilers
  Tensor x = input;
  for (size_t i = 0; i < size();) {
    size_t ran = unseen ? run_fused_linear(children_, i, x) : 0;
    if (unseen && ran == 0) ran = run_fused_convolution(children_, i, x);
    if (ran == 0) x = children_[i].second->forward(x);
    i += std::max<size_t>(ran, 1);
  }
  return x;
}

std::string ModuleListImpl::to_string() const {
  if (children_.empty()) return name() + "()";
  std::string result = name() + "(\n";
  for (size_t first = 0, next; first < size(); first = next) {
    const std::string text = children_[first].second->to_string();
    next = first + 1;
    while (next < size() && children_[next].second->to_string() == text) ++next;
    std::string line = "(" + std::to_string(first);
    if (next - first > 1)
      line += "-" + std::to_string(next - 1) + "): " + std::to_string(next - first) + " x ";
    else
      line += "): ";
    result += "  " + repr::indent_rest(line + text) + "\n";
  }
  return result + ")";
}

}  // namespace rush::nn
