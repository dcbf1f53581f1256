// The base class of nn.Module, on CPython's API: calling a module, and reading and setting its attributes. These three
// happen several times per layer and call, so they are here and not in Python; everything else a module does is in
// python/rushlight/nn/modules/module.py. Semantics are those of a Python class with the same three methods.
#include <Python.h>
#include <structmember.h>

#include <array>
#include <cstddef>

#include "module_base.h"

namespace rush::python {
namespace {

// The object has its dictionary in a field of its own, so that finding it costs a load. The vectorcall pointer (used by
// classes derived in Python from version 3.12 on) makes CPython take the type for a layout of its own, so that a class
// that also has other bases still begins with these fields.
struct Module {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
};

Module* as_module(PyObject* object) { return reinterpret_cast<Module*>(object); }

// Interned names.
struct Names {
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* modules = PyUnicode_InternFromString("_modules");
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* call_impl = PyUnicode_InternFromString("_call_impl");
  PyObject* register_attribute = PyUnicode_InternFromString("_register_attribute");
  PyObject* get_attr = PyUnicode_InternFromString("__getattr__");
  PyObject* get_attribute = PyUnicode_InternFromString("__getattribute__");
  // Dicts of hooks: where one is not empty, a call goes through _call_impl.
  std::array<PyObject*, 4> hooks = {
      PyUnicode_InternFromString("_forward_hooks"),
      PyUnicode_InternFromString("_forward_pre_hooks"),
      PyUnicode_InternFromString("_backward_hooks"),
      PyUnicode_InternFromString("_backward_pre_hooks"),
  };
};

Names* names = nullptr;
PyTypeObject* module_type = nullptr;
PyObject* registered_types = nullptr;  // tuple: Python decides what becomes of values of these types
PyObject* global_hooks = nullptr;      // tuple of dicts: hooks of all modules

// Borrowed; null without an exception where there is none.
PyObject* lookup(PyObject* dict, PyObject* key) { return dict ? PyDict_GetItemWithError(dict, key) : nullptr; }

bool is_filled_dict(PyObject* value) { return value && PyDict_Check(value) && PyDict_GET_SIZE(value) > 0; }

bool has_hooks(Module* self) {
  for (PyObject* name : names->hooks) {
    if (is_filled_dict(lookup(self->dict, name))) return true;
  }
  if (global_hooks)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(global_hooks); ++i)
      if (is_filled_dict(PyTuple_GET_ITEM(global_hooks, i))) return true;
  return false;
}

// A new reference to what a call of the module calls.
PyObject* callee(PyObject* self) {
  return PyObject_GetAttr(self, has_hooks(as_module(self)) ? names->call_impl : names->forward);
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* function = callee(self);
  PyObject* result = function ? PyObject_Call(function, args, kwargs) : nullptr;
  Py_XDECREF(function);
  return result;
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, std::size_t count, PyObject* keywords) {
  PyObject* function = callee(self);
  PyObject* result = function ? PyObject_Vectorcall(function, args, count, keywords) : nullptr;
  Py_XDECREF(function);
  return result;
}

// The attribute from the three registries; new reference, null without an exception where it is in none.
PyObject* registered(Module* self, PyObject* name) {
  for (PyObject* registry : {names->parameters, names->modules, names->buffers}) {
    PyObject* dict = lookup(self->dict, registry);
    if (!dict || !PyDict_Check(dict)) continue;
    if (PyObject* value = PyDict_GetItemWithError(dict, name)) return Py_NewRef(value);
    if (PyErr_Occurred()) return nullptr;
  }
  return nullptr;
}

PyObject* raise_no_attribute(PyObject* self, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
  return nullptr;
}

// A class attribute that shadows a registered name comes first, as for any Python object. The registries are asked
// before the generic lookup only where neither the class nor the instance has the name, so nobody sees the order.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (!_PyType_Lookup(Py_TYPE(self), name)) {
    if (PyObject* value = lookup(as_module(self)->dict, name)) return Py_NewRef(value);
    if (PyObject* value = registered(as_module(self), name)) return value;
    return PyErr_Occurred() ? nullptr : raise_no_attribute(self, name);
  }
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  // A property of the class that raised AttributeError: a registered attribute of that name is used instead, and
  // otherwise the property's own error stands, which says more than ours.
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  value = registered(as_module(self), name);
  if (value) {
    Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(traceback);
  } else if (!PyErr_Occurred()) {
    PyErr_Restore(type, error, traceback);
  }
  return value;
}

// __getattr__: for classes that define their own and ask super() first.
PyObject* get_attr(PyObject* self, PyObject* name) {
  if (PyObject* value = registered(as_module(self), name)) return value;
  return PyErr_Occurred() ? nullptr : raise_no_attribute(self, name);
}

bool in_registry(Module* self, PyObject* name) {
  for (PyObject* registry : {names->parameters, names->modules, names->buffers}) {
    PyObject* dict = lookup(self->dict, registry);
    if (dict && PyDict_Check(dict) && PyDict_Contains(dict, name) == 1) return true;
  }
  return false;
}

bool may_be_registered(PyObject* value) {
  if (registered_types)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(registered_types); ++i)
      if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(registered_types, i))))
        return true;
  return false;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  if (!value) {  // del: a registered name leaves its registry
    for (PyObject* registry : {names->parameters, names->buffers, names->modules}) {
      PyObject* dict = lookup(as_module(self)->dict, registry);
      if (dict && PyDict_Check(dict) && PyDict_Contains(dict, name) == 1) {
        if (registry == names->buffers) {
          PyObject* set = PyObject_GetAttrString(self, "_non_persistent_buffers_set");
          if (!set) return -1;
          const int discarded = PySet_Discard(set, name);
          Py_DECREF(set);
          if (discarded < 0) return -1;
        }
        return PyDict_DelItem(dict, name);
      }
    }
    return PyObject_GenericSetAttr(self, name, nullptr);
  }
  if (!may_be_registered(value) && !in_registry(as_module(self), name))
    return PyObject_GenericSetAttr(self, name, value);
  PyObject* done = PyObject_CallMethodObjArgs(self, names->register_attribute, name, value, nullptr);
  if (!done) return -1;
  const bool ordinary = done == Py_False;
  Py_DECREF(done);
  return ordinary ? PyObject_GenericSetAttr(self, name, value) : 0;
}

// A Python class derived from one with a __getattr__ gets CPython's slot that calls __getattribute__ and __getattr__ by
// name. Where both are still ours, the class gets our function back, which is three times as fast.
PyObject* init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* next = PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), module_type, cls, nullptr);
  PyObject* hook = next ? PyObject_GetAttrString(next, "__init_subclass__") : nullptr;
  PyObject* done = hook ? PyObject_Call(hook, args, kwargs) : nullptr;
  Py_XDECREF(next), Py_XDECREF(hook), Py_XDECREF(done);
  if (!done) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  for (PyObject* name : {names->get_attr, names->get_attribute})
    if (_PyType_Lookup(type, name) != _PyType_Lookup(module_type, name)) Py_RETURN_NONE;
  type->tp_getattro = get_attribute;
  Py_RETURN_NONE;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_module(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_module(self)->dict);
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_module(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_module(self)->vectorcall = vectorcall;
  as_module(self)->dict = PyDict_New();
  if (as_module(self)->dict) return self;
  Py_DECREF(self);
  return nullptr;
}

int accept_arguments(PyObject*, PyObject*, PyObject*) { return 0; }

// Whether the module is of exactly this class and a call of it is nothing but the class's forward.
PyObject* runs_plainly(PyObject* cls, PyObject* module) {
  const bool same = Py_TYPE(module) == reinterpret_cast<PyTypeObject*>(cls);
  return PyBool_FromLong(same && !has_hooks(as_module(module)) && !lookup(as_module(module)->dict, names->forward));
}

// _configure(types, dicts): which values are registered on assignment, and the dicts of hooks that all modules share.
PyObject* configure(PyObject*, PyObject* args) {
  PyObject *types, *dicts;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &types, &PyTuple_Type, &dicts)) return nullptr;
  Py_XSETREF(registered_types, Py_NewRef(types));
  Py_XSETREF(global_hooks, Py_NewRef(dicts));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"__getattr__", get_attr, METH_O, "A parameter, buffer or submodule by its name; AttributeError if there is none."},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_runs_plainly", runs_plainly, METH_CLASS | METH_O, nullptr},
    {"_configure", configure, METH_STATIC | METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Module, dict), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Module, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Module, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyObject* make_module_base() {
  names = new Names;
  PyType_Slot slots[] = {
      {Py_tp_call, slot(call)},
      {Py_tp_getattro, slot(get_attribute)},
      {Py_tp_setattro, slot(set_attribute)},
      {Py_tp_traverse, slot(traverse)},
      {Py_tp_clear, slot(clear)},
      {Py_tp_dealloc, slot(dealloc)},
      {Py_tp_new, slot(create)},
      {Py_tp_init, slot(accept_arguments)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight._C.ModuleBase", sizeof(Module), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                      slots};
  PyObject* type = PyType_FromSpec(&spec);
  module_type = reinterpret_cast<PyTypeObject*>(type);
  return type;
}

}  // namespace rush::python
