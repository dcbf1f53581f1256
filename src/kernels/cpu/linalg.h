// Matrix decompositions over Eigen, one matrix of a batch after the other. All compute in double precision, whatever
// the tensors' dtype: more exact, and half the code. Inputs have equal batch sizes and any strides, outputs are
// contiguous; `info` is int32, one number a matrix, 0 where all went well.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// L and U of A with rows exchanged, in one matrix; pivots (int32) count from 1. info: the first zero on U's diagonal.
void lu_factor(Tensor& lu, Tensor& pivots, Tensor& info, const Tensor& a);
/// The rows' order that pivots stand for, as a matrix P with P L U = A.
void pivots_to_permutation(Tensor& p, const Tensor& pivots);
/// X with A X = B. info: 1 + the first zero pivot.
void solve(Tensor& x, Tensor& info, const Tensor& a, const Tensor& b);
void solve_triangular(Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular);
void inverse(Tensor& out, Tensor& info, const Tensor& a);
void determinant(Tensor& out, const Tensor& a);
/// The sign (or phase) of the determinant and the logarithm of its size.
void log_determinant(Tensor& sign, Tensor& log, const Tensor& a);
/// The derivatives of det(A) by A's elements, also where A is singular.
void cofactors(Tensor& out, const Tensor& a);
/// info: the order of the first leading minor that is not positive-definite.
void cholesky(Tensor& l, Tensor& info, const Tensor& a, bool upper);
/// Q's columns are as many as `q` has.
void qr(Tensor& q, Tensor& r, const Tensor& a);
/// R above the diagonal, below it the vectors of LAPACK's reflectors, and their factors.
void geqrf(Tensor& factors, Tensor& tau, const Tensor& a);
/// The first columns of the product of the reflectors, as many as `q` has.
void householder_product(Tensor& q, const Tensor& a, const Tensor& tau);
/// The eigenvalues of a symmetric or Hermitian matrix, of which one triangle is read, ascending; vectors may be null.
void eigh(Tensor& values, Tensor* vectors, const Tensor& a, bool upper);
/// Eigenvalues and vectors of length 1, complex; vectors may be null.
void eig(Tensor& values, Tensor* vectors, const Tensor& a);
/// A = U diag(S) Vh with as many columns of U and rows of Vh as the results have; u and vh may both be null.
void svd(Tensor* u, Tensor& s, Tensor* vh, const Tensor& a);
void matrix_exp(Tensor& out, const Tensor& a);
/// The factors of A = L D L^T (or L D L^H) as LAPACK's sytrf (hetrf) gives them for the lower triangle.
void ldl_factor(Tensor& ld, Tensor& pivots, Tensor& info, const Tensor& a, bool hermitian);
void ldl_solve(Tensor& x, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian);

}  // namespace rush::cpu
