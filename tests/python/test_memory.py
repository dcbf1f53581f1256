"""CPU memory as the caching allocator counts it, and its bound when shapes vary."""

import os
import random

import pytest

import rushlight as torch
from rushlight import nn

MB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_cached():
    torch.cpu.empty_cache()
    torch.cpu.reset_peak_memory_stats()


def test_statistics_follow_tensors():
    def grown():  # a tensor's own few hundred bytes aside
        return round((torch.cpu.memory_allocated() - before) / MB, 2)

    before = torch.cpu.memory_allocated()
    x = torch.empty(8 * MB, dtype=torch.uint8)
    assert grown() == 8
    y = torch.empty(4 * MB, dtype=torch.uint8)
    del x
    assert grown() == 4 and y.nbytes == 4 * MB
    assert round((torch.cpu.max_memory_allocated() - before) / MB, 2) == 12
    torch.cpu.reset_peak_memory_stats()
    assert torch.cpu.max_memory_allocated() == torch.cpu.memory_allocated()


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="under the address sanitizer nothing is cached")
def test_cached_memory_is_used_again_and_given_back():
    torch.empty(64 * MB, dtype=torch.uint8).fill_(1)
    kept = torch.cpu.memory_reserved()
    assert kept >= torch.cpu.memory_allocated() + 64 * MB
    x = torch.empty(64 * MB, dtype=torch.uint8)
    assert torch.cpu.memory_reserved() == kept
    del x
    torch.cpu.empty_cache()
    assert torch.cpu.memory_reserved() < kept - 60 * MB


def test_memory_stays_bounded_while_shapes_vary():
    """What is held for many shapes is at most 1.3 times what the largest of them needs."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip

    def held_after(shapes):
        torch.cpu.empty_cache()
        for n, h, w in shapes:
            net.zero_grad()
            net(torch.randn(n, 3, h, w)).sum().backward()
        return torch.cpu.memory_reserved()

    draw = random.Random(0)
    shapes = [(draw.randint(1, 8), draw.randint(32, 128), draw.randint(32, 128)) for _ in range(60)]
    assert held_after(shapes) <= 1.3 * held_after([(8, 128, 128)] * 3)
