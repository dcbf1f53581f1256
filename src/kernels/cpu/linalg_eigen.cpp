// Eigenvalues and eigenvectors.
#include "kernels/cpu/linalg-inl.h"

#include <Eigen/Eigenvalues>

namespace rush::cpu {

void eigh(Tensor& values, Tensor* vectors, const Tensor& a, bool upper) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<double> w(values, 1);
    std::optional<Out<S>> v;
    if (vectors) v.emplace(*vectors);
    for (int64_t i = 0; i < in.batch(); ++i) {
      const Matrix<S> m = upper ? Matrix<S>(in[i].adjoint()) : in[i];  // the solver reads the lower triangle
      const Eigen::SelfAdjointEigenSolver<Matrix<S>> f(m,
                                                       vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
      check<LinAlgError>(f.info() == Eigen::Success, "(Batch element ", i, "): The algorithm failed to converge.");
      w[i] = f.eigenvalues();
      if (v) (*v)[i] = f.eigenvectors();
    }
  });
}

void eig(Tensor& values, Tensor* vectors, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    using C = std::complex<double>;
    using Solver =
        std::conditional_t<std::is_same_v<S, double>, Eigen::EigenSolver<Real>, Eigen::ComplexEigenSolver<Complex>>;
    const In<S> in(a);
    const Out<C> w(values, 1);
    std::optional<Out<C>> v;
    if (vectors) v.emplace(*vectors);
    for (int64_t i = 0; i < in.batch(); ++i) {
      const Solver f(in[i], vectors != nullptr);
      check<LinAlgError>(f.info() == Eigen::Success, "(Batch element ", i, "): The algorithm failed to converge.");
      w[i] = f.eigenvalues();
      if (v) (*v)[i] = Complex(f.eigenvectors()).colwise().normalized();
    }
  });
}

}  // namespace rush::cpu
