"""softmax and what its gradient is computed with."""

import numpy as np

import rushlight as torch
from tests.harness import FLOATING, Case

ALONG = [((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((2, 0), 0)]
BOTH = ("float32", "float64")


def softmax(x, dim, *_):
    e = np.exp(x - x.max(dim, keepdims=True)) if x.size else x
    return e / e.sum(dim, keepdims=True)


def log_softmax(x, dim, *_):
    return np.log(softmax(x, dim))


def backward(g, y, dim, *_):
    return (g - (g * y).sum(dim, keepdims=True)) * y


def log_backward(g, y, dim, *_):
    return g - np.exp(y) * g.sum(dim, keepdims=True)


Case("softmax", ref=softmax, inputs=ALONG, dtypes=FLOATING, gives="same")
Case("log_softmax", ref=log_softmax, inputs=ALONG, dtypes=FLOATING, gives="same", tol=2)
Case("_softmax", ref=softmax, inputs=[(*a, False) for a in ALONG], dtypes=BOTH)
Case("_log_softmax", ref=log_softmax, inputs=[(*a, False) for a in ALONG], dtypes=BOTH)
Case(
    "_softmax_backward_data",
    ref=backward,
    inputs=[((3, 5), (3, 5), 1, torch.float64), ((3, 5), (3, 5), 0, torch.float64)],
    dtypes=("float64",),
)
Case("_log_softmax_backward_data", ref=log_backward, inputs=[((3, 5), (3, 5), 1, torch.float64)], dtypes=("float64",))
