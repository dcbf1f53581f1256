// What ends a convolution's sums, on vectors; compiled once for each instruction set. See Epilogue in conv.h.
#if defined(RUSH_EPILOGUE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSH_EPILOGUE_INL_H
#undef RUSH_EPILOGUE_INL_H
#else
#define RUSH_EPILOGUE_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/cpu/conv.h"

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a b + c, rounded once.
template <class Vec>
HWY_INLINE Vec mul_add(Vec a, Vec b, Vec c) {
  if constexpr (hwy::IsFloat<hn::TFromV<Vec>>())
    return hn::MulAdd(a, b, c);
  else
    return hn::Add(hn::Mul(a, b), c);
}

template <class T>
struct Finish {
  using D = hn::ScalableTag<T>;
  using Vec = hn::Vec<D>;
  const T *scale, *shift;
  Vec low, high;

  explicit Finish(const Epilogue<T>& end)
      : scale(end.scale), shift(end.shift), low(hn::Set(D(), end.low)), high(hn::Set(D(), end.high)) {}

  HWY_INLINE Vec clamp(Vec v) const {  // NaN passes
#if HWY_ARCH_X86
    return hn::Min(high, hn::Max(low, v));  // which give the second operand where one is NaN
#else
    v = hn::IfThenElse(hn::Lt(v, low), low, v);
    return hn::IfThenElse(hn::Gt(v, high), high, v);
#endif
  }
  HWY_INLINE Vec of_row(Vec sum, int64_t i) const {
    // Where there is no shift, what changes no sum, -0 among them. Without branches, since many rows may follow.
    return clamp(mul_add(sum, hn::Set(D(), scale ? scale[i] : T(1)), hn::Set(D(), shift ? shift[i] : T(-0.0))));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
