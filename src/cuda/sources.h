// The text of the kernels and of the headers they include, which the build puts into the library.
#pragma once
#include <span>
#include <string_view>

namespace rush::cuda {

struct Source {
  const char* name;  // as it is included: "kernels/math.h"
  std::string_view text;
};
std::span<const Source> sources();

}  // namespace rush::cuda
