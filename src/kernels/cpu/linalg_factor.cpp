// Factorizations without iteration, and what they solve.
#include "kernels/cpu/linalg-inl.h"

#include <Eigen/LU>
#include <Eigen/QR>

namespace rush::cpu {

namespace {

/// Gaussian elimination with the largest pivot of each column; returns 1 + the first column without one, or 0.
template <class S>
int32_t eliminate(Matrix<S>& a, int32_t* pivots) {
  int32_t info = 0;
  const Eigen::Index n = std::min(a.rows(), a.cols());
  for (Eigen::Index k = 0; k < n; ++k) {
    Eigen::Index best;
    const auto column = a.col(k).tail(a.rows() - k);  // LAPACK measures complex numbers so
    if constexpr (std::is_same_v<S, double>)
      column.cwiseAbs().maxCoeff(&best);
    else
      (column.real().cwiseAbs() + column.imag().cwiseAbs()).maxCoeff(&best);
    best += k;
    pivots[k] = int32_t(best) + 1;
    if (a(best, k) == S(0)) {
      if (!info) info = int32_t(k) + 1;
      continue;
    }
    if (best != k) a.row(k).swap(a.row(best));
    const Eigen::Index below = a.rows() - k - 1, right = a.cols() - k - 1;
    a.col(k).tail(below) /= a(k, k);
    a.bottomRightCorner(below, right).noalias() -= a.col(k).tail(below) * a.row(k).tail(right);
  }
  return info;
}

template <class S>
void exchange_rows(Matrix<S>& x, const int32_t* pivots, int64_t n, bool backwards) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = backwards ? n - 1 - i : i;
    if (pivots[k] - 1 != k) x.row(k).swap(x.row(pivots[k] - 1));
  }
}

template <class S>
void solve_with(const Matrix<S>& lu, const int32_t* pivots, Matrix<S>& x, bool adjoint) {
  if (adjoint) {
    lu.template triangularView<Eigen::Upper>().adjoint().solveInPlace(x);
    lu.template triangularView<Eigen::UnitLower>().adjoint().solveInPlace(x);
    exchange_rows(x, pivots, lu.rows(), true);
  } else {
    exchange_rows(x, pivots, lu.rows(), false);
    lu.template triangularView<Eigen::UnitLower>().solveInPlace(x);
    lu.template triangularView<Eigen::Upper>().solveInPlace(x);
  }
}

}  // namespace

void lu_factor(Tensor& lu, Tensor& pivots, Tensor& info, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> out(lu);
    const int64_t n = pivots.size(-1);
    for (int64_t i = 0; i < info.numel(); ++i) {
      Matrix<S> m = in[i];
      info.data<int32_t>()[i] = eliminate(m, pivots.data<int32_t>() + i * n);
      out[i] = m;
    }
  });
}

void pivots_to_permutation(Tensor& p, const Tensor& pivots) {
  const Tensor order = widened<int32_t>(pivots);
  const int64_t m = p.size(-1), n = pivots.size(-1);
  const Out<double> out(p);
  for (int64_t i = 0; i < (m ? p.numel() / (m * m) : 0); ++i) {
    Real identity = Real::Identity(m, m);
    exchange_rows(identity, order.data<int32_t>() + i * n, n, true);
    out[i] = identity;
  }
}

void solve(Tensor& x, Tensor& info, const Tensor& a, const Tensor& b) {
  in_double(x.dtype(), [&]<class S>(S) {
    const In<S> in(a), right(b);
    const Out<S> out(x);
    std::vector<int32_t> pivots(size_t(a.size(-1)));
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] = 0;
      if (a.size(-1) == 0) continue;
      Matrix<S> m = in[i];
      info.data<int32_t>()[i] = eliminate(m, pivots.data());
      if (x.numel() == 0) continue;
      Matrix<S> y = right[i];
      solve_with(m, pivots.data(), y, false);
      out[i] = y;
    }
  });
}

void solve_triangular(Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  in_double(x.dtype(), [&]<class S>(S) {
    const In<S> in(a), right(b);
    const Out<S> out(x);
    for (int64_t i = 0; i < right.batch(); ++i) {
      const Matrix<S> m = left ? in[i] : Matrix<S>(in[i].transpose());
      Matrix<S> y = left ? right[i] : Matrix<S>(right[i].transpose());
      if (upper == left) {
        if (unitriangular)
          m.template triangularView<Eigen::UnitUpper>().solveInPlace(y);
        else
          m.template triangularView<Eigen::Upper>().solveInPlace(y);
      } else {
        if (unitriangular)
          m.template triangularView<Eigen::UnitLower>().solveInPlace(y);
        else
          m.template triangularView<Eigen::Lower>().solveInPlace(y);
      }
      if (left)
        out[i] = y;
      else
        out[i] = y.transpose();
    }
  });
}

void inverse(Tensor& out, Tensor& info, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> to(out);
    const int64_t n = a.size(-1);
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] = 0;
      if (n == 0) continue;
      Matrix<S> m = in[i];
      info.data<int32_t>()[i] = eliminate(m, pivots.data());
      Matrix<S> y = Matrix<S>::Identity(n, n);
      solve_with(m, pivots.data(), y, false);
      to[i] = y;
    }
  });
}

void determinant(Tensor& out, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> to(out, 0);
    const int64_t n = a.size(-1);
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    for (int64_t i = 0; i < out.numel(); ++i) {
      S det = S(1);
      if (n) {
        Matrix<S> m = in[i];
        eliminate(m, pivots.data());
        for (int64_t k = 0; k < n; ++k) det *= pivots[size_t(k)] - 1 == k ? m(k, k) : -m(k, k);
      }
      to[i](0, 0) = det;
    }
  });
}

void log_determinant(Tensor& sign, Tensor& log, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> phase(sign, 0);
    const Out<double> size(log, 0);
    const int64_t n = a.size(-1);
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    for (int64_t i = 0; i < sign.numel(); ++i) {
      S unit = S(1);
      double sum = 0;
      if (n) {
        Matrix<S> m = in[i];
        eliminate(m, pivots.data());
        for (int64_t k = 0; k < n; ++k) {
          const double absolute = std::abs(m(k, k));
          sum += std::log(absolute);
          unit *= absolute == 0 ? S(0) : m(k, k) / absolute;
          if (pivots[size_t(k)] - 1 != k) unit = -unit;
        }
      }
      phase[i](0, 0) = unit;
      size[i](0, 0) = sum;
    }
  });
}

void cholesky(Tensor& l, Tensor& info, const Tensor& a, bool upper) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> out(l);
    const int64_t n = a.size(-1);
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] = 0;
      if (n == 0) continue;
      Matrix<S> m = upper ? Matrix<S>(in[i].adjoint()) : in[i];
      for (int64_t k = 0; k < n; ++k) {
        const double d = std::real(m(k, k)) - m.row(k).head(k).squaredNorm();
        if (!(d > 0)) {
          info.data<int32_t>()[i] = int32_t(k) + 1;
          break;
        }
        m(k, k) = std::sqrt(d);
        const int64_t below = n - k - 1;
        if (below)
          m.col(k).tail(below) =
              (m.col(k).tail(below) - m.bottomLeftCorner(below, n).leftCols(k) * m.row(k).head(k).adjoint()) / m(k, k);
      }
      const Matrix<S> lower = m.template triangularView<Eigen::Lower>();
      if (upper)
        out[i] = lower.adjoint();
      else
        out[i] = lower;
    }
  });
}

void qr(Tensor& q, Tensor& r, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> left(q), right(r);
    for (int64_t i = 0; i < in.batch(); ++i) {
      const Eigen::HouseholderQR<Matrix<S>> f(in[i]);
      if (q.numel()) left[i] = f.householderQ() * Matrix<S>::Identity(q.size(-2), q.size(-1));
      if (r.numel()) {
        right[i].setZero();
        const Matrix<S> upper =
            f.matrixQR().topRows(std::min(r.size(-2), a.size(-2))).template triangularView<Eigen::Upper>();
        right[i].topRows(upper.rows()) = upper;
      }
    }
  });
}

void geqrf(Tensor& factors, Tensor& tau, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> out(factors), scale(tau, 1);
    for (int64_t i = 0; i < in.batch(); ++i) {
      const Eigen::HouseholderQR<Matrix<S>> f(in[i]);
      out[i] = f.matrixQR();
      scale[i] = f.hCoeffs().conjugate();
    }
  });
}

void householder_product(Tensor& q, const Tensor& a, const Tensor& tau) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Tensor scales = widened<S>(tau);
    const Out<S> out(q);
    const int64_t k = tau.size(-1), m = a.size(-2);
    for (int64_t i = 0; i < in.batch(); ++i) {
      const Matrix<S> v = in[i];
      Matrix<S> y = Matrix<S>::Identity(m, q.size(-1));
      for (int64_t j = k - 1; j >= 0; --j) {
        Vector<S> h = v.col(j);
        h.head(j).setZero();
        h[j] = S(1);
        const S t = scales.data<S>()[i * k + j];
        y -= (t * h) * (h.adjoint() * y).eval();
      }
      out[i] = y;
    }
  });
}

void matrix_exp(Tensor& out, const Tensor& a) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> to(out);
    const int64_t n = a.size(-1);
    for (int64_t i = 0; i < in.batch(); ++i) {
      // Scaling and squaring with the Taylor series, whose 18 terms are exact to double precision below norm 1/2.
      Matrix<S> m = in[i];
      const double norm = m.cwiseAbs().colwise().sum().maxCoeff();
      int squarings = 0;
      if (norm > 0.5 && std::isfinite(norm)) squarings = int(std::ceil(std::log2(norm / 0.5)));
      m *= std::ldexp(1.0, -squarings);
      Matrix<S> sum = Matrix<S>::Identity(n, n), term = sum;
      for (int k = 1; k <= 18; ++k) {
        term = (term * m / double(k)).eval();
        sum += term;
      }
      for (int k = 0; k < squarings; ++k) sum = (sum * sum).eval();
      to[i] = sum;
    }
  });
}

void ldl_factor(Tensor& ld, Tensor& pivots, Tensor& info, const Tensor& a, bool hermitian) {
  in_double(a.dtype(), [&]<class S>(S) {
    const In<S> in(a);
    const Out<S> out(ld);
    const int64_t n = a.size(-1);
    const auto turn = [hermitian](S x) { return hermitian ? conjugate(x) : x; };
    // As LAPACK measures complex numbers.
    const auto size_of = [](S x) { return double(std::abs(std::real(x)) + std::abs(std::imag(x))); };
    for (int64_t i = 0; i < info.numel(); ++i) {
      // Bunch and Kaufman 1977: pivots of one or two columns, chosen so that elements grow by a bounded factor.
      int32_t* pivot = pivots.data<int32_t>() + i * n;
      int32_t failed = 0;
      Matrix<S> m = n ? in[i] : Matrix<S>();
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = r + 1; c < n; ++c) m(r, c) = turn(m(c, r));
        if (hermitian) m(r, r) = std::real(m(r, r));
      }
      const double alpha = (1 + std::sqrt(17.0)) / 8;
      for (int64_t k = 0; k < n;) {
        const int64_t rest = n - k - 1;
        int64_t far = k, with = k, size = 1;
        double most = 0;
        if (rest) {
          Eigen::Index at;
          most = m.col(k).tail(rest).unaryExpr(size_of).maxCoeff(&at);
          far = k + 1 + at;
        }
        const double own = size_of(m(k, k));
        if (std::max(own, most) == 0) {
          if (!failed) failed = int32_t(k) + 1;
          pivot[k] = int32_t(k) + 1;
          ++k;
          continue;
        }
        if (own < alpha * most) {
          double row = 0;
          for (int64_t j = k; j < n; ++j)
            if (j != far) row = std::max(row, size_of(m(far, j)));
          if (own * row >= alpha * most * most) {
            with = k;
          } else if (size_of(m(far, far)) >= alpha * row) {
            with = far;
          } else {
            with = far;
            size = 2;
          }
        }
        const int64_t place = k + size - 1;
        if (with != place) {  // only the part not yet eliminated, as LAPACK does
          m.row(place).tail(n - k).swap(m.row(with).tail(n - k));
          m.col(place).tail(n - k).swap(m.col(with).tail(n - k));
        }
        const int64_t below = n - k - size;
        const Matrix<S> columns = m.block(k + size, k, below, size), d = m.block(k, k, size, size);
        const Matrix<S> l =
            size == 1 ? Matrix<S>(columns / d(0, 0)) : Matrix<S>(columns * Eigen::PartialPivLU<Matrix<S>>(d).inverse());
        m.bottomRightCorner(below, below) -=
            l * (hermitian ? Matrix<S>(columns.adjoint()) : Matrix<S>(columns.transpose()));
        m.block(k + size, k, below, size) = l;
        for (int64_t j = k; j < k + size; ++j) pivot[j] = size == 1 ? int32_t(with) + 1 : -(int32_t(with) + 1);
        k += size;
      }
      info.data<int32_t>()[i] = failed;
      if (n) {
        const Matrix<S> lower = m.template triangularView<Eigen::Lower>();
        out[i] = lower;
      }
    }
  });
}

void ldl_solve(Tensor& x, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const Tensor order = widened<int32_t>(pivots);
  in_double(x.dtype(), [&]<class S>(S) {
    const In<S> in(ld), right(b);
    const Out<S> out(x);
    const int64_t n = ld.size(-1);
    for (int64_t i = 0; i < right.batch(); ++i) {
      const int32_t* pivot = order.data<int32_t>() + i * n;
      const Matrix<S> f = in[i];
      Matrix<S> y = right[i];
      const auto width = [&](int64_t k) { return pivot[k] < 0 ? 2 : 1; };
      for (int64_t k = 0; k < n; k += width(k)) {
        const bool pair = pivot[k] < 0;
        for (int64_t j = k; j <= k + pair; ++j)
          check(j < n && (pivot[j] < 0) == pair && pivot[j] != 0 && pivot[j] >= -n && pivot[j] <= n,
                "pivots are not those of a factorization of order ", n);
      }
      for (int64_t k = 0; k < n; k += width(k)) {
        const int64_t w = width(k), place = k + w - 1, with = std::abs(pivot[k]) - 1;
        if (with != place) y.row(place).swap(y.row(with));
        y.bottomRows(n - k - w) -= f.block(k + w, k, n - k - w, w) * y.middleRows(k, w);
      }
      for (int64_t k = 0; k < n; k += width(k)) {
        Matrix<S> d = f.block(k, k, width(k), width(k));
        if (width(k) == 2) d(0, 1) = hermitian ? conjugate(d(1, 0)) : d(1, 0);
        y.middleRows(k, width(k)) = (Eigen::PartialPivLU<Matrix<S>>(d).inverse() * y.middleRows(k, width(k))).eval();
      }
      for (int64_t k = n - 1; k >= 0;) {
        const int64_t w = width(k), first = k - w + 1, with = std::abs(pivot[k]) - 1;
        const Matrix<S> l = f.block(k + 1, first, n - k - 1, w);
        y.middleRows(first, w) -=
            (hermitian ? Matrix<S>(l.adjoint()) : Matrix<S>(l.transpose())) * y.bottomRows(n - k - 1);
        if (with != k) y.row(k).swap(y.row(with));
        k = first - 1;
      }
      out[i] = y;
    }
  });
}

}  // namespace rush::cpu
