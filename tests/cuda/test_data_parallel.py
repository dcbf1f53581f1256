"""nn.DataParallel and the functions it is made of: results and gradients are those of one device."""

import collections
import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter

DEVICES = [torch.device("cuda:0"), torch.device("cuda:1")]
Pair = collections.namedtuple("Pair", "left right")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.tied = self.first
        self.second = nn.Linear(4, 2, bias=False)
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))
        self.layers = nn.ParameterList([nn.Parameter(torch.ones(2))])

    def forward(self, x, factor=1.0):
        assert self.scale.device == x.device == self.first.weight.device
        return self.second(torch.relu(self.tied(x))) * self.scale * factor * self.layers[0]


def test_scatter():
    x = torch.arange(10.0).reshape(5, 2)
    parts = scatter(x, [0, 1])
    assert [p.device for p in parts] == DEVICES and [p.tolist() for p in parts] == [x[:3].tolist(), x[3:].tolist()]
    assert [len(p) for p in scatter(x, [0, 1], dim=1)] == [5, 5]
    nested = scatter({"a": [x, "text"], "b": Pair(x, (x, 7)), "none": None}, [0, 1])
    assert len(nested) == 2 and nested[1]["a"][1] == "text" and nested[1]["none"] is None
    assert isinstance(nested[0]["b"], Pair) and nested[0]["b"].right[0].device == DEVICES[0]
    assert nested[1]["b"].right[1] == 7 and nested[1]["a"][0].tolist() == x[3:].tolist()
    assert len(scatter(x[:1], [0, 1])) == 1


def test_gather():
    a, b = torch.ones(2, 3, device="cuda:0"), torch.zeros(1, 3, device="cuda:1")
    joined = gather([a, b], 1)
    assert joined.device == DEVICES[1] and joined.tolist() == [[1.0] * 3, [1.0] * 3, [0.0] * 3]
    assert gather([a, b], "cpu").is_cpu
    nested = gather([{"x": a, "y": (a, None)}, {"x": b, "y": (b, None)}], 0)
    assert nested["x"].shape == (3, 3) and nested["y"][1] is None
    assert gather([Pair(a, a), Pair(b, b)], 0).left.shape == (3, 3)
    scalars = [torch.tensor(1.0, device="cuda:0"), torch.tensor(2.0, device="cuda:1")]
    assert gather(scalars, 0).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"x": a}, {"x": b, "y": b}], 0)


def test_scatter_and_gather_pass_gradients():
    x = torch.arange(5.0, device="cuda:0", requires_grad=True)
    left, right = scatter(x, [0, 1])
    (gather([left * 2, right * 3], 0) * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], device="cuda:0")).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 12.0, 15.0]


def test_replicate():
    net = Net().cuda()
    replicas = replicate(net, [0, 1])
    assert all(p.is_leaf for p in net.parameters()) and not list(replicas[1].parameters())
    assert replicas[1].first.weight.device == DEVICES[1] and replicas[1].tied is replicas[1].first
    assert replicas[1].scale.device == DEVICES[1] and replicas[0].scale is net.scale
    (replicas[1].first.weight.sum() * 3).backward()
    assert net.first.weight.grad.tolist() == [[3.0] * 3] * 4
    assert not replicate(net, [0, 1], detach=True)[1].first.weight.requires_grad


def test_parallel_apply():
    modules = [nn.Linear(2, 1).to(device) for device in DEVICES]
    inputs = [torch.ones(3, 2, device=device) for device in DEVICES]
    results = parallel_apply(modules, inputs)
    assert [r.device for r in results] == DEVICES
    assert all(torch.equal(r, m(x)) for r, m, x in zip(results, modules, inputs))
    with torch.no_grad():
        assert not parallel_apply(modules, inputs)[1].requires_grad

    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError(f"on {torch.cuda.current_device()}")

    with pytest.raises(KeyError, match="on 0"):
        parallel_apply([Fails(), Fails()], inputs, devices=[0, 1])


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
def test_data_parallel_is_like_one_device(batch):
    torch.manual_seed(0)
    alone = Net().cuda()
    many = nn.DataParallel(copy.deepcopy(alone))
    x = torch.randn(batch, 3).cuda()
    options = {"factor": 0.5} if batch > 1 else {}  # which goes to both devices, also where x is for one
    expected, result = alone(x, **options), many(x, **options)
    assert result.device == DEVICES[0] and torch.allclose(result, expected, atol=1e-6)
    expected.pow(2).sum().backward()
    result.pow(2).sum().backward()
    for (name, a), (_, b) in zip(alone.named_parameters(), many.module.named_parameters()):
        assert b.grad.device == DEVICES[0] and torch.allclose(a.grad, b.grad, atol=1e-5), name


def test_training_is_like_on_one_device():
    torch.manual_seed(1)
    nets = [Net().cuda()]
    nets.append(nn.DataParallel(copy.deepcopy(nets[0])))
    x, y = torch.randn(6, 3).cuda(), torch.randn(6, 2).cuda()
    losses = []
    for net in nets:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_options():
    net = Net().cuda(1)
    swapped = nn.DataParallel(net, device_ids=[1, 0], output_device="cuda:0")
    x = torch.randn(4, 3)
    out = swapped(x.cuda(1))
    assert out.device == DEVICES[0] and torch.allclose(out.cpu(), net(x.cuda(1)).cpu(), atol=1e-6)
    single = nn.DataParallel(Net(), device_ids=[1])
    assert single.module.scale.device == DEVICES[1] and single(x.cuda(1)).device == DEVICES[1]
    assert torch.allclose(data_parallel(net, x.cuda(1), device_ids=[1, 0]), net(x.cuda(1)), atol=1e-6)
    with pytest.raises(RuntimeError, match="must have its parameters and buffers on device cuda:0"):
        nn.DataParallel(net)(x)
    assert list(swapped.state_dict()) == ["module." + name for name in net.state_dict()]


def test_buffers_of_the_first_device_are_updated():
    net = nn.DataParallel(nn.BatchNorm1d(3).cuda())
    net(torch.randn(8, 3).cuda())
    assert net.module.num_batches_tracked.item() == 1 and net.module.running_mean.abs().sum().item() > 0
