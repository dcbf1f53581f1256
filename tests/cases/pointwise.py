"""Elementwise arithmetic, comparison and logic."""

import numpy as np

from tests.harness import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    PAIRS,
    REAL,
    B,
    Case,
    T,
)  # fmt: skip

BROADCAST = ((2, 3), (4, 3)), RuntimeError, "must match the size of tensor"


def scaled(op):
    return lambda a, b, alpha=1: op(a, alpha * b)


Case(
    "add", ref=scaled(np.add), inputs=PAIRS, kwargs=[{}, {"alpha": 2}], dtypes=NUMERIC, gives="same", raises=[BROADCAST]
)
for name in ("sub", "subtract"):
    Case(
        name,
        ref=scaled(np.subtract),
        inputs=PAIRS,
        kwargs=[{}, {"alpha": 2}],
        dtypes=("float32", "float64", "int64", "complex64"),
        gives="same",
    )
Case(
    "rsub",
    ref=lambda a, b, alpha=1: b - alpha * a,
    inputs=PAIRS,
    kwargs=[{}, {"alpha": 3}],
    dtypes=("float32", "float64", "int64"),
)
for name in ("mul", "multiply"):
    Case(name, ref=np.multiply, inputs=PAIRS, dtypes=ALL, gives="same", raises=[BROADCAST])


def away(pairs, low=0.5, high=3.0):
    """The same inputs with a second operand that is not near zero."""
    return [(a, T(b, low=low, high=high)) for a, b in pairs]


def divide(a, b, rounding_mode=None):
    q = a / b
    return {None: lambda x: x, "floor": np.floor, "trunc": np.trunc}[rounding_mode](q)


for name in ("div", "divide"):
    Case(name, ref=divide, inputs=away(PAIRS), dtypes=FLOATING + COMPLEX, gives="same")
    Case(name, ref=divide, inputs=away(PAIRS, 1, 5), dtypes=INTEGRAL, gives="float", suffix="integers")
    Case(name, ref=divide, inputs=away(PAIRS, 1, 5), kwargs=[{"rounding_mode": "floor"}, {"rounding_mode": "trunc"}],
         dtypes=("float64", "int64", "uint8"), suffix="rounded", gives="same")  # fmt: skip
Case("true_divide", ref=divide, inputs=away(PAIRS), dtypes=FLOATING)
Case(
    "floor_divide",
    ref=lambda a, b: np.floor(a / b),
    inputs=away(PAIRS, 1, 5),
    dtypes=("float32", "float64", "int64", "uint8"),
    gives="same",
    grad=False,
)
Case(
    "remainder",
    ref=lambda a, b: np.mod(a, b),
    inputs=away(PAIRS, 1, 5),
    dtypes=("float32", "float64", "int64"),
    gives="same",
    gradgrad=False,
)
Case(
    "fmod", ref=np.fmod, inputs=away(PAIRS, 1, 5), dtypes=("float32", "float64", "int64"), gives="same", gradgrad=False
)
Case(
    "pow",
    ref=lambda a, b: a**b,
    inputs=PAIRS + [((3, 5), 2), ((7,), 0.5), ((7,), 3)],
    dtypes=("float32", "float64", "complex64"),
    domain=(0.5, 2.0),
    tol=3,
)
Case(
    "pow",
    ref=lambda a, b: np.asarray(a**b),
    inputs=[(2, (3, 5)), (1.5, (7,))],
    dtypes=("float32", "float64"),
    suffix="number first",
    domain=(0.5, 2.0),
)
Case(
    "pow",
    ref=lambda a, b: a**b,
    inputs=[((3, 5), T((3, 5), low=0, high=4)), ((7,), 2)],
    dtypes=("int64", "uint8"),
    suffix="integers",
    domain=(1, 4),
    gives="same",
)
Case(
    "float_power",
    ref=lambda a, b: a.astype(np.float64) ** b,
    inputs=[((3, 5), (3, 5)), ((7,), 2)],
    dtypes=("float32", "float64"),
    domain=(0.5, 2.0),
    gives="float64",
)
Case(
    "ldexp",
    ref=lambda a, b: a * 2.0**b,
    inputs=[((3, 5), T((3, 5), dtype="int64")), ((7,), T((), dtype="int64"))],
    dtypes=("float32", "float64"),
)

for name, f in (("maximum", np.maximum), ("minimum", np.minimum), ("fmax", np.fmax), ("fmin", np.fmin)):
    Case(name, ref=f, inputs=PAIRS, dtypes=REAL, gives="same")
for name, f in (("gcd", np.gcd), ("lcm", np.lcm)):
    Case(name, ref=f, inputs=PAIRS, dtypes=INTEGRAL, gives="same", domain=(-6, 7))
for name, f in (("hypot", np.hypot), ("atan2", np.arctan2), ("arctan2", np.arctan2), ("copysign", np.copysign)):
    Case(name, ref=f, inputs=PAIRS, dtypes=FLOATING, gives="same", gradgrad=name != "copysign")
Case("nextafter", ref=np.nextafter, inputs=PAIRS, dtypes=("float64",))
for name, f in (("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2)):
    Case(name, ref=f, inputs=PAIRS, dtypes=("float32", "float64"), gives="same")
for name in ("xlogy", "special_xlogy"):
    Case(
        name,
        ref=lambda a, b: a * np.log(b),
        inputs=away(PAIRS) + [(2.0, T((3,), low=0.5))],
        dtypes=("float32", "float64"),
    )
Case(
    "special_xlog1py",
    ref=lambda a, b: a * np.log1p(b),
    inputs=away(PAIRS) + [(2.0, T((3,), low=0.5))],
    dtypes=("float32", "float64"),
)
Case("heaviside", ref=np.heaviside, inputs=PAIRS, dtypes=("float32", "float64", "int64"), gives="same", grad=False)

for name, f in (("eq", np.equal), ("ne", np.not_equal), ("not_equal", np.not_equal)):
    Case(name, ref=f, inputs=PAIRS, dtypes=ALL, gives="bool", raises=[BROADCAST])
for names, f in (
    (("lt", "less"), np.less),
    (("le", "less_equal"), np.less_equal),
    (("gt", "greater"), np.greater),
    (("ge", "greater_equal"), np.greater_equal),
):
    for name in names:
        Case(name, ref=f, inputs=PAIRS, dtypes=REAL + BOOL, gives="bool", raises=[BROADCAST])
for name, f in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    Case(name, ref=f, inputs=PAIRS, dtypes=ALL, gives="bool")
Case("logical_not", ref=np.logical_not, dtypes=ALL, gives="bool")
for name, f in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    Case(name, ref=f, inputs=PAIRS, dtypes=INTEGRAL + BOOL, gives="same")
Case("bitwise_not", ref=np.invert, dtypes=INTEGRAL + BOOL, gives="same")
for name, f in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift)):
    Case(name, ref=f, inputs=away(PAIRS, 0, 4), dtypes=("int64", "uint8", "int32"), domain=(0, 9), gives="same")

for name in ("neg", "negative"):
    Case(name, ref=np.negative, dtypes=NUMERIC, gives="same", domain=(-3, 0) if name == "neg" else (-3, 3))
for name in ("abs", "absolute"):
    Case(name, ref=np.abs, dtypes=NUMERIC, gives="real", gradgrad=False)
Case("sign", ref=np.sign, dtypes=REAL, gives="same")
Case(
    "sgn",
    ref=lambda x: np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))),
    dtypes=("float32", "float64", "complex64", "complex128"),
)
Case("square", ref=np.square, dtypes=NUMERIC, gives="same")
Case("reciprocal", ref=lambda x: 1 / x, dtypes=FLOATING + COMPLEX, domain=(0.5, 3), gives="same")
Case(
    "isnan",
    ref=np.isnan,
    dtypes=FLOATING + COMPLEX,
    gives="bool",
    expect=[(([0.0, float("nan"), float("inf")],), [False, True, False])],
)
Case(
    "isinf",
    ref=np.isinf,
    dtypes=FLOATING + COMPLEX,
    gives="bool",
    expect=[(([0.0, float("nan"), -float("inf")],), [False, False, True])],
)
Case(
    "isfinite",
    ref=np.isfinite,
    dtypes=FLOATING + COMPLEX,
    gives="bool",
    expect=[(([0.0, float("nan"), float("inf")],), [True, False, False])],
)
Case(
    "isposinf",
    ref=np.isposinf,
    dtypes=FLOATING,
    gives="bool",
    expect=[(([-float("inf"), float("inf")],), [False, True])],
)
Case(
    "isneginf",
    ref=np.isneginf,
    dtypes=FLOATING,
    gives="bool",
    expect=[(([-float("inf"), float("inf")],), [True, False])],
)
Case("isreal", ref=np.isreal, dtypes=FLOATING + COMPLEX, gives="bool")
Case(
    "signbit",
    ref=np.signbit,
    dtypes=FLOATING + INTEGRAL,
    gives="bool",
    expect=[(([0.0, -0.0, -1.0],), [False, True, True])],
)
Case("nan_to_num", dtypes=("float32", "float64"), kwargs=[{}, {"nan": 1.0, "posinf": 2.0}], gives="same",
     expect=[(([float("nan"), 1.0],), [0.0, 1.0])])  # fmt: skip

Case(
    "lerp",
    ref=lambda a, b, w: a + w * (b - a),
    inputs=[((3, 5), (3, 5), (3, 5)), ((7,), (7,), 0.3), ((3, 1), (1, 2), ()), ((0,), (0,), 0.5)],
    dtypes=FLOATING,
    gives="same",
    tol=2,
)
Case(
    "addcmul",
    ref=lambda a, b, c, value=1: a + value * b * c,
    inputs=[((3, 5), (3, 5), (3, 5)), ((3, 1), (1, 2), ()), ((0,), (0,), (0,))],
    kwargs=[{}, {"value": 2}],
    dtypes=FLOATING + ("int64",),
    gives="same",
    tol=2,
)
Case(
    "addcdiv",
    ref=lambda a, b, c, value=1: a + value * b / c,
    inputs=[((3, 5), (3, 5), T((3, 5), low=1)), ((3, 1), (1, 2), T((), low=1))],
    kwargs=[{}, {"value": 2}],
    dtypes=FLOATING,
    gives="same",
    tol=2,
)


def clamp(x, min=None, max=None):
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


for name in ("clamp", "clip"):
    Case(
        name,
        ref=clamp,
        kwargs=[{"min": -1, "max": 1}, {"min": 0}, {"max": 0.5}],
        dtypes=("float32", "float64", "float16"),
        gives="same",
    )
    Case(
        name,
        ref=clamp,
        kwargs=[{"min": T(()), "max": T((), low=2, high=3)}, {"min": T((1,))}],
        inputs=[(3, 5), (7,)],
        dtypes=("float32", "float64", "int64"),
        suffix="tensors",
    )
Case(
    "clamp_min",
    ref=np.maximum,
    inputs=[((3, 5), 0), ((3, 5), (5,)), ((0,), 1)],
    dtypes=("float32", "float64", "int64"),
    gives="same",
)
Case(
    "clamp_max",
    ref=np.minimum,
    inputs=[((3, 5), 0), ((3, 5), (5,)), ((0,), 1)],
    dtypes=("float32", "float64", "int64"),
    gives="same",
)
Case(
    "where",
    ref=np.where,
    inputs=[(B((3, 5)), (3, 5), (3, 5)), (B((3, 1)), (1, 4), ()), (B((0,)), (0,), ())],
    dtypes=ALL,
)
Case("complex", ref=lambda a, b: a + 1j * b, inputs=PAIRS, dtypes=("float32", "float64"))
Case(
    "polar",
    ref=lambda a, b: a * np.exp(1j * b),
    inputs=[(T(a, low=0.5, high=3), b) for a, b in PAIRS],
    dtypes=("float32", "float64"),
)
