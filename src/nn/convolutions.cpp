// Convolutions and their transposes.
#include "rushlight/nn/convolutions.h"

#include <algorithm>
#include <cmath>

#include "rushlight/nn/init.h"
#include "rushlight/ops.h"

namespace rush::nn {
namespace {

template <size_t N>
constexpr auto& convolve() {
  if constexpr (N == 1)
    return conv1d;
  else if constexpr (N == 2)
    return conv2d;
  else
    return conv3d;
}
template <size_t N>
constexpr auto& convolve_transposed() {
  if constexpr (N == 1)
    return conv_transpose1d;
  else if constexpr (N == 2)
    return conv_transpose2d;
  else
    return conv_transpose3d;
}

template <class O>
void check_groups(const O& o) {
  check<ValueError>(o.groups > 0, "groups must be a positive integer");
  check<ValueError>(o.in_channels % o.groups == 0, "in_channels must be divisible by groups");
  check<ValueError>(o.out_channels % o.groups == 0, "out_channels must be divisible by groups");
}

/// Makes weight and bias for `first` and `second` channels of the weight.
template <class Conv>
void make_parameters(Conv& conv, int64_t first, int64_t second) {
  const auto& o = conv.options;
  Dims sizes{first, second};
  for (const int64_t size : o.kernel_size.all()) sizes.push_back(size);
  conv.weight = empty(sizes, o.dtype, {}, o.device);
  if (o.bias) conv.bias = empty({o.out_channels}, o.dtype, {}, o.device);
  conv.register_parameter("weight", conv.weight);
  conv.register_parameter("bias", conv.bias);
  conv.reset_parameters();
}

/// Uniform in ±1/sqrt(fan_in).
void draw_parameters(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!bias.defined()) return;
  const int64_t fan_in = init::fan_in_and_fan_out(weight).first;
  const double bound = fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

/// `name` and its sizes, unless all are `usual`.
std::string unless(const char* name, const Dims& sizes, int64_t usual) {
  const bool all = std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == usual; });
  return all ? "" : text(", ", name, "=", repr::tuple(sizes));
}

template <class O>
std::string describe(const O& o, const std::string& padding, const Dims& output_padding) {
  return text(o.in_channels.value, ", ", o.out_channels.value, ", kernel_size=", repr::tuple(o.kernel_size.all()),
              ", stride=", repr::tuple(o.stride.all()), padding, unless("dilation", o.dilation.all(), 1),
              unless("output_padding", output_padding, 0), o.groups == 1 ? "" : text(", groups=", o.groups),
              o.bias ? "" : ", bias=False");
}

}  // namespace

template <size_t N>
ConvImpl<N>::ConvImpl(const ConvOptions<N>& o) : Layer<ConvOptions<N>>(o) {
  check_groups(o);
  const std::string& padding = o.padding.name();
  check<ValueError>(padding.empty() || padding == "same" || padding == "valid", "Invalid padding string '", padding,
                    "', should be one of {'same', 'valid'}");
  check<ValueError>(padding != "same" || o.stride.all() == Dims(N, 1),
                    "padding='same' is not supported for strided convolutions");
  check<ValueError>(o.padding_mode == "zeros" || o.padding_mode == "reflect" || o.padding_mode == "replicate" ||
                        o.padding_mode == "circular",
                    "padding_mode must be one of ('zeros', 'reflect', 'replicate', 'circular'), but got padding_mode='",
                    o.padding_mode, "'");
  make_parameters(*this, o.out_channels, o.in_channels / o.groups);
}

template <size_t N>
void ConvImpl<N>::reset_parameters() {
  draw_parameters(weight, bias);
}

template <size_t N>
Tensor ConvImpl<N>::forward(const Tensor& input) {
  const ConvOptions<N>& o = this->options;
  const auto run = [&](const Tensor& x, const auto& padding) {
    return convolve<N>()(x, weight, bias, o.stride.all(), padding, o.dilation.all(), o.groups);
  };
  if (o.padding_mode == "zeros")
    return o.padding.name().empty() ? run(input, o.padding.all()) : run(input, std::string_view(o.padding.name()));
  // What pad takes: before and after each dimension, the last dimension first.
  Dims around;
  const Dims kernel = o.kernel_size.all(), dilation = o.dilation.all(), padding = o.padding.all();
  for (size_t d = N; d-- > 0;) {
    const int64_t total = o.padding.name() == "same" ? dilation[d] * (kernel[d] - 1) : 2 * padding[d];
    around.push_back(total / 2);
    around.push_back(total - total / 2);
  }
  return run(pad(input, around, o.padding_mode), Dims(N, 0));
}

template <size_t N>
std::string ConvImpl<N>::extra_repr() const {
  const ConvOptions<N>& o = this->options;
  const std::string padding =
      o.padding.name().empty() ? unless("padding", o.padding.all(), 0) : ", padding=" + o.padding.name();
  return describe(o, padding, {}) + (o.padding_mode == "zeros" ? "" : ", padding_mode=" + o.padding_mode);
}

template <size_t N>
ConvTransposeImpl<N>::ConvTransposeImpl(const ConvTransposeOptions<N>& o) : Layer<ConvTransposeOptions<N>>(o) {
  check_groups(o);
  make_parameters(*this, o.in_channels, o.out_channels / o.groups);
}

template <size_t N>
void ConvTransposeImpl<N>::reset_parameters() {
  draw_parameters(weight, bias);
}

template <size_t N>
Tensor ConvTransposeImpl<N>::forward(const Tensor& input) {
  const ConvTransposeOptions<N>& o = this->options;
  return convolve_transposed<N>()(input, weight, bias, o.stride.all(), o.padding.all(), o.output_padding.all(),
                                  o.groups, o.dilation.all());
}

template <size_t N>
std::string ConvTransposeImpl<N>::extra_repr() const {
  const ConvTransposeOptions<N>& o = this->options;
  return describe(o, unless("padding", o.padding.all(), 0), o.output_padding.all());
}

template struct ConvImpl<1>;
template struct ConvImpl<2>;
template struct ConvImpl<3>;
template struct ConvTransposeImpl<1>;
template struct ConvTransposeImpl<2>;
template struct ConvTransposeImpl<3>;

}  // namespace rush::nn
