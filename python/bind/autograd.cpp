// Autograd for Python: modes, the engine, nodes, hooks, autograd.Function.
#include "rushlight/autograd.h"

#include <map>
#include <string>

#include "python.h"

namespace rush::python {

namespace {

// ---- modes ----

template <auto Field>
PyObject* get_mode(PyObject*, PyObject*) {
  return PyBool_FromLong(modes().*Field);
}
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(PyBool_Check(on), "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not ",
                     Py_TYPE(on)->tp_name);
    modes().grad = on == Py_True;
    Py_RETURN_NONE;
  });
}
PyObject* set_inference_mode(PyObject*, PyObject* on) {
  modes().inference = on == Py_True;
  if (modes().inference) modes().grad = false;
  Py_RETURN_NONE;
}
PyObject* set_anomaly(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"enabled", "check_nan", nullptr};
  int on, nan = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p|p", const_cast<char**>(names), &on, &nan)) return nullptr;
  modes().anomaly = on;
  modes().anomaly_nan = nan;
  Py_RETURN_NONE;
}
bool multithreading = true;  // accepted: the CPU's engine runs on the caller's thread anyway
PyObject* is_multithreading(PyObject*, PyObject*) { return PyBool_FromLong(multithreading); }
PyObject* set_multithreading(PyObject*, PyObject* on) {
  multithreading = on == Py_True;
  Py_RETURN_NONE;
}

// ---- nodes ----

struct NodeObject {
  PyObject_HEAD;
  Ref<Node> node;
  PyObject* dict;
};
PyTypeObject* node_type = nullptr;
PyTypeObject* function_type = nullptr;

/// The node of an autograd.Function call: backward goes to the Python object that forward saw as ctx.
struct PythonNode final : Node {
  std::string label;
  std::shared_ptr<PyObject> context;
  std::vector<SavedTensor> saved;
  bool materialize = true, released = false;
  PythonNode() { takes_nothing = true; }
  ~PythonNode() override;
  std::string name() const override { return label; }
  void release() override {
    released = true;
    saved.clear();
  }
  Grads apply(Grads grads) override;
};

/// ctx: holds its node weakly, since the node holds it.
struct FunctionObject {
  PyObject_HEAD;
  PythonNode* node;
  PyObject* dict;
  PyObject* weak_references;
};
FunctionObject* function_in(PyObject* o) { return reinterpret_cast<FunctionObject*>(o); }

PythonNode::~PythonNode() {
  if (!context || !Py_IsInitialized()) return;
  const AcquireGil gil;
  if (function_in(context.get())->node == this) function_in(context.get())->node = nullptr;
}

void node_free(PyObject* o) {
  auto* n = reinterpret_cast<NodeObject*>(o);
  PyObject_GC_UnTrack(o);
  if (n->node && n->node->python == o) n->node->python = nullptr;
  n->node.~Ref<Node>();
  Py_CLEAR(n->dict);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<NodeObject*>(o)->dict);
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int node_clear(PyObject* o) {
  Py_CLEAR(reinterpret_cast<NodeObject*>(o)->dict);
  return 0;
}

/// The node behind a Node object or a Function's ctx.
Ref<Node> node_of(PyObject* o) {
  if (PyObject_TypeCheck(o, node_type)) return reinterpret_cast<NodeObject*>(o)->node;
  check(PyObject_TypeCheck(o, function_type) && function_in(o)->node,
        "this context has no node: nothing was recorded for it");
  return Ref<Node>(function_in(o)->node);
}

PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(o)->name().c_str()); });
}
PyObject* node_next(PyObject* o, void*) {
  return guarded([&] {
    const Ref<Node> node = node_of(o);
    Object tuple(need(PyTuple_New(Py_ssize_t(node->edges.size()))));
    for (size_t i = 0; i < node->edges.size(); ++i) {
      Object next(wrap_node(node->edges[i].node));
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       need(Py_BuildValue("(Ok)", next.get(), (unsigned long)node->edges[i].input)));
    }
    return tuple.release();
  });
}
PyObject* node_variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor leaf = node_of(o)->variable();
    if (leaf.defined()) return wrap(leaf);
    PyErr_SetString(PyExc_AttributeError, "only AccumulateGrad nodes have a variable");
    throw PythonError();
  });
}
PyObject* node_metadata(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    auto* n = reinterpret_cast<NodeObject*>(o);
    if (!n->dict) n->dict = need(PyDict_New());
    Py_INCREF(n->dict);
    return n->dict;
  });
}
PyObject* node_sequence(PyObject* o, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(node_of(o)->sequence); });
}
PyObject* node_repr(PyObject* o) {
  return guarded([&] { return PyUnicode_FromFormat("<%s object at %p>", node_of(o)->name().c_str(), o); });
}

PyObject* tuple_of(const Grads& grads) {
  Object tuple(need(PyTuple_New(Py_ssize_t(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), need(wrap(grads[i])));
  return tuple.release();
}
/// A hook's or backward's answer, a tensor, None or a tuple of them, as gradients.
void read_grads(PyObject* answer, Grads& grads, const char* who) {
  const auto one = [&](PyObject* o) {
    check(o == Py_None || is_tensor(o), who, " returned ", Py_TYPE(o)->tp_name, ", expected a Tensor or None");
    return o == Py_None ? Tensor() : unwrap(o);
  };
  if (PyTuple_Check(answer) || PyList_Check(answer)) {
    const auto n = size_t(PySequence_Fast_GET_SIZE(answer));
    grads.resize(n);
    for (size_t i = 0; i < n; ++i) grads[i] = one(PySequence_Fast_GET_ITEM(answer, Py_ssize_t(i)));
  } else {
    grads = Grads{one(answer)};
  }
}

/// What register_hook returns: remove() takes the hook off; leaving it as a context does too.
struct Handle {
  PyObject_HEAD;
  std::function<void()>* remove;
};
PyTypeObject* handle_type = nullptr;

PyObject* make_handle(std::function<void()> remove) {
  auto* h = reinterpret_cast<Handle*>(need(handle_type->tp_alloc(handle_type, 0)));
  h->remove = new std::function<void()>(std::move(remove));
  return reinterpret_cast<PyObject*>(h);
}
void handle_free(PyObject* o) {
  delete reinterpret_cast<Handle*>(o)->remove;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* handle_remove(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    (*reinterpret_cast<Handle*>(o)->remove)();
    Py_RETURN_NONE;
  });
}
PyObject* handle_enter(PyObject* o, PyObject*) {
  Py_INCREF(o);
  return o;
}
PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "Takes the hook off; a second time does nothing."},
    {"__enter__", handle_enter, METH_NOARGS, nullptr},
    {"__exit__", handle_remove, METH_VARARGS, nullptr},
    {}};
PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(handle_free)}, {Py_tp_methods, handle_methods}, {}};
PyType_Spec handle_spec{"rushlight._C.HookHandle", sizeof(Handle), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};

PyObject* node_register(PyObject* o, PyObject* hook, bool pre) {
  return guarded([&] {
    const Ref<Node> node = node_of(o);
    const auto call = hold(hook);
    uint64_t id;
    if (pre) {
      id = register_hook(
          node,
          [call](Grads& grads) {
            const AcquireGil gil;
            const Object args(tuple_of(grads));
            const Object answer(need(PyObject_CallOneArg(call.get(), args.get())));
            if (answer.get() != Py_None) read_grads(answer.get(), grads, "a prehook");
          },
          nullptr);
    } else {
      id = register_hook(node, nullptr, [call](Grads& outputs, const Grads& inputs) {
        const AcquireGil gil;
        const Object made(tuple_of(outputs)), given(tuple_of(inputs));
        const Object answer(need(PyObject_CallFunctionObjArgs(call.get(), made.get(), given.get(), nullptr)));
        if (answer.get() != Py_None) read_grads(answer.get(), outputs, "a hook");
      });
    }
    return make_handle([node, id] { remove_hook(node, id); });
  });
}
PyObject* node_register_hook(PyObject* o, PyObject* hook) { return node_register(o, hook, false); }
PyObject* node_register_prehook(PyObject* o, PyObject* hook) { return node_register(o, hook, true); }

PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS, "What was recorded, \"AddBackward0\"."},
                              {"register_hook", node_register_hook, METH_O,
                               "register_hook(fn(grad_inputs, grad_outputs)): called after the node ran."},
                              {"register_prehook", node_register_prehook, METH_O,
                               "register_prehook(fn(grad_outputs)): called before the node runs."},
                              {"_sequence_nr", node_sequence, METH_NOARGS, "Later nodes have higher numbers."},
                              {}};
PyGetSetDef node_getset[] = {
    {"next_functions", node_next, nullptr, "Where gradients go: pairs (node, index).", nullptr},
    {"variable", node_variable, nullptr, "Of an AccumulateGrad node: its leaf.", nullptr},
    {"metadata", node_metadata, nullptr, "A dict for the user.", nullptr},
    {}};
PyType_Slot node_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_free)},
                            {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                            {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                            {Py_tp_methods, node_methods},
                            {Py_tp_getset, node_getset},
                            {Py_tp_doc, const_cast<char*>("A recorded call in the graph.")},
                            {}};
PyType_Spec node_spec{"rushlight._C.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      node_slots};

// ---- autograd.Function ----

Grads PythonNode::apply(Grads grads) {
  const AcquireGil gil;
  Object args(need(PyTuple_New(Py_ssize_t(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) {
    Tensor g = grads[i];
    if (!g.defined() && materialize && is_differentiable(results[i].dtype))
      g = zeros(results[i].sizes, results[i].dtype, {}, results[i].device);
    PyTuple_SET_ITEM(args.get(), Py_ssize_t(i), need(wrap(g)));
  }
  const Object method(need(PyObject_GetAttrString(context.get(), "_run_backward")));
  const Object answer(need(PyObject_Call(method.get(), args.get(), nullptr)));
  Grads out;
  read_grads(answer.get(), out, "backward");
  return out;
}

void function_free(PyObject* o) {
  auto* f = function_in(o);
  PyObject_GC_UnTrack(o);
  if (f->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(f->dict);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
int function_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(function_in(o)->dict);
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int function_clear(PyObject* o) {
  Py_CLEAR(function_in(o)->dict);
  return 0;
}

PyObject* saved_tensors(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    PythonNode* node = function_in(o)->node;
    if (!node) {  // within forward, or nothing recorded
      PyObject* kept = PyObject_GetAttrString(o, "to_save");
      if (!kept) PyErr_Clear();
      if (kept && kept != Py_None) return kept;
      Py_XDECREF(kept);
      return PyTuple_New(0);
    }
    check(
        !node->released,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.");
    Object tuple(need(PyTuple_New(Py_ssize_t(node->saved.size()))));
    for (size_t i = 0; i < node->saved.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       need(wrap(node->saved[i].defined() ? node->saved[i].get(*node, node->label) : Tensor())));
    return tuple.release();
  });
}

PyMemberDef function_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY, nullptr},
    {}};
PyGetSetDef function_getset[] = {{"saved_tensors", saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
                                 {"next_functions", node_next, nullptr, nullptr, nullptr},
                                 {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                 {}};
PyType_Slot function_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(function_free)},
                                {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
                                {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                                {Py_tp_methods, node_methods},
                                {Py_tp_members, function_members},
                                {Py_tp_getset, function_getset},
                                {}};
PyType_Spec function_spec{"rushlight._C._FunctionBase", sizeof(FunctionObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, function_slots};

bool contains(PyObject* tuple, PyObject* o) {
  if (!tuple || tuple == Py_None) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}
Object tuple_attribute(PyObject* o, const char* name) {
  Object value(PyObject_GetAttrString(o, name));
  if (!value) {
    PyErr_Clear();
    return {};
  }
  if (value.get() == Py_None) return {};
  check<TypeError>(PyTuple_Check(value.get()), name, " must be a tuple");
  return value;
}

/// _apply_function(ctx, name, inputs, outputs): records what Function.forward did.
PyObject* apply_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *context, *inputs, *outputs;
    const char* name;
    if (!PyArg_ParseTuple(args, "OsO!O!:_apply_function", &context, &name, &PyTuple_Type, &inputs, &PyTuple_Type,
                          &outputs))
      return nullptr;
    const Object dirty = tuple_attribute(context, "dirty_tensors"),
                 constant = tuple_attribute(context, "non_differentiable"), keep = tuple_attribute(context, "to_save");
    const auto differentiates = [&](PyObject* o) {
      return is_tensor(o) && is_differentiable(unwrap(o).dtype()) && !contains(constant.get(), o);
    };
    for (Py_ssize_t i = 0; constant && i < PyTuple_GET_SIZE(constant.get()); ++i)
      check(is_tensor(PyTuple_GET_ITEM(constant.get(), i)),
            "mark_non_differentiable only accepts variable arguments, but got ",
            Py_TYPE(PyTuple_GET_ITEM(constant.get(), i))->tp_name);
    bool recorded = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
      PyObject* o = PyTuple_GET_ITEM(inputs, i);
      recorded |= is_tensor(o) && unwrap(o).requires_grad();
    }
    recorded &= grad_enabled();
    if (dirty) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dirty.get()); ++i) {
        PyObject* o = PyTuple_GET_ITEM(dirty.get(), i);
        check(is_tensor(o), "mark_dirty can only accept variables, but argument ", i, " is of type ",
              Py_TYPE(o)->tp_name);
        check(
            !contains(inputs, o) || contains(outputs, o),
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function.");
        if (!contains(inputs, o) &&
            PyErr_WarnEx(PyExc_UserWarning,
                         "ctx.mark_dirty() received a tensor that was not an input. Only inputs that forward has "
                         "changed in place should be passed to it.",
                         1) < 0)
          throw PythonError();
        const Tensor& t = unwrap(o);
        if (recorded && differentiates(o)) {
          check(!t.impl()->base || PyTuple_GET_SIZE(outputs) == 1,
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. Make the input no view, by clone() for example, or make the Function "
                "return one Tensor only, by splitting it into two for example.");
          check(t.impl()->base || !t.requires_grad() || !t.is_leaf(),
                "a leaf Variable that requires grad has been used in an in-place operation.");
          check_in_place(t);
        }
        t.bump_version();
      }
    }
    Ref<PythonNode> node;
    if (recorded) {
      node = Ref<PythonNode>(new PythonNode);
      node->label = name;
      node->context = hold(context);
      const Object materialize(PyObject_GetAttrString(context, "materialize_grads"));
      if (!materialize) PyErr_Clear();
      node->materialize = !materialize || materialize.get() != Py_False;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
        PyObject* o = PyTuple_GET_ITEM(inputs, i);
        node->edges.push_back(is_tensor(o) ? gradient_edge(unwrap(o)) : Edge());
      }
    }
    Py_ssize_t differentiable = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i)
      differentiable += differentiates(PyTuple_GET_ITEM(outputs, i));
    const ViewOrigin origin = differentiable > 1 ? ViewOrigin::Many : ViewOrigin::Function;
    Object results(need(PyTuple_New(PyTuple_GET_SIZE(outputs))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
      PyObject* o = PyTuple_GET_ITEM(outputs, i);
      Object result = Object::borrow(o);
      if (is_tensor(o)) {
        Tensor t = unwrap(o);
        const bool is_dirty = contains(dirty.get(), o);
        if (contains(inputs, o) && (!is_dirty || (recorded && !differentiates(o)))) {
          const Tensor given = t;
          t = alias(t, t.sizes(), t.strides(), t.storage_offset());
          if (recorded && differentiates(o)) {
            t.impl()->base = given.impl()->base ? given.impl()->base : given.ref();
            t.impl()->view_version = t.version();
          }
          result = Object(wrap(t));
        }
        if (recorded) node->results.push_back({t.sizes(), t.dtype(), t.device()});
        if (recorded && differentiates(o)) {
          if (t.impl()->base && !is_dirty) t.impl()->view_origin = origin;
          if (is_dirty && t.impl()->base) {
            const Tensor value = t.detach();
            set_history(value, node, uint32_t(node->results.size() - 1));
            assign_history(t, value);
          } else {
            set_history(t, node, uint32_t(node->results.size() - 1));
          }
        }
      } else if (recorded) {
        node->results.push_back({});
      }
      PyTuple_SET_ITEM(results.get(), i, result.release());
    }
    if (recorded) {
      function_in(context)->node = node.get();
      if (keep) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keep.get()); ++i) {
          PyObject* o = PyTuple_GET_ITEM(keep.get(), i);
          check<TypeError>(o == Py_None || is_tensor(o), "save_for_backward can only save variables, but argument ", i,
                           " is of type ", Py_TYPE(o)->tp_name);
          if (o == Py_None) {
            node->saved.emplace_back();
            continue;
          }
          const Tensor& t = unwrap(o);
          const auto& meta = t.impl()->autograd;
          const bool own = meta && meta->grad_fn.get() == node.get();
          node->saved.emplace_back(t, own ? int(meta->output) : -1);
        }
        if (PyObject_SetAttrString(context, "to_save", Py_None) < 0) throw PythonError();
      }
    }
    return results.release();
  });
}

// ---- the engine ----

std::vector<Tensor> tensors_from(PyObject* sequence, const char* what, bool optional = false) {
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    PyObject* o = PySequence_Fast_GET_ITEM(sequence, i);
    check((optional && o == Py_None) || is_tensor(o), "all ", what, " have to be Tensors, but got ",
          Py_TYPE(o)->tp_name, " at index ", i);
    out.push_back(o == Py_None ? Tensor() : unwrap(o));
  }
  return out;
}

struct Callbacks {
  int depth = 0;
  int64_t id = -1;
  std::vector<std::shared_ptr<PyObject>> waiting;
};
thread_local Callbacks callbacks;
int64_t next_task = 0;

/// Runs a walk without the GIL, then what was queued for its end.
template <class F>
auto walk(F&& f) {
  struct Depth {
    int64_t outer = std::exchange(callbacks.id, next_task++);
    Depth() { ++callbacks.depth; }
    ~Depth() {
      --callbacks.depth;
      callbacks.id = outer;
    }
  };
  auto result = [&] {
    const Depth depth;
    const ReleaseGil unlocked;
    return f();
  }();
  if (callbacks.depth == 0) {
    for (const auto& call : std::exchange(callbacks.waiting, {})) Object(need(PyObject_CallNoArgs(call.get())));
  }
  return result;
}

/// _engine_run(tensors, grads, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad)
PyObject* engine_run(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *grads, *inputs;
    int retain, create, allow, accumulate;
    if (!PyArg_ParseTuple(args, "O!O!ppO!pp:_engine_run", &PyTuple_Type, &tensors, &PyTuple_Type, &grads, &retain,
                          &create, &PyTuple_Type, &inputs, &allow, &accumulate))
      return nullptr;
    const auto roots = tensors_from(tensors, "tensors"), given = tensors_from(grads, "grad_tensors", true),
               wanted = tensors_from(inputs, "inputs");
    const BackwardOptions options{.retain_graph = retain != 0,
                                  .create_graph = create != 0,
                                  .accumulate = accumulate != 0 || wanted.empty(),
                                  .allow_unused = allow != 0};
    const auto found = walk([&] { return run_backward(roots, given, wanted, options); });
    Object tuple(need(PyTuple_New(Py_ssize_t(found.size()))));
    for (size_t i = 0; i < found.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), need(wrap(found[i])));
    return tuple.release();
  });
}

PyObject* tensor_backward(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
    PyObject *gradient = Py_None, *retain = Py_None, *inputs = Py_None;
    int create = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpO:backward", const_cast<char**>(names), &gradient, &retain,
                                     &create, &inputs))
      return nullptr;
    check<TypeError>(gradient == Py_None || is_tensor(gradient), "gradients can be either Tensors or None, but got ",
                     Py_TYPE(gradient)->tp_name);
    std::vector<Tensor> wanted;
    if (inputs != Py_None) {
      if (is_tensor(inputs))
        wanted.push_back(unwrap(inputs));
      else {
        const Object list(need(PySequence_Fast(inputs, "inputs must be a tensor or a sequence of tensors")));
        wanted = tensors_from(list.get(), "inputs");
      }
      check(!wanted.empty(), "'inputs' argument to 'backward' cannot be empty.");
    }
    const Tensor root = unwrap(self), given = gradient == Py_None ? Tensor() : unwrap(gradient);
    const bool keep = retain == Py_None ? create != 0 : PyObject_IsTrue(retain) == 1;
    walk([&] {
      return run_backward({&root, 1}, {&given, 1}, wanted,
                          {.retain_graph = keep, .create_graph = create != 0, .allow_unused = true});
    });
    Py_RETURN_NONE;
  });
}

PyObject* queue_callback(PyObject*, PyObject* call) {
  return guarded([&]() -> PyObject* {
    check(callbacks.depth > 0, "Final callbacks can only be installed during backward pass.");
    callbacks.waiting.push_back(hold(call));
    Py_RETURN_NONE;
  });
}
PyObject* current_task(PyObject*, PyObject*) { return PyLong_FromLongLong(callbacks.id); }
PyObject* increment_version(PyObject*, PyObject* t) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(is_tensor(t), "expected a Tensor");
    unwrap(t).bump_version();
    Py_RETURN_NONE;
  });
}

// ---- hooks on tensors ----

PyObject* tensor_register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    const auto call = hold(hook);
    const uint64_t id = register_hook(unwrap(self), [call](const Tensor& g) {
      const AcquireGil gil;
      const Object grad(wrap(g));
      const Object answer(need(PyObject_CallOneArg(call.get(), grad.get())));
      if (answer.get() == Py_None) return Tensor();
      check<TypeError>(is_tensor(answer.get()), "expected hook to return a Tensor or None, but it returned ",
                       Py_TYPE(answer.get())->tp_name);
      return unwrap(answer.get());
    });
    return make_handle([impl = Tensor(unwrap(self)), id] { remove_hook(impl, id); });
  });
}
PyObject* tensor_register_post(PyObject* self, PyObject* hook) {
  return guarded([&] {
    const auto call = hold(hook);
    const uint64_t id = register_post_accumulate_grad_hook(unwrap(self), [call](const Tensor& leaf) {
      const AcquireGil gil;
      const Object o(wrap(leaf));
      const Object answer(need(PyObject_CallOneArg(call.get(), o.get())));
      if (answer.get() == Py_None || answer.get() == o.get()) return;
      check<TypeError>(is_tensor(answer.get()), "expected Variable, but hook returned '",
                       Py_TYPE(answer.get())->tp_name, "'");
      raise("Tensor post accumulate grad hooks should return None.");
    });
    return make_handle([impl = Tensor(unwrap(self)), id] { remove_hook(impl, id); });
  });
}

// ---- saved tensor hooks ----

std::string hooks_disabled;

PyObject* push_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO:_push_saved_tensors_hooks", &pack, &unpack)) return nullptr;
    check(hooks_disabled.empty(), hooks_disabled);
    auto hooks = std::make_shared<SavedTensorHooks>();
    hooks->pack = [call = hold(pack)](const Tensor& t) -> std::shared_ptr<void> {
      const AcquireGil gil;
      const Object o(wrap(t));
      const Object packed(need(PyObject_CallOneArg(call.get(), o.get())));
      return hold(packed.get());
    };
    hooks->unpack = [call = hold(unpack)](const std::shared_ptr<void>& packed) {
      const AcquireGil gil;
      const Object o(need(PyObject_CallOneArg(call.get(), static_cast<PyObject*>(packed.get()))));
      check<TypeError>(is_tensor(o.get()),
                       "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
                       Py_TYPE(o.get())->tp_name);
      return unwrap(o.get());
    };
    saved_tensor_hooks().push_back(std::move(hooks));
    Py_RETURN_NONE;
  });
}
PyObject* pop_hooks(PyObject*, PyObject*) {
  if (!saved_tensor_hooks().empty()) saved_tensor_hooks().pop_back();
  Py_RETURN_NONE;
}
PyObject* disable_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    PyObject* before =
        hooks_disabled.empty() ? (Py_INCREF(Py_None), Py_None) : PyUnicode_FromString(hooks_disabled.c_str());
    hooks_disabled = message == Py_None ? std::string() : std::string(text_of(message));
    return before;
  });
}

std::string python_trace() {
  const AcquireGil gil;
  const Object module(PyImport_ImportModule("traceback"));
  const Object lines(module ? PyObject_CallMethod(module.get(), "format_stack", nullptr) : nullptr);
  const Object empty(PyUnicode_FromString(""));
  const Object joined(lines ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
  if (!joined) {
    PyErr_Clear();
    return {};
  }
  return std::string(text_of(joined.get()));
}
void warn_anomaly(const std::string& node, const std::string& trace) {
  const AcquireGil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const std::string message =
      trace.empty() ? "Error detected in " + node +
                          ". No forward pass information available. Enable detect anomaly during forward pass for more "
                          "information."
                    : "Error detected in " + node + ". Traceback of forward call that caused the error:\n" + trace;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

PyMethodDef functions[] = {
    {"is_grad_enabled", get_mode<&Modes::grad>, METH_NOARGS, "Whether operators are recorded on this thread."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", get_mode<&Modes::inference>, METH_NOARGS, "Whether inference mode is on."},
    {"_set_inference_mode", set_inference_mode, METH_O, nullptr},
    {"_is_observed", get_mode<&Modes::autocast>, METH_NOARGS, "Whether autocast is on for some device, or a profiler."},
    {"is_anomaly_enabled", get_mode<&Modes::anomaly>, METH_NOARGS, "Whether anomaly detection is on."},
    {"is_anomaly_check_nan_enabled", get_mode<&Modes::anomaly_nan>, METH_NOARGS, "Whether it looks for NaN."},
    {"_set_anomaly_enabled", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(set_anomaly)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_is_multithreading_enabled", is_multithreading, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_multithreading, METH_O, nullptr},
    {"_engine_run", engine_run, METH_VARARGS, nullptr},
    {"_apply_function", apply_function, METH_VARARGS, nullptr},
    {"_queue_callback", queue_callback, METH_O, "Calls a function when the running backward ends."},
    {"_current_graph_task_id", current_task, METH_NOARGS, "The running backward's number, -1 outside of one."},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_push_saved_tensors_hooks", push_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
    {"_set_saved_tensors_hooks_disabled", disable_hooks, METH_O, nullptr},
    {}};

PyMethodDef tensor_methods[] = {
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tensor_backward)), METH_VARARGS | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\nAccumulates the gradients of this "
     "tensor into .grad of the leaves "
     "it was computed from. ``gradient`` may be left out for one element."},
    {"register_hook", tensor_register_hook, METH_O,
     "register_hook(fn(grad) -> Tensor | None): called with each gradient of this tensor."},
    {"register_post_accumulate_grad_hook", tensor_register_post, METH_O,
     "register_post_accumulate_grad_hook(fn(leaf)): called after .grad was updated."},
    {}};

/// The class of nodes of one name, made when first asked for: tools that draw graphs show it.
PyTypeObject* node_type_of(const std::string& name) {
  static auto& types = *new std::map<std::string, PyTypeObject*>;
  const auto [at, fresh] = types.try_emplace(name, nullptr);
  if (fresh) {
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_free)},
                           {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                           {}};
    const auto& full_name = *new std::string("rushlight.autograd." + name);  // lives as long as the type
    PyType_Spec spec{full_name.c_str(), sizeof(NodeObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    const Object bases(need(Py_BuildValue("(O)", node_type)));
    at->second = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpecWithBases(&spec, bases.get())));
  }
  return at->second;
}
}  // namespace

PyObject* wrap_node(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (auto* f = dynamic_cast<PythonNode*>(node.get())) {
    Py_INCREF(f->context.get());
    return f->context.get();
  }
  if (node->python) {
    Py_INCREF(static_cast<PyObject*>(node->python));
    return static_cast<PyObject*>(node->python);
  }
  auto* o = PyObject_GC_New(NodeObject, node_type_of(node->name()));
  if (!o) throw PythonError();
  new (&o->node) Ref<Node>(node);
  o->dict = nullptr;
  node->python = o;
  PyObject_GC_Track(o);
  return reinterpret_cast<PyObject*>(o);
}

void add_autograd(PyObject* module) {
  capture_trace = python_trace;
  report_anomaly = warn_anomaly;
  node_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&node_spec)));
  function_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&function_spec)));
  handle_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&handle_spec)));
  need(PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type)));
  need(PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(function_type)));
  need(PyModule_AddFunctions(module, functions));
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) {
    const Object method(need(PyDescr_NewMethod(tensor_type, m)));
    need(PyDict_SetItemString(tensor_type->tp_dict, m->ml_name, method.get()));
  }
}

}  // namespace rush::python
