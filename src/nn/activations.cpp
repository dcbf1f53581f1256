// Nonlinearities as layers.
#include "rushlight/nn/activations.h"

#include "rushlight/nn/init.h"
#include "rushlight/ops.h"

namespace rush::nn {
namespace {

/// The operator's result, or its in-place form.
template <class Op, class... A>
Tensor activate(const Op& op, bool inplace, const Tensor& input, const A&... rest) {
  if (!inplace) return op(input, rest...);
  Tensor x = input;
  return in_place(op, x, rest...);
}
std::string then_inplace(bool inplace) { return inplace ? ", inplace=True" : ""; }

}  // namespace

Tensor ReLUImpl::forward(const Tensor& x) { return activate(relu, options.inplace, x); }
Tensor ReLU6Impl::forward(const Tensor& x) { return activate(relu6, options.inplace, x); }
Tensor SELUImpl::forward(const Tensor& x) { return activate(selu, options.inplace, x); }
Tensor SiLUImpl::forward(const Tensor& x) { return activate(silu, options.inplace, x); }
Tensor MishImpl::forward(const Tensor& x) { return activate(mish, options.inplace, x); }
Tensor HardswishImpl::forward(const Tensor& x) { return activate(hardswish, options.inplace, x); }
Tensor HardsigmoidImpl::forward(const Tensor& x) { return activate(hardsigmoid, options.inplace, x); }

Tensor SigmoidImpl::forward(const Tensor& x) { return sigmoid(x); }
Tensor TanhImpl::forward(const Tensor& x) { return tanh(x); }
Tensor LogSigmoidImpl::forward(const Tensor& x) { return log_sigmoid(x); }
Tensor SoftsignImpl::forward(const Tensor& x) { return softsign(x); }
Tensor TanhshrinkImpl::forward(const Tensor& x) { return tanhshrink(x); }

Tensor ELUImpl::forward(const Tensor& x) { return activate(elu, options.inplace, x, Scalar(options.alpha)); }
std::string ELUImpl::extra_repr() const { return "alpha=" + repr::of(options.alpha) + then_inplace(options.inplace); }
Tensor CELUImpl::forward(const Tensor& x) { return activate(celu, options.inplace, x, Scalar(options.alpha)); }
std::string CELUImpl::extra_repr() const { return "alpha=" + repr::of(options.alpha) + then_inplace(options.inplace); }

Tensor LeakyReLUImpl::forward(const Tensor& x) {
  return activate(leaky_relu, options.inplace, x, Scalar(options.negative_slope));
}
std::string LeakyReLUImpl::extra_repr() const {
  return "negative_slope=" + repr::of(options.negative_slope) + then_inplace(options.inplace);
}

HardtanhImpl::HardtanhImpl(const HardtanhOptions& o) : Layer(o) {
  check<ValueError>(o.min_val < o.max_val, "max_val must be larger than min_val, but got min_val=", repr::of(o.min_val),
                    " and max_val=", repr::of(o.max_val));
}
Tensor HardtanhImpl::forward(const Tensor& x) {
  return activate(hardtanh, options.inplace, x, Scalar(options.min_val), Scalar(options.max_val));
}
std::string HardtanhImpl::extra_repr() const {
  return "min_val=" + repr::of(options.min_val) + ", max_val=" + repr::of(options.max_val) +
         then_inplace(options.inplace);
}

Tensor ThresholdImpl::forward(const Tensor& x) {
  return activate(threshold, options.inplace, x, Scalar(options.threshold.value), Scalar(options.value.value));
}
std::string ThresholdImpl::extra_repr() const {
  return "threshold=" + repr::of(options.threshold.value) + ", value=" + repr::of(options.value.value) +
         then_inplace(options.inplace);
}

Tensor GELUImpl::forward(const Tensor& x) { return gelu(x, options.approximate); }
std::string GELUImpl::extra_repr() const { return "approximate=" + repr::of(std::string_view(options.approximate)); }

Tensor GLUImpl::forward(const Tensor& x) { return glu(x, options.dim); }
std::string GLUImpl::extra_repr() const { return text("dim=", options.dim); }

Tensor HardshrinkImpl::forward(const Tensor& x) { return hardshrink(x, Scalar(options.lambd)); }
std::string HardshrinkImpl::extra_repr() const { return repr::of(options.lambd); }
Tensor SoftshrinkImpl::forward(const Tensor& x) { return softshrink(x, Scalar(options.lambd)); }
std::string SoftshrinkImpl::extra_repr() const { return repr::of(options.lambd); }

Tensor SoftplusImpl::forward(const Tensor& x) { return softplus(x, Scalar(options.beta), Scalar(options.threshold)); }
std::string SoftplusImpl::extra_repr() const {
  return "beta=" + repr::of(options.beta) + ", threshold=" + repr::of(options.threshold);
}

PReLUImpl::PReLUImpl(const PReLUOptions& o) : Layer(o) {
  weight = empty({o.num_parameters}, o.dtype, {}, o.device);
  register_parameter("weight", weight);
  reset_parameters();
}
void PReLUImpl::reset_parameters() { init::constant_(weight, options.init); }
Tensor PReLUImpl::forward(const Tensor& x) { return prelu(x, weight); }
std::string PReLUImpl::extra_repr() const { return text("num_parameters=", options.num_parameters); }

Tensor SoftmaxImpl::forward(const Tensor& x) { return softmax(x, options.dim); }
std::string SoftmaxImpl::extra_repr() const { return text("dim=", options.dim.value); }
Tensor SoftminImpl::forward(const Tensor& x) { return softmax(-x, options.dim); }
std::string SoftminImpl::extra_repr() const { return text("dim=", options.dim.value); }
Tensor LogSoftmaxImpl::forward(const Tensor& x) { return log_softmax(x, options.dim); }
std::string LogSoftmaxImpl::extra_repr() const { return text("dim=", options.dim.value); }

}  // namespace rush::nn
