// Operators as Python callables, straight from the registry: one generic argument parser that reads the schema, for
// functions, methods, in-place (`name_`) and out= forms.
#include <map>
#include <string>

#include "python.h"
#include "sequence.h"

namespace rush::python {

namespace {

using Overloads = std::span<const OpInfo* const>;

/// A callable over an overload set. As an attribute of Tensor it is a method.
struct Operator {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  Overloads overloads;
  bool in_place;
  bool method;  // takes no out
  bool dunder;  // `__add__`: what can't be converted is left to the other operand
  PyObject* name;
};

PyTypeObject* operator_type = nullptr;

std::string_view python_name(const Schema& s, size_t i) {
  return i == 0 && s.args[0].name == "self" ? std::string_view("input") : s.args[i].name;
}

std::string_view python_type(const Arg& a) {
  switch (a.kind) {
    case Kind::Tensor:
      return "Tensor";
    case Kind::OptTensor:
      return "Tensor | None";
    case Kind::Tensors:
      return "tuple of Tensors";
    case Kind::Int:
      return "int";
    case Kind::OptInt:
      return "int | None";
    case Kind::Ints:
      return "tuple of ints";
    case Kind::OptInts:
      return "tuple of ints | None";
    case Kind::Float:
      return "float";
    case Kind::OptFloat:
      return "float | None";
    case Kind::Floats:
      return "tuple of floats";
    case Kind::OptFloats:
      return "tuple of floats | None";
    case Kind::Bool:
      return "bool";
    case Kind::OptBool:
      return "bool | None";
    case Kind::Bools:
      return "tuple of bools";
    case Kind::Scalar:
      return "Number";
    case Kind::OptScalar:
      return "Number | None";
    case Kind::Scalars:
      return "tuple of Numbers";
    case Kind::Str:
      return "str";
    case Kind::OptStr:
      return "str | None";
    case Kind::DType:
      return "torch.dtype";
    case Kind::OptDType:
      return "torch.dtype | None";
    case Kind::OptDevice:
      return "torch.device | None";
    case Kind::Generator:
      return "torch.Generator | None";
    case Kind::OptMemoryFormat:
      return "torch.memory_format | None";
    case Kind::OptLayout:
      return "torch.layout | None";
  }
  return "object";
}

/// `(Tensor input, int dim, *, bool keepdim=False)`, as error messages list overloads.
std::string signature(const Schema& s) {
  std::string out = "(";
  bool starred = false;
  for (size_t i = 0; i < s.count; ++i) {
    if (i) out += ", ";
    if (s.args[i].keyword_only && !std::exchange(starred, true)) out += "*, ";
    out += text(python_type(s.args[i]), ' ', python_name(s, i));
    if (!s.args[i].fallback.empty()) out += text('=', s.args[i].fallback);
  }
  return out + ")";
}

/// What converted arguments point to while the call runs. Made for every call: the rarer kinds are made when needed.
struct Scratch {
  SmallVector<Tensor, 4> tensors;  // made from numbers
  Dims ints[2];
  size_t used_ints = 0;
  struct More {
    std::vector<std::unique_ptr<std::vector<Tensor>>> lists;
    std::vector<std::unique_ptr<Dims>> ints;
    std::vector<std::unique_ptr<double[]>> floats;
    std::vector<std::unique_ptr<bool[]>> bools;
    std::vector<std::unique_ptr<std::vector<Scalar>>> scalars;
  };
  std::unique_ptr<More> more;
  [[gnu::always_inline]] Dims& next_ints() {
    if (used_ints < std::size(ints)) return ints[used_ints++];
    return *rarer().ints.emplace_back(std::make_unique<Dims>());
  }
  More& rarer() {
    if (!more) more = std::make_unique<More>();
    return *more;
  }
};

/// Room for a call's Values, not set to anything.
struct Values {
  alignas(Value) std::byte room[kMaxArgs * sizeof(Value)];
  Value* data() { return std::launder(reinterpret_cast<Value*>(room)); }
};

bool to_int_slowly(PyObject* o, int64_t& out);
/// An int, a NumPy integer or a one-element integer tensor; neither a float nor a bool.
inline bool to_int(PyObject* o, int64_t& out) {
  return (PyLong_CheckExact(o) && small_int(o, out)) || to_int_slowly(o, out);
}
bool to_int_slowly(PyObject* o, int64_t& out) {
  if (PyLong_CheckExact(o)) {
    out = PyLong_AsLongLong(o);
    if (out == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      raise("Overflow when unpacking long: ", text_of(Object(PyObject_Str(o)).get()));
    }
    return true;
  }
  if (PyBool_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || o == Py_None || !PyIndex_Check(o)) return false;
  if (is_tensor(o) && (unwrap(o).numel() != 1 || !is_integral(unwrap(o).dtype()))) return false;
  const Object index(PyNumber_Index(o));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  out = PyLong_AsLongLong(index.get());
  return !(out == -1 && PyErr_Occurred() && (PyErr_Clear(), true));
}

/// A list of ints. One number stands for it where the schema gives a length, or where several could stand for it
/// (zeros(2), x.view(6)).
bool to_ints(PyObject* o, const Schema& s, const Arg& arg, Scratch& scratch, Value& out) {
  int64_t one;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Dims& ints = scratch.next_ints();
    ints.resize(size_t(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!to_int(item_of(o, i).get(), ints[size_t(i)])) return false;
    if (n == 1 && arg.length > 1) ints = Dims(size_t(arg.length), ints[0]);
    out = Value(Ints(ints));
    return true;
  }
  const auto position = size_t(&arg - &s.args[0]);
  const bool spreads = position == size_t(s.is_method()) && s.positional == position + 1;
  if ((arg.kind == Kind::Ints && !arg.length && !spreads) || !to_int(o, one)) return false;
  Dims& ints = scratch.next_ints();
  ints.resize(size_t(arg.length ? arg.length : 1));
  std::fill(ints.begin(), ints.end(), one);
  out = Value(Ints(ints));
  return true;
}

bool to_tensor(PyObject* o, bool numbers, Scratch& scratch, Value& out) {
  if (is_tensor(o)) {
    out = Value(unwrap(o));
    return true;
  }
  if (!numbers || !is_number(o)) return false;
  if (scratch.tensors.size() == 4) raise("too many numbers among the arguments");  // growing would move the others
  scratch.tensors.push_back(Tensor(number_from(o)));
  out = Value(scratch.tensors.back());
  return true;
}

bool to_value(PyObject* o, const Schema& s, const Arg& arg, Scratch& scratch, Value& out) {
  if (o == Py_None) {
    switch (arg.kind) {
      case Kind::OptTensor:
      case Kind::OptInt:
      case Kind::OptInts:
      case Kind::OptFloat:
      case Kind::OptFloats:
      case Kind::OptBool:
      case Kind::OptScalar:
      case Kind::OptStr:
      case Kind::OptDType:
      case Kind::OptDevice:
      case Kind::Generator:
      case Kind::OptMemoryFormat:
      case Kind::OptLayout:
        out = Value();
        return true;
      default:
        return false;
    }
  }
  switch (arg.kind) {
    case Kind::Tensor:
    case Kind::OptTensor:
      return to_tensor(o, arg.number, scratch, out);
    case Kind::Tensors: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      auto list = std::make_unique<std::vector<Tensor>>();
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      list->reserve(size_t(n));
      for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, i);
        if (item == Py_None && arg.holes)
          list->push_back(Tensor());
        else if (is_tensor(item))
          list->push_back(unwrap(item));
        else
          return false;
      }
      out = Value(Tensors(*list));
      scratch.rarer().lists.push_back(std::move(list));
      return true;
    }
    case Kind::Int:
    case Kind::OptInt: {
      int64_t v;
      if (is_tensor(o) && (unwrap(o).dim() != 0 || unwrap(o).dtype() == kBool)) return false;
      if (!to_int(o, v)) return false;
      out = Value(v);
      return true;
    }
    case Kind::Ints:
    case Kind::OptInts:
      return to_ints(o, s, arg, scratch, out);
    case Kind::Float:
    case Kind::OptFloat:
    case Kind::Scalar:
    case Kind::OptScalar: {
      if (is_tensor(o)) {
        if (unwrap(o).numel() != 1 || unwrap(o).requires_grad()) return false;
        out = Value(unwrap(o).item());
      } else if (is_number(o)) {
        out = Value(number_from(o));
      } else {
        return false;
      }
      return out.tag != Value::Tag::Complex || arg.kind == Kind::Scalar || arg.kind == Kind::OptScalar;
    }
    case Kind::Bool:
    case Kind::OptBool: {
      if (!PyBool_Check(o)) {
        if (!is_number(o) || !number_from(o).is_bool()) return false;  // NumPy's bool
      }
      out = Value(PyObject_IsTrue(o) == 1);
      return true;
    }
    case Kind::Floats:
    case Kind::OptFloats: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) {
        if (!is_number(o)) return false;
        scratch.rarer().floats.emplace_back(new double[1]{number_from(o).to_double()});
        out = Value(std::span<const double>(scratch.rarer().floats.back().get(), 1));
        return true;
      }
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      scratch.rarer().floats.emplace_back(new double[size_t(n) + 1]);
      for (Py_ssize_t i = 0; i < n; ++i) {
        const Object item = item_of(o, i);
        if (is_tensor(item.get()))
          scratch.rarer().floats.back()[size_t(i)] = unwrap(item.get()).item().to_double();
        else if (is_number(item.get()))
          scratch.rarer().floats.back()[size_t(i)] = number_from(item.get()).to_double();
        else
          return false;
      }
      out = Value(std::span<const double>(scratch.rarer().floats.back().get(), size_t(n)));
      return true;
    }
    case Kind::Bools: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      scratch.rarer().bools.emplace_back(new bool[size_t(n) + 1]);
      for (Py_ssize_t i = 0; i < n; ++i)
        scratch.rarer().bools.back()[size_t(i)] = PyObject_IsTrue(item_of(o, i).get()) == 1;
      out = Value(std::span<const bool>(scratch.rarer().bools.back().get(), size_t(n)));
      return true;
    }
    case Kind::Scalars: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
      auto list = std::make_unique<std::vector<Scalar>>();
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
        const Object item = item_of(o, i);
        if (is_tensor(item.get()))
          list->push_back(unwrap(item.get()).item());
        else if (is_number(item.get()))
          list->push_back(number_from(item.get()));
        else
          return false;
      }
      out = Value(std::span<const Scalar>(*list));
      scratch.rarer().scalars.push_back(std::move(list));
      return true;
    }
    case Kind::Str:
    case Kind::OptStr:
      if (!PyUnicode_Check(o)) return false;
      out = Value(text_of(o));
      return true;
    case Kind::DType:
    case Kind::OptDType:
      if (!is_dtype(o)) return false;
      out = Value(dtype_from(o));
      return true;
    case Kind::OptDevice:
      if (!is_device(o) && !PyUnicode_Check(o) && !(PyLong_CheckExact(o))) return false;
      out = Value(device_from(o));
      return true;
    case Kind::Generator:
      if (!is_generator(o)) return false;
      out = Value(generator_from(o));
      return true;
    case Kind::OptMemoryFormat:
      if (!is_memory_format(o)) return false;
      out = Value(memory_format_from(o));
      return true;
    case Kind::OptLayout:
      if (!is_layout(o)) return false;
      check<NotImplementedError>(is_strided(o), "layout: only torch.strided is available");
      out = Value();
      return true;
  }
  return false;
}

/// NumPy's keyword names, which PyTorch takes too.
std::string_view canonical(const Schema& s, std::string_view name) {
  if (name == "axis" && s.find("dim") >= 0) return "dim";
  if (name == "keepdims" && s.find("keepdim") >= 0) return "keepdim";
  if (name == "input" && s.args[0].name == "self") return "self";
  if (name == "x" && s.args[0].name == "self") return "self";
  return name;
}

/// Arguments as the caller gave them.
struct Call {
  PyObject* const* args;
  size_t count;
  PyObject* kwnames;
  bool method;              // args[0] is the object the method was looked up on
  PyObject* out = nullptr;  // the out= keyword
};

/// PyTorch's operators that make a tensor of numbers alone: `add(1, 2)`.
bool takes_numbers_alone(std::string_view name) {
  constexpr std::string_view names[] = {"add",      "sub",    "mul",         "div",         "subtract",
                                        "multiply", "divide", "true_divide", "floor_divide"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Converts the call's arguments to one overload's values. If they don't fit, `reason` says why.
bool parse(const OpInfo& op, const Call& call, Scratch& scratch, Value* values, std::string* reason) {
  const Schema& s = *op.schema;
  const auto refuse = [&](auto&&... parts) {
    if (reason) *reason = text(op.name(), "(): ", parts...);
    return false;
  };
  const auto wrong_type = [&](size_t i, PyObject* o, size_t position) {
    if (reason && s.args[i].name == "reduction")
      raise<ValueError>(text_of(Object(need(PyObject_Str(o))).get()), " is not a valid value for reduction");
    const std::string where = position ? text(" (position ", position, ")") : std::string();
    return refuse("argument '", python_name(s, i), "'", where, " must be ", python_type(s.args[i]), ", not ",
                  Py_TYPE(o)->tp_name);
  };
  uint32_t given = 0;
  size_t taken = 0;
  for (size_t i = 0; i < call.count; ++i) {
    if (call.count > s.positional && i + 1 >= s.positional) {
      // zeros(2, 3), x.view(2, 3): trailing integers stand for one list of them.
      const size_t first = s.is_method() && call.method ? 1 : 0;
      if (i == first && s.positional == first + 1 && s.args[i].kind == Kind::Ints) {
        Dims& ints = scratch.next_ints();
        ints.resize(call.count - i);
        bool integers = true;
        int64_t* const numbers = ints.data();
        for (size_t k = i; k < call.count && integers; ++k) integers = to_int(call.args[k], numbers[k - i]);
        if (integers) {
          values[i] = Value(Ints(ints));
          break;
        }
      }
      if (i >= s.positional)
        return refuse("takes ", s.positional, " positional argument", s.positional == 1 ? "" : "s", " but ", call.count,
                      call.count == 1 ? " was" : " were", " given");
    }
    // meshgrid(x, y), einsum("ij,jk", x, y): trailing tensors stand for one list of them.
    if (i + 1 == s.positional && s.args[i].kind == Kind::Tensors && is_tensor(call.args[i])) {
      auto list = std::make_unique<std::vector<Tensor>>();
      for (size_t k = i; k < call.count; ++k) {
        if (!is_tensor(call.args[k])) return wrong_type(i, call.args[k], k + 1);
        list->push_back(unwrap(call.args[k]));
      }
      values[i] = Value(Tensors(*list));
      scratch.rarer().lists.push_back(std::move(list));
      given |= 1u << i;
      taken = i + 1;
      break;
    }
    if (Py_TYPE(call.args[i]) == tensor_type && s.args[i].kind == Kind::Tensor)
      values[i] = Value(unwrap(call.args[i]));
    else if (!to_value(call.args[i], s, s.args[i], scratch, values[i]))
      return wrong_type(i, call.args[i], i + 1);
    given |= 1u << i;
    taken = i + 1;
  }
  if (call.count > s.positional) taken = s.positional, given |= 1u << (s.positional - 1);
  if (call.kwnames) {
    const Py_ssize_t n = PyTuple_GET_SIZE(call.kwnames);
    for (Py_ssize_t k = 0; k < n; ++k) {
      const std::string_view name = text_of(PyTuple_GET_ITEM(call.kwnames, k));
      PyObject* o = call.args[call.count + size_t(k)];
      if (name == "out" && call.out) continue;
      const int i = s.find(canonical(s, name));
      if (i < 0) return refuse("got an unexpected keyword argument '", name, "'");
      if (given >> i & 1) return refuse("got multiple values for argument '", name, "'");
      if (!to_value(o, s, s.args[size_t(i)], scratch, values[i])) return wrong_type(size_t(i), o, 0);
      given |= 1u << i;
    }
  }
  if (!scratch.tensors.empty() && !takes_numbers_alone(op.name())) {  // elsewhere a number must meet a tensor
    bool met = false;
    for (size_t i = 0; i < s.count; ++i)
      met |= (given >> i & 1) && values[i].tag == Value::Tag::Tensor && !values[i].tensor().impl()->wrapped_number;
    if (!met) return refuse("at least one of the arguments must be a Tensor");
  }
  for (size_t i = taken; i < s.count; ++i) {
    if (given >> i & 1) continue;
    if (s.args[i].fallback.empty())
      return refuse("missing 1 required positional argument: \"", python_name(s, i), "\"");
    values[i] = op.defaults[i];
    if (s.args[i].kind == Kind::OptDevice && default_device && !holds_tensors(s.args[0].kind))
      values[i] = Value(*default_device);
  }
  return true;
}

std::string kinds_given(const Call& call) {
  std::string out = "(";
  const auto one = [&](PyObject* o) {
    if (PyTuple_Check(o) || PyList_Check(o)) {
      out += PyTuple_Check(o) ? "tuple of (" : "list of [";
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o) && i < 8; ++i)
        out += text(i ? ", " : "", Py_TYPE(PySequence_Fast_GET_ITEM(o, i))->tp_name);
      out += PyTuple_Check(o) ? ")" : "]";
    } else {
      out += Py_TYPE(o)->tp_name;
    }
  };
  for (size_t i = 0; i < call.count; ++i) {
    if (i) out += ", ";
    one(call.args[i]);
  }
  for (Py_ssize_t k = 0; call.kwnames && k < PyTuple_GET_SIZE(call.kwnames); ++k) {
    out += text(out.size() > 1 ? ", " : "", text_of(PyTuple_GET_ITEM(call.kwnames, k)), "=");
    one(call.args[call.count + size_t(k)]);
  }
  return out + ")";
}

[[noreturn]] void raise_no_overload(const Operator& op, const Call& call) {
  std::string reason;
  Value values[kMaxArgs];
  if (op.overloads.size() == 1) {
    Scratch scratch;
    parse(*op.overloads[0], call, scratch, values, &reason);
    throw TypeError(reason);
  }
  std::string message = text(text_of(op.name), "() received an invalid combination of arguments - got ",
                             kinds_given(call), ", but expected one of:");
  for (const OpInfo* o : op.overloads) {
    Scratch scratch;
    parse(*o, call, scratch, values, &reason);
    message += text("\n * ", signature(*o->schema), "\n      ", reason);
  }
  throw TypeError(message);
}

/// A named tuple's fields one on a line.
PyObject* describe_results(PyObject* self) {
  return guarded([&]() -> PyObject* {
    std::string out = text(Py_TYPE(self)->tp_name, "(");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const Object shown(need(PyObject_Repr(PyTuple_GET_ITEM(self, i))));
      out += text(i ? ",\n" : "\n", Py_TYPE(self)->tp_members[i].name, '=', text_of(shown.get()));
    }
    out += ')';
    return need(PyUnicode_FromStringAndSize(out.data(), Py_ssize_t(out.size())));
  });
}

/// The named tuple type of an operator's results, made once.
PyTypeObject* result_type(const OpInfo& op) {
  static auto& types = *new std::map<const OpInfo*, PyTypeObject*>;
  PyTypeObject*& type = types[&op];
  if (!type) {
    auto* names = new std::vector<std::string>;  // lives as long as the type does
    auto* fields = new std::vector<PyStructSequence_Field>;
    names->push_back(text("torch.return_types.", op.name()));
    for (size_t i = 0; i < op.schema->results; ++i) names->push_back(std::string(op.schema->fields[i]));
    for (size_t i = 1; i < names->size(); ++i) fields->push_back({(*names)[i].c_str(), nullptr});
    fields->push_back({nullptr, nullptr});
    PyStructSequence_Desc desc{(*names)[0].c_str(), nullptr, fields->data(), int(op.schema->results)};
    type = PyStructSequence_NewType(&desc);
    if (!type) throw PythonError();
    type->tp_repr = describe_results;
    PyType_Modified(type);
  }
  return type;
}

PyObject* tuple_of(const Tensor* tensors, size_t n) {
  Object tuple(need(PyTuple_New(Py_ssize_t(n))));
  for (size_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), need(wrap(tensors[i])));
  return tuple.release();
}

PyObject* wrap_results(const OpInfo& op, const Results& results) {
  switch (op.schema->returns) {
    case Returns::Tensor:
      return wrap(results.tensors[0]);
    case Returns::List:
      return tuple_of(results.list.data(), results.list.size());
    case Returns::Tuple: {
      if (op.schema->fields[0].empty()) return tuple_of(results.tensors, results.count);
      Object tuple(need(PyStructSequence_New(result_type(op))));
      for (size_t i = 0; i < results.count; ++i)
        PyStructSequence_SET_ITEM(tuple.get(), Py_ssize_t(i), need(wrap(results.tensors[i])));
      return tuple.release();
    }
    case Returns::Nothing:
      Py_RETURN_NONE;
    default:
      return wrap(results.number);
  }
}

/// Big calls let other Python threads run meanwhile; for small ones that would cost more than the call. What is not
/// pointwise may work long on few elements: a convolution of 10,000 keeps other threads waiting half a millisecond.
bool is_big(const OpInfo& op, const Value* values) {
  if (op.view) return false;
  const int64_t big = op.pointwise ? 20000 : 8000;
  for (size_t i = 0; i < op.schema->count; ++i) {
    if (values[i].tag == Value::Tag::Tensor && values[i].tensor().numel() > big) return true;
    if (values[i].tag == Value::Tag::Tensors)
      for (const Tensor& t : values[i].tensors())
        if (t.defined() && t.numel() > big) return true;
  }
  return false;
}

template <class F>
void run_unlocked(bool big, F&& f) {
  if (big) {
    const ReleaseGil unlocked;
    f();
  } else {
    f();
  }
}

/// Set while _call_composite runs: the operator that is called uses its composite instead of its kernel.
thread_local bool call_composite = false;

PyObject* run(const Operator& callable, const OpInfo& op, const Value* values, const Call& call) {
  const bool big = is_big(op, values);
  if (op.schema->returns == Returns::Tensor && !callable.in_place && !call.out && !call_composite) {  // most calls
    Tensor result;
    Results results{&result, 1, {}, 0};
    run_unlocked(big, [&] { dispatch(op, values, results); });
    return wrap(std::move(result));
  }
  if (callable.in_place) {
    run_unlocked(big, [&] { dispatch_in_place(op, values); });
    Py_INCREF(call.args[0]);
    return call.args[0];
  }
  if (call.out && call.out != Py_None) {
    std::vector<Tensor> targets;
    if (is_tensor(call.out))
      targets.push_back(unwrap(call.out));
    else if (PyTuple_Check(call.out) || PyList_Check(call.out)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(call.out); ++i) {
        PyObject* o = PySequence_Fast_GET_ITEM(call.out, i);
        check<TypeError>(is_tensor(o), op.name(), "(): argument 'out' must be Tensor or tuple of Tensors, not ",
                         Py_TYPE(o)->tp_name, " inside");
        targets.push_back(unwrap(o));
      }
    } else {
      raise<TypeError>(op.name(), "(): argument 'out' must be Tensor, not ", Py_TYPE(call.out)->tp_name);
    }
    run_unlocked(big, [&] { dispatch_out(op, values, targets); });
    if (op.schema->returns == Returns::Tuple) {
      Results results{targets.data(), targets.size(), {}, 0};
      return wrap_results(op, results);
    }
    Py_INCREF(call.out);
    return call.out;
  }
  Tensor tensors[kMaxResults];
  Results results{tensors, op.schema->returns == Returns::Tensor ? 1 : op.schema->results, {}, 0};
  if (std::exchange(call_composite, false)) {
    if (!op.run_composite) raise<NotImplementedError>(op.name(), ": this overload has no composite");
    op.run_composite(op, values, results);
  } else {
    run_unlocked(big, [&] { dispatch(op, values, results); });
  }
  return wrap_results(op, results);
}

[[gnu::always_inline]] inline PyObject* call_parsed(const Operator& callable, Call& call) {
  if (call.kwnames) {
    const Py_ssize_t n = PyTuple_GET_SIZE(call.kwnames);
    for (Py_ssize_t k = 0; k < n && !callable.in_place && !callable.method; ++k)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, k), "out") == 0 &&
          callable.overloads[0]->schema->find("out") < 0)
        call.out = call.args[call.count + size_t(k)];
  }
  Values room;
  Value* const values = room.data();
  for (const OpInfo* op : callable.overloads) {
    Scratch scratch;
    if (parse(*op, call, scratch, values, nullptr)) return run(callable, *op, values, call);
  }
  if (callable.dunder) Py_RETURN_NOTIMPLEMENTED;
  raise_no_overload(callable, call);
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const auto& callable = *reinterpret_cast<Operator*>(self);
    const auto n = size_t(PyVectorcall_NARGS(nargsf));
    PyObject* result;
    if (torch_function(self, args, n, kwnames, result)) return result;
    const bool method = n > 0 && is_tensor(args[0]);
    if (callable.in_place)
      check<TypeError>(method, text_of(callable.name), "(): the first argument must be Tensor", n ? ", not " : "",
                       n ? Py_TYPE(args[0])->tp_name : "");
    Call call{args, n, kwnames, method};
    return call_parsed(callable, call);
  });
}

PyObject* describe(PyObject* self) {
  const auto& o = *reinterpret_cast<Operator*>(self);
  return PyUnicode_FromFormat("<built-in method %U of rushlight>", o.name);
}

PyObject* get_bound(PyObject* self, PyObject* object, PyObject*) {
  if (!object) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

PyObject* get_doc(PyObject* self, void*) {
  return guarded([&] {
    const auto& o = *reinterpret_cast<Operator*>(self);
    std::string doc;
    for (const OpInfo* op : o.overloads) doc += text(text_of(o.name), signature(*op->schema), "\n");
    const OpInfo* last = nullptr;
    for (const OpInfo* op : o.overloads) {
      if (*op->doc && (!last || std::string_view(last->doc) != op->doc)) doc += text('\n', op->doc, '\n');
      last = op;
    }
    if (o.in_place) doc += text("\nIn place: the result is written over the tensor itself, which is returned.\n");
    return PyUnicode_FromStringAndSize(doc.data(), Py_ssize_t(doc.size()));
  });
}

PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("rushlight._C"); }
PyObject* get_name(PyObject* self, void*) {
  PyObject* name = reinterpret_cast<Operator*>(self)->name;
  Py_INCREF(name);
  return name;
}
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* name = reinterpret_cast<Operator*>(self)->name;
  Py_INCREF(name);
  return name;  // pickle looks it up in __module__
}

/// The schemas, for tests and stubs: a tuple of str.
PyObject* get_schemas(PyObject* self, void*) {
  return guarded([&] {
    const auto& o = *reinterpret_cast<Operator*>(self);
    Object tuple(need(PyTuple_New(Py_ssize_t(o.overloads.size()))));
    for (size_t i = 0; i < o.overloads.size(); ++i) {
      const std::string_view t = o.overloads[i]->schema->text;
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), need(PyUnicode_FromStringAndSize(t.data(), Py_ssize_t(t.size()))));
    }
    return tuple.release();
  });
}

/// What tests ask: for each overload a dict of what it has.
PyObject* get_traits(PyObject* self, void*) {
  return guarded([&] {
    const auto& o = *reinterpret_cast<Operator*>(self);
    Object tuple(need(PyTuple_New(Py_ssize_t(o.overloads.size()))));
    for (size_t i = 0; i < o.overloads.size(); ++i) {
      const OpInfo& op = *o.overloads[i];
      const Object on(PyBool_FromLong(1)), off(PyBool_FromLong(0));
      const auto flag = [&](bool v) { return v ? on.get() : off.get(); };
      PyTuple_SET_ITEM(
          tuple.get(), Py_ssize_t(i),
          need(Py_BuildValue("{sOsOsOsOsOsOsOsO}", "kernel", flag(op.has_kernel), "composite", flag(op.run_composite),
                             "vjp", flag(op.vjp), "in_place", flag(op.in_place), "view", flag(op.view), "random",
                             flag(op.random), "method", flag(op.schema->is_method()), "on_host", flag(op.on_host))));
    }
    return tuple.release();
  });
}

PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operator, vectorcall), READONLY, nullptr}, {}};
PyGetSetDef operator_getset[] = {
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"schemas", get_schemas, nullptr, "The operator's schemas, a tuple of str.", nullptr},
    {"traits", get_traits, nullptr, "For each schema a dict: has it a kernel, a vjp ...", nullptr},
    {}};
PyMethodDef operator_methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyType_Slot operator_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_repr, reinterpret_cast<void*>(describe)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(get_bound)},
                                {Py_tp_getset, operator_getset},
                                {Py_tp_members, operator_members},
                                {Py_tp_methods, operator_methods},
                                {}};
PyType_Spec operator_spec{"rushlight._C.Operator", sizeof(Operator), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                          operator_slots};

PyObject* make_operator(Overloads overloads, const std::string& name, bool in_place, bool method) {
  auto* o = PyObject_New(Operator, operator_type);
  if (!o) throw PythonError();
  o->vectorcall = vectorcall;
  new (&o->overloads) Overloads(overloads);
  o->in_place = in_place;
  o->method = method;
  o->dunder = name.starts_with("__");
  o->name = PyUnicode_InternFromString(name.c_str());
  return reinterpret_cast<PyObject*>(o);
}

std::map<std::string, Operator*, std::less<>>& callables() {
  static auto& map = *new std::map<std::string, Operator*, std::less<>>;
  return map;
}

/// The type of the named tuple that an operator returns, for torch.return_types; None if it returns none.
PyObject* result_type_function(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    for (const OpInfo* op : find_ops(text_of(name))) {
      if (op->schema->returns != Returns::Tuple || op->schema->fields[0].empty()) continue;
      return Object::borrow(reinterpret_cast<PyObject*>(result_type(*op))).release();
    }
    Py_RETURN_NONE;
  });
}
/// _call_composite(operator, *args, **kwargs): the result by the operator's composite, for tests.
PyObject* call_composite_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    check<TypeError>(n > 0 && Py_TYPE(args[0]) == operator_type, "the first argument must be an operator");
    const auto& callable = *reinterpret_cast<Operator*>(args[0]);
    const size_t rest = size_t(n) - 1;
    call_composite = true;
    PyObject* result = nullptr;
    try {
      Call call{args + 1, rest, kwnames, rest > 0 && is_tensor(args[1])};
      result = call_parsed(callable, call);
    } catch (...) {
      call_composite = false;
      throw;
    }
    return result;
  });
}
PyMethodDef operator_functions[] = {
    {"_result_type", result_type_function, METH_O, nullptr},
    {"_call_composite", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_composite_function)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {}};

}  // namespace

PyObject* find_callable(std::string_view name) {
  const auto it = callables().find(name);
  return it == callables().end() ? nullptr : reinterpret_cast<PyObject*>(it->second);
}

PyObject* call_operator(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* kwnames) {
  if (callable) return vectorcall(callable, args, nargs, kwnames);
  PyErr_SetString(PyExc_NotImplementedError, "this operator is not available");
  return nullptr;
}

PyObject* call_binary(PyObject* found, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (!found) raise<NotImplementedError>("this operator is not available");
    const Operator& callable = *reinterpret_cast<Operator*>(found);
    PyObject* args[2] = {a, b};
    PyObject* result;
    if (torch_function(found, args, 2, nullptr, result)) return result;
    Values room;
    Value* const values = room.data();
    Scratch scratch;
    if (!to_tensor(a, true, scratch, values[0]) || !to_tensor(b, true, scratch, values[1])) Py_RETURN_NOTIMPLEMENTED;
    const OpInfo& op = *callable.overloads[0];
    for (size_t i = 2; i < op.schema->count; ++i) values[i] = op.defaults[i];
    return run(callable, op, values, {args, 2, nullptr, true});
  });
}

/// Names that mean a dtype, a builtin or a subpackage where a module has them: such operators are methods only.
bool is_method_only(std::string_view name) {
  constexpr std::string_view names[] = {"bool",   "int",    "long",    "short", "half", "bfloat16",   "float",
                                        "double", "cfloat", "cdouble", "cpu",   "cuda", "pin_memory", "is_pinned"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void add_operators(PyObject* module) {
  operator_type = reinterpret_cast<PyTypeObject*>(need(PyType_FromSpec(&operator_spec)));
  need(PyModule_AddFunctions(module, operator_functions));
  need(PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(operator_type)));
  const auto list = all_ops();
  Object names(need(PyList_New(0)));
  for (size_t i = 0, j; i < list.size(); i = j) {
    const std::string name(list[i]->name());
    for (j = i + 1; j < list.size() && list[j]->name() == list[i]->name();) ++j;
    const Overloads overloads = list.subspan(i, j - i);
    const auto add = [&](const std::string& full, bool in_place) {
      const Object callable(make_operator(overloads, full, in_place, false));
      callables()[full] = reinterpret_cast<Operator*>(callable.get());
      if (!is_method_only(full)) need(PyModule_AddObjectRef(module, full.c_str(), callable.get()));
      // Methods that tensor_type.cpp wrote by hand stay.
      if (overloads[0]->schema->is_method() && full[0] != '_' &&
          !PyDict_GetItemString(tensor_type->tp_dict, full.c_str()))
        need(PyDict_SetItemString(tensor_type->tp_dict, full.c_str(),
                                  Object(make_operator(overloads, full, in_place, true)).get()));
    };
    add(name, false);
    bool in_place = false;
    for (const OpInfo* op : overloads) in_place |= op->in_place;
    if (in_place) add(name + "_", true);
    need(PyList_Append(names.get(), Object(need(PyUnicode_FromString(name.c_str()))).get()));
  }
  // As attributes, these take keywords (alpha) besides; the type's slots stay as they are.
  for (const auto& [dunder, op] :
       {std::pair("__add__", "add"), {"__sub__", "sub"}, {"__iadd__", "add"}, {"__isub__", "sub"}}) {
    const Object callable(make_operator(find_ops(op), dunder, dunder[2] == 'i', true));
    need(PyDict_SetItemString(tensor_type->tp_dict, dunder, callable.get()));
  }
  PyType_Modified(tensor_type);
  need(PyModule_AddObjectRef(module, "_operator_names", names.get()));
}

}  // namespace rush::python
