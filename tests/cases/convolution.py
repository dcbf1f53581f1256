"""Convolutions, against one that goes over the kernel's positions."""

from itertools import product

import numpy as np

from tests.harness import FLOATING, Case, V


def each(v, n):
    return (v,) * n if np.isscalar(v) else tuple(v)


def grouped(x, w, k, groups):
    """The products of a window of x with the kernel's slice at k, group by group."""
    xs, ws = np.split(x, groups, 1), np.split(w[(..., *k)], groups, 0)
    return np.concatenate([np.einsum("nc...,oc->no...", a, b) for a, b in zip(xs, ws)], 1)


def conv(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.ndim - 2
    if x.ndim == n + 1:
        return conv(x[None], w, b, stride, padding, dilation, groups)[0]
    stride, dilation, kernel = each(stride, n), each(dilation, n), w.shape[2:]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        padding = [(t // 2, t - t // 2) for t in total]
    else:
        padding = [(p, p) for p in each(0 if padding == "valid" else padding, n)]
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    size = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(x.shape[2:], dilation, kernel, stride)]
    out = 0
    for k in product(*map(range, kernel)):
        window = tuple(slice(i * d, i * d + (m - 1) * t + 1, t) for i, d, m, t in zip(k, dilation, size, stride))
        out = out + grouped(x[(..., *window)], w, k, groups)
    return out if b is None else out + b.reshape(-1, *(1,) * n)


def conv_transpose(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n = x.ndim - 2
    stride, padding, extra, dilation = (each(v, n) for v in (stride, padding, output_padding, dilation))
    size = [
        (s - 1) * t + d * (k - 1) + 1 + e for s, t, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra)
    ]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *size))
    for k in product(*map(range, w.shape[2:])):
        window = tuple(slice(i * d, i * d + (m - 1) * t + 1, t) for i, d, m, t in zip(k, dilation, x.shape[2:], stride))
        parts = [
            np.einsum("nc...,co->no...", a, c)
            for a, c in zip(np.split(x, groups, 1), np.split(w[(..., *k)], groups, 0))
        ]
        out[(..., *window)] += np.concatenate(parts, 1)
    out = out[(..., *(slice(p, m - p) for p, m in zip(padding, size)))]
    return out if b is None else out + b.reshape(-1, *(1,) * n)


SMALL = dict(dtypes=FLOATING, tol=10, domain=(-1, 1), gives="same")
OPTIONS = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"padding": "same"}]
for n, size, kernel in ((1, (7,), (3,)), (2, (5, 4), (3, 2)), (3, (4, 3, 5), (2, 2, 3))):
    plain, grouping = ((1, 1, *size), (2, 1, *kernel), (2,)), ((1, 4, *size), (4, 2, *kernel))
    Case(
        f"conv{n}d",
        ref=conv,
        inputs=[plain, ((2, 2, *size), (3, 2, *kernel))],
        kwargs=OPTIONS[: 4 if n < 3 else 3],
        **SMALL,
    )
    Case(f"conv{n}d", ref=conv, inputs=[grouping], kwargs=[{"groups": 2, "padding": 1}], suffix="groups", **SMALL)
    Case(f"conv_transpose{n}d", ref=conv_transpose, inputs=[((1, 1, *size), (1, 2, *kernel), (2,)), ((2, 2, *size), (2, 3, *kernel))],
         kwargs=[{}, {"stride": 2, "padding": 1, "output_padding": 1}], **SMALL)  # fmt: skip
    Case(
        f"conv_transpose{n}d",
        ref=conv_transpose,
        inputs=[((1, 4, *size), (4, 2, *kernel))],
        kwargs=[{"groups": 2}],
        suffix="groups",
        **SMALL,
    )
    Case(
        f"conv_transpose{n}d",
        ref=conv_transpose,
        inputs=[((2, 8, *size), (8, 2, *kernel), (2,)), ((1, 8, *size), (8, 1, *kernel))],
        kwargs=[{"stride": 2, "padding": 1, "output_padding": 1}, {"padding": 1, "dilation": 2}],
        suffix="to few channels",
        **SMALL,
    )
    Case(
        f"conv_transpose{n}d",
        ref=conv_transpose,
        inputs=[((1, 8, *size), (8, 1, *kernel), (2,))],
        kwargs=[{"groups": 2, "stride": 2}],
        suffix="to few channels by groups",
        **SMALL,
    )
Case(
    "conv_tbc",
    ref=lambda x, w, b, pad=0: conv(x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=pad).transpose(2, 0, 1),
    inputs=[((5, 2, 3), (2, 3, 4), (4,), 1)],
    **SMALL,
)
Case(
    "convolution",
    ref=lambda x, w, b, s, p, d, t, o, g: conv(x, w, b, s, p, d, g),
    inputs=[((1, 2, 5, 4), (3, 2, 3, 2), (3,), V((2, 1)), V((1, 0)), V((1, 1)), False, V((0, 0)), 1)],
    **SMALL,
)
