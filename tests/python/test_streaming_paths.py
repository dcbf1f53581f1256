"""Paths that only large tensors, short rows or ends of rows take."""

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("start", [0, 3])
def test_transpose_past_the_caches(dtype, start):
    rows, columns = 1301, (18 << 20) // 1301 // np.dtype(dtype).itemsize
    x = (np.arange(rows * columns + start) % 251).astype(dtype)
    matrix = torch.from_numpy(x)[start:].view(rows, columns)
    assert np.array_equal(matrix.t().contiguous().numpy(), matrix.numpy().T)


def test_transpose_and_cast_past_the_caches():
    x = (np.arange(1301 * 4099) % 251).astype(np.float32)
    matrix = torch.from_numpy(x).view(1301, 4099)
    assert np.array_equal(matrix.t().double().contiguous().numpy(), matrix.numpy().T.astype(np.float64))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 31, 32, 33, 50, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softmax_of_short_rows(n, dtype):
    x = torch.randn(203, n, generator=torch.Generator().manual_seed(n), dtype=dtype)
    x[5] = 0
    e = np.exp(x.double().numpy() - x.double().numpy().max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True)
    g = torch.randn(203, n, generator=torch.Generator().manual_seed(1), dtype=dtype)
    for f, y in ((torch.softmax, want), (torch.log_softmax, np.log(want))):
        leaf = x.clone().requires_grad_()
        out = f(leaf, 1)
        np.testing.assert_allclose(out.detach().numpy(), y, rtol=1e-5, atol=1e-6)
        (grad,) = torch.autograd.grad(out, leaf, g)
        h = g.double().numpy()
        slope = (
            want * (h - (h * want).sum(1, keepdims=True)) if f is torch.softmax else h - want * h.sum(1, keepdims=True)
        )
        np.testing.assert_allclose(grad.numpy(), slope, rtol=1e-4, atol=1e-5)


def test_logsumexp_of_infinities():
    inf = float("inf")
    x = torch.tensor(
        [[0.0, 1.0], [inf, 0.0], [-inf, -inf], [inf, float("nan")], [-inf, 3.0], [inf, -inf], [0, 0], [88, 89]]
    )
    want = np.array([np.log(1 + np.e), inf, -inf, np.nan, 3, inf, np.log(2), 89 + np.log1p(np.exp(-1))], np.float32)
    np.testing.assert_allclose(torch.logsumexp(x, 1).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("shape", [(40, 7), (100, 100), (33, 1030), (5, 70, 100), (70, 9000)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_reductions_of_columns(shape, dtype):
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
    t, dim = torch.from_numpy(x), len(shape) - 2
    assert np.array_equal(t.sum(dim).numpy(), x.sum(dim))
    assert np.array_equal(t.amax(dim).numpy(), x.max(dim))
    assert np.array_equal(t.argmin(dim).numpy(), x.argmin(dim))


@pytest.mark.parametrize("n", [1, 23, 24, 63, 64, 65, 2047, 2048, 2049, 5000, 70001])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_sums_of_any_length(n, dtype):
    x = np.random.default_rng(n).integers(0, 2, n)
    t = torch.from_numpy(x).to(dtype)
    assert t.sum(dtype=torch.float32 if dtype == torch.bfloat16 else torch.int64).item() == x.sum()
    if dtype != torch.bool:
        assert t.max().item() == x.max() and t.argmax().item() == x.argmax()
    assert t.count_nonzero().item() == x.sum()


def test_signs_of_halves():
    x = torch.tensor([0.0, -0.0, 1.5, -2, float("inf"), float("-inf")], dtype=torch.bfloat16).repeat(50)
    for t in (x, x[::2], x.half(), x.view(2, -1).t()):
        wide = t.float().numpy()
        assert np.array_equal(np.signbit((-t).float().numpy()), ~np.signbit(wide))
        assert np.array_equal(abs(t).float().numpy(), np.abs(wide)) and not np.signbit(abs(t).float().numpy()).any()


@pytest.mark.parametrize("n", [1, 5, 33, 4099])
def test_losses_of_probabilities(n):
    F = torch.nn.functional
    rng = np.random.default_rng(n)
    p, t, z = (rng.random(n).astype(np.float32) for _ in range(3))
    p[0], t[0] = 1, 0
    p[-1], t[-1] = (0, 1) if n > 1 else (1, 0)
    z = z * 200 - 100
    P, T, Z = (torch.from_numpy(a) for a in (p, t, z))
    p, t, z = (a.astype(np.float64) for a in (p, t, z))
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.maximum(np.log(p), -100), np.maximum(np.log1p(-p), -100)
        own = np.where(t == 0, 0, t * np.log(t))
    cases = [
        (F.binary_cross_entropy(P, T, reduction="none"), -(t * yes + (1 - t) * no), 1),
        (
            F.binary_cross_entropy_with_logits(Z, T, reduction="none"),
            np.maximum(z, 0) - z * t + np.log1p(np.exp(-abs(z))),
            abs(z),  # (1 - t) z and the logarithm cancel where z is far below 0
        ),
        (F.kl_div(Z, T, reduction="none"), own - t * z, 1),
        (F.kl_div(Z, Z / 10, reduction="none", log_target=True), np.exp(z / 10) * (z / 10 - z), 1),
    ]
    for got, want, terms in cases:  # whose rounding shows without fused multiplication
        assert (abs(got.numpy() - want) <= 1e-5 * abs(want) + np.maximum(1e-6, terms * 2.0**-23)).all()
    np.testing.assert_allclose(F.binary_cross_entropy(P, T).item(), cases[0][1].mean(), rtol=1e-6)
    for bad in (-0.1, 1.1, float("nan")):
        P[n // 2] = bad
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            F.binary_cross_entropy(P, T)
