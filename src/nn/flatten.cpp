// Layers that join dimensions and split them.
#include "rushlight/nn/flatten.h"

#include "rushlight/ops.h"

namespace rush::nn {

Tensor FlattenImpl::forward(const Tensor& input) { return flatten(input, options.start_dim, options.end_dim); }
std::string FlattenImpl::extra_repr() const {
  return text("start_dim=", options.start_dim, ", end_dim=", options.end_dim);
}

Tensor UnflattenImpl::forward(const Tensor& input) {
  return unflatten(input, options.dim, Dims(options.unflattened_size));
}
std::string UnflattenImpl::extra_repr() const {
  return text("dim=", options.dim.value, ", unflattened_size=", repr::tuple(Dims(options.unflattened_size)));
}

}  // namespace rush::nn
