// The engine: counts for each node how many gradients it waits for, then runs nodes as they become complete, later
// calls first. It runs on the caller's thread and may be entered again from within a node.
//
// Note [Backward streams] On GPUs a node runs on the stream its result was computed on, which waits for the streams
// that its gradients come from. In the end the caller's current streams wait for all of them.
#include <algorithm>
#include <cmath>

#include "autograd/accumulate.h"
#include "rushlight/ops.h"
#include "rushlight/profiler.h"

namespace rush {

namespace {

/// What the engine knows of a node during one walk.
struct State {
  Node* node;
  uint32_t waiting = 0;  // edges into it that have not delivered
  bool needed = true;    // leads to an input that was asked for
  Grads grads;
};

/// From nodes to their States: open addressing, since most walks are short.
class NodeTable {
 public:
  NodeTable() : slots_(64, Slot{}) {}
  /// The state's index, made if new.
  uint32_t find(Node* node, bool& fresh) {
    if (2 * (states.size() + 1) > slots_.size()) grow();
    Slot& slot = locate(node);
    fresh = !slot.node;
    if (fresh) {
      slot = {node, uint32_t(states.size())};
      states.push_back({node, 0, true, Grads()});
    }
    return slot.index;
  }
  uint32_t at(Node* node) { return locate(node).index; }
  bool has(Node* node) { return locate(node).node; }
  std::vector<State> states;

 private:
  struct Slot {
    Node* node = nullptr;
    uint32_t index = 0;
  };
  Slot& locate(Node* node) {
    size_t i = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> 32;
    for (;; ++i) {
      Slot& s = slots_[i & (slots_.size() - 1)];
      if (!s.node || s.node == node) return s;
    }
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.node) locate(s.node) = s;
  }
  std::vector<Slot> slots_;
};

struct Capture {
  Node* node;
  uint32_t input;
  Tensor grad;
};

void add_to(Tensor& sum, Tensor more) {
  if (!sum.defined()) {
    sum = std::move(more);
    return;
  }
  // Adding in place is safe only where nobody else can see the sum.
  const bool own = !grad_enabled() && sum.ref()->use_count() == 1 && sum.storage()->use_count() == 1 &&
                   !sum.impl()->autograd && is_dense(sum.sizes(), sum.strides());
  if (own)
    in_place(add, sum, more);
  else
    sum = add(sum, more);
}

/// A gradient in the sizes and dtype of what it is the gradient of.
Tensor fit(Tensor g, const ResultMeta& meta, const Node& from, size_t index) {
  if (Ints(g.sizes()) != Ints(meta.sizes)) {
    bool reducible = size_t(g.dim()) >= meta.sizes.size();
    for (size_t i = 0; reducible && i < meta.sizes.size(); ++i) {
      const int64_t have = g.sizes()[size_t(g.dim()) - meta.sizes.size() + i];
      reducible = have == meta.sizes[i] || meta.sizes[i] == 1;
    }
    check(reducible, "Function ", from.name(), " returned an invalid gradient at index ", index, " - got ", g.sizes(),
          " but expected shape compatible with ", meta.sizes);
    g = sum_to_size(g, meta.sizes);
  }
  if (g.dtype() != meta.dtype) {
    if (g.is_complex() && !is_complex(meta.dtype)) g = real(g);
    if (g.dtype() != meta.dtype) g = cast(g, meta.dtype);
  }
  return g;
}

void check_nan(const Node& node, const Grads& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !is_differentiable(outputs[i].dtype())) continue;
    NoGrad guard;
    const Tensor total = sum(ne(outputs[i].detach(), outputs[i].detach()));
    check(total.item<int64_t>() == 0, "Function '", node.name(), "' returned nan values in its ", i, "th output.");
  }
}

void run_tensor_hooks(const std::vector<Hooks::OnInput>& hooks, Grads& grads) {
  for (const auto& hook : std::vector(hooks)) {
    if (hook.input >= grads.size() || !grads[hook.input].defined()) continue;
    Tensor changed = hook.call(grads[hook.input]);
    if (!changed.defined()) continue;
    check(Ints(changed.sizes()) == Ints(grads[hook.input].sizes()), "hook '' has changed the size of value: got ",
          changed.sizes(), ", expected ", grads[hook.input].sizes());
    check(changed.dtype() == grads[hook.input].dtype(), "hook '' has changed the type of value: was ",
          grads[hook.input].dtype(), ", got ", changed.dtype());
    grads[hook.input] = std::move(changed);
  }
}

/// Whether calls are recorded, for as long as it lives and whatever hooks throw.
struct RecordingAs {
  bool before;
  explicit RecordingAs(bool on) : before(std::exchange(modes().grad, on)) {}
  ~RecordingAs() { modes().grad = before; }
};

class Walk {
 public:
  Walk(const BackwardOptions& options) : options_(options) {}

  void run(std::vector<std::pair<Edge, Tensor>> roots, std::vector<Capture>& captures, bool partial) {
    captures_ = &captures;
    for (auto& [edge, grad] : roots) {
      bool fresh;
      const uint32_t i = table_.find(edge.node.get(), fresh);
      if (fresh) count_from(i);
      State& state = table_.states[i];
      if (state.grads.size() < edge.node->results.size()) state.grads.resize(edge.node->results.size());
      add_to(state.grads[edge.input], grad);
    }
    if (partial) mark_needed();
    for (uint32_t i = 0; i < table_.states.size(); ++i)
      if (table_.states[i].waiting == 0) push(i);
    const RecordingAs recording(options_.create_graph);
    for (const auto& [edge, grad] : roots)
      if (grad.is_cuda()) hand_over(grad, edge.node->results[edge.input]);
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later{table_.states});
      const uint32_t i = ready_.back();
      ready_.pop_back();
      if (profiler::current) [[unlikely]] {
        const RecordFunction record(*table_.states[i].node);
        step_where_it_was(i);
      } else {
        step_where_it_was(i);
      }
    }
    for (const cuda::Stream& stream : streams_) cuda::current_stream(stream.device()).wait(stream);
  }

 private:
  struct Later {
    std::vector<State>& states;
    bool operator()(uint32_t a, uint32_t b) const { return states[a].node->sequence < states[b].node->sequence; }
  };

  static const ResultMeta* gpu_result(const Node& node) {
    for (const ResultMeta& r : node.results)
      if (r.device.is_cuda()) return &r;
    return nullptr;
  }

  void step_where_it_was(uint32_t i) {
    const ResultMeta* on_gpu = gpu_result(*table_.states[i].node);
    if (on_gpu)
      step_on(cuda::stream_from_id(on_gpu->device.index, on_gpu->stream), i);
    else
      step(i);
  }

  void step_on(const cuda::Stream& stream, uint32_t i) {
    const cuda::StreamGuard guard(stream);
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
    step(i);
  }

  /// A gradient made on its device's current stream will be used on the one of that result.
  static void hand_over(const Tensor& grad, const ResultMeta& result) {
    const cuda::Stream made = cuda::current_stream(grad.device().index);
    if (result.device != grad.device() || result.stream == made.id()) return;
    const cuda::Stream used = cuda::stream_from_id(made.device(), result.stream);
    used.wait(made);
    cuda::record_stream(grad, used);
  }

  void push(uint32_t i) {
    ready_.push_back(i);
    std::push_heap(ready_.begin(), ready_.end(), Later{table_.states});
  }

  void count_from(uint32_t root) {
    std::vector<Node*> stack{table_.states[root].node};
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Edge& e : node->edges) {
        if (!e.node) continue;
        bool fresh;
        const uint32_t i = table_.find(e.node.get(), fresh);
        ++table_.states[i].waiting;
        if (fresh) stack.push_back(e.node.get());
      }
    }
  }

  /// Clears `needed` on nodes from which no captured gradient is reached.
  void mark_needed() {
    for (State& s : table_.states) s.needed = false;
    std::vector<std::pair<Node*, size_t>> stack;
    std::vector<bool> seen(table_.states.size());
    const auto captured = [&](Node* n) {
      return std::any_of(captures_->begin(), captures_->end(), [&](const Capture& c) { return c.node == n; });
    };
    for (uint32_t r = 0; r < table_.states.size(); ++r) {
      if (seen[r]) continue;
      seen[r] = true;
      stack.emplace_back(table_.states[r].node, 0);
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        State& state = table_.states[table_.at(node)];
        if (next == 0 && captured(node)) state.needed = true;
        if (next < node->edges.size()) {
          Node* child = node->edges[next++].node.get();
          if (!child) continue;
          const uint32_t c = table_.at(child);
          if (!seen[c]) {
            seen[c] = true;
            stack.emplace_back(child, 0);
          }
        } else {
          for (const Edge& e : node->edges)
            if (e.node && table_.states[table_.at(e.node.get())].needed) state.needed = true;
          stack.pop_back();
        }
      }
    }
  }

  bool leads_on(const Node& node) {
    for (const Edge& e : node.edges)
      if (e.node && table_.states[table_.at(e.node.get())].needed) return true;
    return node.edges.empty();
  }

  void step(uint32_t index) {
    const Ref<Node> node(table_.states[index].node);  // a node may be freed by what it runs
    Grads grads = std::move(table_.states[index].grads);
    const bool needed = table_.states[index].needed;
    Grads outputs;
    const bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor& g) { return g.defined(); });
    if ((any || node->takes_nothing) && needed) {
      grads.resize(node->results.size());
      pre_hooks(*node, grads);
      bool captured = false;
      for (Capture& c : *captures_) {
        if (c.node != node.get()) continue;
        captured = true;
        c.grad = grads[c.input];
      }
      const bool runs = options_.accumulate || !captured || leads_on(*node);
      if (runs && !(captured && node->edges.empty() && !options_.accumulate)) outputs = apply(*node, std::move(grads));
    }
    for (size_t i = 0; i < node->edges.size(); ++i) {
      const Edge& e = node->edges[i];
      if (!e.node) continue;
      const uint32_t next = table_.at(e.node.get());
      if (i < outputs.size() && outputs[i].defined() && table_.states[next].needed) {
        Tensor g = fit(std::move(outputs[i]), e.node->results[e.input], *node, i);
        Grads& buffer = table_.states[next].grads;
        if (buffer.size() < e.node->results.size()) buffer.resize(e.node->results.size());
        if (g.is_cuda()) {
          const ResultMeta& result = e.node->results[e.input];
          hand_over(g, result);
          const cuda::StreamGuard guard(cuda::stream_from_id(g.device().index, result.stream));
          add_to(buffer[e.input], std::move(g));
        } else {
          add_to(buffer[e.input], std::move(g));
        }
      }
      if (--table_.states[next].waiting == 0) push(next);
    }
  }

  void pre_hooks(Node& node, Grads& grads) {
    if (const Tensor leaf = node.variable(); leaf.defined())
      if (const auto& hooks = leaf.impl()->autograd->hooks) run_tensor_hooks(hooks->tensor, grads);
    if (!node.hooks) return;
    run_tensor_hooks(node.hooks->tensor, grads);
    for (const auto& hook : std::vector(node.hooks->node))
      if (hook.pre) hook.pre(grads);
    for (const auto& hook : std::vector(node.hooks->retain))
      if (hook.input < grads.size() && grads[hook.input].defined()) hook.call(grads[hook.input]);
  }

  Grads apply(Node& node, Grads grads) {
    const bool posts = node.hooks && !node.hooks->node.empty();
    const Grads kept = posts ? grads : Grads();
    Grads outputs;
    try {
      if (profiler::current) [[unlikely]] {
        const RecordFunction record(node, grads);
        outputs = node.apply(std::move(grads));
      } else {
        outputs = node.apply(std::move(grads));
      }
      if (modes().anomaly && modes().anomaly_nan) check_nan(node, outputs);
    } catch (...) {
      if (modes().anomaly && report_anomaly)
        report_anomaly(node.name(), node.forward_trace ? *node.forward_trace : std::string());
      throw;
    }
    if (!options_.retain_graph) node.release();
    if (posts) {
      for (const auto& hook : std::vector(node.hooks->node))
        if (hook.post) hook.post(outputs, kept);
    }
    return outputs;
  }

  BackwardOptions options_;
  NodeTable table_;
  std::vector<uint32_t> ready_;
  std::vector<Capture>* captures_ = nullptr;
  std::vector<cuda::Stream> streams_;  // that nodes have run on
};

/// The gradient to start from at a root: given, or 1 for a single element.
Tensor root_grad(const Tensor& root, const Tensor& given) {
  if (!given.defined()) {
    check(root.numel() == 1, "grad can be implicitly created only for scalar outputs, got a tensor of shape ",
          root.sizes());
    check(is_floating(root.dtype()), "grad can be implicitly created only for real scalar outputs but got ",
          root.dtype());
    return ones(root.sizes(), root.dtype(), {}, root.device());
  }
  check(Ints(given.sizes()) == Ints(root.sizes()), "Mismatch in shape: grad_output has a shape of ", given.sizes(),
        " and output has a shape of ", root.sizes(), ".");
  check(given.is_complex() == root.is_complex(),
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
        "grad_output has a dtype of ",
        given.dtype(), " and output has a dtype of ", root.dtype(), ".");
  return given.dtype() == root.dtype() ? given : cast(given, root.dtype());
}

}  // namespace

std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> grads,
                                 std::span<const Tensor> inputs, const BackwardOptions& options) {
  std::vector<std::pair<Edge, Tensor>> start;
  start.reserve(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    Edge edge = gradient_edge(roots[i]);
    check(bool(edge.node), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    start.emplace_back(std::move(edge), root_grad(roots[i], i < grads.size() ? grads[i] : Tensor()));
  }
  std::vector<Capture> captures;
  std::vector<Ref<Node>> alive;  // the inputs' nodes: those of unused leaves belong to nobody else
  for (const Tensor& input : inputs) {
    const Edge edge = gradient_edge(input);
    check(bool(edge.node), "One of the differentiated Tensors does not require grad");
    captures.push_back({edge.node.get(), edge.input, Tensor()});
    alive.push_back(edge.node);
  }
  BackwardOptions walk_options = options;
  if (!inputs.empty()) walk_options.accumulate = false;
  Walk(walk_options).run(std::move(start), captures, !inputs.empty());

  std::vector<Tensor> found;
  for (size_t i = 0; i < captures.size(); ++i) {
    if (options.accumulate) {
      const RecordingAs recording(options.create_graph);
      if (captures[i].grad.defined()) {
        if (!inputs[i].impl()->autograd) inputs[i].impl()->autograd = std::make_unique<AutogradMeta>();
        accumulate_grad(inputs[i], captures[i].grad);
        if (const auto& hooks = inputs[i].impl()->autograd->hooks)
          for (const auto& [id, hook] : std::vector(hooks->post_accumulate)) hook(inputs[i]);
      }
      continue;
    }
    check(captures[i].grad.defined() || options.allow_unused, "The differentiated Tensor at index ", i,
          " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    found.push_back(captures[i].grad);
  }
  return found;
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  run_backward({this, 1}, {&gradient, 1}, {},
               {.retain_graph = retain_graph || create_graph, .create_graph = create_graph});
}

std::vector<Tensor> autograd::grad(Tensors outputs, Tensors inputs, Tensors grad_outputs, bool retain_graph,
                                   bool create_graph, bool allow_unused) {
  return run_backward({outputs.data(), outputs.size()}, {grad_outputs.data(), grad_outputs.size()},
                      {inputs.data(), inputs.size()},
                      {.retain_graph = retain_graph || create_graph,
                       .create_graph = create_graph,
                       .accumulate = false,
                       .allow_unused = allow_unused});
}

}  // namespace rush
