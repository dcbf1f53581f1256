"""Automatic mixed precision: which operators cast, scopes, the cast cache, custom functions, gradient scaling."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.amp import GradScaler, custom_bwd, custom_fwd

F = torch.nn.functional
BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


def bf16():
    return torch.autocast("cpu", dtype=BF16)


def floats(*shape, dtype=F32):
    return torch.rand(*shape).to(dtype) / 2 + 0.25


SHORT = {  # PyTorch's list for the CPU: operators that compute in the shorter type
    "mm": lambda d: torch.mm(floats(3, 4, dtype=d), floats(4, 2, dtype=d)),
    "matmul": lambda d: torch.matmul(floats(2, 3, 4, dtype=d), floats(4, 2, dtype=d)),
    "bmm": lambda d: torch.bmm(floats(2, 3, 4, dtype=d), floats(2, 4, 2, dtype=d)),
    "addmm": lambda d: torch.addmm(floats(3, 2, dtype=d), floats(3, 4, dtype=d), floats(4, 2, dtype=d)),
    "linear": lambda d: F.linear(floats(3, 4, dtype=d), floats(2, 4, dtype=d), floats(2, dtype=d)),
    "conv2d": lambda d: F.conv2d(floats(1, 2, 5, 5, dtype=d), floats(3, 2, 3, 3, dtype=d)),
    "conv_transpose1d": lambda d: F.conv_transpose1d(floats(1, 2, 5, dtype=d), floats(2, 3, 3, dtype=d)),
    "attention": lambda d: F.scaled_dot_product_attention(*(floats(1, 2, 4, 8, dtype=d) for _ in range(3))),
    "einsum": lambda d: torch.einsum("ij,jk->ik", floats(3, 4, dtype=d), floats(4, 2, dtype=d)),
}
WIDE = {  # in float32
    "mse_loss": lambda d: F.mse_loss(floats(3, dtype=d), floats(3, dtype=d)),
    "nll_loss": lambda d: F.nll_loss(floats(3, 4, dtype=d), torch.tensor([0, 1, 2])),
    "bce_with_logits": lambda d: F.binary_cross_entropy_with_logits(floats(3, dtype=d), floats(3, dtype=d)),
    "bce": lambda d: F.binary_cross_entropy(floats(3, dtype=d), floats(3, dtype=d)),
    "prod": lambda d: torch.prod(floats(3, dtype=d)),
    "cdist": lambda d: torch.cdist(floats(3, 2, dtype=d), floats(4, 2, dtype=d)),
    "trace": lambda d: torch.trace(floats(3, 3, dtype=d)),
    "avg_pool3d": lambda d: F.avg_pool3d(floats(1, 1, 4, 4, 4, dtype=d), 2),
}
AS_INPUT = {
    "add": lambda d: floats(3, dtype=d) + floats(3, dtype=d),
    "exp": lambda d: torch.exp(floats(3, dtype=d)),
    "softmax": lambda d: torch.softmax(floats(3, dtype=d), 0),
    "layer_norm": lambda d: F.layer_norm(floats(3, 4, dtype=d), (4,)),
    "relu": lambda d: torch.relu(floats(3, dtype=d)),
}


@pytest.mark.parametrize("given", [F32, BF16])
@pytest.mark.parametrize("name", [*SHORT, *WIDE, *AS_INPUT])
def test_operators_choose_their_type(name, given):
    expected = BF16 if name in SHORT else F32 if name in WIDE else given
    call = {**SHORT, **WIDE, **AS_INPUT}[name]
    with bf16():
        assert call(given).dtype == expected
        with torch.autocast("cpu", enabled=False):
            assert call(F32).dtype == F32


def test_the_result_is_that_of_cast_arguments():
    a, b = floats(3, 4), floats(4, 2)
    with bf16():
        got = a @ b
    assert torch.equal(got, a.to(BF16) @ b.to(BF16))


def test_widest_and_double():
    with bf16():
        assert torch.cat([floats(2), floats(2, dtype=BF16)]).dtype == F32
        assert torch.stack([floats(2, dtype=BF16), floats(2, dtype=BF16)]).dtype == BF16
        with pytest.raises(RuntimeError):
            torch.mm(floats(2, 2, dtype=F64), floats(2, 2))  # float64 takes no part
        assert torch.mm(floats(2, 2, dtype=F64), floats(2, 2, dtype=F64)).dtype == F64


def test_in_place_and_out_stay():
    x, out = floats(2, 2), torch.empty(2, 2)
    with bf16():
        x.addmm_(floats(2, 2), floats(2, 2))
        assert x.dtype == F32
        torch.mm(floats(2, 2), floats(2, 2), out=out)
        assert out.dtype == F32


def test_gradients_reach_float32_parameters():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)
    x = floats(5, 4)
    with bf16():
        y = layer(x)
        assert y.dtype == BF16
        loss = F.cross_entropy(y, torch.tensor([0, 1, 2, 0, 1]))
        assert loss.dtype == F32
    loss.backward()
    assert layer.weight.grad.dtype == F32 and layer.weight.grad.abs().sum() > 0
    exact = copy.deepcopy(layer)
    exact.zero_grad()
    F.cross_entropy(exact(x), torch.tensor([0, 1, 2, 0, 1])).backward()
    assert torch.allclose(layer.weight.grad, exact.weight.grad, atol=2e-2)


def casts(function):
    nodes, names, seen = [function().grad_fn], [], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        names.append(node.name())
        nodes += [n for n, _ in node.next_functions]
    return sum(name.startswith("Cast") for name in names)


@pytest.mark.parametrize("cache", [True, False])
def test_a_parameter_is_cast_once(cache):
    w, x = floats(3, 3).requires_grad_(), floats(3, 3)
    with torch.autocast("cpu", cache_enabled=cache):
        count = casts(lambda: x @ w @ w @ w)
    assert count == (1 if cache else 3)


def test_the_cache_ends_with_the_scope():
    w = floats(2, 2).requires_grad_()
    with bf16():
        first = (floats(2, 2) @ w).sum()
    with torch.no_grad():
        w.mul_(0)
    with bf16():
        assert (floats(2, 2) @ w).abs().sum() == 0
        with torch.no_grad():
            floats(2, 2) @ w
        assert (floats(2, 2) @ w).requires_grad  # what no_grad cast has no history and is not used again
    assert first.requires_grad


def test_scopes_nest_and_restore():
    assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == BF16
    context = torch.autocast("cpu", dtype=F16)
    with context, context:
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == F16
        assert torch.mm(floats(2, 2), floats(2, 2)).dtype == F16
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == BF16
    with pytest.raises(KeyError), torch.autocast("cpu"):
        raise KeyError
    assert not torch.is_autocast_enabled("cpu")

    @torch.autocast("cpu")
    def decorated():
        return torch.mm(floats(2, 2), floats(2, 2))

    assert decorated().dtype == BF16 and decorated.__name__ == "decorated"
    with torch.cpu.amp.autocast():
        assert torch.is_autocast_enabled("cpu")


def test_wrong_arguments():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu'"):
        torch.autocast("tpu")
    with pytest.raises(ValueError, match="device_type"):
        torch.autocast(3)
    with pytest.warns(UserWarning, match="target dtype is not supported"), torch.autocast("cpu", dtype=F64):
        assert not torch.is_autocast_enabled("cpu")


def test_custom_functions():
    seen = {}

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen["backward"] = torch.is_autocast_enabled("cpu")
            a, b = ctx.saved_tensors
            return grad @ b.T, a.T @ grad

    class InFloat(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=F32)
        def forward(ctx, x, options):
            seen["dtype"], seen["enabled"] = x.dtype, torch.is_autocast_enabled("cpu")
            return x * options["scale"][0]

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad, None

    a, b = floats(2, 2).requires_grad_(), floats(2, 2).requires_grad_()
    with bf16():
        y = Product.apply(a, b)
        z = InFloat.apply(y, {"scale": [2.0]})
    assert y.dtype == BF16 and seen["dtype"] == F32 and not seen["enabled"]
    z.sum().backward()
    assert seen["backward"] and a.grad.dtype == F32


def test_checkpoint_recomputes_in_the_same_types():
    layer = torch.nn.Linear(4, 4)
    x = floats(2, 4).requires_grad_()
    with bf16():
        y = torch.utils.checkpoint.checkpoint(lambda x: layer(layer(x)), x, use_reentrant=False)
    y.float().sum().backward()
    got = x.grad
    x.grad = None
    with bf16():
        y = layer(layer(x))
    y.float().sum().backward()
    assert torch.equal(got, x.grad)


# ---- gradient scaling ----


def training(scaler):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, floats(8, 4), floats(8, 1), scaler


def test_scaled_steps_are_the_plain_ones():
    plain, optimizer, x, y, _ = training(None)
    F.mse_loss(plain(x), y).backward()
    optimizer.step()
    model, optimizer, x, y, scaler = training(GradScaler("cpu", init_scale=1024.0))
    loss = F.mse_loss(model(x), y)
    scaled = scaler.scale(loss)
    assert scaled.item() == loss.item() * 1024
    scaled.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    scaler.update()
    for a, b in zip(plain.parameters(), model.parameters()):
        assert torch.allclose(a, b, rtol=1e-6)


def test_overflow_skips_and_backs_off_and_growth():
    model, optimizer, x, y, scaler = training(GradScaler("cpu", init_scale=4.0, growth_interval=2))
    before = [p.detach().clone() for p in model.parameters()]
    scaler.scale(F.mse_loss(model(x), y) * float("inf")).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert scaler.get_scale() == 2.0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    for expected in (2.0, 4.0, 4.0, 8.0):
        optimizer.zero_grad()
        scaler.scale(F.mse_loss(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters()))


def test_several_optimizers_and_dtypes():
    scaler = GradScaler("cpu", init_scale=8.0)
    params = [torch.ones(3, dtype=d).requires_grad_() for d in (F32, F64, BF16)]
    odd = torch.ones(4, 4).t()[1:].requires_grad_()
    first, second = torch.optim.SGD(params, lr=1.0), torch.optim.SGD([odd], lr=1.0)
    scaler.scale(sum(p.float().sum() for p in params)).backward()
    odd.grad = torch.full_like(odd, float("nan"))
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert all((p == 0).all() for p in params) and (odd == 1).all()
    assert scaler.get_scale() == 4.0


def test_half_gradients_are_refused():
    p = torch.ones(2, dtype=F16).requires_grad_()
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("cpu")
    scaler.scale(p.float().sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.unscale_(optimizer)


def test_scaler_state():
    scaler = GradScaler("cpu", init_scale=16.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=7)
    assert scaler.state_dict() == {
        "scale": 16.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 7, "_growth_tracker": 0,
    }  # fmt: skip
    other = GradScaler("cpu")
    assert other.get_scale() == 65536.0 and other.get_growth_interval() == 2000
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()
    with pytest.raises(AssertionError, match="_scale is None"):
        other.step(torch.optim.SGD([torch.ones(1).requires_grad_()], lr=1.0))
    off = GradScaler("cpu", enabled=False)
    assert off.state_dict() == {} and off.get_scale() == 1.0 and off.scale(3) == 3
    with pytest.raises(ValueError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(ValueError, match="backoff factor"):
        GradScaler("cpu", backoff_factor=1.0)
    scaler.scale([floats(1), (floats(1),)])
    scaler.update(2.5)
    assert scaler.get_scale() == 2.5
