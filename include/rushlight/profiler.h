// Where time and memory go: operators, backward nodes and named scopes, nested as they ran, under PyTorch's names.
//
//   rush::Profiler profiler({.profile_memory = true});
//   profiler.start();
//   for (...) {
//     const rush::RecordFunction scope("epoch");
//     train();
//   }
//   profiler.stop();
//   std::cout << profiler.table({.sort_by = "self_cpu_time_total", .row_limit = 10});
//   profiler.export_chrome_trace("trace.json");  // for Perfetto or chrome://tracing
//
// A profiler looks at the thread that starts it, backward passes included; other threads may have one each. Where none
// runs nothing is paid: calls find out by the test that asks for autocast.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rushlight/autograd.h"

namespace rush {

struct ProfilerOptions {
  bool record_shapes = false;   // sizes and dtypes of the arguments
  bool profile_memory = false;  // bytes of tensors
  bool with_stack = false;      // the lines of Python that called
};

/// What an event knows of one argument.
struct ProfilerInput {
  std::string type;         // a C++ type for a tensor ("float"), "TensorList", "Scalar", "ScalarList", "" for None
  std::vector<Dims> sizes;  // of a tensor, or of each in a list
};

/// Times (in microseconds) and bytes of one event, or of several with the same name.
struct ProfilerStats {
  std::string key;
  size_t count = 1;
  double cpu_time_total = 0, self_cpu_time_total = 0;       // with and without the events inside
  int64_t cpu_memory_usage = 0, self_cpu_memory_usage = 0;  // allocated less freed
  int64_t device_memory_usage = 0, self_device_memory_usage = 0;
  int scope = 0;                      // 0 an operator, 1 a backward node, 7 a named scope
  bool top_level = true;              // not within another event; of several, the first
  std::vector<ProfilerInput> inputs;  // with record_shapes
  std::vector<std::string> stack;     // with with_stack, innermost first

  double cpu_time() const { return count ? cpu_time_total / double(count) : 0; }
  /// "[[2, 3], []]": the sizes of the arguments, [] for what is no tensor.
  std::string input_shapes() const;
  /// Adds the other's times, bytes and calls.
  void add(const ProfilerStats& other);
};

/// One call. All events of a recording live as long as one of them is held.
struct ProfilerEvent : ProfilerStats {
  size_t id = 0;              // from 1, in the order of beginning
  double start = 0, end = 0;  // microseconds since the profiler started
  int64_t sequence = -1;      // shared by a call and its backward node
  int thread = 1;             // the number of the thread
  const ProfilerEvent* parent = nullptr;
  std::vector<const ProfilerEvent*> children;
};

struct ProfilerTableOptions {
  std::string sort_by = {};  // a field of ProfilerStats, the largest first; by default as they came
  int64_t row_limit = 100;   // -1: all
  std::string header = {};
  std::string time_unit = {};  // "s", "ms" or "us" for all; by default each in its own
  bool memory = false;
  bool top_level_only = false;
  size_t max_name_width = 55, max_shapes_width = 80, max_source_width = 75;
};

/// Records this thread from start() to stop().
class Profiler {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Throws Error if a profiler runs on this thread. What was recorded before is dropped.
  void start();
  /// Scopes that are open end here. Throws Error if this profiler does not run on this thread.
  void stop();
  bool running() const { return running_; }
  const ProfilerOptions& options() const { return options_; }

  /// What was recorded, in the order of beginning. Throws Error while it runs.
  const std::vector<std::shared_ptr<ProfilerEvent>>& events() const;
  /// Events of the same name as one; on request of the same name and argument sizes, or called from the same n lines.
  std::vector<std::shared_ptr<ProfilerStats>> key_averages(bool group_by_input_shape = false,
                                                           size_t group_by_stack_n = 0) const;
  /// key_averages() as text. Throws ValueError if there is no such field to sort by.
  std::string table(ProfilerTableOptions options = {}) const;
  /// Writes the events as Chrome's trace format. Throws Error if the file can't be written.
  void export_chrome_trace(const std::string& path) const;
  /// The same as text; `metadata` are further JSON members, `"key": value` separated by commas.
  std::string chrome_trace(const std::string& metadata = {}) const;

  struct Recorder;

 private:
  ProfilerOptions options_;
  std::unique_ptr<Recorder> recorder_;
  bool running_ = false;
  mutable std::vector<std::shared_ptr<ProfilerEvent>> events_;
};

/// The two steps of Profiler::table, for lists of one's own.
std::vector<std::shared_ptr<ProfilerStats>> average_events(const std::vector<std::shared_ptr<ProfilerEvent>>& events,
                                                           bool group_by_input_shape, size_t group_by_stack_n);
std::string profiler_table(const std::vector<std::shared_ptr<ProfilerStats>>& rows,
                           const ProfilerTableOptions& options);
/// "1.234ms", "2.50 KB"
std::string format_time(double microseconds);
std::string format_memory(int64_t bytes);

namespace profiler {
/// What this thread records into, null if no profiler runs on it. Reached without a call, as the modes are.
extern constinit thread_local Profiler::Recorder* current [[gnu::tls_model("initial-exec")]];
/// What a storage does in the end whose memory a profiler counts: the memory is that of another storage.
struct Counted {
  Ref<Storage> storage;
  void operator()() const;
  void* resize(int64_t bytes) const;
};
/// The storage as it is, or around it one that tells the profiler of this thread, if it counts memory.
Ref<Storage> counted(Ref<Storage> storage);
/// Makes the lines of the calling Python code; set by the extension.
extern std::vector<std::string> (*capture_stack)();
}  // namespace profiler

/// An event from here to the end of the scope; nothing where no profiler runs.
class RecordFunction {
 public:
  explicit RecordFunction(std::string_view name) {
    if (profiler::current) [[unlikely]]
      handle_ = begin(name);
  }
  /// What the front door and the engine say: a call; a node with what hangs on it; the node alone.
  RecordFunction(const OpInfo& op, const Value* args, bool in_place = false) {
    if (profiler::current) [[unlikely]]
      handle_ = begin(op, args, in_place);
  }
  explicit RecordFunction(const Node& node) {
    if (profiler::current) [[unlikely]]
      handle_ = begin(node, nullptr);
  }
  RecordFunction(const Node& node, const Grads& grads) {
    if (profiler::current) [[unlikely]]
      handle_ = begin(node, &grads);
  }
  ~RecordFunction() {
    if (handle_) [[unlikely]]
      end(handle_);
  }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

  /// For scopes that are none in C++: begin gives a number (0: no profiler runs), with which end ends the event.
  static uint64_t begin(std::string_view name);
  static void end(uint64_t handle);

 private:
  static uint64_t begin(const OpInfo& op, const Value* args, bool in_place);
  static uint64_t begin(const Node& node, const Grads* grads);
  uint64_t handle_ = 0;
};

}  // namespace rush
