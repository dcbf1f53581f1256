// The list of all operators, read off the index files.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "rushlight/ops.h"

namespace rush {

namespace {

template <Text... S>
void append(std::vector<const OpInfo*>& list, const Op<S...>& op) {
  std::apply([&](const auto&... entry) { (list.push_back(&entry), ...); }, op.entries);
}

const std::vector<const OpInfo*>& listed() {
  static const auto& list = *[] {
    auto* l = new std::vector<const OpInfo*>;
#define OP(name, ...) append(*l, name);
#include "rushlight/ops/all.def"
#undef OP
    return l;
  }();
  return list;
}

}  // namespace

std::span<const OpInfo* const> all_ops() { return listed(); }

std::span<const OpInfo* const> find_ops(std::string_view name) {
  static const auto& index = *[] {  // overloads stand next to each other
    auto* map = new std::unordered_map<std::string_view, std::span<const OpInfo* const>>;
    const auto& list = listed();
    for (size_t i = 0, j; i < list.size(); i = j) {
      for (j = i + 1; j < list.size() && list[j]->name() == list[i]->name();) ++j;
      map->emplace(list[i]->name(), std::span(list).subspan(i, j - i));
    }
    return map;
  }();
  const auto it = index.find(name);
  return it == index.end() ? std::span<const OpInfo* const>() : it->second;
}

}  // namespace rush
