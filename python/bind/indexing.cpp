// x[key] and x[key] = value: Python's subscripts as those of rushlight/indexing.h.
#include "rushlight/indexing.h"

#include "python.h"

namespace rush::python {

namespace {

using indexing::Index;
using Indices = std::vector<Index>;

PyObject* make_tensor(PyObject* data) {
  const Object module(need(PyImport_ImportModule("rushlight._C")));
  return need(PyObject_CallMethod(module.get(), "tensor", "(O)", data));
}

int64_t to_integer(PyObject* exact_int) {
  int64_t small;
  if (small_int(exact_int, small)) return small;
  int overflow;
  const long long v = PyLong_AsLongLongAndOverflow(exact_int, &overflow);
  check<ValueError>(!overflow, "Overflow when unpacking long long");
  return v;
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
    out.emplace_back(to_integer(o));
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
    out.emplace_back(to_integer(whole.get()));
  } else if (PySequence_Check(o)) {
    const bool plain = PyList_Check(o) || PyTuple_Check(o) || PyObject_CheckBuffer(o) || PyUnicode_Check(o);
    const Object list(plain ? nullptr : need(PySequence_List(o)));  // a range
    const Object made(make_tensor(plain ? o : list.get()));
    const Tensor& t = unwrap(made.get());
    const bool whole = PyObject_CheckBuffer(o) || is_integral(t.dtype()) || t.dtype() == kBool;
    out.emplace_back(whole && t.numel() > 0 ? t : cast(t, kInt64));
  } else {
    raise<IndexError>(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
        Py_TYPE(o)->tp_name, ")");
  }
}

/// Whether a sequence that is no tuple is to be read as one: if it is short and holds more than numbers, as in NumPy
/// before 1.23.
bool stands_for_tuple(PyObject* key) {
  constexpr Py_ssize_t kShort = 32;
  if (is_tensor(key) || !PySequence_Check(key) || PyObject_CheckBuffer(key)) return false;
  const Py_ssize_t n = PySequence_Size(key);
  for (Py_ssize_t i = 0; i < n && n < kShort; ++i) {
    const Object item(PySequence_GetItem(key, i));
    if (!item) break;
    PyObject* const o = item.get();
    if (is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None) return true;
  }
  PyErr_Clear();
  return false;
}

Indices indices_from(PyObject* key) {
  Indices out;
  const Object tuple(!PyTuple_Check(key) && stands_for_tuple(key) ? need(PySequence_Tuple(key)) : nullptr);
  if (tuple) key = tuple.get();
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
      const Index one(to_integer(key));
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
    check<TypeError>(is_tensor(value) || is_number(value), "can't assign a ", Py_TYPE(value)->tp_name,
                     " to a tensor of ", unwrap(self).dtype(), ": make a tensor of it");
    indexing::set(unwrap(self), indices, is_tensor(value) ? unwrap(value) : Tensor(number_from(value)));
    return 0;
  });
}

}  // namespace rush::python
