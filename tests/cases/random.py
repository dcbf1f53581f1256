"""Random numbers: the same seed gives the same, within bounds. Their bits are held against PyTorch's by
tests/cpp/generator_test.cpp and test_random.py."""

import numpy as np

from tests.harness import Case, T, V

SIZE = V((40, 5))


def within(low, high):
    return lambda x, *_, **__: bool(((x >= low) & (x <= high)).all()) and len(np.unique(x)) > 1


def draws(name, inputs, check=None, dtypes=("float32",), **options):
    Case(name, ref=check, inputs=inputs, dtypes=dtypes, layouts=False, meta=False, random=True, **options)


draws("rand", [(SIZE,)], within(0, 1))
draws("randn", [(SIZE,)], within(-6, 6))
draws("randint", [(5, SIZE), (-2, 5, SIZE)], within(-2, 4))
draws("randperm", [(V(20),)], lambda x, n: sorted(x) == list(range(n)))
draws("rand_like", [(40, 5)], within(0, 1))
draws("randn_like", [(40, 5)], within(-6, 6))
draws("randint_like", [((40, 5), 5), ((40, 5), -2, 5)], within(-2, 4))
draws(
    "normal",
    [(T((9,), low=-1), T((9,), low=1)), (0.5, T((9,), low=1)), (T((9,), low=1), 2.0), (0.0, 1.0, SIZE)],
    within(-30, 30),
)
draws("bernoulli", [(T((40, 5), low=0, high=1),), ((40, 5), 0.3)], within(0, 1))
draws("multinomial", [(T((3, 5), low=0.1), 2), (T((5,), low=0.1), 9, True)], within(0, 4))
draws("poisson", [T((40, 5), low=0)], within(0, 40))
draws("uniform", [((40, 5), -1.0, 2.0)], within(-1, 2))
draws("log_normal", [((40, 5), 0.0, 0.5)], within(0, 40))
draws("exponential", [((40, 5), 2.0)], within(0, 40))
draws("cauchy", [((40, 5),)], within(-np.inf, np.inf))
draws("geometric", [((40, 5), 0.4)], within(1, 80))
draws("_normal_fill", [((40, 5), 0.0, 1.0)], within(-6, 6))
draws("normal_", [((40, 5), 0.0, 1.0)], within(-6, 6))
draws("_bernoulli_fill", [((40, 5), T((40, 5), low=0, high=1))], within(0, 1))
draws("bernoulli_", [((40, 5), 0.4), ((40, 5), T((5,), low=0, high=1))], within(0, 1))
draws("_random_fill", [((40, 5), 2, 9)], within(2, 8))
draws("random_", [((40, 5), 9), ((40, 5), 2, 9)], within(0, 8))
draws("dropout", [((40, 5), 0.4)])
draws("feature_dropout", [((4, 10, 2), 0.4)])
draws("alpha_dropout", [((40, 5), 0.4, True)])
draws("feature_alpha_dropout", [((4, 10, 2), 0.4, True)])
draws("native_dropout", [((40, 5), 0.4, True)])
Case(
    "native_dropout_backward",
    ref=lambda g, m, s: g * m * s,
    inputs=[((3, 5), T((3, 5), dtype="bool"), 2.0)],
    dtypes=("float32", "float64"),
)
draws("rrelu", [((40, 5), 0.1, 0.4, True)])
