// Modules that hold modules.
#include "rushlight/nn/containers.h"

namespace rush::nn {
namespace {

int64_t position(int64_t index, int64_t size, int64_t end) {
  check<IndexError>(-size <= index && index < end, "index ", index, " is out of range for ", size, " modules");
  return index < 0 ? index + size : index;
}

}  // namespace

Module& ModuleRow::operator[](int64_t index) const {
  const auto count = int64_t(size());
  return *children_[size_t(position(index, count, count))].second;
}

void ModuleRow::insert(int64_t index, std::shared_ptr<Module> module) {
  const auto count = int64_t(size()), at = position(index, count, count + 1);
  append(std::move(module));  // then every module behind moves up by one, the names stay
  for (auto i = size_t(count); i > size_t(at); --i) std::swap(children_[i].second, children_[i - 1].second);
}

Tensor SequentialImpl::forward(const Tensor& input) {
  Tensor x = input;
  for (const auto& [name, module] : children_) x = module->forward(x);
  return x;
}

std::string ModuleListImpl::to_string() const {
  if (children_.empty()) return name() + "()";
  std::string result = name() + "(\n";
  for (size_t first = 0, next; first < size(); first = next) {
    const std::string text = children_[first].second->to_string();
    next = first + 1;
    while (next < size() && children_[next].second->to_string() == text) ++next;
    std::string line = "(" + std::to_string(first);
    if (next - first > 1)
      line += "-" + std::to_string(next - 1) + "): " + std::to_string(next - first) + " x ";
    else
      line += "): ";
    result += "  " + repr::indent_rest(line + text) + "\n";
  }
  return result + ")";
}

}  // namespace rush::nn
