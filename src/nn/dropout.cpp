// Dropout layers.
#include "rushlight/nn/dropout.h"

#include "rushlight/ops.h"

namespace rush::nn {
namespace {

template <class Op>
Tensor drop(const Op& op, const Tensor& input, const DropoutOptions& o, bool training) {
  if (!o.inplace) return op(input, o.p, training);
  Tensor x = input;
  return in_place(op, x, o.p, training);
}

}  // namespace

DropoutBase::DropoutBase(const DropoutOptions& o) : Layer(o) {
  check<ValueError>(0 <= o.p && o.p <= 1, "dropout probability has to be between 0 and 1, but got ", o.p);
}
std::string DropoutBase::extra_repr() const {
  return "p=" + repr::of(options.p) + ", inplace=" + repr::of(options.inplace);
}

Tensor DropoutImpl::forward(const Tensor& input) { return drop(dropout, input, options, training_); }
Tensor AlphaDropoutImpl::forward(const Tensor& input) { return drop(alpha_dropout, input, options, training_); }

template <size_t N>
Tensor ChannelDropoutImpl<N>::forward(const Tensor& input) {
  // Without a batch the operator would take the channels for one.
  if (N == 2 || input.dim() != int64_t(N) + 1) return drop(feature_dropout, input, options, training_);
  return squeeze(drop(feature_dropout, unsqueeze(input, 0), options, training_), 0);
}
template struct ChannelDropoutImpl<1>;
template struct ChannelDropoutImpl<2>;
template struct ChannelDropoutImpl<3>;

}  // namespace rush::nn
