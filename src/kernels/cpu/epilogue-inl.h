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

template <class T>
struct Finish {
  using D = hn::ScalableTag<T>;
  using Vec = hn::Vec<D>;
  Vec scale, shift, low, high;

  Finish(const Epilogue<T>& end, Vec scale, Vec shift)
      : scale(scale), shift(shift), low(hn::Set(D(), end.low)), high(hn::Set(D(), end.high)) {}

  HWY_INLINE Vec clamp(Vec v) const {  // by comparisons, which let NaN pass
    v = hn::IfThenElse(hn::Lt(v, low), low, v);
    return hn::IfThenElse(hn::Gt(v, high), high, v);
  }
  HWY_INLINE Vec operator()(Vec sum) const { return clamp(hn::MulAdd(sum, scale, shift)); }
};

}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
