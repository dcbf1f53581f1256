// Losses of classes: inputs are contiguous as (batch, classes, inner), targets as (batch, inner).
#pragma once
#include "kernels/cuda/failure.cuh"
#include "kernels/cuda/softmax.cuh"
#include "kernels/formulas.h"

namespace rush::cuda {

struct Classes {
  Array target;
  int64_t classes, inner, ignored;
  IndexCheck check;

  RUSH_FN bool chosen(int64_t i, int64_t& c) const {
    c = target.at<int64_t>(i);
    return c != ignored && check(c, classes, 1);
  }
  /// Where class c of position i lies.
  RUSH_FN int64_t place(int64_t i, int64_t c) const { return (i / inner * classes + c) * inner + i % inner; }
};

/// out[i] = x at the target's place.
template <class T>
struct PickClass {
  Array out, x;
  Classes classes;
  RUSH_FN void operator()(int64_t i) const {
    int64_t c;
    out.put<T>(i, classes.chosen(i, c) ? x.at<T>(classes.place(i, c)) : T(0));
  }
};
/// The other way, over zeros.
template <class T>
struct PutClass {
  Array out, x;
  Classes classes;
  RUSH_FN void operator()(int64_t i) const {
    int64_t c;
    if (classes.chosen(i, c)) out.put<T>(classes.place(i, c), x.at<T>(i));
  }
};

/// The logarithm of the sum of exponentials, and that minus the target's input.
template <class T>
struct ClassLosses {
  Array losses, log_sum, x;
  Classes classes;
  RUSH_FN void operator()(int64_t i) const {
    T top = -std::numeric_limits<T>::infinity();
    share(classes.classes, [&](int64_t c) {
      const T v = x.at<T>(classes.place(i, c));
      if (v > top) top = v;
    });
    top = combine(top, [](T a, T b) { return a > b ? a : b; });
    if (top == -std::numeric_limits<T>::infinity()) top = 0;
    T sum = 0;
    share(classes.classes, [&](int64_t c) { sum += formula::exp(x.at<T>(classes.place(i, c)) - top); });
    sum = combine(sum, Plus());
    if (threadIdx.x != 0) return;
    const T total = top + formula::log(sum);
    int64_t c;
    log_sum.put<T>(i, total);
    losses.put<T>(i, classes.chosen(i, c) ? total - x.at<T>(classes.place(i, c)) : T(0));
  }
};

/// For each element of x.
template <class T>
struct ClassLossesGrad {
  Array out, grad, grad_log_sum, x, log_sum;
  Classes classes;
  RUSH_FN void operator()(int64_t at) const {
    const int64_t c = at / classes.inner % classes.classes;
    const int64_t i = at / (classes.inner * classes.classes) * classes.inner + at % classes.inner;
    const int64_t target = classes.target.at<int64_t>(i);
    const T own = target == classes.ignored ? T(0) : grad.at<T>(i), factor = own + grad_log_sum.at<T>(i);
    const T p = formula::exp(x.at<T>(at) - log_sum.at<T>(i));
    out.put<T>(at, factor * p - (target == c ? own : T(0)));
  }
};

/// The multi-label hinge loss of a row of n and its slopes; a row of targets ends at its first -1.
template <class T>
struct LabelMargins {
  Array losses, slopes, x, targets;
  int64_t n;
  IndexCheck check;
  RUSH_FN void operator()(int64_t row) const {
    const int64_t base = row * n;
    int64_t count = 0;
    while (count < n && targets.at<int64_t>(base + count) >= 0 && check(targets.at<int64_t>(base + count), n, 1))
      ++count;
    for (int64_t j = 0; j < n; ++j) slopes.put<T>(base + j, T(0));
    T sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      bool is_target = false;
      for (int64_t k = 0; k < count; ++k) is_target |= targets.at<int64_t>(base + k) == j;
      if (is_target) continue;
      T slope = 0;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t t = base + targets.at<int64_t>(base + k);
        const T margin = 1 - x.at<T>(t) + x.at<T>(base + j);
        if (!(margin > 0)) continue;
        sum += margin;
        slope += 1 / T(n);
        slopes.put<T>(t, slopes.at<T>(t) - 1 / T(n));
      }
      slopes.put<T>(base + j, slope);
    }
    losses.put<T>(row, sum / T(n));
  }
};

/// The loss of a pair of numbers; `kind` is cpu::PairLoss.
template <class T>
struct PairLossOf {
  Array out, a, b;
  int64_t kind;
  T width;
  RUSH_FN void operator()(int64_t i) const {
    const T x = a.at<T>(i), t = b.at<T>(i);
    const auto put = [&](const auto& loss) { out.put(i, loss(x, t)); };
    switch (kind) {
      case 0:
        return put(formula::SquaredLoss());
      case 1:
        return put(formula::SmoothLoss{double(width)});
      case 2:
        return put(formula::HuberLoss{double(width)});
      case 3:
        return put(formula::EntropyLoss());
      case 4:
        return put(formula::LogitEntropyLoss());
      case 5:
        return put(formula::DivergenceLoss());
      default:
        return put(formula::LogDivergenceLoss());
    }
  }
};

}  // namespace rush::cuda
