"""Optimizers: values recorded from PyTorch 2.15, state, saving, groups, hooks and messages."""

import copy
import pickle
import re

import pytest

import rushlight as torch

# name, options, the parameter after three steps (RAdam: seven), the keys of its state
RECORDED = [
    ("SGD", dict(), [0.955, -1.91, 0.32, 3.9775], []),
    (
        "SGD",
        dict(momentum=0.9, dampening=0.1, weight_decay=0.01),
        [0.851717, -1.703435, -0.074525, 3.907254],
        ["momentum_buffer"],
    ),
    ("SGD", dict(momentum=0.9, nesterov=True), [0.8254, -1.6508, -0.1984, 3.9127], ["momentum_buffer"]),
    ("SGD", dict(maximize=True), [1.045, -2.09, 0.68, 4.0225], []),
    ("Adam", dict(), [0.775544, -1.775544, 0.275544, 3.775545], ["step", "exp_avg", "exp_avg_sq"]),
    (
        "Adam",
        dict(amsgrad=True, weight_decay=0.1),
        [0.753411, -1.751754, 0.272711, 3.709717],
        ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"],
    ),
    ("AdamW", dict(), [0.772833, -1.769836, 0.274331, 3.763842], ["step", "exp_avg", "exp_avg_sq"]),
    (
        "AdamW",
        dict(maximize=True, amsgrad=True),
        [1.221173, -2.218176, 0.722672, 4.212182],
        ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"],
    ),
    ("Adamax", dict(weight_decay=0.1), [0.795451, -1.794217, 0.309621, 3.745128], ["step", "exp_avg", "exp_inf"]),
    (
        "NAdam",
        dict(weight_decay=0.1),
        [0.860853, -1.858781, 0.387096, 3.781691],
        ["step", "mu_product", "exp_avg", "exp_avg_sq"],
    ),
    (
        "NAdam",
        dict(weight_decay=0.1, decoupled_weight_decay=True),
        [0.863587, -1.833886, 0.378438, 3.774484],
        ["step", "mu_product", "exp_avg", "exp_avg_sq"],
    ),
    ("RAdam", dict(weight_decay=0.1), [0.896725, -1.789572, 0.248782, 3.771983], ["step", "exp_avg", "exp_avg_sq"]),
    (
        "Adagrad",
        dict(lr_decay=0.1, initial_accumulator_value=0.1),
        [0.919092, -1.908342, 0.40492, 3.941099],
        ["step", "sum"],
    ),
    (
        "Adadelta",
        dict(weight_decay=0.1),
        [0.999583, -1.999583, 0.499707, 3.999217],
        ["step", "square_avg", "acc_delta"],
    ),
    ("Adafactor", dict(), [0.9273, -1.709199, 0.338693, 3.959673], ["step", "row_var", "col_var"]),
    ("ASGD", dict(t0=1), [0.954971, -1.909942, 0.319989, 3.97738], ["step", "eta", "mu", "ax"]),
    (
        "RMSprop",
        dict(centered=True, momentum=0.5),
        [-0.833284, -0.166716, -1.333284, 2.166716],
        ["step", "square_avg", "momentum_buffer", "grad_avg"],
    ),
    ("RMSprop", dict(weight_decay=0.1), [0.100298, -0.938317, -0.375653, 2.300921], ["step", "square_avg"]),
    ("Rprop", dict(), [0.78, -1.78, 0.28, 3.78], ["step", "prev", "step_size"]),
    ("Muon", dict(), [0.919935, -1.619618, 0.28635, 3.801525], ["momentum_buffer"]),
]
NAMES = list(dict.fromkeys(name for name, *_ in RECORDED))
DIFFERENTIABLE = [n for n in NAMES if n not in ("Adafactor", "Muon")]


def start(dtype=torch.float32):
    return torch.tensor([[1.0, -2.0], [0.5, 4.0]], dtype=dtype, requires_grad=True)


def run(optimizer, p, steps):
    for i in range(steps):
        p.grad = torch.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=p.dtype) * (1 - i * 0.7)
        optimizer.step()
    return p.detach().flatten().tolist()


@pytest.mark.parametrize(("name", "options", "expected", "keys"), RECORDED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_state(name, options, expected, keys, dtype):
    p = start(dtype)
    optimizer = getattr(torch.optim, name)([p], lr=0.1, **options)
    # Muon works in bfloat16 inside
    tolerance = 5e-3 if name == "Muon" else 2e-6
    assert run(optimizer, p, 7 if name == "RAdam" else 3) == pytest.approx(expected, abs=tolerance)
    assert list(optimizer.state_dict()["state"].get(0, {})) == keys
    for key, value in optimizer.state[p].items():
        if key in ("step", "eta", "mu", "mu_product"):
            assert value.dtype == torch.float32 and value.shape == ()
        else:
            assert value.dtype == dtype


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_it_goes_on_as_before(name):
    a, b = start(), start()
    one = getattr(torch.optim, name)([a], lr=0.1)
    run(one, a, 3)
    with torch.no_grad():
        b.copy_(a)
    two = getattr(torch.optim, name)([b], lr=0.5)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    assert two.param_groups[0]["lr"] == 0.1
    assert run(two, b, 2) == run(one, a, 2)


@pytest.mark.parametrize(("name", "shapes"), [
    ("Adafactor", [(5,), (), (2, 3, 4), (8, 4), (4, 8), (0, 3), (1, 1)]),
    ("Muon", [(4, 8), (8, 4), (4, 8), (3, 3), (8, 4), (0, 3), (1, 7)]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_of_matrices_together_and_alone(name, shapes, dtype):
    def moved(groups):
        torch.manual_seed(0)
        params = [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]
        optimizers = [getattr(torch.optim, name)([params[i] for i in g], lr=0.1, weight_decay=0.1) for g in groups]
        for _ in range(3):
            for p in params:
                p.grad = torch.randn(p.shape, dtype=dtype)
            for optimizer in optimizers:
                optimizer.step()
        return params

    numbers = list(range(len(shapes)))
    for together, alone in zip(moved([numbers]), moved([[i] for i in numbers])):
        assert torch.equal(together, alone)
        assert together.isfinite().all()


def test_muon_pulls_singular_values_together():
    torch.manual_seed(0)
    for shape in ((6, 40), (40, 6), (16, 32)):
        p = torch.zeros(shape, requires_grad=True)
        p.grad = torch.randn(shape)
        torch.optim.Muon([p], lr=1.0, weight_decay=0, adjust_lr_fn="match_rms_adamw").step()
        u, s, vh = torch.linalg.svd(p.grad, full_matrices=False)
        values = torch.einsum("ji,jk,ik->i", u, -p.detach() / (0.2 * max(shape) ** 0.5), vh)
        assert 0.3 < values.min() < values.max() < 1.3
        assert s.max() / s.min() > values.max() / values.min()


def test_a_step_that_raises_moves_nothing():
    for options in ({"ns_steps": 100}, {"ns_coefficients": (1, 2)}):
        p = start()
        p.grad = torch.ones(2, 2)
        with pytest.raises(ValueError, match="less than 100|exactly 3"):
            torch.optim.Muon([p], **options).step()
        assert torch.equal(p, start())


@pytest.mark.parametrize(
    ("name", "spoil", "error"),
    [
        ("Adafactor", lambda group, state: state.update(row_var=torch.ones(7)), "row_var of shape"),
        ("Adafactor", lambda group, state: state.update(step=torch.ones(7)), "step must have one element"),
        ("Adafactor", lambda group, state: state.update(step=1.0), "Adafactor: params must be a list of Tensors"),
        ("Adafactor", lambda group, state: state.pop("col_var"), "Adafactor: params must be a list of Tensors"),
        ("Adafactor", lambda group, state: group.pop("d"), "d"),
        ("Muon", lambda group, state: state.update(momentum_buffer=torch.ones(7)), "momentum_buffer of shape"),
        ("Muon", lambda group, state: state.update(momentum_buffer=torch.ones(2, 2).double()), "and dtype"),
        ("Muon", lambda group, state: group["params"].append(None), "Muon: params must be a list of Tensors"),
        ("Muon", lambda group, state: group.update(adjust_lr_fn=1.5), "expected a name or None, not float"),
    ],
)
def test_what_does_not_fit_raises_before_anything_moves(name, spoil, error):
    params = [start(), start()]
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    for p in params:
        p.grad = torch.ones(2, 2)
    optimizer.step()
    before = [p.clone() for p in params] + [v.clone() for v in optimizer.state[params[0]].values()]
    spoil(optimizer.param_groups[0], optimizer.state[params[1]])
    with pytest.raises((RuntimeError, KeyError, TypeError), match=error):
        optimizer.step()
    for old, new in zip(before, params + list(optimizer.state[params[0]].values())):
        assert torch.equal(old, new)


@pytest.mark.parametrize("name", ["Adam", "Adafactor", "Muon"])
def test_params_in_a_tuple(name):
    p = start()
    optimizer = getattr(torch.optim, name)([p], lr=0.1)
    optimizer.param_groups[0]["params"] = (p,)
    p.grad = torch.ones(2, 2)
    optimizer.step()
    assert not torch.equal(p, start())


@pytest.mark.parametrize(("name", "options"), [("Adafactor", {}), ("Muon", {}), ("Muon", {"nesterov": False})])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_parameter_that_is_there_twice_moves_twice(name, options, dtype):
    p, q = start(dtype), start(dtype)
    with pytest.warns(UserWarning, match="duplicate"):
        twice = getattr(torch.optim, name)([p, p], lr=0.1, **options)
    once = getattr(torch.optim, name)([q], lr=0.1, **options)
    for scale in (1.0, -0.3):
        p.grad = torch.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=dtype) * scale
        q.grad = p.grad.clone()
        twice.step()
        once.step()
        once.step()
        assert torch.equal(p, q)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_differentiable_steps(name):
    def moved(lr, differentiable):
        q = start(torch.float64)
        p = q.clone() if differentiable else q
        optimizer = getattr(torch.optim, name)([p], lr=lr, differentiable=differentiable)
        for scale in (1.0, 0.3):
            p.grad = torch.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=torch.float64) * scale
            optimizer.step()
        return p, q

    plain, _ = moved(0.1, False)
    p, q = moved(0.1, True)
    assert torch.allclose(p, plain)
    p.sum().backward()
    assert q.grad is not None and bool((q.grad.abs() > 0.5).all())


def test_gradient_of_the_learning_rate():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    p = start(torch.float64).clone()
    optimizer = torch.optim.SGD([p], lr=lr, differentiable=True)
    p.grad = torch.ones(2, 2, dtype=torch.float64)
    optimizer.step()
    p.sum().backward()
    assert lr.grad.item() == pytest.approx(-4.0)


# options that give every optimizer's native step all that it has: each bool of the options is set in one of them
NATIVE = [
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.5, maximize=True)),
    ("Adam", dict(lr=0.1, weight_decay=0.05)),
    ("AdamW", dict(lr=0.1, amsgrad=True, maximize=True)),
    ("RMSprop", dict(weight_decay=0.05, maximize=True)),
    ("RMSprop", dict(centered=True)),
    ("RMSprop", dict(momentum=0.5)),
    ("RMSprop", dict(centered=True, momentum=0.5)),
    ("Adagrad", dict(lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.1, maximize=True)),
    ("Adadelta", dict(weight_decay=0.05, maximize=True)),
    ("Adamax", dict(weight_decay=0.05, maximize=True)),
    ("NAdam", dict(weight_decay=0.05)),
    ("NAdam", dict(weight_decay=0.05, decoupled_weight_decay=True, maximize=True)),
    ("RAdam", dict(weight_decay=0.05)),
    ("RAdam", dict(weight_decay=0.05, decoupled_weight_decay=True, maximize=True)),
    ("ASGD", dict(lr=0.1, lambd=0.01, t0=3, weight_decay=0.05)),
    ("ASGD", dict(maximize=True)),
    ("Rprop", dict()),
    ("Rprop", dict(etas=(0.3, 2), step_sizes=(0.005, 0.02), maximize=True)),
]


@pytest.mark.parametrize(("name", "options"), NATIVE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_native_step_equals_plain_arithmetic(name, options, dtype):
    torch.manual_seed(0)
    shapes = [(), (3,), (0, 2), (4, 5), (2, 3, 4), (70, 130)]
    values = [torch.randn(shape, dtype=dtype) for shape in shapes]
    grads = [[torch.randn(shape, dtype=dtype) for shape in shapes] for _ in range(8)]

    def final(rule):
        class Kind(getattr(torch.optim, name)):
            pass

        if rule is None:
            Kind._rule = None
        params = [v.clone().requires_grad_() for v in values]
        optimizer = Kind(params, **options)
        for some in grads:
            for p, g in zip(params, some):
                p.grad = g.mT.clone().mT if g.dim() > 1 else g.clone()
            optimizer.step()
        return params, [optimizer.state[p] for p in params]

    (params, states), (plain, plain_states) = final(True), final(None)
    for a, b in zip(params, plain):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)
    for a, b in zip(states, plain_states):
        assert list(a) == list(b)
        for key in a:
            assert torch.allclose(a[key], b[key], rtol=1e-4, atol=1e-6), key


@pytest.mark.parametrize("name", list(dict.fromkeys(name for name, _ in NATIVE)))
def test_native_step_applies(name):
    """To plain parameters, with options that are tensors too; where it refuses, the plain arithmetic takes over."""
    calls = []

    class Kind(getattr(torch.optim, name)):
        def _step_one(self, *args):
            calls.append(1)
            super()._step_one(*args)

    p, q, r = start(), start(), start()
    optimizer = Kind([{"params": [p]}, {"params": [q], "lr": torch.tensor(0.1)}, {"params": [r]}], lr=0.1)
    p.grad, q.grad = torch.ones(2, 2), torch.ones(2, 2)
    optimizer.step()
    assert not calls and torch.equal(p, q) and torch.equal(r, start())
    if "step" in optimizer.state[p]:
        state = optimizer.state[p]
        state["step"] = torch.tensor(1, dtype=torch.int64)
        optimizer.step()
        assert calls and state["step"].item() == 2


def test_counters_follow_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        p = start(torch.float64)
        optimizer = torch.optim.Adam([p], lr=0.1)
        run(optimizer, p, 2)
        assert optimizer.state[p]["step"].dtype == torch.float64 and optimizer.state[p]["step"].item() == 2
    finally:
        torch.set_default_dtype(torch.float32)


def test_parameters_without_gradient_are_left_alone():
    p, q = start(), start()
    optimizer = torch.optim.Adam([p, q], lr=0.1)
    run(optimizer, p, 2)
    assert torch.equal(q, start()) and q not in optimizer.state


def test_complex_parameters():
    p = torch.tensor([1 + 2j, -1j], requires_grad=True)
    r = torch.view_as_real(p).detach().clone().requires_grad_()
    for parameter, grad in ((p, torch.tensor([1j, 2 + 1j])), (r, torch.view_as_real(torch.tensor([1j, 2 + 1j])))):
        optimizer = torch.optim.Adam([parameter], lr=0.1)
        parameter.grad = grad.clone()
        optimizer.step()
    assert torch.allclose(torch.view_as_real(p.detach()), r)


def test_lbfgs_finds_the_minimum():
    for line_search in (None, "strong_wolfe"):
        p = torch.tensor([-1.0, 2.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([p], lr=1 if line_search else 0.1, max_iter=100, line_search_fn=line_search)

        def closure():
            optimizer.zero_grad()
            loss = (p[0] - 3) ** 2 + 10 * (p[1] + 1) ** 2 + 2
            loss.backward()
            return loss

        first = optimizer.step(closure)
        for _ in range(5):
            optimizer.step(closure)
        assert first.item() == pytest.approx(108.0)
        assert p.tolist() == pytest.approx([3.0, -1.0], abs=1e-4)


def test_lbfgs_line_search_on_rosenbrock():
    p = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert p.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    p = start()
    optimizer = torch.optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == pytest.approx(21.25)
    assert p.flatten().tolist() == pytest.approx([0.8, -1.6, 0.4, 3.2])


def test_groups():
    p, q = start(), start()
    optimizer = torch.optim.SGD([{"params": p}, {"params": [q], "lr": 1.0}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 1.0]
    r = start()
    optimizer.add_param_group({"params": r, "momentum": 0})
    assert optimizer.param_groups[2]["momentum"] == 0
    assert [g["params"] for g in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]
    names = torch.optim.SGD([("weight", p), ("bias", q)], lr=0.1)
    assert names.param_groups[0]["param_names"] == ["weight", "bias"]


def test_state_dict_layout_is_pytorchs():
    p = start()
    optimizer = torch.optim.AdamW([p], lr=0.1)
    run(optimizer, p, 1)
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["param_groups"][0]) == [
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "amsgrad",
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
        "fused",
        "decoupled_weight_decay",
        "params",
    ]
    assert state["state"][0]["step"].item() == 1


def test_old_checkpoints_load():
    p = start()
    optimizer = torch.optim.Adam([p], lr=0.1)
    run(optimizer, p, 1)
    state = optimizer.state_dict()
    for option in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"):
        del state["param_groups"][0][option]
    state["state"][0]["step"] = 5
    fresh = torch.optim.Adam([p], lr=0.1)
    fresh.load_state_dict(state)
    assert fresh.state[p]["step"].dtype == torch.float32 and fresh.state[p]["step"].item() == 5
    assert fresh.param_groups[0]["maximize"] is False
    run(fresh, p, 1)


def test_hooks():
    p = start()
    optimizer = torch.optim.SGD([p], lr=0.1)
    calls = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("post")),
        optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, state: calls.append("load")),
        torch.optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: calls.append("global")),
    ]
    run(optimizer, p, 1)
    assert calls == ["global", "pre", "post"]
    assert optimizer.state_dict()["more"] == 1
    optimizer.load_state_dict(optimizer.state_dict())
    assert calls[-1] == "load"
    for handle in handles:
        handle.remove()
    run(optimizer, p, 1)
    assert len(calls) == 4 and "more" not in optimizer.state_dict()


def test_hooks_get_the_arguments_of_the_step_and_may_replace_them():
    p = start()
    optimizer = torch.optim.SGD([p], lr=0.1)
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((len(args), args[0] is o, list(kwargs))))
    optimizer.step()
    optimizer.step(lambda: 5)
    optimizer.step(closure=lambda: 5)
    assert seen == [(1, True, []), (2, True, []), (1, True, ["closure"])]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    assert optimizer.step() == 7


def test_text_of_groups():
    groups = [{"params": [start()]}, {"params": [start()], "lr": 5}]
    assert "weight_decay: 0\n\nParameter Group 1\n" in repr(torch.optim.SGD(groups, lr=0.1))


def test_pickle_and_deepcopy():
    p = start()
    optimizer = torch.optim.Adam([p], lr=0.1)
    run(optimizer, p, 2)
    again = pickle.loads(pickle.dumps(optimizer))
    q = again.param_groups[0]["params"][0]
    assert run(again, q, 1) == run(optimizer, p, 1)


def test_zero_grad():
    p = start()
    optimizer = torch.optim.SGD([p], lr=0.1)
    p.grad = torch.ones(2, 2)
    optimizer.zero_grad(set_to_none=False)
    assert torch.equal(p.grad, torch.zeros(2, 2))
    optimizer.zero_grad()
    assert p.grad is None


def test_repr():
    text = repr(torch.optim.SGD([start()], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n") and text.endswith("    weight_decay: 0\n)")


def test_an_optimizer_of_ones_own():
    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(group["lr"] * p.grad.sign())

    p = start()
    optimizer = Signs([p], lr=0.5)
    seen = []
    optimizer.register_step_post_hook(lambda *a: seen.append(1))
    assert run(optimizer, p, 1) == [0.5, -1.5, 0.0, 3.5] and seen == [1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: torch.optim.SGD(p), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda p: torch.optim.SGD([]), ValueError, "empty parameter list"),
        (lambda p: torch.optim.SGD([p], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda p: torch.optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda p: torch.optim.SGD([1]), TypeError, "can only optimize Tensors"),
        (lambda p: torch.optim.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: torch.optim.SGD([{"params": p}, {"params": p}]), ValueError, "more than one parameter group"),
        (lambda p: torch.optim.SGD([{"params": {p}}]), TypeError, "ordered collections"),
        (lambda p: torch.optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: torch.optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: torch.optim.Adam([p], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda p: torch.optim.Muon([p[0].detach()]), ValueError, "only supports 2D parameters"),
        (lambda p: torch.optim.Rprop([p], etas=(2, 3)), ValueError, "Invalid eta values: 2, 3"),
    ],
)
def test_messages(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make(start())


def test_loading_another_number_of_parameters():
    one, two = torch.optim.SGD([start()], lr=1), torch.optim.SGD([start(), start()], lr=1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(two.state_dict())


def test_averaged_model_and_update_bn():
    swa = torch.optim.swa_utils
    model = torch.nn.Linear(2, 1)
    mean, ema = swa.AveragedModel(model), swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        mean.update_parameters(model)
        ema.update_parameters(model)
    assert mean.module.weight.tolist() == [[3.0, 3.0]] and mean.n_averaged.item() == 3
    assert ema.module.weight.tolist() == [[3.75, 3.75]]
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    swa.update_bn([torch.tensor([[1.0, 2.0], [3.0, 6.0]])], net)
    assert net[0].running_mean.tolist() == [2.0, 4.0] and net[0].momentum == 0.1


def test_a_parameter_that_is_listed_twice_moves_twice():
    """Not at the same time, by threads: PyTorch warns of such groups and steps one by one."""
    p = torch.nn.Parameter(torch.ones(200_000))
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer = torch.optim.SGD([p, p], lr=0.25)
    p.grad = torch.ones_like(p)
    optimizer.step()
    assert (p == 0.5).all()
