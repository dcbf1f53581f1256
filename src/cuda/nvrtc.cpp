// Compiling kernels. NVRTC sees the files of sources.h; the standard headers that they include are std.cuh there.
//
// On disk, a file for each kernel, architecture, source text and compiler version, named by their hash. Files appear by
// renaming, so a reader never sees half of one; a lock keeps two processes from compiling the same kernel at the same
// time. When they take more than kMostBytes, those not used for longest go. Where no file can be written, kernels are
// compiled anew in each process.
#include "cuda/nvrtc.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cuda/libraries.h"
#include "cuda/sources.h"

namespace rush::cuda {
namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMostBytes = 256 << 20;
constexpr const char* kStandardHeaders[] = {"algorithm", "array",   "bit",         "cmath",   "complex",
                                            "cstddef",   "cstdint", "cstring",     "limits",  "numbers",
                                            "numeric",   "tuple",   "type_traits", "utility", "rushlight/error.h"};
constexpr const char* kStandardText = "#include \"kernels/cuda/std.cuh\"\n";

struct Compiler {
  using Status = int;
  using Program = void*;
  const Library& library = find_library("libnvrtc");
#define RUSH_NVRTC(name, ...) Status (*name)(__VA_ARGS__) = find_function<Status(__VA_ARGS__)>(library, "nvrtc" #name)
  RUSH_NVRTC(CreateProgram, Program*, const char* source, const char* name, int headers, const char* const* texts,
             const char* const* names);
  RUSH_NVRTC(DestroyProgram, Program*);
  RUSH_NVRTC(AddNameExpression, Program, const char*);
  RUSH_NVRTC(CompileProgram, Program, int options, const char* const*);
  RUSH_NVRTC(GetProgramLogSize, Program, size_t*);
  RUSH_NVRTC(GetProgramLog, Program, char*);
  RUSH_NVRTC(GetCUBINSize, Program, size_t*);
  RUSH_NVRTC(GetCUBIN, Program, char*);
  RUSH_NVRTC(GetLoweredName, Program, const char*, const char**);
#undef RUSH_NVRTC

  static const Compiler& get() {
    static const Compiler& compiler = *new Compiler;
    if (!compiler.library.handle()) {
      std::string places;
      for (const std::string& place : compiler.library.tried) places += (places.empty() ? "" : ", ") + place;
      raise(
          "kernels can't be compiled: libnvrtc is not found. It comes with `pip install nvidia-cuda-nvrtc` or the "
          "CUDA toolkit. Looked in: ",
          places);
    }
    check(compiler.CreateProgram && compiler.DestroyProgram && compiler.AddNameExpression && compiler.CompileProgram &&
              compiler.GetProgramLogSize && compiler.GetProgramLog && compiler.GetCUBINSize && compiler.GetCUBIN &&
              compiler.GetLoweredName,
          compiler.library.path, " is too old to compile kernels with");
    return compiler;
  }
};

std::vector<std::string> options_for(int architecture) {
  return {"-arch=sm_" + std::to_string(architecture),
          "-std=c++20",
          "-default-device",
          "--fmad=false",
          "-diag-suppress=1046",
          "--extra-device-vectorization",
          "-Xptxas=--warn-on-spills"};
}

/// One program with all the kernels; the binary's symbol is the first one's.
Binary compile_now(std::span<const Kernel* const> kernels, int architecture, std::string* messages) {
  const Compiler& nvrtc = Compiler::get();
  std::vector<const char*> names, texts;
  for (const Source& s : sources()) names.push_back(s.name), texts.push_back(s.text.data());
  for (const char* header : kStandardHeaders) names.push_back(header), texts.push_back(kStandardText);
  const std::string main = text("#include \"kernels/cuda/", kernels[0]->file, "\"\n");
  Compiler::Program program = nullptr;
  check(
      nvrtc.CreateProgram(&program, main.c_str(), kernels[0]->name, int(names.size()), texts.data(), names.data()) == 0,
      "NVRTC takes no program");
  struct Destroy {
    const Compiler& nvrtc;
    Compiler::Program* program;
    ~Destroy() { nvrtc.DestroyProgram(program); }
  } destroy{nvrtc, &program};
  for (const Kernel* kernel : kernels) nvrtc.AddNameExpression(program, kernel->name);
  const std::vector<std::string> options = options_for(architecture);
  std::vector<const char*> arguments;
  for (const std::string& o : options) arguments.push_back(o.c_str());
  const int status = nvrtc.CompileProgram(program, int(arguments.size()), arguments.data());
  size_t size = 0;
  nvrtc.GetProgramLogSize(program, &size);
  std::string log(size, '\0');
  if (size > 0) nvrtc.GetProgramLog(program, log.data());
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  check(status == 0, "kernel ", kernels[0]->name, " does not compile for sm_", architecture, ":\n", log);
  if (messages) *messages = log;
  Binary binary;
  const char* symbol = nullptr;
  nvrtc.GetCUBINSize(program, &size);
  binary.image.resize(size);
  check(size > 0 && nvrtc.GetCUBIN(program, binary.image.data()) == 0 &&
            nvrtc.GetLoweredName(program, kernels[0]->name, &symbol) == 0,
        "NVRTC gives no code for ", kernels[0]->name, " on sm_", architecture);
  binary.symbol = symbol;
  return binary;
}

// ---- the cache on disk ----

/// FNV-1a over 64 bits, from two starts: 128 bits are enough that no two kernels meet by accident.
class Hash {
 public:
  Hash& operator()(std::string_view bytes) {
    for (const char c : bytes)
      for (uint64_t& h : state_) h = (h ^ uint8_t(c)) * 0x100000001b3;
    for (uint64_t& h : state_) h = (h ^ bytes.size()) * 0x100000001b3;
    return *this;
  }
  std::string hex() const {
    char digits[33];
    snprintf(digits, sizeof digits, "%016lx%016lx", (unsigned long)state_[0], (unsigned long)state_[1]);
    return digits;
  }
  uint64_t first() const { return state_[0]; }

 private:
  uint64_t state_[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
};

fs::path cache_folder() {
  if (const char* set = std::getenv("RUSHLIGHT_CACHE"); set && *set) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set) return fs::path(set) / "rushlight";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "rushlight";
  return {};
}

/// Held while it lives; where the file can't be made, nothing is.
class FileLock {
 public:
  explicit FileLock(const fs::path& file) : fd_(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (fd_ >= 0) flock(fd_, LOCK_EX);
  }
  ~FileLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileLock(const FileLock&) = delete;

 private:
  const int fd_;
};

// A file: the hash of the rest, then "symbol\n", then the image.
bool read(const fs::path& file, Binary& binary) {
  std::ifstream in(file, std::ios::binary);
  std::string hash, rest;
  if (!std::getline(in, hash)) return false;
  rest.assign(std::istreambuf_iterator<char>(in), {});
  const size_t end = rest.find('\n');
  if (end == rest.npos || Hash()(rest).hex() != hash) return false;
  binary = {rest.substr(end + 1), rest.substr(0, end)};
  std::error_code error;
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);  // for which go first
  return true;
}

void write(const fs::path& file, const Binary& binary) {
  const std::string rest = binary.symbol + "\n" + binary.image;
  const fs::path temporary = file.string() + "." + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << Hash()(rest).hex() << "\n" << rest;
    if (!out.flush()) {
      fs::remove(temporary, error);
      return;
    }
  }
  fs::rename(temporary, file, error);
}

void trim(const fs::path& folder) {
  struct Entry {
    fs::file_time_type used;
    uintmax_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  uintmax_t total = 0;
  std::error_code error;
  for (const auto& e : fs::directory_iterator(folder, error)) {
    entries.push_back({e.last_write_time(error), e.file_size(error), e.path()});
    total += entries.back().size;
  }
  if (total <= kMostBytes) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (total <= kMostBytes * 3 / 4) break;
    if (fs::remove(e.path, error)) total -= e.size;
  }
}

const std::string& source_hash() {
  static const std::string& hash = *new std::string([] {
    Hash h;
    for (const Source& s : sources()) h(s.name)(s.text);
    return h.hex();
  }());
  return hash;
}

/// Tells compilers apart without loading one, which takes longer than all else where the kernel is on disk.
std::string compiler_version() {
  const Library& library = find_library("libnvrtc");
  std::error_code error;
  const fs::path file = fs::canonical(library.path, error);
  if (error) return library.path;
  return text(file.string(), " ", fs::file_size(file, error), " ",
              fs::last_write_time(file, error).time_since_epoch().count());
}

}  // namespace

Binary compile(const Kernel& kernel, int architecture) {
  const Kernel* const alone[] = {&kernel};
  Hash key;
  key(source_hash())(kernel.file)(kernel.name)(compiler_version());
  for (const std::string& option : options_for(architecture)) key(option);
  fs::path folder = cache_folder();
  std::error_code error;
  if (folder.empty() || (fs::create_directories(folder /= "kernels", error), error))
    return compile_now(alone, architecture, nullptr);
  const fs::path file = folder / key.hex();
  Binary binary;
  if (read(file, binary)) return binary;
  const FileLock lock(folder / ("lock" + std::to_string(key.first() % 16)));
  if (read(file, binary)) return binary;  // another process was quicker
  binary = compile_now(alone, architecture, nullptr);
  write(file, binary);
  trim(folder);
  return binary;
}

std::string compiler_messages(std::span<const Kernel* const> kernels, int architecture) {
  std::string messages;
  compile_now(kernels, architecture, &messages);
  return messages;
}

}  // namespace rush::cuda
