// NVIDIA's libraries, which are opened when first needed.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace rush::cuda {

class Library {
 public:
  std::string path;                // the file; empty if there is none
  std::vector<std::string> tried;  // where it was looked for, in order

  bool found() const { return !path.empty(); }
  /// Its handle of dlopen: opened when first asked for. Null if that fails.
  void* handle() const;

 private:
  friend class Search;
  mutable void* handle_ = nullptr;
};

/// The library of this name, "libnvrtc", looked for once, not opened. The order, the highest version in each place:
///   1. $RUSHLIGHT_CUDA_HOME/lib64, /lib and the folder itself;
///   2. one that the process has already loaded, so that two packages share it;
///   3. pip's packages: nvidia/*/lib in the folders on Python's path;
///   4. $CUDA_HOME or $CUDA_PATH, lib64 and lib;
///   5. wherever the loader finds it.
const Library& find_library(const std::string& name);

/// Set by the Python extension: the folders on Python's path.
extern std::function<std::vector<std::string>()> python_folders;

/// The function of this name in a library, or null.
void* find_symbol(const Library& library, const char* name);
template <class F>
F* find_function(const Library& library, const char* name) {
  return reinterpret_cast<F*>(find_symbol(library, name));
}

}  // namespace rush::cuda
