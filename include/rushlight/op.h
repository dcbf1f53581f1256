// What an operator is. One line in an index file declares it, one block in src/ops defines it:
//
//   OP(silu, "silu(Tensor self) -> Tensor")                                  // include/rushlight/ops/activations.def
//   OP(max, "max(Tensor self) -> Tensor",                                    // an overload set: several schemas,
//           "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
//
//   OP_DEFINE(silu){{.doc = "...", .infer = like_input, .kernel = {cpu::silu}, .saves = "self", .vjp = ...}};
//   OP_DEFINE(max){{...}, {...}};                                            // and as many blocks
//
// The typed call boxes its arguments into Values on the stack and goes through dispatch(), the front door, the one
// place where autograd records, autocast casts and the profiler looks. Nothing else in the library is typed by operator
// but the thunks below, which unbox for the block's functions.
#pragma once
#include <span>
#include <tuple>

#include "rushlight/schema.h"
#include "rushlight/small_vector.h"
#include "rushlight/tensor.h"

namespace rush {

/// One boxed argument. It borrows: what it points to outlives the call. 24 bytes, no destructor.
struct Value {
  enum class Tag : uint8_t {
    None,
    Tensor,
    Tensors,
    Int,
    Float,
    Bool,
    Complex,
    Ints,
    Floats,
    Bools,
    Scalars,
    Str,
    Other
  };
  Tag tag = Tag::None;
  uint32_t size = 0;  // of what `pointer` points to
  union {
    const void* pointer = nullptr;
    int64_t integer;
    double number;
  };
  double imag = 0;

  constexpr Value() = default;
  Value(const Tensor& t) : tag(t.defined() ? Tag::Tensor : Tag::None), pointer(&t) {}
  constexpr Value(Tensors t) : tag(Tag::Tensors), size(uint32_t(t.size())), pointer(t.data()) {}
  constexpr Value(int64_t v) : tag(Tag::Int), integer(v) {}
  constexpr Value(double v) : tag(Tag::Float), number(v) {}
  constexpr Value(int v) : Value(int64_t(v)) {}
  constexpr Value(bool v) : tag(Tag::Bool), integer(v) {}
  constexpr Value(const char* v) : Value(std::string_view(v)) {}
  constexpr Value(std::nullopt_t) {}
  constexpr Value(Ints v) : tag(Tag::Ints), size(uint32_t(v.size())), pointer(v.data()) {}
  constexpr Value(std::span<const double> v) : tag(Tag::Floats), size(uint32_t(v.size())), pointer(v.data()) {}
  constexpr Value(std::span<const bool> v) : tag(Tag::Bools), size(uint32_t(v.size())), pointer(v.data()) {}
  constexpr Value(std::span<const Scalar> v) : tag(Tag::Scalars), size(uint32_t(v.size())), pointer(v.data()) {}
  constexpr Value(std::string_view v) : tag(Tag::Str), size(uint32_t(v.size())), pointer(v.data()) {}
  Value(const Scalar& s) {
    if (s.is_bool())
      *this = Value(s.to<bool>());
    else if (s.is_int())
      *this = Value(s.to_int());
    else if (s.is_float())
      *this = Value(s.to_double());
    else {
      const auto c = s.to_complex();
      *this = Value(c.real());
      tag = Tag::Complex;
      imag = c.imag();
    }
  }
  constexpr Value(DType t) : tag(Tag::Other), integer(int(t)) {}
  constexpr Value(MemoryFormat f) : tag(Tag::Other), integer(int(f)) {}
  constexpr Value(Device d) : tag(Tag::Other), integer(int(d.type) * 256 + uint8_t(d.index)) {}
  constexpr Value(Generator* g) : tag(g ? Tag::Other : Tag::None), pointer(g) {}
  template <class T>
  constexpr Value(const std::optional<T>& v) : Value() {
    if (v) *this = Value(*v);
  }

  bool is_none() const { return tag == Tag::None; }
  Scalar scalar() const {
    switch (tag) {
      case Tag::Bool:
        return Scalar(integer != 0);
      case Tag::Int:
        return Scalar(integer);
      case Tag::Float:
        return Scalar(number);
      default:
        return Scalar(std::complex<double>(number, imag));
    }
  }
  const Tensor& tensor() const { return *static_cast<const Tensor*>(pointer); }
  Tensors tensors() const { return Tensors(static_cast<const Tensor*>(pointer), size); }
};

extern const Tensor undefined_tensor;

/// A GPU by its index: "cuda" is the current one. Throws Error if there is none.
Device indexed_cuda(Device device);
inline Device indexed(Device device) { return device.is_cuda() ? indexed_cuda(device) : device; }

// How each kind looks in C++, and how it comes out of a Value.
template <Kind K>
struct Boxed;
#define RUSH_BOXED(kind, cpp, from)                                   \
  template <>                                                         \
  struct Boxed<Kind::kind> {                                          \
    using type = cpp;                                                 \
    static type get([[maybe_unused]] const Value& v) { return from; } \
  };
#define RUSH_OPTIONAL(kind, cpp, from)                                            \
  template <>                                                                     \
  struct Boxed<Kind::kind> {                                                      \
    using type = std::optional<cpp>;                                              \
    static type get(const Value& v) { return v.is_none() ? type() : type(from); } \
  };
template <class T>
std::span<const T> span_of(const Value& v) {
  return {static_cast<const T*>(v.pointer), v.size};
}
RUSH_BOXED(Tensor, const Tensor&, v.tensor())
RUSH_BOXED(OptTensor, const Tensor&, v.is_none() ? undefined_tensor : v.tensor())
RUSH_BOXED(Tensors, Tensors, v.tensors())
RUSH_BOXED(Int, int64_t, v.integer)
RUSH_BOXED(Float, double, v.scalar().to_double())
RUSH_BOXED(Bool, bool, v.integer != 0)
RUSH_BOXED(Ints, Ints, Ints(static_cast<const int64_t*>(v.pointer), v.size))
RUSH_BOXED(Floats, std::span<const double>, span_of<double>(v))
RUSH_BOXED(Bools, std::span<const bool>, span_of<bool>(v))
RUSH_BOXED(Scalars, std::span<const Scalar>, span_of<Scalar>(v))
RUSH_BOXED(Scalar, Scalar, v.scalar())
RUSH_BOXED(Str, std::string_view, std::string_view(static_cast<const char*>(v.pointer), v.size))
RUSH_BOXED(DType, DType, rush::DType(v.integer))
RUSH_BOXED(Generator, Generator*, v.is_none() ? nullptr : static_cast<Generator*>(const_cast<void*>(v.pointer)))
RUSH_OPTIONAL(OptInt, int64_t, v.integer)
RUSH_OPTIONAL(OptFloat, double, v.scalar().to_double())
RUSH_OPTIONAL(OptBool, bool, v.integer != 0)
RUSH_OPTIONAL(OptInts, Ints, Ints(static_cast<const int64_t*>(v.pointer), v.size))
RUSH_OPTIONAL(OptFloats, std::span<const double>, span_of<double>(v))
RUSH_OPTIONAL(OptScalar, Scalar, v.scalar())
RUSH_OPTIONAL(OptStr, std::string_view, std::string_view(static_cast<const char*>(v.pointer), v.size))
RUSH_OPTIONAL(OptDType, DType, rush::DType(v.integer))
RUSH_OPTIONAL(OptDevice, Device, indexed(Device(DeviceType(v.integer >> 8), int8_t(v.integer & 255))))
RUSH_OPTIONAL(OptMemoryFormat, MemoryFormat, MemoryFormat(v.integer))
RUSH_BOXED(OptLayout, std::optional<int64_t>, std::optional<int64_t>())
#undef RUSH_BOXED
#undef RUSH_OPTIONAL

// What each return looks like in C++.
template <Returns R, size_t N>
struct ResultType {
  using type = void;
};
template <size_t N>
struct ResultType<Returns::Tensor, N> {
  using type = Tensor;
};
template <size_t N>
struct ResultType<Returns::Tuple, N> {
  using type = std::array<Tensor, N>;
};
template <size_t N>
struct ResultType<Returns::List, N> {
  using type = std::vector<Tensor>;
};
template <size_t N>
struct ResultType<Returns::Bool, N> {
  using type = bool;
};
template <size_t N>
struct ResultType<Returns::Int, N> {
  using type = int64_t;
};
template <size_t N>
struct ResultType<Returns::Float, N> {
  using type = double;
};
template <size_t N>
struct ResultType<Returns::Scalar, N> {
  using type = Scalar;
};

/// Where a call puts its results: `tensors` has room for a Tensor or a tuple; a Tensor[] comes in `list`.
struct Results {
  Tensor* tensors = nullptr;
  size_t count = 0;
  std::vector<Tensor> list;
  Scalar number = 0;
};

/// Gradients, one for each tensor argument in order (a Tensor[] argument gives as many as it has tensors). One that
/// is not needed or zero may be left undefined.
using Grads = SmallVector<Tensor, 3>;

/// Within a vjp: whether the gradient of the i-th tensor argument is wanted, so that it need not be computed.
bool needs_grad(size_t i);

/// What autocast does to an operator's floating-point arguments (float64 aside): nothing, a cast to the shorter type,
/// to float32, to the widest among them, or an error.
enum class Autocast : uint8_t { as_input, half, fp32, widest, unsafe };
/// PyTorch's lists for CUDA and for the CPU differ.
struct AutocastPolicy {
  Autocast cuda, cpu;
  constexpr AutocastPolicy(Autocast both = Autocast::as_input) : cuda(both), cpu(both) {}
  constexpr AutocastPolicy(Autocast on_cuda, Autocast on_cpu) : cuda(on_cuda), cpu(on_cpu) {}
};
constexpr AutocastPolicy on_cuda(Autocast policy) { return {policy, Autocast::as_input}; }
constexpr AutocastPolicy on_cpu(Autocast policy) { return {Autocast::as_input, policy}; }

/// Stands for a kernel on GPUs where there is none: the CPU's runs, on copies of the tensors in the host's memory.
/// docs/devices.md lists the operators.
struct OnHost {};
inline constexpr OnHost on_host;

struct OpInfo;

/// An operator's definition, without its types. What dispatch, autograd, Python and the tests read.
struct OpInfo {
  const Schema* schema;
  const char* doc;
  void (*run)(const OpInfo&, const Value* args, Results& results);            // infer and kernel, or composite
  void (*run_composite)(const OpInfo&, const Value* args, Results& results);  // null if there is none
  Meta (*infer)(const OpInfo&, const Value* args);                            // of a single result; may be null
  void (*run_into)(const OpInfo&, const Value* args, Tensor& out);  // the kernel alone, into `out`; may be null
  Grads (*vjp)(const OpInfo&, Tensors grads, Tensors results, const Value* args);
  uint32_t saved_args = 0, saved_shapes = 0, saved_results = 0;  // bit i: argument or result i
  std::array<uint32_t, kMaxArgs> saved_if{};  // argument i is kept only if one of these arguments needs a gradient
  bool view = false, pointwise = false, overwrites = false, in_place = false, has_kernel = false,
       differentiable = false, random = false, out_apart = false, across_devices = false, on_host = false;
  AutocastPolicy autocast;
  const char* onnx = "";
  std::array<Value, kMaxArgs> defaults{};

  std::string_view name() const { return schema->name; }
};

/// Every call of every operator passes here.
void dispatch(const OpInfo& op, const Value* args, Results& results);
/// The in-place form: writes the result over the first argument, with right history. Raises Error where it must not.
void dispatch_in_place(const OpInfo& op, const Value* args);
/// The out= form: resizes `out` to the results and writes them there.
void dispatch_out(const OpInfo& op, const Value* args, std::span<const Tensor> out);

/// Every operator, in the order of the index files; each schema of an overload set is one.
std::span<const OpInfo* const> all_ops();
/// The overload set of this name, empty if there is none.
std::span<const OpInfo* const> find_ops(std::string_view name);

template <Text S, class = std::make_index_sequence<schema_of<S>.count>>
struct Def;

/// The block that defines an operator. Give a kernel with infer, or a composite, or both.
template <Text S, size_t... I>
struct Def<S, std::index_sequence<I...>> {
  static constexpr const Schema& schema = schema_of<S>;
  static constexpr bool several = schema.returns != Returns::Tensor;
  template <size_t J>
  using arg = typename Boxed<schema.args[J].kind>::type;
  using Result = typename ResultType<schema.returns, schema.results>::type;
  using Metas = std::conditional_t<several, std::array<Meta, schema.results>, Meta>;
  using Gradient = std::conditional_t<several, const Tensors&, const Tensor&>;
  template <size_t>
  using Out = Tensor&;
  template <class>
  struct KernelType;
  template <size_t... R>
  struct KernelType<std::index_sequence<R...>> {
    using type = void (*)(Out<R>..., arg<I>...);
  };
  using Kernel = typename KernelType<std::make_index_sequence<schema.results>>::type;
  /// One function for every device (it ends in kernels that look where their result lies), or one for each; null for
  /// a device on which there is none.
  struct Kernels {
    Kernel cpu = nullptr, cuda = nullptr;
    bool host = false;
    constexpr Kernels() = default;
    constexpr Kernels(Kernel any) : cpu(any), cuda(any) {}
    constexpr Kernels(Kernel on_cpu, Kernel on_cuda) : cpu(on_cpu), cuda(on_cuda) {}
    constexpr Kernels(Kernel on_cpu, OnHost) : cpu(on_cpu), host(true) {}
  };

  const char* doc = "";
  /// Sizes and dtypes of the results; reads no data. Checks the arguments.
  Metas (*infer)(arg<I>...) = nullptr;
  /// Fills results that arrive allocated.
  Kernels kernel = {};
  /// The result in terms of other operators. What runs where a gradient is needed and there is no vjp.
  Result (*composite)(arg<I>...) = nullptr;
  /// What the vjp reads, comma-separated: argument names, "name.shape" for a tensor's sizes and dtype only, "result".
  /// "self if other" keeps self only where other needs a gradient.
  std::string_view saves = "";
  /// Gradients of the tensor arguments from the gradient(s) of the result(s), in differentiable operators. An argument
  /// that is not saved arrives undefined. The engine sums each to its argument's shape and casts it to its dtype.
  Grads (*vjp)(Gradient grad, Gradient result, arg<I>...) = nullptr;
  /// The result shares the first argument's memory.
  bool view = false;
  /// Element by element: the kernel may write over its first argument. Implies in_place.
  bool pointwise = false;
  /// Not pointwise, but the kernel may be given its first argument as the result. Implies in_place.
  bool overwrites = false;
  /// There is an in-place form `name_`.
  bool in_place = false;
  /// out= must not share memory with the arguments. (Others compute first and write then; pointwise ones may
  /// overwrite.)
  bool out_apart = false;
  /// Draws random numbers: not to be called twice for one result.
  bool random = false;
  /// Its tensors may be on different devices; it runs where the first one is.
  bool across_devices = false;
  AutocastPolicy autocast = {};
  /// The ONNX node(s) it exports to, as an expression of the arguments.
  const char* onnx = "";
};

/// Memory for a result of `meta`, on `device` unless meta names another.
Tensor allocate_result(const Meta& meta, Device device);
/// Tells the GPU's runtime whose work and memory comes next, and at its end, that it is again that of the operator
/// around. Nothing for other devices.
class Announcement {
 public:
  Announcement(const OpInfo& op, Device device) : op_(device.is_cuda() ? &op : nullptr) {
    if (op_) [[unlikely]]
      begin();
  }
  ~Announcement() {
    if (op_) [[unlikely]]
      end();
  }
  Announcement(const Announcement&) = delete;
  /// Before the kernel runs.
  void touches(const Value* args, const Tensor* results, size_t count) const {
    if (op_) [[unlikely]]
      say(args, results, count);
  }

 private:
  void begin() const;
  void end() const;
  void say(const Value* args, const Tensor* results, size_t count) const;
  const OpInfo* op_;
};
void copy_result(Tensor& out, const Tensor& value);
/// On copies of the tensors in the host's memory, the results of which go to `device`.
void run_on_host(const OpInfo& op, const Value* args, Results& results, Device device);
[[noreturn]] void raise_no_kernel(const OpInfo& op, Device device);
Device device_of(const OpInfo& op, const Value* args);
/// A default's text as a Value.
constexpr Value default_value(const Arg& arg);

template <Text S, class = std::make_index_sequence<schema_of<S>.count>>
struct Entry;

/// A definition with its thunks; the static type that an OpInfo is known to have inside them.
template <Text S, size_t... I>
struct Entry<S, std::index_sequence<I...>> : OpInfo {
  using D = Def<S>;
  static constexpr const Schema& sc = schema_of<S>;
  D def;

  constexpr Entry(const D& d) : OpInfo{}, def(d) {
    if (!d.composite && !(d.infer && d.kernel.cpu)) throw "an operator needs a composite, or infer and a kernel";
    schema = &sc;
    doc = d.doc;
    run = &run_thunk;
    if (d.composite) run_composite = &composite_thunk;
    if constexpr (sc.returns == Returns::Tensor) {
      if (d.infer) infer = &infer_thunk;
      if (d.kernel.cpu) run_into = &into_thunk;
    }
    if (d.vjp) vjp = &vjp_thunk;
    view = d.view;
    pointwise = d.pointwise;
    overwrites = d.overwrites || d.pointwise;
    in_place = d.in_place || overwrites;
    random = d.random;
    out_apart = d.out_apart;
    across_devices = d.across_devices;
    has_kernel = d.kernel.cpu != nullptr;
    on_host = d.kernel.host;
    differentiable = d.vjp || d.composite;
    autocast = d.autocast;
    onnx = d.onnx;
    std::string_view rest = d.saves;
    while (!rest.empty()) {
      std::string_view one = schema_parser::next(rest, ','), condition;
      if (const size_t at = one.find(" if "); at != one.npos) {
        condition = one.substr(at + 4);
        one = one.substr(0, at);
      }
      const bool shape = one.ends_with(".shape");
      if (shape) one.remove_suffix(6);
      const int i = sc.find(one);
      while (i >= 0 && !condition.empty()) {
        const int when = sc.find(schema_parser::next(condition, ' '));
        if (when < 0) throw "saves names no argument after 'if'";
        saved_if[i] |= 1u << when;
      }
      if (i >= 0)
        (shape ? saved_shapes : saved_args) |= 1u << i;
      else if (one == "result" && sc.returns == Returns::Tensor)
        saved_results |= 1;
      else {
        bool known = false;
        for (size_t r = 0; r < sc.results; ++r)
          if (sc.fields[r] == one) saved_results |= 1u << r, known = true;
        if (!known) throw "saves names neither an argument nor a result";
      }
    }
    for (size_t i = 0; i < sc.count; ++i) defaults[i] = default_value(sc.args[i]);
  }

  static const D& def_of(const OpInfo& op) { return static_cast<const Entry&>(op).def; }
  /// Null where the operator has no kernel on the device.
  static typename D::Kernel kernel_on(const OpInfo& op, Device device) {
    const D& d = def_of(op);
    return device.is_cuda() ? d.kernel.cuda : d.kernel.cpu;
  }

  static void run_thunk(const OpInfo& op, const Value* args, Results& out) {
    const D& d = def_of(op);
    if (!d.infer) return composite_thunk(op, args, out);  // the operators inside look where their tensors are
    const Device device = device_of(op, args);
    const auto kernel = kernel_on(op, device);
    if (kernel) {
      const Announcement announcement(op, device);
      if constexpr (sc.returns == Returns::Tensor) {
        out.tensors[0] = allocate_result(d.infer(Boxed<sc.args[I].kind>::get(args[I])...), device);
        announcement.touches(args, out.tensors, 1);
        if (!out.tensors[0].is_meta()) kernel(out.tensors[0], Boxed<sc.args[I].kind>::get(args[I])...);
      } else if constexpr (sc.returns == Returns::Tuple) {
        const auto metas = d.infer(Boxed<sc.args[I].kind>::get(args[I])...);
        for (size_t r = 0; r < sc.results; ++r) out.tensors[r] = allocate_result(metas[r], device);
        announcement.touches(args, out.tensors, sc.results);
        if (!out.tensors[0].is_meta()) {
          [&]<size_t... R>(std::index_sequence<R...>) {
            kernel(out.tensors[R]..., Boxed<sc.args[I].kind>::get(args[I])...);
          }
          (std::make_index_sequence<sc.results>{});
        }
      }
    } else if (op.on_host) {
      run_on_host(op, args, out, device);
    } else if (d.composite) {
      composite_thunk(op, args, out);
    } else {
      raise_no_kernel(op, device);
    }
  }

  static void composite_thunk(const OpInfo& op, const Value* args, Results& out) {
    const D& d = def_of(op);
    if constexpr (sc.returns == Returns::Tensor) {
      out.tensors[0] = d.composite(Boxed<sc.args[I].kind>::get(args[I])...);
    } else if constexpr (sc.returns == Returns::Tuple) {
      auto results = d.composite(Boxed<sc.args[I].kind>::get(args[I])...);
      for (size_t r = 0; r < sc.results; ++r) out.tensors[r] = std::move(results[r]);
    } else if constexpr (sc.returns == Returns::List) {
      out.list = d.composite(Boxed<sc.args[I].kind>::get(args[I])...);
    } else if constexpr (sc.returns == Returns::Nothing) {
      d.composite(Boxed<sc.args[I].kind>::get(args[I])...);
    } else {
      out.number = Scalar(d.composite(Boxed<sc.args[I].kind>::get(args[I])...));
    }
  }

  static Meta infer_thunk(const OpInfo& op, const Value* args) {
    if constexpr (sc.returns == Returns::Tensor)
      return def_of(op).infer(Boxed<sc.args[I].kind>::get(args[I])...);
    else
      return {};
  }

  static void into_thunk(const OpInfo& op, const Value* args, Tensor& out) {
    if constexpr (sc.returns == Returns::Tensor) {
      const Device device = device_of(op, args);
      const auto kernel = kernel_on(op, device);
      if (!kernel) {
        if (op.on_host) {
          Tensor value;
          Results results{&value, 1, {}, 0};
          run_on_host(op, args, results, device);
          return copy_result(out, value);
        }
        const auto composite = def_of(op).composite;
        if (!composite) raise_no_kernel(op, device);
        return copy_result(out, composite(Boxed<sc.args[I].kind>::get(args[I])...));
      }
      const Announcement announcement(op, device);
      announcement.touches(args, &out, 1);
      kernel(out, Boxed<sc.args[I].kind>::get(args[I])...);
    }
  }

  static Grads vjp_thunk(const OpInfo& op, Tensors grads, Tensors results, const Value* args) {
    const D& d = def_of(op);
    if constexpr (D::several) {
      return d.vjp(grads, results, Boxed<sc.args[I].kind>::get(args[I])...);
    } else {
      return d.vjp(grads[0], results[0], Boxed<sc.args[I].kind>::get(args[I])...);
    }
  }
};

// One operator() for each legal number of arguments, so that defaults and braces work in C++ too.
template <Text S, class Self, size_t Which, size_t N, class = std::make_index_sequence<N>>
struct Arity;
template <Text S, class Self, size_t Which, size_t N, size_t... I>
struct Arity<S, Self, Which, N, std::index_sequence<I...>> {
  static constexpr const Schema& sc = schema_of<S>;
  using Result = typename ResultType<sc.returns, sc.results>::type;
  Result operator()(typename Boxed<sc.args[I].kind>::type... a) const requires(!Self::template shadowed<Which, N>) {
    const OpInfo& op = static_cast<const Self*>(this)->template overload<Which>();
    Value args[sc.count ? sc.count : 1] = {Value(a)...};
    for (size_t i = N; i < sc.count; ++i) args[i] = op.defaults[i];
    Results out;
    if constexpr (sc.returns == Returns::Tensor) {
      Tensor result;
      out.tensors = &result;
      out.count = 1;
      dispatch(op, args, out);
      return result;
    } else if constexpr (sc.returns == Returns::Tuple) {
      Result results;
      out.tensors = results.data();
      out.count = sc.results;
      dispatch(op, args, out);
      return results;
    } else {
      dispatch(op, args, out);
      if constexpr (sc.returns == Returns::List)
        return std::move(out.list);
      else if constexpr (sc.returns == Returns::Scalar)
        return out.number;
      else if constexpr (sc.returns != Returns::Nothing)
        return out.number.template to<Result>();
    }
  }
};
template <Text S, class Self, size_t Which,
          class = std::make_index_sequence<schema_of<S>.count - schema_of<S>.required + 1>>
struct Arities;
template <Text S, class Self, size_t Which, size_t... R>
struct Arities<S, Self, Which, std::index_sequence<R...>> : Arity<S, Self, Which, schema_of<S>.required + R>... {
  using Arity<S, Self, Which, schema_of<S>.required + R>::operator()...;
};
template <class Self, class Indices, Text... S>
struct OverloadSet;
template <class Self, size_t... Which, Text... S>
struct OverloadSet<Self, std::index_sequence<Which...>, S...> : Arities<S, Self, Which>... {
  using Arities<S, Self, Which>::operator()...;
};

/// Whether an overload before the `which`-th takes the same first n arguments: a call with these alone means that one.
constexpr bool is_shadowed(std::span<const Schema* const> overloads, size_t which, size_t n) {
  const auto same = [](Kind a, Kind b) {
    const auto plain = [](Kind k) { return k == Kind::OptTensor ? Kind::Tensor : k; };
    return plain(a) == plain(b);
  };
  for (const Schema* other : overloads.first(which)) {
    bool all = other->required <= n && n <= other->count;
    for (size_t i = 0; i < n && all; ++i) all = same(other->args[i].kind, overloads[which]->args[i].kind);
    if (all) return true;
  }
  return false;
}

/// The callable that an index line declares, `rush::silu(x)`, with its definitions.
template <Text... S>
struct Op : OverloadSet<Op<S...>, std::make_index_sequence<sizeof...(S)>, S...> {
  std::tuple<Entry<S>...> entries;
  constexpr Op(const Def<S>&... d) : entries(Entry<S>(d)...) {}
  template <size_t Which, size_t N>
  static constexpr bool shadowed = Which != 0 &&
                                   is_shadowed(std::array<const Schema*, sizeof...(S)>{&schema_of<S>...}, Which, N);
  template <size_t Which>
  constexpr const OpInfo& overload() const {
    return std::get<Which>(entries);
  }
};

#define OP_DEFINE(name) constinit const std::remove_const_t<decltype(name)> name

namespace detail {
inline constexpr int64_t kRepeated[][8] = {
    {0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}, {-1}, {-2, -1}, {0, 1}, {1, 0}, {-2}};
constexpr double parse_number(std::string_view s) {
  double v = 0, scale = 1;
  bool negative = false, fraction = false;
  int exponent = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '-')
      negative = true;
    else if (s[i] == '.')
      fraction = true;
    else if (s[i] == 'e') {
      const bool down = s[i + 1] == '-';
      for (size_t j = i + 1 + (down || s[i + 1] == '+'); j < s.size(); ++j) exponent = 10 * exponent + (s[j] - '0');
      if (down) exponent = -exponent;
      break;
    } else {
      if (s[i] < '0' || s[i] > '9') throw "bad number in schema";
      v = 10 * v + (s[i] - '0');
      if (fraction) scale *= 10;
    }
  }
  double power = 1;
  for (int i = 0; i < (exponent < 0 ? -exponent : exponent); ++i) power *= 10;
  v = exponent < 0 ? v / scale / power : v / scale * power;
  return negative ? -v : v;
}
constexpr bool is_integer(std::string_view s) { return s.find('.') == s.npos && s.find('e') == s.npos && s != "inf"; }
}  // namespace detail

constexpr Value default_value(const Arg& arg) {
  const std::string_view s = arg.fallback;
  if (s.empty() || s == "None") return {};
  if (s == "True" || s == "False") return Value(s == "True");
  if (s == "inf") return Value(__builtin_inf());
  if (s == "-inf") return Value(-__builtin_inf());
  if (s.front() == '\'') return Value(s.substr(1, s.size() - 2));
  switch (arg.kind) {
    case Kind::Ints:
    case Kind::OptInts: {
      if (s == "[]") return Value(Ints());
      if (s == "[-2, -1]") return Value(Ints(detail::kRepeated[3], 2));
      if (s == "[0, 1]") return Value(Ints(detail::kRepeated[4], 2));
      if (s == "[1, 0]") return Value(Ints(detail::kRepeated[5], 2));
      if (s == "[0]") return Value(Ints(detail::kRepeated[0], 1));
      if (s == "[-1]") return Value(Ints(detail::kRepeated[2], 1));
      const auto n = int64_t(detail::parse_number(s));
      const size_t length = size_t(arg.length ? arg.length : 1);
      if (n == 0 || n == 1) return Value(Ints(detail::kRepeated[n], length));
      if (n == -1 && length == 1) return Value(Ints(detail::kRepeated[2], 1));
      if (n == -2 && length == 1) return Value(Ints(detail::kRepeated[6], 1));
      throw "no such default for a list of integers";
    }
    case Kind::DType:
    case Kind::OptDType:
      if (s == "int64") return Value(kInt64);
      if (s == "float32") return Value(kFloat32);
      throw "no such default for a dtype";
    case Kind::OptMemoryFormat:
      if (s == "preserve_format") return Value(MemoryFormat::Preserve);
      if (s == "contiguous_format") return Value(MemoryFormat::Contiguous);
      throw "no such default for a memory format";
    case Kind::Float:
    case Kind::OptFloat:
      return Value(detail::parse_number(s));
    default:
      if (detail::is_integer(s)) return Value(int64_t(detail::parse_number(s)));
      return Value(detail::parse_number(s));
  }
}

}  // namespace rush
