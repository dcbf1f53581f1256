"""The number of threads changes the time a result takes, not one bit of it: work large enough to be split, both ways."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def leaf(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def numbers(high, *shape):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(7))


def network(build, *shape):
    """A module's result; its parameters' gradients are compared too."""

    def run():
        torch.manual_seed(0)
        module = build()
        x = leaf(*shape)
        out = module(x)
        return out[0] if isinstance(out, tuple) else out, [x, *module.parameters()]

    return run


def function(f, *shapes):
    def run():
        leaves = [leaf(*shape, seed=i) for i, shape in enumerate(shapes)]
        return f(*leaves), leaves

    return run


def adam():
    p = [leaf(300, 301), leaf(7)]
    optimizer = torch.optim.Adam(p, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        sum((q * q).sum() for q in p).backward()
        optimizer.step()
    return p[0].detach(), []


WORK = {
    "sum": function(torch.sum, (1000, 999)),
    "sum of columns": function(lambda x: x.sum(0), (3000, 333)),
    "sum of rows": function(lambda x: x.sum(1), (333, 3000)),
    "mean in half": function(lambda x: x.bfloat16().mean((0, 2)).float(), (64, 100, 100)),
    "var": function(lambda x: x.var((0, 2)), (64, 100, 100)),
    "prod": function(lambda x: (1 + x / 1000).prod(), (1000, 100)),
    "norm": function(torch.linalg.vector_norm, (1000, 999)),
    "logsumexp": function(lambda x: x.logsumexp(1), (100, 9999)),
    "softmax": function(lambda x: x.softmax(1), (100, 9999)),
    "cumsum": function(lambda x: x.cumsum(0), (300000,)),
    "cumprod": function(lambda x: (1 + x / 1000).cumprod(1), (30, 10000)),
    "gelu": function(F.gelu, (1000, 999)),
    "broadcast": function(lambda x, y: x * y + y, (1000, 999), (1000, 1)),
    "matmul": function(torch.matmul, (301, 257), (257, 303)),
    "matmul of doubles": function(lambda x, y: (x.double() @ y.double()).float(), (301, 257), (257, 303)),
    "matmul in half": function(lambda x, y: (x.bfloat16() @ y.bfloat16()).float(), (301, 257), (257, 303)),
    "row by matrix": function(torch.matmul, (1, 3001), (3001, 1001)),
    "bmm": function(torch.bmm, (33, 65, 70), (33, 70, 67)),
    "einsum": function(lambda x, y: torch.einsum("bij,bkj->ik", x, y), (33, 65, 70), (33, 67, 70)),
    "attention": function(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (2, 4, 150, 32)),
    "layer_norm": function(lambda x, w, b: F.layer_norm(x, (512,), w, b), (500, 512), (512,), (512,)),
    "cross_entropy": function(lambda x: F.cross_entropy(x, numbers(1000, 512)), (512, 1000)),
    "max_pool2d": function(lambda x: F.max_pool2d(x, 3, 2, 1), (8, 32, 56, 56)),
    "interpolate": function(lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), (4, 8, 64, 64)),
    "gather": function(lambda x: x.gather(1, numbers(500, 1000, 400)), (1000, 500)),
    "scatter_add": function(lambda x, y: x.scatter_add(1, numbers(500, 1000, 400), y), (1000, 500), (1000, 400)),
    "index": function(lambda x: x[numbers(1000, 5000)], (1000, 100)),
    "index_put": function(
        lambda x, y: x.index_put((numbers(1000, 5000),), y, accumulate=True), (1000, 100), (5000, 100)
    ),
    "embedding": function(lambda w: F.embedding(numbers(1000, 64, 128), w), (1000, 64)),
    "sort": function(lambda x: x.sort()[0], (300000,)),
    "transpose": function(lambda x: x.permute(0, 2, 3, 1).contiguous(), (8, 64, 56, 56)),
    "svd": function(lambda x: torch.linalg.svdvals(x), (128, 96)),
    "fft": function(lambda x: torch.fft.rfft(x).abs(), (64, 4096)),
    "conv1d": network(lambda: nn.Conv1d(16, 32, 5), 8, 16, 1000),
    "conv2d by Winograd": network(lambda: nn.Conv2d(32, 48, 3, padding=1), 4, 32, 45, 45),
    "conv2d, strided": network(lambda: nn.Conv2d(3, 32, 7, stride=2, padding=3), 4, 3, 99, 99),
    "conv2d, depthwise": network(lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), 4, 64, 56, 56),
    "conv2d, few pixels": network(lambda: nn.Conv2d(32, 48, 3, stride=2), 9, 32, 17, 17),
    "conv2d, 1x1": network(lambda: nn.Conv2d(64, 96, 1), 4, 64, 33, 33),
    "conv2d, dilated": network(lambda: nn.Conv2d(16, 16, 3, dilation=2, groups=2), 4, 16, 60, 60),
    "conv3d": network(lambda: nn.Conv3d(8, 8, 3), 2, 8, 20, 20, 20),
    "conv_transpose2d": network(lambda: nn.ConvTranspose2d(32, 16, 4, 2, 1), 8, 32, 16, 16),
    "conv_transpose2d, to few channels": network(lambda: nn.ConvTranspose2d(32, 3, 4, 2, 1), 3, 32, 32, 32),
    "batch_norm": network(lambda: nn.BatchNorm2d(64), 16, 64, 28, 28),
    "group_norm": network(lambda: nn.GroupNorm(8, 64), 16, 64, 28, 28),
    "lstm": network(lambda: nn.LSTM(64, 96, 2, batch_first=True), 16, 20, 64),
    "gru": network(lambda: nn.GRU(64, 96, bidirectional=True), 20, 16, 64),
    "adam": adam,
    "randn": lambda: (torch.randn(300001, generator=torch.Generator().manual_seed(3)), []),
    "dropout": network(lambda: nn.Dropout(0.3), 1000, 300),
}


@pytest.mark.parametrize("name", WORK)
def test_bits_do_not_depend_on_the_number_of_threads(name):
    def outcome(threads):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        out, leaves = WORK[name]()
        if leaves:
            weights = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(9))
            torch.autograd.backward(out, weights)
        return [out.detach().numpy().tobytes(), *(x.grad.numpy().tobytes() for x in leaves)]

    before = torch.get_num_threads()
    try:
        alone = outcome(1)
        for threads in (2, 3, 5):
            assert outcome(threads) == alone, f"{threads} threads"
    finally:
        torch.set_num_threads(before)
