"""Activation functions and what their gradients are computed with."""

import math

import numpy as np

from tests.harness import FLOATING, SHAPES, Case

SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(beta * x)) / beta)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * np.vectorize(math.erfc, otypes="d")(-x / math.sqrt(2))


def elu(x, alpha=1, scale=1, input_scale=1):
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(input_scale * x))


def shrink(soft):
    return lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x - soft * lambd * np.sign(x), 0)


def row(name, f, *kwargs, **options):
    Case(name, ref=f, kwargs=kwargs or ({},), dtypes=FLOATING, gives="same", tol=2, **options)


row("relu", lambda x: np.maximum(x, 0))
row("relu6", lambda x: np.clip(x, 0, 6))
row("silu", lambda x: x * sigmoid(x))
row("mish", lambda x: x * np.tanh(softplus(x)))
row("gelu", gelu, {}, {"approximate": "tanh"})
row("elu", elu, {}, {"alpha": 0.5})
row("celu", lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0), {}, {"alpha": 2.0})
row("selu", lambda x: elu(x, ALPHA, SCALE))
row("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), domain=(-4, 4))
row("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), domain=(-4, 4))
row(
    "hardtanh", lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val), {}, {"min_val": -2.0, "max_val": 0.5}
)
row("leaky_relu", lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x), {}, {"negative_slope": 0.2})
row("log_sigmoid", lambda x: -softplus(-x))
row("softplus", softplus, {}, {"beta": 2.0, "threshold": 3.0})
row("softshrink", shrink(1), {}, {"lambd": 1.0})
row("hardshrink", shrink(0), {}, {"lambd": 1.0})
row("tanhshrink", lambda x: x - np.tanh(x))
row("softsign", lambda x: x / (1 + np.abs(x)), gradgrad=False)
Case(
    "threshold",
    ref=lambda x, threshold, value: np.where(x > threshold, x, value),
    inputs=[(s, 0.5, 2) for s in SHAPES],
    dtypes=FLOATING,
)
Case(
    "glu",
    ref=lambda x, dim=-1: np.split(x, 2, dim)[0] * sigmoid(np.split(x, 2, dim)[1]),
    inputs=[(6,), (3, 4), (0, 4)],
    dtypes=FLOATING,
    tol=2,
)
Case(
    "prelu",
    ref=lambda x, w: np.where(x > 0, x, w.reshape(-1, 1) * x),
    inputs=[((2, 3, 4), (3,)), ((5, 3), (1,))],
    dtypes=("float32", "float64"),
    domain=(-2, 2),
)
Case(
    "_prelu_kernel",
    ref=lambda x, w: np.where(x > 0, x, w * x),
    inputs=[((3, 4), (3, 4)), ((3, 4), (1, 4))],
    dtypes=("float32", "float64"),
)

TWO = [(s, s) for s in SHAPES]


def slope(f, extra=()):
    """The gradient of f by central differences, times g."""
    return lambda g, x, *rest, **k: g * (f(x + 1e-6, *rest, **k) - f(x - 1e-6, *rest, **k)) / 2e-6


BACKWARD = dict(dtypes=("float64",), tol=1000, layouts=True)  # the reference is a difference
Case("silu_backward", ref=slope(lambda x: x * sigmoid(x)), inputs=TWO, **BACKWARD)
Case("mish_backward", ref=slope(lambda x: x * np.tanh(softplus(x))), inputs=TWO, **BACKWARD)
Case("gelu_backward", ref=slope(gelu), inputs=TWO, kwargs=[{}, {"approximate": "tanh"}], **BACKWARD)
Case("hardsigmoid_backward", ref=slope(lambda x: np.clip(x / 6 + 0.5, 0, 1)), inputs=TWO, **BACKWARD)
Case("hardswish_backward", ref=slope(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), inputs=TWO, **BACKWARD)
Case("log_sigmoid_backward", ref=slope(lambda x: -softplus(-x)), inputs=TWO, **BACKWARD)
Case("threshold_backward", ref=lambda g, x, t: g * (x > t), inputs=[(s, s, 0.5) for s in SHAPES], dtypes=("float64",))
Case("hardtanh_backward", ref=slope(np.clip), inputs=[(s, s, -1, 1) for s in SHAPES], **BACKWARD)
Case(
    "leaky_relu_backward",
    ref=lambda g, x, k: g * np.where(x > 0, 1, k),
    inputs=[(s, s, 0.2) for s in SHAPES],
    dtypes=("float64",),
)
Case("softplus_backward", ref=slope(softplus), inputs=[(s, s, 2.0, 20.0) for s in SHAPES], **BACKWARD)
Case(
    "_shrink_backward",
    ref=lambda g, x, k: g * (np.abs(x) > k),
    inputs=[(s, s, 0.5) for s in SHAPES],
    dtypes=("float64",),
)
Case("elu_backward", ref=lambda g, a, s, i, is_result, x: g * np.where(x > 0, s, s * a * i * np.exp(i * x)),
     inputs=[(s, 0.5, 1.0, 1.0, False, s) for s in SHAPES], dtypes=("float64",))  # fmt: skip
