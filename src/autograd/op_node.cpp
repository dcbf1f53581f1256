#include "autograd/op_node.h"

#include <cctype>

#include "rushlight/ops.h"

namespace rush {

namespace {

thread_local const Node* running = nullptr;

size_t bytes_of(const Value& v) {
  switch (v.tag) {
    case Value::Tag::Ints:
      return v.size * sizeof(int64_t);
    case Value::Tag::Floats:
      return v.size * sizeof(double);
    case Value::Tag::Bools:
      return (v.size + 7) / 8 * 8;
    case Value::Tag::Scalars:
      return v.size * sizeof(Scalar);
    case Value::Tag::Str:
      return (v.size + 7) / 8 * 8;
    default:
      return 0;
  }
}

/// Sizes and dtype of a tensor, without its memory.
Tensor shape_only(const Tensor& t) {
  Ref<TensorImpl> impl(new TensorImpl);
  const TensorImpl& from = *t.impl();
  impl->sizes = from.sizes;
  impl->strides = from.strides;
  impl->offset = from.offset;
  impl->numel = from.numel;
  impl->contiguous = from.contiguous;
  impl->dtype = from.dtype;
  impl->device = from.device;
  return Tensor(std::move(impl));
}

}  // namespace

bool needs_grad(size_t i) { return i < running->edges.size() && running->edges[i].node; }

OpNode::OpNode(const OpInfo& o, const Value* args) : op(o), args_(o.schema->count) {
  size_t total = 0;
  for (size_t i = 0; i < args_.size(); ++i) total += bytes_of(args[i]);
  if (total > sizeof inline_) heap_.reset(new std::byte[total]);
  for (size_t i = 0; i < args_.size(); ++i) {
    const Value& v = args[i];
    if (holds_tensors(op.schema->args[i].kind)) {
      args_[i].size = v.size;
      args_[i].tag = v.tag == Value::Tag::Tensors ? Value::Tag::Tensors : Value::Tag::None;
      if (v.tag == Value::Tag::Tensors) {
        for (const Tensor& t : v.tensors()) edges.push_back(t.defined() ? gradient_edge(t) : Edge());
      } else {
        edges.push_back(v.is_none() ? Edge() : gradient_edge(v.tensor()));
      }
      continue;
    }
    args_[i] = v;
    if (const size_t bytes = bytes_of(v)) {
      std::byte* place = (heap_ ? heap_.get() : inline_) + used_;
      const bool exact = v.tag == Value::Tag::Str || v.tag == Value::Tag::Bools;
      std::memcpy(place, v.pointer, exact ? v.size : bytes);
      args_[i].pointer = place;
      used_ += bytes;
    }
  }
}

bool OpNode::keeps(const OpInfo& op, const Value* args, size_t i) {
  if (!(op.saved_args >> i & 1)) return false;
  if (!op.saved_if[i]) return true;
  for (size_t k = 0; k < op.schema->count; ++k)
    if (op.saved_if[i] >> k & 1 && args[k].tag == Value::Tag::Tensor && args[k].tensor().requires_grad()) return true;
  return false;
}

void OpNode::save(const Value* args, const Tensor* made, size_t count) {
  for (size_t i = 0; i < args_.size(); ++i) {
    const bool whole = op.saved_args >> i & 1, shape = op.saved_shapes >> i & 1;
    if (!whole && !shape) continue;
    const bool kept = shape || keeps(op, args, i);
    const auto keep_one = [&](const Tensor& t) {
      check(!whole || !kept || !t.defined() || !t.impl()->inference,
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            "it in autograd.");
      saved_.push_back(!kept || !t.defined() ? SavedTensor()
                       : whole               ? SavedTensor(t, -1)
                                             : SavedTensor(shape_only(t), -1));
    };
    if (args[i].tag == Value::Tag::Tensors) {
      for (const Tensor& t : args[i].tensors()) keep_one(t);
    } else {
      keep_one(args[i].is_none() ? undefined_tensor : args[i].tensor());
    }
  }
  results.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (op.saved_results >> i & 1) saved_.push_back(SavedTensor(made[i], int(i)));
    results.push_back(made[i].defined() ? ResultMeta{made[i].sizes(), made[i].dtype(), made[i].device()}
                                        : ResultMeta());
  }
}

Grads OpNode::apply(Grads grads) {
  check(!released_ || saved_.empty() || (op.saved_args | op.saved_shapes | op.saved_results) == 0,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.");
  std::vector<Tensor> tensors;  // what the Values below point to
  size_t room = 0;
  for (const Value& v : args_) room += v.tag == Value::Tag::Tensors ? v.size : 1;
  tensors.reserve(room);
  SmallVector<Value, 8> args(args_.size());
  size_t next = 0;
  for (size_t i = 0; i < args_.size(); ++i) {
    args[i] = args_[i];
    if (!holds_tensors(op.schema->args[i].kind)) continue;
    const bool kept = (op.saved_args | op.saved_shapes) >> i & 1;
    if (args_[i].tag == Value::Tag::Tensors) {
      const size_t first = tensors.size(), n = args_[i].size;
      for (size_t k = 0; k < n; ++k) tensors.push_back(kept ? unpack(saved_[next++]) : Tensor());
      args[i] = Value(Tensors(tensors.data() + first, n));
    } else if (kept) {
      tensors.push_back(unpack(saved_[next++]));
      args[i] = Value(tensors.back());
    } else {
      args[i] = Value();
    }
    if (args[i].is_none()) args[i].pointer = &undefined_tensor;
  }
  SmallVector<Tensor, 2> made(std::max<size_t>(results.size(), 1));
  for (size_t i = 0; i < results.size(); ++i)
    if (op.saved_results >> i & 1) made[i] = unpack(saved_[next++]);

  const Node* outer = std::exchange(running, this);
  struct Restore {
    const Node* outer;
    ~Restore() { running = outer; }
  } restore{outer};
  if (grads.size() > 1) {
    for (size_t i = 0; i < grads.size(); ++i) {
      const ResultMeta& m = results[i];
      if (!grads[i].defined() && is_differentiable(m.dtype)) grads[i] = zeros(m.sizes, m.dtype, {}, m.device);
    }
  }
  return op.vjp(op, Tensors(grads.data(), grads.size()), Tensors(made.data(), made.size()), args.data());
}

void OpNode::release() {
  released_ = true;
  for (SavedTensor& s : saved_) s = SavedTensor();
}

std::string OpNode::name() const {
  std::string out;
  bool upper = true;
  for (char c : op.name()) {
    if (c == '_')
      upper = true;
    else {
      out += upper ? char(std::toupper(c)) : c;
      upper = false;
    }
  }
  size_t number = 0;  // of the overload
  for (const OpInfo* o : find_ops(op.name())) {
    if (o == &op) break;
    ++number;
  }
  return out + "Backward" + std::to_string(number);
}

}  // namespace rush
