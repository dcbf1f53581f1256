"""Reductions, scans, softmax and normalizations: values against NumPy, gradients against finite differences."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck


def values(*shape):
    """Distinct numbers around zero, as float64."""
    n = int(np.prod(shape))
    return ((np.arange(n) * 37 % (4 * n + 1)) / n - 1.7).reshape(shape)


REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "all": np.all,
    "count_nonzero": np.count_nonzero,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_along_a_dimension(name, dim, order):
    x = values(4, 70, 5)
    got = getattr(torch, name)(torch.from_numpy(x).permute(order), dim)
    np.testing.assert_allclose(got.numpy(), REDUCTIONS[name](x.transpose(order), axis=dim), rtol=1e-12)


@pytest.mark.parametrize("unbiased", [True, False])
def test_moments(unbiased):
    x = values(6, 50) + 1e4
    std, mean = torch.std_mean(torch.from_numpy(x), 1, unbiased)
    np.testing.assert_allclose(std.numpy(), x.std(1, ddof=int(unbiased)), rtol=1e-9)
    np.testing.assert_allclose(mean.numpy(), x.mean(1))


def test_named_results():
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]])
    best = x.max(1)
    assert best.values.tolist() == [3, 4] and best.indices.tolist() == [1, 0]
    assert x.median(0).values.tolist() == [1, 2] and x.kthvalue(2, 0).indices.tolist() == [1, 0]


def test_lu_names_its_results_with_infos():
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    named = torch.lu(x, get_infos=True)
    assert named.LU.tolist() == [[2, 3], [0, 1]] and named.pivots.tolist() == [2, 2] and named.info.item() == 0
    assert type(x.lu()) is tuple and x.lu()[0].equal(named.LU)


def test_ties_share_the_gradient_of_amax():
    x = torch.tensor([2.0, 5.0, 5.0], requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("n", [10, 5000, 100_003])
def test_cumsum_of_long_rows(n):
    x = np.arange(n) % 17 - 8
    assert np.array_equal(torch.from_numpy(x).cumsum(0).numpy(), x.cumsum())
    np.testing.assert_allclose(torch.from_numpy(x / 8).cumsum(0).numpy(), (x / 8).cumsum())


def test_empty():
    x = torch.zeros(0, 3)
    assert x.sum().item() == 0 and x.prod(0).tolist() == [1, 1, 1] and np.isnan(x.mean().item())
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        x.max(0)
    with pytest.raises(RuntimeError, match="max"):
        x.max()


def test_integers_have_no_mean():
    with pytest.raises(NotImplementedError, match="mean.*Got: Long"):
        torch.arange(3).mean()


DIFFERENTIABLE = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 2), keepdim=True),
    "prod": lambda x: x.prod(1),
    "prod_all": lambda x: x.prod(),
    "amax": lambda x: x.amax((0, 1)),
    "max": lambda x: x.max(1).values,
    "min_all": lambda x: x.min(),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std((0, 2), unbiased=False),
    "norm": lambda x: x.norm(2, 1),
    "norm3": lambda x: x.norm(3, 1),
    "norm1": lambda x: x.norm(1),
    "logsumexp": lambda x: x.logsumexp((0, 1)),
    "median": lambda x: x.median(1).values,
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1).values,
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "softmax": lambda x: x.softmax(1),
    "softmax_last": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
    "renorm": lambda x: x.renorm(2, 0, 1.5),
    "quantile": lambda x: x.quantile(0.3, 1),
    "layer_norm": lambda x: F.layer_norm(x, (4, 2)),
    "rms_norm": lambda x: F.rms_norm(x, (2,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1), 1),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    x = torch.from_numpy(values(3, 4, 2)).requires_grad_()
    assert gradcheck(DIFFERENTIABLE[name], (x,))
    assert gradgradcheck(DIFFERENTIABLE[name], (x,))


@pytest.mark.parametrize("position", [[], [1], [0, 2]])
def test_gradients_of_products_with_zeros(position):
    x = values(4)
    x[position] = 0
    x = torch.from_numpy(x).requires_grad_()
    assert gradcheck(torch.prod, (x,)) and gradcheck(lambda t: t.cumprod(0), (x,))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 6), (2, 4, 3, 5)])
def test_batch_norm_parameters(shape, training):
    x, w, b = (torch.from_numpy(values(*s)).requires_grad_() for s in (shape, (4,), (4,)))
    mean, var = torch.from_numpy(values(4)), torch.from_numpy(values(4) ** 2 + 0.5)

    def f(x, w, b):
        return F.batch_norm(x, mean.clone(), var.clone(), w, b, training=training)

    assert gradcheck(f, (x, w, b)) and gradgradcheck(f, (x, w, b))
    if len(shape) == 4:
        y = f(x.contiguous(memory_format=torch.channels_last), w, b)
        assert torch.allclose(y, f(x, w, b))


@pytest.mark.parametrize("norm", ["layer_norm", "group_norm", "rms_norm"])
def test_norm_parameters(norm):
    x, w, b = (torch.from_numpy(values(*s)).requires_grad_() for s in ((3, 4, 70), (4,), (4,)))
    if norm == "group_norm":
        f, args = lambda x, w, b: F.group_norm(x, 2, w, b), (x, w, b)
    elif norm == "layer_norm":
        f, args = lambda x, w, b: F.layer_norm(x.transpose(1, 2), (4,), w, b), (x, w, b)
    else:
        f, args = lambda x, w: F.rms_norm(x.transpose(1, 2), (4,), w), (x, w)
    assert gradcheck(f, args)


def test_running_statistics():
    x = torch.from_numpy(values(6, 4, 5))
    mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    F.batch_norm(x, mean, var, training=True, momentum=0.25)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.numpy().mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.numpy().var((0, 2), ddof=1))


def test_einsum_keeps_small_integers_where_nothing_is_added():
    a, b = torch.ones(3, 1, dtype=torch.int8), torch.ones(1, 2, dtype=torch.int8)
    assert torch.einsum("ij,jk->ik", a, b).dtype == torch.int8
    assert torch.einsum("ij->i", a).dtype == torch.int8
    assert torch.einsum("ij->i", b).dtype == torch.int64
    assert torch.equal(torch.einsum("ij,jk->ik", a.bool(), b.bool()), torch.ones(3, 2, dtype=torch.bool))


def test_einsum_adds_integers_as_int64():
    for dtype in (torch.bool, torch.uint8, torch.int32):
        x = torch.ones(200, 3, 2).to(dtype)
        assert torch.einsum("aij->i", x).tolist() == [400, 400, 400]
        assert torch.einsum("aij,i->ij", x, x[0, :, 0]).dtype == torch.int64
        assert torch.einsum("aij->aij", x).dtype == dtype
    x = torch.ones(2, 3, 4, dtype=torch.int32)
    assert torch.einsum("aij,aij->i", x, x).dtype == torch.int32
    assert torch.einsum("aij,ij->i", x, x[0]).tolist() == [8, 8, 8]
