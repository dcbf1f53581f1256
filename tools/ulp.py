"""Measures the error of each function of one real argument in units in the last place and prints docs/accuracy.md's table.

    python tools/ulp.py [samples] [name ...]

What is right comes from mpmath, computed to 40 digits, for float64 as for float32. Inputs are spread over all exponents of both
signs, uniformly where a function does something, close to its hard places, and the special values. Needs mpmath and NumPy.
"""

import math
import sys
from dataclasses import dataclass

import mpmath as mp
import numpy as np

import rushlight as torch

mp.mp.dps = 40


@dataclass
class Row:
    name: str  # under torch or torch.special
    exact: object
    low: float  # where the function is interesting; exponents are all tried within the domain
    high: float
    domain: tuple = (-math.inf, math.inf)
    limit: float = 1.0
    near: tuple = ()  # zeros of the function, poles, ends of the domain
    slow: int = 1  # times fewer samples
    floor: object = 0.0  # float64's error near zeros of the function is measured in steps of this, or of this at x

    def call(self, x):
        name = self.name
        return getattr(torch if hasattr(torch, name) else torch.special, name)(x)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def erfinv(x):
    return mp.erfinv(x) if abs(x) < 0.9999 else mp.sign(x) * erfc_inverse(1 - abs(x))


def erfc_inverse(z):
    """y with erfc(y) = z for small z, by Newton's method for the logarithm."""
    y = mp.sqrt(-mp.log(z * mp.sqrt(-mp.pi * mp.log(z))))
    for _ in range(12):
        c = mp.erfc(y)
        y += (mp.log(c) - mp.log(z)) * c * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def ndtri(p):
    if p == 0.5:
        return mp.mpf(0)
    root = mp.sqrt(2)
    if p < 0.25:
        return -root * erfc_inverse(2 * p)
    return root * erfc_inverse(2 * (1 - p)) if p > 0.75 else root * mp.erfinv(2 * p - 1)


def tenth_of_amplitude(x):
    """Of Bessel functions, which fall like 1 / sqrt(x)."""
    return 0.1 * min(1.0, math.sqrt(2 / (math.pi * abs(x)))) if x else 0.1


POSITIVE, UNIT, INSIDE = (0.0, math.inf), (-1.0, 1.0), (0.0, 1.0)
PI = math.pi
WAVES = {"slow": 20, "floor": tenth_of_amplitude}
ROWS = [
    Row("exp", mp.exp, -105, 90, (-800, 710)),
    Row("exp2", lambda x: mp.mpf(2) ** x, -150, 128, (-1100, 1024)),
    Row("expm1", mp.expm1, -20, 90, (-800, 710)),
    Row("log", mp.log, 0, 4, POSITIVE, near=(1.0,)),
    Row("log2", lambda x: mp.log(x) / mp.log(2), 0, 4, POSITIVE, near=(1.0,)),
    Row("log10", lambda x: mp.log(x) / mp.log(10), 0, 4, POSITIVE, near=(1.0,)),
    Row("log1p", mp.log1p, -1, 4, (-1.0, math.inf), near=(-1.0,)),
    Row("sqrt", mp.sqrt, 0, 4, POSITIVE),
    Row("rsqrt", lambda x: 1 / mp.sqrt(x), 0, 4, POSITIVE, near=(3e-308,)),
    Row("sin", mp.sin, -20, 20, near=(PI, 2 * PI, 100 * PI)),
    Row("cos", mp.cos, -20, 20, near=(PI / 2, 3 * PI / 2, 101 * PI / 2)),
    Row("tan", mp.tan, -20, 20, near=(PI / 2, PI, 51 * PI / 2)),
    Row("asin", mp.asin, -1, 1, UNIT, near=(1.0, -1.0)),
    Row("acos", mp.acos, -1, 1, UNIT, near=(1.0, -1.0)),
    Row("atan", mp.atan, -5, 5, near=(1.0,)),
    Row("sinh", mp.sinh, -20, 20, (-710, 710)),
    Row("cosh", mp.cosh, -20, 20, (-710, 710)),
    Row("tanh", mp.tanh, -10, 10, (-1e3, 1e3)),
    Row("asinh", mp.asinh, -5, 5),
    Row("acosh", mp.acosh, 1, 5, (1.0, math.inf), near=(1.0,)),
    Row("atanh", mp.atanh, -1, 1, UNIT, near=(1.0, -1.0)),
    Row("sigmoid", lambda x: 1 / (1 + mp.exp(-x)), -20, 20, (-700, 700)),
    Row("logit", lambda x: mp.log(x / (1 - x)), 0, 1, INSIDE, near=(0.5, 1.0)),
    Row("erf", mp.erf, -5, 5, (-30, 30)),
    Row("erfc", mp.erfc, -5, 10, (-30, 26), near=(0.746,)),
    Row("erfcx", erfcx, -5, 20, (-9, 1e3), slow=4),
    Row("erfinv", erfinv, -1, 1, UNIT, near=(1.0, -1.0), slow=20),
    Row("ndtr", ndtr, -8, 8, (-37, 37)),
    Row("ndtri", ndtri, 0, 1, INSIDE, near=(0.5, 1.0), slow=20),
    Row("log_ndtr", lambda x: mp.log1p(-ndtr(-x)) if x > 0 else mp.log(ndtr(x)), -10, 5, (-37, 37)),
    Row("sinc", lambda x: mp.sincpi(x), -10, 10, (-1e4, 1e4), near=(1.0, 2.0)),
    Row("entr", lambda x: -x * mp.log(x), 0, 4, (0.0, 1e30), near=(1.0,)),
    Row(
        "lgamma",
        lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.loggamma(x),
        -6,
        20,
        (-30, 1e6),
        2.0,
        (1.0, 2.0, -2.4570247382208006, -3.955294284858598, -6.001385294453155),
        4,
    ),
    Row("digamma", mp.digamma, -6, 20, (-30, 1e6), 2.0, (1.4616321449683622,), 8, floor=0.1),
    Row("i0", lambda x: mp.besseli(0, x), -20, 20, (-88, 88), near=(47.0,), slow=8),
    Row("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), -40, 40, (-1e3, 1e3), slow=8),
    Row("i1", lambda x: mp.besseli(1, x), -20, 20, (-88, 88), near=(47.0,), slow=8),
    Row("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), -40, 40, (-1e3, 1e3), slow=8),
    Row("bessel_j0", lambda x: mp.besselj(0, x), -20, 20, (-1e3, 1e3), near=(2.404825557695773,), **WAVES),
    Row("bessel_j1", lambda x: mp.besselj(1, x), -20, 20, (-1e3, 1e3), near=(3.8317059702075125,), **WAVES),
    Row("bessel_y0", lambda x: mp.bessely(0, x), 0, 20, (0.0, 1e3), near=(0.8935769662791675,), **WAVES),
    Row("bessel_y1", lambda x: mp.bessely(1, x), 0, 20, (0.0, 1e3), near=(2.197141326031017,), **WAVES),
    Row("modified_bessel_k0", lambda x: mp.besselk(0, x), 0, 20, (0.0, 80), slow=20),
    Row("modified_bessel_k1", lambda x: mp.besselk(1, x), 0, 20, (0.0, 80), slow=20),
    Row("spherical_bessel_j0", lambda x: mp.sin(x) / x if x else mp.mpf(1), -20, 20, (-1e4, 1e4), near=(PI,)),
    Row("airy_ai", mp.airyai, -8, 8, (-50, 20), near=(-2.338107410459767,), slow=20, floor=0.1),
]


def inputs(row, dtype, count):
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    low, high = max(row.domain[0], -float(info.max)), min(row.domain[1], float(info.max))
    exponents = np.ldexp(rng.uniform(1, 2, count), rng.integers(info.minexp, info.maxexp, count)) * rng.choice(
        [-1, 1], count
    )
    close = [p * (1 + s * 2.0**-k) for p in row.near for k in range(2, info.nmant) for s in (-1, 1)]
    x = np.concatenate(
        [exponents, rng.uniform(row.low, row.high, 2 * count), rng.uniform(-2, 2, count), close, [0.5, 1, 2]]
    )
    x = x.astype(dtype)
    return np.unique(x[(x > low) & (x < high)])


def ulps(got, exact, dtype, floor):
    """The distance in the dtype's steps at the exact value; infinity where the value is beyond its largest number is right."""
    info = np.finfo(dtype)
    if not math.isfinite(got):
        return 0.0 if abs(exact) >= mp.mpf(float(info.max)) and math.copysign(1, got) == mp.sign(exact) else math.inf
    size = max(abs(exact), floor)
    exponent = mp.frexp(size)[1] - 1 if size else info.minexp
    return float(abs(mp.mpf(float(got)) - exact) / mp.ldexp(1, max(exponent, info.minexp) - info.nmant))


def worst(row, dtype, count):
    x = inputs(row, dtype, max(count // row.slow, 30))
    got = row.call(torch.from_numpy(x)).numpy()
    errors = []
    for v, y in zip(x.tolist(), got, strict=True):
        floor = row.floor(v) if callable(row.floor) else row.floor
        errors.append((ulps(y, row.exact(mp.mpf(v)), dtype, floor if dtype == np.float64 else 0.0), v))
    return max(errors)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    print("| function | float32 | at | float64 | at |\n|---|---:|---:|---:|---:|")
    for row in ROWS:
        if not sys.argv[2:] or row.name in sys.argv[2:]:
            cells = (f"{error:.3f} | {at!r}" for error, at in (worst(row, d, count) for d in (np.float32, np.float64)))
            print(f"| {row.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
