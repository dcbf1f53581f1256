// The node of a recorded operator call: the operator and copies of what its gradient reads.
#pragma once
#include "rushlight/autograd.h"

namespace rush {

/// The number that the next node of this thread gets.
uint64_t next_sequence_number();

struct OpNode final : Node {
  /// Takes the edges of the tensor arguments and copies of the other arguments.
  OpNode(const OpInfo& op, const Value* args);
  /// Keeps what the operator's `saves` names, and what the results look like.
  void save(const Value* args, const Tensor* results, size_t count);

  /// Whether argument i of this call has to be kept.
  static bool keeps(const OpInfo& op, const Value* args, size_t i);

  std::string name() const override;
  Grads apply(Grads grads) override;
  void release() override;

  const OpInfo& op;

 private:
  Tensor unpack(const SavedTensor& saved) const { return saved.get(*this, op.name()); }

  SmallVector<Value, 4> args_;         // tensors among them are undefined: see saved_
  SmallVector<SavedTensor, 2> saved_;  // saved arguments in order, then saved results
  std::unique_ptr<std::byte[]> heap_;  // lists among the arguments, where they don't fit into inline_
  size_t used_ = 0;
  bool released_ = false;
  alignas(8) std::byte inline_[48];
};

}  // namespace rush
