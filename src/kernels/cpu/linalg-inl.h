// What the files over Eigen share: batches of matrices to read and to write, in double precision. Eigen's own vector
// code is left out: it takes minutes to compile, and GCC warns about it where vectors have 512 bits.
#pragma once
#define EIGEN_DONT_VECTORIZE
#include <Eigen/Core>
#include <optional>

#include "kernels/cpu/linalg.h"
#include "kernels/cpu/pointwise.h"

namespace rush::cpu {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S>
using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
using Real = Matrix<double>;
using Complex = Matrix<std::complex<double>>;

/// f with a zero of the type that is computed in: double, or complex<double>.
template <class F>
void in_double(DType t, F&& f) {
  if (is_complex(t))
    f(std::complex<double>());
  else
    f(double());
}

/// The tensor as contiguous memory of S, a copy if need be.
template <class S>
Tensor widened(const Tensor& x) {
  if (x.dtype() == dtype_of<S> && x.is_contiguous()) return x;
  Tensor copied = allocate({x.sizes(), dtype_of<S>});
  copy(copied, x);
  return copied;
}

/// A batch of matrices (or, with one dimension, vectors) to read.
template <class S>
class In {
 public:
  explicit In(const Tensor& x, int64_t dims = 2)
      : memory_(widened<S>(x)), rows_(x.size(-dims)), cols_(dims == 2 ? x.size(-1) : 1) {}
  Matrix<S> operator[](int64_t i) const {
    using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    return Eigen::Map<const RowMajor>(memory_.data<S>() + i * rows_ * cols_, rows_, cols_);
  }
  int64_t batch() const { return memory_.numel() / std::max<int64_t>(1, rows_ * cols_); }

 private:
  Tensor memory_;
  int64_t rows_, cols_;
};

/// A batch of matrices or vectors to write; finish() puts them into the tensor.
template <class S>
class Out {
 public:
  explicit Out(Tensor& x, int64_t dims = 2)
      : target_(x), rows_(dims ? x.size(-dims) : 1), cols_(dims == 2 ? x.size(-1) : 1) {
    memory_ = x.dtype() == dtype_of<S> ? x : allocate({x.sizes(), dtype_of<S>});
  }
  auto operator[](int64_t i) const {
    using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    return Eigen::Map<RowMajor>(memory_.data<S>() + i * rows_ * cols_, rows_, cols_);
  }
  ~Out() {
    if (!memory_.is_same(target_)) copy(target_, memory_);
  }

 private:
  Tensor& target_;
  Tensor memory_;
  int64_t rows_, cols_;
};

inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }

}  // namespace rush::cpu
