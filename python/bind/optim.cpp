// The optimizers' multi-tensor steps: what groups and states hold, straight to C++.
#include "python.h"
#include "rushlight/autograd.h"
#include "rushlight/optim/steps.h"

namespace rush::python {

namespace {

std::vector<Tensor> list_from(PyObject* o, const char* name) {
  std::vector<Tensor> out;
  if (o == Py_None) return out;
  check<TypeError>(PyList_Check(o) || PyTuple_Check(o), name, " must be a list of Tensors, not ", Py_TYPE(o)->tp_name);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  out.reserve(size_t(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    check<TypeError>(is_tensor(item), "element ", i, " of ", name, " must be a Tensor, not ", Py_TYPE(item)->tp_name);
    out.push_back(unwrap(item));
  }
  return out;
}

/// An option's value from a group; a tensor of one element counts as its number.
double number_in(PyObject* value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  if (is_tensor(value)) return unwrap(value).item<double>();
  const double x = PyFloat_AsDouble(value);
  if (x == -1 && PyErr_Occurred()) throw PythonError();
  return x;
}

/// Reads an option's value into its field.
struct Read {
  PyObject* value;
  void operator()(double& option) const { option = number_in(value); }
  void operator()(bool& option) const { option = need(PyObject_IsTrue(value)); }
  void operator()(int64_t& option) const {
    option = PyLong_AsLongLong(value);
    if (option == -1 && PyErr_Occurred()) throw PythonError();
  }
  void operator()(OptDouble& option) const {
    if (value != Py_None) option = number_in(value);
  }
  void operator()(std::string& option) const {  // None stands for the default
    if (value == Py_None) return;
    check<TypeError>(PyUnicode_Check(value), "expected a name or None, not ", Py_TYPE(value)->tp_name);
    const char* text = PyUnicode_AsUTF8(value);
    if (!text) throw PythonError();
    option = text;
  }
  template <class A, class B>
  void operator()(std::pair<A, B>& option) const {
    const Object items = tuple_of(2);
    Read{PyTuple_GET_ITEM(items.get(), 0)}(option.first);
    Read{PyTuple_GET_ITEM(items.get(), 1)}(option.second);
  }
  template <size_t n>
  void operator()(std::array<double, n>& option) const {
    const Object items = tuple_of(n);
    for (size_t i = 0; i < n; ++i) option[i] = number_in(PyTuple_GET_ITEM(items.get(), Py_ssize_t(i)));
  }

 private:
  Object tuple_of(size_t n) const {
    Object items(need(PySequence_Tuple(value)));
    check<ValueError>(size_t(PyTuple_GET_SIZE(items.get())) == n, "expected a tuple of exactly ", n, " values, got ",
                      PyTuple_GET_SIZE(items.get()));
    return items;
  }
};

/// A borrowed reference, or null if the key is not there.
PyObject* look_up(PyObject* dict, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (!value && PyErr_Occurred()) throw PythonError();
  return value;
}

/// The names of an optimizer's options and state as Python's strings, made once.
template <class O>
struct Keys {
  std::vector<PyObject*> options;
  std::array<PyObject*, O::counters.size() + O::states.size()> state;
  Keys() {
    O o;
    O::each(o, [&](const char* name, auto&) { options.push_back(need(PyUnicode_InternFromString(name))); });
    for (size_t i = 0; i < state.size(); ++i)
      state[i] =
          need(PyUnicode_InternFromString(i < O::counters.size() ? O::counters[i] : O::states[i - O::counters.size()]));
  }
};

/// A step of one group. False where the native step does not apply, nothing having moved.
template <class O>
bool step_group(PyObject* group, PyObject* states, PyObject* start) {
  static const Keys<O> keys;
  O options;
  size_t at = 0;
  bool complete = true;
  O::each(options, [&](const char*, auto& option) {
    PyObject* value = look_up(group, keys.options[at++]);
    complete = complete && value;
    if (complete) Read{value}(option);
  });
  static PyObject* const params_key = need(PyUnicode_InternFromString("params"));
  PyObject* params = look_up(group, params_key);
  if (!complete || !params || !(PyList_Check(params) || PyTuple_Check(params))) return false;

  constexpr size_t kCounters = O::counters.size();
  std::vector<PyObject*> names(keys.state.begin(), keys.state.begin() + kCounters);
  for (size_t i = 0; i < O::states.size(); ++i)
    if (options.has_state(i)) names.push_back(keys.state[kCounters + i]);
  optim::StepLists lists;
  lists.counters.resize(kCounters);
  lists.states.resize(names.size() - kCounters);
  const auto list_of = [&](size_t name) -> std::vector<Tensor>& {
    return name < kCounters ? lists.counters[name] : lists.states[name - kCounters];
  };
  struct Missing {
    Object state;
    size_t name, row;
  };
  std::vector<Missing> missing;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(params); ++i) {
    PyObject* p = PySequence_Fast_GET_ITEM(params, i);
    if (!is_tensor(p)) return false;
    Tensor grad = unwrap(p).grad();
    if (!grad.defined()) continue;
    if (!names.empty()) {
      Object state = Object::borrow(look_up(states, p));
      if (!state || !PyDict_Check(state.get()) || PyDict_GET_SIZE(state.get()) == 0)
        state = Object(need(PyObject_CallFunctionObjArgs(start, group, p, nullptr)));
      if (!PyDict_Check(state.get())) return false;
      for (size_t name = 0; name < names.size(); ++name) {
        std::vector<Tensor>& list = list_of(name);
        if constexpr (requires { &O::state_sizes; })
          if (name >= kCounters && !O::state_sizes(name - kCounters, grad.sizes())) {
            list.emplace_back();
            continue;
          }
        PyObject* value = look_up(state.get(), names[name]);
        if (!value || (value != Py_None && !is_tensor(value))) return false;
        if (value == Py_None) missing.push_back({state, name, list.size()});
        list.push_back(value == Py_None ? Tensor() : unwrap(value));
      }
    }
    lists.params.push_back(unwrap(p));
    lists.grads.push_back(std::move(grad));
  }
  if (!optim::step(lists, options)) return false;
  for (const Missing& m : missing) {
    const Object made(need(wrap(list_of(m.name)[m.row])));
    need(PyDict_SetItem(m.state.get(), names[m.name], made.get()));
  }
  return true;
}

PyObject* step(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name;
    PyObject *group, *states, *start;
    if (!PyArg_ParseTuple(args, "sO!O!O:_optimizer_step", &name, &PyDict_Type, &group, &PyDict_Type, &states, &start))
      return nullptr;
    const NoGrad guard;
    bool known = false, done = false;
    optim::for_each_options([&]<class O>() {
      if (known || std::string_view(name) != O::name) return;
      known = true;
      done = step_group<O>(group, states, start);
    });
    check<ValueError>(known, "there is no optimizer '", name, "'");
    return PyBool_FromLong(done);
  });
}

PyObject* unscale(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *grads, *found_inf, *inv_scale;
    if (!PyArg_ParseTuple(args, "OOO:_amp_foreach_non_finite_check_and_unscale_", &grads, &found_inf, &inv_scale))
      return nullptr;
    check<TypeError>(is_tensor(found_inf) && is_tensor(inv_scale), "found_inf and inv_scale must be Tensors");
    optim::unscale(list_from(grads, "grads"), unwrap(found_inf), unwrap(inv_scale));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_optimizer_step", step, METH_VARARGS,
                            "A step of a parameter group: optimizer's name, group, state, what starts a state."},
                           {"_amp_foreach_non_finite_check_and_unscale_", unscale, METH_VARARGS,
                            "Multiplies gradients by a factor and notes whether one was inf or nan."},
                           {}};

}  // namespace

void add_optim(PyObject* module) { need(PyModule_AddFunctions(module, functions)); }

}  // namespace rush::python
