"""Operators that move memory, at sizes and layouts where kernels take their special ways, against NumPy; the same bits with any number
of threads.
"""

import numpy as np
import pytest

import rushlight as torch


def numbers(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape) * 100
    return x.astype(dtype)


def places(high, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, high, shape)


def t(x):
    return torch.from_numpy(x)


def add_at(shape, dim, index, source):
    out = np.zeros(shape, source.dtype)
    np.add.at(out, (slice(None),) * dim + (index,), source)
    return out


X, THIN, MANY = numbers(130, 4100), numbers(1003, 17), numbers(3, 40, 513)
LONG, MASK = numbers(70_001), numbers(130, 4100) > 0
ROWS, COLUMNS = places(130, 900), places(4100, 77)
ACROSS, DOWN = places(4100, 130, 4100), places(130, 130, 4100)
CASES = {
    **{
        f"{name} of short runs of {dtype.__name__}": (
            lambda name=name, dtype=dtype: getattr(t(THIN.astype(dtype)), name)(1),
            lambda name=name, dtype=dtype: getattr(np, name)(THIN.astype(dtype), 1),
        )
        for name in ("sum", "prod", "amax", "argmax", "argmin")
        for dtype in (np.float32, np.float64, np.int64, np.int16)
    },
    "var of short runs": (lambda: t(THIN).var(1), lambda: THIN.astype(float).var(1, ddof=1)),
    "var of columns": (lambda: t(X).var(0), lambda: X.astype(float).var(0, ddof=1)),
    "argmax of long rows": (lambda: t(X).argmax(1), lambda: X.argmax(1)),
    "argmax of columns": (lambda: t(X).argmax(0), lambda: X.argmax(0)),
    "argmax of equals": (lambda: t(np.round(X / 50)).argmax(1), lambda: np.round(X / 50).argmax(1)),
    "roll of columns by 1": (lambda: t(X).roll(1, 1), lambda: np.roll(X, 1, 1)),
    "roll of columns by 700": (lambda: t(X).roll(700, 1), lambda: np.roll(X, 700, 1)),
    "roll of rows": (lambda: t(X).roll(1, 0), lambda: np.roll(X, 1, 0)),
    "stack last": (lambda: torch.stack([t(LONG), t(-LONG), t(LONG)], -1), lambda: np.stack([LONG, -LONG, LONG], -1)),
    "stack last of int8": (
        lambda: torch.stack([t(LONG.astype(np.int8))] * 2, -1),
        lambda: np.stack([LONG.astype(np.int8)] * 2, -1),
    ),
    "cat of columns": (lambda: torch.cat([t(X), t(X)[:, :3]], 1), lambda: np.concatenate([X, X[:, :3]], 1)),
    **{
        f"transpose of {size} bytes": (
            lambda size=size: t(X.astype(f"i{size}")).t().contiguous(),
            lambda size=size: X.astype(f"i{size}").T,
        )
        for size in (1, 2, 4, 8)
    },
    "index_add of rows": (
        lambda: torch.zeros(130, 4100).index_add_(0, t(ROWS), t(X[ROWS])),
        lambda: add_at((130, 4100), 0, ROWS, X[ROWS]),
    ),
    "index_add of columns": (
        lambda: torch.zeros(130, 4100).index_add_(1, t(COLUMNS), t(X[:, :77])),
        lambda: add_at((130, 4100), 1, COLUMNS, X[:, :77]),
    ),
    "index_put of rows laid out by columns": (
        lambda: torch.zeros(4100, 130).t().index_put_((t(ROWS),), t(X[ROWS]), True),
        lambda: add_at((130, 4100), 0, ROWS, X[ROWS]),
    ),
    "index_put of one number": (
        lambda: torch.zeros(130, 4100).index_put_((t(ROWS),), torch.tensor(2.0), True),
        lambda: add_at((130, 4100), 0, ROWS, np.full((900, 4100), 2, np.float32)),
    ),
    "gather down": (lambda: t(X).gather(0, t(DOWN)), lambda: np.take_along_axis(X, DOWN, 0)),
    "gather across": (lambda: t(X).gather(1, t(ACROSS)), lambda: np.take_along_axis(X, ACROSS, 1)),
    "masked_select": (lambda: t(X)[t(MASK)], lambda: X[MASK]),
    "nonzero": (lambda: t(MASK).nonzero(), lambda: np.argwhere(MASK)),
    "nonzero of one dimension": (lambda: t(LONG > 0).nonzero(), lambda: np.argwhere(LONG > 0)),
    "l1_loss": (lambda: torch.nn.functional.l1_loss(t(X), t(-X)), lambda: np.abs(2.0 * X).mean()),
    "one_hot": (lambda: torch.nn.functional.one_hot(t(ROWS), 200), lambda: np.eye(200, dtype=np.int64)[ROWS]),
    "randint": (lambda: torch.randint(7, (300_000,), generator=torch.Generator().manual_seed(3)).sum(), None),
}


@pytest.mark.parametrize("name", CASES)
def test_values_whatever_the_threads(name):
    call, exact = CASES[name]
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            results.append(call().numpy())
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    if exact:
        np.testing.assert_allclose(results[0], exact(), rtol=2e-5, atol=2e-2 if "index_" in name else 1e-3)


def test_group_norm_statistics_are_differentiable():
    """group_norm_of's own gradient is that of its first result alone."""
    x = torch.from_numpy(numbers(2, 4, 5, dtype=np.float64)).requires_grad_()
    f = lambda x: torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5)  # noqa: E731
    assert torch.autograd.gradcheck(f, (x,))
