"""Resizing and sampling of images."""

import numpy as np

from tests.harness import Case, T, V

BOTH = ("float32", "float64")


def nearest(x, sizes, factors, mode):
    for d, n in enumerate(sizes, 2):
        x = np.take(x, np.arange(n) * x.shape[d] // n, d)
    return x


def linear(x, sizes, factors, mode, align_corners=False):
    for d, n in enumerate(sizes, 2):
        last = x.shape[d] - 1
        if align_corners:
            at = np.arange(n) * (last / max(n - 1, 1))
        else:
            at = np.maximum((np.arange(n) + 0.5) * (x.shape[d] / n) - 0.5, 0)
        low = np.floor(at).astype(int)
        shape = [1] * x.ndim
        shape[d] = n
        part = (at - low).reshape(shape)
        x = np.take(x, low, d) * (1 - part) + np.take(x, np.minimum(low + 1, last), d) * part
    return x


Case(
    "upsample",
    ref=nearest,
    inputs=[((1, 2, 4), V((6,)), None, V("nearest")), ((2, 1, 3, 4), V((5, 2)), None, V("nearest"))],
    dtypes=BOTH,
    gives="same",
    suffix="nearest",
)
Case(
    "upsample",
    ref=linear,
    inputs=[((1, 2, 4), V((6,)), None, V("linear")), ((2, 1, 3, 4), V((5, 2)), None, V("bilinear"))],
    kwargs=[{}, {"align_corners": True}],
    dtypes=BOTH,
    gives="same",
    tol=4,
    suffix="linear",
)


def identity(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """What sampling gives at the centers of the elements."""
    return x


def centers(h, w):
    y, x = np.meshgrid((2 * np.arange(h) + 1) / h - 1, (2 * np.arange(w) + 1) / w - 1, indexing="ij")
    return T((1, h, w, 2), values=[np.stack([x, y], -1).tolist()], constant=True)


Case(
    "grid_sample",
    ref=identity,
    inputs=[((1, 2, 3, 4), centers(3, 4)), ((1, 2, 3, 4), centers(3, 4), V("nearest"), V("border"))],
    dtypes=BOTH,
    gives="same",
    gradgrad=False,
    tol=10,
)
for name in ("grid_sampler", "grid_sampler_2d"):
    Case(
        name,
        ref=lambda x, grid, mode, padding, align: x,
        inputs=[((1, 2, 3, 4), centers(3, 4), V(0), V(0), V(False))],
        dtypes=BOTH,
        gives="same",
        gradgrad=False,
        tol=10,
    )
Case(
    "grid_sampler_3d",
    ref=lambda x, grid, mode, padding, align: x[..., 1:2, 1:2, 1:2],
    inputs=[((1, 2, 3, 3, 3), T((1, 1, 1, 1, 3), values=[[[[[0.0, 0.0, 0.0]]]]], constant=True), V(0), V(0), V(False))],
    dtypes=BOTH,
    gives="same",
    gradgrad=False,
    tol=10,
)
Case(
    "affine_grid",
    ref=lambda theta, size: np.einsum(
        "nij,hwj->nhwi",
        theta,
        np.stack(
            [
                *np.meshgrid(
                    (2 * np.arange(size[3]) + 1) / size[3] - 1,
                    (2 * np.arange(size[2]) + 1) / size[2] - 1,
                    indexing="xy",
                ),
                np.ones((size[2], size[3])),
            ],
            -1,
        ),
    ),
    inputs=[((2, 2, 3), V((2, 1, 3, 4)))],
    dtypes=BOTH,
    gives="same",
    tol=4,
)
