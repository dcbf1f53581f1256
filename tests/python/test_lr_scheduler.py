"""Learning rate schedules against values recorded from PyTorch 2.15, and their states."""

import pytest

import rushlight as torch

# name, options, the rate of a group with lr=0.1 in epochs 0 to 7
RECORDED = [
    (
        "LambdaLR",
        dict(lr_lambda=lambda e: 0.9**e),
        [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969],
    ),
    (
        "MultiplicativeLR",
        dict(lr_lambda=lambda e: 0.9),
        [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969],
    ),
    ("StepLR", dict(step_size=3, gamma=0.5), [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025]),
    ("MultiStepLR", dict(milestones=[2, 5, 5]), [0.1, 0.1, 0.01, 0.01, 0.01, 0.0001, 0.0001, 0.0001]),
    ("ConstantLR", dict(factor=0.5, total_iters=4), [0.05, 0.05, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1]),
    ("LinearLR", dict(start_factor=0.25, total_iters=4), [0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1, 0.1]),
    ("ExponentialLR", dict(gamma=0.9), [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969]),
    (
        "CosineAnnealingLR",
        dict(T_max=4, eta_min=0.01),
        [0.1, 0.086819805, 0.055, 0.023180195, 0.01, 0.023180195, 0.055, 0.086819805],
    ),
    (
        "PolynomialLR",
        dict(total_iters=6, power=2.0),
        [0.1, 0.069444444, 0.044444444, 0.025, 0.011111111, 0.0027777778, 0.0, 0.0],
    ),
    (
        "CyclicLR",
        dict(base_lr=0.01, max_lr=0.1, step_size_up=3, step_size_down=4),
        [0.01, 0.04, 0.07, 0.1, 0.0775, 0.055, 0.0325, 0.01],
    ),
    (
        "CyclicLR",
        dict(base_lr=0.01, max_lr=0.1, step_size_up=3, mode="triangular2"),
        [0.01, 0.04, 0.07, 0.1, 0.07, 0.04, 0.01, 0.025],
    ),
    (
        "CyclicLR",
        dict(base_lr=0.01, max_lr=0.1, step_size_up=3, mode="exp_range", gamma=0.9),
        [0.01, 0.037, 0.0586, 0.07561, 0.049366, 0.0277147, 0.01, 0.024348907],
    ),
    (
        "CyclicLR",
        dict(base_lr=0.01, max_lr=0.1, step_size_up=3, scale_fn=lambda x: 0.5 / x),
        [0.01, 0.025, 0.04, 0.055, 0.04, 0.025, 0.01, 0.0175],
    ),
    (
        "CosineAnnealingWarmRestarts",
        dict(T_0=3, T_mult=2, eta_min=0.001),
        [0.1, 0.07525, 0.02575, 0.1, 0.093368257, 0.07525, 0.0505, 0.02575],
    ),
    (
        "OneCycleLR",
        dict(max_lr=0.5, total_steps=10),
        [0.02, 0.26, 0.5, 0.47524232, 0.40587283, 0.30563101, 0.19437099, 0.094129173],
    ),
    (
        "OneCycleLR",
        dict(max_lr=0.5, total_steps=10, three_phase=True, anneal_strategy="linear"),
        [0.02, 0.26, 0.5, 0.26, 0.02, 0.0160004, 0.0120008, 0.0080012],
    ),
    ("SWALR", dict(swa_lr=0.02, anneal_epochs=4), [0.1, 0.088284271, 0.06, 0.031715729, 0.02, 0.02, 0.02, 0.02]),
    (
        "SWALR",
        dict(swa_lr=0.02, anneal_epochs=0, anneal_strategy="linear"),
        [0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02],
    ),
]


def kind(name):
    return getattr(torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler, name)


def optimizer_and_rates(make, epochs=8):
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1, momentum=0.9)
    schedule = make(optimizer)
    rates = []
    for _ in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return optimizer, schedule, rates


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED)
def test_rates(name, options, expected):
    optimizer, schedule, rates = optimizer_and_rates(lambda o: kind(name)(o, **options))
    assert rates == pytest.approx(expected, rel=1e-6)
    assert schedule.get_last_lr() == [optimizer.param_groups[0]["lr"]]


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED)
def test_saved_and_loaded_it_goes_on_as_before(name, options, expected):
    one, schedule, _ = optimizer_and_rates(lambda o: kind(name)(o, **options), 4)
    two, other, _ = optimizer_and_rates(lambda o: kind(name)(o, **options), 1)
    state = schedule.state_dict()
    assert "optimizer" not in state
    other.load_state_dict(state)
    two.load_state_dict(one.state_dict())
    for o, s in ((one, schedule), (two, other)):
        o.step()
        s.step()
    assert one.param_groups[0]["lr"] == two.param_groups[0]["lr"]
    assert other.state_dict() == schedule.state_dict()


def test_momentum_runs_against_the_rate():
    optimizer, _, _ = optimizer_and_rates(lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=10), 2)
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.85)
    adam = torch.optim.Adam([torch.zeros(2, requires_grad=True)])
    torch.optim.lr_scheduler.CyclicLR(adam, 0.1, 0.2)
    assert adam.param_groups[0]["betas"] == (0.9, 0.999)


def test_sequential():
    lr = torch.optim.lr_scheduler

    def make(o):
        return lr.SequentialLR(
            o, [lr.LinearLR(o, 0.1, total_iters=3), lr.CosineAnnealingLR(o, 5), lr.ExponentialLR(o, 0.5)], [3, 6]
        )

    _, schedule, rates = optimizer_and_rates(make)
    expected = [0.01, 0.04, 0.07, 0.1, 0.0904508497, 0.0654508497, 0.1, 0.05]
    assert rates == pytest.approx(expected, rel=1e-6)
    state = schedule.state_dict()
    assert [set(s) >= {"last_epoch", "base_lrs"} for s in state["_schedulers"]] == [True] * 3
    schedule.load_state_dict(state)


def test_chained():
    lr = torch.optim.lr_scheduler
    _, _, rates = optimizer_and_rates(
        lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 3), lr.ExponentialLR(o, 0.9)])
    )
    assert rates[:5] == pytest.approx([0.01, 0.009, 0.0081, 0.0729, 0.06561])


def test_reduce_on_plateau():
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, cooldown=1, factor=0.5, min_lr=0.03)
    rates = []
    for metric in [1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, torch.tensor(0.5), 0.6, 0.6, 0.6, 0.6, 0.6]:
        schedule.step(metric)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1] * 3 + [0.05] * 3 + [0.03] * 7)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max")
    other.load_state_dict(schedule.state_dict())
    assert other.mode == "min" and other.best == 0.5


def test_a_tensor_keeps_its_identity():
    lr = torch.tensor(0.1)
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(0.05)


def test_resuming():
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified"):
        torch.optim.lr_scheduler.StepLR(optimizer, 2, last_epoch=3)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4, last_epoch=1)
    assert schedule.get_last_lr() == pytest.approx([0.1])


def test_warnings():
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="epoch"):
        schedule.step(4)
    assert schedule.get_last_lr() == pytest.approx([0.001])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s, o: s.StepLR(1, 2), TypeError, "int is not an Optimizer"),
        (lambda s, o: s.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda s, o: s.OneCycleLR(o, 0.1), ValueError, "You must define either total_steps"),
        (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0), ValueError, "Expected positive integer total_steps"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda s, o: s.ReduceLROnPlateau(o, mode="up"), ValueError, "mode up is unknown"),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="no"), ValueError, "mode is invalid"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "one more than the number"),
        (lambda s, o: s.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0"),
    ],
)
def test_messages(make, error, message):
    optimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1, momentum=0.9)
    with pytest.raises(error, match=message):
        make(torch.optim.lr_scheduler, optimizer)
