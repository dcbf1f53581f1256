"""Losses: each reduction is the mean, the sum or all of the same numbers."""

import numpy as np

from tests.harness import Case, I, T, V

BOTH = ("float32", "float64")
WAYS = [{}, {"reduction": "sum"}, {"reduction": "none"}]
TWO = [((3, 4), (3, 4))]


def reduced(f):
    def g(*args, reduction="mean", **kwargs):
        losses = f(*args, **kwargs)
        return {"mean": np.mean, "sum": np.sum, "none": lambda x: x}[reduction](losses)

    return g


def loss(name, f, inputs=TWO, kwargs=({},), **options):
    every = [{**way, **k} for way in WAYS for k in kwargs]
    Case(name, ref=reduced(f), inputs=inputs, kwargs=every, dtypes=BOTH, tol=4, **options)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def huber(a, b, delta=1.0):
    d = np.abs(a - b)
    return np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


SIGNS = T((4,), values=[1.0, -1.0, 1.0, -1.0])
PROBABILITY = T((3, 4), low=0.1, high=0.9)
loss("mse_loss", lambda a, b: (a - b) ** 2)
loss("l1_loss", lambda a, b: np.abs(a - b), gradgrad=False)
loss("smooth_l1_loss", lambda a, b, beta=1.0: huber(a, b, beta) / beta, kwargs=[{}, {"beta": 0.5}])
loss("huber_loss", huber, kwargs=[{}, {"delta": 0.5}])
loss("binary_cross_entropy", lambda p, t: -(t * np.log(p) + (1 - t) * np.log1p(-p)), [(PROBABILITY, PROBABILITY)])
loss(
    "binary_cross_entropy_with_logits",
    lambda x, t: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0) - t * x,
    [((3, 4), PROBABILITY)],
)
loss("kl_div", lambda x, t: t * (np.log(t) - x), [((3, 4), PROBABILITY)])
loss("poisson_nll_loss", lambda x, t: np.exp(x) - t * x)
loss("hinge_embedding_loss", lambda x, y, margin=1.0: np.where(y == 1, x, np.maximum(0, margin - x)), [((3, 4), SIGNS)])
loss("margin_ranking_loss", lambda a, b, y, margin=0.0: np.maximum(0, -y * (a - b) + margin), [((4,), (4,), SIGNS)])
loss("soft_margin_loss", lambda x, y: np.log1p(np.exp(-y * x)), [((4,), SIGNS)])
loss(
    "cosine_embedding_loss",
    lambda a, b, y, margin=0.0: np.where(y == 1, 1 - cosine(a, b), np.maximum(0, cosine(a, b) - margin)),
    [((4, 3), (4, 3), SIGNS)],
)


def cosine(a, b):
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


def distance(a, b, p=2.0, eps=1e-6):
    return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)


loss(
    "triplet_margin_loss",
    lambda a, p, n, margin=1.0: np.maximum(0, distance(a, p) - distance(a, n) + margin),
    [((4, 3), (4, 3), (4, 3))],
)


def multi_margin(x, t, p=1, margin=1.0):
    right = x[np.arange(len(t)), t][:, None]
    terms = np.maximum(0, margin - right + x) ** p
    terms[np.arange(len(t)), t] = 0
    return terms.sum(1) / x.shape[1]


loss("multi_margin_loss", multi_margin, [((3, 4), I((3,), 4))])
Case("multilabel_margin_loss", inputs=[((2, 4), T((), values=[[3, 0, -1, 1], [1, -1, 0, 0]], dtype="int64"))], dtypes=BOTH,
     expect=[(([0.1, 0.2, 0.4, 0.8], [3, 0, -1, 1]), 0.85)])  # fmt: skip


def log_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return np.log(e / e.sum(1, keepdims=True))


def picked(x, t, w=None, ignore_index=-100, reduction="mean"):
    kept = t != ignore_index
    w = np.ones(x.shape[1]) if w is None else w
    at = np.where(kept, t, 0)
    scale = w[at] * kept
    losses = -np.take_along_axis(x, at[:, None], 1)[:, 0] * scale
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / scale.sum()}[reduction]


def cross_entropy(x, t, w=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    y = log_softmax(x)
    if t.dtype != np.int64:
        losses = -(t * y).sum(1)
        return {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]
    hard = picked(y, t, w, ignore_index, reduction)
    if not label_smoothing:
        return hard
    soft = -y.mean(1)
    return (1 - label_smoothing) * hard + label_smoothing * {"none": soft, "sum": soft.sum(), "mean": soft.mean()}[
        reduction
    ]


CLASSES = [
    ((3, 5), I((3,), 5)),
    ((2, 3, 4), I((2, 4), 3)),
    ((3, 5), I((3,), 5), T((5,), low=0.5, high=2, constant=True)),
]
IGNORED = [((3, 5), T((), values=[1, -100, 4], dtype="int64"))]
for name, f in (("nll_loss", picked), ("cross_entropy", cross_entropy)):
    Case(name, ref=f, inputs=CLASSES + IGNORED, kwargs=WAYS, dtypes=BOTH, tol=4)
Case(
    "cross_entropy",
    ref=cross_entropy,
    inputs=[((3, 5), T((3, 5), low=0.1, high=0.3))],
    kwargs=WAYS,
    dtypes=BOTH,
    tol=4,
    suffix="probabilities",
)
Case(
    "cross_entropy",
    ref=cross_entropy,
    inputs=[((3, 5), I((3,), 5))],
    kwargs=[{**way, "label_smoothing": 0.1} for way in WAYS],
    dtypes=BOTH,
    tol=4,
    suffix="smoothing",
)
Case("ctc_loss", inputs=[(T((5, 2, 4), low=-4, high=-0.5), T((), values=[[1, 2], [3, 3]], dtype="int64"), V((5, 5)), V((2, 2)))], kwargs=WAYS, dtypes=BOTH, tol=4, layouts=False, gradgrad=False,
     expect=[(([[[-1.0986123, -1.0986123, -1.0986123]], [[-1.0986123, -1.0986123, -1.0986123]]], [[1]], (2,), (1,)), np.log(3.0))])  # fmt: skip
