"""Random numbers: the same seed gives PyTorch's values, recorded here."""

import pytest

import rushlight as torch

VALUES = [
    ("torch.rand(3)", [0.4962566, 0.7682218, 0.08847743]),
    ("torch.rand(2, dtype=torch.float64)", [0.970053, 0.7078199]),
    ("torch.rand_like(torch.ones(2, 3).t())", [0.4962566, 0.1320305, 0.7682218, 0.3074228, 0.08847743, 0.6340787]),
    ("torch.randn(3)", [1.540996, -0.2934289, -2.178789]),
    (
        "torch.randn(17)",
        [
            -1.12584,
            -1.695931,
            0.5666506,
            0.7935084,
            0.5988395,
            -1.555095,
            -0.3413604,
            1.853006,
            0.4680964,
            -0.5854976,
            -0.1733968,
            0.1834779,
            1.389366,
            1.586334,
            0.9462984,
            -0.8436767,
            0.9318266,
        ],
    ),
    ("torch.randn(2, dtype=torch.complex64).real", [1.089649, -1.540637]),
    ("torch.randint(10, (5,))", [4, 9, 3, 0, 3]),
    ("torch.randint(-5, 5, (2, 3))", [-1, 4, -2, -5, -2, 4]),
    ("torch.randint(0, 1 << 40, (3,))", [741280623151, 506137267392, 291447657211]),
    ("torch.randperm(10)", [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),
    ("torch.normal(1.0, 2.0, (3,))", [4.081992, 0.4131422, -3.357579]),
    ("torch.normal(torch.arange(3.0), torch.arange(3.0))", [0.0, 0.7065711, -2.357579]),
    ("torch.bernoulli(torch.arange(8.0) / 8)", [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]),
    ("torch.empty(9).bernoulli_(0.4)", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]),
    ("torch.multinomial(torch.arange(6.0), 3)", [4, 2, 5]),
    ("torch.multinomial(torch.arange(6.0), 5, True)", [5, 5, 4, 5, 4]),
    ("torch.poisson(torch.arange(8.0) * 4)", [0.0, 7.0, 8.0, 9.0, 20.0, 22.0, 24.0, 29.0]),
    (
        "torch.empty(4, 3).t().uniform_(-2, 3)",
        [
            0.4812829,
            -1.339848,
            0.4504671,
            1.161531,
            1.841109,
            -0.4628859,
            2.482224,
            -0.2555327,
            -1.557613,
            1.170393,
            0.2781399,
            0.008586526,
        ],
    ),
    (
        "torch.empty(3, 8).t().normal_(1, 3)",
        [
            5.622988,
            -1.157773,
            -0.6989524,
            0.1197133,
            -0.2100306,
            2.119344,
            -5.536368,
            -0.7899061,
            -1.675986,
            2.705294,
            1.546109,
            -3.527323,
            -2.253567,
            -1.570024,
            2.111181,
            -3.195786,
            4.301813,
            5.369508,
            2.210041,
            -2.213562,
            3.81943,
            3.514079,
            1.368104,
            3.324546,
        ],
    ),
    ("torch.empty(4).exponential_(2)", [1.754163, 0.6151924, 0.3075221, 1.267559]),
    ("torch.empty(4).geometric_(0.3)", [1.0, 1.0, 3.0, 1.0]),
    ("torch.empty(4).log_normal_()", [59.26342, 1.51156, 0.03481946, 8.472813]),
    ("torch.empty(4).cauchy_()", [10.59773, 0.7647673, -0.1282993, 3.933073]),
    ("torch.empty(4, dtype=torch.int16).random_()", [2732, 10799, 9845, 19648]),
    ("torch.empty(4).random_(5, 9)", [5.0, 8.0, 6.0, 5.0]),
    ("torch.dropout(torch.ones(8), 0.3, True)", [0.0, 0.0, 1.428571, 0.0, 1.428571, 0.0, 1.428571, 1.428571]),
    (
        "torch.feature_dropout(torch.ones(2, 3, 2), 0.5, True)",
        [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ),
    ("torch.alpha_dropout(torch.ones(6), 0.3, True)", [-1.059548, -1.059548, 1.315045, -1.059548, 1.315045, -1.059548]),
]

ERRORS = [
    "torch.randint(5, 5, (2,))",
    "torch.randperm(-1)",
    "torch.empty(2).uniform_(2, 1)",
    "torch.empty(2).exponential_(-1)",
    "torch.empty(2, dtype=torch.int64).exponential_()",
    "torch.empty(2).geometric_(2)",
    "torch.normal(0.0, -1.0, (2,))",
    "torch.randint(0, 300, (2,), dtype=torch.uint8)",
    "torch.multinomial(torch.tensor([-1.0, 2.0]), 1)",
    "torch.multinomial(torch.zeros(3), 1)",
    "torch.multinomial(torch.ones(3), 5)",
    "torch.bernoulli(torch.tensor([2.0]))",
    "torch.dropout(torch.ones(2), 1.5, True)",
    "torch.ones(2, requires_grad=True).uniform_()",
]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_values(expression, expected):
    torch.manual_seed(0)
    assert eval(expression, {"torch": torch}).reshape(-1).tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("expression", ERRORS)
def test_errors(expression):
    with pytest.raises(RuntimeError):
        eval(expression, {"torch": torch})


def test_dropout_gradient_uses_the_same_mask():
    x = torch.ones(50, requires_grad=True)
    y = torch.dropout(x, 0.5, True)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_fill_cuts_the_gradient():
    x = torch.ones(3, requires_grad=True)
    ((x * 2).uniform_() + x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
