"""Losses: what the recorded samples do not cover (second derivatives, errors, ignored targets, reductions)."""

import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck

torch.manual_seed(0)
X = torch.rand(4, 5, dtype=torch.float64)
Y = torch.rand(4, 5, dtype=torch.float64)
CLASSES = torch.tensor([1, 0, 4, 2])
SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5], dtype=torch.float64)

LOSSES = {
    "mse": lambda x, r: F.mse_loss(x, Y, reduction=r),
    "l1": lambda x, r: F.l1_loss(x, Y, reduction=r),
    "smooth_l1": lambda x, r: F.smooth_l1_loss(x, Y, reduction=r, beta=0.3),
    "huber": lambda x, r: F.huber_loss(x, Y, reduction=r, delta=0.3),
    "nll": lambda x, r: F.nll_loss(x, CLASSES, reduction=r),
    "cross_entropy": lambda x, r: F.cross_entropy(x, CLASSES, reduction=r),
    "cross_entropy_weighted": lambda x, r: F.cross_entropy(x, CLASSES, WEIGHT, ignore_index=4, reduction=r),
    "cross_entropy_smoothed": lambda x, r: F.cross_entropy(x, CLASSES, WEIGHT, reduction=r, label_smoothing=0.2),
    "cross_entropy_probabilities": lambda x, r: F.cross_entropy(x, Y, reduction=r),
    "binary_cross_entropy": lambda x, r: F.binary_cross_entropy(x, Y, reduction=r),
    "binary_cross_entropy_with_logits": lambda x, r: F.binary_cross_entropy_with_logits(x, Y, reduction=r),
    "kl_div": lambda x, r: F.kl_div(x, Y, reduction=r),
    "poisson_nll": lambda x, r: F.poisson_nll_loss(x, Y, reduction=r),
    "soft_margin": lambda x, r: F.soft_margin_loss(x, Y, reduction=r),
    "multi_margin": lambda x, r: F.multi_margin_loss(x, CLASSES, p=2, weight=WEIGHT, reduction=r),
    "multilabel_margin": lambda x, r: F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1, 2]] * 4), reduction=r),
    "triplet_margin": lambda x, r: F.triplet_margin_loss(x, Y, Y * 2, swap=True, reduction=r),
    "cosine_embedding": lambda x, r: F.cosine_embedding_loss(x, Y, SIGNS, margin=0.1, reduction=r),
    "margin_ranking": lambda x, r: F.margin_ranking_loss(x[:, 0], Y[:, 0], SIGNS, margin=0.1, reduction=r),
    "hinge_embedding": lambda x, r: F.hinge_embedding_loss(x[:, 0], SIGNS, reduction=r),
}


@pytest.mark.parametrize("name", LOSSES)
def test_reductions(name):
    loss = LOSSES[name]
    losses = loss(X, "none")
    assert loss(X, "sum").item() == pytest.approx(losses.sum().item())
    if "weighted" not in name and "smoothed" not in name:
        assert loss(X, "mean").item() == pytest.approx(losses.mean().item())
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        loss(X, "average")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, reduction):
    x = X.clone().requires_grad_()
    assert gradcheck(lambda x: LOSSES[name](x, reduction), (x,))
    if name != "multilabel_margin":
        assert gradgradcheck(lambda x: LOSSES[name](x, reduction), (x,))


def test_cross_entropy_of_images():
    x = torch.rand(2, 3, 4, 300, dtype=torch.float64)
    target = torch.randint(0, 3, (2, 4, 300))
    target[0, 1] = -100
    logs = F.log_softmax(x, 1)
    assert torch.allclose(F.cross_entropy(x, target, reduction="none"), F.nll_loss(logs, target, reduction="none"))
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    F.cross_entropy(a, target).backward()
    F.nll_loss(F.log_softmax(b, 1), target).backward()
    assert torch.allclose(a.grad, b.grad)


def test_cross_entropy_of_one_sample():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor(2))
    assert loss.shape == ()
    assert loss.item() == pytest.approx(math.log(math.exp(-2) + math.exp(-1) + 1))
    loss.backward()
    assert x.grad.sum().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_all_ignored_has_no_gradient(smoothing):
    x = torch.randn(2, 3, requires_grad=True)
    F.cross_entropy(x, torch.tensor([1, 1]), ignore_index=1, label_smoothing=smoothing).backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_all_ignored_is_nan():
    assert math.isnan(F.cross_entropy(torch.rand(2, 3), torch.tensor([-100, -100])).item())
    assert F.cross_entropy(torch.rand(2, 3), torch.tensor([-100, -100]), reduction="sum").item() == 0


ERRORS = [
    (IndexError, "Target 5 is out of bounds", lambda: F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 5]))),
    (IndexError, "Target -1 is out of bounds", lambda: F.nll_loss(torch.rand(2, 3), torch.tensor([0, -1]))),
    (ValueError, "batch_size", lambda: F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 1, 2]))),
    (RuntimeError, "expected scalar type Long", lambda: F.cross_entropy(torch.rand(2, 3), torch.rand(2))),
    (RuntimeError, "weight tensor", lambda: F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 1]), torch.rand(2))),
    (RuntimeError, "between 0 and 1", lambda: F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))),
    (RuntimeError, "negative values for beta", lambda: F.smooth_l1_loss(torch.rand(2), torch.rand(2), beta=-1.0)),
    (RuntimeError, "non-positive values for delta", lambda: F.huber_loss(torch.rand(2), torch.rand(2), delta=0.0)),
]


@pytest.mark.parametrize(("kind", "message", "call"), ERRORS)
def test_errors(kind, message, call):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("joined", [False, True])
def test_ctc_against_all_alignments(joined):
    """Over three steps and the target [1, 2], the alignments are few enough to write down."""
    logs = F.log_softmax(torch.rand(3, 1, 3, dtype=torch.float64), -1)
    p = logs.exp()[:, 0]
    ways = [(0, 1, 2), (1, 0, 2), (1, 2, 0), (1, 1, 2), (1, 2, 2)]
    total = sum(p[0, a] * p[1, b] * p[2, c] for a, b, c in ways)
    targets = torch.tensor([1, 2]) if joined else torch.tensor([[1, 2, 0]])
    loss = F.ctc_loss(logs, targets, torch.tensor([3]), torch.tensor([2]), reduction="sum")
    assert loss.item() == pytest.approx(-math.log(total.item()))


def test_ctc_gradient():
    raw = torch.rand(5, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])
    assert gradcheck(lambda x: F.ctc_loss(F.log_softmax(x, -1), targets, (5, 4), (3, 2)), (raw,))


def test_ctc_impossible():
    logs = F.log_softmax(torch.rand(1, 1, 3), -1).requires_grad_()
    assert F.ctc_loss(logs, torch.tensor([[1, 2]]), (1,), (2,)).item() == math.inf
    loss = F.ctc_loss(logs, torch.tensor([[1, 2]]), (1,), (2,), zero_infinity=True)
    assert loss.item() == 0
    loss.backward()
    assert logs.grad.abs().sum().item() == 0


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_of_a_target_longer_than_the_input(zero_infinity):
    scores = torch.zeros(3, 2, 4).log_softmax(2).requires_grad_()
    targets = torch.tensor([[1, 2, 3, 1], [1, 2, 2, 0]])
    loss = F.ctc_loss(scores, targets, (3, 3), (4, 2), reduction="none", zero_infinity=zero_infinity)
    # The second row's alignments in three steps: 1 2 with one of five places for a blank or a repetition.
    assert loss[0].item() == (0.0 if zero_infinity else math.inf)
    assert loss[1].item() == pytest.approx(3 * math.log(4) - math.log(5), rel=1e-6)
    loss.sum().backward()
    first, second = scores.grad.unbind(1)
    assert first.eq(0).all() if zero_infinity else first.isnan().all()
    assert second.isfinite().all()


def test_cosine_embedding_loss_of_unsigned_targets():
    a, b = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    target = torch.tensor([1, -1]).to(torch.uint8)
    loss = F.cosine_embedding_loss(a, b, target, margin=0.25, reduction="none")
    torch.testing.assert_close(loss, torch.tensor([1.0, 0.75]))
