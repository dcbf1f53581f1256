"""Normalization over features, channels and batches, and distances between rows."""

import numpy as np

import rushlight as torch
from tests.harness import FLOATING, Case, T, V

BOTH = ("float32", "float64")


def standard(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def scaled(y, w, b, shape):
    y = y if w is None else y * np.reshape(w, shape)
    return y if b is None else y + np.reshape(b, shape)


def layer_norm(x, shape, w=None, b=None, eps=1e-5):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return scaled(standard(x, axes, eps), w, b, shape)


def group_norm(x, groups, w=None, b=None, eps=1e-5):
    y = standard(x.reshape(x.shape[0], groups, -1), 2, eps).reshape(x.shape)
    return scaled(y, w, b, (1, -1) + (1,) * (x.ndim - 2))


def batch_norm(x, mean, var, w=None, b=None, training=False, momentum=0.1, eps=1e-5):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    if training:
        return scaled(standard(x, (0, *range(2, x.ndim)), eps), w, b, shape)
    return scaled((x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps), w, b, shape)


Case("layer_norm", ref=layer_norm, inputs=[((3, 4), V((4,))), ((2, 3, 4), V((3, 4)), (3, 4), (3, 4)), ((2, 4), V((4,)), (4,), (4,))], dtypes=FLOATING, tol=5,
     raises=[(((2, 3), V((4,))), RuntimeError, "normalized_shape")])  # fmt: skip
Case(
    "rms_norm",
    ref=lambda x, s, w=None, eps=1e-5: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (1 if w is None else w),
    inputs=[((3, 4), V((4,)), V(None), 1e-5), ((3, 4), V((4,)), (4,), 1e-5)],
    dtypes=FLOATING,
    tol=5,
)
Case("group_norm", ref=group_norm, inputs=[((2, 4, 2), 2), ((1, 4, 2), 2, (4,), (4,))], dtypes=FLOATING, tol=5)
Case(
    "batch_norm",
    ref=batch_norm,
    inputs=[
        ((4, 3), V(None), V(None), (3,), (3,), True),
        ((2, 17, 3), V(None), V(None), (17,), (17,), True),
        ((2, 3, 2), T((3,), constant=True), T((3,), low=0.5, high=2, constant=True), (3,), (3,), False),
    ],
    dtypes=BOTH,
    tol=10,
)
Case("instance_norm", ref=lambda x: standard(x, 2, 1e-5), inputs=[(2, 3, 5)], dtypes=BOTH, tol=10)


def first(name):
    return lambda *args, **kwargs: getattr(torch._C, name)(*args, **kwargs)[0]


HIDDEN = dict(dtypes=BOTH, tol=10, layouts=False)
for name in ("native_layer_norm", "_layer_norm"):
    Case(name, ref=layer_norm, inputs=[((3, 4), V((4,)), (4,), (4,), 1e-5)], call=first(name), **HIDDEN)
Case(
    "_rms_norm",
    ref=lambda x, s, w, eps: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w,
    inputs=[((3, 4), V((4,)), (4,), 1e-5)],
    call=first("_rms_norm"),
    **HIDDEN,
)
Case("_group_norm", ref=group_norm, inputs=[((2, 4, 2), 2, (4,), (4,), 1e-5)], call=first("_group_norm"), **HIDDEN)
Case(
    "native_group_norm",
    ref=lambda x, w, b, n, c, hw, g, eps: group_norm(x, g, w, b, eps),
    inputs=[((2, 4, 2), (4,), (4,), 2, 4, 2, 2, 1e-5)],
    call=first("native_group_norm"),
    **HIDDEN,
)
for name in ("native_batch_norm", "_batch_norm"):
    Case(
        name,
        ref=lambda x, w, b, m, v, *rest: batch_norm(x, m, v, w, b, *rest),
        inputs=[((4, 3), (3,), (3,), V(None), V(None), True, 0.1, 1e-5)],
        call=first(name),
        **HIDDEN,
    )
Case(
    "cosine_similarity",
    ref=lambda a, b, dim=1: (a * b).sum(dim) / np.sqrt((a * a).sum(dim) * (b * b).sum(dim)),
    inputs=[((3, 4), (3, 4)), ((3, 4), (3, 4), 0)],
    dtypes=BOTH,
)
Case(
    "pairwise_distance",
    ref=lambda a, b, p=2.0: (np.abs(a - b + 1e-6) ** p).sum(-1) ** (1 / p),
    inputs=[((3, 4), (3, 4)), ((3, 4), (3, 4), 1.0)],
    dtypes=BOTH,
)
