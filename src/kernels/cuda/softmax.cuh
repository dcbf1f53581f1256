// Softmax along a dimension and its gradient: a team for each row, in any number of passes over it.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

struct Larger {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Plus {
  template <class T>
  RUSH_FN T operator()(T a, T b) const {
    return a + b;
  }
};

/// Rows of n elements that lie `inner` apart; x and out are contiguous as (outer, n, inner).
template <class T, bool kLog>
struct Softmax {
  Array out, x;
  int64_t n, inner;

  RUSH_FN void operator()(int64_t row) const {
    const int64_t base = row / inner * n * inner + row % inner;
    const auto each = [&](const auto& f) {
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x) f(base + i * inner);
    };
    T top = -std::numeric_limits<T>::infinity();
    each([&](int64_t at) { top = Larger()(x.at<T>(at), top); });
    top = combine(top, Larger());
    T sum = 0;
    each([&](int64_t at) { sum += formula::exp(x.at<T>(at) - top); });
    sum = combine(sum, Plus());
    const T last = kLog ? formula::log(sum) : 1 / sum;
    each([&](int64_t at) {
      const T d = x.at<T>(at) - top;
      out.put<T>(at, kLog ? d - last : formula::exp(d) * last);
    });
  }
};

template <class T, bool kLog>
struct SoftmaxGrad {
  Array out, grad, result;
  int64_t n, inner;

  RUSH_FN void operator()(int64_t row) const {
    const int64_t base = row / inner * n * inner + row % inner;
    T sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const int64_t at = base + i * inner;
      sum += kLog ? grad.at<T>(at) : grad.at<T>(at) * result.at<T>(at);
    }
    sum = combine(sum, Plus());
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const int64_t at = base + i * inner;
      const T g = grad.at<T>(at), y = result.at<T>(at);
      out.put<T>(at, kLog ? g - formula::exp(y) * sum : (g - sum) * y);
    }
  }
};

}  // namespace rush::cuda
