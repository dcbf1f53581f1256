// Fourier transforms of contiguous lines of n complex numbers, in passes over memory: one for each factor of n
// (Stockham's order, in which nothing has to be reordered), or three steps around them where a factor is a large prime
// (Bluestein 1970). Each thread computes one element.
#pragma once
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

template <class T>
RUSH_FN std::complex<T> product(std::complex<T> a, std::complex<T> b) {
  return {formula::fma(a.real(), b.real(), -a.imag() * b.imag()), formula::fma(a.real(), b.imag(), a.imag() * b.real())};
}
template <class T>
RUSH_FN std::complex<T> conjugate_unless(bool keep, std::complex<T> z) {
  return {z.real(), keep ? z.imag() : -z.imag()};
}

/// The n roots of one, e^(-2 pi i k / n).
template <class T>
struct Roots {
  std::complex<T>* out;
  int64_t n;
  RUSH_FN void operator()(int64_t k) const {
    const double angle = -2 * formula::kPi * (double(k) / double(n));
    out[k] = {T(std::cos(angle)), T(std::sin(angle))};
  }
};

/// Makes transforms of `done * radix` elements, which lie n / (done * radix) apart in the line, of those of `done`.
template <class T>
struct FourierPass {
  using C = std::complex<T>;
  C* out;
  const C *in, *roots;
  int64_t n, radix, done, forward;
  T factor;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t e = i % n, size = done * radix, k = e % size, turn = n / size * k;
    const C* x = in + (i - e) + e / size * done + k % done;
    C sum = x[0];
    for (int64_t s = 1, at = turn; s < radix; ++s) {
      sum += product(x[s * (n / radix)], conjugate_unless(forward, roots[at]));
      at = at + turn < n ? at + turn : at + turn - n;
    }
    out[i] = sum * factor;
  }
};

/// The n elements of a line that mirrors itself, of its n / 2 + 1 first.
template <class T>
struct Mirror {
  using C = std::complex<T>;
  C* out;
  const C* in;
  int64_t n;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t e = i % n, half = n / 2 + 1;
    const C z = in[i / n * half + (e < half ? e : n - e)];
    out[i] = e == 0 || 2 * e == n ? C(z.real()) : conjugate_unless(e < half, z);
  }
};

/// e^(-pi i j^2 / n), from the roots of 2n: 2jk = j^2 + k^2 - (k - j)^2 makes a transform of a convolution with it.
template <class T>
RUSH_FN std::complex<T> chirp(const std::complex<T>* roots, int64_t n, int64_t j, bool forward) {
  return conjugate_unless(forward, roots[j * j % (2 * n)]);
}
/// Lines of n elements times the chirp, padded with zeros to m.
template <class T>
struct ChirpIn {
  using C = std::complex<T>;
  C* out;
  const C *in, *roots;
  int64_t n, m, forward;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t e = i % m;
    out[i] = e < n ? product(in[i / m * n + e], chirp(roots, n, e, forward)) : C(0);
  }
};
/// What they are convolved with: m elements, around a circle.
template <class T>
struct ChirpFilter {
  std::complex<T>* out;
  const std::complex<T>* roots;
  int64_t n, m, forward;
  RUSH_FN void operator()(int64_t e) const {
    const int64_t j = e < n ? e : m - e;
    out[e] = j < n ? chirp(roots, n, j, !forward) : std::complex<T>(0);
  }
};
/// Each of the lines of m elements times the same line.
template <class T>
struct Filter {
  std::complex<T>* lines;
  const std::complex<T>* by;
  int64_t m;
  RUSH_FN void operator()(int64_t i) const { lines[i] = product(lines[i], by[i % m]); }
};
template <class T>
struct ChirpOut {
  using C = std::complex<T>;
  C* out;
  const C *in, *roots;
  int64_t n, m, forward;
  T factor;
  RUSH_FN void operator()(int64_t i) const {
    const int64_t e = i % n;
    out[i] = product(in[i / n * m + e], chirp(roots, n, e, forward)) * factor;
  }
};

}  // namespace rush::cuda
