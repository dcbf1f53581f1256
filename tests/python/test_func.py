"""torch.func: derivatives of functions, nested in each other and over containers; functions over batches."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

X, Y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
BATCH = torch.arange(6.0).reshape(2, 3)


def same(tree, other):
    if isinstance(tree, dict):
        return list(tree) == list(other) and all(same(tree[k], other[k]) for k in tree)
    if isinstance(tree, (tuple, list)):
        return type(tree) is type(other) and len(tree) == len(other) and all(map(same, tree, other))
    return torch.allclose(tree, torch.as_tensor(other, dtype=tree.dtype))


def weighted(x, y):
    return (x * y * x).sum()


GRADS = {  # f, arguments, options, expected
    "first": (weighted, (X, Y), {}, 2 * X * Y),
    "second": (weighted, (X, Y), {"argnums": 1}, X * X),
    "last": (weighted, (X, Y), {"argnums": -1}, X * X),
    "both": (weighted, (X, Y), {"argnums": (0, 1)}, (2 * X * Y, X * X)),
    "tuple of one": (weighted, (X, Y), {"argnums": (0,)}, (2 * X * Y,)),
    "dict": (lambda d: (d["a"] * d["b"]).sum(), ({"a": X, "b": Y},), {}, {"a": Y, "b": X}),
    "list": (lambda pair: (pair[0] * pair[1]).sum(), ([X, Y],), {}, [Y, X]),
    "independent": (lambda x: Y.sum(), (X,), {}, torch.zeros(3)),
    "aux": (lambda x: (x.sum(), 2 * x), (X,), {"has_aux": True}, (torch.ones(3), 2 * X)),
}


@pytest.mark.parametrize("f, args, options, expected", GRADS.values(), ids=GRADS)
def test_grad(f, args, options, expected):
    assert same(grad(f, **options)(*args), expected)
    with torch.no_grad():
        assert same(grad(f, **options)(*args), expected)


def test_value_comes_along():
    gradient, value = grad_and_value(weighted)(X, Y)
    assert same(gradient, 2 * X * Y) and value == weighted(X, Y) and not value.requires_grad
    gradient, (value, aux) = grad_and_value(lambda x: (x.sum(), {"twice": 2 * x}), has_aux=True)(X)
    assert same(gradient, torch.ones(3)) and value == 6 and same(aux, {"twice": 2 * X})
    assert not aux["twice"].requires_grad


def test_derivatives_of_derivatives():
    x = torch.tensor(2.0)
    assert grad(grad(lambda x: x**3))(x) == 12 and grad(grad(grad(lambda x: x**3)))(x) == 6
    assert grad(lambda x: grad(lambda y: x * y * y)(x))(x) == 8  # d/dx of 2 x y at y = x
    assert torch.allclose(grad(grad(torch.sin))(x), -torch.sin(x))

    def partly_constant(x):
        with torch.no_grad():
            square = x**2
        return x * square

    assert grad(partly_constant)(x) == 4


def test_results_have_history_only_where_something_outside_needs_a_gradient():
    w = torch.tensor(2.0, requires_grad=True)
    assert not grad(lambda x: x**3)(torch.tensor(2.0)).requires_grad
    assert torch.autograd.grad(grad(lambda x: x**3)(w), w)[0] == 12
    through = grad(lambda x: x * x * w)(torch.tensor(3.0))
    assert through == 12 and torch.autograd.grad(through, w)[0] == 6 and w.grad is None
    with torch.no_grad():
        assert not grad(lambda x: x * w)(torch.tensor(3.0)).requires_grad
    assert vjp(lambda x: x * 2, w)[0].requires_grad and not vjp(lambda x: x * 2, X)[0].requires_grad


def test_products():
    output, pull = vjp(lambda x, y: x * y, X, Y)
    assert same(output, X * Y) and same(pull(torch.ones(3)), (Y, X)) and same(pull(2 * torch.ones(3)), (2 * Y, 2 * X))
    output, pull = vjp(lambda d: {"o": d["x"] * 2}, {"x": X})
    assert same(output, {"o": 2 * X}) and same(pull({"o": Y}), ({"x": 2 * Y},))
    assert same(vjp(lambda x: (x * 2, x * 3), X)[1]((X, Y)), (2 * X + 3 * Y,))
    assert same(vjp(lambda x: (x * 2, x * 3), X, has_aux=True)[2], 3 * X)
    assert same(jvp(torch.sin, (X,), (Y,)), (X.sin(), X.cos() * Y))
    assert same(jvp(lambda x, y: x * y, (X, Y), (Y, X)), (X * Y, Y * Y + X * X))
    assert same(jvp(lambda x: (x * 2, {"a": Y}), (X,), (Y,)), ((2 * X, {"a": Y}), (2 * Y, {"a": torch.zeros(3)})))
    assert same(jvp(lambda x: (x * 2, x * 3), (X,), (Y,), has_aux=True), (2 * X, 2 * Y, 3 * X))
    output, push = linearize(torch.sin, X)
    assert same(output, X.sin()) and same(push(Y), X.cos() * Y) and same(push(X), X.cos() * X)
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert same(jvp(lambda z: z * z, (z,), (torch.tensor([1j, 1 + 1j]),))[1], 2 * z * torch.tensor([1j, 1 + 1j]))
    tangent = Y.clone().requires_grad_()
    assert same(torch.autograd.grad(jvp(torch.sin, (X,), (tangent,))[1].sum(), tangent), (X.cos(),))


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians(jacobian):
    assert same(jacobian(torch.sin)(X), X.cos().diag())
    assert same(jacobian(lambda x, y: x * y, argnums=(0, 1))(X, Y), (Y.diag(), X.diag()))
    assert same(jacobian(lambda x: (x * 2, x.sum()))(X), (2 * torch.eye(3), torch.ones(3)))
    assert same(jacobian(lambda d: {"o": d["a"] * 2})({"a": X}), {"o": {"a": 2 * torch.eye(3)}})
    assert same(jacobian(lambda x: (x * 2, x.sum()), has_aux=True)(X), (2 * torch.eye(3), X.sum()))
    assert same(jacobian(lambda x: Y)(X), torch.zeros(3, 3))
    assert jacobian(lambda x: x.view(1, 4) * 2)(torch.ones(2, 2)).shape == (1, 4, 2, 2)
    assert jacobian(lambda x: x * 2)(torch.ones(0)).shape == (0, 0)
    assert same(jacobian(jacobian(lambda x: (x**3).sum()))(X), (6 * X).diag())


def test_hessian():
    assert same(hessian(lambda x: (x**3).sum())(X), (6 * X).diag())
    (xx, xy), (yx, yy) = hessian(weighted, argnums=(0, 1))(X, Y)
    assert same([xx, xy, yx, yy], [(2 * Y).diag(), (2 * X).diag(), (2 * X).diag(), torch.zeros(3, 3)])


def test_modules():
    net = nn.Linear(2, 1)
    own = dict(net.named_parameters())
    ones, zeros, points = torch.ones(1, 2), torch.zeros(1), torch.ones(3, 2)
    for arguments in (
        ({"weight": ones, "bias": zeros}, points),
        (({"weight": ones}, {"bias": zeros}), (points,)),
        ({"weight": ones, "bias": zeros}, None, {"input": points}),
    ):
        assert same(functional_call(net, *arguments), torch.full((3, 1), 2.0))
    assert net.weight is own["weight"]
    gradient = grad(lambda p: functional_call(net, p, points).sum())(own)
    assert same(gradient, {"weight": 3 * ones, "bias": torch.tensor([3.0])}) and net.weight.grad is None
    nets = [nn.Linear(2, 1) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    assert params["weight"].shape == (3, 1, 2) and params["weight"].is_leaf and params["weight"].requires_grad
    assert not buffers
    result = vmap(lambda p, b: functional_call(net, (p, b), points))(params, buffers)
    assert same(result, torch.stack([m(points) for m in nets]))
    result.sum().backward()
    assert same(params["bias"].grad, torch.full((3, 1), 3.0))
    _, buffers = stack_module_state([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])
    assert {name: tuple(b.shape) for name, b in buffers.items()} == {
        "running_mean": (2, 2),
        "running_var": (2, 2),
        "num_batches_tracked": (2,),
    }


VMAPS = {  # f, options, arguments, expected
    "first": (torch.sum, {}, (BATCH,), BATCH.sum(1)),
    "second": (torch.sum, {"in_dims": 1}, (BATCH,), BATCH.sum(0)),
    "one of two": (torch.mul, {"in_dims": (0, None)}, (BATCH, X), BATCH * X),
    "a number": (torch.mul, {"in_dims": (0, None)}, (BATCH, 2.0), BATCH * 2),
    "out": (lambda x: x * 2, {"out_dims": 1}, (BATCH,), 2 * BATCH.t()),
    "last": (lambda x: x, {"in_dims": -1, "out_dims": -1}, (BATCH,), BATCH),
    "tuple": (lambda x: (x * 2, x.sum()), {"out_dims": (1, 0)}, (BATCH,), (2 * BATCH.t(), BATCH.sum(1))),
    "dict": (lambda d: d["a"] * d["b"], {"in_dims": ({"a": 0, "b": None},)}, ({"a": BATCH, "b": X},), BATCH * X),
    "list": (lambda pair: pair[0] + pair[1], {}, ([BATCH, BATCH],), 2 * BATCH),
    "nested": (vmap(lambda x: x * 2), {}, (BATCH,), 2 * BATCH),
    "gradient": (grad(lambda x: (x**2).sum()), {}, (BATCH,), 2 * BATCH),
    "jacobian": (jacrev(torch.sin), {}, (BATCH,), torch.diag_embed(BATCH.cos())),
    "chunks": (lambda x: x * 2, {"chunk_size": 1}, (BATCH,), 2 * BATCH),
    "the same for all": (lambda x: X, {}, (BATCH,), X.expand(2, 3)),
    "the same, once": (lambda x: X, {"out_dims": None}, (BATCH,), X),
    "empty": (lambda x: x.sum(), {}, (torch.ones(0, 3),), torch.ones(0)),
}


@pytest.mark.parametrize("f, options, args, expected", VMAPS.values(), ids=VMAPS)
def test_vmap(f, options, args, expected):
    result = vmap(f, **options)(*args)
    assert same(result, expected) and torch.vmap is vmap
    if isinstance(result, torch.Tensor):
        assert result.shape == expected.shape


def test_vmap_of_random_functions():
    def f(x):
        return x.sum() * 0 + torch.rand(())

    assert len(vmap(f, randomness="different")(BATCH).unique()) == 2
    assert len(vmap(f, randomness="same")(BATCH).unique()) == 1
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(f)(BATCH)


RAISES = [
    (lambda: grad(weighted, argnums=5)(X, Y), RuntimeError, "Got argnum=5, but only 2 positional inputs"),
    (lambda: grad(weighted, argnums="a")(X, Y), RuntimeError, "argnums must be int or Tuple"),
    (lambda: grad(weighted, argnums=())(X, Y), RuntimeError, "argnums must be non-empty"),
    (lambda: grad(weighted, argnums=(0, 0))(X, Y), RuntimeError, "argnums elements must be unique"),
    (lambda: grad(lambda x: x)(X), RuntimeError, "to return a scalar Tensor, got tensor with 1 dims"),
    (lambda: grad(lambda x: 5)(X), RuntimeError, "to return a Tensor, got <class 'int'>"),
    (lambda: grad(torch.sum, has_aux=True)(X), RuntimeError, "should be a tuple: .output, aux"),
    (lambda: grad(torch.sum)(5), ValueError, "must be Tensor, got <class 'int'>"),
    (lambda: grad(torch.sum)(torch.ones(2, dtype=torch.int64)), RuntimeError, "can require gradients"),
    (lambda: vjp(torch.sin, X)[1](torch.ones(2)), RuntimeError, "Mismatch in shape"),
    (lambda: vjp(lambda x: (x, x), X)[1](X), RuntimeError, "structure of cotangents"),
    (lambda: vjp(lambda x: 5, X), RuntimeError, "to return only tensors"),
    (lambda: jvp(torch.sin, X, X), RuntimeError, "Expected primals to be a tuple"),
    (lambda: jvp(torch.sin, (X,), (X[:2],)), RuntimeError, "shape of its primal"),
    (lambda: jvp(torch.sin, (X,), (X, X)), RuntimeError, "same python structure"),
    (lambda: jvp(lambda x: Y, (X,), (X,), strict=True), RuntimeError, "independent of inputs"),
    (lambda: jacrev(torch.sin, chunk_size=0), ValueError, "should be greater than 0"),
    (lambda: jacrev(torch.sin)(torch.ones(2) * 1j), RuntimeError, "received complex tensor"),
    (lambda: functional_call(nn.Linear(2, 1), 5, X), ValueError, "to be a dict, or a list/tuple of dicts"),
    (lambda: functional_call(nn.Linear(2, 1), ({"bias": X}, {"bias": X}), X), ValueError, "multiple dictionaries"),
    (lambda: stack_module_state([]), RuntimeError, "at least one model"),
    (lambda: stack_module_state([nn.Linear(2, 1), nn.ReLU()]), RuntimeError, "of the same class"),
    (lambda: stack_module_state([nn.ReLU(), nn.ReLU().eval()]), RuntimeError, "same training/eval mode"),
    (lambda: vmap(torch.mul)(BATCH, X), ValueError, "same size in the mapped dimension"),
    (lambda: vmap(torch.sum, in_dims=None)(BATCH), ValueError, "to be int or a tuple"),
    (lambda: vmap(torch.sum, in_dims=(None,))(BATCH), ValueError, "at least one Tensor to vmap over"),
    (lambda: vmap(torch.mul)(BATCH, 2.0), ValueError, "cannot vmap over non-Tensor arguments"),
    (lambda: vmap(torch.sum, in_dims=3)(BATCH), ValueError, "expected in_dim to satisfy -2 <= in_dim < 2"),
    (lambda: vmap(lambda: X)(), ValueError, "got no inputs"),
    (lambda: vmap(lambda x: 5)(BATCH), ValueError, "must only return Tensors"),
    (lambda: vmap(lambda x: x, out_dims=None)(BATCH), ValueError, "one tensor for all elements"),
    (lambda: vmap(lambda x: (x, x), out_dims=(0,))(BATCH), ValueError, "out_dims is not compatible"),
    (lambda: vmap(torch.sum, randomness="bad")(BATCH), RuntimeError, "Only allowed values for randomness"),
]


@pytest.mark.parametrize("call, kind, message", RAISES)
def test_raises(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
