// The Python type _C.ModuleBase, which nn.Module derives from: see module_base.cpp.
#pragma once
#include <Python.h>

namespace rush::python {

// A new reference to the type, or null with a Python exception set. Called once, when the extension is loaded.
PyObject* make_module_base();

}  // namespace rush::python
