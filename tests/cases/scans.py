"""Running sums and their kin."""

import numpy as np

from tests.harness import FLOATING, Case

BOTH = ("float32", "float64")
ALONG = [((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 0), 1)]
Case("cumsum", ref=np.cumsum, inputs=ALONG, dtypes=FLOATING + ("int64",), gives="same", tol=4)
Case("cumprod", ref=np.cumprod, inputs=ALONG, dtypes=BOTH + ("int64",), gives="same", domain=(0.5, 2), tol=4)


def extreme(f):
    def g(x, dim):
        values = f.accumulate(x, dim)
        where = np.where(
            x == values, np.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(x.ndim)]), 0
        )
        return values, np.maximum.accumulate(where, dim)

    return g


Case("cummax", ref=extreme(np.maximum), inputs=ALONG[:3], dtypes=BOTH)
Case("cummin", ref=extreme(np.minimum), inputs=ALONG[:3], dtypes=BOTH)
Case("logcumsumexp", ref=lambda x, d: np.log(np.cumsum(np.exp(x), d)), inputs=ALONG, dtypes=BOTH, tol=4)
Case("diff", ref=np.diff, inputs=[((7,),), ((3, 5), 2), ((3, 5), 1, 0)], dtypes=BOTH + ("int64",), gives="same")
for name in ("trapezoid", "trapz"):
    Case(
        name,
        ref=lambda y, x=None, dx=1, dim=-1: (
            np.trapezoid(y, x, dx, dim) if hasattr(np, "trapezoid") else np.trapz(y, x, dx, dim)
        ),
        inputs=[(3, 5), ((3, 5), (3, 5)), ((3, 5), (5,))],
        dtypes=BOTH,
    )


def running_trapezoid(y, x=None, dx=1, dim=-1):
    steps = dx if x is None else np.diff(x)
    return np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * steps, -1)


Case("cumulative_trapezoid", ref=running_trapezoid, inputs=[(3, 5), ((3, 5), (5,))], dtypes=BOTH)
