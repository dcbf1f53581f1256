"""Layers keep what they packed of a weight from the second call on, until the weight changes: results must not tell."""

import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

CASES = {
    "linear": (lambda: torch.randn(40, 300), lambda: torch.randn(77, 300), F.linear),
    "linear of doubles": (lambda: torch.randn(40, 70).double(), lambda: torch.randn(77, 70).double(), F.linear),
    "linear of bfloat16": (lambda: torch.randn(40, 65).bfloat16(), lambda: torch.randn(90, 65).bfloat16(), F.linear),
    "linear of float16": (lambda: torch.randn(40, 64).half(), lambda: torch.randn(90, 64).half(), F.linear),
    "3x3": (lambda: torch.randn(1, 40, 14, 14), lambda: torch.randn(72, 40, 3, 3), F.conv2d),
    "3x3 of many": (lambda: torch.randn(8, 32, 28, 28), lambda: torch.randn(48, 32, 3, 3), F.conv2d),
}


def through_numpy(w):
    w.numpy()[...] *= 2


def through_memory(w):
    import ctypes

    ctypes.memset(w.data_ptr(), 0, w.nbytes)


def by_step(w):
    w.requires_grad_()
    w.grad = torch.ones_like(w)
    torch.optim.SGD([w], lr=0.5).step()
    w.requires_grad_(False)


CHANGES = {
    "in place": lambda w: w.mul_(2),
    "an element": lambda w: w.view(-1).__setitem__(3, 7.0),
    "through a view": lambda w: w[1:].zero_(),
    "through .data": lambda w: w.data.mul_(2),
    "through .detach()": lambda w: w.detach().add_(1),
    "out=": lambda w: torch.add(w, 1, out=w),
    "from another": lambda w: w.copy_(torch.ones(w.shape)),
    "NumPy": through_numpy,
    "its address": through_memory,
    "a step": by_step,
    "the storage": lambda w: w.untyped_storage().copy_(torch.ones_like(w).untyped_storage()),
}


@pytest.mark.parametrize("case", CASES)
def test_results_have_the_same_bits_before_and_after_packing(case):
    make_x, make_w, layer = CASES[case]
    torch.manual_seed(0)
    x, w = make_x(), make_w()
    before = torch.cpu.packed_weights()
    first = layer(x, w)
    assert all(torch.equal(layer(x, w), first) for _ in range(3))
    assert torch.cpu.packed_weights() > before
    other = make_x()
    assert torch.equal(layer(other, w), layer(other, w.clone()))
    del w
    assert torch.cpu.packed_weights() == before


@pytest.mark.parametrize("case", ["linear", "3x3"])
def test_what_is_used_once_is_not_kept(case):
    make_x, make_w, layer = CASES[case]
    x, w = make_x(), make_w()
    before = torch.cpu.packed_weights()
    for _ in range(3):  # as in training, where each step changes it
        layer(x, w)
        w.mul_(0.5)
    assert torch.cpu.packed_weights() == before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("case", ["linear", "3x3", "linear of float16"])
def test_a_changed_weight_is_packed_again(case, change):
    make_x, make_w, layer = CASES[case]
    x, w = make_x(), make_w()
    before = torch.cpu.packed_weights()
    for _ in range(3):
        old = layer(x, w)
    CHANGES[change](w)
    for _ in range(4):
        y = layer(x, w)
        assert torch.equal(y, layer(x, w.clone())) and not torch.equal(y, old)
    del w
    assert torch.cpu.packed_weights() == before


def test_memory_that_others_may_write_to_is_never_kept():
    x, array = torch.randn(40, 300), np.random.rand(77, 300).astype(np.float32)
    w = torch.from_numpy(array)
    for _ in range(4):
        F.linear(x, w)
    array[...] = 0
    assert not F.linear(x, w).any()
    w = torch.randn(77, 300)
    seen = w.numpy()
    for _ in range(4):
        F.linear(x, w)
    seen[...] = 0
    assert not F.linear(x, w).any()


def test_parts_of_one_weight_are_kept_apart():
    x, w = torch.randn(20, 64), torch.randn(3 * 64, 64)
    for _ in range(4):
        whole = F.linear(x, w)
        parts = [F.linear(x, part) for part in w.chunk(3)]
        turned = F.linear(x, w[:64].t())
    torch.testing.assert_close(torch.cat(parts, 1), whole)
    torch.testing.assert_close(turned, x @ w[:64])


def test_a_limit_bounds_what_is_kept():
    x, w = torch.randn(40, 300), torch.randn(77, 300)
    before, limit = torch.cpu.packed_weights(), torch.cpu.packed_weights_limit()
    assert limit > 0
    try:
        torch.cpu.set_packed_weights_limit(0)
        for _ in range(4):
            y = F.linear(x, w)
        assert torch.cpu.packed_weights() == before
    finally:
        torch.cpu.set_packed_weights_limit(limit)
    assert torch.equal(F.linear(x, w), y)
    with pytest.raises(ValueError, match="-1"):
        torch.cpu.set_packed_weights_limit(-1)


def test_autocast_keeps_the_casts_of_weights_without_gradients():
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
    x = torch.randn(20, 64)

    def run():
        with torch.no_grad(), torch.autocast("cpu"):
            return model(x)

    first = run()
    assert all(torch.equal(run(), first) for _ in range(4))
    with torch.no_grad():
        model[0].weight.mul_(2)
    assert not torch.equal(run(), first) and torch.equal(run(), run())
    with torch.autocast("cpu"):
        loss = model(x).float().sum()
    loss.backward()
    assert model[0].weight.grad.abs().sum() > 0


def test_training_goes_on_as_if_nothing_were_kept():
    def trained(accumulate, keep):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 36, 10))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            for _ in range(accumulate):
                F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(10, (4,))).backward()
            optimizer.step()
            optimizer.zero_grad()
            if keep:
                with torch.no_grad():
                    for _ in range(3):
                        model(torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1)))
        return [p.detach().clone() for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(trained(4, False), trained(4, True)))


def test_threads_may_read_while_another_changes_the_weight():
    x, w = torch.randn(32, 128), torch.randn(128, 128)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            F.linear(x, w)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for _ in range(300):
        w.add_(1)
    stop.set()
    for thread in readers:
        thread.join()
    assert torch.equal(F.linear(x, w), F.linear(x, w.clone()))
