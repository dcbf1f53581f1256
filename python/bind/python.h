// What the binding's files share: owned references, Python's exceptions as C++ control flow, and the types of this
// module. A function that returns a null PyObject* has set a Python exception, as everywhere in CPython.
#pragma once
#include <Python.h>
#include <structmember.h>

#include <memory>
#include <string_view>
#include <utility>

#include "rushlight/ops.h"

namespace rush::python {

/// An owned reference.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : p_(owned) {}
  static Object borrow(PyObject* p) {
    Py_XINCREF(p);
    return Object(p);
  }
  Object(const Object& o) : p_(o.p_) { Py_XINCREF(p_); }
  Object(Object&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Object& operator=(Object o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Object() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

/// Thrown in C++ when a Python exception is set.
struct PythonError {};
/// `p`, or PythonError if it is null.
inline PyObject* need(PyObject* p) {
  if (!p) throw PythonError();
  return p;
}
inline int need(int status) {
  if (status < 0) throw PythonError();
  return status;
}

/// Sets the Python exception that stands for the C++ exception being handled. Call it in a catch (...) block.
void set_python_error();

/// Runs f and turns its exceptions into Python's; the body of everything that Python calls.
template <class F>
auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    if constexpr (std::is_same_v<decltype(f()), int>)
      return -1;
    else
      return nullptr;
  }
}

/// The UTF-8 text of a str, which lives as long as it does.
inline std::string_view text_of(PyObject* str) {
  Py_ssize_t size;
  const char* s = PyUnicode_AsUTF8AndSize(str, &size);
  if (!s) throw PythonError();
  return {s, size_t(size)};
}

/// Whether an int is small, as most are; then `value` is it, without a call.
inline bool small_int(PyObject* exact_int, int64_t& value) {
  const auto* o = reinterpret_cast<PyLongObject*>(exact_int);
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(o)) return false;
  value = PyUnstable_Long_CompactValue(o);
#else
  const Py_ssize_t digits = Py_SIZE(o);  // its sign is the number's
  if (digits < -1 || digits > 1) return false;
  value = digits * int64_t(o->ob_digit[0]);
#endif
  return true;
}

struct ReleaseGil {
  PyThreadState* state = PyEval_SaveThread();
  ~ReleaseGil() { PyEval_RestoreThread(state); }
};
struct AcquireGil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~AcquireGil() { PyGILState_Release(state); }
};

/// A Python object held from C++ threads: dropped with the GIL.
inline std::shared_ptr<PyObject> hold(PyObject* p) {
  Py_INCREF(p);
  return {p, [](PyObject* o) {
            if (!Py_IsInitialized()) return;
            const AcquireGil gil;
            Py_DECREF(o);
          }};
}

// ---- tensors (tensor_type.cpp) ----

extern PyTypeObject* tensor_type;

/// See Note [One object for a tensor] in tensor_type.cpp.
struct TensorObject {
  PyObject_HEAD;
  Tensor tensor;  // a count that is not held if the impl owns this object
  PyObject* dict;
  PyObject* weak_references;
};

/// Whether `o` is a Tensor or of a subclass.
inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
/// The tensor inside; `o` must be one.
inline const Tensor& unwrap(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }
/// The tensor's one Python object, made if it has none; None for an undefined tensor. A new reference.
PyObject* wrap(const Tensor& t);
PyObject* wrap(Tensor&& t);
/// A new object of `type`, a subclass of Tensor, around a tensor that has none yet.
PyObject* wrap_as(PyTypeObject* type, Tensor t);

/// A NumPy array's elements over its own memory, to be read only; undefined for anything else (convert.cpp).
Tensor array_elements(PyObject* o);
/// x[key], and x[key] = value or del (indexing.cpp).
PyObject* get_item(PyObject* self, PyObject* key);
int set_item(PyObject* self, PyObject* key, PyObject* value);
/// The Python object that shows a node, None for none (autograd.cpp).
PyObject* wrap_node(const Ref<Node>& node);

// ---- other types (types.cpp) ----

PyObject* wrap(DType t);
PyObject* wrap(Device d);
PyObject* wrap_size(Ints sizes);
PyObject* wrap(const Scalar& s);
PyObject* wrap(MemoryFormat f);
PyObject* strided_layout();
bool is_dtype(PyObject* o);
DType dtype_from(PyObject* o);  // also Python's bool, int, float, complex
bool is_device(PyObject* o);
Device device_from(PyObject* o);  // device, str or int
bool is_generator(PyObject* o);
Generator* generator_from(PyObject* o);
PyObject* wrap_generator(Generator& generator);  // not owned by the object
bool is_memory_format(PyObject* o);
MemoryFormat memory_format_from(PyObject* o);
bool is_layout(PyObject* o);
bool is_strided(PyObject* layout);
/// A bool, int, float, complex or NumPy scalar.
bool is_number(PyObject* o);
Scalar number_from(PyObject* o);

/// Where new tensors are put that no other tensor and no argument places; set by set_default_device (tools.cpp).
extern std::optional<Device> default_device;

// ---- operators (operators.cpp) ----

/// The callable of this name ("add", "add_"); null without an exception if there is none.
PyObject* find_callable(std::string_view name);
/// Calls it as Python does: positional arguments, then keywords. NotImplementedError if it is null.
PyObject* call_operator(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* kwnames = nullptr);
/// Python's `a OP b`; NotImplemented where the operator can't take the other.
PyObject* call_binary(PyObject* callable, PyObject* a, PyObject* b);

extern PyTypeObject* last_plain;  // a subclass of Tensor last seen to have no overrides (Parameter)
/// What most arguments are: a tensor without overrides, a number, None.
inline bool is_plain(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  return type == tensor_type || type == last_plain || type == &PyLong_Type || type == &PyFloat_Type ||
         type == &PyBool_Type || o == Py_None;
}
/// As torch_function, of arguments whose first `plain` are.
bool call_override(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* kwnames, size_t plain,
                   PyObject*& result);
/// Whether any of the arguments overrides operators with __torch_function__; then `result` is what that gave.
inline bool torch_function(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* kwnames,
                           PyObject*& result) {
  const size_t total = nargs + (kwnames ? size_t(PyTuple_GET_SIZE(kwnames)) : 0);
  for (size_t i = 0; i < total; ++i)
    if (!is_plain(args[i])) return call_override(callable, args, nargs, kwnames, i, result);
  return false;
}

// ---- what each file adds to the module ----

void add_types(PyObject* module);
void add_tensor_type(PyObject* module);
void add_operators(PyObject* module);
void add_autograd(PyObject* module);
void add_conversions(PyObject* module);
void add_random(PyObject* module);
void add_optim(PyObject* module);
void add_serialize(PyObject* module);
void add_tools(PyObject* module);
void add_cuda(PyObject* module);
void add_autocast(PyObject* module);
void add_profiler(PyObject* module);

}  // namespace rush::python
