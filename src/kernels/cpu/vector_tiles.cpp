// The float loops of the pointwise functions that are used most, written with vectors.
#include "kernels/cpu/vector_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_tiles.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {

/// out[i] = f(d, in[0][i], ...) a vector at a time; what is left over at the end goes through a vector of its own.
template <size_t kIns, class F>
HWY_INLINE void tile(void* const* out, const void* const* in, int64_t n, const F& f) {
  const hn::ScalableTag<float> d;
  constexpr auto N = int64_t(hn::MaxLanes(d));
  float* to = static_cast<float*>(out[0]);
  const auto at = [&](size_t k) { return static_cast<const float*>(in[k]); };
  const auto from = [&](auto load) HWY_ATTR {
    if constexpr (kIns == 1)
      return f(d, load(0));
    else
      return f(d, load(0), load(1));
  };
  int64_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(from([&](size_t k) HWY_ATTR { return hn::LoadU(d, at(k) + i); }), d, to + i);
  if (i == n) return;
  HWY_ALIGN float rest[kIns][HWY_LANES(float)] = {};
  for (size_t k = 0; k < kIns; ++k)
    for (int64_t j = 0; j < n - i; ++j) rest[k][j] = at(k)[i + j];
  hn::Store(from([&](size_t k) HWY_ATTR { return hn::Load(d, rest[k]); }), d, rest[0]);
  for (int64_t j = 0; j < n - i; ++j) to[i + j] = rest[0][j];
}

void exp_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR { return exp(d, x); });
}
void log1p_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR { return log1p(d, x); });
}
void pow_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<2>(out, in, n, [](auto d, auto x, auto y) HWY_ATTR { return pow(d, x, y); });
}
void rsqrt_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR { return rsqrt(d, x); });
}
void sigmoid_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR { return sigmoid(d, x); });
}
void logsigmoid_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR { return hn::Sub(hn::Min(x, hn::Zero(d)), log1p_exp(d, x)); });
}
void softplus_lanes(const formula::Softplus<float>& f, void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [f](auto d, auto x) HWY_ATTR {
    const auto beta = hn::Set(d, f.beta), z = hn::Mul(x, beta);
    const auto y = hn::Div(hn::Add(hn::Max(z, hn::Zero(d)), log1p_exp(d, z)), beta);
    return hn::IfThenElse(hn::Gt(z, hn::Set(d, f.threshold)), x, y);
  });
}
// x Phi(x), where 1 + erf would cancel for negative x, is max(x, 0) - |x| Phi(-|x|).
void gelu_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<1>(out, in, n, [](auto d, auto x) HWY_ATTR {
    const auto a = tail_distance(d, x);
    return hn::NegMulAdd(a, normal_tail(d, a), hn::Max(hn::Zero(d), x));
  });
}
void gelu_grad_lanes(void* const* out, const void* const* in, int64_t n) {
  tile<2>(out, in, n, [](auto d, auto g, auto x) HWY_ATTR {
    const auto tail = normal_tail(d, tail_distance(d, x)), zero = hn::Zero(d);
    const auto cdf = hn::IfThenElse(hn::Gt(x, zero), hn::Sub(hn::Set(d, 1.0f), tail), tail);
    const auto density = exp_falling(d, hn::Mul(hn::Mul(hn::Set(d, -0.5f), x), x));
    return hn::Mul(g, hn::MulAdd(hn::Mul(x, hn::Set(d, 0.39894228f)), density, cdf));  // 1 / sqrt(2 pi)
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(exp_lanes);
HWY_EXPORT(log1p_lanes);
HWY_EXPORT(pow_lanes);
HWY_EXPORT(rsqrt_lanes);
HWY_EXPORT(sigmoid_lanes);
HWY_EXPORT(logsigmoid_lanes);
HWY_EXPORT(gelu_lanes);
HWY_EXPORT(gelu_grad_lanes);
HWY_EXPORT(softplus_lanes);

void exp_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(exp_lanes)(out, in, n);
}
void log1p_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(log1p_lanes)(out, in, n);
}
void pow_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pow_lanes)(out, in, n);
}
void rsqrt_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rsqrt_lanes)(out, in, n);
}
void sigmoid_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sigmoid_lanes)(out, in, n);
}
void logsigmoid_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(logsigmoid_lanes)(out, in, n);
}
void gelu_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_lanes)(out, in, n);
}
void gelu_grad_tile(const void*, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(gelu_grad_lanes)(out, in, n);
}
void softplus_tile(const void* f, void* const* out, const void* const* in, int64_t n) {
  HWY_DYNAMIC_DISPATCH(softplus_lanes)(*static_cast<const formula::Softplus<float>*>(f), out, in, n);
}
}  // namespace rush::cpu
#endif
