// What gradient scaling needs: all gradients unscaled and checked in one call.
#include <atomic>
#include <cmath>

#include "rushlight/autograd.h"
#include "rushlight/ops.h"
#include "rushlight/optim/steps.h"
#include "rushlight/parallel.h"

namespace rush::optim {
namespace {

/// x *= scale; true if an element was inf or nan before.
template <class T>
bool unscale_memory(T* x, int64_t n, float scale) {
  std::atomic<bool> bad{false};
  parallel_for(0, n, 32768, [&](int64_t lo, int64_t hi) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Wide odd = 0;  // stays 0 as long as all are finite
    for (int64_t i = lo; i < hi; ++i) {
      const auto v = Wide(x[i]);
      odd += v * 0;
      x[i] = T(v * scale);
    }
    if (!(odd == 0)) bad.store(true, std::memory_order_relaxed);
  });
  return bad.load();
}

}  // namespace

void unscale(Tensors grads, Tensor found_inf, const Tensor& inv_scale) {
  check(found_inf.numel() == 1 && found_inf.dtype() == kFloat32, "found_inf must be a 1-element float tensor");
  check(inv_scale.numel() == 1 && inv_scale.dtype() == kFloat32, "inv_scale must be a 1-element float tensor");
  NoGrad guard;
  for (Tensor g : grads) {
    check(g.is_floating_point(), "expected gradients of a floating-point dtype, got ", g.dtype());
    if (g.is_cpu() && is_dense(g.sizes(), g.strides())) {
      const bool bad = for_floating(
          g.dtype(), [&]<class T>() { return unscale_memory(g.data<T>(), g.numel(), inv_scale.item<float>()); });
      g.bump_version();
      if (bad) in_place(fill, found_inf, Tensor(1));
    } else {
      in_place(copy, found_inf, maximum(found_inf, cast(logical_not(all(isfinite(g))), kFloat32)));
      in_place(mul, g, inv_scale);
    }
  }
}

}  // namespace rush::optim
