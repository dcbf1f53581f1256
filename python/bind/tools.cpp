// What Python modules need from the library beside operators: type promotion, a tensor's storage as
// bytes, the default device, denormal numbers, layers as one pass.
#include "ops/inference.h"
#include "python.h"
#include "rushlight/autograd.h"

#if defined(__SSE3__)
#include <pmmintrin.h>
#endif

namespace rush::python {

std::optional<Device> default_device;

namespace {

PyObject* promote_types(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type1", "type2", nullptr};
    PyObject *a, *b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:promote_types", const_cast<char**>(names), &a, &b))
      return nullptr;
    return wrap(promote(dtype_from(a), dtype_from(b)));
  });
}

PyObject* result_type(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"tensor1", "tensor2", nullptr};
    PyObject* operands[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:result_type", const_cast<char**>(names), &operands[0],
                                     &operands[1]))
      return nullptr;
    Promotion promotion;
    for (PyObject* o : operands) {
      check<TypeError>(is_tensor(o) || is_number(o), "result_type(): arguments must be Tensor or Number, not ",
                       Py_TYPE(o)->tp_name);
      promotion(is_tensor(o) ? unwrap(o) : Tensor(number_from(o)));
    }
    return wrap(promotion.dtype());
  });
}

PyObject* broadcast_shapes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    Dims out;
    for (Py_ssize_t i = 0; i < count; ++i) {
      Dims sizes;
      if (PyLong_Check(args[i])) {
        sizes.push_back(number_from(args[i]).to_int());
      } else {
        const Object items(need(PySequence_Fast(args[i], "broadcast_shapes() takes sizes: ints or tuples of ints")));
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
          PyObject* item = PySequence_Fast_GET_ITEM(items.get(), k);
          check<TypeError>(PyIndex_Check(item), "broadcast_shapes(): sizes must be ints, not ", Py_TYPE(item)->tp_name);
          sizes.push_back(number_from(item).to_int());
        }
      }
      for (const int64_t n : sizes)
        check(n >= 0, "broadcast_shapes: trying to create tensor with negative dimension ", n);
      try {
        out = broadcast(out, sizes);
      } catch (Error& e) {
        e.name_operator("broadcast_shapes");
        throw;
      }
    }
    return wrap_size(out);
  });
}

/// All bytes of a tensor's storage, as a uint8 tensor over the same memory.
PyObject* storage_bytes(PyObject*, PyObject* o) {
  return guarded([&] {
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    const Tensor& t = unwrap(o);
    const int64_t n = t.storage() ? t.storage()->bytes() : 0;
    Tensor bytes = alias(t, {n}, {1}, 0);
    bytes.impl()->dtype = kUInt8;
    return wrap(bytes);
  });
}

PyObject* resize_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    long long bytes;
    if (!PyArg_ParseTuple(args, "OL:_resize_storage", &o, &bytes)) return nullptr;
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    check(bytes >= 0, "a storage cannot have ", bytes, " bytes");
    check(bool(unwrap(o).storage()), "a tensor on the device ", unwrap(o).device(), " has no storage to resize");
    unwrap(o).storage()->resize(bytes);
    Py_RETURN_NONE;
  });
}

PyObject* storage_resizable(PyObject*, PyObject* o) {
  return guarded([&] {
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    const auto& storage = unwrap(o).storage();
    return PyBool_FromLong(storage && storage->resizable());
  });
}

/// A copy of a CPU tensor's whole storage as Python's bytes.
PyObject* storage_dump(PyObject*, PyObject* o) {
  return guarded([&] {
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    const Tensor& t = unwrap(o);
    check(t.is_cpu() && t.storage(), "only memory of the CPU can be dumped, not of ", t.device());
    return PyBytes_FromStringAndSize(static_cast<const char*>(t.storage()->data()), t.storage()->bytes());
  });
}

/// What data_ptr() is of a storage: two tensors share one where this is the same.
PyObject* storage_identity(PyObject*, PyObject* o) {
  return guarded([&] {
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    return PyLong_FromVoidPtr(unwrap(o).storage().get());
  });
}

PyObject* set_default_device(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    PyObject* before = default_device ? wrap(*default_device) : Object::borrow(Py_None).release();
    if (o == Py_None)
      default_device.reset();
    else
      default_device = device_from(o);
    return before;
  });
}

PyObject* drop_history(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(is_tensor(o), "expected a Tensor, got ", Py_TYPE(o)->tp_name);
    if (auto& autograd = unwrap(o).impl()->autograd) {
      autograd->grad_fn = nullptr;
      autograd->output = 0;
      autograd->requires_grad = autograd->retains_grad = false;
    }
    Py_RETURN_NONE;
  });
}

PyObject* set_flush_denormal(PyObject*, PyObject* mode) {
  const int on = PyObject_IsTrue(mode);
  if (on < 0) return nullptr;
#if defined(__SSE3__)
  _MM_SET_FLUSH_ZERO_MODE(on ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
  _MM_SET_DENORMALS_ZERO_MODE(on ? _MM_DENORMALS_ZERO_ON : _MM_DENORMALS_ZERO_OFF);
  Py_RETURN_TRUE;
#else
  Py_RETURN_FALSE;
#endif
}

template <class F>
PyCFunction as_function(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

/// An argument that may be None; `what` is the function's name.
Tensor optional_tensor(PyObject* o, const char* what) {
  check<TypeError>(o == Py_None || is_tensor(o), what, "(): arguments must be Tensors, not ", Py_TYPE(o)->tp_name);
  return o == Py_None ? Tensor() : unwrap(o);
}

PyObject* fused_linear(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *input, *weight, *bias;
    double low, high;
    if (!PyArg_ParseTuple(args, "OOO(dd):_fused_linear", &input, &weight, &bias, &low, &high)) return nullptr;
    const auto tensor = [](PyObject* o) { return optional_tensor(o, "_fused_linear"); };
    const Tensor x = tensor(input), w = tensor(weight), b = tensor(bias);
    check<TypeError>(x.defined() && w.defined(), "_fused_linear(): input and weight must be Tensors");
    std::optional<ReleaseGil> unlocked;
    if (std::max(x.numel(), w.numel()) > 8000) unlocked.emplace();
    Tensor result = rush::fused_linear(x, w, b, low, high);
    unlocked.reset();
    return wrap(std::move(result));
  });
}

PyObject* fused_convolution(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *input, *tensors[6];
    auto& [weight, bias, mean, var, norm_weight, norm_bias] = tensors;
    long long stride[2], padding[2], dilation[2], groups;
    FusedConvolution f;
    if (!PyArg_ParseTuple(args, "OOO(LL)(LL)(LL)LOOOOd(dd):_fused_convolution", &input, &weight, &bias, &stride[0],
                          &stride[1], &padding[0], &padding[1], &dilation[0], &dilation[1], &groups, &mean, &var,
                          &norm_weight, &norm_bias, &f.eps, &f.low, &f.high))
      return nullptr;
    const auto tensor = [](PyObject* o) { return optional_tensor(o, "_fused_convolution"); };
    const Tensor x = tensor(input);
    f.weight = tensor(weight), f.bias = tensor(bias);
    f.mean = tensor(mean), f.var = tensor(var), f.norm_weight = tensor(norm_weight), f.norm_bias = tensor(norm_bias);
    check<TypeError>(x.defined() && f.weight.defined(), "_fused_convolution(): input and weight must be Tensors");
    f.stride = {stride[0], stride[1]}, f.padding = {padding[0], padding[1]}, f.dilation = {dilation[0], dilation[1]};
    f.groups = groups;
    Tensor result;
    {
      const ReleaseGil unlocked;
      result = rush::fused_convolution(x, f);
    }
    return wrap(std::move(result));
  });
}

PyMethodDef functions[] = {
    {"_fused_linear", fused_linear, METH_VARARGS,
     "A linear layer and a clamp; not recorded (see nn/modules/fusion.py)."},
    {"_fused_convolution", fused_convolution, METH_VARARGS,
     "A convolution, its batch norm by running statistics, and a clamp; not recorded (see nn/modules/fusion.py)."},
    {"promote_types", as_function(promote_types), METH_VARARGS | METH_KEYWORDS,
     "promote_types(type1, type2): the smallest dtype that holds the values of both."},
    {"result_type", as_function(result_type), METH_VARARGS | METH_KEYWORDS,
     "result_type(tensor1, tensor2): the dtype of arithmetic on two tensors or numbers."},
    {"broadcast_shapes", as_function(broadcast_shapes), METH_FASTCALL,
     "broadcast_shapes(*shapes): the common size that tensors of these sizes broadcast to. RuntimeError if there is "
     "none."},
    {"_storage_bytes", storage_bytes, METH_O, nullptr},
    {"_resize_storage", resize_storage, METH_VARARGS, nullptr},
    {"_storage_resizable", storage_resizable, METH_O, nullptr},
    {"_storage_dump", storage_dump, METH_O, nullptr},
    {"_storage_identity", storage_identity, METH_O, nullptr},
    {"_set_default_device", set_default_device, METH_O, "Returns the one before; None is the CPU."},
    {"_drop_history", drop_history, METH_O, nullptr},
    {"set_flush_denormal", set_flush_denormal, METH_O,
     "set_flush_denormal(mode): whether this thread takes denormal numbers for zero. Returns whether the processor can "
     "do that."},
    {}};

}  // namespace

void add_tools(PyObject* module) { need(PyModule_AddFunctions(module, functions)); }

}  // namespace rush::python
