#include "cuda/races.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rush::cuda {
namespace {

void merge(VectorClock& into, const VectorClock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

}  // namespace

RaceChecker::RaceChecker()
    : enabled_([] {
        const char* setting = std::getenv("RUSHLIGHT_SIM_RACES");
        return setting && *setting && std::string_view(setting) != "0";
      }()) {}

VectorClock& RaceChecker::clock(int agent) {
  if (clocks_.size() <= size_t(agent)) clocks_.resize(size_t(agent) + 1);
  VectorClock& c = clocks_[size_t(agent)];
  if (c.size() <= size_t(agent)) c.resize(size_t(agent) + 1);
  return c;
}

void RaceChecker::split(const char* at) {
  auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return;
  const auto range = std::prev(after);
  if (range->first == at || range->second.end <= at) return;
  Range rest = range->second;
  range->second.end = at;
  ranges_.emplace(at, std::move(rest));
}

void RaceChecker::check_order(int agent, std::string_view name, bool write, const Use& before, bool before_write,
                              const char* address) const {
  if (before.agent == agent || before.time == 0) return;
  const VectorClock& known = clocks_[size_t(agent)];
  if (size_t(before.agent) < known.size() && known[size_t(before.agent)] >= before.time) return;
  raise("race between streams: ", name, write ? " writes" : " reads", " memory at ", static_cast<const void*>(address),
        " that ", before.name, before_write ? " writes" : " reads",
        " on another stream, and nothing makes it wait: use Stream.wait_stream, an Event or synchronize(); if the "
        "memory was freed and given out again, Tensor.record_stream");
}

void RaceChecker::access(int agent, std::string_view name, std::span<const Access> accesses) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  merge(clock(agent), clock(0));
  const uint64_t time = ++clock(agent)[size_t(agent)];
  for (const Access& a : accesses) {
    if (a.bytes == 0) continue;
    const auto *begin = static_cast<const char*>(a.data), *end = begin + a.bytes;
    split(begin);
    split(end);
    const Use use{agent, time, name};
    const char* covered = begin;  // up to here there is a range
    for (auto range = ranges_.lower_bound(begin); covered < end; ++range) {
      if (range == ranges_.end() || range->first > covered) {
        const char* until = range == ranges_.end() ? end : std::min(end, range->first);
        range = ranges_.emplace(covered, Range{until, {}, {}}).first;
      }
      Range& r = range->second;
      check_order(agent, name, a.write, r.write, true, range->first);
      if (a.write) {
        for (const Use& u : r.reads) check_order(agent, name, true, u, false, range->first);
        r.write = use;
        r.reads.clear();
      } else {
        std::erase_if(r.reads, [&](const Use& u) { return u.agent == agent; });
        r.reads.push_back(use);
      }
      covered = r.end;
    }
  }
}

void RaceChecker::operation(int agent) {
  if (enabled_) access(agent, current_operation(), current_accesses());
}

VectorClock RaceChecker::now(int agent) {
  if (!enabled_) return {};
  const std::lock_guard lock(mutex_);
  merge(clock(agent), clock(0));
  return clock(agent);
}

void RaceChecker::waits(int agent, const VectorClock& before) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  merge(clock(agent), before);
}

void RaceChecker::host_waits(int agent) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const VectorClock before = clock(agent);
  merge(clock(0), before);
}

void RaceChecker::host_waits(const VectorClock& before) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  merge(clock(0), before);
}

}  // namespace rush::cuda
