// Pooling layers.
#include "rushlight/nn/pooling.h"

#include "rushlight/ops.h"

namespace rush::nn {
namespace {

/// The operator for N dimensions.
template <size_t N, class One, class Two, class Three>
constexpr const auto& pick(const One& one, const Two& two, const Three& three) {
  if constexpr (N == 1)
    return one;
  else if constexpr (N == 2)
    return two;
  else
    return three;
}

}  // namespace

template <size_t N>
Tensor MaxPoolImpl<N>::forward(const Tensor& input) {
  const auto& o = this->options;
  return pick<N>(max_pool1d, max_pool2d, max_pool3d)(input, o.kernel_size.all(), o.stride.value_or(o.kernel_size).all(),
                                                     o.padding.all(), o.dilation.all(), o.ceil_mode);
}
template <size_t N>
std::array<Tensor, 2> MaxPoolImpl<N>::forward_with_indices(const Tensor& input) {
  const auto& o = this->options;
  return pick<N>(max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices)(
      input, o.kernel_size.all(), o.stride.value_or(o.kernel_size).all(), o.padding.all(), o.dilation.all(),
      o.ceil_mode);
}
template <size_t N>
std::string MaxPoolImpl<N>::extra_repr() const {
  const auto& o = this->options;
  return text("kernel_size=", repr::sizes(o.kernel_size.given()),
              ", stride=", repr::sizes(o.stride.value_or(o.kernel_size).given()),
              ", padding=", repr::sizes(o.padding.given()), ", dilation=", repr::sizes(o.dilation.given()),
              ", ceil_mode=", repr::of(o.ceil_mode));
}

template <size_t N>
Tensor AvgPoolImpl<N>::forward(const Tensor& input) {
  const auto& o = this->options;
  const Dims kernel = o.kernel_size.all(), stride = o.stride.value_or(o.kernel_size).all(), padding = o.padding.all();
  if constexpr (N == 1)
    return avg_pool1d(input, kernel, stride, padding, o.ceil_mode, o.count_include_pad);
  else
    return pick<N>(0, avg_pool2d, avg_pool3d)(input, kernel, stride, padding, o.ceil_mode, o.count_include_pad,
                                              o.divisor_override);
}
template <size_t N>
std::string AvgPoolImpl<N>::extra_repr() const {
  const auto& o = this->options;
  const auto sizes = N == 1 ? [](const Dims& given) { return repr::tuple(given); } : repr::sizes;
  return text("kernel_size=", sizes(o.kernel_size.given()),
              ", stride=", sizes(o.stride.value_or(o.kernel_size).given()), ", padding=", sizes(o.padding.given()));
}

template <size_t N>
std::array<Tensor, 2> AdaptiveMaxPoolImpl<N>::forward_with_indices(const Tensor& input) {
  return pick<N>(adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)(input, this->options.output_size.all());
}
template <size_t N>
std::string AdaptiveMaxPoolImpl<N>::extra_repr() const {
  return "output_size=" + repr::sizes(this->options.output_size.given());
}
template <size_t N>
Tensor AdaptiveAvgPoolImpl<N>::forward(const Tensor& input) {
  return pick<N>(adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)(input, this->options.output_size.all());
}
template <size_t N>
std::string AdaptiveAvgPoolImpl<N>::extra_repr() const {
  return "output_size=" + repr::sizes(this->options.output_size.given());
}

template struct MaxPoolImpl<1>;
template struct MaxPoolImpl<2>;
template struct MaxPoolImpl<3>;
template struct AvgPoolImpl<1>;
template struct AvgPoolImpl<2>;
template struct AvgPoolImpl<3>;
template struct AdaptiveMaxPoolImpl<1>;
template struct AdaptiveMaxPoolImpl<2>;
template struct AdaptiveMaxPoolImpl<3>;
template struct AdaptiveAvgPoolImpl<1>;
template struct AdaptiveAvgPoolImpl<2>;
template struct AdaptiveAvgPoolImpl<3>;

}  // namespace rush::nn
