"""Reading and writing at indices, masks and diagonals."""

import numpy as np

import rushlight as torch
from tests.harness import B, Case, I, T, V

SOME = ("float32", "float64", "int64", "bool", "complex64")
BOTH = ("float32", "float64")
FLOATS = BOTH + ("int64",)


def listed(name, f, inputs, **options):
    Case(name, ref=f, inputs=inputs, dtypes=options.pop("dtypes", SOME), gives=options.pop("gives", "same"), **options)


def at(dim, index):
    return (slice(None),) * dim + (index,)


def put(f):
    """The operator that changes a copy with f."""

    def g(x, *args, **kwargs):
        x = np.array(x)
        return x if f(x, *args, **kwargs) is None else None

    return g


listed("index_select", lambda x, d, i: np.take(x, i, d), [((4, 5), 1, I((3,), 5)), ((4,), 0, I((0,), 4)), ((4, 2, 3), 0, I((6,), 4))],
       raises=[(((4,), 0, T((1,), values=[7], dtype="int64")), IndexError, "out of range")])  # fmt: skip
listed(
    "index",
    lambda x, i: x[tuple(slice(None) if k is None else k for k in i)],
    [((4, 5), [I((3,), 4)]), ((4, 5), [V(None), I((2, 2), 5)]), ((4, 5), [I((3,), 4), I((3,), 5)])],
)
listed(
    "index_put",
    put(lambda x, i, v: x.__setitem__(tuple(i), v)),
    [
        ((4, 5), [T((2,), values=[3, 1], dtype="int64")], (2, 5)),
        ((4, 5), [T((2,), values=[0, 1], dtype="int64"), T((2,), values=[4, 2], dtype="int64")], ()),
    ],
)


def index_add(x, d, i, s, alpha=1):
    np.add.at(x, at(d, i), alpha * s)


listed(
    "index_add",
    put(index_add),
    [((4, 5), 1, I((3,), 5), (4, 3)), ((4,), 0, I((6,), 4), (6,))],
    kwargs=[{}, {"alpha": 2}],
    dtypes=FLOATS,
    tol=3,
)
listed(
    "index_copy",
    put(lambda x, d, i, s: x.__setitem__(at(d, i), s)),
    [((4, 5), 1, T((2,), values=[3, 0], dtype="int64"), (4, 2))],
)
listed(
    "index_fill",
    put(lambda x, d, i, v: x.__setitem__(at(d, i), v)),
    [((4, 5), 1, I((3,), 5), 1), ((4, 5), 0, I((2,), 4), ())],
)
REDUCE = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "sum": np.add}


def index_reduce(x, d, i, s, reduce):
    REDUCE[reduce].at(x, at(d, i), s)


Case(
    "index_reduce",
    ref=put(index_reduce),
    inputs=[((4, 5), 1, I((3,), 5), (4, 3), r) for r in ("prod", "amax", "amin")],
    dtypes=BOTH,
    tol=3,
    gradgrad=False,
)


def along(i, d, k):
    """Index arrays for x[...] that put i at dimension d."""
    grid = list(np.indices(i.shape))
    grid[d] = i
    return tuple(grid)


listed("gather", lambda x, d, i: x[along(i, d, x)], [((4, 5), 1, I((3, 2), 5)), ((4,), 0, I((6,), 4)), ((4, 5), 0, I((2, 5), 4))],
       raises=[(((2, 3), 1, T((1, 1), values=[[5]], dtype="int64")), RuntimeError, "out of bounds")])  # fmt: skip
Case("take_along_dim", ref=lambda x, i, d: np.take_along_axis(x, i, d), inputs=[((4, 5), I((4, 2), 5), 1)], dtypes=SOME)
PERMUTED = T((2, 3), values=[[0, 3, 1], [2, 4, 0]], dtype="int64")
listed(
    "scatter",
    put(lambda x, d, i, s: x.__setitem__(along(i, d, x), s if np.isscalar(s) else s[tuple(slice(n) for n in i.shape)])),
    [((4, 5), 1, PERMUTED, (2, 3)), ((4, 5), 1, PERMUTED, 2)],
)
Case(
    "scatter",
    inputs=[((4, 5), 1, PERMUTED, (2, 3)), ((4, 5), 1, PERMUTED, 2)],
    kwargs=[{"reduce": "add"}, {"reduce": "multiply"}],
    dtypes=BOTH,
    suffix="reduce",
    grad=False,
)


def scatter_add(x, d, i, s, reduce="sum"):
    REDUCE[reduce].at(x, along(i, d, x), s[tuple(slice(n) for n in i.shape)])


listed(
    "scatter_add",
    put(scatter_add),
    [((4, 5), 1, I((2, 3), 5), (2, 3)), ((4,), 0, I((6,), 4), (6,))],
    dtypes=FLOATS,
    tol=3,
)
Case(
    "scatter_reduce",
    ref=put(scatter_add),
    inputs=[((4, 5), 1, I((2, 3), 5), (2, 3), r) for r in ("sum", "prod", "amax", "amin")],
    dtypes=BOTH,
    tol=3,
    gradgrad=False,
)
listed(
    "take",
    lambda x, i: np.take(x, i),
    [((4, 5), I((3, 2), 20)), ((4,), I((0,), 4))],
    raises=[(((3,), T((1,), values=[3], dtype="int64")), IndexError, "out of bounds")],
)
listed("put", put(lambda x, i, s: np.put(x, i, s)), [((4, 5), T((3,), values=[3, 19, 0], dtype="int64"), (3,))])
listed("masked_fill", lambda x, m, v: np.where(m, v, x), [((3, 5), B((3, 5)), 1), ((3, 5), B((5,)), ())])
listed(
    "masked_select",
    lambda x, m: x[np.broadcast_to(m, x.shape)],
    [((3, 5), B((3, 5))), ((3, 5), B((5,))), ((0,), B((0,)))],
    meta=False,
)


def masked_scatter(x, m, s):
    x[m] = s.reshape(-1)[: m.sum()]


listed("masked_scatter", put(masked_scatter), [((3, 5), B((3, 5)), (15,))])
DATA = dict(dtypes=("float32", "int64", "bool"), meta=False, gives="int64")
listed("nonzero", lambda x: np.stack(np.nonzero(x), 1), [(3, 5), (7,), (0, 2)], **DATA)
listed("argwhere", np.argwhere, [(3, 5), (7,)], **DATA)
listed("nonzero_numpy", np.nonzero, [(3, 5), (7,)], **DATA)
Case(
    "nonzero_static",
    ref=lambda x, size, fill_value=-1: np.concatenate([np.argwhere(x), np.full((20, x.ndim), fill_value)])[:size],
    inputs=[(3, 5)],
    kwargs=[{"size": 18}, {"size": 3}],
    dtypes=("float32", "bool"),
    meta=False,
)
Case(
    "one_hot", ref=lambda x, n: np.eye(n, dtype=np.int64)[x], inputs=[(I((3, 2), 4), 4)], dtypes=("int64",), meta=False
)
Case(
    "embedding",
    ref=lambda w, i, padding_idx=-1: w[i],
    inputs=[((5, 3), I((2, 4), 5)), ((5, 3), I((0,), 5))],
    dtypes=BOTH,
)
Case("embedding_bag", ref=lambda w, i, o: (np.stack([w[i[a:b]].sum(0) for a, b in zip(o, [*o[1:], len(i)])]),), inputs=[((5, 3), I((6,), 5), T((2,), values=[0, 4], dtype="int64"))],
     dtypes=BOTH, call=lambda *a, **k: torch._C.embedding_bag(*a, **k)[0], meta=False)  # fmt: skip
Case("embedding_renorm", ref=lambda w, i, m, p: np.where(np.isin(np.arange(5), i)[:, None], w * np.minimum(1, m / ((np.abs(w) ** p).sum(1, keepdims=True) ** (1 / p) + 1e-7)), w),
     inputs=[((5, 3), I((4,), 5), 1.0, 2.0)], dtypes=BOTH, grad=False, tol=10, meta=False)  # fmt: skip
Case(
    "repeat_interleave",
    ref=lambda x, r, dim=None: np.repeat(x, r, dim),
    inputs=[((3, 2), 2), ((3, 2), T((3,), values=[1, 0, 2], dtype="int64"), 0)],
    dtypes=SOME,
    meta=False,
)
SORTED = T((4,), values=[-2.0, -0.5, 1.0, 2.5])
Case(
    "bucketize",
    ref=lambda x, b, right=False: np.searchsorted(b, x, "right" if right else "left"),
    inputs=[((3, 5), SORTED)],
    kwargs=[{}, {"right": True}],
    dtypes=("float32",),
    layouts=False,
    gives="int64",
)
Case(
    "searchsorted",
    ref=lambda b, x, right=False: np.searchsorted(b, x, "right" if right else "left"),
    inputs=[(SORTED, (3, 5))],
    kwargs=[{}, {"right": True}],
    dtypes=("float32",),
    layouts=False,
    gives="int64",
)
Case("isin", ref=np.isin, inputs=[((3, 5), (4,))], dtypes=("int64", "float32"), gives="bool")
Case("unravel_index", ref=np.unravel_index, inputs=[(I((3,), 20), V((4, 5)))], dtypes=("int64",))

TRI = [((4, 5), k) for k in (0, 1, -2)] + [((2, 3, 3), 0)]
listed("tril", np.tril, TRI)
listed("triu", np.triu, TRI)
DIAGONALS = [((4, 5), 0), ((4, 5), 1), ((2, 3, 4), -1, 1, 2)]
for name in ("diagonal", "diagonal_copy"):
    listed(name, np.diagonal, DIAGONALS)
listed(
    "diag_embed",
    lambda x, k=0: np.stack([np.diag(r, k) for r in x.reshape(-1, x.shape[-1])]).reshape(
        *x.shape[:-1], x.shape[-1] + abs(k), x.shape[-1] + abs(k)
    ),
    [((3,), 0), ((2, 3), 1)],
)
listed("diag", np.diag, [((3,), 1), ((4, 5), -1)])
listed("diagflat", np.diagflat, [((2, 3),), ((3,), 1)])
Case("trace", ref=np.trace, inputs=[(4, 5), (3, 3)], dtypes=FLOATS)
listed("linalg_diagonal", lambda x: np.diagonal(x, axis1=-2, axis2=-1), [(4, 5), (2, 3, 4)])
listed("diagonal_scatter", put(lambda x, s: np.einsum("ii->i", x).__setitem__(..., s)), [((4, 4), (4,))])
listed("select_scatter", put(lambda x, s, d, i: x.__setitem__(at(d, i), s)), [((4, 5), (4,), 1, 2)])
listed(
    "slice_scatter",
    put(lambda x, s, d, a, b, k: x.__setitem__(at(d, slice(a, b, k)), s)),
    [((6, 5), (2, 5), 0, 1, 5, 2)],
)
Case("as_strided_scatter", inputs=[((3, 4), (2, 2), V((2, 2)), V((4, 1)))], dtypes=SOME, layouts=False)
