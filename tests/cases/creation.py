"""Tensors from nothing or from another's shape, and questions about a tensor."""

import numpy as np

import rushlight as torch
from tests.harness import ALL, PAIRS, SHAPES, Case, V

NOTHING = dict(dtypes=("float32",), layouts=False, meta=False)


def exactly(name, ref, inputs, **options):
    plain = [tuple(x if isinstance(x, V) else V(x) for x in args) for args in inputs]
    Case(name, ref=ref, inputs=plain, **NOTHING, **options)


SIZES = [(V(s),) for s in SHAPES]
exactly("zeros", np.zeros, SIZES, gives=None, raises=[((V((-1,)),), RuntimeError, "negative dimension")])
exactly("ones", np.ones, SIZES)
exactly("full", np.full, [(V(s), 2.5) for s in SHAPES])
exactly("arange", np.arange, [(5,), (0, 5, 2), (1.0, 2.0, 0.25), (5, 0, -2)])
exactly("range", lambda a, b, step=1: np.arange(a, b + step / 2, step), [(0, 4), (0.0, 1.0, 0.25)])
exactly("linspace", np.linspace, [(0.0, 1.0, 5), (3, -2, 7), (1, 2, 0), (1, 2, 1)])
exactly("logspace", lambda a, b, n, base=10.0: np.logspace(a, b, n, base=base), [(0.0, 1.0, 5), (0.0, 3.0, 4, 2.0)])
exactly("eye", np.eye, [(3,), (2, 4), (0,)])
exactly("tril_indices", lambda r, c, k=0: np.stack(np.tril_indices(r, k, c)), [(3, 4), (4, 3, -1)])
exactly("triu_indices", lambda r, c, k=0: np.stack(np.triu_indices(r, k, c)), [(3, 4), (4, 3, 1)])
exactly("scalar_tensor", np.asarray, [(2.5,)])
for name, start in (
    ("hann", np.hanning),
    ("hamming", np.hamming),
    ("bartlett", np.bartlett),
    ("blackman", np.blackman),
):
    exactly(f"{name}_window", lambda n, periodic=True, f=start: f(n + 1)[:-1] if periodic else f(n), [(8,), (7, False)])
exactly(
    "kaiser_window",
    lambda n, periodic=True, beta=12.0: np.kaiser(n + 1, beta)[:-1] if periodic else np.kaiser(n, beta),
    [(8,), (7, False)],
)
exactly(
    "can_cast",
    lambda a, b: b.is_floating_point or not a.is_floating_point,
    [(torch.int64, torch.float32), (torch.float32, torch.int64)],
)

SHAPE_ONLY = dict(layouts=False, grad=False)
for name, value in (("zeros", 0), ("ones", 1)):
    Case(f"{name}_like", ref=lambda x, v=value: np.full(x.shape, v), dtypes=ALL, gives="same", **SHAPE_ONLY)
    Case(
        f"new_{name}",
        ref=lambda x, s, v=value: np.full(s, v),
        inputs=[((2,), V((3, 5))), ((), V((0,)))],
        dtypes=ALL,
        gives="same",
        **SHAPE_ONLY,
    )
Case(
    "full_like",
    ref=lambda x, v: np.full(x.shape, v),
    inputs=[(s, 2) for s in SHAPES],
    dtypes=("float32", "int64", "complex64"),
    gives="same",
    **SHAPE_ONLY,
)
Case(
    "new_full",
    ref=lambda x, s, v: np.full(s, v),
    inputs=[((2,), V((3, 5)), 2)],
    dtypes=("float32", "int64"),
    gives="same",
    **SHAPE_ONLY,
)

# What the memory holds is not looked at: shapes, strides and dtypes are.


def shaped(name, expected, inputs, **options):
    def call(*args, **kwargs):
        t = getattr(torch, name, None) or getattr(torch.Tensor, name)
        return torch.tensor(list(t(*args, **kwargs).stride()) + list(t(*args, **kwargs).shape))

    Case(name, ref=expected, inputs=inputs, call=call, **NOTHING, **options)


shaped("empty", lambda s: np.array([3, 1, 2, 3]), [(V((2, 3)),)])
shaped("empty_strided", lambda s, st: np.array([1, 2, 2, 3]), [(V((2, 3)), V((1, 2)))])
shaped("empty_permuted", lambda s, order: np.array([1, 2, 2, 3]), [(V((2, 3)), V((1, 0)))])
shaped("empty_like", lambda x: np.array([3, 1, 2, 3]), [(2, 3)])
shaped("new_empty", lambda x, s: np.array([3, 1, 2, 3]), [((4,), V((2, 3)))])
shaped("new_empty_strided", lambda x, s, st: np.array([1, 2, 2, 3]), [((4,), V((2, 3)), V((1, 2)))])

ASK = dict(layouts=False, grad=False, meta=False)
Case("numel", ref=np.size, dtypes=("float32", "int64"), **ASK)
Case("is_floating_point", ref=lambda x: x.dtype == np.float64, dtypes=ALL, **ASK)
Case("is_complex", ref=np.iscomplexobj, dtypes=ALL, **ASK)
Case("is_signed", ref=lambda x: x.dtype not in (np.uint8, np.bool_), dtypes=ALL, **ASK)
for name in ("is_conj", "is_neg", "is_inference"):
    Case(name, ref=lambda x: False, dtypes=("float32", "complex64"), **ASK)
Case(
    "is_nonzero",
    ref=lambda x: x.item() != 0,
    inputs=[(), (1, 1)],
    dtypes=ALL,
    **ASK,
    raises=[((3,), RuntimeError, "ambiguous")],
)
Case("is_same_size", ref=lambda a, b: a.shape == b.shape, inputs=PAIRS, dtypes=("float32",), **ASK)
Case(
    "vander",
    ref=lambda x, n=None, increasing=False: np.vander(x, n, increasing),
    inputs=[(4,), ((4,), 3)],
    kwargs=[{}, {"increasing": True}],
    dtypes=("float32", "float64", "int64"),
)
