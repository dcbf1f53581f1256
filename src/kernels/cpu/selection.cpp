// Order statistics sort indices by value and then by index, so the answer is one whatever the algorithm does with ties.
#include "kernels/cpu/selection.h"

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/bins.h"
#include "rushlight/parallel.h"

namespace rush::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}
template <class T>
bool before(T a, T b) {  // NaN comes last
  return a < b || (is_nan(b) && !is_nan(a));
}

/// pick(row) gives the chosen index of each row.
template <class Pick>
void each_row(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, const Pick& pick) {
  for_real(x.dtype(), [&]<class T>() {
    parallel_for(0, values.numel(), std::max<int64_t>(2048 / std::max<int64_t>(n, 1), 1), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r) {
        const T* row = x.data<T>() + r * n;
        const int64_t at = pick(row);
        values.data<T>()[r] = row[at];
        indices.data<int64_t>()[r] = at;
      }
    });
  });
}
template <class T>
bool after(T a, T b) {
  return before(b, a);
}
std::vector<int64_t> up_to(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}
/// The index of what is k-th by value and then by index among the numbers. The values alone are partitioned: through
/// indices each comparison would be two reads anywhere.
template <class T>
int64_t kth(const T* row, int64_t n, int64_t k) {
  std::vector<T> numbers(static_cast<size_t>(n));
  numbers.erase(std::copy_if(row, row + n, numbers.begin(), [](T x) { return !is_nan(x); }), numbers.end());
  std::nth_element(numbers.begin(), numbers.begin() + k, numbers.end());
  const T value = numbers[static_cast<size_t>(k)];
  int64_t others = k - std::count_if(row, row + n, [value](T x) { return x < value; });
  return std::find_if(row, row + n, [&](T x) { return x == value && others-- == 0; }) - row;
}

/// Such an index by Hoare's selection with the median of three as pivot (Sedgewick), which among equal elements picks
/// the index that PyTorch picks.
template <class T>
int64_t quick_select(const T* row, std::vector<int64_t> order, int64_t k) {
  int64_t low = 0, high = int64_t(order.size()) - 1;
  const auto value = [&](int64_t i) { return row[order[static_cast<size_t>(i)]]; };
  const auto exchange = [&](int64_t i, int64_t j) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  };
  const auto sort_pair = [&](int64_t i, int64_t j) {
    if (after(value(i), value(j))) exchange(i, j);
  };
  while (high > low + 1) {
    exchange(low + (high - low) / 2, low + 1);
    sort_pair(low + 1, high);
    sort_pair(low, high);
    sort_pair(low + 1, low);
    const T pivot = value(low);
    int64_t i = low + 1, j = high;
    for (;;) {
      while (after(pivot, value(++i))) {
      }
      while (after(value(--j), pivot)) {
      }
      if (j < i) break;
      exchange(i, j);
    }
    exchange(low, j);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1) sort_pair(low, high);
  return order[static_cast<size_t>(k)];
}

}  // namespace

void kthvalue(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, int64_t k) {
  if (!values.is_cpu()) return cuda::kthvalue(values, indices, x, n, k);
  each_row(values, indices, x, n, [&](const auto* row) { return quick_select(row, up_to(n), k - 1); });
}

void median(Tensor& values, Tensor& indices, const Tensor& x, int64_t n, bool ignore_nan) {
  if (!values.is_cpu()) return cuda::median(values, indices, x, n, ignore_nan);
  each_row(values, indices, x, n, [&](const auto* row) {
    int64_t valid = n;
    for (int64_t i = 0; i < n; ++i) {
      if (!is_nan(row[i])) continue;
      if (!ignore_nan) return i;
      --valid;
    }
    return valid ? kth(row, n, (valid - 1) / 2) : int64_t(0);
  });
}

void mode(Tensor& values, Tensor& indices, const Tensor& x, int64_t n) {
  if (!values.is_cpu()) return cuda::mode(values, indices, x, n);
  each_row(values, indices, x, n, [&](const auto* row) {
    std::vector<int64_t> order = up_to(n);
    // Which of the equal elements comes last is left to the sort, as in PyTorch, where the same one decides.
    std::sort(order.begin(), order.end(), [row](int64_t a, int64_t b) { return before(row[a], row[b]); });
    int64_t best = order[0], most = 0, run = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      run = i && row[order[i]] == row[order[i - 1]] ? run + 1 : 1;
      if (run > most || (run == most && row[order[i]] == row[best])) best = order[i], most = run;
    }
    return best;
  });
}

void histc(Tensor& out, const Tensor& x, double low, double high) {
  if (!out.is_cpu()) return cuda::histc(out, x, low, high);
  const int64_t bins = out.numel();
  std::vector<double> counts(static_cast<size_t>(bins));
  for_real(x.dtype(), [&]<class T>() {
    using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const T* p = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const C v = C(p[i]);
      if (v >= C(low) && v <= C(high)) ++counts[size_t(bin_of(v, C(low), C(high), bins))];
    }
  });
  for_real(out.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < bins; ++i) out.data<T>()[i] = T(float(counts[size_t(i)]));
  });
}

void bincount(Tensor& out, const Tensor& x, const Tensor& weights) {
  if (!out.is_cpu()) return cuda::bincount(out, x, weights);
  const int64_t* p = x.data<int64_t>();
  if (weights.defined()) {
    double* to = out.data<double>();
    const double* w = weights.data<double>();
    std::fill_n(to, out.numel(), 0.0);
    for (int64_t i = 0; i < x.numel(); ++i) to[p[i]] += w[i];
  } else {
    int64_t* to = out.data<int64_t>();
    std::fill_n(to, out.numel(), int64_t(0));
    for (int64_t i = 0; i < x.numel(); ++i) ++to[p[i]];
  }
}

}  // namespace rush::cpu
