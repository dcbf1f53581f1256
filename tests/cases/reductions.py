"""Sums, extremes, statistics, norms."""

import numpy as np

import rushlight as torch
from tests.harness import ALL, FLOATING, NUMERIC, REAL, SHAPES, Case, I, T, V

BOTH = ("float32", "float64")
DIMS = [{"dim": 0}, {"dim": -1, "keepdim": True}]
MANY = DIMS + [{"dim": V((0, 1))}, {"dim": V((2,)), "keepdim": True}]
CUBE = [(2, 3, 4), (4, 2, 3)]


def over(f, **fixed):
    def g(x, dim=None, keepdim=False, **kwargs):
        return f(x, axis=tuple(dim) if isinstance(dim, (tuple, list)) else dim, keepdims=keepdim, **fixed, **kwargs)

    return g


def reduction(name, f, dtypes=BOTH, gives=None, whole=True, many=True, **options):
    f = over(f)
    if whole:
        Case(
            name,
            ref=f,
            inputs=SHAPES if options.pop("empty", True) else [(), (7,), (3, 5)],
            dtypes=dtypes,
            gives=gives,
            **options,
        )
    options.pop("empty", None)
    Case(name, ref=f, inputs=CUBE, kwargs=MANY if many else DIMS, dtypes=dtypes, gives=gives, suffix="dims", **options)


reduction("sum", np.sum, NUMERIC, "sum", tol=4)
reduction("nansum", np.nansum, FLOATING, "same", tol=4)
reduction("mean", np.mean, FLOATING + ("complex64",), "same", empty=False)
reduction("nanmean", np.nanmean, BOTH, "same", empty=False)
reduction("prod", np.prod, ("float32", "float64", "int64"), "sum", many=False, domain=(0.5, 2))
reduction("amax", np.max, REAL, "same", empty=False)
reduction("amin", np.min, REAL, "same", empty=False)
reduction("all", np.all, ALL, None)
reduction("any", np.any, ALL, None)
Case("count_nonzero", ref=np.count_nonzero, inputs=SHAPES, dtypes=("float32", "int64", "bool"), gives="int64")
Case(
    "count_nonzero",
    ref=lambda x, dim: np.count_nonzero(x, dim),
    inputs=CUBE,
    kwargs=[{"dim": 1}, {"dim": V((0, 2))}],
    dtypes=("int64",),
    suffix="dims",
)
Case(
    "sum_to_size",
    ref=lambda x, s: x.sum(0, keepdims=True) if len(s) == 2 else x.sum(),
    inputs=[((3, 4), V((1, 4))), ((3, 4), V(()))],
    dtypes=BOTH + ("int64",),
)


def with_index(f, arg):
    def g(x, dim, keepdim=False):
        return f(x, axis=dim, keepdims=keepdim), arg(x, axis=dim, keepdims=keepdim)

    return g


for name, f, arg in (("max", np.max, np.argmax), ("min", np.min, np.argmin)):
    Case(name, ref=f, inputs=[(), (7,), (3, 5)], dtypes=REAL, gives="same", raises=[((2, 0), RuntimeError, "")])
    Case(name, ref=with_index(f, arg), inputs=CUBE, kwargs=DIMS, dtypes=BOTH, suffix="dim")
    Case(
        name,
        ref=getattr(np, name + "imum"),
        inputs=[((3, 5), (5,)), ((3, 5), ())],
        dtypes=BOTH + ("int64",),
        suffix="other",
    )
    Case("arg" + name, ref=over(arg), inputs=[(7,), (3, 5)], dtypes=REAL[:4], gives="int64")
    Case("arg" + name, ref=over(arg), inputs=CUBE, kwargs=DIMS, dtypes=BOTH, gives="int64", suffix="dim")
Case(
    "aminmax",
    ref=lambda x, dim=None, keepdim=False: (x.min(dim, keepdims=keepdim), x.max(dim, keepdims=keepdim)),
    inputs=[(7,), (3, 5)],
    kwargs=[{}, *DIMS],
    dtypes=BOTH,
)


def variance(x, dim=None, correction=1, keepdim=False):
    return np.var(x, axis=tuple(dim) if isinstance(dim, tuple) else dim, ddof=correction, keepdims=keepdim)


CORRECTIONS = [{"correction": 1}, {"dim": 0, "correction": 0}, {"dim": V((0, 1)), "correction": 1, "keepdim": True}]
AGAIN = dict(inputs=[(3, 5), (4, 2, 2)], kwargs=CORRECTIONS, dtypes=FLOATING, tol=3)
Case("var", ref=variance, **AGAIN)
Case("std", ref=lambda x, **k: np.sqrt(variance(x, **k)), **AGAIN)
Case(
    "var_mean",
    ref=lambda x, dim=None, correction=1, keepdim=False: (
        variance(x, dim, correction, keepdim),
        np.mean(x, axis=dim, keepdims=keepdim),
    ),
    **AGAIN,
)
Case(
    "std_mean",
    ref=lambda x, dim=None, correction=1, keepdim=False: (
        np.sqrt(variance(x, dim, correction, keepdim)),
        np.mean(x, axis=dim, keepdims=keepdim),
    ),
    **AGAIN,
)
Case(
    "_var_mean",
    ref=lambda x, dim, c, k, root: (np.var(x, axis=dim, ddof=int(c), keepdims=k), x.mean(dim, keepdims=k)),
    inputs=[((3, 5), 0, 1.0, True, False)],
    dtypes=BOTH,
)


def vector_norm(x, ord=2, dim=None, keepdim=False):
    a, axis = np.abs(x), tuple(dim) if isinstance(dim, (tuple, list)) else dim
    if ord == np.inf:
        return a.max(axis, keepdims=keepdim)
    if ord == 0:
        return (a != 0).sum(axis, keepdims=keepdim).astype(float)
    return (a**ord).sum(axis, keepdims=keepdim) ** (1 / ord)


NORMS = [{}, {"ord": 1, "dim": 0}, {"ord": 3.0, "dim": V((0, 1)), "keepdim": True}, {"ord": np.inf, "dim": 1}]
Case("linalg_vector_norm", ref=vector_norm, inputs=[(3, 5)], kwargs=NORMS, dtypes=FLOATING + ("complex64",), tol=3)
Case("_vector_norm", ref=vector_norm, inputs=[((3, 5), 2.0, V((0,)), False)], dtypes=BOTH)
Case(
    "norm",
    ref=lambda x, p=2, dim=None, keepdim=False: vector_norm(x, p, dim, keepdim),
    inputs=[(3, 5)],
    kwargs=[{}, {"p": 1, "dim": 0}, {"p": 3, "dim": V((0, 1))}],
    dtypes=BOTH,
)
Case("dist", ref=lambda a, b, p=2: vector_norm(a - b, p), inputs=[((3, 5), (3, 5)), ((3, 5), (5,), 1)], dtypes=BOTH)
Case(
    "renorm",
    ref=lambda x, p, d, m: x * np.where(vector_norm(x, p, 1, True) > m, m / (vector_norm(x, p, 1, True) + 1e-7), 1),
    inputs=[((3, 5), 2, 0, 1.0)],
    dtypes=BOTH,
    tol=10,
)
Case(
    "logsumexp",
    ref=lambda x, dim, keepdim=False: np.log(
        np.exp(x).sum(tuple(dim) if isinstance(dim, tuple) else dim, keepdims=keepdim)
    ),
    inputs=CUBE,
    kwargs=MANY,
    dtypes=FLOATING,
)

Case(
    "median",
    ref=lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2],
    inputs=[(7,), (2, 4)],
    dtypes=BOTH + ("int64",),
    gives="same",
)
Case(
    "nanmedian",
    ref=lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2],
    inputs=[(7,), (2, 4)],
    dtypes=BOTH,
    gives="same",
)
for name in ("median", "nanmedian"):
    Case(name, ref=lambda x, dim, keepdim=False: (np.take(np.sort(x, dim), [(x.shape[dim] - 1) // 2], dim).squeeze(dim), np.take(np.argsort(x, dim), [(x.shape[dim] - 1) // 2], dim).squeeze(dim)),
         inputs=[((3, 5), 1), ((3, 4), 0)], dtypes=BOTH, suffix="dim")  # fmt: skip
Case("mode", inputs=[(3, 5)], dtypes=BOTH, expect=[(([1.0, 2.0, 2.0, 3.0],), [2.0, 2])])
Case(
    "kthvalue",
    ref=lambda x, k, dim=-1: (np.sort(x, dim).take(k - 1, dim), np.argsort(x, dim).take(k - 1, dim)),
    inputs=[((3, 5), 2), ((7,), 7), ((3, 5), 1, 0)],
    dtypes=BOTH,
)
for name, f in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    Case(name, ref=lambda x, q, dim=None, keepdim=False, interpolation="linear", f=f: f(x, q, axis=dim, keepdims=keepdim, method=interpolation), inputs=[((3, 5), 0.3), ((3, 5), T((2,), low=0, high=1), 1)],
         kwargs=[{}, {"interpolation": "lower"}], dtypes=BOTH)  # fmt: skip
Case(
    "histc",
    ref=lambda x, bins, lo, hi: np.histogram(x, bins, (lo, hi))[0],
    inputs=[((20,), 5, -3, 3)],
    dtypes=BOTH,
    grad=False,
)
OBSERVED = [(2, 5), (5,), ()]
Case("cov", ref=lambda x, correction=1: np.cov(x, ddof=correction), inputs=OBSERVED[:2], kwargs=[{}, {"correction": 0}], dtypes=BOTH + ("int64",), gives="float",
     call=lambda x, correction=1: torch.cov(x, correction=correction),
     raises=[((2, 2, 2), RuntimeError, "two or fewer dimensions")])  # fmt: skip
Case(
    "cov",
    ref=lambda x, n, w: np.cov(x, fweights=n, aweights=w),
    call=lambda x, n, w: torch.cov(x, fweights=n, aweights=w),
    inputs=[((2, 5), I((5,), 3, 1), T((5,), low=0.5, high=2))],
    dtypes=BOTH,
    meta=False,
    suffix="weights",
    raises=[
        (((2, 5), (5,), (5,)), RuntimeError, "fweights to have integral dtype"),
        (((2, 5), I((4,), 3, 1), (5,)), RuntimeError, "same numel"),
        (((2, 5), I((5,), 3, 1), I((5,), 3, 1)), RuntimeError, "aweights to have floating point dtype"),
    ],
)
Case("corrcoef", ref=np.corrcoef, inputs=OBSERVED[:2], dtypes=BOTH + ("complex64",), tol=10)

Case("bincount", ref=np.bincount, inputs=[(7,)], domain=(0, 5), dtypes=("int64", "int32"), meta=False)
Case("equal", ref=np.array_equal, inputs=[((3,), (3,)), ((3,), (4,))], dtypes=ALL, meta=False, grad=False)
Case("isclose", ref=np.isclose, inputs=[((3, 5), (3, 5)), ((3,), ())], dtypes=("float32", "int64"), gives="bool")
Case("allclose", ref=np.allclose, inputs=[((3, 5), (3, 5))], dtypes=BOTH, meta=False, grad=False)
