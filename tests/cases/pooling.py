"""Pooling, against windows taken one by one."""

from itertools import product

import numpy as np

import rushlight as torch
from tests.harness import FLOATING, Case, T, V


def each(v, n):
    return (v,) * n if np.isscalar(v) else tuple(v)


def pool(n, f, fill):
    def g(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True):
        k, p, d = each(kernel_size, n), each(padding, n), each(dilation, n)
        s = each(kernel_size if stride is None else stride, n)
        x = np.pad(x, [(0, 0)] * (x.ndim - n) + [(q, q) for q in p], constant_values=fill)
        size = [(m - e * (c - 1) - 1) // t + 1 for m, e, c, t in zip(x.shape[-n:], d, k, s)]
        out = np.empty((*x.shape[:-n], *size))
        for at in product(*map(range, size)):
            window = tuple(slice(i * t, i * t + e * (c - 1) + 1, e) for i, t, e, c in zip(at, s, d, k))
            out[(..., *at)] = f(x[(..., *window)], axis=tuple(range(-n, 0)))
        return out

    return g


def adaptive(n, f):
    def g(x, output_size):
        size = each(output_size, n)
        out = np.empty((*x.shape[:-n], *size))
        for at in product(*map(range, size)):
            window = tuple(slice(i * m // o, -(-(i + 1) * m // o)) for i, o, m in zip(at, size, x.shape[-n:]))
            out[(..., *at)] = f(x[(..., *window)], axis=tuple(range(-n, 0)))
        return out

    return g


def values(name):
    return lambda *args, **kwargs: getattr(torch._C, name)(*args, **kwargs)[0]


SIZES = {1: (7,), 2: (5, 4), 3: (4, 3, 4)}
SOME = [{}, {"stride": 1, "padding": 1}]
for n, size in SIZES.items():
    inputs = [((1, 1, *size), 2), ((2, *size), 2), ((2, 3, *size), 3)]
    common = dict(inputs=inputs, dtypes=FLOATING, gives="same", tol=2)
    Case(
        f"max_pool{n}d",
        ref=pool(n, np.max, -np.inf),
        kwargs=SOME + [{"dilation": 2, "padding": 1, "stride": 1}] if n == 1 else SOME,
        **common,
    )
    Case(
        f"max_pool{n}d_with_indices",
        ref=pool(n, np.max, -np.inf),
        kwargs=SOME,
        call=values(f"max_pool{n}d_with_indices"),
        **common,
    )
    Case(f"avg_pool{n}d", ref=pool(n, np.mean, 0), kwargs=SOME, **common)
    Case(f"adaptive_avg_pool{n}d", ref=adaptive(n, np.mean), **common)
    Case(f"adaptive_max_pool{n}d", ref=adaptive(n, np.max), call=values(f"adaptive_max_pool{n}d"), **common)
for n in (2, 3):
    inside = [((1, 1, *SIZES[n]), V((2,) * n), V((2,) * n), (1, 1, n))]
    Case(
        f"fractional_max_pool{n}d",
        inputs=inside,
        dtypes=("float32", "float64"),
        call=lambda x, k, o, r, n=n: getattr(torch._C, f"fractional_max_pool{n}d")(x, k, o, r.sigmoid().detach())[0],
        layouts=False,
    )


def unpool(x, i, size, *_):
    out = np.zeros((*x.shape[:2], int(np.prod(size))))
    np.put_along_axis(out, i.reshape(*i.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
    return out.reshape(*x.shape[:2], *size)


PLACES = [[[[3, 9], [1, 14]]]]
Case(
    "max_unpool2d",
    ref=unpool,
    inputs=[((1, 1, 2, 2), T((), values=PLACES, dtype="int64"), V((4, 4)))],
    dtypes=("float32", "float64"),
)
Case("max_unpool3d", ref=unpool, inputs=[((1, 1, 1, 2, 2), T((), values=[PLACES], dtype="int64"), V((1, 4, 4)), V((1, 1, 1)), V((0, 0, 0)))],
     dtypes=("float32", "float64"))  # fmt: skip
