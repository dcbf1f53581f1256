// Graphs: work that is recorded instead of done, to be done again and again. What a runtime has for it, besides
// runtime.h, and what the allocator does meanwhile.
#pragma once
#include "cuda/runtime.h"
#include "rushlight/cuda.h"

namespace rush::cuda {

using GraphHandle = void*;

class Graphs {
 public:
  virtual ~Graphs() = default;
  /// From here on, what is put on the stream is recorded. Waiting for it is an error.
  virtual void begin_capture(int device, StreamHandle stream) = 0;
  virtual GraphHandle end_capture(int device, StreamHandle stream) = 0;
  virtual void launch_graph(int device, StreamHandle stream, GraphHandle graph) = 0;
  virtual void destroy_graph(int device, GraphHandle graph) = 0;
};
/// Of the process's runtime.
Graphs& graphs();

/// Calls a function before each replay of the graph that the stream is capturing, on the stream of the replay, until
/// the graph dies.
void at_replay(const Stream& capturing, std::function<void()> function);

// Memory of the graph `id` (allocator.cpp): what is allocated for a stream between hold_memory and end_hold is given to
// nobody else before release_memory, also when it was freed; the graph itself uses what it freed again.
void hold_memory(int device, int stream, uint64_t id);
void end_hold(int device);
void release_memory(int device, uint64_t id);

}  // namespace rush::cuda
