// The optimizers' multi-tensor steps: lists of tensors straight to C++.
#include "python.h"
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

PyObject* sgd(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"params",    "grads",        "momentum_buffers", "lr",       "momentum",
                                  "dampening", "weight_decay", "nesterov",         "maximize", nullptr};
    PyObject *params, *grads, *buffers;
    optim::SgdStep s;
    int nesterov, maximize;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO$ddddpp:_sgd_step", const_cast<char**>(names), &params, &grads,
                                     &buffers, &s.lr, &s.momentum, &s.dampening, &s.weight_decay, &nesterov, &maximize))
      return nullptr;
    s.nesterov = nesterov;
    s.maximize = maximize;
    return PyBool_FromLong(optim::sgd_step(list_from(params, "params"), list_from(grads, "grads"),
                                           list_from(buffers, "momentum_buffers"), s));
  });
}

PyObject* adam(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"params",       "grads",    "exp_avgs",  "exp_avg_sqs", "max_exp_avg_sqs",
                                  "steps",        "lr",       "beta1",     "beta2",       "eps",
                                  "weight_decay", "maximize", "decoupled", nullptr};
    PyObject *params, *grads, *avgs, *squares, *maxima, *steps;
    optim::AdamStep s;
    int maximize, decoupled;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO$dddddpp:_adam_step", const_cast<char**>(names), &params,
                                     &grads, &avgs, &squares, &maxima, &steps, &s.lr, &s.beta1, &s.beta2, &s.eps,
                                     &s.weight_decay, &maximize, &decoupled))
      return nullptr;
    s.maximize = maximize;
    s.decoupled = decoupled;
    return PyBool_FromLong(optim::adam_step(list_from(params, "params"), list_from(grads, "grads"),
                                            list_from(avgs, "exp_avgs"), list_from(squares, "exp_avg_sqs"),
                                            list_from(maxima, "max_exp_avg_sqs"), list_from(steps, "steps"), s));
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

PyMethodDef functions[] = {{"_sgd_step", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(sgd)),
                            METH_VARARGS | METH_KEYWORDS, "One step of SGD over lists of tensors."},
                           {"_adam_step", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(adam)),
                            METH_VARARGS | METH_KEYWORDS, "One step of Adam over lists of tensors."},
                           {"_amp_foreach_non_finite_check_and_unscale_", unscale, METH_VARARGS,
                            "Multiplies gradients by a factor and notes whether one was inf or nan."},
                           {}};

}  // namespace

void add_optim(PyObject* module) { need(PyModule_AddFunctions(module, functions)); }

}  // namespace rush::python
