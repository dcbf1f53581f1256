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


def test_pinned_memory_is_read_at_replay():
    x, there, g = torch.ones(4).pin_memory(), torch.empty(4, device="cuda"), torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.graph(g, stream=side):
        there.copy_(x, non_blocking=True)
        other = torch.empty(4, device="cuda:1")
        other.record_stream(side)
        del other
    x.fill_(3)
    g.replay()
    assert there.tolist() == [3] * 4


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


def test_random_numbers_are_new_at_each_replay():
    x, g = torch.ones(50, device="cuda"), torch.cuda.CUDAGraph()

    def work():
        return torch.rand(4, device="cuda"), F.dropout(x, 0.5), torch.randperm(5, device="cuda")

    torch.cuda.manual_seed(3)
    with torch.cuda.graph(g):
        recorded = work()
    torch.cuda.manual_seed(3)
    eager = [[t.tolist() for t in work()] for _ in range(3)]
    torch.cuda.manual_seed(3)
    for expected in eager:
        g.replay()
        assert [t.tolist() for t in recorded] == expected
    assert eager[0] != eager[1]


def same_training(net, recorded, batches):
    optimizers = [torch.optim.SGD(n.parameters(), lr=0.1, momentum=0.9) for n in (net, recorded)]
    for batch in batches:
        inputs = [batch.clone().requires_grad_() for _ in range(2)]
        for n, x, optimizer in zip((net, recorded), inputs, optimizers):
            optimizer.zero_grad()
            n(x).square().mean().backward()
            optimizer.step()
        assert torch.allclose(*(x.grad for x in inputs), atol=1e-6)
    for a, b in zip(net.parameters(), recorded.parameters()):
        assert torch.allclose(a, b, atol=1e-5)


def test_graphed_callables():
    torch.manual_seed(1)
    first, second = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).cuda(), nn.Linear(8, 2).cuda()
    net = copy.deepcopy(nn.Sequential(first, second))
    a, b = torch.cuda.make_graphed_callables(
        (first, second),
        (
            (torch.randn(5, 4, device="cuda", requires_grad=True),),
            (torch.randn(5, 8, device="cuda", requires_grad=True),),
        ),
    )
    assert a is first and b is second
    same_training(net, nn.Sequential(first, second), torch.randn(4, 5, 4, device="cuda"))
    other = torch.randn(3, 4, device="cuda")
    with pytest.raises(RuntimeError, match=r"recorded for torch.float32 of shape \(5, 4\) .*got .*\(3, 4\)"):
        first(other)
    first.eval()  # not the mode it was recorded in
    assert first(other).shape == (3, 8)


def test_graphed_functions():
    def f(x, y):
        return x * y, (x > 0)

    x, y = torch.randn(6, device="cuda", requires_grad=True), torch.randn(6, device="cuda")
    g = torch.cuda.make_graphed_callables(f, (x, y))
    for _ in range(2):
        a, b = torch.randn(6, device="cuda", requires_grad=True), torch.randn(6, device="cuda")
        product, positive = g(a, b)
        assert not positive.requires_grad and positive.tolist() == (a > 0).tolist()
        product.sum().backward()
        assert a.grad.tolist() == b.tolist() and product.tolist() == (a * b).tolist()
    with pytest.raises(TypeError, match="tensors"):
        torch.cuda.make_graphed_callables(lambda x: {"a": x}, (x,))
    with pytest.raises(TypeError, match="tensors"):
        torch.cuda.make_graphed_callables(f, (x, 2.0))


def test_what_is_refused():
    x, g = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    event = torch.cuda.Stream().record_event()
    for wrong, message in (
        (lambda: x.sum().item(), "stream is capturing"),
        (lambda: torch.rand(3, device="cuda", generator=torch.Generator("cuda")), "default generator only"),
        (lambda: torch.tensor([1.0], device="cuda"), "stream is capturing"),
        (torch.cuda.synchronize, "stream is capturing"),
        (lambda: torch.cuda.Stream().wait_stream(torch.cuda.current_stream()), "captured on one stream"),
        (lambda: torch.cuda.current_stream().wait_event(event), "captured on one stream"),
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
