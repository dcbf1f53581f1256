// The race checker (RUSHLIGHT_SIM_RACES=1): finds work on two streams that touches the same memory, one of them
// writing, with no event or synchronisation that would put one before the other. It looks at the order in which work is
// put on streams and at who waits for whom, so what it finds does not depend on which happened to run first.
//
// Note [Vector clocks] Each stream counts its operations, and knows of every other stream up to which operation it is
// sure to come after (Lamport 1978; Mattern 1989). The host is one more such party: what it puts on a stream comes
// after all it has waited for.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/runtime.h"

namespace rush::cuda {

/// Operations of each agent that have surely come before. Agent 0 is the host.
using VectorClock = std::vector<uint64_t>;

class RaceChecker {
 public:
  RaceChecker();
  bool enabled() const { return enabled_; }

  /// The agent does an operation that touches memory. Throws Error if that races with an earlier one.
  void access(int agent, std::string_view name, std::span<const Access> accesses);
  /// The agent does what the calling thread has announced.
  void operation(int agent);
  /// What comes before anything put on the agent's queue from now on.
  VectorClock now(int agent);
  void waits(int agent, const VectorClock& clock);
  void host_waits(int agent);
  void host_waits(const VectorClock& clock);

 private:
  struct Use {
    int agent = 0;
    uint64_t time = 0;  // 0: never
    std::string_view name;
  };
  /// The last write of a range of memory and the reads since.
  struct Range {
    const char* end;
    Use write;
    std::vector<Use> reads;
  };
  using Ranges = std::map<const char*, Range>;

  VectorClock& clock(int agent);
  void split(const char* at);
  void check_order(int agent, std::string_view name, bool write, const Use& before, bool before_write,
                   const char* address) const;

  const bool enabled_;
  std::mutex mutex_;
  std::deque<VectorClock> clocks_;  // references stay valid while it grows
  Ranges ranges_;
};

}  // namespace rush::cuda
