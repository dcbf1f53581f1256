// Modules that hold modules: in a row, in a list.
//
//   rush::nn::Sequential net{rush::nn::Linear({64, 32}), rush::nn::ReLU(), rush::nn::Linear({32, 10})};
//   rush::Tensor y = net(x);
#pragma once
#include "rushlight/nn/module.h"

namespace rush::nn {

/// What Sequential and ModuleList share: children named "0", "1", ...
class ModuleRow : public Module {
 public:
  size_t size() const { return children_.size(); }
  /// A module by its place; a negative one counts from the end. Throws IndexError.
  Module& operator[](int64_t index) const;
  void append(std::shared_ptr<Module> module) { register_module(std::to_string(size()), std::move(module)); }
  /// Puts a module before the one at `index`. Throws IndexError.
  void insert(int64_t index, std::shared_ptr<Module> module);

 protected:
  ModuleRow() = default;
  template <std::convertible_to<std::shared_ptr<Module>>... H>
  explicit ModuleRow(const H&... modules) {
    (append(modules), ...);
  }
};

/// Calls its modules one after another, each with the result of the one before.
struct SequentialImpl : ModuleRow {
  SequentialImpl() = default;
  template <std::convertible_to<std::shared_ptr<Module>>... H>
  requires(sizeof...(H) > 0) explicit SequentialImpl(const H&... modules) : ModuleRow(modules...) {}
  Tensor forward(const Tensor& input) override;
};
using Sequential = Handle<SequentialImpl>;

/// A list of modules; it has no forward.
struct ModuleListImpl : ModuleRow {
  ModuleListImpl() = default;
  template <std::convertible_to<std::shared_ptr<Module>>... H>
  requires(sizeof...(H) > 0) explicit ModuleListImpl(const H&... modules) : ModuleRow(modules...) {}
  /// Equal neighbours are printed once, with how many they are.
  std::string to_string() const override;
};
using ModuleList = Handle<ModuleListImpl>;

}  // namespace rush::nn
