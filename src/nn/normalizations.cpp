// Normalization layers.
#include "rushlight/nn/normalizations.h"

#include "rushlight/autograd.h"
#include "rushlight/nn/init.h"
#include "rushlight/ops.h"

namespace rush::nn {
namespace {

/// A scale and a shift of `sizes`, each where it is used.
template <class Norm>
void make_affine(Norm& norm, Ints sizes, bool scale, bool shift) {
  const auto& o = norm.options;
  if (scale) norm.weight = empty(sizes, o.dtype, {}, o.device);
  norm.register_parameter("weight", norm.weight);
  if constexpr (requires { norm.bias; }) {
    if (scale && shift) norm.bias = empty(sizes, o.dtype, {}, o.device);
    norm.register_parameter("bias", norm.bias);
  }
}
void reset_affine(const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

}  // namespace

// ---- with running statistics ----

template <class O>
RunningNorm<O>::RunningNorm(const O& o) : Layer<O>(o) {
  make_affine(*this, {o.num_features}, o.affine, o.bias);
  if (o.track_running_stats) {
    running_mean = empty({o.num_features}, o.dtype, {}, o.device);
    running_var = empty({o.num_features}, o.dtype, {}, o.device);
    num_batches_tracked = empty({}, kInt64, {}, o.device);
  }
  this->register_buffer("running_mean", running_mean);
  this->register_buffer("running_var", running_var);
  this->register_buffer("num_batches_tracked", num_batches_tracked);
  reset_parameters();
}

template <class O>
void RunningNorm<O>::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::constant_(num_batches_tracked, 0);
}

template <class O>
void RunningNorm<O>::reset_parameters() {
  reset_running_stats();
  reset_affine(weight, bias);
}

template <class O>
std::string RunningNorm<O>::extra_repr() const {
  const O& o = this->options;
  return text(o.num_features.value, ", eps=", repr::of(o.eps), ", momentum=", repr::of(o.momentum),
              ", affine=", repr::of(o.affine), ", bias=", repr::of(bias.defined()),
              ", track_running_stats=", repr::of(o.track_running_stats));
}

template <size_t N>
Tensor BatchNormImpl<N>::forward(const Tensor& input) {
  const int64_t dims = input.dim();
  if constexpr (N == 1)
    check<ValueError>(dims == 2 || dims == 3, "expected 2D or 3D input (got ", dims, "D input)");
  else
    check<ValueError>(dims == N + 2, "expected ", N + 2, "D input (got ", dims, "D input)");
  const bool tracks = options.track_running_stats, training = training_ || !running_mean.defined();
  if (training)
    check<ValueError>(input.numel() != input.size(1),
                      "Expected more than 1 value per channel when training, got input size ", input.sizes());
  double factor = options.momentum.value_or(0);
  if (training_ && tracks && num_batches_tracked.defined()) {
    const NoGrad guard;
    in_place(add, num_batches_tracked, Tensor(1));
    if (!options.momentum) factor = 1 / num_batches_tracked.item<double>();
  }
  const bool statistics = !training_ || tracks;
  return batch_norm(input, statistics ? running_mean : Tensor(), statistics ? running_var : Tensor(), weight, bias,
                    training, factor, options.eps);
}

template <size_t N>
Tensor InstanceNormImpl<N>::forward(const Tensor& input) {
  const int64_t dim = input.dim() - int64_t(N) - 1;
  check<ValueError>(dim == 0 || dim == 1, "expected ", N + 1, "D or ", N + 2, "D input (got ", input.dim(), "D input)");
  check<ValueError>(!options.affine || input.size(dim) == options.num_features, "expected input's size at dim=", dim,
                    " to match num_features (", options.num_features.value, "), but got: ", input.size(dim), ".");
  const bool own_statistics = training_ || !options.track_running_stats;
  check<ValueError>(!own_statistics || input.numel() != input.size(0) * (dim ? input.size(1) : 1),
                    "Expected more than 1 spatial element when training, got input size ", input.sizes());
  const Tensor y = instance_norm(dim ? input : unsqueeze(input, 0), running_mean, running_var, weight, bias,
                                 own_statistics, options.momentum.value_or(0), options.eps);
  return dim ? y : squeeze(y, 0);
}

template struct RunningNorm<BatchNormOptions>;
template struct RunningNorm<InstanceNormOptions>;
template struct BatchNormImpl<1>;
template struct BatchNormImpl<2>;
template struct BatchNormImpl<3>;
template struct InstanceNormImpl<1>;
template struct InstanceNormImpl<2>;
template struct InstanceNormImpl<3>;

// ---- within an example ----

LayerNormImpl::LayerNormImpl(const LayerNormOptions& o) : Layer(o) {
  make_affine(*this, Dims(o.normalized_shape), o.elementwise_affine, o.bias);
  reset_parameters();
}
void LayerNormImpl::reset_parameters() { reset_affine(weight, bias); }
Tensor LayerNormImpl::forward(const Tensor& input) {
  return layer_norm(input, Dims(options.normalized_shape), weight, bias, options.eps);
}
std::string LayerNormImpl::extra_repr() const {
  return text(repr::tuple(Dims(options.normalized_shape)), ", eps=", repr::of(options.eps),
              ", elementwise_affine=", repr::of(options.elementwise_affine), ", bias=", repr::of(bias.defined()));
}

RMSNormImpl::RMSNormImpl(const RMSNormOptions& o) : Layer(o) {
  make_affine(*this, Dims(o.normalized_shape), o.elementwise_affine, false);
  reset_parameters();
}
void RMSNormImpl::reset_parameters() { reset_affine(weight, {}); }
Tensor RMSNormImpl::forward(const Tensor& input) {
  return rms_norm(input, Dims(options.normalized_shape), weight, options.eps);
}
std::string RMSNormImpl::extra_repr() const {
  return text(repr::tuple(Dims(options.normalized_shape)), ", eps=", repr::of(options.eps),
              ", elementwise_affine=", repr::of(options.elementwise_affine));
}

GroupNormImpl::GroupNormImpl(const GroupNormOptions& o) : Layer(o) {
  check<ValueError>(o.num_channels % o.num_groups == 0, "num_channels (", o.num_channels.value,
                    ") must be divisible by num_groups (", o.num_groups.value, ")");
  make_affine(*this, {o.num_channels}, o.affine, o.bias);
  reset_parameters();
}
void GroupNormImpl::reset_parameters() { reset_affine(weight, bias); }
Tensor GroupNormImpl::forward(const Tensor& input) {
  return group_norm(input, options.num_groups, weight, bias, options.eps);
}
std::string GroupNormImpl::extra_repr() const {
  return text(options.num_groups.value, ", ", options.num_channels.value, ", eps=", repr::of(options.eps),
              ", affine=", repr::of(options.affine), ", bias=", repr::of(bias.defined()));
}

}  // namespace rush::nn
