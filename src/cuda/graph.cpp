// Graphs, over either runtime.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/graphs.h"
#include "rushlight/cuda.h"

namespace rush::cuda {
namespace {

std::atomic<uint64_t> next_id{1};
std::atomic<int> captures{0};  // of all threads
std::mutex mutex;
std::vector<Stream> captured;  // streams that are being captured

}  // namespace

struct Graph::State {
  const uint64_t id = next_id++;
  std::optional<Stream> stream;  // while it captures, and after
  bool capturing = false;
  GraphHandle handle = nullptr;

  ~State() {
    if (!stream || !started()) return;
    try {
      if (handle) {
        cuda::synchronize(stream->device());  // it may still be running
        graphs().destroy_graph(stream->device(), handle);
      }
    } catch (const Error&) {  // of the device, which says it again at the next synchronisation
    }
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
  captured.push_back(stream);
  ++captures;
}

void Graph::capture_end() {
  State& s = *state_;
  check(s.capturing, "capture_end() without capture_begin()");
  s.capturing = false;
  {
    const std::lock_guard lock(mutex);
    std::erase(captured, *s.stream);
    --captures;
  }
  end_hold(s.stream->device());
  s.handle = graphs().end_capture(s.stream->device(), s.stream->handle());
}

void Graph::replay() const {
  const State& s = *state_;
  check(s.handle, "replay() of a graph that was not captured");
  check_failure(s.stream->device());
  graphs().launch_graph(s.stream->device(), current_stream(s.stream->device()).handle(), s.handle);
}

void Graph::reset() {
  check(!state_->capturing, "reset() of a graph that is being captured");
  state_ = std::make_shared<State>();
}

bool is_capturing(const Stream& stream) {
  if (captures.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex);
  return std::find(captured.begin(), captured.end(), stream) != captured.end();
}

Graphs& graphs() { return dynamic_cast<Graphs&>(runtime()); }

}  // namespace rush::cuda
