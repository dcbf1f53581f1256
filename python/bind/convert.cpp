// Tensors from and to Python data: nested lists, the buffer protocol (and so NumPy, which is imported only when an
// array has to be made), DLPack.
#include <cstring>

#include "ops/fits.h"
#include "python.h"
#include "rushlight/autograd.h"
#include "sequence.h"

namespace rush::python {

namespace {

// ---- the buffer protocol ----

const char* format_of(DType t) {
  constexpr const char* formats[kDTypes] = {"?", "B", "b", "h", "i", "q", "e", nullptr, "f", "d", "Zf", "Zd"};
  return formats[int(t)];
}

/// The dtype of a buffer's elements.
DType dtype_of_format(const char* format, Py_ssize_t size, PyObject* owner) {
  std::string_view f = format ? format : "B";
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || (f[0] == '<' && std::endian::native == std::endian::little)))
    f.remove_prefix(1);
  if (f == "?") return kBool;
  if (f == "B") return kUInt8;
  if (f == "b") return kInt8;
  if (f == "h") return kInt16;
  if (f == "i" || f == "l" || f == "q") return size == 4 ? kInt32 : kInt64;
  if (f == "e") return kFloat16;
  if (f == "f") return kFloat32;
  if (f == "d") return kFloat64;
  if (f == "Zf") return kComplex64;
  if (f == "Zd") return kComplex128;
  raise<TypeError>("can't convert ", Py_TYPE(owner)->tp_name, " with elements of format '", f,
                   "'. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
                   "int16, int8, uint8, and bool.");
}

/// The buffer of an object for as long as this lives.
struct Buffer {
  Py_buffer view{};
  bool open = false;
  bool get(PyObject* o, int flags) { return open = PyObject_GetBuffer(o, &view, flags) == 0; }
  ~Buffer() {
    if (open) PyBuffer_Release(&view);
  }
};

/// A tensor over the object's own memory, or over a copy where strides don't allow it.
Tensor from_buffer(PyObject* o, bool share) {
  auto buffer = std::make_unique<Buffer>();
  if (!buffer->get(o, PyBUF_RECORDS)) {
    PyErr_Clear();
    if (!buffer->get(o, PyBUF_RECORDS_RO)) throw PythonError();
    if (share &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The given NumPy array is not writable, and rushlight does not support non-writable tensors: "
                     "writing to this tensor is undefined behavior. You may want to copy the array first.",
                     1) < 0)
      throw PythonError();
  }
  const Py_buffer& v = buffer->view;
  const DType dtype = dtype_of_format(v.format, v.itemsize, o);
  check<ValueError>(v.itemsize == size_of(dtype), "unexpected element size ", v.itemsize);
  Dims sizes, strides;
  for (int d = 0; d < v.ndim; ++d) {
    check<ValueError>(v.strides[d] >= 0,
                      "At least one stride in the given numpy array is negative, and tensors with negative strides are "
                      "not currently supported. (You can probably work around this by making a copy of your array  "
                      "with array.copy().)");
    check<ValueError>(v.strides[d] % v.itemsize == 0 || v.shape[d] <= 1,
                      "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                      "reallocate the memory.");
    sizes.push_back(v.shape[d]);
    strides.push_back(v.strides[d] / v.itemsize);
  }
  int64_t reach = product(sizes) > 0 ? 1 : 0;
  for (size_t d = 0; d < sizes.size(); ++d) reach += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
  Buffer* raw = buffer.release();
  auto storage = Storage::wrap(raw->view.buf, reach * v.itemsize, kCPU, [raw] {
    if (!Py_IsInitialized()) return;
    const AcquireGil gil;
    delete raw;
  });
  Ref<TensorImpl> impl(new TensorImpl);
  impl->storage = std::move(storage);
  impl->dtype = dtype;
  impl->sizes = std::move(sizes);
  impl->strides = std::move(strides);
  impl->refresh();
  Tensor t(std::move(impl));
  NoGrad guard;
  return share ? t : clone(t, MemoryFormat::Contiguous);
}

int export_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    const char* format = format_of(t.dtype());
    check<TypeError>(!(t.requires_grad() && grad_enabled()),
                     "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    check<TypeError>(format, "Got unsupported ScalarType ", scalar_name(t.dtype()));
    check<TypeError>(t.is_cpu(), "can't convert ", t.device(),
                     " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
    if (!(flags & PyBUF_STRIDES) && !t.is_contiguous()) {
      PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous in memory: call contiguous() first");
      return -1;
    }
    const auto n = size_t(t.dim());
    auto* shape = new Py_ssize_t[2 * n + 1];
    for (size_t i = 0; i < n; ++i) {
      shape[i] = t.sizes()[i];
      shape[n + i] = t.strides()[i] * t.itemsize();
    }
    static char nothing;
    view->buf = t.numel() ? t.data_ptr() : &nothing;
    view->obj = self;
    Py_INCREF(self);
    view->len = t.numel() * t.itemsize();
    view->itemsize = t.itemsize();
    view->readonly = 0;
    view->ndim = int(n);
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? shape : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape + n : nullptr;
    view->suboffsets = nullptr;
    view->internal = shape;
    t.storage()->mark_exported();
    return 0;
  });
}
void release_buffer(PyObject*, Py_buffer* view) { delete[] static_cast<Py_ssize_t*>(view->internal); }

PyObject* numpy_module() {
  static PyObject* const module = need(PyImport_ImportModule("numpy"));
  return module;
}
bool is_array(PyObject* o) {
  return std::string_view(Py_TYPE(o)->tp_name) == "numpy.ndarray" ||
         std::string_view(Py_TYPE(o)->tp_name) == "numpy.memmap" || std::string_view(Py_TYPE(o)->tp_name) == "memmap";
}

PyObject* to_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"force", nullptr};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(names), &force)) return nullptr;
    Tensor t = unwrap(self);
    if (force) t = t.detach().cpu();
    if (t.requires_grad() && grad_enabled())
      raise("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    const Object source(wrap(t));
    const Object view(need(PyMemoryView_FromObject(source.get())));
    return PyObject_CallMethod(numpy_module(), "asarray", "O", view.get());
  });
}

/// Nested lists of numbers, or the number itself of a 0-dim tensor.
PyObject* list_from(const Tensor& t, int64_t dim, const char* at) {
  if (dim == t.dim()) {
    return for_all(t.dtype(), [&]<class T>() -> PyObject* {
      T v;
      std::memcpy(&v, at, sizeof v);
      if constexpr (std::is_same_v<T, bool>)
        return PyBool_FromLong(v);
      else if constexpr (std::is_integral_v<T>)
        return PyLong_FromLongLong(v);
      else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
        return PyComplex_FromDoubles(v.real(), v.imag());
      else
        return PyFloat_FromDouble(double(v));
    });
  }
  Object list(need(PyList_New(t.sizes()[dim])));
  for (int64_t i = 0; i < t.sizes()[dim]; ++i)
    PyList_SET_ITEM(list.get(), i, need(list_from(t, dim + 1, at + i * t.strides()[dim] * t.itemsize())));
  return list.release();
}
PyObject* to_list(PyObject* self, PyObject*) {
  return guarded([&] {
    check(!unwrap(self).is_meta(), "tolist() cannot be called on meta tensors");
    const Tensor t = unwrap(self).is_cuda() ? unwrap(self).detach().cpu() : unwrap(self);
    return list_from(t, 0, static_cast<const char*>(t.data_ptr()));
  });
}

// ---- from nested data ----

struct Inferred {
  Dims sizes;
  DType dtype = kBool;
  bool any = false;
};
void meet(Inferred& in, DType t) {
  in.dtype = in.any ? promote(in.dtype, t) : t;
  in.any = true;
}

bool is_sequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !is_number(o));
}

/// The shape, along first elements, and the common dtype of all elements.
void infer(PyObject* o, size_t depth, Inferred& in, bool first) {
  check<ValueError>(depth < 64, "too many dimensions, or a sequence that contains itself");
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    if (first)
      for (int64_t s : t.sizes()) in.sizes.push_back(s);
    meet(in, t.dtype());
  } else if (PyFloat_Check(o) && !PyObject_CheckBuffer(o)) {  // not numpy.float64, which is a float too
    meet(in, default_dtype());
  } else if (PyBool_Check(o)) {
    meet(in, kBool);
  } else if (PyLong_Check(o)) {
    meet(in, kInt64);
  } else if (PyComplex_Check(o) && !PyObject_CheckBuffer(o)) {
    meet(in, complex_of(default_dtype()));
  } else if (is_array(o) || is_number(o)) {
    Buffer b;
    if (!b.get(o, PyBUF_RECORDS_RO)) throw PythonError();
    if (first)
      for (int d = 0; d < b.view.ndim; ++d) in.sizes.push_back(b.view.shape[d]);
    meet(in, dtype_of_format(b.view.format, b.view.itemsize, o));
  } else if (is_sequence(o)) {
    const Object fast(need(PySequence_Fast(o, "expected a sequence")));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    if (first)
      in.sizes.push_back(n);
    else {
      check<ValueError>(depth < in.sizes.size(), "expected a number at dimension ", depth,
                        ", got a sequence of length ", n);
      check<ValueError>(in.sizes[depth] == n, "expected sequence of length ", in.sizes[depth], " at dim ", depth,
                        " (got ", n, ")");
    }
    for (Py_ssize_t i = 0; i < n; ++i) infer(item_of(fast.get(), i).get(), depth + 1, in, first && i == 0);
  } else {
    check<TypeError>(!PyUnicode_Check(o) && !PyBytes_Check(o), "new(): invalid data type '", Py_TYPE(o)->tp_name, "'");
    raise("Could not infer dtype of ", Py_TYPE(o)->tp_name);
  }
}

template <class T>
void fill(PyObject* o, const Dims& sizes, size_t depth, T*& out) {
  if (PyFloat_CheckExact(o)) {
    check<ValueError>(depth == sizes.size(), "expected sequence of length ", depth < sizes.size() ? sizes[depth] : 0,
                      " at dim ", depth, " (got a number)");
    *out++ = Scalar(PyFloat_AS_DOUBLE(o)).to<T>();
  } else if (is_tensor(o) || is_array(o)) {
    const Tensor t = is_tensor(o) ? unwrap(o).detach().cpu() : from_buffer(o, false);
    const Tensor same = contiguous(cast(t, dtype_of<T>));
    check<ValueError>(Ints(same.sizes()) == Ints(sizes).slice(depth, sizes.size() - depth),
                      "expected an element of shape ", Ints(sizes).slice(depth, sizes.size() - depth), ", got ",
                      same.sizes());
    out = std::copy_n(same.data<T>(), same.numel(), out);
  } else if (is_number(o)) {
    check<ValueError>(depth == sizes.size(), "expected sequence of length ", depth < sizes.size() ? sizes[depth] : 0,
                      " at dim ", depth, " (got a number)");
    const Scalar s = number_from(o);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      check(!s.is_int() || fits<T>(s), "value cannot be converted to type ", name_of(dtype_of<T>), " without overflow");
    }
    if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>)
      check<TypeError>(!s.is_complex(), "can't convert complex to ", name_of(dtype_of<T>));
    *out++ = s.to<T>();
  } else {
    const Object fast(need(PySequence_Fast(o, "expected a sequence of numbers")));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    check<ValueError>(depth < sizes.size() && sizes[depth] == n, "expected sequence of length ",
                      depth < sizes.size() ? sizes[depth] : 0, " at dim ", depth, " (got ", n, ")");
    for (Py_ssize_t i = 0; i < n; ++i) fill(item_of(fast.get(), i).get(), sizes, depth + 1, out);
  }
}

Tensor from_data(PyObject* data, OptDType dtype) {
  NoGrad guard;
  if (is_tensor(data)) {
    const Tensor t = unwrap(data).detach();
    return dtype && *dtype != t.dtype() ? cast(t, *dtype) : clone(t);
  }
  if (is_array(data)) {
    const Tensor t = from_buffer(data, false);
    return dtype && *dtype != t.dtype() ? cast(t, *dtype) : t;
  }
  if (!PyList_Check(data) && !PyTuple_Check(data) && PyObject_CheckBuffer(data) && !is_number(data)) {
    const Tensor t = from_buffer(data, false);
    return dtype && *dtype != t.dtype() ? cast(t, *dtype) : t;
  }
  check<TypeError>(!PyUnicode_Check(data), "new(): invalid data type 'str'");
  Inferred in;
  infer(data, 0, in, true);
  // A sequence of tensors or of arrays goes deeper than the Python lists do.
  const DType t = dtype.value_or(in.any ? in.dtype : default_dtype());
  Tensor out = allocate({in.sizes, t, {}, {}});
  for_all(t, [&]<class T>() {
    T* at = out.data<T>();
    T* const end = at + out.numel();
    fill(data, in.sizes, 0, at);
    check<ValueError>(at == end, "the data has not the shape that its first elements have");
  });
  return out;
}

struct Options {
  OptDType dtype;
  OptDevice device;
  bool requires_grad = false, pin = false;
};

Tensor placed(Tensor t, const Options& options) {
  NoGrad guard;
  if (options.device) t = to(t, *options.device);
  if (options.pin) t = pin_memory(t);
  if (options.requires_grad) t.requires_grad_();
  return t;
}

PyObject* make(PyObject* args, PyObject* kwargs, const char* format, bool share) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
    PyObject *data, *dtype = Py_None, *device = Py_None;
    int requires_grad = 0, pin = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), &data, &dtype, &device,
                                     &requires_grad, &pin))
      return nullptr;
    Options options;
    if (dtype != Py_None) options.dtype = dtype_from(dtype);
    if (device != Py_None)
      options.device = indexed(device_from(device));
    else if (default_device && !is_tensor(data))
      options.device = default_device;
    options.requires_grad = requires_grad;
    options.pin = pin;
    if (!share) return wrap(placed(from_data(data, options.dtype), options));
    if (is_tensor(data)) {  // as_tensor: the tensor itself where nothing changes
      const Tensor& t = unwrap(data);
      if ((!options.dtype || *options.dtype == t.dtype()) && (!options.device || *options.device == t.device())) {
        Py_INCREF(data);
        return data;
      }
      return wrap(placed(options.dtype && *options.dtype != t.dtype() ? cast(t, *options.dtype) : t, options));
    }
    if (is_array(data)) {
      const Tensor t = from_buffer(data, true);
      return wrap(placed(options.dtype && *options.dtype != t.dtype() ? cast(t, *options.dtype) : t, options));
    }
    return wrap(placed(from_data(data, options.dtype), options));
  });
}

PyObject* tensor_function(PyObject*, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) == 1 && is_tensor(PyTuple_GET_ITEM(args, 0)) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                   "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                   1) < 0)
    return nullptr;
  return make(args, kwargs, "O|$OOpp:tensor", false);
}
PyObject* as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  return make(args, kwargs, "O|OOpp:as_tensor", true);
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    check<TypeError>(is_array(array), "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
    return wrap(from_buffer(array, true));
  });
}

PyObject* from_buffer_function(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
    PyObject *buffer, *dtype = nullptr;
    Py_ssize_t count = -1, offset = 0;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", const_cast<char**>(names), &buffer, &dtype,
                                     &count, &offset, &requires_grad))
      return nullptr;
    check<TypeError>(dtype, "frombuffer() missing required keyword argument 'dtype'");
    const DType t = dtype_from(dtype);
    auto b = std::make_unique<Buffer>();
    if (!b->get(buffer, PyBUF_WRITABLE)) {
      PyErr_Clear();
      if (!b->get(buffer, PyBUF_SIMPLE)) throw PythonError();
    }
    const Py_ssize_t len = b->view.len;
    check<ValueError>(len > 0 && count != 0, "both buffer length (", len, ") and count (", count, ") must not be 0");
    check<ValueError>(offset >= 0 && offset < len, "offset (", offset,
                      " bytes) must be non-negative and no greater than buffer length (", len, " bytes) minus 1");
    check<ValueError>(count > 0 || (len - offset) % size_of(t) == 0, "buffer length (", len - offset,
                      " bytes) after offset (", offset, " bytes) must be a multiple of element size (", size_of(t),
                      ")");
    const int64_t n = count > 0 ? count : (len - offset) / size_of(t);
    check<ValueError>(offset + n * size_of(t) <= len, "requested buffer length (", n, " * ", size_of(t),
                      " bytes) after offset (", offset, " bytes) must not be greater than actual buffer length (", len,
                      " bytes)");
    Buffer* raw = b.release();
    Ref<TensorImpl> impl(new TensorImpl);
    impl->storage = Storage::wrap(static_cast<char*>(raw->view.buf) + offset, n * size_of(t), kCPU, [raw] {
      if (!Py_IsInitialized()) return;
      const AcquireGil gil;
      delete raw;
    });
    impl->dtype = t;
    impl->sizes = Dims{n};
    impl->strides = Dims{1};
    impl->refresh();
    Tensor out(std::move(impl));
    if (requires_grad) out.requires_grad_();
    return wrap(out);
  });
}

// ---- DLPack: the struct layout of its version 0.8, from the standard's documentation (dmlc.github.io/dlpack) ----

struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
enum : uint8_t { kDLInt, kDLUInt, kDLFloat, kDLBfloat = 4, kDLComplex, kDLBool };

struct Exported {
  Tensor tensor;
  Dims shape, strides;
  DLManagedTensor managed;
};

PyObject* to_dlpack(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    if (t.requires_grad()) {
      PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
      throw PythonError();
    }
    check<TypeError>(t.is_cpu(), "only CPU tensors can be exported to DLPack, not ", t.device());
    t.storage()->mark_exported();
    auto* e = new Exported{t, t.sizes(), t.strides(), {}};
    const uint8_t code = t.dtype() == kBool       ? kDLBool
                         : t.dtype() == kUInt8    ? kDLUInt
                         : is_integral(t.dtype()) ? kDLInt
                         : t.dtype() == kBFloat16 ? kDLBfloat
                         : is_complex(t.dtype())  ? kDLComplex
                                                  : kDLFloat;
    e->managed = {{t.data_ptr(),
                   {1, 0},
                   int32_t(t.dim()),
                   {code, uint8_t(8 * t.itemsize()), 1},
                   e->shape.data(),
                   e->strides.data(),
                   0},
                  e,
                  [](DLManagedTensor* m) { delete static_cast<Exported*>(m->context); }};
    return PyCapsule_New(&e->managed, "dltensor", [](PyObject* c) {
      if (PyCapsule_IsValid(c, "dltensor")) {
        auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(c, "dltensor"));
        m->deleter(m);
      }
    });
  });
}
PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    check<ValueError>(unwrap(self).is_cpu(), "Unknown device type ", unwrap(self).device(), " for Dlpack");
    return Py_BuildValue("(ii)", 1, 0);
  });
}

PyObject* from_dlpack(PyObject*, PyObject* source) {
  return guarded([&]() -> PyObject* {
    Object capsule = Object::borrow(source);
    if (!PyCapsule_CheckExact(source)) capsule = Object(need(PyObject_CallMethod(source, "__dlpack__", nullptr)));
    check(PyCapsule_IsValid(capsule.get(), "dltensor"),
          "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
          "consumed only once, so you might have already constructed a tensor from it once.");
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
    const DLTensor& d = m->tensor;
    check<ValueError>(d.device.type == 1 || d.device.type == 3, "only CPU tensors can be imported from DLPack");
    check(d.dtype.lanes == 1, "ATen does not support lanes != 1");
    const auto pick = [&]() -> DType {
      switch (d.dtype.code) {
        case kDLBool:
          return kBool;
        case kDLUInt:
          if (d.dtype.bits == 8) return kUInt8;
          break;
        case kDLInt:
          if (d.dtype.bits == 8) return kInt8;
          if (d.dtype.bits == 16) return kInt16;
          if (d.dtype.bits == 32) return kInt32;
          if (d.dtype.bits == 64) return kInt64;
          break;
        case kDLFloat:
          if (d.dtype.bits == 16) return kFloat16;
          if (d.dtype.bits == 32) return kFloat32;
          if (d.dtype.bits == 64) return kFloat64;
          break;
        case kDLBfloat:
          if (d.dtype.bits == 16) return kBFloat16;
          break;
        case kDLComplex:
          if (d.dtype.bits == 64) return kComplex64;
          if (d.dtype.bits == 128) return kComplex128;
          break;
      }
      raise("unsupported DLPack dtype: code ", int(d.dtype.code), ", ", int(d.dtype.bits), " bits");
    };
    Ref<TensorImpl> impl(new TensorImpl);
    impl->dtype = pick();
    impl->sizes = Dims(d.shape, d.shape + d.ndim);
    impl->strides = d.strides ? Dims(d.strides, d.strides + d.ndim) : contiguous_strides(impl->sizes);
    impl->refresh();
    int64_t reach = impl->numel > 0 ? 1 : 0;
    for (size_t i = 0; i < impl->sizes.size(); ++i) {
      check<ValueError>(impl->strides[i] >= 0, "tensors with negative strides are not supported");
      reach += std::max<int64_t>(impl->sizes[i] - 1, 0) * impl->strides[i];
    }
    impl->storage = Storage::wrap(static_cast<char*>(d.data) + d.byte_offset, reach * size_of(impl->dtype), kCPU, [m] {
      if (m->deleter) m->deleter(m);
    });
    need(PyCapsule_SetName(capsule.get(), "used_dltensor"));
    return wrap(Tensor(std::move(impl)));
  });
}

PyObject* set_default_dtype_function(PyObject*, PyObject* t) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(is_dtype(t), "invalid dtype object: only floating-point types are supported as the default type");
    set_default_dtype(dtype_from(t));
    Py_RETURN_NONE;
  });
}
PyObject* get_default_dtype_function(PyObject*, PyObject*) { return wrap(default_dtype()); }

PyMethodDef functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tensor_function)), METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\nA new tensor with a copy of "
     "data: a number, nested "
     "sequences of numbers, a NumPy array. The dtype is that of the elements unless named."},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(as_tensor)), METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\nAs tensor(), but shares memory with a tensor or array where dtype "
     "and device allow it."},
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray): a tensor over the array's own memory."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(from_buffer_function)),
     METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False): a 1-d tensor over an object's buffer."},
    {"from_dlpack", from_dlpack, METH_O,
     "from_dlpack(object or capsule): a tensor over memory that another library owns."},
    {"set_default_dtype", set_default_dtype_function, METH_O,
     "set_default_dtype(d): the dtype of new floating-point tensors."},
    {"get_default_dtype", get_default_dtype_function, METH_NOARGS, "The dtype of new floating-point tensors."},
    {}};

PyMethodDef tensor_methods[] = {
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(to_numpy)), METH_VARARGS | METH_KEYWORDS,
     "numpy(*, force=False): a NumPy array over the same memory. ``force`` detaches first."},
    {"tolist", to_list, METH_NOARGS, "Nested lists of numbers."},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(to_dlpack)), METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the same memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {}};

}  // namespace

Tensor array_elements(PyObject* o) { return is_array(o) ? from_buffer(o, false) : Tensor(); }

PyBufferProcs tensor_buffer = {export_buffer, release_buffer};

void add_conversions(PyObject* module) {
  need(PyModule_AddFunctions(module, functions));
  for (PyMethodDef* m = tensor_methods; m->ml_name; ++m) {
    const Object method(need(PyDescr_NewMethod(tensor_type, m)));
    need(PyDict_SetItemString(tensor_type->tp_dict, m->ml_name, method.get()));
  }
}

}  // namespace rush::python
