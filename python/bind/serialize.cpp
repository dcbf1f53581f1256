// Files: _C._load_archive, _C._open_archive and _C._write_archive, on which rushlight/serialization.py stands.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <unordered_map>

#include "python.h"
#include "serialize/checkpoint.h"
#include "serialize/tensors.h"

namespace rush::python {
namespace {

using namespace serialize;

// PickleError is pickle.UnpicklingError in Python, as it is from Python's own unpickler.
template <class F>
auto with_pickle_errors(F&& f) {
  try {
    return f();
  } catch (const PickleError& error) {
    const Object pickle(need(PyImport_ImportModule("pickle")));
    const Object type(need(PyObject_GetAttrString(pickle.get(), "UnpicklingError")));
    PyErr_SetString(type.get(), error.what());
    throw PythonError();
  }
}

Object call(PyObject* function, std::initializer_list<PyObject*> args) {
  return Object(need(PyObject_Vectorcall(function, args.begin(), args.size(), nullptr)));
}

Object utility(const char* name) {
  const Object module(need(PyImport_ImportModule("rushlight._utils")));
  return Object(need(PyObject_GetAttrString(module.get(), name)));
}

// A path (str) is mapped; bytes are used where they are.
Blob blob_of(PyObject* source) {
  if (PyUnicode_Check(source)) return map_file(std::string(text_of(source)));
  if (!PyBytes_Check(source)) raise<TypeError>("load: read() must give bytes, not ", Py_TYPE(source)->tp_name);
  return {hold(source), reinterpret_cast<std::byte*>(PyBytes_AS_STRING(source)),
          static_cast<size_t>(PyBytes_GET_SIZE(source))};
}

TensorReader reader_for(PyObject* source, bool mmap, PyObject* place) {
  return TensorReader(
      !mmap || !PyUnicode_Check(source), [held = hold(place)](const Tensor& bytes, const std::string& location) {
        const Object memory(need(wrap(bytes)));
        const Object where(need(PyUnicode_FromStringAndSize(location.data(), Py_ssize_t(location.size()))));
        const Object moved = call(held.get(), {memory.get(), where.get()});
        if (!is_tensor(moved.get())) raise<TypeError>("load: map_location must return a storage or None");
        return unwrap(moved.get());
      });
}

// Values to Python objects; what was one object in the file is one again.
class Converter {
 public:
  explicit Converter(TensorReader& reader) : reader_(reader) {}

  Object operator()(const serialize::Value& value) {
    return std::visit([this](const auto& data) { return make(data); }, value.data);
  }

 private:
  Object make(None) { return Object::borrow(Py_None); }
  Object make(bool value) { return Object(PyBool_FromLong(value)); }
  Object make(int64_t value) { return Object(need(PyLong_FromLongLong(value))); }
  Object make(double value) { return Object(need(PyFloat_FromDouble(value))); }
  Object make(std::complex<double> value) { return Object(need(PyComplex_FromDoubles(value.real(), value.imag()))); }
  Object make(const std::string& text) {
    return Object(need(PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()))));
  }
  Object make(const BigInt& value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(value.bytes.data());
    return Object(need(_PyLong_FromByteArray(bytes, value.bytes.size(), 1, 1)));
  }
  Object make(const Bytes& bytes) {
    const auto from = bytes.is_mutable ? PyByteArray_FromStringAndSize : PyBytes_FromStringAndSize;
    return Object(need(from(bytes.data.data(), Py_ssize_t(bytes.data.size()))));
  }
  Object make(const DtypeName& dtype) { return Object(need(wrap(dtype_named(dtype.name)))); }
  Object make(const DeviceName& device) { return Object(need(wrap(Device(device.text)))); }
  Object make(const Global&) { raise("a class is left in the file"); }
  Object make(const std::shared_ptr<StorageRecord>&) { raise<NotImplementedError>("load: a storage without a tensor"); }

  Object make(const std::shared_ptr<Sequence>& sequence) {
    if (const auto known = made_.find(sequence.get()); known != made_.end()) return known->second;
    const auto size = Py_ssize_t(sequence->items.size());
    Object result(need(sequence->kind == Sequence::tuple ? PyTuple_New(size) : PyList_New(size)));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const item = (*this)(sequence->items[size_t(i)]).release();
      if (sequence->kind == Sequence::tuple) {
        PyTuple_SET_ITEM(result.get(), i, item);
      } else {
        PyList_SET_ITEM(result.get(), i, item);
      }
    }
    if (sequence->kind == Sequence::set) result = Object(need(PySet_New(result.get())));
    if (sequence->kind == Sequence::frozenset) result = Object(need(PyFrozenSet_New(result.get())));
    if (sequence->kind == Sequence::size) {
      std::vector<int64_t> sizes;
      for (const auto& item : sequence->items) sizes.push_back(*item.as<int64_t>());
      result = Object(need(wrap_size(Ints(sizes.data(), sizes.size()))));
    }
    return made_[sequence.get()] = result;
  }

  Object make(const std::shared_ptr<Dict>& dict) {
    if (const auto known = made_.find(dict.get()); known != made_.end()) return known->second;
    Object result;
    if (dict->ordered) {
      const Object collections(need(PyImport_ImportModule("collections")));
      const Object type(need(PyObject_GetAttrString(collections.get(), "OrderedDict")));
      result = call(type.get(), {});
    } else {
      result = Object(need(PyDict_New()));
    }
    for (const auto& [key, item] : dict->items) {
      const Object k = (*this)(key), v = (*this)(item);
      need(PyObject_SetItem(result.get(), k.get(), v.get()));
    }
    if (!dict->attributes.as<None>()) {
      const Object own(need(PyObject_GetAttrString(result.get(), "__dict__")));
      need(PyDict_Update(own.get(), (*this)(dict->attributes).get()));
    }
    return made_[dict.get()] = result;
  }

  Object make(const std::shared_ptr<TensorRecord>& record) {
    if (const auto known = made_.find(record.get()); known != made_.end()) return known->second;
    Object result(need(wrap(reader_(record))));
    if (record->parameter) {
      PyObject* const requires_grad = record->requires_grad ? Py_True : Py_False;
      result = call(utility("_rebuild_parameter").get(), {result.get(), requires_grad, Py_None});
    }
    if (!record->attributes.as<None>())
      result = call(utility("_set_state").get(), {result.get(), (*this)(record->attributes).get()});
    return made_[record.get()] = result;
  }

  TensorReader& reader_;
  std::unordered_map<const void*, Object> made_;
};

PyObject* load_archive(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *source, *place;
    int mmap;
    if (!PyArg_ParseTuple(args, "OpO", &source, &mmap, &place)) return nullptr;
    return with_pickle_errors([&] {
      TensorReader reader = reader_for(source, mmap, place);
      return Converter(reader)(load(blob_of(source))).release();
    });
  });
}

// What an archive's storage function holds on to.
struct Archive {
  ArchiveReader archive;
  TensorReader reader;
};
constexpr char kArchive[] = "rushlight.archive";

PyObject* archive_storage(PyObject* capsule, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *key, *dtype, *location;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "sssn", &key, &dtype, &location, &count)) return nullptr;
    auto* const held = static_cast<Archive*>(PyCapsule_GetPointer(capsule, kArchive));
    const size_t width = element_size(dtype);
    check<ValueError>(count >= 0 && static_cast<size_t>(count) < (size_t{1} << 58), "a storage's size is ", count);
    return wrap(held->reader.flat(held->archive.storage(key, dtype, location, static_cast<size_t>(count) * width)));
  });
}

PyObject* open_archive(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *source, *place;
    int mmap;
    if (!PyArg_ParseTuple(args, "OpO", &source, &mmap, &place)) return nullptr;
    auto held = std::make_unique<Archive>(ArchiveReader(blob_of(source)), reader_for(source, mmap, place));
    const auto stream = held->archive.pickle();
    static PyMethodDef storage{"storage", archive_storage, METH_VARARGS, nullptr};
    const Object capsule(need(PyCapsule_New(
        held.get(), kArchive, [](PyObject* c) { delete static_cast<Archive*>(PyCapsule_GetPointer(c, kArchive)); })));
    held.release();
    const Object function(need(PyCFunction_New(&storage, capsule.get())));
    return Py_BuildValue("y#O", stream.data(), Py_ssize_t(stream.size()), function.get());
  });
}

PyObject* write_archive(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *target, *list;
    const char *name, *stream;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "Osy#O!", &target, &name, &stream, &size, &PyList_Type, &list)) return nullptr;
    TensorWriter writer;
    std::vector<std::shared_ptr<StorageRecord>> storages;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      check<TypeError>(is_tensor(PyList_GET_ITEM(list, i)), "save: storages are given by tensors");
      storages.push_back(writer.storage(unwrap(PyList_GET_ITEM(list, i))));
    }
    const auto write = [&](const Sink& sink) {
      serialize::write_archive({stream, static_cast<size_t>(size)}, storages, sink, name);
    };
    if (PyUnicode_Check(target)) {
      const std::string path(text_of(target));
      const ReleaseGil released;
      write_file(path, write);
    } else {
      write([&](const void* data, size_t count) {
        const Object view(
            need(PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(data)), Py_ssize_t(count), PyBUF_READ)));
        call(target, {view.get()});
      });
    }
    Py_RETURN_NONE;
  });
}

PyObject* storage_of(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor)) raise<TypeError>("save: expected a tensor");
    const auto& storage = unwrap(tensor).storage();
    check<NotImplementedError>(bool(storage), "save: a tensor without storage");
    return Py_BuildValue("nn", reinterpret_cast<Py_ssize_t>(storage.get()), Py_ssize_t(storage->bytes()));
  });
}

PyObject* over_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *memory, *sizes, *strides;
    long long offset;
    if (!PyArg_ParseTuple(args, "OO!O!L", &memory, &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &offset))
      return nullptr;
    if (!is_tensor(memory)) raise<TypeError>("a tensor's storage is no storage");
    const auto numbers = [](PyObject* tuple) {
      std::vector<int64_t> result;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        result.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
        if (result.back() == -1 && PyErr_Occurred()) throw PythonError();
      }
      return result;
    };
    const auto s = numbers(sizes), t = numbers(strides);
    return wrap(over(unwrap(memory), Ints(s.data(), s.size()), Ints(t.data(), t.size()), offset));
  });
}

}  // namespace

void add_serialize(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_load_archive", load_archive, METH_VARARGS,
       "_load_archive(source, mmap, place)\n\nReads a .pt file as data. source: a path or bytes. place: a function of "
       "(flat "
       "uint8 tensor of a storage, where it was saved from) that returns it moved to its device."},
      {"_open_archive", open_archive, METH_VARARGS,
       "_open_archive(source, mmap, place)\n\nA zip archive's pickle, as bytes, and the function of (key, dtype, "
       "location, "
       "numel) that gives a storage as a flat tensor."},
      {"_write_archive", write_archive, METH_VARARGS,
       "_write_archive(target, name, pickle, tensors)\n\nWrites an archive to a path or a write function: the pickle, "
       "and "
       "the whole storage of each tensor under the keys '0', '1', ..."},
      {"_storage_of", storage_of, METH_O,
       "_storage_of(tensor)\n\nA number that names its storage, and the storage's bytes."},
      {"_over_storage", over_storage, METH_VARARGS,
       "_over_storage(memory, sizes, strides, offset)\n\nA tensor over another's storage that is no view of it."},
      {}};
  need(PyModule_AddFunctions(module, functions));
}

}  // namespace rush::python
