// The base of all modules: walking the tree, state dicts, printing.
#include "rushlight/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ostream>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush::nn {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void check_name(const std::string& name, const char* what) {
  check(!name.empty(), what, " name can't be empty string \"\"");
  check(name.find('.') == name.npos, what, " name can't contain \".\", got: ", name);
}

/// Gives the tensor other memory, dtype and device; all who hold it see them.
void assign_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl& to = *tensor.impl();
  const TensorImpl& from = *data.impl();
  to.storage = from.storage;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.offset = from.offset;
  to.dtype = from.dtype;
  to.device = from.device;
  to.refresh();
}

std::string quoted(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "\"" : ", \"") + name + '"';
  return result;
}

std::vector<Tensor> without_names(NamedTensors named) {
  std::vector<Tensor> tensors;
  for (auto& [name, tensor] : named) tensors.push_back(std::move(tensor));
  return tensors;
}

}  // namespace

Tensor Module::forward(const Tensor&) {
  raise<NotImplementedError>("Module [", name(), "] has no forward of one tensor");
}

// ---- registration ----

void Module::register_parameter(std::string name, Tensor& field, bool requires_grad) {
  check_name(name, "parameter");
  if (field.defined()) {
    check(field.is_leaf(), "parameter '", name, "' must be a leaf: it has a history of operators");
    if (field.is_floating_point() || field.is_complex()) field.requires_grad_(requires_grad);
  }
  parameters_.push_back({std::move(name), &field});
}

void Module::register_buffer(std::string name, Tensor& field, bool persistent) {
  check_name(name, "buffer");
  buffers_.push_back({std::move(name), &field, persistent});
}

void Module::add_module(std::string name, std::shared_ptr<Module> module) {
  check_name(name, "module");
  check(module.get() != this, "module '", name, "' can't be its own child");
  for (auto& [known, child] : children_) {
    if (known != name) continue;
    child = std::move(module);
    return;
  }
  children_.emplace_back(std::move(name), std::move(module));
}

// ---- walking the tree ----

std::vector<std::pair<std::string, Module*>> Module::named_modules(const std::string& prefix) {
  std::vector<std::pair<std::string, Module*>> result;
  std::unordered_set<Module*> seen;
  const auto visit = [&](const auto& self, const std::string& at, Module* module) -> void {
    if (!module || !seen.insert(module).second) return;
    result.emplace_back(at, module);
    for (const auto& [name, child] : module->children_) self(self, joined(at, name), child.get());
  };
  visit(visit, prefix, this);
  return result;
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> result;
  for (const auto& [name, module] : named_modules()) result.push_back(module);
  return result;
}

std::vector<std::pair<std::string, Module*>> Module::named_children() const {
  std::vector<std::pair<std::string, Module*>> result;
  for (const auto& [name, child] : children_) {
    const bool known = std::any_of(result.begin(), result.end(), [&](auto& r) { return r.second == child.get(); });
    if (child && !known) result.emplace_back(name, child.get());
  }
  return result;
}

std::vector<Module*> Module::children() const {
  std::vector<Module*> result;
  for (const auto& [name, child] : named_children()) result.push_back(child);
  return result;
}

NamedTensors Module::named_parameters(const std::string& prefix, bool recurse) const {
  return named_members(&Module::parameters_, prefix, recurse);
}
NamedTensors Module::named_buffers(const std::string& prefix, bool recurse) const {
  return named_members(&Module::buffers_, prefix, recurse);
}
std::vector<Tensor> Module::parameters(bool recurse) const { return without_names(named_parameters("", recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return without_names(named_buffers("", recurse)); }

NamedTensors Module::named_members(std::vector<Entry> Module::*entries, const std::string& prefix, bool recurse) const {
  NamedTensors result;
  std::unordered_set<const TensorImpl*> seen;
  // named_modules() hands out modules that may be changed; nothing is changed here.
  Module* self = const_cast<Module*>(this);
  std::vector<std::pair<std::string, Module*>> walked{{prefix, self}};
  if (recurse) walked = self->named_modules(prefix);
  for (const auto& [at, module] : walked)
    for (const Entry& entry : module->*entries)
      if (entry.field->defined() && seen.insert(entry.field->impl()).second)
        result.emplace_back(joined(at, entry.name), *entry.field);
  return result;
}

// ---- state dicts ----

template <class F>
void Module::for_state(const std::string& prefix, F&& visit) const {
  for (const auto* entries : {&parameters_, &buffers_})
    for (const Entry& entry : *entries)
      if (entry.persistent && entry.field->defined()) visit(*this, entry, joined(prefix, entry.name));
  for (const auto& [name, child] : children_)
    if (child) child->for_state(joined(prefix, name), visit);
}

NamedTensors Module::state_dict(const std::string& prefix) const {
  NamedTensors result;
  for_state(prefix, [&](const Module&, const Entry& entry, const std::string& key) {
    result.emplace_back(key, entry.field->detach());
  });
  return result;
}

IncompatibleKeys Module::load_state_dict(const NamedTensors& state, bool strict) {
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  std::unordered_map<std::string, const Tensor*> given;
  for (const auto& [key, tensor] : state) given[key] = &tensor;
  std::unordered_set<std::string> known;
  const NoGrad guard;
  for_state("", [&](const Module& module, const Entry& entry, const std::string& key) {
    known.insert(key);
    const auto found = given.find(key);
    if (found == given.end()) {
      if (!module.is_optional(entry.name)) keys.missing_keys.push_back(key);
    } else if (Tensor value = *found->second; value.sizes() != entry.field->sizes()) {
      errors.push_back(text("size mismatch for ", key, ": copying a param with shape ", value.sizes(),
                            " from checkpoint, the shape in current model is ", entry.field->sizes(), "."));
    } else {
      in_place(copy, *entry.field, value);
    }
  });
  for (const auto& [key, tensor] : state)
    if (!known.contains(key)) keys.unexpected_keys.push_back(key);
  if (strict && !keys.unexpected_keys.empty())
    errors.insert(errors.begin(), "Unexpected key(s) in state_dict: " + quoted(keys.unexpected_keys) + ". ");
  if (strict && !keys.missing_keys.empty())
    errors.insert(errors.begin(), "Missing key(s) in state_dict: " + quoted(keys.missing_keys) + ". ");
  if (!errors.empty()) {
    std::string message = "Error(s) in loading state_dict for " + name() + ":";
    for (const std::string& error : errors) message += "\n\t" + error;
    raise(message);
  }
  return keys;
}

// ---- modes and changes ----

void Module::train(bool mode) {
  for (Module* module : modules()) module->training_ = mode;
}

void Module::requires_grad_(bool requires_grad) {
  for (Tensor& parameter : parameters()) parameter.requires_grad_(requires_grad);
}

void Module::zero_grad(bool set_to_none) {
  const NoGrad guard;
  for (const Tensor& parameter : parameters())
    if (parameter.grad().defined()) parameter.set_grad(set_to_none ? Tensor() : zeros_like(parameter.grad()));
}

void Module::to(OptDevice device, OptDType dtype) {
  check<TypeError>(
      !dtype || is_floating(*dtype) || is_complex(*dtype),
      "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=", dtype.value_or(kFloat32));
  const NoGrad guard;
  const auto converted = [&](const Tensor& t) {
    const bool floating = t.is_floating_point() || t.is_complex();
    return rush::to(t, device, floating ? dtype : OptDType());
  };
  for (const Tensor& parameter : parameters()) {
    assign_data(parameter, converted(parameter));
    if (parameter.grad().defined()) parameter.set_grad(converted(parameter.grad()));
  }
  for (const Tensor& buffer : buffers()) assign_data(buffer, converted(buffer));
}

void Module::apply(const std::function<void(Module&)>& fn) {
  for (Module* child : children()) child->apply(fn);
  fn(*this);
}

// ---- printing ----

std::string Module::name() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> full(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), &std::free);
  std::string_view name = status == 0 ? full.get() : typeid(*this).name();
  // "rush::nn::LinearImpl", "(anonymous namespace)::Net", "main::Net": what follows the last "::" outside of brackets.
  int depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    depth += (name[i] == '>' || name[i] == ')') - (name[i] == '<' || name[i] == '(');
    if (depth == 0 && name[i] == ':') {
      name.remove_prefix(i + 1);
      break;
    }
  }
  if (name.size() > 4 && name.ends_with("Impl")) name.remove_suffix(4);
  return std::string(name);
}

std::string Module::to_string() const {
  const std::string extra = extra_repr();
  if (children_.empty()) return name() + "(" + extra + ")";
  std::string result = name() + "(\n";
  if (!extra.empty()) result += "  " + repr::indent_rest(extra) + "\n";
  for (const auto& [key, child] : children_)
    result += "  (" + key + "): " + (child ? repr::indent_rest(child->to_string()) : "None") + "\n";
  return result + ")";
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.to_string(); }

namespace repr {

std::string indent_rest(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

std::string of(double number) {
  if (number != number) return "nan";
  if (std::abs(number) == __builtin_inf()) return number < 0 ? "-inf" : "inf";
  char digits[40];
  const double size = std::abs(number);
  const auto format =
      size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific : std::chars_format::fixed;
  std::string result(digits, std::to_chars(digits, digits + sizeof digits, number, format).ptr);
  return result.find_first_of(".e") == result.npos ? result + ".0" : result;
}
std::string of(bool value) { return value ? "True" : "False"; }
std::string of(int64_t number) { return std::to_string(number); }
std::string of(std::string_view name) { return "'" + std::string(name) + "'"; }
std::string of(const OptDouble& number) { return number ? of(*number) : "None"; }

std::string tuple(Ints numbers) {
  std::string result = "(";
  for (size_t i = 0; i < numbers.size(); ++i) result += (i ? ", " : "") + std::to_string(numbers[i]);
  return result + (numbers.size() == 1 ? ",)" : ")");
}
std::string sizes(const Dims& given) { return given.size() == 1 ? std::to_string(given[0]) : tuple(given); }

}  // namespace repr
}  // namespace rush::nn
