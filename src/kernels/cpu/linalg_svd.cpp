// Singular values, and what follows from them.
#include "kernels/cpu/linalg-inl.h"

#include <Eigen/LU>
#include <Eigen/SVD>

namespace rush::cpu {

void cofactors(Tensor& out, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> to(out);
    const int64_t n = a.size(-1);
    for (int64_t i = 0; i < in.batch(); ++i) {
      // A = U S V^H: the cofactors of a product are the product of the cofactors, those of a unitary matrix its
      // conjugate times its determinant, and those of a diagonal one the products of the other elements.
      const Eigen::JacobiSVD<Matrix<S>> svd(in[i], Eigen::ComputeFullU | Eigen::ComputeFullV);
      const auto& s = svd.singularValues();
      Vector<S> others(n);
      for (int64_t j = 0; j < n; ++j) {
        double product = 1;
        for (int64_t k = 0; k < n; ++k)
          if (k != j) product *= s[k];
        others[j] = product;
      }
      const S unit = svd.matrixU().determinant() * conjugate(svd.matrixV().determinant());
      to[i] = unit * (svd.matrixU().conjugate() * others.asDiagonal() * svd.matrixV().transpose());
    }
  });
}

void svd(Tensor* u, Tensor& s, Tensor* vh, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<double> values(s, 1);
    std::optional<Out<S>> left, right;
    if (u) left.emplace(*u), right.emplace(*vh);
    for (int64_t i = 0; i < in.batch(); ++i) {
      unsigned options = 0;
      if (u) {
        options |= u->size(-1) == a.size(-2) ? Eigen::ComputeFullU : Eigen::ComputeThinU;
        options |= vh->size(-2) == a.size(-1) ? Eigen::ComputeFullV : Eigen::ComputeThinV;
      }
      const Matrix<S> m = in[i];
      check<LinAlgError>(m.allFinite(), "(Batch element ", i,
                         "): The algorithm failed to converge because the input matrix contained non-finite values.");
      const Eigen::JacobiSVD<Matrix<S>> f(m, options);
      values[i] = f.singularValues();
      if (u) {
        (*left)[i] = f.matrixU();
        (*right)[i] = f.matrixV().adjoint();
      }
    }
  });
}

}  // namespace rush::cpu
