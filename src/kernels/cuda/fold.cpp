// Launches of reductions: how many teams share the elements of a result.
#include "kernels/cuda/fold.h"

#include <algorithm>

#include "kernels/cpu/casts.h"
#include "kernels/cuda/fold.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tensors.h"
#include "rushlight/ops.h"

namespace rush::cuda {

namespace {

constexpr int64_t kTeamsWanted = 1024, kLeast = 4096;  // teams that fill a GPU; elements worth one

int64_t count(const Axes& axes) {
  int64_t n = 1;
  for (int64_t d = 0; d < axes.dims; ++d) n *= axes.sizes[d];
  return n;
}

template <class R>
void run(const FoldOptions& options, const Tensor& x, const Dims& dims, Tensor* const* outs, int out_count) {
  FoldParts<R> f{};
  f.x = static_cast<const char*>(x.data_ptr());
  f.dtype = x.dtype();
  f.options = options;
  f.n = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    append(reduced ? f.reduced : f.kept, x.sizes()[d], x.strides()[d]);
    if (reduced) f.n *= x.sizes()[d];
  }
  const int64_t m = f.n == 0 ? outs[0]->numel() : count(f.kept);
  // A result that nobody wants (argmax without values) is still written, to where it does no harm.
  Tensor unwanted;
  for (int k = 0; k < R::kOuts; ++k) {
    if (k >= out_count) unwanted = allocate({{m}, outs[0]->dtype(), x.device(), {}});
    const Tensor& out = k < out_count ? *outs[k] : unwanted;
    f.outs[k] = static_cast<char*>(out.data_ptr());
    f.out_dtypes[k] = out.dtype();
  }
  f.splits = std::clamp<int64_t>(std::min(f.n / kLeast, kTeamsWanted / std::max<int64_t>(m, 1)), 1, 256);
  if (f.splits == 1) return for_teams(x.device(), m, f.n, f);
  const Tensor parts =
      allocate({{m * f.splits * int64_t(sizeof(typename R::Acc) + 15) / 16}, kComplex128, x.device(), {}});
  f.parts = static_cast<typename R::Acc*>(parts.data_ptr());
  for_teams(x.device(), m * f.splits, f.n, f);
  for_each(x.device(), m,
           FoldJoin<R>{f.parts, {f.outs[0], f.outs[1]}, f.splits, options, {f.out_dtypes[0], f.out_dtypes[1]}});
}

/// Calls f with the compute type among T... of `t`.
template <class... T, class F>
void with_compute(DType t, F&& f) {
  const DType want = is_half(t) ? kFloat32 : is_integral(t) ? kInt64 : t;
  const bool found = ((want == dtype_of<T> ? (f.template operator()<T>(), true) : false) || ...);
  if (!found) raise<NotImplementedError>("not implemented for '", scalar_name(t), "'");
}

using C64 = std::complex<float>;
using C128 = std::complex<double>;

}  // namespace

void fold(cpu::FoldKind kind, DType t, const FoldOptions& options, const Tensor& x, const Dims& dims,
          Tensor* const* outs, int out_count) {
  using cpu::FoldKind;
  const auto go = [&]<class R>() { run<R>(options, x, dims, outs, out_count); };
#define RUSH_NUMERIC(F, ...) \
  return with_compute<__VA_ARGS__>(t, [&]<class T>() { go.template operator()<Simple<folds::F<T>>>(); });
  switch (kind) {
    case FoldKind::sum:
      RUSH_NUMERIC(Sum, int64_t, float, double, C64, C128)
    case FoldKind::nansum:
      if (is_integral(t)) RUSH_NUMERIC(Sum, int64_t)
      RUSH_NUMERIC(NanSum, float, double, C64, C128)
    case FoldKind::prod:
      RUSH_NUMERIC(Prod, int64_t, float, double, C64, C128)
    case FoldKind::max:
      RUSH_NUMERIC(Max, int64_t, float, double)
    case FoldKind::min:
      RUSH_NUMERIC(Min, int64_t, float, double)
    case FoldKind::any:
      return go.template operator()<Simple<folds::Any>>();
    case FoldKind::all:
      return go.template operator()<Simple<folds::All>>();
    case FoldKind::count:
      return go.template operator()<Simple<folds::Count>>();
    case FoldKind::sum_abs:
      RUSH_NUMERIC(SumAbs, float, double)
    case FoldKind::sum_square:
      RUSH_NUMERIC(SumSquare, float, double)
    case FoldKind::sum_power:
      RUSH_NUMERIC(SumPower, float, double)
    case FoldKind::max_abs:
      RUSH_NUMERIC(MaxAbs, float, double)
    case FoldKind::min_abs:
      RUSH_NUMERIC(MinAbs, float, double)
#undef RUSH_NUMERIC
    case FoldKind::argmax:
      return with_compute<int64_t, float, double>(t, [&]<class T>() { go.template operator()<Arg<folds::Max<T>>>(); });
    case FoldKind::argmin:
      return with_compute<int64_t, float, double>(t, [&]<class T>() { go.template operator()<Arg<folds::Min<T>>>(); });
    case FoldKind::moments:
      return with_compute<float, double>(t, [&]<class T>() { go.template operator()<Moments<T>>(); });
  }
}

}  // namespace rush::cuda
