// torch.Generator: a random generator as a Python object.
#include "python.h"
#include "rushlight/generator.h"

namespace rush::python {

namespace {

struct GeneratorObject {
  PyObject_HEAD;
  Generator* generator;
  bool owned;
};
PyTypeObject* generator_type = nullptr;
Generator& in(PyObject* o) { return *reinterpret_cast<GeneratorObject*>(o)->generator; }

PyObject* make(PyTypeObject* type, Generator* generator, bool owned) {
  auto* o = reinterpret_cast<GeneratorObject*>(need(type->tp_alloc(type, 0)));
  o->generator = generator;
  o->owned = owned;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
    const Device d = device && device != Py_None ? device_from(device) : kCPU;
    return make(type, new Generator(indexed(d)), true);
  });
}
void generator_free(PyObject* o) {
  auto* g = reinterpret_cast<GeneratorObject*>(o);
  if (g->owned) delete g->generator;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
uint64_t seed_from(PyObject* o) {
  // Negative seeds stand for 2**64 + seed.
  int overflow;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (v == -1 && !overflow && PyErr_Occurred()) throw PythonError();
  if (!overflow) return static_cast<uint64_t>(v);
  const uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : uint64_t(-1);
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    raise<ValueError>("Overflow when unpacking long long: a seed is between -2**63 and 2**64 - 1");
  }
  return large;
}
PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    check<TypeError>(PyLong_Check(seed), "manual_seed expected a long, but got ", Py_TYPE(seed)->tp_name);
    const std::lock_guard lock(in(self).mutex());
    in(self).manual_seed(seed_from(seed));
    Py_INCREF(self);
    return self;
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::lock_guard lock(in(self).mutex());
    return PyLong_FromUnsignedLongLong(in(self).seed());
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(in(self).initial_seed()); }
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    std::vector<uint8_t> bytes;
    {
      const std::lock_guard lock(in(self).mutex());
      bytes = in(self).get_state();
    }
    const Tensor t = allocate({{int64_t(bytes.size())}, kUInt8, {}, {}});
    std::copy(bytes.begin(), bytes.end(), t.data<uint8_t>());
    return wrap(t);
  });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    check<TypeError>(is_tensor(state), "expected a torch.ByteTensor, but got ", Py_TYPE(state)->tp_name);
    const Tensor t = contiguous(unwrap(state));
    check<TypeError>(t.dtype() == kUInt8, "expected a torch.ByteTensor, but got ", t.dtype());
    const std::lock_guard lock(in(self).mutex());
    in(self).set_state({t.data<uint8_t>(), size_t(t.numel())});
    Py_INCREF(self);
    return self;
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] { return make(Py_TYPE(self), new Generator(in(self)), true); });
}
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return wrap(in(self).device()); });
}

PyMethodDef methods[] = {{"manual_seed", manual_seed, METH_O, "Starts over from a seed; returns the generator."},
                         {"seed", seed, METH_NOARGS, "Seeds from the system's entropy and returns the seed."},
                         {"initial_seed", initial_seed, METH_NOARGS, "The seed last set."},
                         {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor, in PyTorch's layout."},
                         {"set_state", set_state, METH_O, "Goes on from a state that get_state() gave."},
                         {"clone_state", clone_state, METH_NOARGS, "A generator of its own with the same state."},
                         {}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, nullptr, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(generator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(generator_free)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_doc, const_cast<char*>(
                    "Generator(device='cpu'): a source of random numbers, as PyTorch's: mt19937, or Philox on a GPU.")},
    {}};
PyType_Spec spec{"rushlight.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, generator_type); }
Generator* generator_from(PyObject* o) { return &in(o); }
PyObject* wrap_generator(Generator& generator) { return make(generator_type, &generator, false); }

void add_random(PyObject* module) {
  generator_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&spec)));
  need(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)));
  need(PyModule_AddObjectRef(module, "default_generator",
                             Object(make(generator_type, &default_generator(), false)).get()));
}

}  // namespace rush::python
