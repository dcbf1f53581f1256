// Graphs, over either runtime.
#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/graphs.h"

namespace rush::cuda {
namespace {

std::atomic<uint64_t> next_id{1};
std::atomic<int> captures{0};  // of all threads
std::mutex mutex;
using Functions = std::vector<std::function<void()>>;
struct Capture {
  Stream stream;
  std::shared_ptr<Functions> at_replay;
};
std::vector<Capture> captured;  // streams that are being captured

auto find(const Stream& stream) {
  return std::find_if(captured.begin(), captured.end(), [&](const Capture& c) { return c.stream == stream; });
}

}  // namespace

struct Graph::State {
  const uint64_t id = next_id++;
  std::optional<Stream> stream;  // while it captures, and after
  bool capturing = false;
  GraphHandle handle = nullptr;
  std::shared_ptr<Functions> at_replay = std::make_shared<Functions>();

  ~State() {
    if (!stream || !started()) return;
    try {
      if (handle) {
        cuda::synchronize(stream->device());  // it may still be running
        graphs().destroy_graph(stream->device(), handle);
      }
    } catch (const Error&) {  // of the device, which says it again at the next synchronisation
    }
    at_replay->clear();  // which holds memory
    release_memory(stream->device(), id);
  }
};

Graph::Graph() : state_(std::make_shared<State>()) {}

void Graph::capture_begin() {
  State& s = *state_;
  const Stream stream = current_stream();
  check(!s.stream, "this graph has been captured: reset it first");
  check(stream.id() != 0, "a graph can't be captured on the default stream: make another one current");
  check(!is_capturing(stream), "the current stream is being captured already");
  graphs().begin_capture(stream.device(), stream.handle());
  s.stream = stream;
  s.capturing = true;
  hold_memory(stream.device(), stream.id(), s.id);
  const std::lock_guard lock(mutex);
  captured.push_back({stream, s.at_replay});
  ++captures;
}

void Graph::capture_end() {
  State& s = *state_;
  check(s.capturing, "capture_end() without capture_begin()");
  s.capturing = false;
  {
    const std::lock_guard lock(mutex);
    captured.erase(find(*s.stream));
    --captures;
  }
  end_hold(s.stream->device());
  s.handle = graphs().end_capture(s.stream->device(), s.stream->handle());
}

void Graph::replay() const {
  const State& s = *state_;
  check(s.handle, "replay() of a graph that was not captured");
  check_failure(s.stream->device());
  if (!s.at_replay->empty()) {
    check(!is_capturing(current_stream(s.stream->device())),
          "replay() of a graph with random numbers while another is captured: each replay of that would repeat them");
    for (const auto& function : *s.at_replay) function();
  }
  graphs().launch_graph(s.stream->device(), current_stream(s.stream->device()).handle(), s.handle);
}

void Graph::reset() {
  check(!state_->capturing, "reset() of a graph that is being captured");
  state_ = std::make_shared<State>();
}

bool is_capturing(const Stream& stream) {
  if (captures.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex);
  return find(stream) != captured.end();
}
void at_replay(const Stream& capturing, std::function<void()> function) {
  const std::lock_guard lock(mutex);
  find(capturing)->at_replay->push_back(std::move(function));
}

Graphs& graphs() { return dynamic_cast<Graphs&>(runtime()); }

}  // namespace rush::cuda
