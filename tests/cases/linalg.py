"""Linear algebra: against NumPy, or by what the factors multiply to."""

import numpy as np

import rushlight as torch
from tests.harness import Case, T, V

BOTH = ("float32", "float64")
MOST = BOTH + ("complex64", "complex128")
C = torch._C
SQUARE = [(3, 3), (2, 3, 3)]
ANY = [(3, 3), (2, 4, 3), (3, 4)]


def row(name, f, inputs, **options):
    # An expanded input would be a singular matrix, so layouts are not varied.
    options = {"dtypes": MOST, "tol": 200, "layouts": False, **options}
    Case(name, ref=f, inputs=inputs, **options)


def same(x, *_, **__):
    return x


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(x):
    """A positive-definite matrix from any."""
    return x @ x.mH + 2 * torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def np_positive(x):
    return x @ adjoint(x) + 2 * np.eye(x.shape[-1])


for name in ("linalg_det", "det"):
    row(name, np.linalg.det, SQUARE)
for name in ("linalg_slogdet", "slogdet"):
    row(name, np.linalg.slogdet, SQUARE, grad=False)
row("logdet", lambda x: np.linalg.slogdet(np_positive(x))[1], SQUARE, dtypes=BOTH, call=lambda x: C.logdet(positive(x)))
for name in ("linalg_inv", "inverse"):
    row(name, np.linalg.inv, SQUARE)
row("linalg_inv_ex", np.linalg.inv, SQUARE, call=lambda x: C.linalg_inv_ex(x)[0])
PAIRS = [((3, 3), (3, 2)), ((2, 3, 3), (3, 1))]
row("linalg_solve", np.linalg.solve, PAIRS)
for name in ("linalg_solve_ex", "_matrix_solve"):
    pairs = PAIRS if name == "linalg_solve_ex" else PAIRS[:1]
    row(name, np.linalg.solve, pairs, call=lambda a, b, name=name: getattr(C, name)(a, b)[0])


def triangular(a, b, *_, **__):
    return np.linalg.solve(np.triu(a), b)


row("linalg_solve_triangular", triangular, PAIRS, kwargs=[{"upper": True}])
row("_triangular", triangular, [(*PAIRS[0], V(True), V(True), V(False))])
row(
    "triangular_solve", lambda b, a: triangular(a, b), [((3, 2), (3, 3))], call=lambda b, a: C.triangular_solve(b, a)[0]
)
for name in ("linalg_cholesky", "cholesky"):
    row(
        name,
        lambda x: np.linalg.cholesky(np_positive(x)),
        SQUARE,
        call=lambda x, name=name: getattr(C, name)(positive(x)),
    )
row(
    "linalg_cholesky_ex",
    lambda x: np.linalg.cholesky(np_positive(x)),
    SQUARE,
    call=lambda x: C.linalg_cholesky_ex(positive(x))[0],
)
row(
    "cholesky_solve",
    lambda b, a: np.linalg.solve(np.tril(a) @ adjoint(np.tril(a)), b),
    [((3, 2), (3, 3))],
    dtypes=BOTH,
    grad=False,
)  # as PyTorch: not masked
row("cholesky_inverse", lambda a: np.linalg.inv(np.tril(a) @ adjoint(np.tril(a))), [(3, 3)], dtypes=BOTH, grad=False)
row("linalg_qr", same, ANY, call=lambda x: torch.matmul(*C.linalg_qr(x)))
row("geqrf", np.linalg.qr, [(4, 3)], grad=False, dtypes=BOTH, call=lambda x: orthogonal(x))
row(
    "linalg_householder_product",
    same,
    [(4, 3)],
    grad=False,
    call=lambda x: unreflected(x, C.linalg_householder_product),
)
row("orgqr", same, [(4, 3)], grad=False, call=lambda x: unreflected(x, C.orgqr))
row("ormqr", same, [(4, 3)], grad=False, call=lambda x: through_ormqr(x))


def orthogonal(x):
    a, tau = C.geqrf(x)
    return C.linalg_householder_product(a, tau), a[:3].triu()


def unreflected(x, product):
    a, tau = C.geqrf(x)
    return product(a, tau) @ a[:3].triu()


def through_ormqr(x):
    a, tau = C.geqrf(x)
    r = torch.cat([a[:3].triu(), torch.zeros(1, 3, dtype=x.dtype, device=x.device)])
    return C.ormqr(a, tau, r)


row("linalg_lu", same, ANY, call=lambda x: product(C.linalg_lu(x)))
row("linalg_lu_factor", same, ANY, call=lambda x: product(C.lu_unpack(*C.linalg_lu_factor(x))))
row("linalg_lu_factor_ex", same, ANY, call=lambda x: product(C.lu_unpack(*C.linalg_lu_factor_ex(x)[:2])))
row("lu_unpack", same, ANY, call=lambda x: product(C.lu_unpack(*C.linalg_lu_factor(x))))
row("linalg_lu_solve", np.linalg.solve, PAIRS[:1], call=lambda a, b: C.linalg_lu_solve(*C.linalg_lu_factor(a), b))
row("lu_solve", np.linalg.solve, PAIRS[:1], call=lambda a, b: C.lu_solve(b, *C.linalg_lu_factor(a)))
row("_lu_permutation", same, [(3, 3)], grad=False, call=lambda x: product(C.linalg_lu(x)))


def product(factors):
    p, l, u = factors
    return p @ l @ u


def hermitian(x):
    return x + x.mH


def np_hermitian(x):
    return x + adjoint(x)


row(
    "linalg_eigvalsh",
    lambda x: np.linalg.eigvalsh(np_hermitian(x)),
    SQUARE,
    call=lambda x: C.linalg_eigvalsh(hermitian(x)),
)
row("linalg_eigh", np_hermitian, SQUARE, call=lambda x: rebuilt(*C.linalg_eigh(hermitian(x))))


def rebuilt(w, v):
    return (v * w.to(v.dtype).unsqueeze(-2)) @ v.mH


def from_eig(x):
    w, v = C.linalg_eig(x)
    return (v * w.unsqueeze(-2)) @ torch.linalg.inv(v)


row("linalg_eig", lambda x: x + 0j, SQUARE, call=from_eig, gradgrad=False)
row("linalg_eigvals", lambda x: np.linalg.eigvals(x).sum(-1) + 0j, SQUARE, call=lambda x: C.linalg_eigvals(x).sum(-1))
row("linalg_svdvals", lambda x: np.linalg.svd(x, compute_uv=False), ANY)
row("linalg_svd", same, ANY, call=lambda x: from_svd(*C.linalg_svd(x, False)))
row("svd", same, ANY, call=lambda x: (lambda u, s, v: from_svd(u, s, v.mH))(*C.svd(x)))


def from_svd(u, s, vh):
    return (u * s.to(u.dtype).unsqueeze(-2)) @ vh


row("linalg_pinv", np.linalg.pinv, ANY)
row("pinverse", np.linalg.pinv, ANY)
row(
    "_pseudo_inverse",
    lambda x, *_: np.linalg.pinv(x),
    [((4, 3), T((), values=0.0, dtype="float64"), V(False))],
    dtypes=("float64",),
)
row("linalg_matrix_rank", np.linalg.matrix_rank, ANY, grad=False)
for order in (1, -1, 2, -2, np.inf, "fro", "nuc"):
    row(
        "linalg_matrix_norm",
        lambda x, order: np.linalg.norm(x, order, (-2, -1)),
        [((2, 3, 4), V(order))],
        suffix=str(order),
        gradgrad=False,
    )
row("linalg_norm", lambda x: np.linalg.norm(x), [(3,), (2, 3)])
row("linalg_cond", lambda x: np.linalg.cond(x), [(3, 3)], dtypes=BOTH, tol=1000)
for name in ("linalg_matrix_power", "matrix_power"):
    row(name, np.linalg.matrix_power, [((3, 3), V(3)), ((3, 3), V(-1)), ((3, 3), V(0))], grad=False, tol=1000)


def exponential(x):
    terms = [np.broadcast_to(np.eye(x.shape[-1]), x.shape)]
    for k in range(1, 60):
        terms.append(terms[-1] @ x / k)
    return sum(terms)


for name in ("linalg_matrix_exp", "matrix_exp"):
    row(name, exponential, SQUARE, domain=(-1, 1))
row("linalg_lstsq", lambda a, b: np.linalg.pinv(a) @ b, [((4, 3), (4, 2))], call=lambda a, b: C.linalg_lstsq(a, b)[0])
for name in ("linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_ldl_solve"):
    row(
        name,
        lambda a, b: np.linalg.solve(a + np.swapaxes(a, -1, -2), b),
        [((4, 4), (4, 2))],
        grad=False,
        call=lambda a, b, f=name: C.linalg_ldl_solve(
            *getattr(C, "linalg_ldl_factor" if f == "linalg_ldl_solve" else f)(a + a.mT)[:2], b
        ),
    )
row("linalg_tensorinv", lambda x, ind: np.linalg.tensorinv(x, ind), [((4, 2, 2), V(1))])
row("linalg_tensorsolve", np.linalg.tensorsolve, [((2, 3, 6), (2, 3))])
row("linalg_vander", lambda x: np.vander(x, increasing=True), [(4,)])

row("linalg_polar", same, [(3, 3), (2, 4, 3)], call=lambda x: torch.matmul(*C.linalg_polar(x)))
row(
    "linalg_matrix_sqrth",
    lambda x: x @ adjoint(x),
    SQUARE,
    call=lambda x: C.linalg_matrix_sqrth(x @ x.mH) @ C.linalg_matrix_sqrth(x @ x.mH),
)
