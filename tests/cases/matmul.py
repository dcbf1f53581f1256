"""Matrix products."""

import numpy as np

from tests.harness import FLOATING, Case, V

MOST = FLOATING + ("int64", "complex64")
BOTH = ("float32", "float64")


def row(name, f, inputs, **options):
    Case(
        name,
        ref=f,
        inputs=inputs,
        dtypes=options.pop("dtypes", MOST),
        tol=options.pop("tol", 10),
        gives="same",
        **options,
    )


NOT_MULTIPLIED = [(((2, 3), (4, 5)), RuntimeError, "shapes cannot be multiplied")]
row("mm", np.matmul, [((2, 3), (3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3))], raises=NOT_MULTIPLIED)
row("bmm", np.matmul, [((2, 2, 3), (2, 3, 2)), ((0, 2, 3), (0, 3, 2))])
row("mv", np.matmul, [((2, 3), (3,))])
row("dot", np.dot, [((5,), (5,)), ((0,), (0,))])
row("vdot", np.vdot, [((5,), (5,))])
row(
    "matmul",
    np.matmul,
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 2, 3), (3,))],
    raises=NOT_MULTIPLIED,
)
row(
    "linear",
    lambda x, w, b=0: x @ w.T + b,
    [((2, 3), (4, 3)), ((2, 2, 3), (4, 3), (4,)), ((3,), (4, 3), (4,)), ((2, 1, 3), (4, 3), (4,))],
)
row(
    "bilinear",
    lambda x, y, w, b=0: np.einsum("bi,oij,bj->bo", x, w, y) + b,
    [((2, 3), (2, 2), (4, 3, 2), (4,))],
    dtypes=BOTH,
)


def add(product):
    return lambda x, a, b, beta=1, alpha=1: beta * x + alpha * product(a, b)


SCALES = [{}, {"beta": 2, "alpha": 3}, {"beta": 0}]
row("addmm", add(np.matmul), [((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4))], kwargs=SCALES)
row("addmv", add(np.matmul), [((2,), (2, 3), (3,))], kwargs=SCALES)
row("addr", add(np.outer), [((2, 3), (2,), (3,))], kwargs=SCALES[:2])
row("addbmm", add(lambda a, b: (a @ b).sum(0)), [((2, 4), (3, 2, 3), (3, 3, 4))], kwargs=SCALES)
row("baddbmm", add(np.matmul), [((3, 2, 4), (3, 2, 3), (3, 3, 4))], kwargs=SCALES)
row("outer", np.outer, [((2,), (3,))])
row("ger", np.outer, [((2,), (3,))])
row("inner", np.inner, [((3,), (3,)), ((2, 3), (4, 3))])
row("kron", np.kron, [((2, 3), (2, 2)), ((2,), (3,))])
row(
    "_tensordot",
    lambda a, b, i, j: np.tensordot(a, b, (i, j)),
    [((2, 3, 4), (4, 3, 2), V((1, 2)), V((1, 0)))],
    dtypes=BOTH,
)
row(
    "_einsum",
    lambda e, ts: np.einsum(e, *ts),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ii->i", [(3, 3)]),
        ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
        ("i,j->ij", [(2,), (3,)]),
        ("...ij->...ji", [(2, 3, 4)]),
    ],
    dtypes=BOTH,
)
row("linalg_multi_dot", np.linalg.multi_dot, [([(2, 3), (3, 4), (4, 2)],)], dtypes=BOTH)
row("linalg_vecdot", lambda a, b, dim=-1: (a.conj() * b).sum(dim), [((2, 3), (2, 3))], dtypes=BOTH + ("complex64",))
row("linalg_cross", lambda a, b, dim=-1: np.cross(a, b, axis=dim), [((2, 3), (2, 3))], dtypes=BOTH)
row(
    "pdist",
    lambda x, p=2: (np.abs(x[:, None] - x[None]) ** p).sum(-1)[np.triu_indices(len(x), 1)] ** (1 / p),
    [(4, 3), ((3, 2), 1.0), ((3, 2), 3.0), (1, 3), (0, 3)],
    dtypes=BOTH,
)
row("cross", lambda a, b, dim=None: np.cross(a, b), [((2, 3), (2, 3))], dtypes=BOTH)
row(
    "_cdist",
    lambda a, b, p=2: (np.abs(a[:, None] - b[None]) ** p).sum(-1) ** (1 / p),
    [((3, 4), (2, 4)), ((3, 4), (2, 4), 1.0)],
    dtypes=BOTH,
)
