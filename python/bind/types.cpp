// dtype, device, Size, memory_format, layout and number conversions, on CPython's API.
#include <cmath>

#include "python.h"
#include "rushlight/cuda_error.h"

namespace rush::python {

void set_python_error() {
  const auto named = [](const char* name) {  // an exception type that lives in Python
    PyObject* module = PyImport_AddModule("rushlight._C");
    PyObject* type = module ? PyObject_GetAttrString(module, name) : nullptr;
    return type ? type : PyExc_RuntimeError;
  };
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const cuda::AcceleratorError& e) {
    PyErr_SetString(named("AcceleratorError"), e.what());
  } catch (const cuda::DeviceAssertError& e) {
    PyErr_SetString(named("_DeviceAssertError"), e.what());
  } catch (const IndexError& e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const ValueError& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const TypeError& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const NotImplementedError& e) {
    PyErr_SetString(PyExc_NotImplementedError, e.what());
  } catch (const OutOfMemoryError& e) {
    PyErr_SetString(named("OutOfMemoryError"), e.what());
  } catch (const LinAlgError& e) {
    PyErr_SetString(named("_LinAlgError"), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

namespace {

// ---- small immutable values: dtype, memory_format, layout ----

struct Constant {
  PyObject_HEAD;
  int value;
  const char* name;  // "float32"
};

PyTypeObject *dtype_type, *memory_format_type, *layout_type, *device_type, *size_type;
PyObject* dtypes[kDTypes];
PyObject* memory_formats[4];
PyObject* strided;

Constant* as_constant(PyObject* o) { return reinterpret_cast<Constant*>(o); }
PyObject* constant_repr(PyObject* o) { return PyUnicode_FromFormat("torch.%s", as_constant(o)->name); }
PyObject* constant_reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(as_constant(o)->name); }

PyObject* dtype_is_floating(PyObject* o, void*) { return PyBool_FromLong(is_floating(DType(as_constant(o)->value))); }
PyObject* dtype_is_complex(PyObject* o, void*) { return PyBool_FromLong(is_complex(DType(as_constant(o)->value))); }
PyObject* dtype_is_signed(PyObject* o, void*) { return PyBool_FromLong(is_signed(DType(as_constant(o)->value))); }
PyObject* dtype_itemsize(PyObject* o, void*) { return PyLong_FromLongLong(size_of(DType(as_constant(o)->value))); }
PyObject* dtype_to_real(PyObject* o, PyObject*) { return wrap(real_of(DType(as_constant(o)->value))); }
PyObject* dtype_to_complex(PyObject* o, PyObject*) { return wrap(complex_of(DType(as_constant(o)->value))); }
PyObject* constant_module(PyObject*, void*) { return PyUnicode_FromString("rushlight"); }

PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr}, {}};
PyMethodDef dtype_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of a complex dtype's parts."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype with parts of this dtype."},
    {}};
PyGetSetDef constant_getset[] = {{"__module__", constant_module, nullptr, nullptr, nullptr}, {}};
PyGetSetDef dtype_getset[] = {{"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
                              {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
                              {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
                              {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
                              {"__module__", constant_module, nullptr, nullptr, nullptr},
                              {}};

PyTypeObject* constant_type(const char* name, PyMethodDef* methods, PyGetSetDef* getset) {
  PyType_Slot slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(constant_repr)}, {Py_tp_methods, methods}, {Py_tp_getset, getset}, {}};
  PyType_Spec spec{name, sizeof(Constant), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&spec)));
}

PyObject* constant(PyTypeObject* type, int value, const char* name) {
  auto* c = PyObject_New(Constant, type);
  if (!c) throw PythonError();
  c->value = value;
  c->name = name;
  return reinterpret_cast<PyObject*>(c);
}

// ---- device ----

struct DeviceObject {
  PyObject_HEAD;
  Device device;
};
Device& device_in(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->device; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", "index", nullptr};
    PyObject* what = nullptr;
    PyObject* index = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &what, &index))
      return nullptr;
    Device d = device_from(what);
    if (index && index != Py_None) {
      check(d.index < 0, "type (string) must not include an index because index was passed explicitly: ", d);
      const long i = PyLong_AsLong(index);
      if (i == -1 && PyErr_Occurred()) return nullptr;
      check(i >= 0 && i < 128, "Device index must not be negative, got ", i);
      d.index = int8_t(i);
    }
    return wrap(d);
  });
}
PyObject* device_repr(PyObject* o) {
  const Device d = device_in(o);
  const std::string kind = text(Device(d.type));
  return d.index < 0 ? PyUnicode_FromFormat("device(type='%s')", kind.c_str())
                     : PyUnicode_FromFormat("device(type='%s', index=%d)", kind.c_str(), int(d.index));
}
PyObject* device_str(PyObject* o) { return PyUnicode_FromString(text(device_in(o)).c_str()); }
PyObject* device_kind(PyObject* o, void*) { return PyUnicode_FromString(text(Device(device_in(o).type)).c_str()); }
PyObject* device_index(PyObject* o, void*) {
  if (device_in(o).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device_in(o).index);
}
Py_hash_t device_hash(PyObject* o) { return int(device_in(o).type) * 256 + uint8_t(device_in(o).index); }
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_in(a) == device_in(b)) == (op == Py_EQ));
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  return Py_BuildValue("(O(s))", reinterpret_cast<PyObject*>(device_type), text(device_in(o)).c_str());
}
// `with torch.device("meta"):` makes it the default device. What was before is kept on a stack.
std::vector<std::optional<Device>> outer_defaults;
PyObject* device_enter(PyObject* self, PyObject*) {
  outer_defaults.push_back(default_device);
  default_device = device_in(self);
  Py_INCREF(self);
  return self;
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (!outer_defaults.empty()) {
    default_device = outer_defaults.back();
    outer_defaults.pop_back();
  }
  Py_RETURN_NONE;
}
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Makes this the device of new tensors, until the with block ends."},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
    {}};
PyGetSetDef device_getset[] = {{"type", device_kind, nullptr, "\"cpu\", \"cuda\" or \"meta\".", nullptr},
                               {"index", device_index, nullptr, "The ordinal, None for the current device.", nullptr},
                               {}};
PyType_Slot device_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_new)},
    {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
    {Py_tp_str, reinterpret_cast<void*>(device_str)},
    {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
    {Py_tp_getset, device_getset},
    {Py_tp_methods, device_methods},
    {Py_tp_doc, const_cast<char*>("device(name), device(type, index): where a tensor's memory lies.")},
    {}};
PyType_Spec device_spec{"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};

// ---- Size ----

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Object tuple(PyTuple_Type.tp_new(type, args, kwargs));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (PyLong_Check(item)) continue;
    if (!PyIndex_Check(item)) {
      return PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                          Py_TYPE(item)->tp_name);
    }
    PyObject* whole = PyNumber_Index(item);
    if (!whole) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i, whole);
    Py_DECREF(item);
  }
  return tuple.release();
}
PyObject* size_repr(PyObject* o) {
  std::string out = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    out += text(i ? ", " : "", PyLong_AsLongLong(PyTuple_GET_ITEM(o, i)));
  return PyUnicode_FromString((out + "])").c_str());
}
PyObject* size_numel(PyObject* o, PyObject*) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) n *= PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
  return PyLong_FromLongLong(n);
}
PyObject* size_reduce(PyObject* o, PyObject*) {
  Object tuple(PySequence_Tuple(o));
  return Py_BuildValue("(O(O))", reinterpret_cast<PyObject*>(size_type), tuple.get());
}
/// A tuple result of the tuple's own operations as a Size.
template <class F>
PyObject* as_size(F&& f) {
  Object tuple(f());
  if (!tuple || !PyTuple_CheckExact(tuple.get())) return tuple.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple.get());
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  return as_size([&] { return PyTuple_Type.tp_as_sequence->sq_concat(a, b); });
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return as_size([&] { return PyTuple_Type.tp_as_sequence->sq_repeat(a, n); });
}
PyObject* size_subscript(PyObject* a, PyObject* key) {
  return as_size([&] { return PyTuple_Type.tp_as_mapping->mp_subscript(a, key); });
}
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {}};
PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                            {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                            {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                            {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                            {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                            {Py_tp_methods, size_methods},
                            {Py_tp_doc, const_cast<char*>("A tensor's sizes: a tuple of ints.")},
                            {}};
PyType_Spec size_spec{"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

}  // namespace

PyObject* wrap(DType t) {
  PyObject* o = dtypes[int(t)];
  Py_INCREF(o);
  return o;
}
PyObject* wrap(Device d) {
  auto* o = PyObject_New(DeviceObject, device_type);
  if (!o) throw PythonError();
  o->device = d;
  return reinterpret_cast<PyObject*>(o);
}
PyObject* wrap(MemoryFormat f) {
  PyObject* o = memory_formats[int(f)];
  Py_INCREF(o);
  return o;
}
PyObject* strided_layout() {
  Py_INCREF(strided);
  return strided;
}
PyObject* wrap_size(Ints sizes) {
  PyObject* tuple = need(size_type->tp_alloc(size_type, Py_ssize_t(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(tuple, Py_ssize_t(i), PyLong_FromLongLong(sizes[i]));
  return tuple;
}
PyObject* wrap(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(s.to<bool>());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(s.to_int());
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(s.to_double());
    default:
      return PyComplex_FromDoubles(s.to_complex().real(), s.to_complex().imag());
  }
}

bool is_dtype(PyObject* o) {
  return Py_TYPE(o) == dtype_type || o == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         o == reinterpret_cast<PyObject*>(&PyLong_Type) || o == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         o == reinterpret_cast<PyObject*>(&PyComplex_Type);
}
DType dtype_from(PyObject* o) {
  if (Py_TYPE(o) == dtype_type) return DType(as_constant(o)->value);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return kFloat64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return kInt64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return kBool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return kComplex128;
  raise<TypeError>("expected a dtype, got ", Py_TYPE(o)->tp_name);
}
bool is_device(PyObject* o) { return Py_TYPE(o) == device_type; }
Device device_from(PyObject* o) {
  if (is_device(o)) return device_in(o);
  if (PyUnicode_Check(o)) return Device(text_of(o));
  if (PyLong_Check(o) && !PyBool_Check(o)) {
    const long i = PyLong_AsLong(o);
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    check(i >= 0 && i < 128, "Device index must not be negative, got ", i);
    return Device(DeviceType::CUDA, int(i));
  }
  raise<TypeError>("expected a device, str or int, got ", Py_TYPE(o)->tp_name);
}
bool is_memory_format(PyObject* o) { return Py_TYPE(o) == memory_format_type; }
MemoryFormat memory_format_from(PyObject* o) { return MemoryFormat(as_constant(o)->value); }
bool is_layout(PyObject* o) { return Py_TYPE(o) == layout_type; }
bool is_strided(PyObject* layout) { return layout == strided; }

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  // NumPy's scalars, without importing NumPy: their types are named numpy.<something> and have __float__ or __index__.
  if (std::string_view(Py_TYPE(o)->tp_name).starts_with("numpy.") &&
      Py_TYPE(o)->tp_name != std::string_view("numpy.ndarray"))
    return Py_TYPE(o)->tp_as_number && (Py_TYPE(o)->tp_as_number->nb_float || Py_TYPE(o)->tp_as_number->nb_index);
  return false;
}

Scalar number_from(PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    check(!overflow, "value cannot be converted to type int64_t without overflow");
    return int64_t(v);
  }
  if (PyComplex_Check(o)) return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  const std::string_view name = Py_TYPE(o)->tp_name;
  if (name.starts_with("numpy.bool")) return PyObject_IsTrue(o) == 1;
  if (name.starts_with("numpy.complex")) {
    const Py_complex c = PyComplex_AsCComplex(o);
    return std::complex<double>(c.real, c.imag);
  }
  if (PyIndex_Check(o)) {
    const Object whole(need(PyNumber_Index(o)));
    return number_from(whole.get());
  }
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

void add_types(PyObject* module) {
  const auto add = [&](const char* name, PyObject* o) { need(PyModule_AddObjectRef(module, name, o)); };
  dtype_type = constant_type("rushlight.dtype", dtype_methods, dtype_getset);
  memory_format_type = constant_type("rushlight.memory_format", constant_methods, constant_getset);
  layout_type = constant_type("rushlight.layout", constant_methods, constant_getset);
  add("dtype", reinterpret_cast<PyObject*>(dtype_type));
  add("memory_format", reinterpret_cast<PyObject*>(memory_format_type));
  add("layout", reinterpret_cast<PyObject*>(layout_type));
  for (int i = 0; i < kDTypes; ++i) {
    dtypes[i] = constant(dtype_type, i, name_of(DType(i)).data());
    add(name_of(DType(i)).data(), dtypes[i]);
  }
  const std::pair<const char*, DType> other_names[] = {
      {"float", kFloat32}, {"double", kFloat64}, {"half", kFloat16},     {"int", kInt32},
      {"long", kInt64},    {"short", kInt16},    {"cfloat", kComplex64}, {"cdouble", kComplex128}};
  Object aliases(need(PyDict_New()));
  for (const auto& [name, t] : other_names) need(PyDict_SetItemString(aliases.get(), name, dtypes[int(t)]));
  add("_dtype_aliases", aliases.get());
  constexpr const char* formats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  for (int i = 0; i < 4; ++i) {
    memory_formats[i] = constant(memory_format_type, i, formats[i]);
    add(formats[i], memory_formats[i]);
  }
  strided = constant(layout_type, 0, "strided");
  add("strided", strided);
  constexpr const char* sparse[] = {"sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"};
  for (int i = 0; i < 5; ++i) add(sparse[i], constant(layout_type, i + 1, sparse[i]));
  device_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&device_spec)));
  add("device", reinterpret_cast<PyObject*>(device_type));
  size_spec.basicsize = int(PyTuple_Type.tp_basicsize);
  size_spec.itemsize = int(PyTuple_Type.tp_itemsize);
  const Object bases(need(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type))));
  size_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpecWithBases(&size_spec, bases.get())));
  add("Size", reinterpret_cast<PyObject*>(size_type));
}

}  // namespace rush::python
