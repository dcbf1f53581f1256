"""A layer, batch norm and ReLU as one operator in inference: the same numbers, and only where nobody can tell."""

import pytest

import rushlight as torch
from rushlight import nn

CONVOLUTIONS = {  # input, then Conv2d's arguments
    "3x3": ((1, 3, 11, 13), (3, 5, 3), {"padding": 1}),
    "3x3 stride": ((2, 3, 11, 13), (3, 7, 3), {"stride": 2, "padding": 1}),
    "5x3 no bias": ((3, 4, 9, 8), (4, 6, (5, 3)), {"stride": (1, 2), "padding": (0, 1), "bias": False}),
    "dilation": ((1, 4, 15, 15), (4, 9, 3), {"dilation": 2, "padding": 2}),
    "1x1": ((1, 24, 7, 7), (24, 37, 1), {"bias": False}),
    "1x1 batch": ((3, 17, 6, 5), (17, 33, 1), {}),
    "1x1 deep": ((1, 500, 5, 5), (500, 40, 1), {}),
    "1x1 large": ((2, 96, 28, 28), (96, 160, 1), {"bias": False}),
    "1x1 deep and wide": ((1, 500, 14, 14), (500, 70, 1), {"bias": False}),
    "1x1 rows of a page": ((1, 20, 32, 32), (20, 40, 1), {}),
    "1x1 stride": ((2, 16, 9, 9), (16, 20, 1), {"stride": 2}),
    "groups": ((2, 8, 9, 9), (8, 12, 3), {"groups": 4, "padding": 1}),
    "1x1 groups": ((2, 8, 9, 9), (8, 12, 1), {"groups": 4}),
    "depthwise": ((2, 19, 14, 14), (19, 19, 3), {"groups": 19, "padding": 1, "bias": False}),
    "depthwise wide": ((1, 5, 6, 75), (5, 5, 3), {"groups": 5, "padding": 1}),
    "depthwise stride": ((2, 19, 15, 14), (19, 19, 3), {"groups": 19, "stride": 2, "padding": 1}),
    "depthwise stride even": ((1, 3, 40, 70), (3, 3, 3), {"groups": 3, "stride": 2, "padding": 1}),
    "depthwise 3": ((1, 6, 17, 17), (6, 6, 5), {"groups": 6, "stride": 3, "padding": 2}),
    "depthwise dilation": ((2, 6, 14, 14), (6, 6, 3), {"groups": 6, "dilation": 2, "padding": 1}),
    "depthwise no padding": ((1, 6, 8, 8), (6, 6, 3), {"groups": 6}),
    "depthwise twice": ((2, 6, 10, 10), (6, 12, 3), {"groups": 6, "padding": 1}),
    "winograd": ((1, 33, 14, 14), (33, 45, 3), {"padding": 1}),
    "winograd batch": ((2, 64, 28, 28), (64, 64, 3), {"padding": 1}),
    "winograd small": ((1, 64, 7, 7), (64, 96, 3), {"padding": 1}),
    "empty batch": ((0, 3, 5, 5), (3, 4, 3), {}),
}
FOLLOWING = {
    "norm": lambda n: [nn.BatchNorm2d(n)],
    "norm relu": lambda n: [nn.BatchNorm2d(n), nn.ReLU()],
    "norm relu in place": lambda n: [nn.BatchNorm2d(n), nn.ReLU(inplace=True)],
    "norm relu6": lambda n: [nn.BatchNorm2d(n, eps=0.1), nn.ReLU6()],
    "norm no affine": lambda n: [nn.BatchNorm2d(n, affine=False), nn.ReLU()],
    "norm no bias": lambda n: [nn.BatchNorm2d(n, bias=False)],
    "relu": lambda n: [nn.ReLU()],
    "relu6": lambda n: [nn.ReLU6()],
}


def network(arguments, options, following="norm relu"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(*arguments, **options), *FOLLOWING[following](arguments[1]))
    for module in model:
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                nn.init.normal_(module.weight)
            if module.bias is not None:
                nn.init.normal_(module.bias, 0, 3)
    return model.eval()


def one_by_one(model, x):
    for module in model:
        x = module(x)
    return x


def counted(model, x):
    """The result of a call, and how often it ran a fused operator."""
    fused = []
    originals = {name: getattr(torch._C, name) for name in ("_fused_convolution", "_fused_linear")}

    def counting(original):
        return lambda *arguments: (fused.append(original), original(*arguments))[1]

    for name, original in originals.items():
        setattr(torch._C, name, counting(original))
    try:
        return model(x), len(fused)
    finally:
        for name, original in originals.items():
            setattr(torch._C, name, original)


@pytest.mark.parametrize("following", FOLLOWING)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_the_same_as_one_by_one(case, following):
    shape, arguments, options = CONVOLUTIONS[case]
    model = network(arguments, options, following)
    x = torch.randn(shape)
    with torch.no_grad():
        result, fused = counted(model, x)
        assert fused == 1
        torch.testing.assert_close(result, one_by_one(model, x), rtol=1e-4, atol=1e-4)


LINEAR = {  # input, then Linear's sizes
    "row": ((300,), (300, 77)),
    "one row": ((1, 300), (300, 77)),
    "few rows": ((7, 300), (300, 77)),
    "rows": ((40, 300), (300, 77)),
    "narrow": ((40, 30), (30, 5)),
    "wide": ((33, 520), (520, 130)),
    "one column": ((33, 20), (20, 1)),
    "of three dimensions": ((2, 3, 20), (20, 64)),
    "empty batch": ((0, 20), (20, 4)),
    "nothing to sum": ((3, 0), (0, 4)),
}


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("end", [nn.ReLU, nn.ReLU6])
@pytest.mark.parametrize("case", LINEAR)
def test_linear_has_the_same_bits_as_one_by_one(case, end, bias):
    shape, sizes = LINEAR[case]
    model = nn.Sequential(nn.Linear(*sizes, bias=bias), end())
    x = torch.randn(shape) * 5
    if x.numel():
        x.view(-1)[0] = float("nan")
        x.view(-1)[-1] = float("inf")
    with torch.no_grad():
        for _ in range(3):  # later with the weight packed
            result, fused = counted(model, x)
            assert fused == 1
            torch.testing.assert_close(result, one_by_one(model, x), rtol=0, atol=0, equal_nan=True)
        if x.dim() == 2:
            turned = x.t().contiguous().t()
            torch.testing.assert_close(model(turned), one_by_one(model, turned), rtol=0, atol=0, equal_nan=True)


def test_linear_where_somebody_could_tell():
    x, model = torch.randn(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    assert counted(model, x)[1] == 0  # gradients are recorded
    with torch.no_grad():
        assert counted(model, x)[1] == 1
        assert counted(model.double(), x.double())[1] == 0
        assert counted(model.float(), x)[1] == 1
        handle = model[0].register_forward_hook(lambda *_: None)
        assert counted(model, x)[1] == 0
        handle.remove()
        assert counted(nn.Sequential(nn.Linear(8, 8), nn.Tanh()), x)[1] == 0
        with torch.autocast("cpu"):
            assert counted(model, x)[1] == 0
        for wrong in (torch.randn(4, 7), torch.randn(4, 8).long()):
            with pytest.raises(RuntimeError):
                model(wrong)
        empty = nn.Sequential(nn.Linear(8, 8), nn.ReLU6())
        empty[1].min_val = 9.0
        with pytest.raises(ValueError, match="min_val"):
            empty(x)
        with pytest.raises(RuntimeError, match="same device"):
            nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to("meta")(x)
    for arguments in ((x, x, None, (0.0,)), (x, None, None, (0.0, 1.0)), (x, 3, None, (0.0, 1.0))):
        with pytest.raises(TypeError):
            torch._C._fused_linear(*arguments)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        torch._C._fused_linear(x, torch.randn(3, 7), None, (0.0, 1.0))


@pytest.mark.parametrize("following", FOLLOWING)
@pytest.mark.parametrize("size", [3, 9])
def test_nan_and_infinity_pass(size, following):
    model = network((2, 3, 1), {}, following)
    x = torch.randn(1, 2, size, size)
    x[0, 0, 0, 0], x[0, 1, 1, 1] = float("nan"), float("inf")
    with torch.no_grad():
        torch.testing.assert_close(model(x), one_by_one(model, x), equal_nan=True)


def test_the_same_bits_at_any_number_of_threads():
    before = torch.get_num_threads()
    try:
        for shape, arguments, options in CONVOLUTIONS.values():
            model, x, results = network(arguments, options), torch.randn(shape), []
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                with torch.no_grad():
                    results.append(model(x))
            assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
    finally:
        torch.set_num_threads(before)


def test_a_longer_row():
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.ReLU(), nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3), nn.ReLU6(), nn.BatchNorm2d(5), nn.Conv2d(5, 6, 1),
        nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 2), nn.Sequential(nn.Identity()),
    ).eval()  # fmt: skip
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        result, fused = counted(model, x)
        torch.testing.assert_close(result, one_by_one(model, x))
    assert fused == 2


class Other(torch.Tensor):
    pass


def with_hook(model, index, register):
    getattr(model[index], register)(lambda *arguments: None)


def replace_forward(model):
    model[1].forward = lambda x: x * 2


def make_double(model):
    model.double()


class OwnReLU(nn.ReLU):
    def forward(self, x):
        return -x


USUAL = {  # what is done to the model, or how the input is made
    "training": (lambda model: model.train(), None),
    "norm in training": (lambda model: model[1].train(), None),
    "hook of the convolution": (lambda model: with_hook(model, 0, "register_forward_hook"), None),
    "earlier hook of the norm": (lambda model: with_hook(model, 1, "register_forward_pre_hook"), None),
    "a forward of its own": (replace_forward, None),
    "double": (make_double, lambda x: x.double()),
    "padding by name": (lambda model: setattr(model[0], "padding", "same"), None),
    "stride set to a number": (lambda model: setattr(model[0], "stride", 2), None),
    "padding set to a number": (lambda model: setattr(model[0], "padding", 2), None),
    "dilation of one number": (lambda model: setattr(model[0], "dilation", (2,)), None),
    "padding by reflection": (lambda model: setattr(model[0], "padding_mode", "reflect"), None),
    "no statistics": (lambda model: model.__setitem__(1, nn.BatchNorm2d(4, track_running_stats=False)), None),
    "subclass of Tensor": (lambda model: None, lambda x: x.as_subclass(Other)),
}


@pytest.mark.parametrize("case", USUAL)
def test_what_goes_the_usual_way(case):
    change, convert = USUAL[case]
    model = network((3, 4, 3), {"padding": 1})
    change(model)
    x = torch.randn(2, 3, 6, 6)
    x = convert(x) if convert else x
    with torch.no_grad():
        result, fused = counted(model, x)
        assert fused == 0
        if not model.training:
            torch.testing.assert_close(result, one_by_one(model, x))


@pytest.mark.parametrize("layer", [nn.Conv2d, nn.BatchNorm2d, nn.ReLU])
def test_a_class_with_another_forward_goes_the_usual_way(layer, monkeypatch):
    usual, seen = layer.forward, []
    monkeypatch.setattr(layer, "forward", lambda self, x: (seen.append(self), usual(self, x))[1])
    with torch.no_grad():
        assert counted(network((3, 4, 3), {}), torch.randn(2, 3, 6, 6))[1] == 0
    assert len(seen) == 1


def test_only_what_is_plain_is_taken_in():
    model = network((3, 4, 3), {}, "norm")
    model.append(OwnReLU())
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        result, fused = counted(model, x)
        assert fused == 1
        torch.testing.assert_close(result, one_by_one(model, x))
        seen = []
        model[1].register_forward_hook(lambda module, args, output: seen.append(output))
        assert counted(model, x)[1] == 0 and len(seen) == 1


def test_modes_go_the_usual_way():
    model, x = network((3, 4, 3), {}), torch.randn(2, 3, 6, 6)
    assert counted(model, x)[1] == 0 and model(x).requires_grad
    handle = nn.modules.module.register_module_forward_hook(lambda *arguments: None)
    try:
        with torch.no_grad():
            assert counted(model, x)[1] == 0
    finally:
        handle.remove()
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert counted(model, x)[1] == 0
        with torch.profiler.profile():
            assert counted(model, x)[1] == 0
        assert counted(model, x)[1] == 1
    with torch.inference_mode():
        assert counted(model, x)[1] == 1


def test_what_does_not_fit_is_refused_as_usual():
    model = network((3, 4, 3), {})
    with torch.no_grad():
        for shape in ((2, 5, 6, 6), (2, 3, 2, 2), (3, 6), (2, 3, 6, 6, 6)):
            with pytest.raises(RuntimeError) as usual:
                one_by_one(model, torch.randn(shape))
            with pytest.raises(type(usual.value)):
                model(torch.randn(shape))
        model[1] = nn.BatchNorm2d(5).eval()
        with pytest.raises(RuntimeError, match="elements"):
            model(torch.randn(2, 3, 6, 6))
