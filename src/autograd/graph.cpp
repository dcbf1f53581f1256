// The graph's bookkeeping: who a tensor's gradient goes to, histories after in-place changes, saved tensors, hooks.
#include <mutex>
#include <sstream>

#include "autograd/accumulate.h"
#include "autograd/op_node.h"
#include "rushlight/allocator.h"
#include "rushlight/ops.h"

namespace rush {

std::string (*capture_trace)() = nullptr;
void (*report_anomaly)(const std::string&, const std::string&) = nullptr;

constinit thread_local Modes detail::current_modes;

// ---- nodes ----

namespace {
thread_local uint64_t next_sequence = 0;
std::mutex accumulator_lock;  // guards AutogradMeta::accumulator against the node's death
std::atomic<uint64_t> next_hook{1};
}  // namespace

uint64_t next_sequence_number() { return next_sequence; }

Node::Node() : sequence(next_sequence++) {
  if (modes().anomaly && capture_trace) forward_trace = new std::string(capture_trace());
}
Node::~Node() { delete forward_trace; }

void Node::destroy(Node* first) {
  // A long chain of nodes must not be destroyed by recursion: it would overflow the stack. Nodes that die while another
  // is destroyed wait in a list.
  static constinit thread_local Node* waiting = nullptr;
  static constinit thread_local bool busy = false;
  first->python = waiting;
  waiting = first;
  if (busy) return;
  busy = true;
  while (Node* n = waiting) {
    waiting = static_cast<Node*>(n->python);
    delete n;
  }
  busy = false;
}

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : leaf_(leaf) {
  sequence = UINT64_MAX;  // runs as soon as it can
  results.push_back({leaf.sizes(), leaf.dtype(), leaf.device()});
}

AccumulateGrad::~AccumulateGrad() {
  const std::lock_guard guard(accumulator_lock);
  Node*& own = leaf_.impl()->autograd->accumulator;
  if (own == this) own = nullptr;
}

Grads AccumulateGrad::apply(Grads grads) {
  accumulate_grad(leaf_, std::move(grads[0]));
  if (const auto& hooks = leaf_.impl()->autograd->hooks)
    for (const auto& [id, hook] : std::vector(hooks->post_accumulate)) hook(leaf_);
  return {};
}

namespace {
/// Several threads may run backward at once and meet in a leaf. What dies meanwhile may run Python, hence recursive.
std::recursive_mutex& lock_of(const AutogradMeta& meta) {
  static std::recursive_mutex locks[16];
  return locks[reinterpret_cast<uintptr_t>(&meta) / 64 % 16];
}
}  // namespace

void accumulate_grad(const Tensor& leaf, Tensor fresh) {
  if (!fresh.defined()) return;
  AutogradMeta& meta = *leaf.impl()->autograd;
  const std::lock_guard guard(lock_of(meta));
  if (meta.grad.defined()) {
    if (grad_enabled())
      meta.grad = add(meta.grad, fresh);
    else
      in_place(add, meta.grad, fresh);
    return;
  }
  if (grad_enabled()) {
    meta.grad = clone(fresh);
    return;
  }
  // A gradient that nobody else sees is taken as it is.
  const bool sole = fresh.ref()->use_count() == 1 && fresh.storage()->use_count() == 1;
  const bool dense = Ints(fresh.strides()) == Ints(leaf.strides()) || (fresh.is_contiguous() && leaf.is_contiguous());
  if (sole && dense && !fresh.impl()->autograd) {
    meta.grad = std::move(fresh);
  } else {
    Tensor own = allocate({leaf.sizes(), leaf.dtype(), leaf.device(),
                           is_dense(leaf.sizes(), leaf.strides()) ? std::optional(leaf.strides()) : std::nullopt});
    meta.grad = in_place(copy, own, fresh.detach());
  }
}

// ---- histories ----

namespace {

AutogradMeta& make_meta(const Tensor& t) {
  auto& meta = t.impl()->autograd;
  if (!meta) meta = std::make_unique<AutogradMeta>();
  return *meta;
}

/// Throws Error where an in-place change of a view can't be recorded because of what made the view.
void check_origin(const Tensor& view, const char* changed) {
  const TensorImpl& impl = *view.impl();
  const ViewOrigin origin = impl.view_origin;
  if (origin == ViewOrigin::One) return;
  const bool unrecorded = origin == ViewOrigin::NoGrad || origin == ViewOrigin::Inference;
  const bool made = impl.autograd && impl.autograd->grad_fn;
  std::ostringstream what;
  if (made)
    what << "Output " << impl.autograd->output << " of " << impl.autograd->grad_fn->name() << " is a view";
  else
    what << (unrecorded ? "A view" : "The tensor is a view");
  if (unrecorded)
    what << (made ? " of a view which" : "") << " was created in "
         << (origin == ViewOrigin::NoGrad ? "no_grad" : "inference") << " mode";
  check(origin != ViewOrigin::Many, what.str(), " and ", changed,
        " modified inplace. It is one of several views that one call returned, and such views may not be modified "
        "inplace. Use an out-of-place operation instead.");
  check(origin != ViewOrigin::Function, what.str(), " and ", changed,
        " modified inplace. It was created inside a custom Function (or is an input that was returned as it is), whose "
        "backward the modification would go around. Clone the output of the Function first.");
  raise(what.str(), " and ", changed, " modified inplace ",
        origin == ViewOrigin::NoGrad ? "with grad mode enabled" : "in normal mode",
        ". Whether that should be tracked is not clear, so it is forbidden: make the view and modify it either both "
        "inside the block, and nothing is tracked, or both outside.");
}

/// A view whose base was changed in place after it was made gets its history anew, from the base's.
void refresh_view(const Tensor& view) {
  TensorImpl& impl = *view.impl();
  if (!impl.base || impl.view_version == view.version()) return;
  const Tensor base(impl.base);
  if (base.requires_grad() && base.dtype() == view.dtype())
    check_origin(view, "its base or another view of its base has been");
  impl.view_version = view.version();
  if (!base.requires_grad() || base.dtype() != view.dtype()) return;
  const EnableGrad guard;
  const Tensor again = as_strided(base, view.sizes(), view.strides(), view.storage_offset());
  if (const auto& meta = again.impl()->autograd) set_history(view, meta->grad_fn, meta->output);
}

/// What copying a value into a view means for the view's base: the value's gradient is the view's part of the base's
/// gradient, and the rest goes on to what the base was before.
struct AssignToView final : Node {
  Dims sizes, strides, base_sizes, base_strides;
  int64_t offset;
  std::string name() const override { return "CopySlices"; }
  Grads apply(Grads grads) override {
    const Tensor& g = grads[0];
    if (!g.defined()) return {Tensor(), Tensor()};
    // The view's strides are those of the base's memory, so the gradient is first laid out as the base was.
    const Dims layout = is_dense(base_sizes, base_strides) ? base_strides : contiguous_strides(base_sizes);
    check(Ints(layout) == Ints(base_strides),
          "backward through an in-place change of a view whose base is not dense in memory is not supported");
    Tensor rest = empty_strided(base_sizes, layout, g.dtype(), {}, g.device());
    in_place(copy, rest, g);
    const Tensor part = clone(as_strided(rest, sizes, strides, offset));
    Tensor hole = as_strided(rest, sizes, strides, offset);
    in_place(fill, hole, Tensor(0));
    return {rest, part};
  }
};

}  // namespace

Edge gradient_edge(const Tensor& t) {
  if (t.impl()->base) refresh_view(t);
  AutogradMeta* meta = t.impl()->autograd.get();
  if (!meta) return {};
  if (meta->grad_fn) return {meta->grad_fn, meta->output};
  if (!meta->requires_grad) return {};
  const std::lock_guard guard(accumulator_lock);
  if (meta->accumulator)
    if (Ref<Node> alive = Ref<Node>::try_retain(meta->accumulator)) return {std::move(alive), 0};
  Ref<Node> node(new AccumulateGrad(t));
  meta->accumulator = node.get();
  return {node, 0};
}

void set_history(const Tensor& t, const Ref<Node>& node, uint32_t output) {
  AutogradMeta& meta = make_meta(t);
  if (meta.retains_grad && meta.grad_fn) {  // what is retained is the gradient of what the tensor is after the change
    auto& before = meta.grad_fn->make_hooks().retain;
    const auto own = std::find_if(before.begin(), before.end(), [&](auto& h) { return h.input == meta.output; });
    if (own != before.end()) {
      own->input = output;
      auto moved = std::move(*own);
      before.erase(own);
      node->make_hooks().retain.push_back(std::move(moved));
    }
  }
  meta.grad_fn = node;
  meta.output = output;
  meta.requires_grad = false;
}

void assign_history(const Tensor& t, const Tensor& value) {
  const Edge value_edge = gradient_edge(value);
  TensorImpl& impl = *t.impl();
  if (!impl.base) {
    if (value_edge.node)
      set_history(t, value_edge.node, value_edge.input);
    else if (impl.autograd)
      impl.autograd->grad_fn = nullptr;
    return;
  }
  const Tensor base(impl.base);
  check_in_place(base);
  check(base.dtype() == t.dtype(), "in-place change of a view with another dtype than its base can't be recorded");
  Ref<AssignToView> node(new AssignToView);
  node->sizes = t.sizes();
  node->strides = t.strides();
  node->offset = t.storage_offset() - base.storage_offset();
  node->base_sizes = base.sizes();
  node->base_strides = base.strides();
  node->edges.push_back(gradient_edge(base));
  node->edges.push_back(value_edge);
  node->results.push_back({base.sizes(), base.dtype(), base.device()});
  set_history(base, node, 0);
  base.impl()->view_version = base.version();
  impl.view_version = t.version() - 1;  // stale: the next look makes it a view of the changed base
  if (impl.autograd && impl.autograd->retains_grad) refresh_view(t);
}

void check_in_place(const Tensor& t) {
  if (!grad_enabled()) return;
  if (t.impl()->base) {
    check_origin(t, "is being");
    check(!(t.requires_grad() && Tensor(t.impl()->base).is_leaf()),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  check(!(t.requires_grad() && t.is_leaf()),
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

bool Tensor::requires_grad() const {
  const auto recorded = [](const TensorImpl& impl) {
    const AutogradMeta* meta = impl.autograd.get();
    return meta && (meta->requires_grad || meta->grad_fn);
  };
  if (recorded(*impl_)) return true;
  return impl_->base && recorded(*impl_->base) && is_differentiable(dtype());
}

Tensor& Tensor::requires_grad_(bool value) {
  check(!value || is_differentiable(dtype()), "only Tensors of floating point and complex dtype can require gradients");
  check(!value || !impl_->inference || modes().inference,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (value == requires_grad()) return *this;
  check(is_leaf(), "you can only change requires_grad flags of leaf variables.",
        value ? ""
              : " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach().");
  make_meta(*this).requires_grad = value;
  return *this;
}

bool Tensor::is_leaf() const { return !impl_->autograd || (grad_fn(), !impl_->autograd->grad_fn); }

Ref<Node> Tensor::grad_fn() const {
  if (impl_->base) refresh_view(*this);
  return impl_->autograd ? impl_->autograd->grad_fn : Ref<Node>();
}

Tensor Tensor::grad() const { return impl_->autograd ? impl_->autograd->grad : Tensor(); }

void Tensor::set_grad(const Tensor& g) const {
  if (!g.defined()) {
    if (impl_->autograd) impl_->autograd->grad = Tensor();
    return;
  }
  check(Ints(g.sizes()) == Ints(sizes()), "assigned grad has data of a different size: the tensor has shape ", sizes(),
        ", the grad ", g.sizes());
  check(g.dtype() == dtype(), "assigned grad has data of a different type: the tensor has dtype ", dtype(),
        ", the grad ", g.dtype());
  check(g.device() == device(), "assigned grad has data located on a different device");
  check(!g.is_same(*this), "can't assign Variable as its own grad");
  make_meta(*this).grad = g;
}

Tensor Tensor::detach() const {
  Tensor same = alias(*this, sizes(), strides(), storage_offset());
  same.impl()->inference = modes().inference;
  return same;
}

// ---- saved tensors ----

std::vector<std::shared_ptr<SavedTensorHooks>>& saved_tensor_hooks() {
  static thread_local std::vector<std::shared_ptr<SavedTensorHooks>> stack;
  return stack;
}

SavedTensor::SavedTensor(const Tensor& t, int output) : version_(t.version()), output_(output) {
  const bool result = output >= 0;
  tensor_ = result ? t.detach() : t;
  if (!saved_tensor_hooks().empty() && t.storage()) {
    packed_ = std::make_unique<Packed>();
    packed_->hooks = saved_tensor_hooks().back();
    NoGrad guard;
    packed_->value = packed_->hooks->pack(tensor_);
    tensor_ = Tensor();
  }
}

Tensor SavedTensor::get(const Node& owner, std::string_view operator_name) const {
  Tensor t = packed_ ? packed_->hooks->unpack(packed_->value) : tensor_;
  if (!t.defined()) return t;
  if (!packed_) {
    check(t.version() == version_,
          "one of the variables needed for gradient computation has been modified by an inplace operation: [",
          t.dtype(), " ", t.sizes(), "], which is ", output_ >= 0 ? "the result" : "an argument", " of ", operator_name,
          ", is at version ", t.version(), "; expected version ", version_,
          " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
          "torch.autograd.set_detect_anomaly(True).");
  }
  if (output_ < 0) return t;
  const Tensor whole = t.detach();
  whole.impl()->view_version = whole.version();
  set_history(whole, Ref<Node>(const_cast<Node*>(&owner)), uint32_t(output_));
  return whole;
}

// ---- hooks ----

namespace {

/// The hooks of a tensor: on its node, or on itself if it is a leaf.
Hooks& hooks_of(const Tensor& t, uint32_t& input) {
  check(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  if (const Ref<Node> node = t.grad_fn()) {
    input = t.impl()->autograd->output;
    return node->make_hooks();
  }
  input = 0;
  auto& hooks = t.impl()->autograd->hooks;
  if (!hooks) hooks = std::make_unique<Hooks>();
  return *hooks;
}

template <class List>
void erase_id(List& list, uint64_t id) {
  std::erase_if(list, [&](const auto& h) {
    if constexpr (requires { h.id; })
      return h.id == id;
    else
      return h.first == id;
  });
}

void erase_everywhere(Hooks* hooks, uint64_t id) {
  if (!hooks) return;
  erase_id(hooks->tensor, id);
  erase_id(hooks->node, id);
  erase_id(hooks->post_accumulate, id);
}

}  // namespace

uint64_t register_hook(const Tensor& t, TensorHook hook) {
  uint32_t input;
  Hooks& hooks = hooks_of(t, input);
  const uint64_t id = next_hook++;
  hooks.tensor.push_back({id, input, std::move(hook)});
  return id;
}

uint64_t register_post_accumulate_grad_hook(const Tensor& leaf, PostHook hook) {
  check(leaf.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  check(leaf.is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  uint32_t input;
  const uint64_t id = next_hook++;
  hooks_of(leaf, input).post_accumulate.emplace_back(id, std::move(hook));
  return id;
}

uint64_t register_hook(const Ref<Node>& node, NodePreHook pre, NodePostHook post) {
  const uint64_t id = next_hook++;
  node->make_hooks().node.push_back({id, std::move(pre), std::move(post)});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) {
  if (!t.impl()->autograd) return;
  erase_everywhere(t.impl()->autograd->hooks.get(), id);
  if (t.impl()->autograd->grad_fn) erase_everywhere(t.impl()->autograd->grad_fn->hooks.get(), id);
}
void remove_hook(const Ref<Node>& node, uint64_t id) { erase_everywhere(node->hooks.get(), id); }

void retain_grad(const Tensor& t) {
  check(t.requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (t.is_leaf() || t.impl()->autograd->retains_grad) return;
  t.impl()->autograd->retains_grad = true;
  uint32_t input;
  Hooks& hooks = hooks_of(t, input);
  // The node must not keep the tensor alive: the tensor keeps the node.
  TensorImpl* impl = t.impl();
  const auto alive = std::make_shared<bool>(true);
  impl->autograd->retained = alive;
  hooks.retain.push_back({0, input, [impl, weak = std::weak_ptr<bool>(alive)](const Tensor& g) -> Tensor {
                            if (!weak.lock()) return {};
                            const Tensor self{Ref<TensorImpl>(impl)};
                            auto& grad = impl->autograd->grad;
                            if (grad_enabled())
                              grad = grad.defined() ? add(grad, g) : clone(g);
                            else
                              accumulate_grad(self, g);
                            return {};
                          }});
}

}  // namespace rush
