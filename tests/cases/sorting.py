"""Orders and different elements."""

import numpy as np

from tests.harness import REAL, Case, T

BOTH = ("float32", "float64")


def ordered(x, dim=-1, descending=False):
    order = np.argsort(-x if descending else x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


Case("sort", ref=ordered, inputs=[(7,), (3, 5), ((3, 5), 0), ((3, 5), 1, True), (0, 3)], dtypes=BOTH, gives="same")
Case(
    "argsort",
    ref=lambda *a, **k: ordered(*a, **k)[1],
    inputs=[(7,), (3, 5), ((3, 5), 0), ((3, 5), 1, True)],
    dtypes=BOTH,
    gives="int64",
)
Case("msort", ref=lambda x: np.sort(x, 0), inputs=[(7,), (3, 5)], dtypes=REAL, gives="same")


def topk(x, k, dim=-1, largest=True):
    values, order = ordered(x, dim, largest)
    return values.take(range(k), dim), order.take(range(k), dim)


Case("topk", ref=topk, inputs=[((7,), 3), ((3, 5), 2, 1), ((3, 5), 2, 0, False), ((3, 5), 0)], dtypes=BOTH, gives="same",
     raises=[(((3,), 4), RuntimeError, "out of range")])  # fmt: skip
for name, arguments in (("_unique2", [(True, True, True)]), ("unique_dim", [(0, True, True, True)])):
    Case(name, ref=lambda x, *a, axis=None if name == "_unique2" else 0: [r.reshape(-1) if r.dtype == np.int64 and i == 1 and axis == 0 else r.reshape(x.shape) if i == 1 else r for i, r in enumerate(np.unique(x, return_inverse=True, return_counts=True, axis=axis))],
         inputs=[((3, 5), *a) for a in arguments], dtypes=("float32", "int64"), meta=False, grad=False)  # fmt: skip
Case("_unique_consecutive", inputs=[((7,), True, True)], dtypes=("float32", "int64"), meta=False, grad=False,
     expect=[(([1.0, 1.0, 2.0, 1.0], True, True), [[1, 2, 1], [0, 0, 1, 2], [2, 1, 1]])])  # fmt: skip
Case("histogram", ref=lambda x, bins: np.histogram(x, bins), inputs=[((20,), 4), ((3, 5), 3), ((20,), T((4,), values=[-1.0, 0.0, 0.5, 1.0]))],
     dtypes=BOTH, gives="same", meta=False, grad=False)  # fmt: skip
Case("_histogramdd_bin_edges", ref=lambda x, bins: np.histogramdd(x, bins)[1], inputs=[((6, 2), [2, 3])], dtypes=BOTH,
     gives="same", meta=False, grad=False)  # fmt: skip
Case("_histogramdd_from_bin_tensors", ref=lambda x, bins: np.histogramdd(x, bins)[0], dtypes=BOTH, gives="same", meta=False,
     grad=False, inputs=[((9, 2), [T((3,), values=[-1.0, 0.0, 1.0]), T((2,), values=[-0.5, 0.5])])])  # fmt: skip
