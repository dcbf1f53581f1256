// Launches of sorting and of what is read off sorted rows.
#include "kernels/cuda/sorting.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

template <class F>
void for_key(DType t, F&& f) {
  is_integral(t) ? f.template operator()<int64_t>() : f.template operator()<double>();
}

/// The rows of x along `dim` as sorted items.
struct Sorted {
  int64_t n = 1, inner = 1, rows = 0;
  Tensor x, memory, other;

  Sorted(const Tensor& given, int64_t dim, bool descending) : x(contiguous(given)) {
    if (x.dim() > 0) n = x.sizes()[dim];
    for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.sizes()[d];
    rows = n ? x.numel() / n : 0;
    const int64_t count = rows * n, runs = (n + kRun - 1) / kRun;
    memory = allocate_like(x, {2 * count}, kInt64);
    other = allocate_like(x, {2 * count}, kInt64);
    for_key(x.dtype(), [&]<class T>() {
      for_each(x.device(), count, MakeItems<T>{at(memory), array_of(x), n, inner, descending});
    });
    for_each(x.device(), rows * runs, SortRuns{at(memory), n, runs});
    for (int64_t run = kRun; run < n; run *= 2) {
      for_each(x.device(), count, MergeRuns{at(other), at(memory), n, run});
      std::swap(memory, other);
    }
  }
  static Item* at(const Tensor& t) { return static_cast<Item*>(t.data_ptr()); }
  void take(Tensor& values, Tensor& indices, int64_t k, int64_t skip = 0) const {
    for_key(x.dtype(), [&]<class T>() {
      for_each(x.device(), rows * k,
               TakeSorted<T>{array_of(values), array_of(indices), array_of(x), at(memory), n, k, inner, skip});
    });
  }
  template <bool kMode>
  void pick(Tensor& values, Tensor& indices, bool ignore_nan) const {
    for_key(x.dtype(), [&]<class T>() {
      for_each(x.device(), rows,
               PickSorted<T, kMode>{array_of(values), array_of(indices), array_of(x), at(memory), n, ignore_nan});
    });
  }
};

/// x as rows of n elements.
Tensor in_rows(const Tensor& x, int64_t n) { return alias(x, {n ? x.numel() / n : 0, n}, {n, 1}, x.storage_offset()); }

}  // namespace

void sort(Tensor& values, Tensor& indices, const Tensor& x, int64_t dim, bool descending) {
  if (x.numel() == 0) return;
  const Sorted sorted(x, dim, descending);
  sorted.take(values, indices, sorted.n);
}

void topk(Tensor& values, Tensor& indices, const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
  if (values.numel() == 0) return;
  Sorted(x, dim, largest).take(values, indices, k);
}

void kthvalue(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, int64_t k) {
  if (x.numel() > 0) Sorted(in_rows(x, n), 1, false).take(values, indices, 1, k - 1);
}

void median(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, bool ignore_nan) {
  if (x.numel() > 0) Sorted(in_rows(x, n), 1, false).pick<false>(values, indices, ignore_nan);
}

void mode(Tensor& values, Tensor& indices, const Tensor& x, int64_t n) {
  if (x.numel() > 0) Sorted(in_rows(x, n), 1, false).pick<true>(values, indices, false);
}

void histc(Tensor& out, const Tensor& x, double low, double high) {
  Tensor counts = allocate_like(x, out.sizes(), kInt64);
  cpu::fill(counts, Scalar(0));
  const auto count = [&](auto lowest) {
    using C = decltype(lowest);
    for_each(x.device(), x.numel(), Histogram<C>{counts.data<int64_t>(), array_of(x), out.numel(), lowest, C(high)});
  };
  x.dtype() == kFloat32 ? count(float(low)) : count(low);
  cpu::copy(out, counts);
}

void bincount(Tensor& out, const Tensor& x, const Tensor& weights) {
  cpu::fill(out, Scalar(0));
  if (weights.defined())
    for_each(x.device(), x.numel(), Bincount<double>{out.data<double>(), x.data<int64_t>(), weights.data<double>()});
  else
    for_each(x.device(), x.numel(), Bincount<int64_t>{out.data<int64_t>(), x.data<int64_t>(), nullptr});
}

}  // namespace rush::cuda
