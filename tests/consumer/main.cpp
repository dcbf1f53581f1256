// A user's program: what the installed headers and library must carry.
#include <rushlight/parallel.h>

#include <atomic>
#include <cstdio>

int main() {
  std::atomic<int64_t> sum = 0;
  rush::parallel_for(0, 1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  std::printf("%ld\n", static_cast<long>(sum));
  return sum == 499500 ? 0 : 1;
}
