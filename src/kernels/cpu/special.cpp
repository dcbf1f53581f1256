// Special functions, elementwise: computed in double whatever the dtype.
#include "kernels/special.h"

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/tiles.h"
#include "kernels/formulas.h"

namespace rush::cpu {

namespace s = formula::special;

namespace {

template <auto function, auto of_floats = function>
void one(Tensor& out, const Tensor& x) {
  map<s::In<function, of_floats>, Floating>(out.dtype(), out, x);
}
template <auto function>
void two(Tensor& out, const Tensor& a, const Tensor& b) {
  map<s::In<function>, Floating>(out.dtype(), out, a, b);
}

using s::Polynomial;

template <Polynomial kind, bool shifted = false>
void polynomial(Tensor& out, const Tensor& x, const Tensor& n) {
  map<s::Orthogonal<kind, shifted>, Floating>(out.dtype(), out, x, n);
}

}  // namespace

void lgamma(Tensor& out, const Tensor& x) { one<s::lgamma, s::lgamma_short>(out, x); }
void digamma(Tensor& out, const Tensor& x) { one<s::digamma, s::digamma_short>(out, x); }
void polygamma(Tensor& out, int64_t n, const Tensor& x) {
  for_compute(Floating{}, out.dtype(), [&]<class T>() { apply<T>(s::Polygamma{n}, out, x); });
}
void zeta(Tensor& out, const Tensor& x, const Tensor& q) { two<s::zeta>(out, x, q); }
void i0(Tensor& out, const Tensor& x) { one<s::i0>(out, x); }
void i0e(Tensor& out, const Tensor& x) { one<s::i0e>(out, x); }
void i1(Tensor& out, const Tensor& x) { one<s::i1>(out, x); }
void i1e(Tensor& out, const Tensor& x) { one<s::i1e>(out, x); }
void bessel_j0(Tensor& out, const Tensor& x) { one<s::j0>(out, x); }
void bessel_j1(Tensor& out, const Tensor& x) { one<s::j1>(out, x); }
void bessel_y0(Tensor& out, const Tensor& x) { one<s::y0>(out, x); }
void bessel_y1(Tensor& out, const Tensor& x) { one<s::y1>(out, x); }
void modified_bessel_k0(Tensor& out, const Tensor& x) { one<s::k0>(out, x); }
void modified_bessel_k1(Tensor& out, const Tensor& x) { one<s::k1>(out, x); }
void scaled_modified_bessel_k0(Tensor& out, const Tensor& x) { one<s::k0e>(out, x); }
void scaled_modified_bessel_k1(Tensor& out, const Tensor& x) { one<s::k1e>(out, x); }
void spherical_bessel_j0(Tensor& out, const Tensor& x) { one<s::spherical_j0>(out, x); }
void airy_ai(Tensor& out, const Tensor& x) { one<s::airy_ai>(out, x); }
void erfinv(Tensor& out, const Tensor& x) { one<s::erfinv, s::erfinv_short>(out, x); }
void erfcx(Tensor& out, const Tensor& x) { one<s::erfcx>(out, x); }
void ndtr(Tensor& out, const Tensor& x) { one<s::ndtr>(out, x); }
void ndtri(Tensor& out, const Tensor& x) { one<s::ndtri>(out, x); }
void log_ndtr(Tensor& out, const Tensor& x) { one<s::log_ndtr>(out, x); }
void igamma(Tensor& out, const Tensor& a, const Tensor& x) { two<s::igamma>(out, a, x); }
void igammac(Tensor& out, const Tensor& a, const Tensor& x) { two<s::igammac>(out, a, x); }
void entr(Tensor& out, const Tensor& x) { one<s::entr>(out, x); }
void sinc(Tensor& out, const Tensor& x) {
  x.is_complex() ? map<formula::SincComplex, Complex>(out.dtype(), out, x) : one<s::sinc>(out, x);
}

void chebyshev_polynomial_t(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::T>(out, x, n); }
void chebyshev_polynomial_u(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::U>(out, x, n); }
void chebyshev_polynomial_v(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::V>(out, x, n); }
void chebyshev_polynomial_w(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::W>(out, x, n); }
void shifted_chebyshev_polynomial_t(Tensor& out, const Tensor& x, const Tensor& n) {
  polynomial<Polynomial::T, true>(out, x, n);
}
void shifted_chebyshev_polynomial_u(Tensor& out, const Tensor& x, const Tensor& n) {
  polynomial<Polynomial::U, true>(out, x, n);
}
void shifted_chebyshev_polynomial_v(Tensor& out, const Tensor& x, const Tensor& n) {
  polynomial<Polynomial::V, true>(out, x, n);
}
void shifted_chebyshev_polynomial_w(Tensor& out, const Tensor& x, const Tensor& n) {
  polynomial<Polynomial::W, true>(out, x, n);
}
void hermite_polynomial_h(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::H>(out, x, n); }
void hermite_polynomial_he(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::He>(out, x, n); }
void laguerre_polynomial_l(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::L>(out, x, n); }
void legendre_polynomial_p(Tensor& out, const Tensor& x, const Tensor& n) { polynomial<Polynomial::P>(out, x, n); }

}  // namespace rush::cpu
