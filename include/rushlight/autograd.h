// The graph that calls record, and the engine that walks it. No operator is named here.
//
//   {
//     rush::NoGrad guard;           // nothing is recorded in this scope
//     w -= lr * w.grad();
//   }
//   Note [Saved tensors]: a node keeps what its operator's `saves` names, with the version its storage had then; an
//   in-place change in between is an error at backward. A saved result is kept without its history, which is this
//   very node, and gets it back when it is read: else the node would own itself. After a backward without
//   retain_graph all of it is dropped.
#pragma once
#include <functional>

#include "rushlight/allocator.h"
#include "rushlight/cuda.h"
#include "rushlight/op.h"

namespace rush {

struct Node;
template <>
inline constexpr bool held_weakly<Node> = true;  // a leaf finds its accumulator again, if it is alive

/// Where a gradient goes: the `input`-th gradient slot of `node`, which is the `input`-th result of what it recorded.
struct Edge {
  Ref<Node> node;
  uint32_t input = 0;
};

/// What a result looked like, to shape gradients by, and the GPU's stream it was computed on.
struct ResultMeta {
  Dims sizes;
  DType dtype = kFloat32;
  Device device;
  int16_t stream = 0;
  ResultMeta() = default;
  ResultMeta(const Dims& s, DType t, Device d) : sizes(s), dtype(t), device(d), stream(stream_of(d)) {}

 private:
  static int16_t stream_of(Device d) { return d.is_cuda() ? int16_t(cuda::current_stream(d.index).id()) : int16_t(0); }
};

using TensorHook = std::function<Tensor(const Tensor& grad)>;  // an undefined result leaves the gradient as it is
using PostHook = std::function<void(const Tensor& leaf)>;
using NodePreHook = std::function<void(Grads& grads)>;
using NodePostHook = std::function<void(Grads& outputs, const Grads& inputs)>;

/// Hooks of a node, or of a leaf tensor, each with the number by which it is removed.
struct Hooks {
  struct OnInput {
    uint64_t id;
    uint32_t input;
    TensorHook call;
  };
  struct OnNode {
    uint64_t id;
    NodePreHook pre;
    NodePostHook post;
  };
  std::vector<OnInput> tensor;  // in the order of registration
  std::vector<OnInput> retain;  // retain_grad: after all others
  std::vector<OnNode> node;
  std::vector<std::pair<uint64_t, PostHook>> post_accumulate;
};

/// A recorded call. Edges lead to where its inputs came from, one for each tensor argument.
struct Node : Counted {
  bool takes_nothing = false;  // apply is called even where no result got a gradient
  SmallVector<Edge, 3> edges;
  SmallVector<ResultMeta, 1> results;
  uint64_t sequence;  // later calls have higher numbers
  std::unique_ptr<Hooks> hooks;
  void* python = nullptr;                // the Python object that shows this node, if any, not owned; of a dying
                                         // node, which has none, the next that waits to be destroyed
  std::string* forward_trace = nullptr;  // in anomaly mode: where the call was made

  Node();
  virtual ~Node();
  static void destroy(Node* n);
  static void* operator new(size_t bytes) { return cpu_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }
  /// "AddBackward0" in PyTorch's manner.
  virtual std::string name() const = 0;
  /// From gradients of the results (undefined: zero) to gradients for the edges.
  virtual Grads apply(Grads grads) = 0;
  /// Drops saved tensors; a later apply raises Error.
  virtual void release() {}
  /// For AccumulateGrad: its leaf.
  virtual Tensor variable() const { return {}; }
  Hooks& make_hooks() {
    if (!hooks) hooks = std::make_unique<Hooks>();
    return *hooks;
  }
};

/// What a tensor has when autograd has touched it.
struct AutogradMeta {
  bool requires_grad = false;  // of a leaf
  bool retains_grad = false;
  uint32_t output = 0;  // which result of grad_fn this tensor is
  Ref<Node> grad_fn;
  Tensor grad;
  Node* accumulator = nullptr;     // the live AccumulateGrad of a leaf, if there is one; not owned
  std::unique_ptr<Hooks> hooks;    // of a leaf
  std::shared_ptr<bool> retained;  // alive while this tensor is, for the node's retain_grad hook

  static void* operator new(size_t bytes) { return cpu_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }
};

/// The node and slot to which a gradient of `t` goes; no node if it needs none.
Edge gradient_edge(const Tensor& t);
/// Makes `t` the result number `output` of `node`.
void set_history(const Tensor& t, const Ref<Node>& node, uint32_t output);
/// Gives `t`, whose memory was just written, the history of `value` (of the same sizes). A view's base learns it too.
void assign_history(const Tensor& t, const Tensor& value);
/// Throws Error if an in-place change of `t` can't be recorded: a leaf that requires grad.
void check_in_place(const Tensor& t);

// ---- modes, one set for each thread ----

struct Modes {
  bool grad = true, inference = false, anomaly = false, anomaly_nan = true;
  bool autocast = false;  // on for some device, or a profiler runs: one test for both
};
namespace detail {
/// Reached without a call, as all thread-local variables of this library are.
extern constinit thread_local Modes current_modes [[gnu::tls_model("initial-exec")]];
}  // namespace detail
inline Modes& modes() { return detail::current_modes; }
inline bool grad_enabled() { return modes().grad; }

/// Nothing is recorded while it lives.
struct NoGrad {
  bool before = std::exchange(modes().grad, false);
  ~NoGrad() { modes().grad = before; }
};
/// Calls are recorded while it lives, whatever was set around it.
struct EnableGrad {
  bool before = std::exchange(modes().grad, true);
  ~EnableGrad() { modes().grad = before; }
};
/// As NoGrad; besides, tensors made inside can never be recorded.
struct InferenceMode {
  Modes before = modes();
  explicit InferenceMode(bool on = true) {
    modes().inference = on;
    if (on) modes().grad = false;
  }
  ~InferenceMode() { modes() = before; }
};

// ---- the engine ----

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // into .grad of leaves; false: only return the gradients of `inputs`
  bool allow_unused = false;
};
/// Walks the graph from `roots` with their gradients. With `inputs`, only what leads to them is walked, and their
/// gradients are returned (unless they are accumulated). Throws Error as PyTorch does: a root without history, a
/// gradient of another shape, a second walk through a graph that was dropped.
std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> grads,
                                 std::span<const Tensor> inputs, const BackwardOptions& options);

namespace autograd {
/// Gradients of `outputs` with respect to `inputs`; .grad is left alone.
std::vector<Tensor> grad(Tensors outputs, Tensors inputs, Tensors grad_outputs = {}, bool retain_graph = false,
                         bool create_graph = false, bool allow_unused = false);
}  // namespace autograd

// ---- saved tensors ----

/// Called instead of keeping a tensor: `pack` gives what is kept, `unpack` the tensor again.
struct SavedTensorHooks {
  std::function<std::shared_ptr<void>(const Tensor&)> pack;
  std::function<Tensor(const std::shared_ptr<void>&)> unpack;
};
/// The hooks in force on this thread, the innermost last.
std::vector<std::shared_ptr<SavedTensorHooks>>& saved_tensor_hooks();

/// A tensor kept for backward; see Note [Saved tensors].
class SavedTensor {
 public:
  SavedTensor() = default;
  /// `output`: of a result, which one it is; -1 for an argument.
  SavedTensor(const Tensor& t, int output);
  bool defined() const { return tensor_.defined() || packed_; }
  /// The tensor as it was. `owner` is the node that keeps it. Throws Error if it changed since.
  Tensor get(const Node& owner, std::string_view operator_name) const;

 private:
  struct Packed {
    std::shared_ptr<SavedTensorHooks> hooks;
    std::shared_ptr<void> value;
  };
  Tensor tensor_;
  uint32_t version_ = 0;
  int output_ = -1;
  std::unique_ptr<Packed> packed_;
};

// ---- hooks on tensors ----

/// Each returns the number with which remove_hook takes it off again.
uint64_t register_hook(const Tensor& t, TensorHook hook);
uint64_t register_post_accumulate_grad_hook(const Tensor& leaf, PostHook hook);
uint64_t register_hook(const Ref<Node>& node, NodePreHook pre, NodePostHook post);
void remove_hook(const Tensor& t, uint64_t id);
void remove_hook(const Ref<Node>& node, uint64_t id);
/// Keeps the gradient of a non-leaf in .grad.
void retain_grad(const Tensor& t);

/// Called with a failed node's name and forward trace in anomaly mode; and to make such traces. Set by the Python
/// extension.
extern std::string (*capture_trace)();
extern void (*report_anomaly)(const std::string& node, const std::string& trace);

}  // namespace rush
