// Module: what has parameters. A model is a struct derived from it that registers its fields under their names; layers
// are held by Handles, which are shared pointers that can be called.
//
//   struct Net : rush::nn::Module {
//     rush::nn::Linear hidden = register_module("hidden", rush::nn::Linear({.in_features = 64, .out_features = 32}));
//     rush::nn::Linear last = register_module("last", rush::nn::Linear({32, 10}));
//     rush::Tensor scale = rush::ones({10});
//
//     Net() { register_parameter("scale", scale); }
//     rush::Tensor forward(const rush::Tensor& x) override { return last(rush::relu(hidden(x))) * scale; }
//   };
//
//   Net net;
//   rush::Tensor y = net(x);
//   rush::save(net.state_dict(), "net.pt");           // Python: net.load_state_dict(torch.load("net.pt"))
//   net.load_state_dict(rush::load("net.pt"));
//   std::cout << net << hidden->weight.sizes();
//
// To use a model of your own as a layer in several places, give it a handle too: `using Block = nn::Handle<BlockImpl>`.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/serialize.h"
#include "rushlight/tensor.h"

namespace rush::nn {

/// Names that a state dict lacked, and names in it that the module does not have.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
};

/// Base of all layers and models. It stays where it was made, since it knows its parameters by their fields: replacing
/// a field, as in `decoder->weight = encoder->weight`, replaces the parameter.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// What the module computes of one tensor. Modules that take other arguments have a forward of their own. Throws
  /// NotImplementedError where there is none.
  virtual Tensor forward(const Tensor& input);
  Tensor operator()(const Tensor& input) { return forward(input); }

  // ---- registration, in the order in which state dicts, optimizers and printing have it ----

  /// Makes a field a parameter. An undefined tensor is a parameter that is not there, until one is assigned.
  void register_parameter(std::string name, Tensor& field, bool requires_grad = true);
  /// Makes a field a buffer: state that no gradient changes. Only a persistent one is in the state dict.
  void register_buffer(std::string name, Tensor& field, bool persistent = true);
  /// Makes a handle's module a child, in the place of a former one of the same name. Returns the handle.
  template <std::convertible_to<std::shared_ptr<Module>> H>
  H register_module(std::string name, H module) {
    add_module(std::move(name), module);
    return module;
  }

  // ---- what there is, each once, by dotted names as in Python; `recurse`: that of all modules below, too ----

  std::vector<Tensor> parameters(bool recurse = true) const;
  NamedTensors named_parameters(const std::string& prefix = "", bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  NamedTensors named_buffers(const std::string& prefix = "", bool recurse = true) const;
  std::vector<Module*> children() const;
  std::vector<std::pair<std::string, Module*>> named_children() const;
  /// This module, and all below.
  std::vector<Module*> modules();
  std::vector<std::pair<std::string, Module*>> named_modules(const std::string& prefix = "");
  /// Itself as the module of a handle, if it is one: `if (auto* linear = m.as<nn::Linear>()) linear->weight ...`
  template <class H>
  typename H::element_type* as() {
    return dynamic_cast<typename H::element_type*>(this);
  }

  /// Parameters and persistent buffers by name, without their history; they share the module's memory.
  NamedTensors state_dict(const std::string& prefix = "") const;
  /// Copies the tensors into the parameters and buffers of the same names. Throws Error that lists all names and shapes
  /// that do not fit; unless `strict`, only shapes.
  IncompatibleKeys load_state_dict(const NamedTensors& state, bool strict = true);

  // ---- modes and changes ----

  /// Whether the module is in training, as it is at first: then dropout drops and batch norm uses its batch.
  bool is_training() const { return training_; }
  void train(bool mode = true);
  void eval() { train(false); }
  void requires_grad_(bool requires_grad = true);
  /// Removes the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
  /// Converts parameters and buffers, in place: floating ones to the dtype, all to the device.
  void to(OptDevice device, OptDType dtype = {});
  void to(DType dtype) { to(OptDevice(), dtype); }
  /// Calls fn for all modules below and then for this one.
  void apply(const std::function<void(Module&)>& fn);

  // ---- printing ----

  /// The class as it is printed: by default the C++ type's name without its namespace and a final "Impl".
  virtual std::string name() const;
  /// What stands in the parentheses of the printed form, before the children.
  virtual std::string extra_repr() const { return {}; }
  /// PyTorch's text of a module.
  virtual std::string to_string() const;

 protected:
  /// Whether a state dict may lack this parameter or buffer of the module's own, as older files do.
  virtual bool is_optional(const std::string& /*name*/) const { return false; }

  struct Entry {
    std::string name;
    Tensor* field;
    bool persistent = true;
  };
  std::vector<Entry> parameters_, buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;

 private:
  void add_module(std::string name, std::shared_ptr<Module> module);
  NamedTensors named_members(std::vector<Entry> Module::*entries, const std::string& prefix, bool recurse) const;
  template <class F>
  void for_state(const std::string& prefix, F&& visit) const;
};
std::ostream& operator<<(std::ostream& out, const Module& module);

namespace detail {
template <class M>
struct OptionsOf {
  struct None {};
  using type = None;
};
template <class M>
requires requires { typename M::Options; }
struct OptionsOf<M> {
  using type = typename M::Options;
};
}  // namespace detail

/// A shared pointer to a module, made together with it, that is called as the module is. Copies are the same module.
template <class M>
class Handle : public std::shared_ptr<M> {
 public:
  using Options = typename detail::OptionsOf<M>::type;

  /// No module yet.
  template <std::same_as<std::nullptr_t> T>  // and not from 0
  Handle(T) {}
  Handle() requires std::default_initializable<M> : std::shared_ptr<M>(std::make_shared<M>()) {}
  explicit Handle(const Options& options) : std::shared_ptr<M>(std::make_shared<M>(options)) {}
  template <class... A>
  requires(sizeof...(A) > 0 && std::constructible_from<M, A...>) explicit Handle(A&&... arguments)
      : std::shared_ptr<M>(std::make_shared<M>(std::forward<A>(arguments)...)) {}

  template <class... A>
  decltype(auto) operator()(A&&... arguments) const {
    return (*this)->forward(std::forward<A>(arguments)...);
  }
};

// ---- options ----

/// An option that has no default: a struct of options is not made without it.
template <class T>
struct Required {
  T value;
  template <std::convertible_to<T> U>
  Required(const U& v) : value(v) {}
  operator const T&() const { return value; }
};

/// A size for each of N dimensions: `3` stands for all of them, or `{3, 5}`.
template <size_t N>
class Sizes {
 public:
  Sizes(int64_t all) : given_{all} {}
  Sizes(std::initializer_list<int64_t> each) : given_(each) { check_count(); }
  Sizes(const Dims& each) : given_(each) { check_count(); }
  /// As many as there are dimensions.
  Dims all() const { return given_.size() == N ? given_ : Dims(N, given_[0]); }
  /// As many as were given.
  const Dims& given() const { return given_; }

 private:
  void check_count() const {
    check<ValueError>(given_.size() == N || given_.size() == 1, "expected 1 or ", N, " sizes, got ", Ints(given_));
  }
  Dims given_;
};
/// The same, or nothing, which stands for a default that depends on other options.
template <size_t N>
class OptSizes {
 public:
  OptSizes() = default;
  OptSizes(int64_t all) : sizes_(Sizes<N>(all)) {}
  OptSizes(std::initializer_list<int64_t> each) : sizes_(Sizes<N>(each)) {}
  OptSizes(const Sizes<N>& sizes) : sizes_(sizes) {}
  const Sizes<N>& value_or(const Sizes<N>& other) const { return sizes_ ? *sizes_ : other; }

 private:
  std::optional<Sizes<N>> sizes_;
};

/// The sizes of any number of dimensions: one number, or several in braces.
class Shape {
 public:
  Shape(int64_t one) : sizes_{one} {}
  Shape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
  Shape(const Dims& sizes) : sizes_(sizes) {}
  operator const Dims&() const { return sizes_; }

 private:
  Dims sizes_;
};

/// Base of a layer with options O, which it keeps.
template <class O, class Base = Module>
struct Layer : Base {
  using Options = O;
  explicit Layer(const O& o) : options(o) {}
  Layer() requires std::default_initializable<O> : options{} {}
  O options;
};

namespace repr {
// Numbers and tuples as Python prints them.
std::string indent_rest(std::string_view text);
std::string of(double number);
std::string of(bool value);
std::string of(int64_t number);
std::string of(std::string_view name);
std::string of(const OptDouble& number);
/// (3, 5), or (3,) for one.
std::string tuple(Ints numbers);
/// 3 for one, else a tuple.
std::string sizes(const Dims& given);
}  // namespace repr

}  // namespace rush::nn
