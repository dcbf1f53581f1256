// First values of parameters, with the draws of Python's nn.init.
#include "rushlight/nn/init.h"

#include <algorithm>
#include <cmath>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush::nn::init {
namespace {

double fan_of(const Tensor& tensor, std::string_view mode) {
  check<ValueError>(mode == "fan_in" || mode == "fan_out", "Mode ", mode,
                    " not supported, please use one of ['fan_in', 'fan_out']");
  const auto [fan_in, fan_out] = fan_in_and_fan_out(tensor);
  return double(mode == "fan_in" ? fan_in : fan_out);
}
double kaiming_std(const Tensor& tensor, const KaimingOptions& o) {
  return calculate_gain(o.nonlinearity, o.a) / std::sqrt(fan_of(tensor, o.mode));
}
double xavier_std(const Tensor& tensor, double gain) {
  const auto [fan_in, fan_out] = fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / double(fan_in + fan_out));
}
Tensor fresh_like(const Tensor& t) { return empty(t.sizes(), t.dtype(), {}, t.device()); }

}  // namespace

double calculate_gain(std::string_view nonlinearity, OptDouble param) {
  for (const char* linear :
       {"linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    if (nonlinearity == linear) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "selu") return 3.0 / 4;
  const double slope = param.value_or(0.01);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + slope * slope));
  raise<ValueError>("Unsupported nonlinearity ", nonlinearity);
}

std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& weight) {
  check<ValueError>(weight.dim() >= 2,
                    "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  const int64_t field = product(Ints(weight.sizes()).slice(2, size_t(weight.dim()) - 2));
  return {weight.size(1) * field, weight.size(0) * field};
}

Tensor uniform_(Tensor tensor, double a, double b, Generator* generator) {
  const NoGrad guard;
  return in_place(uniform, tensor, a, b, generator);
}
Tensor normal_(Tensor tensor, double mean, double std, Generator* generator) {
  const NoGrad guard;
  return rush::normal_(tensor, mean, std, generator);
}
Tensor constant_(Tensor tensor, Scalar value) {
  const NoGrad guard;
  return in_place(fill, tensor, Tensor(value));
}
Tensor ones_(Tensor tensor) { return constant_(tensor, 1.0); }
Tensor zeros_(Tensor tensor) { return constant_(tensor, 0.0); }

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b, Generator* generator) {
  const NoGrad guard;
  const auto below = [](double x) { return (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  const auto any_of = [](const Tensor& mask) { return sum(mask).item<int64_t>() > 0; };
  Tensor result;
  if (below((b - mean) / std) - below((a - mean) / std) > 0.3) {
    const auto rounded = [&](double bound) { return full({}, bound, tensor.dtype()).item(); };
    const Scalar low = rounded(a), high = rounded(b);
    result = normal_(tensor, mean, std, generator);
    for (;;) {
      const Tensor outside = (result < Tensor(low)) | (result > Tensor(high));
      if (!any_of(outside)) break;
      result = where(outside, normal_(fresh_like(result), mean, std, generator), result);
    }
  } else {
    const double nearest = (std::max(a, std::min(mean, b)) - mean) / std;
    const double peak = -0.5 * nearest * nearest;
    const auto rejected = [&](const Tensor& candidates) {
      const Tensor log_density = square((candidates - mean) / std) * -0.5 - peak;
      return log(uniform_(fresh_like(tensor), 0, 1, generator)) > log_density;
    };
    result = uniform_(tensor, a, b, generator);
    for (Tensor pending = rejected(result); any_of(pending);) {
      const Tensor candidates = uniform_(fresh_like(tensor), a, b, generator);
      result = where(pending, candidates, result);
      pending = where(pending, rejected(candidates), pending);
    }
  }
  return result.is_same(tensor) ? tensor : in_place(copy, tensor, result);
}

Tensor eye_(Tensor tensor) {
  check<ValueError>(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const NoGrad guard;
  return in_place(copy, tensor, eye(tensor.size(0), tensor.size(1), tensor.dtype(), {}, tensor.device()));
}

Tensor dirac_(Tensor tensor, int64_t groups) {
  check<ValueError>(3 <= tensor.dim() && tensor.dim() <= 5, "Only tensors with 3, 4, or 5 dimensions are supported");
  check<ValueError>(tensor.size(0) % groups == 0, "dim 0 must be divisible by groups");
  const NoGrad guard;
  zeros_(tensor);
  const int64_t per_group = tensor.size(0) / groups;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t channel = 0; channel < std::min(per_group, tensor.size(1)); ++channel) {
      Tensor place = select(select(tensor, 0, group * per_group + channel), 0, channel);
      while (place.dim() > 0) place = select(place, 0, place.size(0) / 2);
      constant_(place, 1.0);
    }
  return tensor;
}

Tensor xavier_uniform_(Tensor tensor, double gain, Generator* generator) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(tensor, -bound, bound, generator);
}
Tensor xavier_normal_(Tensor tensor, double gain, Generator* generator) {
  return normal_(tensor, 0, xavier_std(tensor, gain), generator);
}
Tensor kaiming_uniform_(Tensor tensor, const KaimingOptions& o) {
  if (tensor.numel() == 0) return tensor;
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, o);
  return uniform_(tensor, -bound, bound, o.generator);
}
Tensor kaiming_normal_(Tensor tensor, const KaimingOptions& o) {
  if (tensor.numel() == 0) return tensor;
  return normal_(tensor, 0, kaiming_std(tensor, o), o.generator);
}

Tensor sparse_(Tensor tensor, double sparsity, double std, Generator* generator) {
  check<ValueError>(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const NoGrad guard;
  normal_(tensor, 0, std, generator);
  const int64_t rows = tensor.size(0);
  const auto zero_rows = int64_t(std::ceil(sparsity * double(rows)));
  for (int64_t column = 0; column < tensor.size(1); ++column) {
    const Tensor chosen = narrow(randperm(rows), 0, 0, zero_rows);
    Tensor values = select(tensor, 1, column);
    in_place(index_put, values, Tensors{chosen}, zeros({}, tensor.dtype()));
  }
  return tensor;
}

}  // namespace rush::nn::init
