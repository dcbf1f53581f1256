// Second derivatives of operators whose first ones are kernels.
#pragma once
#include "ops/common.h"

namespace rush {

/// For a vjp while gradients are recorded: the gradients of f(inputs), computed again with the operators that f is made
/// of, so that they can be differentiated. f takes as many tensors and gives one for each of `grads`; an input that may
/// be undefined stays so, and the i-th input is the operator's i-th tensor argument.
template <class F>
Grads gradients_again(std::initializer_list<Tensor> inputs, Tensors grads, F&& f) {
  Grads found(inputs.size());
  std::vector<Tensor> own, wanted, outputs, given;
  SmallVector<size_t, 6> places;
  for (const Tensor& x : inputs) {  // views, so that what leads from one input to another is not counted
    own.push_back(x.defined() ? alias(x, x.sizes(), x.strides(), x.storage_offset()) : x);
    const size_t i = own.size() - 1;
    if (x.defined() && x.requires_grad() && needs_grad(i)) {
      own[i] = view(x, x.sizes());
      wanted.push_back(own[i]);
      places.push_back(i);
    }
  }
  if (wanted.empty()) return found;
  const auto results = f(own);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !results[i].defined() || !results[i].requires_grad()) continue;
    outputs.push_back(results[i]);
    given.push_back(grads[i]);
  }
  if (outputs.empty()) return found;
  const std::vector<Tensor> gradients = autograd::grad(outputs, wanted, given, true, true, true);
  for (size_t i = 0; i < places.size(); ++i) found[places[i]] = gradients[i];
  return found;
}

}  // namespace rush
