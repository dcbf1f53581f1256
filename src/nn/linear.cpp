// Layers that are a matrix product.
#include "rushlight/nn/linear.h"

#include <cmath>

#include "rushlight/nn/init.h"
#include "rushlight/ops.h"

namespace rush::nn {

LinearImpl::LinearImpl(const LinearOptions& o) : Layer(o) {
  weight = empty({o.out_features, o.in_features}, o.dtype, {}, o.device);
  if (o.bias) bias = empty({o.out_features}, o.dtype, {}, o.device);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!bias.defined()) return;
  const int64_t fan_in = weight.size(1);
  const double bound = fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Tensor& input) { return linear(input, weight, bias); }

std::string LinearImpl::extra_repr() const {
  return text("in_features=", options.in_features.value, ", out_features=", options.out_features.value,
              ", bias=", repr::of(bias.defined()));
}

BilinearImpl::BilinearImpl(const BilinearOptions& o) : Layer(o) {
  check<ValueError>(o.in1_features > 0, "in1_features must be > 0, but got ", o.in1_features.value);
  weight = empty({o.out_features, o.in1_features, o.in2_features}, o.dtype, {}, o.device);
  if (o.bias) bias = empty({o.out_features}, o.dtype, {}, o.device);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(double(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return bilinear(input1, input2, weight, bias);
}

std::string BilinearImpl::extra_repr() const {
  return text("in1_features=", options.in1_features.value, ", in2_features=", options.in2_features.value,
              ", out_features=", options.out_features.value, ", bias=", repr::of(bias.defined()));
}

}  // namespace rush::nn
