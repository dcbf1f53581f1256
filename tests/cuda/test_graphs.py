"""CUDA graphs: what is recorded is done at each replay, with memory of its own."""

import copy

import pytest

import rushlight as torch
from rushlight import nn

F = nn.functional


def test_work_is_done_at_replay():
    x, g = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        assert torch.cuda.is_current_stream_capturing()
        y = x * 2
        x += y
    assert not torch.cuda.is_current_stream_capturing() and x.tolist() == [1] * 4
    g.replay()
    assert x.tolist() == [3] * 4 and y.tolist() == [2] * 4
    x.copy_(torch.arange(4.0))
    g.replay()
    g.replay()
    assert x.tolist() == [0, 9, 18, 27] and y.tolist() == [0, 6, 12, 18]


def test_a_training_step():
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).cuda()
    recorded = copy.deepcopy(eager)
    batches = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(5)]

    def step(net, optimizer, x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (eager, recorded)]
    x, y = batches[0][0].cuda(), batches[0][1].cuda()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        loss = step(recorded, optimizers[1], x, y)
    for images, labels in batches:
        x.copy_(images)
        y.copy_(labels)
        g.replay()
        assert loss.item() == pytest.approx(step(eager, optimizers[0], images.cuda(), labels.cuda()).item(), rel=1e-4)
    for a, b in zip(eager.parameters(), recorded.parameters()):
        assert torch.allclose(a, b, atol=1e-5)


def test_memory_is_the_graphs_own():
    before = torch.cuda.memory_allocated()
    x, g = torch.ones(1 << 18, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = ((x + 1) * 2).exp()
    others = [torch.zeros(1 << 18, device="cuda") for _ in range(4)]
    torch.cuda.empty_cache()
    g.replay()
    assert torch.allclose(y.cpu(), torch.full((1 << 18,), 4.0).exp()) and all(not o.any() for o in others)
    del g, others, x, y
    assert torch.cuda.memory_allocated() == before
    torch.cuda.empty_cache()


def test_what_is_refused():
    x, g = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    for wrong, message in (
        (lambda: x.sum().item(), "stream is capturing"),
        (lambda: torch.rand(3, device="cuda"), "random numbers can't be drawn"),
        (lambda: torch.tensor([1.0], device="cuda"), "stream is capturing"),
        (torch.cuda.synchronize, "stream is capturing"),
    ):
        with pytest.raises(RuntimeError, match=message), torch.cuda.graph(torch.cuda.CUDAGraph()):
            wrong()
    with pytest.raises(RuntimeError, match="not captured"):
        g.replay()
    with pytest.raises(RuntimeError, match="default stream"):
        g.capture_begin()
    with torch.cuda.graph(g):
        x += 1
    with pytest.raises(RuntimeError, match="reset it first"), torch.cuda.graph(g):
        pass
    g.reset()
    with torch.cuda.graph(g):
        x += 2
    g.replay()
    assert x.tolist() == [3] * 3
