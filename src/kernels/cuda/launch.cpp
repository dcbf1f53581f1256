// How large launches are.
#include "kernels/cuda/launch.h"

#include <cstdlib>

namespace rush::cuda {

const Registered* all_kernels = nullptr;
Registered::Registered(const Kernel& k) : kernel(k), next(all_kernels) { all_kernels = this; }

namespace {

constexpr int64_t kMaxBlocks = 4096;

/// Threads of a simulated block, 0 on a GPU.
unsigned simulated_threads() {
  static const unsigned threads = [] {
    if (!runtime().simulated()) return 0u;
    const char* text = std::getenv("RUSHLIGHT_SIM_THREADS");
    const int wanted = text ? std::atoi(text) : 1;
    check(wanted >= 1 && wanted <= kTeam && (wanted & (wanted - 1)) == 0,
          "RUSHLIGHT_SIM_THREADS must be a power of two up to ", kTeam, ", got ", text);
    return unsigned(wanted);
  }();
  return threads;
}

}  // namespace

Shape grid_for(int64_t n) {
  if (const unsigned threads = simulated_threads()) {
    const unsigned blocks = threads == 1 ? 1 : unsigned(std::clamp<int64_t>(n / threads, 1, 4));
    return {{blocks}, {threads}};
  }
  return {{unsigned(std::clamp<int64_t>((n + kTeam - 1) / kTeam, 1, kMaxBlocks))}, {kTeam}};
}

Shape teams_for(int64_t n, int64_t width) {
  if (const unsigned threads = simulated_threads())
    return {{threads == 1 ? 1 : unsigned(std::min<int64_t>(n, 4))}, {threads}};
  unsigned threads = 32;
  while (threads < kTeam && threads < width) threads *= 2;
  return {{unsigned(std::min(n, kMaxBlocks))}, {threads}};
}

}  // namespace rush::cuda
