#include "cuda/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

namespace rush::cuda {
namespace {

namespace fs = std::filesystem;

/// The version in "libnvrtc.so.13"; 0 for "libnvrtc.so", -1 for another file.
int version_of(const std::string& file, const std::string& name) {
  const std::string stem = name + ".so";
  if (file == stem) return 0;
  if (!file.starts_with(stem + ".")) return -1;
  return std::atoi(file.c_str() + stem.size() + 1);
}

std::vector<fs::path> folders_below(const char* variable) {
  const char* home = std::getenv(variable);
  if (!home || !*home) return {};
  return {fs::path(home) / "lib64", fs::path(home) / "lib", fs::path(home)};
}

std::vector<fs::path> pip_folders() {
  std::vector<fs::path> folders;
  if (!python_folders) return folders;
  std::error_code error;
  for (const std::string& folder : python_folders())
    for (const auto& package : fs::directory_iterator(fs::path(folder) / "nvidia", error))
      if (fs::path lib = package.path() / "lib"; fs::is_directory(lib, error)) folders.push_back(std::move(lib));
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

class Search {
 public:
  explicit Search(const std::string& name) : name_(name) {}

  Library run() {
    for (const fs::path& folder : folders_below("RUSHLIGHT_CUDA_HOME"))
      if (in(folder)) return found_;
    if (by_name(RTLD_NOLOAD)) return found_;
    for (const fs::path& folder : pip_folders())
      if (in(folder)) return found_;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
      for (const fs::path& folder : folders_below(variable))
        if (in(folder)) return found_;
    by_name(0);
    return found_;
  }

 private:
  bool in(const fs::path& folder) {
    found_.tried.push_back(folder.string());
    std::error_code error;
    std::vector<std::pair<int, std::string>> files;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string file = entry.path().filename();
      if (const int version = version_of(file, name_); version >= 0) files.emplace_back(version, entry.path());
    }
    if (files.empty()) return false;
    found_.path = std::max_element(files.begin(), files.end())->second;
    return true;
  }
  bool by_name(int flags) {
    found_.tried.push_back(flags ? "libraries already loaded" : "the loader's folders");
    constexpr int newest = 20, oldest = 1;
    for (int version = newest; version >= oldest && !found_.handle_; --version) {
      const std::string file = name_ + ".so." + std::to_string(version);
      found_.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
      if (found_.handle_) found_.path = file;
    }
    return found_.found();
  }

  const std::string name_;
  Library found_;
};

void* Library::handle() const {
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (!handle_ && found()) handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle_;
}

std::function<std::vector<std::string>()> python_folders;

const Library& find_library(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& libraries = *new std::map<std::string, Library>;
  const std::lock_guard lock(mutex);
  const auto known = libraries.find(name);
  return known != libraries.end() ? known->second : libraries.emplace(name, Search(name).run()).first->second;
}

void* find_symbol(const Library& library, const char* name) {
  void* const handle = library.handle();
  return handle ? dlsym(handle, name) : nullptr;
}

}  // namespace rush::cuda
