#include "cuda/sources.h"

#include <array>

// Each file's bytes and a 0, by the assembler. The list is written by CMake: SOURCE(number, "name", "path").
#define SOURCE(number, name, path)                             \
  asm(".pushsection .rodata\n"                                 \
      "rush_source_" #number ":\n.incbin \"" path              \
      "\"\n"                                                   \
      "rush_source_end_" #number ":\n.byte 0\n.popsection\n"); \
  extern "C" const char rush_source_##number[], rush_source_end_##number[];
#include "kernel_sources.inc"
#undef SOURCE

namespace rush::cuda {

std::span<const Source> sources() {
#define SOURCE(number, name, path) \
  Source{name, {rush_source_##number, size_t(rush_source_end_##number - rush_source_##number)}},
  static const std::array list = {
#include "kernel_sources.inc"
  };
#undef SOURCE
  return list;
}

}  // namespace rush::cuda
