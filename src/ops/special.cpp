// Special functions, elementwise. DLMF is the NIST Digital Library of Mathematical Functions.
#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

OP_DEFINE(erfinv){{
    .doc = R"(The inverse of erf.)",
    .infer = floating_meta,
    .kernel = {cpu::erfinv},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor&) { return Grads{g * exp(y * y) * (1 / kTwoOverRootPi)}; },
    .pointwise = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(lgamma){{
    .doc = R"(The logarithm of the absolute value of the gamma function.)",
    .infer = floating_meta,
    .kernel = {cpu::lgamma},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * digamma(x)}; },
    .pointwise = true,
}};

OP_DEFINE(digamma){{
    .doc = R"(The derivative of lgamma.)",
    .infer = floating_meta,
    .kernel = {cpu::digamma},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * polygamma(1, x)}; },
    .pointwise = true,
}};

OP_DEFINE(i0){{
    .doc = R"(The modified Bessel function of the first kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::i0},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * special_i1(x)}; },
    .pointwise = true,
}};

OP_DEFINE(special_erfinv){{
    .doc = R"(Another name of erfinv.)",
    .composite = [](const Tensor& x) { return erfinv(x); },
}};

OP_DEFINE(special_gammaln){{
    .doc = R"(Another name of lgamma.)",
    .composite = [](const Tensor& x) { return lgamma(x); },
}};

OP_DEFINE(special_psi){{
    .doc = R"(Another name of digamma.)",
    .composite = [](const Tensor& x) { return digamma(x); },
}};

OP_DEFINE(special_digamma){{
    .doc = R"(Another name of digamma.)",
    .composite = [](const Tensor& x) { return digamma(x); },
}};

OP_DEFINE(special_i0){{
    .doc = R"(Another name of i0.)",
    .composite = [](const Tensor& x) { return i0(x); },
}};

OP_DEFINE(special_sinc){{
    .doc = R"(Another name of sinc.)",
    .composite = [](const Tensor& x) { return sinc(x); },
}};

OP_DEFINE(sinc){{
    .doc = R"(``sin(pi x) / (pi x)``, 1 at 0.)",
    .infer = floating_meta,
    .kernel = {cpu::sinc},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x) {
          const Tensor p = x * kPi;
          return Grads{where(eq(p, 0), zeros({}, g.dtype()), g * conjugate((p * cos(p) - sin(p)) / (p * x)))};
        },
    .pointwise = true,
}};

OP_DEFINE(polygamma){{
    .doc = R"(The n-th derivative of digamma (DLMF 5.15).)",
    .infer =
        [](int64_t n, const Tensor& x) {
          check(n >= 0, "polygamma(n, x) does not support negative n.");
          return floating_meta(x);
        },
    .kernel = {cpu::polygamma},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, int64_t n, const Tensor& x) { return Grads{g * polygamma(n + 1, x)}; },
}};

OP_DEFINE(special_polygamma){{
    .doc = R"(Another name of polygamma.)",
    .composite = [](int64_t n, const Tensor& x) { return polygamma(n, x); },
}};

OP_DEFINE(special_i1){{
    .doc = R"(The modified Bessel function of the first kind, order 1.)",
    .infer = floating_meta,
    .kernel = {cpu::i1},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& y,
              const Tensor& x) { return Grads{g * where(eq(x, 0), full({}, 0.5, x.dtype()), i0(x) - y / x)}; },
    .pointwise = true,
}};

OP_DEFINE(special_i0e){{
    .doc = R"(``exp(-|x|) * i0(x)``.)",
    .infer = floating_meta,
    .kernel = {cpu::i0e},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor& x) { return Grads{g * (special_i1e(x) - sgn(x) * y)}; },
    .pointwise = true,
}};

OP_DEFINE(special_i1e){{
    .doc = R"(``exp(-|x|) * i1(x)``.)",
    .infer = floating_meta,
    .kernel = {cpu::i1e},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& x) {
          return Grads{g * where(eq(x, 0), full({}, 0.5, x.dtype()), special_i0e(x) - y * (sgn(x) + reciprocal(x)))};
        },
    .pointwise = true,
}};

OP_DEFINE(special_ndtr){{
    .doc = R"(The normal distribution's cumulative function.)",
    .infer = floating_meta,
    .kernel = {cpu::ndtr},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&,
              const Tensor& x) { return Grads{g * exp(-0.5 * x * x) * (0.5 * kTwoOverRootPi * std::sqrt(0.5))}; },
    .pointwise = true,
}};

OP_DEFINE(special_ndtri){{
    .doc = R"(The inverse of ndtr.)",
    .infer = floating_meta,
    .kernel = {cpu::ndtri},
    .saves = "result",
    .vjp = [](const Tensor& g, const Tensor& y,
              const Tensor&) { return Grads{g * exp(0.5 * y * y) * (2 / (kTwoOverRootPi * std::sqrt(0.5)) / 1)}; },
    .pointwise = true,
}};

OP_DEFINE(special_log_ndtr){{
    .doc = R"(``log(ndtr(x))``, accurate far below 0.)",
    .infer = floating_meta,
    .kernel = {cpu::log_ndtr},
    .saves = "self",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x) {
          return Grads{g / special_erfcx(x * -std::sqrt(0.5)) * (kTwoOverRootPi * std::sqrt(0.5))};
        },
    .pointwise = true,
}};

OP_DEFINE(special_erfcx){{
    .doc = R"(``exp(x^2) * erfc(x)``.)",
    .infer = floating_meta,
    .kernel = {cpu::erfcx},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor& x) { return Grads{g * (2 * x * y - kTwoOverRootPi)}; },
    .pointwise = true,
}};

OP_DEFINE(special_entr){{
    .doc = R"(``-x * log(x)``, 0 at 0, minus infinity below.)",
    .infer = floating_meta,
    .kernel = {cpu::entr},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&,
              const Tensor& x) { return Grads{g * where(lt(x, 0), full({}, -INFINITY, x.dtype()), -log(x) - 1)}; },
    .pointwise = true,
}};

OP_DEFINE(special_airy_ai){{
    .doc = R"(The Airy function Ai (DLMF 9.2).)",
    .infer = floating_meta,
    .kernel = {cpu::airy_ai},
    .pointwise = true,
}};

OP_DEFINE(special_bessel_j0){{
    .doc = R"(The Bessel function of the first kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::bessel_j0},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * special_bessel_j1(x))}; },
    .pointwise = true,
}};

OP_DEFINE(special_bessel_j1){{
    .doc = R"(The Bessel function of the first kind, order 1.)",
    .infer = floating_meta,
    .kernel = {cpu::bessel_j1},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& x) {
          return Grads{g * where(eq(x, 0), full({}, 0.5, x.dtype()), special_bessel_j0(x) - y / x)};
        },
    .pointwise = true,
}};

OP_DEFINE(special_bessel_y0){{
    .doc = R"(The Bessel function of the second kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::bessel_y0},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * special_bessel_y1(x))}; },
    .pointwise = true,
}};

OP_DEFINE(special_bessel_y1){{
    .doc = R"(The Bessel function of the second kind, order 1.)",
    .infer = floating_meta,
    .kernel = {cpu::bessel_y1},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& y, const Tensor& x) { return Grads{g * (special_bessel_y0(x) - y / x)}; },
    .pointwise = true,
}};

OP_DEFINE(special_modified_bessel_i0){{
    .doc = R"(The modified Bessel function of the first kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::i0},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{g * special_modified_bessel_i1(x)}; },
    .pointwise = true,
}};

OP_DEFINE(special_modified_bessel_i1){{
    .doc = R"(The modified Bessel function of the first kind, order 1.)",
    .infer = floating_meta,
    .kernel = {cpu::i1},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& y, const Tensor& x) {
          return Grads{g * where(eq(x, 0), full({}, 0.5, x.dtype()), special_modified_bessel_i0(x) - y / x)};
        },
    .pointwise = true,
}};

OP_DEFINE(special_modified_bessel_k0){{
    .doc = R"(The modified Bessel function of the second kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::modified_bessel_k0},
    .saves = "self",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x) { return Grads{-(g * special_modified_bessel_k1(x))}; },
    .pointwise = true,
}};

OP_DEFINE(special_modified_bessel_k1){{
    .doc = R"(The modified Bessel function of the second kind, order 1.)",
    .infer = floating_meta,
    .kernel = {cpu::modified_bessel_k1},
    .saves = "self, result",
    .vjp = [](const Tensor& g, const Tensor& y,
              const Tensor& x) { return Grads{-(g * (special_modified_bessel_k0(x) + y / x))}; },
    .pointwise = true,
}};

OP_DEFINE(special_scaled_modified_bessel_k0){{
    .doc = R"(``exp(x) * modified_bessel_k0(x)``.)",
    .infer = floating_meta,
    .kernel = {cpu::scaled_modified_bessel_k0},
    .pointwise = true,
}};

OP_DEFINE(special_scaled_modified_bessel_k1){{
    .doc = R"(``exp(x) * modified_bessel_k1(x)``.)",
    .infer = floating_meta,
    .kernel = {cpu::scaled_modified_bessel_k1},
    .pointwise = true,
}};

OP_DEFINE(special_spherical_bessel_j0){{
    .doc = R"(The spherical Bessel function of the first kind, order 0.)",
    .infer = floating_meta,
    .kernel = {cpu::spherical_bessel_j0},
    .pointwise = true,
}};

OP_DEFINE(special_zeta){{
    .doc = R"(The Hurwitz zeta function (DLMF 25.11). The gradient with respect to self is not implemented.)",
    .infer = floating_binary,
    .kernel = {cpu::zeta},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& q) {
          check<NotImplementedError>(!needs_grad(0), "the derivative for 'self' is not implemented");
          return Grads{Tensor(), g * -x * special_zeta(x + 1, q)};
        },
    .pointwise = true,
}};

OP_DEFINE(igamma){{
    .doc =
        R"(The regularized lower incomplete gamma function (DLMF 8.2.4). The gradient with respect to self is not implemented.)",
    .infer = binary_meta,
    .kernel = {cpu::igamma},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          check<NotImplementedError>(!needs_grad(0), "the derivative for 'self' is not implemented");
          return Grads{Tensor(), (g * exp((a - 1) * log(b) - b - lgamma(a)))};
        },
    .pointwise = true,
}};

OP_DEFINE(igammac){{
    .doc =
        R"(The regularized upper incomplete gamma function (DLMF 8.2.4). The gradient with respect to self is not implemented.)",
    .infer = binary_meta,
    .kernel = {cpu::igammac},
    .saves = "self, other",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& a, const Tensor& b) {
          check<NotImplementedError>(!needs_grad(0), "the derivative for 'self' is not implemented");
          return Grads{Tensor(), -(g * exp((a - 1) * log(b) - b - lgamma(a)))};
        },
    .pointwise = true,
}};

OP_DEFINE(special_gammainc){{
    .doc = R"(Another name of igamma.)",
    .composite = [](const Tensor& a, const Tensor& x) { return igamma(a, x); },
}};

OP_DEFINE(special_gammaincc){{
    .doc = R"(Another name of igammac.)",
    .composite = [](const Tensor& a, const Tensor& x) { return igammac(a, x); },
}};

OP_DEFINE(mvlgamma){{
    .doc = R"(The logarithm of the multivariate gamma function of dimension p (DLMF 35.3.4).)",
    .composite =
        [](const Tensor& x, int64_t p) {
          check(p >= 1, "p has to be greater than or equal to 1");
          const Tensor shift = arange(0.5 * (1 - double(p)), 0.5, 0.5, to_floating(x.dtype()), {}, x.device());
          return sum(lgamma(unsqueeze(x, -1) + shift), Ints({-1})) + 0.25 * double(p * (p - 1)) * std::log(kPi);
        },
    .in_place = true,
}};

OP_DEFINE(special_multigammaln){{
    .doc = R"(Another name of mvlgamma.)",
    .composite = [](const Tensor& x, int64_t p) { return mvlgamma(x, p); },
}};

OP_DEFINE(special_chebyshev_polynomial_t){{
    .doc = R"(The chebyshev polynomial t of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::chebyshev_polynomial_t},
}};

OP_DEFINE(special_chebyshev_polynomial_u){{
    .doc = R"(The chebyshev polynomial u of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::chebyshev_polynomial_u},
}};

OP_DEFINE(special_chebyshev_polynomial_v){{
    .doc = R"(The chebyshev polynomial v of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::chebyshev_polynomial_v},
}};

OP_DEFINE(special_chebyshev_polynomial_w){{
    .doc = R"(The chebyshev polynomial w of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::chebyshev_polynomial_w},
}};

OP_DEFINE(special_shifted_chebyshev_polynomial_t){{
    .doc = R"(The shifted chebyshev polynomial t of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::shifted_chebyshev_polynomial_t},
}};

OP_DEFINE(special_shifted_chebyshev_polynomial_u){{
    .doc = R"(The shifted chebyshev polynomial u of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::shifted_chebyshev_polynomial_u},
}};

OP_DEFINE(special_shifted_chebyshev_polynomial_v){{
    .doc = R"(The shifted chebyshev polynomial v of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::shifted_chebyshev_polynomial_v},
}};

OP_DEFINE(special_shifted_chebyshev_polynomial_w){{
    .doc = R"(The shifted chebyshev polynomial w of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::shifted_chebyshev_polynomial_w},
}};

OP_DEFINE(special_hermite_polynomial_h){{
    .doc = R"(The hermite polynomial h of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::hermite_polynomial_h},
}};

OP_DEFINE(special_hermite_polynomial_he){{
    .doc = R"(The hermite polynomial he of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::hermite_polynomial_he},
}};

OP_DEFINE(special_laguerre_polynomial_l){{
    .doc = R"(The laguerre polynomial l of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::laguerre_polynomial_l},
}};

OP_DEFINE(special_legendre_polynomial_p){{
    .doc = R"(The legendre polynomial p of degree ``n`` at x (DLMF 18.3).)",
    .infer = floating_binary,
    .kernel = {cpu::legendre_polynomial_p},
}};

}  // namespace rush
