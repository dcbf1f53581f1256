// Recording. A thread's events go into a buffer of its own, without locks; what can be derived later (names, nesting
// as a tree, times, bytes) is made when the events are asked for.
#include "rushlight/profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <unordered_map>

#include "autograd/op_node.h"
#include "rushlight/autocast.h"

namespace rush {

namespace {

using Clock = std::chrono::steady_clock;
int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count(); }

constexpr uint32_t kNone = UINT32_MAX;
enum Scope { kOperator = 0, kBackward = 1, kUser = 7 };

int thread_number() {
  static std::atomic<int> next{1};
  thread_local const int number = next++;
  return number;
}

/// C++ types by DType, as PyTorch's traces name them.
constexpr const char* kTypeNames[kDTypes] = {"bool",  "unsigned char", "signed char",         "short int",
                                             "int",   "long int",      "c10::Half",           "c10::BFloat16",
                                             "float", "double",        "c10::complex<float>", "c10::complex<double>"};

ProfilerInput input_of(const Tensor& t) {
  if (!t.defined()) return {};
  return {kTypeNames[int(t.dtype())], {t.sizes()}};
}

ProfilerInput input_of(const Value& v) {
  switch (v.tag) {
    case Value::Tag::Tensor:
      return input_of(v.tensor());
    case Value::Tag::Tensors: {
      ProfilerInput list{"TensorList", {}};
      for (const Tensor& t : v.tensors()) list.sizes.push_back(t.defined() ? t.sizes() : Dims());
      return list;
    }
    case Value::Tag::Int:
    case Value::Tag::Float:
    case Value::Tag::Bool:
    case Value::Tag::Complex:
      return {"Scalar", {}};
    case Value::Tag::Ints:
    case Value::Tag::Floats:
    case Value::Tag::Bools:
    case Value::Tag::Scalars:
      return {"ScalarList", {}};
    default:
      return {};
  }
}

/// Under which name PyTorch has an operator of ours.
std::string operator_name(const OpInfo& op, bool in_place) {
  const std::string_view name = op.name();
  constexpr std::string_view casts[] = {"bool", "byte",     "char",  "short",  "int",    "long",
                                        "half", "bfloat16", "float", "double", "cfloat", "cdouble"};
  std::string out = "aten::";
  if (name == "_cast")
    out += "_to_copy";
  else if (std::find(std::begin(casts), std::end(casts), name) != std::end(casts))
    out += "to";
  else
    out += name;
  if (in_place) out += '_';
  return out;
}

std::string node_name(const Node& node) {
  return node.variable().defined() ? "torch::autograd::" + node.name() : node.name();
}

}  // namespace

std::vector<std::string> (*profiler::capture_stack)() = nullptr;

struct Profiler::Recorder {
  struct Record {
    const OpInfo* op = nullptr;  // if null, `name` is set
    std::string name;
    bool in_place = false;
    Scope scope = kOperator;
    uint32_t parent = kNone;
    int64_t start = 0, end = 0, sequence = -1;
    std::vector<ProfilerInput> inputs;
    std::vector<std::string> stack;
  };
  struct Memory {
    int64_t time, bytes;
    uint32_t record;  // during which it was
    bool device;
  };

  ProfilerOptions options;
  uint32_t session;
  int thread = thread_number();
  long tid = syscall(SYS_gettid);
  int64_t started = 0, wall = 0;  // nanoseconds, by the steady clock and since 1970
  std::deque<Record> records;
  std::deque<Memory> memory;
  uint32_t open = kNone;

  explicit Recorder(ProfilerOptions o) : options(o) {
    static std::atomic<uint32_t> sessions{0};
    session = ++sessions;
    wall = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
               .count();
    started = now();
  }

  Record& add(Scope scope) {
    Record& r = records.emplace_back();
    r.scope = scope;
    r.parent = std::exchange(open, uint32_t(records.size() - 1));
    // What an operator calls comes from the line that called the operator.
    if (options.with_stack && profiler::capture_stack) {
      const bool inside = r.parent != kNone && records[r.parent].scope != kUser;
      r.stack = inside ? records[r.parent].stack : profiler::capture_stack();
    }
    return r;
  }
  /// The event's time starts last, so that it doesn't hold what recording it took.
  uint64_t begun(Record& r) {
    const uint64_t handle = uint64_t(session) << 32 | uint32_t(records.size() - 1);
    r.start = now();
    return handle;
  }
  /// Ends the event and what is still open inside it: Python's scopes may end out of order.
  void end(uint32_t index, int64_t time) {
    if (records[index].end) return;
    while (true) {
      Record& r = records[open];
      r.end = time;
      // A call that made no node has no sequence number.
      if (r.op && next_sequence_number() == uint64_t(r.sequence)) r.sequence = -1;
      if (std::exchange(open, r.parent) == index) return;
    }
  }
  std::vector<std::shared_ptr<ProfilerEvent>> events() const;
};

constinit thread_local Profiler::Recorder* profiler::current = nullptr;

uint64_t RecordFunction::begin(std::string_view name) {
  if (!profiler::current) return 0;
  auto& r = profiler::current->add(kUser);
  r.name = name;
  return profiler::current->begun(r);
}

uint64_t RecordFunction::begin(const OpInfo& op, const Value* args, bool in_place) {
  auto& r = profiler::current->add(kOperator);
  r.op = &op;
  r.in_place = in_place;
  r.sequence = int64_t(next_sequence_number());
  if (profiler::current->options.record_shapes) {
    r.inputs.reserve(op.schema->count);
    for (size_t i = 0; i < op.schema->count; ++i) r.inputs.push_back(input_of(args[i]));
  }
  return profiler::current->begun(r);
}

uint64_t RecordFunction::begin(const Node& node, const Grads* grads) {
  auto& r = profiler::current->add(grads ? kBackward : kOperator);
  r.name = grads ? node_name(node) : "autograd::engine::evaluate_function: " + node_name(node);
  r.sequence = int64_t(node.sequence);
  if (grads && profiler::current->options.record_shapes)
    for (const Tensor& g : *grads) r.inputs.push_back(input_of(g));
  return profiler::current->begun(r);
}

void RecordFunction::end(uint64_t handle) {
  const int64_t time = now();
  if (profiler::current && profiler::current->session == handle >> 32) profiler::current->end(uint32_t(handle), time);
}

namespace {

bool count_memory(int64_t bytes, Device device) {
  Profiler::Recorder* const r = profiler::current;
  if (!r || !r->options.profile_memory || device.is_meta()) return false;
  if (bytes) r->memory.push_back({now(), bytes, r->open, device.is_cuda()});
  return true;
}

}  // namespace

void profiler::Counted::operator()() const { count_memory(-storage->bytes(), storage->device()); }

void* profiler::Counted::resize(int64_t bytes) const {
  const int64_t before = storage->bytes();
  storage->resize(bytes);
  count_memory(bytes - before, storage->device());
  return storage->data();
}

Ref<Storage> profiler::counted(Ref<Storage> storage) {
  if (!count_memory(storage->bytes(), storage->device())) return storage;
  Storage& s = *storage;
  return Storage::wrap(s.data(), s.bytes(), s.device(), Counted{std::move(storage)});
}

Profiler::Profiler(ProfilerOptions options) : options_(options) {}

Profiler::~Profiler() {
  if (!running_) return;
  if (profiler::current == recorder_.get())
    stop();
  else
    (void)recorder_.release();  // the other thread goes on writing to it
}

void Profiler::start() {
  check(!profiler::current, "a profiler is already running on this thread");
  check(!running_, "this profiler is already running on another thread");
  events_.clear();
  recorder_ = std::make_unique<Recorder>(options_);
  profiler::current = recorder_.get();
  running_ = true;
  autocast::watch();
}

void Profiler::stop() {
  check(running_ && profiler::current == recorder_.get(), "this profiler is not running on this thread");
  const int64_t time = now();
  while (recorder_->open != kNone) recorder_->end(recorder_->open, time);
  profiler::current = nullptr;
  autocast::watch();
  running_ = false;
}

const std::vector<std::shared_ptr<ProfilerEvent>>& Profiler::events() const {
  check(!running_, "the profiler is still running");
  if (recorder_ && events_.empty()) events_ = recorder_->events();
  return events_;
}

std::vector<std::shared_ptr<ProfilerEvent>> Profiler::Recorder::events() const {
  const size_t n = records.size();
  const auto since = [&](int64_t time) { return double(time - started) / 1000; };
  const auto block = std::make_shared<std::deque<ProfilerEvent>>();
  std::vector<std::shared_ptr<ProfilerEvent>> out;
  const auto add_event = [&] { out.emplace_back(block, &block->emplace_back()); };
  for (size_t i = 0; i < n; ++i) {
    const Record& r = records[i];
    add_event();
    ProfilerEvent& e = *out[i];
    e.key = r.op ? operator_name(*r.op, r.in_place) : r.name;
    e.scope = r.scope;
    e.start = since(r.start);
    e.end = since(r.end);
    e.cpu_time_total = e.end - e.start;
    e.sequence = r.sequence;
    e.thread = thread;
    e.inputs = r.inputs;
    e.stack = r.stack;
    if (r.parent != kNone) e.parent = out[r.parent].get();
  }
  for (const Memory& m : memory) {
    if (m.record == kNone) {
      add_event();
      out.back()->key = "[memory]";
      out.back()->start = out.back()->end = since(m.time);
      out.back()->thread = thread;
    }
    ProfilerEvent& e = m.record == kNone ? *out.back() : *out[m.record];
    (m.device ? e.device_memory_usage : e.cpu_memory_usage) += m.bytes;
  }
  for (size_t i = n; i-- > 0;) {  // a parent comes before what is inside it
    if (records[i].parent == kNone) continue;
    out[records[i].parent]->cpu_memory_usage += out[i]->cpu_memory_usage;
    out[records[i].parent]->device_memory_usage += out[i]->device_memory_usage;
  }
  for (const auto& e : out)
    if (e->parent) const_cast<ProfilerEvent*>(e->parent)->children.push_back(e.get());
  // One call may pass the front door twice, as under autocast; it is one event.
  std::erase_if(out, [](const auto& e) {
    if (!e->parent || e->parent->key != e->key || e->parent->children.size() != 1) return false;
    auto* parent = const_cast<ProfilerEvent*>(e->parent);
    parent->children = e->children;
    for (const ProfilerEvent* child : e->children) const_cast<ProfilerEvent*>(child)->parent = parent;
    return true;
  });
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->start < b->start; });
  for (size_t i = 0; i < out.size(); ++i) {
    ProfilerEvent& e = *out[i];
    e.id = i + 1;
    e.top_level = !e.parent;
    e.self_cpu_time_total = e.cpu_time_total;
    e.self_cpu_memory_usage = e.cpu_memory_usage;
    e.self_device_memory_usage = e.device_memory_usage;
    for (const ProfilerEvent* child : e.children) {
      e.self_cpu_time_total -= child->cpu_time_total;
      e.self_cpu_memory_usage -= child->cpu_memory_usage;
      e.self_device_memory_usage -= child->device_memory_usage;
    }
  }
  return out;
}

// ---- Chrome's trace format ----

namespace {

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// A list of f's of the elements.
template <class List, class F>
std::string listed(const List& list, F&& f) {
  std::string out = "[";
  for (const auto& x : list) out += (out.size() > 1 ? ", " : "") + std::string(f(x));
  return out + "]";
}

std::string sizes_text(const Dims& sizes) {
  return listed(sizes, [](int64_t n) { return std::to_string(n); });
}

}  // namespace

std::string Profiler::chrome_trace(const std::string& metadata) const {
  std::string out = "{\n  \"schemaVersion\": 1,\n  \"displayTimeUnit\": \"ms\",\n";
  if (!metadata.empty()) out += "  " + metadata + ",\n";
  out += "  \"traceEvents\": [";
  const auto& list = events();
  if (!recorder_) return out + "]\n}\n";
  const std::string who = ", \"pid\": " + std::to_string(getpid()) + ", \"tid\": " + std::to_string(recorder_->tid);
  bool first = true;
  const auto write = [&](std::string_view phase, std::string_view category, std::string_view name, double since,
                         const std::string& more) {
    char time[40];
    std::snprintf(time, sizeof time, "%.3f", double(recorder_->wall / 1000) + since);
    out += text(std::exchange(first, false) ? "" : ",", "\n    {\"ph\": \"", phase, "\", \"cat\": \"", category,
                "\", \"name\": ", quoted(name), who, ", \"ts\": ", time, more, "}");
  };
  write("M", "", "process_name", 0, ", \"args\": {\"name\": \"rushlight\"}");
  write("M", "", "thread_name", 0, text(", \"args\": {\"name\": \"thread ", recorder_->tid, "\"}"));
  std::unordered_map<int64_t, const ProfilerEvent*> forward;  // by sequence number, the innermost call
  for (const auto& e : list) {
    if (e->key == "[memory]") continue;
    char duration[32];
    std::snprintf(duration, sizeof duration, "%.3f", e->cpu_time_total);
    std::string more = text(", \"dur\": ", duration, ", \"args\": {\"External id\": ", e->id);
    if (e->sequence >= 0) more += text(", \"Sequence number\": ", e->sequence);
    if (!e->inputs.empty()) {
      const auto dims = [](const ProfilerInput& in) {
        if (in.type == "TensorList") return listed(in.sizes, sizes_text);
        return in.sizes.empty() ? std::string("[]") : sizes_text(in.sizes[0]);
      };
      more += ", \"Input Dims\": " + listed(e->inputs, dims);
      more += ", \"Input type\": " + listed(e->inputs, [](const ProfilerInput& in) { return quoted(in.type); });
    }
    if (!e->stack.empty()) {
      std::string lines;
      for (const std::string& line : e->stack) lines += (lines.empty() ? "" : ";") + line;
      more += ", \"Call stack\": " + quoted(lines);
    }
    write("X", e->scope == kUser ? "user_annotation" : "cpu_op", e->key, e->start, more + "}");
    if (e->sequence < 0) continue;
    if (e->scope == kOperator && !e->key.starts_with("autograd::")) {
      forward[e->sequence] = e.get();
    } else if (const auto from = forward.find(e->sequence); e->scope == kBackward && from != forward.end()) {
      const std::string flow = text(", \"id\": ", e->sequence);
      write("s", "fwdbwd", "fwdbwd", from->second->start, flow);
      write("f", "fwdbwd", "fwdbwd", e->start, flow + ", \"bp\": \"e\"");
    }
  }
  int64_t total[2] = {};
  for (const Recorder::Memory& m : recorder_->memory) {
    total[m.device] += m.bytes;
    write("i", "cpu_instant_event", "[memory]", double(m.time - recorder_->started) / 1000,
          text(", \"s\": \"t\", \"args\": {\"Device Type\": ", int(m.device), ", \"Bytes\": ", m.bytes,
               ", \"Total Allocated\": ", total[m.device], "}"));
  }
  return out + "\n  ]\n}\n";
}

void Profiler::export_chrome_trace(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << chrome_trace();
  file.close();
  check(bool(file), "can't write the trace to ", path);
}

}  // namespace rush
