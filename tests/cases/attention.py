"""Attention."""

import numpy as np

from tests.harness import B, Case, V


def attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = np.nan_to_num(weights / weights.sum(-1, keepdims=True))
    return weights @ v


Case(
    "scaled_dot_product_attention",
    ref=attention,
    inputs=[((2, 3, 4), (2, 5, 4), (2, 5, 2)), ((3, 4), (5, 4), (5, 2), (3, 5)), ((3, 4), (5, 4), (5, 2), B((3, 5)))],
    kwargs=[{}, {"scale": 0.3}],
    dtypes=("float32", "float64"),
    gives="same",
    tol=10,
)
Case(
    "scaled_dot_product_attention",
    ref=attention,
    inputs=[((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), None, V(0.0), V(True))],
    dtypes=("float32", "float64"),
    gives="same",
    tol=10,
    suffix="causal",
)
