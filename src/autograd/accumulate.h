// The node at the end of the graph: adds what arrives to its leaf's grad.
#pragma once
#include "rushlight/autograd.h"

namespace rush {

struct AccumulateGrad final : Node {
  explicit AccumulateGrad(const Tensor& leaf);
  ~AccumulateGrad() override;
  std::string name() const override { return "AccumulateGrad"; }
  Grads apply(Grads grads) override;
  Tensor variable() const override { return leaf_; }

 private:
  Tensor leaf_;
};

/// leaf.grad += fresh; takes `fresh` itself where that is safe.
void accumulate_grad(const Tensor& leaf, Tensor fresh);

}  // namespace rush
