// The Python type of tensors.
//
// Note [One object for a tensor]: a TensorImpl has at most one Python object, so that `x.grad is x.grad`. The object
// holds the impl. When the object would die while the impl lives on (in a graph, in .grad), an object that carries
// state of its own (attributes, a subclass) is kept: the impl then owns the object instead, until it is asked for
// again.
#include "python.h"
#include "rushlight/autograd.h"
#include "sequence.h"

namespace rush::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* last_plain = nullptr;

namespace {

TensorObject* as_object(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
const Tensor& self_of(PyObject* o) { return as_object(o)->tensor; }

/// Dead plain tensors, for the next: most tensors live for one line of a program. They keep their count on the type.
constexpr size_t kMostSpare = 64;
PyObject* spare[kMostSpare];
size_t spares = 0;

/// An object of the plain type, not tracked by the garbage collector: without attributes it can be in no cycle.
TensorObject* new_plain() {
  if (spares == 0) {
    auto* o = PyObject_GC_New(TensorObject, tensor_type);
    if (!o) throw PythonError();
    return o;
  }
  PyObject* o = spare[--spares];
  Py_SET_REFCNT(o, 1);
  return as_object(o);
}

PyObject* attach(PyTypeObject* type, Tensor t) {
  TensorObject* o;
  if (type == tensor_type) {
    o = new_plain();
    o->dict = o->weak_references = nullptr;
  } else {
    o = reinterpret_cast<TensorObject*>(need(type->tp_alloc(type, 0)));
  }
  new (&o->tensor) Tensor(std::move(t));
  o->tensor.impl()->python.store(o, std::memory_order_relaxed);  // read and written under the GIL
  return reinterpret_cast<PyObject*>(o);
}

void drop_tensor(TensorObject* o) {
  if (!o->tensor.defined()) return;
  TensorImpl& impl = *o->tensor.impl();
  if (impl.python.load(std::memory_order_relaxed) == o) impl.python.store(nullptr, std::memory_order_relaxed);
  o->tensor = Tensor();
}

/// The garbage collector marks an object whose finalizer ran, in the word before it, and does not run it again.
void forget_finalized(PyObject* o) { reinterpret_cast<uintptr_t*>(o)[-1] &= ~uintptr_t(1); }

/// See Note [One object for a tensor]. Runs before attributes are dropped, and may bring the object back.
void finalize(PyObject* self) {
  TensorObject* o = as_object(self);
  if (!o->tensor.defined() || o->tensor.ref()->use_count() <= 1) return;
  if (Py_TYPE(self) == tensor_type && !o->dict) return;
  TensorImpl* impl = o->tensor.impl();
  if (impl->python != o) return;
  Py_INCREF(self);
  impl->owns_python = true;
  // The object keeps the pointer and gives up the count, last of all: another thread may have dropped the other counts
  // meanwhile, and then the impl dies here.
  const Tensor count = std::exchange(o->tensor, Tensor(Ref<TensorImpl>::adopt(impl)));
}

void dealloc(PyObject* self) {
  TensorObject* o = as_object(self);
  if (Py_TYPE(self) == tensor_type && o->dict && PyObject_CallFinalizerFromDealloc(self) < 0) return;
  PyObject_GC_UnTrack(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  drop_tensor(o);
  o->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && spares < kMostSpare) {
    forget_finalized(self);
    spare[spares++] = self;
  } else {
    type->tp_free(self);
    Py_DECREF(type);
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_object(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(as_object(self)->dict);
  return 0;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (as_object(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return status;
}

/// The object's impl died while it owned the object.
void release_object(void* object) {
  if (!Py_IsInitialized()) return;
  const AcquireGil gil;
  auto* o = static_cast<TensorObject*>(object);
  auto leaked = std::move(o->tensor);
  Ref<TensorImpl> dead = leaked.ref();  // one count more than there is: give both up without dropping them
  (void)dead.leak();
  new (&leaked) Tensor();
  Py_DECREF(reinterpret_cast<PyObject*>(o));
}

// ---- construction ----

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    Tensor t;
    if (kwargs && PyDict_Size(kwargs) > 0)
      raise<TypeError>("Tensor() takes no keyword arguments: use torch.tensor(data, dtype=..., device=...)");
    if (n == 0) {
      t = empty({0});
    } else if (PyObject* first = PyTuple_GET_ITEM(args, 0); n == 1 && is_tensor(first)) {
      t = unwrap(first).detach();
    } else if (PyLong_Check(first) && !PyBool_Check(first)) {
      Dims sizes;
      for (Py_ssize_t i = 0; i < n; ++i) sizes.push_back(number_from(PyTuple_GET_ITEM(args, i)).to_int());
      t = empty(sizes);
    } else if (n == 1 && Py_TYPE(first) != &PyUnicode_Type) {
      if (PyTuple_Check(first) && std::string_view(Py_TYPE(first)->tp_name) == "rushlight.Size") {
        Dims sizes;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first); ++i)
          sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(first, i)));
        t = empty(sizes);
      } else {
        const Object module(need(PyImport_ImportModule("rushlight._C")));
        const Object made(need(PyObject_CallMethod(module.get(), "tensor", "O", first)));
        t = unwrap(made.get());
        t = t.dtype() == default_dtype() ? alias(t, t.sizes(), t.strides(), 0) : cast(t, default_dtype());
      }
    } else {
      raise<TypeError>("Tensor(): expected sizes, a sequence of numbers or a tensor, got ",
                       Py_TYPE(PyTuple_GET_ITEM(args, 0))->tp_name);
    }
    return attach(type, std::move(t));
  });
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"cls", "data", "requires_grad", nullptr};
    PyObject *cls, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_make_subclass", const_cast<char**>(names), &cls, &data,
                                     &requires_grad))
      return nullptr;
    check<TypeError>(PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type),
                     "cls must be a subclass of Tensor");
    check<TypeError>(is_tensor(data), "data must be a Tensor, not ", Py_TYPE(data)->tp_name);
    Tensor t = unwrap(data).detach();
    if (requires_grad) t.requires_grad_();
    return attach(reinterpret_cast<PyTypeObject*>(cls), std::move(t));
  });
}

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type),
                     "cls must be a subclass of Tensor");
    // An alias that keeps its history: operators record through it.
    const Tensor& t = self_of(self);
    Tensor same = view(t, t.sizes());
    return attach(reinterpret_cast<PyTypeObject*>(cls), std::move(same));
  });
}

// ---- properties ----

template <auto F>
PyObject* getter(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return F(self_of(self)); });
}
PyObject* to_bool(bool v) { return PyBool_FromLong(v); }

/// A property that is an operator on the tensor: x.T, x.real.
PyObject* operator_getter(PyObject* self, void* name) {
  return call_operator(find_callable(static_cast<const char*>(name)), &self, 1);
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    check<TypeError>(value && PyBool_Check(value), "requires_grad must be a bool");
    Tensor t = self_of(self);
    t.requires_grad_(value == Py_True);
    return 0;
  });
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    check<TypeError>(!value || value == Py_None || is_tensor(value),
                     "assigned grad expected to be a Tensor or None but got grad of type ",
                     value ? Py_TYPE(value)->tp_name : "");
    self_of(self).set_grad(!value || value == Py_None ? Tensor() : unwrap(value));
    return 0;
  });
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&] {
    const Tensor t = self_of(self).detach();
    t.impl()->untracked = true;
    return wrap(t);
  });
}
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    check<TypeError>(value && is_tensor(value), "Variable data has to be a tensor, but got ",
                     value ? Py_TYPE(value)->tp_name : "nothing");
    TensorImpl& to = *self_of(self).impl();
    const TensorImpl& from = *unwrap(value).impl();
    check(!self_of(self).requires_grad() || is_differentiable(from.dtype),
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    to.storage = from.storage;
    to.sizes = from.sizes;
    to.strides = from.strides;
    to.offset = from.offset;
    to.numel = from.numel;
    to.contiguous = from.contiguous;
    to.dtype = from.dtype;
    to.device = from.device;
    return 0;
  });
}

PyObject* get_base(PyObject* self, void*) {
  return guarded([&] { return wrap(self_of(self).impl()->base ? Tensor(self_of(self).impl()->base) : Tensor()); });
}

#define RUSH_PROPERTY(name, expression)                                                               \
  {                                                                                                   \
    name, getter<+[](const Tensor& t) -> PyObject* { return expression; }>, nullptr, nullptr, nullptr \
  }
PyGetSetDef properties[] = {
    RUSH_PROPERTY("shape", wrap_size(t.sizes())),
    RUSH_PROPERTY("dtype", wrap(t.dtype())),
    RUSH_PROPERTY("device", wrap(t.device())),
    RUSH_PROPERTY("layout", ((void)t, strided_layout())),
    RUSH_PROPERTY("ndim", PyLong_FromLongLong(t.dim())),
    RUSH_PROPERTY("itemsize", PyLong_FromLongLong(t.itemsize())),
    RUSH_PROPERTY("nbytes", PyLong_FromLongLong(t.numel() * t.itemsize())),
    RUSH_PROPERTY("is_cpu", to_bool(t.is_cpu())),
    RUSH_PROPERTY("is_cuda", to_bool(t.device().is_cuda())),
    RUSH_PROPERTY("is_meta", to_bool(t.is_meta())),
    RUSH_PROPERTY("is_sparse", ((void)t, to_bool(false))),
    RUSH_PROPERTY("is_sparse_csr", ((void)t, to_bool(false))),
    RUSH_PROPERTY("is_quantized", ((void)t, to_bool(false))),
    RUSH_PROPERTY("is_nested", ((void)t, to_bool(false))),
    RUSH_PROPERTY("is_mkldnn", ((void)t, to_bool(false))),
    RUSH_PROPERTY("is_leaf", to_bool(t.is_leaf())),
    RUSH_PROPERTY("retains_grad", to_bool(t.impl()->autograd&& t.impl()->autograd->retains_grad)),
    RUSH_PROPERTY("output_nr", PyLong_FromLong(t.grad_fn() ? long(t.impl()->autograd->output) : 0)),
    RUSH_PROPERTY("_version", (check(!t.impl()->inference, "Inference tensors do not track version counter."),
                               PyLong_FromUnsignedLong(t.version()))),
    {"requires_grad", getter<+[](const Tensor& t) { return to_bool(t.requires_grad()); }>, set_requires_grad,
     "Whether gradients are computed with respect to this tensor.", nullptr},
    {"grad", getter<+[](const Tensor& t) { return wrap(t.grad()); }>, set_grad,
     "What backward() accumulated; None at first.", nullptr},
    {"grad_fn", getter<+[](const Tensor& t) { return wrap_node(t.grad_fn()); }>, nullptr,
     "The node that made this tensor, None for a leaf.", nullptr},
    {"data", get_data, set_data, "The same memory without history; assigning replaces the memory.", nullptr},
    {"_base", get_base, nullptr, "Of a view, the tensor it views.", nullptr},
    {"T", operator_getter, nullptr, "Dimensions in reverse order.", const_cast<char*>("numpy_T")},
    {"mT", operator_getter, nullptr, "The last two dimensions exchanged.", const_cast<char*>("mT")},
    {"H", operator_getter, nullptr, "The conjugate transpose of a matrix.", const_cast<char*>("matrix_H")},
    {"mH", operator_getter, nullptr, "The last two dimensions exchanged, conjugated.", const_cast<char*>("mH")},
    {"real", operator_getter, nullptr, "The real part.", const_cast<char*>("real")},
    {"imag", operator_getter, nullptr, "The imaginary part.", const_cast<char*>("imag")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

// ---- methods ----

/// The one argument of size() and stride(), an int.
int64_t dimension_from(PyObject* o, const char* name) {
  check<TypeError>(!PyBool_Check(o) && PyIndex_Check(o), name, "(): argument 'dim' (position 1) must be int, not ",
                   Py_TYPE(o)->tp_name);
  return number_from(o).to_int();
}

PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) == 0 || args[0] == Py_None)
      return wrap_size(self_of(self).sizes());
    return PyLong_FromLongLong(self_of(self).size(dimension_from(args[0], "size")));
  });
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = self_of(self);
    if (n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) > 0)
      return PyLong_FromLongLong(t.stride(dimension_from(args[0], "stride")));
    Object tuple(need(PyTuple_New(t.dim())));
    for (int64_t i = 0; i < t.dim(); ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(t.strides()[i]));
    return tuple.release();
  });
}

template <auto F>
PyObject* method(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return F(self_of(self)); });
}

PyObject* is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"memory_format", nullptr};
    PyObject* format = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", const_cast<char**>(names), &format))
      return nullptr;
    if (!format) return to_bool(self_of(self).is_contiguous());
    check<TypeError>(is_memory_format(format),
                     "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ",
                     Py_TYPE(format)->tp_name);
    return to_bool(self_of(self).is_contiguous(memory_format_from(format)));
  });
}

PyObject* requires_grad_(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"requires_grad", nullptr};
    PyObject* value = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", const_cast<char**>(names), &value))
      return nullptr;
    check<TypeError>(PyBool_Check(value), "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
                     Py_TYPE(value)->tp_name);
    Tensor t = self_of(self);
    t.requires_grad_(value == Py_True);
    Py_INCREF(self);
    return self;
  });
}

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(self_of(self).item()); });
}

PyObject* set_(PyObject* self, PyObject* source) {
  if (set_data(self, source, nullptr) < 0) return nullptr;
  Py_INCREF(self);
  return self;
}

PyMethodDef methods[] = {
    {"size", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(size)), METH_FASTCALL | METH_KEYWORDS,
     "size(dim=None): the sizes, or one of them."},
    {"stride", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(stride)), METH_FASTCALL | METH_KEYWORDS,
     "stride(dim=None): steps in elements between neighbours."},
    {"dim", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.dim()); }>, METH_NOARGS,
     "The number of dimensions."},
    {"ndimension", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.dim()); }>, METH_NOARGS,
     "The number of dimensions."},
    {"numel", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.numel()); }>, METH_NOARGS,
     "The number of elements."},
    {"nelement", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.numel()); }>, METH_NOARGS,
     "The number of elements."},
    {"element_size", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.itemsize()); }>, METH_NOARGS,
     "Bytes of one element."},
    {"storage_offset", method<+[](const Tensor& t) { return PyLong_FromLongLong(t.storage_offset()); }>, METH_NOARGS,
     "The first element's place in the storage."},
    {"data_ptr", method<+[](const Tensor& t) {
       if (t.storage()) t.storage()->mark_shown();
       return PyLong_FromVoidPtr(t.data_ptr());
     }>,
     METH_NOARGS, "The first element's address."},
    {"is_floating_point", method<+[](const Tensor& t) { return to_bool(t.is_floating_point()); }>, METH_NOARGS,
     nullptr},
    {"is_complex", method<+[](const Tensor& t) { return to_bool(t.is_complex()); }>, METH_NOARGS, nullptr},
    {"is_signed", method<+[](const Tensor& t) { return to_bool(is_signed(t.dtype())); }>, METH_NOARGS, nullptr},
    {"is_inference", method<+[](const Tensor& t) { return to_bool(t.impl()->inference); }>, METH_NOARGS, nullptr},
    {"is_conj", method<+[](const Tensor&) { return to_bool(false); }>, METH_NOARGS, "Conjugation is never lazy here."},
    {"is_neg", method<+[](const Tensor&) { return to_bool(false); }>, METH_NOARGS, "Negation is never lazy here."},
    {"get_device", method<+[](const Tensor& t) { return PyLong_FromLong(t.device().index); }>, METH_NOARGS,
     "The device's ordinal, -1 on the CPU."},
    {"_is_view", method<+[](const Tensor& t) { return to_bool(bool(t.impl()->base)); }>, METH_NOARGS, nullptr},
    {"is_contiguous", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(is_contiguous)),
     METH_VARARGS | METH_KEYWORDS, "is_contiguous(memory_format=torch.contiguous_format)"},
    {"requires_grad_", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(requires_grad_)),
     METH_VARARGS | METH_KEYWORDS, "requires_grad_(requires_grad=True): asks for gradients; returns self."},
    {"retain_grad", method<+[](const Tensor& t) -> PyObject* {
       retain_grad(t);
       Py_RETURN_NONE;
     }>,
     METH_NOARGS, "Keeps the gradient of a non-leaf in .grad."},
    {"item", item, METH_NOARGS, "The value of a one-element tensor as a Python number."},
    {"_set_data", set_, METH_O, nullptr},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, requires_grad=False): data, detached, as an object of cls."},
    {"as_subclass", as_subclass, METH_O, "as_subclass(cls): the same tensor as an object of cls."},
    {}};

// ---- number, mapping and comparison slots ----

// Each slot looks its operator up once.
#define RUSH_BINARY(slot, name)                                   \
  {                                                               \
    slot, reinterpret_cast<void*>(+[](PyObject* a, PyObject* b) { \
      static PyObject* const op = find_callable(name);            \
      return call_binary(op, a, b);                               \
    })                                                            \
  }
#define RUSH_IN_PLACE(slot, name)                                              \
  {                                                                            \
    slot, reinterpret_cast<void*>(+[](PyObject* a, PyObject* b) -> PyObject* { \
      if (!is_tensor(b) && !is_number(b)) Py_RETURN_NOTIMPLEMENTED;            \
      static PyObject* const op = find_callable(name);                         \
      PyObject* args[2] = {a, b};                                              \
      return call_operator(op, args, 2);                                       \
    })                                                                         \
  }
#define RUSH_UNARY(slot, name)                         \
  {                                                    \
    slot, reinterpret_cast<void*>(+[](PyObject* a) {   \
      static PyObject* const op = find_callable(name); \
      return call_operator(op, &a, 1);                 \
    })                                                 \
  }

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return PyErr_Format(PyExc_TypeError, "pow() of a Tensor takes no modulus");
  static PyObject* const op = find_callable("pow");
  return call_binary(op, a, b);
}
PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) {
  PyObject* args[2] = {a, b};
  return call_operator(find_callable("pow_"), args, 2);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  constexpr const char* names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  static PyObject* found[6] = {};
  if (!found[op]) found[op] = find_callable(names[op]);
  if ((op != Py_EQ && op != Py_NE) || is_tensor(b)) return call_binary(found[op], a, b);
  return guarded([&]() -> PyObject* {
    const Tensor array = array_elements(b);
    const Object tensor(array.defined() ? need(wrap(array)) : nullptr);
    return call_binary(found[op], a, tensor ? tensor.get() : b);
  });
}

Scalar one_value(PyObject* self, const char* what) {
  const Tensor& t = self_of(self);
  check(t.numel() == 1, what, " of Tensor with ", t.numel() == 0 ? "no values" : "more than one value",
        " is ambiguous");
  return t.item();
}
int truth(PyObject* self) {
  return guarded([&] { return int(one_value(self, "Boolean value").to<bool>()); });
}
PyObject* as_int(PyObject* self) {
  return guarded([&] {
    const Scalar s = self_of(self).item();
    check(!s.is_complex(), "value cannot be converted to type int64_t without overflow");
    return s.is_int() ? PyLong_FromLongLong(s.to_int()) : PyLong_FromDouble(s.to_double());
  });
}
PyObject* as_float(PyObject* self) {
  return guarded([&] {
    const Scalar s = self_of(self).item();
    check(!s.is_complex() || s.to_complex().imag() == 0, "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(s.to_double());
  });
}
PyObject* as_index(PyObject* self) {
  return guarded([&] {
    const Tensor& t = self_of(self);
    check<TypeError>(t.numel() == 1 && is_integral(t.dtype()),
                     "only integer tensors of a single element can be converted to an index");
    return PyLong_FromLongLong(t.item().to_int());
  });
}

Py_ssize_t length(PyObject* self) {
  const Tensor& t = self_of(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return t.sizes()[0];
}

PyObject* iterate(PyObject* self) {
  if (self_of(self).dim() == 0) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
  const Object rows(call_operator(find_callable("unbind"), &self, 1));
  return rows ? PyObject_GetIter(rows.get()) : nullptr;
}

PyObject* describe(PyObject* self) {
  return guarded([&] {
    const std::string out = text(self_of(self));
    return PyUnicode_FromStringAndSize(out.data(), Py_ssize_t(out.size()));
  });
}

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
                         {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(tensor_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                       {Py_tp_repr, reinterpret_cast<void*>(describe)},
                       {Py_tp_hash, reinterpret_cast<void*>(_Py_HashPointer)},
                       {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                       {Py_tp_iter, reinterpret_cast<void*>(iterate)},
                       {Py_tp_getset, properties},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
                       {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
                       {Py_mp_length, reinterpret_cast<void*>(length)},
                       RUSH_BINARY(Py_nb_add, "add"),
                       RUSH_BINARY(Py_nb_subtract, "sub"),
                       RUSH_BINARY(Py_nb_multiply, "mul"),
                       RUSH_BINARY(Py_nb_true_divide, "div"),
                       RUSH_BINARY(Py_nb_floor_divide, "floor_divide"),
                       RUSH_BINARY(Py_nb_remainder, "remainder"),
                       RUSH_BINARY(Py_nb_matrix_multiply, "matmul"),
                       RUSH_BINARY(Py_nb_and, "bitwise_and"),
                       RUSH_BINARY(Py_nb_or, "bitwise_or"),
                       RUSH_BINARY(Py_nb_xor, "bitwise_xor"),
                       RUSH_BINARY(Py_nb_lshift, "bitwise_left_shift"),
                       RUSH_BINARY(Py_nb_rshift, "bitwise_right_shift"),
                       {Py_nb_power, reinterpret_cast<void*>(power)},
                       RUSH_IN_PLACE(Py_nb_inplace_add, "add_"),
                       RUSH_IN_PLACE(Py_nb_inplace_subtract, "sub_"),
                       RUSH_IN_PLACE(Py_nb_inplace_multiply, "mul_"),
                       RUSH_IN_PLACE(Py_nb_inplace_true_divide, "div_"),
                       RUSH_IN_PLACE(Py_nb_inplace_floor_divide, "floor_divide_"),
                       RUSH_IN_PLACE(Py_nb_inplace_remainder, "remainder_"),
                       RUSH_IN_PLACE(Py_nb_inplace_and, "bitwise_and_"),
                       RUSH_IN_PLACE(Py_nb_inplace_or, "bitwise_or_"),
                       RUSH_IN_PLACE(Py_nb_inplace_xor, "bitwise_xor_"),
                       RUSH_IN_PLACE(Py_nb_inplace_lshift, "bitwise_left_shift_"),
                       RUSH_IN_PLACE(Py_nb_inplace_rshift, "bitwise_right_shift_"),
                       {Py_nb_inplace_power, reinterpret_cast<void*>(power_in_place)},
                       RUSH_UNARY(Py_nb_negative, "neg"),
                       RUSH_UNARY(Py_nb_positive, "positive"),
                       RUSH_UNARY(Py_nb_absolute, "abs"),
                       RUSH_UNARY(Py_nb_invert, "bitwise_not"),
                       {Py_nb_bool, reinterpret_cast<void*>(truth)},
                       {Py_nb_int, reinterpret_cast<void*>(as_int)},
                       {Py_nb_float, reinterpret_cast<void*>(as_float)},
                       {Py_nb_index, reinterpret_cast<void*>(as_index)},
                       {Py_tp_doc, const_cast<char*>("A multi-dimensional array of elements of one dtype.")},
                       {}};
PyType_Spec spec{"rushlight.Tensor", sizeof(TensorObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

// ---- __torch_function__ ----

thread_local bool torch_function_enabled = true;
PyObject* torch_function_name = nullptr;
PyObject* disabled_torch_function = nullptr;  // what a class sets to have its results plain tensors

/// The override of an argument's type, or null. A new reference.
Object override_of(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (is_plain(o)) return {};
  const bool tensor = PyType_IsSubtype(type, tensor_type);
  if (!tensor) {  // builtin types never have one: spare the look-up
    if (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o) ||
        is_dtype(o) || is_device(o) || PyType_Check(o))
      return {};
  }
  Object found(PyObject_GetAttr(tensor ? reinterpret_cast<PyObject*>(type) : o, torch_function_name));
  if (!found) {
    PyErr_Clear();
    return {};
  }
  if (found.get() == disabled_torch_function) {
    last_plain = type;
    return {};
  }
  return found;
}

PyObject* disabled(PyObject*, PyObject* args) {
  PyObject *function, *types, *call_args = nullptr, *call_kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO:_disabled_torch_function_impl", &function, &types, &call_args, &call_kwargs))
    return nullptr;
  const Object empty_args(call_args ? nullptr : PyTuple_New(0));
  const bool before = std::exchange(torch_function_enabled, false);
  PyObject* result = PyObject_Call(function, call_args ? call_args : empty_args.get(), call_kwargs);
  torch_function_enabled = before;
  return result;
}

PyObject* set_torch_function_enabled(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(torch_function_enabled, on == Py_True));
}
PyObject* is_torch_function_enabled(PyObject*, PyObject*) { return PyBool_FromLong(torch_function_enabled); }

PyMethodDef functions[] = {{"_disabled_torch_function_impl", disabled, METH_VARARGS,
                            "As a class's __torch_function__: operators on its objects are called as on plain tensors "
                            "and give plain tensors."},
                           {"_set_torch_function_enabled", set_torch_function_enabled, METH_O,
                            "Turns overrides on or off on this thread; returns what was."},
                           {"_is_torch_function_enabled", is_torch_function_enabled, METH_NOARGS, nullptr},
                           {}};

}  // namespace

namespace {
/// The object that shows this impl, a new reference; null if there is none.
PyObject* shown(TensorImpl& impl) {
  auto* object = static_cast<TensorObject*>(impl.python.load(std::memory_order_relaxed));
  if (!object) return nullptr;
  if (impl.owns_python) {  // the count that the impl held on the object becomes the caller's; the object holds the impl
    impl.owns_python = false;
    forget_finalized(reinterpret_cast<PyObject*>(object));
    Ref<TensorImpl>(&impl).leak();
    return reinterpret_cast<PyObject*>(object);
  }
  Py_INCREF(object);
  return reinterpret_cast<PyObject*>(object);
}
}  // namespace

PyObject* wrap(Tensor&& t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (PyObject* object = shown(*t.impl())) return object;
  return attach(tensor_type, std::move(t));
}

PyObject* wrap(const Tensor& t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (PyObject* object = shown(*t.impl())) return object;
  return attach(tensor_type, t);
}

PyObject* wrap_as(PyTypeObject* type, Tensor t) { return attach(type, std::move(t)); }

bool call_override(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* kwnames, size_t plain,
                   PyObject*& result) {
  if (!torch_function_enabled) return false;
  const size_t total = nargs + (kwnames ? size_t(PyTuple_GET_SIZE(kwnames)) : 0);
  std::vector<Object> found;
  const auto look = [&](PyObject* o) {
    if (!override_of(o)) return;
    // Subclasses come before their bases, else arguments in order; each type once.
    for (const Object& f : found)
      if (Py_TYPE(f.get()) == Py_TYPE(o)) return;
    auto at = found.begin();
    while (at != found.end() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(at->get()))) ++at;
    found.insert(at, Object::borrow(o));
  };
  for (size_t i = plain; i < total; ++i) {
    PyObject* o = args[i];
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) look(item_of(o, k).get());
    } else {
      look(o);
    }
  }
  if (found.empty()) return false;
  result = guarded([&]() -> PyObject* {
    Object types(need(PyTuple_New(Py_ssize_t(found.size()))));
    for (size_t i = 0; i < found.size(); ++i) {
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(found[i].get()));
      PyTuple_SET_ITEM(types.get(), Py_ssize_t(i), Object::borrow(type).release());
    }
    Object positional(need(PyTuple_New(Py_ssize_t(nargs)))), keywords(need(PyDict_New()));
    for (size_t i = 0; i < nargs; ++i) {
      Py_INCREF(args[i]);
      PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), args[i]);
    }
    for (size_t i = nargs; i < total; ++i)
      need(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, Py_ssize_t(i - nargs)), args[i]));
    for (const Object& o : found) {
      const Object override = override_of(o.get());
      Object answer(need(PyObject_CallFunctionObjArgs(override.get(), callable, types.get(), positional.get(),
                                                      keywords.get(), nullptr)));
      if (answer.get() != Py_NotImplemented) return answer.release();
    }
    raise<TypeError>("no implementation found for the operator on types that implement __torch_function__: ",
                     Py_TYPE(found[0].get())->tp_name);
  });
  return true;
}

extern PyBufferProcs tensor_buffer;  // convert.cpp

void add_tensor_type(PyObject* module) {
  release_python_object = release_object;
  tensor_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&spec)));
  tensor_type->tp_as_buffer->bf_getbuffer = tensor_buffer.bf_getbuffer;
  tensor_type->tp_as_buffer->bf_releasebuffer = tensor_buffer.bf_releasebuffer;
  torch_function_name = need(PyUnicode_InternFromString("__torch_function__"));
  need(PyModule_AddFunctions(module, functions));
  disabled_torch_function = need(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
  need(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
}

}  // namespace rush::python
