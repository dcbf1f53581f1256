// The front door: every call of every operator, in its plain, in-place and out= forms. Recording is decided here.
#include <algorithm>

#include "autograd/op_node.h"
#include "cuda/runtime.h"
#include "rushlight/autocast.h"
#include "rushlight/autograd.h"
#include "rushlight/cuda.h"
#include "rushlight/ops.h"
#include "rushlight/profiler.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

/// Calls f on each defined tensor among the arguments until it returns true; whether one did.
template <class F>
bool any_tensor(const OpInfo& op, const Value* args, F&& f) {
  for (size_t i = 0; i < op.schema->count; ++i) {
    if (args[i].tag == Value::Tag::Tensor) {
      if (f(args[i].tensor())) return true;
    } else if (args[i].tag == Value::Tag::Tensors) {
      for (const Tensor& t : args[i].tensors())
        if (t.defined() && f(t)) return true;
    }
  }
  return false;
}

bool any_requires_grad(const OpInfo& op, const Value* args) {
  return any_tensor(op, args, [](const Tensor& t) {
    const TensorImpl& impl = *t.impl();
    return (impl.autograd || impl.base) && t.requires_grad();
  });
}

/// What a view is that this call makes.
ViewOrigin origin_of_views(const OpInfo& op) {
  if (!grad_enabled()) return modes().inference ? ViewOrigin::Inference : ViewOrigin::NoGrad;
  return op.schema->returns == Returns::Tensor ? ViewOrigin::One : ViewOrigin::Many;
}

void track_view(const Tensor& view, const Tensor& of, ViewOrigin origin) {
  if (view.impl()->inference || view.is_same(of) || view.storage() != of.storage()) return;
  TensorImpl& impl = *view.impl();
  impl.view_origin = origin == ViewOrigin::One ? of.impl()->view_origin : origin;
  if (impl.base) return;
  impl.base = of.impl()->base ? of.impl()->base : of.ref();
  impl.view_version = view.version();
}

void track_views(const Value* args, const Results& out, ViewOrigin origin) {
  const Tensor& self = args[0].tensor();
  for (size_t i = 0; i < out.count; ++i) track_view(out.tensors[i], self, origin);
  for (const Tensor& t : out.list) track_view(t, self, origin);
}

void run(const OpInfo& op, const Value* args, Results& out) {
  op.run(op, args, out);
  if (op.view) track_views(args, out, origin_of_views(op));
}

/// Runs the operator unrecorded and puts one node over the whole of it.
void record(const OpInfo& op, const Value* args, Results& out) {
  {
    const ViewOrigin origin = origin_of_views(op);  // before the guard
    NoGrad guard;
    op.run(op, args, out);
    if (op.view) track_views(args, out, origin);
  }
  Tensor* results = out.count ? out.tensors : out.list.data();
  const size_t n = out.count ? out.count : out.list.size();
  for (size_t i = 0; i < n; ++i) {  // a result that is an argument itself must not lose that argument's history
    Tensor& r = results[i];
    if (r.defined() && any_tensor(op, args, [&](const Tensor& t) { return t.is_same(r); })) {
      const Tensor same = r;
      r = alias(same, same.sizes(), same.strides(), same.storage_offset());
      track_view(r, same, ViewOrigin::One);
    }
  }
  const Ref<OpNode> node(new OpNode(op, args));
  node->save(args, results, n);
  for (size_t i = 0; i < n; ++i)
    if (results[i].defined() && is_differentiable(results[i].dtype())) set_history(results[i], node, uint32_t(i));
}

/// Stands where a gradient would have to pass an operator that has none.
struct NotDifferentiable final : Node {
  explicit NotDifferentiable(const OpInfo& o) : op(o) {}
  const OpInfo& op;
  std::string name() const override { return "NotImplemented"; }
  Grads apply(Grads) override { raise<NotImplementedError>("derivative for ", op.name(), " is not implemented"); }
};

/// Stands where what came before has no part in the value: it gets zeros.
struct Constant final : Node {
  std::string name() const override { return "Constant"; }
  Grads apply(Grads) override {
    Grads grads;
    for (const Edge& e : edges) {
      const ResultMeta* m = e.node ? &e.node->results[e.input] : nullptr;
      grads.push_back(m ? zeros(m->sizes, m->dtype, {}, m->device) : Tensor());
    }
    return grads;
  }
};

/// Makes `node` the history of what was computed without one.
void cut_off(const Ref<Node>& node, const OpInfo& op, const Value* args, Results& out) {
  any_tensor(op, args, [&](const Tensor& t) {
    node->edges.push_back(gradient_edge(t));
    return false;
  });
  Tensor* results = out.count ? out.tensors : out.list.data();
  const size_t n = out.count ? out.count : out.list.size();
  for (size_t i = 0; i < n; ++i) {
    node->results.push_back({results[i].sizes(), results[i].dtype(), results[i].device()});
    if (is_differentiable(results[i].dtype())) set_history(results[i], node, uint32_t(i));
  }
}
void forbid_gradient(const OpInfo& op, const Value* args, Results& out) {
  cut_off(Ref<Node>(new NotDifferentiable(op)), op, args, out);
}

/// The history of `self` after an in-place form that has none: of truth values zeros, else an error when it is asked
/// for.
void cut_off_in_place(const OpInfo& op, const Value* args, const Tensor& self) {
  if (!self.requires_grad()) return;
  Tensor value = self.detach();
  Results out{&value, 1, {}, 0};
  if (op.differentiable || (op.infer && op.infer(op, args).dtype == kBool))
    cut_off(Ref<Node>(new Constant), op, args, out);
  else
    forbid_gradient(op, args, out);
  assign_history(self, value);
}

void check_writable(const Tensor& self) {
  check(!self.impl()->inference || modes().inference,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
}

void check_written(const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    check(self.sizes()[d] <= 1 || self.strides()[d] != 0,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
  }
}

/// Whether only some of the elements of one are elements of the other, as far as that shows from where they lie.
bool overlaps_partly(const Tensor& a, const Tensor& b) {
  return !a.is_same(b) && overlaps(a, b) && is_dense(a.sizes(), a.strides()) && is_dense(b.sizes(), b.strides()) &&
         !(a.storage_offset() == b.storage_offset() && a.numel() * a.itemsize() == b.numel() * b.itemsize() &&
           Ints(a.strides()) == Ints(b.strides()));
}

/// Refuses to write to `self` what is computed from arguments in the same memory, where that has no meaning.
void check_apart(const OpInfo& op, const Value* args, const Tensor& self) {
  if (!op.out_apart && !op.pointwise) return;
  check(!any_tensor(op, args,
                    [&](const Tensor& t) {
                      return op.pointwise ? overlaps_partly(t, self) : t.is_same(self) || overlaps(t, self);
                    }),
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.");
}

/// Whether elements of self may share memory though no stride is 0.
bool may_overlap_itself(const Tensor& self) {
  if (self.is_contiguous() || is_dense(self.sizes(), self.strides())) return false;
  SmallVector<std::pair<int64_t, int64_t>, 8> steps;  // by stride: each must go beyond what those before it reach
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] > 1) steps.push_back({self.strides()[d], self.sizes()[d]});
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

/// In place on a tensor whose elements share memory: slice by slice, so that each reads what those before it wrote.
void one_by_one(const OpInfo& op, const Value* args, const Tensor& self) {
  int64_t outer = 0;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] > 1 && (self.sizes()[outer] == 1 || self.strides()[d] > self.strides()[outer])) outer = d;
  const size_t n = op.schema->count;
  for (int64_t i = 0; i < self.sizes()[outer]; ++i) {
    SmallVector<Tensor, 4> slices(n);
    SmallVector<Value, 8> values(n);
    for (size_t k = 0; k < n; ++k) {
      values[k] = args[k];
      if (args[k].tag != Value::Tag::Tensor) continue;
      const Tensor& t = args[k].tensor();
      slices[k] = t.dim() ? select(expand(t, self.sizes()), outer, i) : t;
      values[k] = Value(slices[k]);
    }
    dispatch_in_place(op, values.data());
  }
}

void check_result(const Meta& meta, const Tensor& self) {
  check(Ints(meta.sizes) == Ints(self.sizes()), "output with shape ", self.sizes(),
        " doesn't match the broadcast shape ", meta.sizes);
  check(can_cast(meta.dtype, self.dtype()), "result type ", scalar_name(meta.dtype),
        " can't be cast to the desired output type ", scalar_name(self.dtype()));
}

/// Whether the kernel may write straight into `self` while it reads the arguments.
bool may_write_over(const OpInfo& op, const Value* args, const Tensor& self) {
  return !any_tensor(op, args, [&](const Tensor& t) {
    if (t.is_meta() && !self.is_meta()) return true;  // has no elements: the result will say so
    return !t.is_same(self) && overlaps(t, self) &&
           !(t.storage_offset() == self.storage_offset() && Ints(t.sizes()) == Ints(self.sizes()) &&
             Ints(t.strides()) == Ints(self.strides()) && t.dtype() == self.dtype());
  });
}

/// Whether the gradient would read an argument other than the first that shares memory with `self`.
bool saves_memory_of(const OpInfo& op, const Value* args, const Tensor& self) {
  for (size_t i = 1; i < op.schema->count; ++i)
    if (args[i].tag == Value::Tag::Tensor && args[i].tensor().storage() == self.storage() && OpNode::keeps(op, args, i))
      return true;
  return false;
}

/// The in-place form of a view: self becomes the window that the view is; no element changes.
void move_window(const OpInfo& op, const Value* args, Tensor& self, bool recorded) {
  Tensor value;
  Results out{&value, 1, {}, 0};
  dispatch(op, args, out);
  if (value.is_same(self)) return;
  if (recorded) {
    const Edge edge = gradient_edge(value);
    set_history(self, edge.node, edge.input);
  }
  TensorImpl& impl = *self.impl();
  impl.sizes = value.sizes();
  impl.strides = value.strides();
  impl.offset = value.storage_offset();
  impl.refresh();
  self.bump_version();
  impl.view_version = self.version();
}

/// A 0-dim tensor on the CPU goes anywhere, like a number.
bool goes_anywhere(const Tensor& t) { return t.is_cpu() && t.dim() == 0; }

Device common_device(const OpInfo& op, const Value* args) {
  Device found;
  any_tensor(op, args, [&](const Tensor& t) {
    found = t.device();
    return !goes_anywhere(t);
  });
  any_tensor(op, args, [&](const Tensor& t) {
    check(t.device() == found || goes_anywhere(t),
          "Expected all tensors to be on the same device, but found at least two devices, ", found, " and ", t.device(),
          "!");
    return false;
  });
  return found;
}

template <class F>
void named(const OpInfo& op, F&& f) {
  try {
    f();
  } catch (Error& e) {
    e.name_operator(op.name());
    throw;
  }
}

}  // namespace

Device device_of(const OpInfo& op, const Value* args) {
  Device found;
  bool any = false, mixed = false;
  any_tensor(op, args, [&](const Tensor& t) {
    if (!any)
      found = t.device(), any = true;
    else if (t.device() != found)
      mixed = true;
    return false;
  });
  if (mixed && !op.across_devices) return common_device(op, args);
  if (!any) {
    for (size_t i = 0; i < op.schema->count; ++i)
      if (op.schema->args[i].kind == Kind::OptDevice && !args[i].is_none())
        return *Boxed<Kind::OptDevice>::get(args[i]);
  }
  return found;
}

Tensor allocate_result(const Meta& meta, Device device) {
  if (meta.device || device == kCPU) return allocate(meta);
  Meta placed = meta;
  placed.device = device;
  return allocate(placed);
}

void copy_result(Tensor& out, const Tensor& value) {
  NoGrad guard;
  in_place(copy, out, value);
}

Device indexed_cuda(Device device) { return cuda::indexed(device); }

void Announcement::begin() const { cuda::begin_operation(op_->schema->name); }
void Announcement::end() const { cuda::end_operation(); }
void Announcement::say(const Value* args, const Tensor* results, size_t count) const {
  if (!cuda::started() || !cuda::runtime().checks_races()) return;
  std::vector<cuda::Access> accesses;
  const auto touches = [&](const Tensor& t, bool write) {
    if (!t.device().is_cuda() || t.numel() == 0) return;
    accesses.push_back({t.data_ptr(), size_t(extent(t.sizes(), t.strides()) * t.itemsize()), write});
  };
  any_tensor(*op_, args, [&](const Tensor& t) {
    touches(t, false);
    return false;
  });
  for (size_t i = 0; i < count; ++i) touches(results[i], true);
  cuda::set_accesses(accesses);
}

void run_on_host(const OpInfo& op, const Value* args, Results& results, Device device) {
  const size_t n = op.schema->count;
  SmallVector<Tensor, 4> copies(n);
  SmallVector<Value, 8> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = args[i];
    assume(args[i].tag != Value::Tag::Tensors);
    if (args[i].tag != Value::Tag::Tensor) continue;
    copies[i] = to(args[i].tensor(), kCPU);
    values[i] = Value(copies[i]);
  }
  op.run(op, values.data(), results);
  for (size_t i = 0; i < results.count; ++i) results.tensors[i] = to(results.tensors[i], device);
  for (Tensor& t : results.list) t = to(t, device);
}

void raise_no_kernel(const OpInfo& op, Device device) {
  raise<NotImplementedError>("Could not run '", op.name(), "' on device ", device, ": it has no kernel there");
}

namespace {

inline void call(const OpInfo& op, const Value* args, Results& out) {
  if (!grad_enabled() || !any_requires_grad(op, args)) {
    run(op, args, out);
  } else if (op.vjp) {
    record(op, args, out);
  } else if (op.run_composite) {  // the operators inside record themselves
    op.run_composite(op, args, out);
  } else {
    run(op, args, out);
    if (!op.random) forbid_gradient(op, args, out);
  }
}

[[gnu::noinline]] void call_watched(const OpInfo& op, const Value* args, Results& out) {
  const RecordFunction record(op, args);
  if (autocast::run(op, args, out)) return;
  call(op, args, out);
}

void call_in_place(const OpInfo& op, const Value* args) {
  Tensor self = args[0].tensor();
  check_writable(self);
  const bool needed = grad_enabled() && any_requires_grad(op, args), recorded = needed && op.differentiable;
  if (needed) check_in_place(self);
  if (op.view) return move_window(op, args, self, recorded);
  check_written(self);
  if (op.pointwise) {
    check_apart(op, args, self);
    if (!recorded && may_overlap_itself(self)) return one_by_one(op, args, self);
  }
  if (op.overwrites && op.run_into && (!recorded || (op.vjp && !OpNode::keeps(op, args, 0) && !self.impl()->base))) {
    const Meta meta = op.infer(op, args);
    check_result(meta, self);
    if (meta.dtype == self.dtype() && may_write_over(op, args, self) &&
        !(recorded && op.saved_results && saves_memory_of(op, args, self))) {
      if (!recorded) {
        if (!self.is_meta()) op.run_into(op, args, self);
        self.bump_version();
        if (needed) cut_off_in_place(op, args, self);
        return;
      }
      const Ref<OpNode> node(new OpNode(op, args));
      {
        NoGrad guard;
        if (!self.is_meta()) op.run_into(op, args, self);
      }
      // What is saved of the arguments is as it was before, what is saved of the result as it is now.
      if (!op.saved_results) node->save(args, &self, 1);
      self.bump_version();
      if (op.saved_results) node->save(args, &self, 1);
      set_history(self, node, 0);
      return;
    }
  }
  Tensor value, before;
  Results out{&value, 1, {}, 0};
  if (recorded && (!op.vjp || OpNode::keeps(op, args, 0))) {  // the gradient will read what is now overwritten
    SmallVector<Value, 8> kept(op.schema->count);
    std::copy_n(args, kept.size(), kept.data());
    before = clone(self);
    kept[0] = Value(before);
    dispatch(op, kept.data(), out);
  } else {
    dispatch(op, args, out);
  }
  check_result({value.sizes(), value.dtype(), {}, {}}, self);
  {
    NoGrad guard;
    if (!value.is_same(self)) in_place(copy, self, value);
  }
  if (recorded && gradient_edge(value).node)
    assign_history(self, value);
  else if (needed)
    cut_off_in_place(op, args, self);
}

void call_out(const OpInfo& op, const Value* args, std::span<const Tensor> out) {
  check(!(grad_enabled() && (any_requires_grad(op, args) ||
                             std::any_of(out.begin(), out.end(), [](const Tensor& t) { return t.requires_grad(); }))),
        "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires "
        "grad.");
  for (const Tensor& t : out) {
    check_writable(t);
    check_written(t);
    check_apart(op, args, t);
  }
  if (op.infer && op.run_into && out.size() == 1) {
    Tensor target = out[0];
    const Meta meta = op.infer(op, args);
    if (meta.dtype == target.dtype() && Ints(meta.sizes) == Ints(target.sizes()) && target.is_contiguous() &&
        target.device() == device_of(op, args) &&
        !any_tensor(op, args, [&](const Tensor& t) { return overlaps(t, target); })) {
      if (!target.is_meta()) op.run_into(op, args, target);
      target.bump_version();
      return;
    }
  }
  std::vector<Tensor> values(op.schema->returns == Returns::Tensor ? 1 : op.schema->results);
  Results results{values.data(), values.size(), {}, 0};
  run(op, args, results);
  check(values.size() == out.size(), "expected ", values.size(), " out tensors, got ", out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    Tensor target = out[i];
    const bool index =
        values[i].dtype() == kInt64 && args[0].tag == Value::Tag::Tensor && args[0].tensor().is_floating_point();
    check(can_cast(values[i].dtype(), target.dtype()) && (!index || target.dtype() == kInt64), "result type ",
          scalar_name(values[i].dtype()), " can't be cast to the desired output type ", scalar_name(target.dtype()));
    if (Ints(target.sizes()) != Ints(values[i].sizes())) resize(target, values[i].sizes());
    in_place(copy, target, values[i]);
  }
}

}  // namespace

void dispatch(const OpInfo& op, const Value* args, Results& out) {
  named(op, [&] {
    if (modes().autocast) [[unlikely]]
      return call_watched(op, args, out);
    call(op, args, out);
  });
}

void dispatch_in_place(const OpInfo& op, const Value* args) {
  named(op, [&] {
    if (modes().autocast) [[unlikely]] {
      const RecordFunction record(op, args, true);
      const NoAutocast as_they_are;  // the result goes into a tensor whose dtype stands
      return call_in_place(op, args);
    }
    call_in_place(op, args);
  });
}

void dispatch_out(const OpInfo& op, const Value* args, std::span<const Tensor> out) {
  named(op, [&] {
    if (profiler::current) [[unlikely]] {
      const RecordFunction record(op, args);
      return call_out(op, args, out);
    }
    call_out(op, args, out);
  });
}

}  // namespace rush
