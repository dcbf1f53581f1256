// How elements reach a fold. Two patterns cover all layouts: where the reduced dimension is the inner one in memory
// each result is a run of elements; where a kept dimension is, rows of elements go to a row of accumulators. Elements
// of another dtype or stride than the fold takes are first brought into a buffer in L1. There short runs are turned
// into rows, since a call for each would cost more than its elements.
#include "kernels/cpu/fold.h"

#include <cstddef>
#include <memory>

#include "kernels/cpu/casts.h"
#include "kernels/cpu/transpose-inl.h"
#include "rushlight/parallel.h"
#include "rushlight/small_vector.h"

namespace rush::cpu {
namespace {

constexpr int64_t kTile = 2048;      // elements in a buffer: as many as lanes take before they are added up
constexpr int64_t kUnit = 1024;      // accumulators that one task owns, at most
constexpr int64_t kWideUnit = 4096;  // the same where rows are read where they lie: long pieces of memory, one by one
constexpr int64_t kUnitRuns = 64;    // the same where each takes a run
constexpr int64_t kMerged = 128 * 1024;  // accumulators of one unit's parts, at most
constexpr int64_t kShortRun = 32;        // runs up to this are turned
constexpr int64_t kSplit = 64 * 1024;    // elements that are worth a task of their own

struct Axis {
  int64_t size, stride;
};
using Axes = SmallVector<Axis, 6>;

/// Appends an axis inside the ones before it, joined to the last where memory allows.
void append(Axes& axes, Axis a) {
  if (a.size == 1) return;
  if (!axes.empty() && axes.back().stride == a.stride * a.size) {
    axes.back() = {axes.back().size * a.size, a.stride};
  } else {
    axes.push_back(a);
  }
}
int64_t count(const Axes& axes, size_t n) {
  int64_t product = 1;
  for (size_t i = 0; i < n; ++i) product *= axes[i].size;
  return product;
}
/// Where the element with this linear index over the first n axes lies.
int64_t place(const Axes& axes, size_t n, int64_t linear) {
  int64_t at = 0;
  while (n-- > 0) {
    at += linear % axes[n].size * axes[n].stride;
    linear /= axes[n].size;
  }
  return at;
}

/// Brings elements to where and as what the fold wants them.
struct Source {
  const char* data;
  int64_t bytes, want_bytes;
  CastFunction cast;  // null where the dtype is right

  Source(const Tensor& x, DType want)
      : data(static_cast<const char*>(x.data_ptr())),
        bytes(x.itemsize()),
        want_bytes(size_of(want)),
        cast(x.dtype() == want ? nullptr : cast_function(want, x.dtype())) {}
  const char* at(int64_t offset) const { return data + offset * bytes; }
  bool direct(int64_t stride) const { return !cast && stride == 1; }
  void load(char* to, const char* from, int64_t stride, int64_t n) const {
    if (stride == 1) return cast(to, from, n);
    if (!cast) return gather(to, from, stride, n, bytes);
    alignas(64) char raw[kTile * 16];
    gather(raw, from, stride, n, bytes);
    cast(to, raw, n);
  }
};

struct Job {
  const Fold& f;
  const FoldOptions& options;
  Source source;
  Axes kept, reduced;
  int64_t n = 1;  // elements of each result
  bool by_rows = false;

  /// Accumulators [first, first + width) take their elements [lo, hi).
  void take_runs(char* acc, int64_t first, int64_t width, int64_t lo, int64_t hi) const {
    alignas(64) char tile[kTile * 16];
    const size_t outer = reduced.empty() ? 0 : reduced.size() - 1;
    const Axis inner = reduced.empty() ? Axis{1, 1} : reduced[outer];
    for (int64_t i = 0; i < width; ++i) {
      const int64_t base = place(kept, kept.size(), first + i);
      for (int64_t at = lo; at < hi;) {
        const int64_t within = at % inner.size;
        int64_t left = std::min(inner.size - within, hi - at);
        int64_t offset = base + place(reduced, outer, at / inner.size) + within * inner.stride;
        if (source.direct(inner.stride) || left == 1) {
          const char* from = source.at(offset);
          if (source.cast) source.cast(tile, from, left);
          f.run(acc + i * f.size, source.cast ? tile : from, left, at, options);
          at += left;
          continue;
        }
        for (; left > 0;) {
          const int64_t some = std::min(left, kTile);
          source.load(tile, source.at(offset), inner.stride, some);
          f.run(acc + i * f.size, tile, some, at, options);
          offset += some * inner.stride;
          at += some;
          left -= some;
        }
      }
    }
  }

  /// Whether runs lie one after the other, and are short.
  bool has_short_runs() const {
    return kept.size() == 1 && reduced.size() == 1 && reduced[0].stride == 1 && kept[0].stride == n && n <= kShortRun &&
           (f.type == kBFloat16 || f.type == kFloat32 || f.type == kFloat64 || f.type == kInt64);
  }
  /// The same for at most kUnitRuns short runs.
  void take_short_runs(char* acc, int64_t first, int64_t width) const {
    alignas(64) char tile[kShortRun * kUnitRuns * 8], turned[sizeof tile];
    const char* from = source.at(first * n);
    if (source.cast) source.cast(tile, from, width * n), from = tile;
    const auto turn = [&]<class T>(T* to) {
      HWY_NAMESPACE::transpose(reinterpret_cast<const T*>(from), n, width, n, to, kUnitRuns);
    };
    if (source.want_bytes == 2)
      turn(reinterpret_cast<uint16_t*>(turned));
    else if (source.want_bytes == 4)
      turn(reinterpret_cast<float*>(turned));
    else
      turn(reinterpret_cast<double*>(turned));
    f.rows(acc, turned, kUnitRuns, n, width, 0, options);
  }

  /// The same for accumulators within the innermost kept axis.
  void take_rows(char* acc, int64_t base, int64_t width, int64_t lo, int64_t hi) const {
    alignas(64) char tile[kTile * 16];
    const int64_t step = kept.back().stride;
    const size_t outer = reduced.size() - 1;
    const Axis inner = reduced[outer];
    for (int64_t at = lo; at < hi;) {
      const int64_t within = at % inner.size;
      int64_t left = std::min(inner.size - within, hi - at);
      int64_t offset = base + place(reduced, outer, at / inner.size) + within * inner.stride;
      if (source.direct(step)) {
        f.rows(acc, source.at(offset), inner.stride, left, width, at, options);
        at += left;
        continue;
      }
      const int64_t rows = std::max<int64_t>(kTile / width, 1);
      for (; left > 0;) {
        const int64_t some = std::min(left, rows);
        for (int64_t r = 0; r < some; ++r)
          source.load(tile + r * width * source.want_bytes, source.at(offset + r * inner.stride), step, width);
        f.rows(acc, tile, width, some, width, at, options);
        offset += some * inner.stride;
        at += some;
        left -= some;
      }
    }
  }
};

/// Writes results [first, first + n) of each output.
void finish(const Fold& f, const FoldOptions& options, const char* acc, int64_t first, int64_t n, Tensor* const* outs,
            int out_count) {
  for (; n > kUnit; acc += kUnit * f.size, first += kUnit, n -= kUnit)
    finish(f, options, acc, first, kUnit, outs, out_count);
  alignas(64) char buffers[2][kUnit * 16];
  void* to[2] = {buffers[0], buffers[1]};
  char* targets[2] = {};
  for (int k = 0; k < out_count; ++k) {
    targets[k] = static_cast<char*>(outs[k]->data_ptr()) + first * outs[k]->itemsize();
    if (outs[k]->dtype() == f.results[k]) to[k] = targets[k];
  }
  f.finish(acc, n, options, to);
  for (int k = 0; k < out_count; ++k)
    if (to[k] != targets[k]) cast_function(outs[k]->dtype(), f.results[k])(targets[k], to[k], n);
}

}  // namespace

void fold(const Fold& f, const FoldOptions& options, const Tensor& x, const Dims& dims, Tensor* const* outs,
          int out_count) {
  const bool all = int64_t(dims.size()) == x.dim();
  if (all && x.is_contiguous() && x.dtype() == f.type && x.numel() <= kSplit) {
    alignas(64) char acc[64];
    f.start(acc, 1);
    if (x.numel() > 0) f.run(acc, x.data_ptr(), x.numel(), 0, options);
    return finish(f, options, acc, 0, 1, outs, out_count);
  }

  Job job{f, options, Source(x, f.type), {}, {}};
  Dims inner_first;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      append(job.kept, {x.sizes()[d], x.strides()[d]});
    else
      inner_first.push_back(d), job.n *= x.sizes()[d];
  }
  std::stable_sort(inner_first.begin(), inner_first.end(),
                   [&](int64_t a, int64_t b) { return x.strides()[a] > x.strides()[b]; });
  for (int64_t d : inner_first) append(job.reduced, {x.sizes()[d], x.strides()[d]});
  const int64_t m = count(job.kept, job.kept.size());
  if (m == 0) return;
  if (job.n == 0) job.reduced.clear();
  job.by_rows = !job.kept.empty() && !job.reduced.empty() && job.kept.back().stride < job.reduced.back().stride;

  // A unit is what one task owns of the results; where units are few, each is split along the reduced dimensions.
  const int64_t cols = job.by_rows ? job.kept.back().size : m;
  const int64_t outer = job.by_rows ? m / cols : 1;
  const bool wide = job.by_rows && f.size <= 16 && job.source.direct(job.kept.back().stride);
  const int64_t most = wide          ? kWideUnit
                       : job.by_rows ? kUnit
                                     : std::clamp<int64_t>(kSplit / std::max<int64_t>(job.n, 1), 1, kUnitRuns);
  const int64_t width = std::min(cols, most), blocks = (cols + width - 1) / width, units = outer * blocks;
  int64_t splits = 1;
  if (units < 32)
    splits =
        std::clamp<int64_t>(std::min(job.n * width / kSplit, 64 / std::max<int64_t>(units, 1)), 1, kMerged / width);
  const int64_t length = (job.n + splits - 1) / splits;

  const bool short_runs = !job.by_rows && splits == 1 && job.has_short_runs();

  const auto unit_width = [&](int64_t u) { return std::min(width, cols - u % blocks * width); };
  const auto unit_first = [&](int64_t u) { return u / blocks * cols + u % blocks * width; };
  const auto take = [&](char* acc, int64_t u, int64_t lo, int64_t hi) {
    const int64_t first = unit_first(u), w = unit_width(u);
    f.start(acc, w);
    if (lo >= hi) return;
    if (job.by_rows) {
      const int64_t base =
          place(job.kept, job.kept.size() - 1, u / blocks) + u % blocks * width * job.kept.back().stride;
      job.take_rows(acc, base, w, lo, hi);
    } else if (short_runs) {
      job.take_short_runs(acc, first, w);
    } else {
      job.take_runs(acc, first, w, lo, hi);
    }
  };

  const int64_t grain = std::max<int64_t>(kSplit / std::max<int64_t>(length * width, 1), 1);
  if (splits == 1) {
    parallel_for(0, units, grain, [&](int64_t lo, int64_t hi) {
      alignas(64) char local[64 * 32];
      const std::unique_ptr<char[]> heap(f.size * width > int64_t(sizeof local) ? new char[f.size * width] : nullptr);
      char* acc = heap ? heap.get() : local;
      for (int64_t u = lo; u < hi; ++u) {
        take(acc, u, 0, job.n);
        finish(f, options, acc, unit_first(u), unit_width(u), outs, out_count);
      }
    });
    return;
  }
  const std::unique_ptr<char[]> accs(new char[f.size * width * units * splits]);
  const auto part = [&](int64_t u, int64_t s) { return accs.get() + (u * splits + s) * width * f.size; };
  parallel_for(0, units * splits, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t from = i % splits * length;
      take(part(i / splits, i % splits), i / splits, from, std::min(from + length, job.n));
    }
  });
  for (int64_t u = 0; u < units; ++u) {
    for (int64_t s = 1; s < splits; ++s) f.merge(part(u, 0), part(u, s), unit_width(u));
    finish(f, options, part(u, 0), unit_first(u), unit_width(u), outs, out_count);
  }
}

}  // namespace rush::cpu
