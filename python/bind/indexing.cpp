// x[key] and x[key] = value: Python's subscripts as those of rushlight/indexing.h.
#include "rushlight/indexing.h"

#include "python.h"

namespace rush::python {

namespace {

using indexing::Index;
using Indices = std::vector<Index>;

PyObject* make_tensor(PyObject* data) {
  const Object module(need(PyImport_ImportModule("rushlight._C")));
  return need(PyObject_CallMethod(module.get(), "tensor", "O", data));
}

OptInt bound(PyObject* o) {
  if (o == Py_None) return {};
  const Object whole(need(PyNumber_Index(o)));
  int overflow;
  const long long v = PyLong_AsLongLongAndOverflow(whole.get(), &overflow);
  return overflow ? (overflow > 0 ? INT64_MAX : INT64_MIN + 1) : v;
}

void append(Indices& out, PyObject* o) {
  if (PyLong_CheckExact(o)) {
    const long long i = PyLong_AsLongLong(o);
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    out.emplace_back(int64_t(i));
  } else if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    out.emplace_back(indexing::Slice(bound(s->start), bound(s->stop), bound(s->step)));
  } else if (o == Py_None) {
    out.emplace_back(indexing::None);
  } else if (o == Py_Ellipsis) {
    out.emplace_back(indexing::Ellipsis);
  } else if (PyBool_Check(o)) {
    out.emplace_back(o == Py_True);
  } else if (is_tensor(o)) {
    out.emplace_back(unwrap(o));
  } else if (PyIndex_Check(o) && !PySequence_Check(o)) {  // NumPy's integers
    const Object whole(need(PyNumber_Index(o)));
    const long long i = PyLong_AsLongLong(whole.get());
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    out.emplace_back(int64_t(i));
  } else if (PyList_Check(o) || PyTuple_Check(o) || PyObject_CheckBuffer(o)) {
    const Object made(make_tensor(o));
    const Tensor& t = unwrap(made.get());
    out.emplace_back(t.numel() == 0 && t.dim() == 1 ? cast(t, kInt64) : t);
  } else {
    raise<IndexError>(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
        Py_TYPE(o)->tp_name, ")");
  }
}

Indices indices_from(PyObject* key) {
  Indices out;
  if (PyTuple_Check(key)) {
    out.reserve(size_t(PyTuple_GET_SIZE(key)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) append(out, PyTuple_GET_ITEM(key, i));
  } else {
    append(out, key);
  }
  return out;
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(self) != tensor_type || is_tensor(key)) {
      PyObject* args[2] = {self, key};
      PyObject* result;
      static PyObject* const callable =
          need(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__getitem__"));
      if (torch_function(callable, args, 2, nullptr, result)) return result;
    }
    const Tensor& x = unwrap(self);
    if (PyLong_CheckExact(key)) {  // x[i], the commonest
      const long long i = PyLong_AsLongLong(key);
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      const Index one(static_cast<int64_t>(i));
      return wrap(indexing::get(x, std::span(&one, 1)));
    }
    if (PySlice_Check(key)) {
      auto* s = reinterpret_cast<PySliceObject*>(key);
      const Index one(indexing::Slice(bound(s->start), bound(s->stop), bound(s->step)));
      return wrap(indexing::get(x, std::span(&one, 1)));
    }
    const Indices indices = indices_from(key);
    return wrap(indexing::get(x, indices));
  });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guarded([&] {
    check<TypeError>(value, "Tensor does not support deleting items");
    if (Py_TYPE(self) != tensor_type || is_tensor(key) || is_tensor(value)) {
      PyObject* args[3] = {self, key, value};
      PyObject* result;
      static PyObject* const callable =
          need(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__setitem__"));
      if (torch_function(callable, args, 3, nullptr, result)) {
        Py_XDECREF(result);
        return result ? 0 : -1;
      }
    }
    const Indices indices = indices_from(key);
    Tensor source;
    if (is_tensor(value))
      source = unwrap(value);
    else if (is_number(value))
      source = Tensor(number_from(value));
    else {
      check<TypeError>(PySequence_Check(value) || PyObject_CheckBuffer(value), "can't assign a ",
                       Py_TYPE(value)->tp_name, " to a ", unwrap(self).dtype(), " tensor");
      const Object made(make_tensor(value));
      source = unwrap(made.get());
    }
    indexing::set(unwrap(self), indices, source);
    return 0;
  });
}

}  // namespace rush::python
