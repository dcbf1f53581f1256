"""Decompositions of low rank, on matrices whose rank is at most what is asked for: there they are exact."""

import pytest

import rushlight as torch


def of_rank(rank, *shape, dtype=torch.float64):
    torch.manual_seed(rank)
    *batch, m, n = shape
    return torch.randn(*batch, m, rank, dtype=dtype) @ torch.randn(*batch, rank, n, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (2, 3, 8, 6)])
@pytest.mark.parametrize("q", [2, 4, 20])
def test_svd(shape, q, dtype):
    x = of_rank(2, *shape, dtype=dtype)
    U, S, V = torch.svd_lowrank(x, q)
    k = min(q, *shape[-2:])
    assert U.shape == (*shape[:-1], k) and V.shape == (*shape[:-2], shape[-1], k)
    torch.testing.assert_close(S, torch.linalg.svdvals(x)[..., :k])
    torch.testing.assert_close((U * S.unsqueeze(-2)) @ V.mH, x)
    eye = torch.eye(k, dtype=dtype).expand(*shape[:-2], k, k)
    torch.testing.assert_close(V.mH @ V, eye)
    torch.testing.assert_close(U.mH @ U, eye)


def test_iteration_finds_the_largest():
    values = torch.tensor([10.0, 8.0, 1.0, 0.5, 0.1, 0.01], dtype=torch.float64)
    torch.manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(30, 6, dtype=torch.float64))[0] for _ in range(2))
    S = torch.svd_lowrank((left * values) @ right.mT, 2, niter=6)[1]
    torch.testing.assert_close(S, values[:2])


def test_pca():
    x = of_rank(2, 50, 4) + torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    U, S, V = torch.pca_lowrank(x, 2)
    variances = torch.linalg.eigvalsh(torch.cov(x.T)).flip(0)
    torch.testing.assert_close(S**2 / 49, variances[:2])
    centered = x - x.mean(0)
    torch.testing.assert_close((U * S) @ V.mT, centered)
    torch.testing.assert_close(torch.svd_lowrank(x, 2, M=x.mean(0, keepdim=True))[1], S)
    torch.testing.assert_close(torch.pca_lowrank(x, 4, center=False)[1], torch.linalg.svdvals(x))


@pytest.mark.parametrize(
    "call, kind, message",
    [(lambda: torch.pca_lowrank(torch.ones(5, 7), 9), ValueError, r"q\(=9\).*min\(m, n\)=5"),
     (lambda: torch.pca_lowrank(torch.ones(5, 7), niter=-1), ValueError, "niter"),
     (lambda: torch.svd_lowrank(torch.ones(3)), ValueError, "shape"),
     (lambda: torch.svd_lowrank(torch.ones(3, 3, dtype=torch.int64)), RuntimeError, "randn|dtype")],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
