"""Elementwise functions of one number."""

import math
import re

import numpy as np

from tests.harness import COMPLEX, FLOATING, SHAPES, Case, T

HERE = (-3.0, 3.0)
POSITIVE = (0.2, 4.0)
UNIT = (-0.9, 0.9)


def row(names, f, domain=HERE, *, dtypes=FLOATING, tol=1.0, **options):
    for name in names.split():
        Case(name, ref=f, domain=domain, dtypes=dtypes, tol=tol, gives="same", **options)


WITH_COMPLEX = FLOATING + COMPLEX
row("exp", np.exp, dtypes=WITH_COMPLEX, tol=3)
row("exp2 special_exp2", np.exp2, tol=3)
row("expm1 special_expm1", np.expm1, tol=3)
row("log", np.log, POSITIVE, dtypes=WITH_COMPLEX)
row("log2", np.log2, POSITIVE)
row("log10", np.log10, POSITIVE)
row("log1p special_log1p", np.log1p, POSITIVE)
row("sqrt", np.sqrt, POSITIVE, dtypes=WITH_COMPLEX)
row("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE)
row("sin", np.sin, dtypes=WITH_COMPLEX, tol=2)
row("cos", np.cos, dtypes=WITH_COMPLEX, tol=2)
row("tan", np.tan, (-1.2, 1.2), dtypes=WITH_COMPLEX, tol=4)
row("asin arcsin", np.arcsin, UNIT, tol=2)
row("acos arccos", np.arccos, UNIT, tol=2)
row("atan arctan", np.arctan)
row("sinh", np.sinh, tol=3)
row("cosh", np.cosh, tol=3)
row("tanh", np.tanh, dtypes=WITH_COMPLEX, tol=2)
row("asinh arcsinh", np.arcsinh)
row("acosh arccosh", np.arccosh, (1.5, 4.0))
row("atanh arctanh", np.arctanh, UNIT, tol=2)
row("erf special_erf", np.vectorize(math.erf, otypes="d"))
row("erfc special_erfc", np.vectorize(math.erfc, otypes="d"), (-2.0, 2.0))
row("deg2rad", np.deg2rad)
row("rad2deg", np.rad2deg, tol=100)
row("sigmoid special_expit", lambda x: 1 / (1 + np.exp(-x)))
row("logit special_logit", lambda x: np.log(x / (1 - x)), (0.1, 0.9), tol=4)
row("ceil", np.ceil)
row("floor", np.floor)
row("trunc fix", np.trunc)
row("frac", lambda x: x - np.trunc(x), tol=2)
row("round special_round", np.round)
Case(
    "round",
    ref=np.round,
    kwargs=[{"decimals": 1}, {"decimals": -1}],
    dtypes=("float32", "float64"),
    domain=(-40, 40),
    suffix="decimals",
    grad=False,
)
Case("angle", ref=np.angle, dtypes=("float32", "float64", "complex64", "complex128"), gradgrad=False)
Case("frexp", ref=np.frexp, dtypes=("float32", "float64"))
for name, of in (("tanh_backward", lambda g, y: g * (1 - y * y)), ("sigmoid_backward", lambda g, y: g * y * (1 - y))):
    Case(name, ref=of, inputs=[(s, s) for s in SHAPES], dtypes=("float32", "float64"), domain=UNIT)

# Functions that NumPy has not: a few known values, and the other dtypes against float64.
EULER = 0.5772156649015329
row("lgamma special_gammaln", np.vectorize(math.lgamma, otypes="d"), POSITIVE, tol=4)
row("erfinv special_erfinv", None, UNIT, tol=4, expect=[(([0.0, math.erf(0.5)],), [0.0, 0.5])])
row("digamma special_digamma special_psi", None, POSITIVE, tol=4, expect=[(([1.0, 2.0],), [-EULER, 1 - EULER])])
row("i0 special_i0 special_modified_bessel_i0", np.i0, tol=4)
row("special_i0e", lambda x: np.i0(x) * np.exp(-np.abs(x)), dtypes=("float32", "float64"), tol=4)
row("sinc special_sinc", np.sinc, tol=4)
row(
    "special_i1 special_modified_bessel_i1",
    None,
    dtypes=("float32", "float64"),
    tol=4,
    expect=[(([0.0, 1.0],), [0.0, 0.5651591])],
)
row("special_i1e", None, dtypes=("float32", "float64"), tol=4, expect=[(([0.0, 1.0],), [0.0, 0.2079104])])
NORMAL = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), otypes="d")
row("special_ndtr", NORMAL, dtypes=("float32", "float64"))
row("special_log_ndtr", lambda x: np.log(NORMAL(x)), dtypes=("float32", "float64"), tol=4)
row("special_ndtri", None, (0.1, 0.9), dtypes=("float32", "float64"), tol=4, expect=[(([0.5, 0.8413447],), [0.0, 1.0])])
row(
    "special_erfcx",
    np.vectorize(lambda x: math.exp(x * x) * math.erfc(x), otypes="d"),
    (-1.5, 3.0),
    dtypes=("float32", "float64"),
    tol=10,
)
row("special_entr", lambda x: -x * np.log(x), POSITIVE, dtypes=("float32", "float64"))
AT_ONE = {
    "special_airy_ai": 0.13529242, "special_bessel_j0": 0.76519769, "special_bessel_j1": 0.44005059,
    "special_bessel_y0": 0.08825696, "special_bessel_y1": -0.78121282, "special_modified_bessel_k0": 0.42102444,
    "special_modified_bessel_k1": 0.60190723, "special_scaled_modified_bessel_k0": 1.14446308,
    "special_scaled_modified_bessel_k1": 1.63615349, "special_spherical_bessel_j0": 0.84147098,
}  # fmt: skip
for name, value in AT_ONE.items():
    has_gradient = not re.search("scaled|spherical|airy", name)
    row(name, None, (0.3, 4.0), dtypes=("float32", "float64"), tol=10, expect=[(([1.0],), [value])], grad=has_gradient)

for name in ("polygamma", "special_polygamma"):
    Case(name, inputs=[(n, s) for n in (0, 1, 2) for s in SHAPES], domain=(0.5, 4), dtypes=("float32", "float64"), tol=20,
         call=None, expect=[((1, [1.0]), [math.pi**2 / 6])])  # fmt: skip
for name in ("mvlgamma", "special_multigammaln"):
    Case(name, inputs=[((3, 5), 1), ((7,), 3)], domain=(2.0, 5.0), dtypes=("float32", "float64"), tol=4)
Case("special_zeta", inputs=[((3, 5), (3, 5)), ((7,), 2.0), (2.0, (7,))], domain=(1.5, 5.0), dtypes=("float32", "float64"), tol=4, grad=False,
     expect=[(([2.0], [1.0]), [math.pi**2 / 6])])  # fmt: skip
for names, value in ((("igamma", "special_gammainc"), 0.63212056), (("igammac", "special_gammaincc"), 0.36787944)):
    for name in names:
        Case(name, inputs=[((3, 5), (3, 5)), ((7,), ())], domain=(0.5, 5.0), dtypes=("float32", "float64"), tol=10, grad=False,
             expect=[(([1.0], [1.0]), [value]), (([1e20], [1e20]), [0.5])])  # fmt: skip

DEGREE = T((3, 5), low=0, high=6, dtype="int64")
POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda x: 2 * x**2 - 1, "chebyshev_polynomial_u": lambda x: 4 * x**2 - 1,
    "chebyshev_polynomial_v": lambda x: 4 * x**2 - 2 * x - 1, "chebyshev_polynomial_w": lambda x: 4 * x**2 + 2 * x - 1,
    "hermite_polynomial_h": lambda x: 4 * x**2 - 2, "hermite_polynomial_he": lambda x: x**2 - 1,
    "laguerre_polynomial_l": lambda x: (x**2 - 4 * x + 2) / 2, "legendre_polynomial_p": lambda x: (3 * x**2 - 1) / 2,
}  # fmt: skip
for kind in "tuvw":
    of = POLYNOMIALS[f"chebyshev_polynomial_{kind}"]
    POLYNOMIALS[f"shifted_chebyshev_polynomial_{kind}"] = lambda x, of=of: of(2 * x - 1)
for name, of in POLYNOMIALS.items():
    Case(f"special_{name}", ref=lambda x, n, of=of: of(x), inputs=[((3, 5), 2), ((7,), 2), ((2, 0), 2)], domain=(0.1, 0.9),
         dtypes=("float32", "float64"), grad=False, tol=4)  # fmt: skip
    Case(
        f"special_{name}",
        inputs=[((3, 5), DEGREE), (0.5, DEGREE)],
        domain=(0.1, 0.9),
        dtypes=("float32", "float64"),
        grad=False,
        tol=10,
        suffix="degrees",
        expect=[(([-501.0], [501.0]), [math.nan])],  # beyond the range of the dtype
    )
