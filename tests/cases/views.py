"""Other windows on the same memory, and their copies."""

import numpy as np

import rushlight as torch
from tests.harness import ALL, COMPLEX, Case, T, V

STRIDED = np.lib.stride_tricks.as_strided


def both(name, ref, inputs, **options):
    """The view, and the operator that copies what it shows."""
    options = dict(dtypes=("float32", "float64", "int64", "bool", "complex64"), gives="same") | options
    Case(name, ref=ref, inputs=inputs, **options)
    if hasattr(torch._C, name.strip("_") + "_copy"):
        Case(name.strip("_") + "_copy", ref=ref, inputs=inputs, **options)


def as_strided(x, size, stride, offset=0):
    x = np.ascontiguousarray(x).reshape(-1)[offset or 0 :]
    return STRIDED(x, size, [s * x.itemsize for s in stride])


def swap(x, a, b):
    return np.swapaxes(x, a, b)


def sliced(x, dim=0, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


IndexOf = [((4, 5), 0, 2), ((4, 5), -1, -2)]
both(
    "as_strided",
    as_strided,
    [((12,), V((2, 3)), V((4, 1))), ((12,), V((2, 3)), V((1, 2)), 3), ((3, 4), V((2, 2)), V((1, 1)))],
    layouts=False,
)
both("view", lambda x, s: x.reshape(s), [((3, 4), V((2, 6))), ((3, 4), V((-1,))), ((0, 3), V((3, 0))), ((), V((1, 1)))], layouts=False,
     raises=[(((3, 4), V((5,))), RuntimeError, "invalid for input of size 12")])  # fmt: skip
Case("reshape", ref=lambda x, s: x.reshape(s), inputs=[((3, 4), V((2, 6))), ((3, 4), V((-1, 2))), ((0, 3), V((3, 0))), ((), V((1, 1)))], dtypes=ALL, gives="same",
     raises=[(((3, 4), V((5,))), RuntimeError, "invalid for input of size 12")])  # fmt: skip
both(
    "expand",
    lambda x, s: np.broadcast_to(x, [n if n >= 0 else x.shape[i - len(s)] for i, n in enumerate(s)]),
    [((3, 1), V((3, 4))), ((1,), V((2, -1))), ((), V((2,)))],
)
both("permute", lambda x, d: np.transpose(x, d), [((2, 3, 4), V((2, 0, 1))), ((2, 3), V((-1, 0))), ((), V(()))])
both(
    "transpose",
    swap,
    [((2, 3, 4), 0, 2), ((2, 3), -1, 0)],
    raises=[(((2, 3), 0, 2), IndexError, "Dimension out of range")],
)
both("t", np.transpose, [(2, 3), (3,), ()])
both("select", lambda x, d, i: np.take(x, i, d), IndexOf, raises=[(((4, 5), 0, 4), IndexError, "index")])
both("_slice", sliced, [((6, 5), 0, 1, 4), ((6, 5), 1, None, None, 2), ((6,), 0, -3, None), ((6,), 0, 9, 12)])
Case(
    "narrow",
    ref=lambda x, d, s, n: np.take(x, range(s, s + n), d),
    inputs=[((4, 5), 1, 2, 3), ((4,), 0, 1, 0)],
    dtypes=ALL,
    gives="same",
)
Case("narrow", ref=lambda x, d, s, n: x[:, int(s) : int(s) + n], inputs=[((4, 5), 1, T((), values=2, dtype="int64"), 3)],
     dtypes=("float32",), meta=False, suffix="tensor")  # fmt: skip
both("squeeze", lambda x, dim=None: np.squeeze(x, dim), [(1, 3, 1), (2, 3), ((1, 3, 1), 0), ((1, 3, 1), V((0, 2)))])
both("unsqueeze", np.expand_dims, [((3, 5), 0), ((3, 5), -1), ((), 0)])
both("detach", lambda x: x, [(3, 5), ()], grad=False)
Case("_view_as_itself", ref=lambda x: x, dtypes=ALL, gives="same")
Case("real", ref=np.real, dtypes=("float32", *COMPLEX))
Case("imag", ref=np.imag, dtypes=COMPLEX)
both("view_as_real", lambda x: np.stack([x.real, x.imag], -1), [(3, 5), ()], dtypes=COMPLEX, gives=None, layouts=False)
both(
    "view_as_complex",
    lambda x: x[..., 0] + 1j * x[..., 1],
    [(3, 2), (2,)],
    dtypes=("float32", "float64"),
    gives=None,
    layouts=False,
)
Case(
    "narrow_copy",
    ref=lambda x, d, s, n: np.take(x, range(s, s + n), d),
    inputs=[((4, 5), 1, 2, 3)],
    dtypes=ALL,
    gives="same",
)
