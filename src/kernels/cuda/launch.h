// Launching the functors of the .cuh files: the host's side of kernels/cuda/grid.cuh.
//
//   for_each(out.device(), out.numel(), Fill<float>{out.data<float>(), 1});
//   for_teams(out.device(), rows, columns, Softmax<float>{...});   // a team of threads for each row
//
// Every functor launched anywhere in the library is in the list that starts at `all_kernels`, for the test that
// compiles them all.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "cuda/runtime.h"
#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/host.h"
#include "rushlight/dtype.h"

// Outside of rush, so that the compiler writes names in rush with their namespaces.
namespace kernel_names {
template <class... T>
constexpr std::string_view signature() {
  return __PRETTY_FUNCTION__;
}
/// "A, B" of signature<A, B>(), which GCC writes as [with T = {A, B}; ...] and Clang as [T = <A, B>].
template <class... T>
constexpr std::string_view types() {
  std::string_view s = signature<T...>();
  const char open = s.find("= {") != s.npos ? '{' : '<', close = open == '{' ? '}' : '>';
  s.remove_prefix(s.find(open == '{' ? "= {" : "= <") + 3);
  int depth = 1;
  size_t end = 0;
  for (; end < s.size(); ++end) {
    if (s[end] == open) ++depth;
    if (s[end] == close && --depth == 0) break;
  }
  return s.substr(0, end);
}
/// The text "function<A, B>".
template <size_t kPrefix, class... T>
struct Name {
  std::array<char, kPrefix + types<T...>().size() + 3> text{};
  constexpr Name(std::string_view function) {
    size_t at = 0;
    for (char c : function) text[at++] = c;
    text[at++] = '<';
    for (char c : types<T...>()) text[at++] = c;
    text[at++] = '>';
  }
};
}  // namespace kernel_names

namespace rush::cuda {

struct Registered {
  const Kernel& kernel;
  const Registered* next;
  Registered(const Kernel& k);
};
extern const Registered* all_kernels;

template <auto function>
struct Host;
template <class... P, void (*function)(P...)>
struct Host<function> {
  static void thread(void* const* arguments) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      function(*static_cast<const std::remove_const_t<P>*>(arguments[I])...);
    }
    (std::index_sequence_for<P...>());
  }
  static void run_block(const Shape& shape, Dim3 index, void* const* arguments) {
    run_threads(shape, index, thread, arguments);
  }
};

/// The kernel made of a template's name, its arguments and what it is on the host.
template <const auto& kFunction, auto host, class... T>
struct KernelOf {
  static constexpr std::string_view kName = kFunction;
  static constexpr kernel_names::Name<kName.size(), T...> name{kName};
  static constexpr Kernel kernel{"kernels.cuh", name.text.data(), Host<host>::run_block};
  static inline const Registered registered{kernel};
  static const Kernel& get() {
    (void)&registered;
    return kernel;
  }
};
inline constexpr char kEach[] = "rush::cuda::each", kTeams[] = "rush::cuda::teams";

/// Blocks and threads for n independent items.
Shape grid_for(int64_t n);
/// A block for each of n items, with as many threads as `width` elements keep busy.
Shape teams_for(int64_t n, int64_t width);

template <class F>
void for_each(Device device, int64_t n, const F& f) {
  if (n > 0) launch(KernelOf<kEach, &each<F>, F>::get(), device.index, grid_for(n), f, n);
}
template <class F>
void for_teams(Device device, int64_t n, int64_t width, const F& f) {
  if (n > 0) launch(KernelOf<kTeams, &teams<F>, F>::get(), device.index, teams_for(n, width), f, n);
}

/// The same on any device: for what a CPU kernel and a GPU kernel share.
template <class F>
void on_each(Device device, int64_t n, const F& f) {
  if (device.is_cuda()) return for_each(device, n, f);
  for (int64_t i = 0; i < n; ++i) f(i);
}

}  // namespace rush::cuda
