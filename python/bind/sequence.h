// Reading lists while Python code may run.
#pragma once
#include "python.h"

namespace rush::python {

/// Item i of a list or tuple, owned: what is done with an item may run code that changes the list.
inline Object item_of(PyObject* sequence, Py_ssize_t i) {
  if (i >= PySequence_Fast_GET_SIZE(sequence)) raise("the list changed its length while it was read");
  return Object::borrow(PySequence_Fast_GET_ITEM(sequence, i));
}

}  // namespace rush::python
