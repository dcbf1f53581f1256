"""nn.Module: registration, hooks, conversion, state dicts, walking, printing, copying; the containers."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import module as module_file


class Net(nn.Module):
    """Everything that can be registered."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, bias=False)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_parameter("absent", None)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("cache", torch.zeros(2), persistent=False)
        self.register_buffer("nothing", None)
        self.plain = torch.zeros(3)
        self.number = 5

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


KEYS = ["scale", "count", "first.weight", "first.bias", "second.weight"]


class Double(nn.Module):
    def forward(self, x, *, plus=0):
        return x * 2 + plus


# ---- registration ----


def test_assignment_registers_by_type():
    net = Net()
    assert list(net._parameters) == ["scale", "absent"]
    assert list(net._buffers) == ["count", "cache", "nothing"]
    assert list(net._modules) == ["first", "second"]
    assert net.__dict__["number"] == 5 and "plain" in net.__dict__
    assert net.scale is net._parameters["scale"] and net.absent is None and net.nothing is None


def test_assignment_moves_a_name_between_registries():
    net = Net()
    net.number = nn.Parameter(torch.ones(1))
    assert "number" not in net.__dict__ and "number" in net._parameters
    net.count = nn.Linear(1, 1)
    assert "count" not in net._buffers and "count" in net._modules
    net.count = nn.Parameter(torch.ones(1))
    assert "count" not in net._modules and "count" in net._parameters
    net.count = None
    assert net._parameters["count"] is None
    net.cache = torch.ones(2)
    assert "cache" in net._buffers and "cache" in net._non_persistent_buffers_set
    net.first = None
    assert net._modules["first"] is None and list(net.children()) == [net.second]


def test_buffer_class_registers_and_says_whether_it_persists():
    net = nn.Module()
    net.kept = nn.Buffer(torch.ones(2))
    net.dropped = nn.Buffer(torch.ones(2), persistent=False)
    assert isinstance(net.kept, nn.Buffer) and isinstance(net.dropped, nn.Buffer)
    assert list(net.state_dict()) == ["kept"] and list(dict(net.named_buffers())) == ["kept", "dropped"]


def test_deletion():
    net = Net()
    for name in ("scale", "first", "count", "cache", "number"):
        delattr(net, name)
        assert not hasattr(net, name)
    assert "cache" not in net._non_persistent_buffers_set
    with pytest.raises(AttributeError):
        del net.never


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda m: m.register_buffer("a.b", None), KeyError, 'buffer name can\'t contain "."'),
        (lambda m: m.register_buffer("", None), KeyError, 'buffer name can\'t be empty string ""'),
        (lambda m: m.register_buffer("scale", None), KeyError, "attribute 'scale' already exists"),
        (lambda m: m.register_buffer(1, None), TypeError, "buffer name should be a string. Got int"),
        (lambda m: m.register_buffer("x", 1), TypeError, "cannot assign 'int' object to buffer 'x'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda m: m.register_parameter("first", None), KeyError, "attribute 'first' already exists"),
        (lambda m: m.register_parameter("x", torch.ones(1)), TypeError, "object to parameter 'x'"),
        (lambda m: m.add_module("a.b", None), KeyError, 'module name can\'t contain ".", got: a.b'),
        (lambda m: m.add_module("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m: m.add_module("x", 1), TypeError, "int is not a Module subclass"),
        (lambda m: setattr(m, "scale", 1), TypeError, "cannot assign 'int' as parameter 'scale'"),
        (lambda m: setattr(m, "first", 1), TypeError, "cannot assign 'int' as child module 'first'"),
        (lambda m: setattr(m, "count", 1), TypeError, "cannot assign 'int' as buffer 'count'"),
        (lambda m: m.never, AttributeError, "'Net' object has no attribute 'never'"),
        (lambda m: m.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.get_submodule("first.never"), AttributeError, "Linear has no attribute `never`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("count"), AttributeError, "`count` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m.to(torch.int64), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: m.compile(), NotImplementedError, "Module.compile"),
        (lambda m: m.load_state_dict(3), TypeError, "Expected state_dict to be dict-like"),
        (lambda m: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda m: nn.Module(1), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=1), TypeError, "Module.__init__() got an unexpected keyword argument 'a'"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error) as raised:
        act(Net())
    assert message in str(raised.value).replace('\\"', '"').replace("\\'", "'")


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Early(nn.Linear(1, 1))
    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early(nn.Parameter(torch.ones(1)))
    assert Early(3).value == 3


def test_a_parameter_that_was_computed_is_refused():
    net = nn.Module()
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(TypeError, match="parameter 'x'"):
        net.register_parameter("x", weight * 2)


def test_class_attributes_and_properties_come_first():
    class Shadow(nn.Module):
        fixed = 7

        def __init__(self):
            super().__init__()
            self._value = 1

        @property
        def value(self):
            return self._value

        @value.setter
        def value(self, new):
            self._value = new * 2

        @property
        def broken(self):
            return self.missing_thing

    shadow = Shadow()
    shadow.value = 4
    assert shadow.value == 8 and shadow.fixed == 7
    with pytest.raises(AttributeError, match="missing_thing"):
        shadow.broken


def test_own_getattr_asks_super_first():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    wrapper = Wrapper(nn.Linear(2, 3))
    assert wrapper.out_features == 3 and wrapper.weight is wrapper.inner.weight


def test_own_setattr_and_call():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Identity()

        def __setattr__(self, name, value):
            seen.append(name)
            super().__setattr__(name, value)

        def __call__(self, x):
            return super().__call__(x) + 1

        def forward(self, x):
            return x * 2

    seen = []
    assert Counting()(3) == 7 and seen == ["layer"]


def test_mixins_and_generic_classes():
    import typing

    class Mixin:
        def weight_sum(self):
            return self.weight.sum()

    class Mixed(Mixin, nn.Linear):
        pass

    kind = typing.TypeVar("kind")

    class Generic(nn.Module, typing.Generic[kind]):
        pass

    assert Mixed(2, 2).weight_sum().shape == ()
    assert Generic[int]() is not None and isinstance(Generic(), nn.Module)


def test_modules_are_collected():
    net = Net()
    net.me = net
    reference = weakref.ref(net)
    del net
    gc.collect()
    assert reference() is None


def test_registration_hooks():
    seen = []
    handles = [
        module_file.register_module_module_registration_hook(lambda m, name, value: seen.append(("module", name))),
        module_file.register_module_parameter_registration_hook(
            lambda m, name, value: seen.append(("parameter", name))
        ),
        module_file.register_module_buffer_registration_hook(lambda m, name, value: torch.ones(1)),
    ]
    try:
        holder = nn.Module()
        holder.a = nn.Identity()
        holder.b = nn.Parameter(torch.ones(1))
        holder.register_buffer("c", torch.zeros(1))
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("module", "a"), ("parameter", "b")] and holder.c.item() == 1


# ---- calls and hooks ----


def test_forward_hooks_run_in_order_and_replace():
    order = []
    layer = Double()
    layer.register_forward_pre_hook(lambda m, args: order.append("pre"))
    layer.register_forward_pre_hook(lambda m, args: order.append("pre first"), prepend=True)
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"plus": 10}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, output: order.append(("post", args, output)))
    handle = layer.register_forward_hook(lambda m, args, output: output + 1)
    layer.register_forward_hook(lambda m, args, kwargs, output: order.append(kwargs), with_kwargs=True)
    assert layer(3) == 17
    assert order == ["pre first", "pre", ("post", (3,), 16), {"plus": 10}]
    handle.remove()
    assert layer(3) == 16


def test_a_pre_hook_replaces_the_arguments():
    layer = Double()
    layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert layer(3) == 8
    layer.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        layer(3)


def test_hooks_as_contexts_and_put_into_the_dict_by_hand():
    layer = Double()
    with layer.register_forward_hook(lambda m, args, output: 0):
        assert layer(3) == 0
    assert layer(3) == 6
    layer._forward_hooks[-1] = lambda m, args, output: -1
    assert layer(3) == -1
    layer._forward_hooks = OrderedDict()
    assert layer(3) == 6


def test_global_forward_hooks_come_before_own():
    order = []
    layer = Double()
    layer.register_forward_pre_hook(lambda m, args: order.append("own pre"))
    layer.register_forward_hook(lambda m, args, output: order.append("own"))
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, args: order.append("all pre")),
        module_file.register_module_forward_hook(lambda m, args, output: order.append("all")),
    ]
    layer(1)
    for handle in handles:
        handle.remove()
    layer(1)
    assert order == ["all pre", "own pre", "all", "own", "own pre", "own"]


def test_always_called_hooks_run_when_forward_raises():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    order = []
    layer = Fails()
    layer.register_forward_hook(lambda m, args, output: order.append(output), always_call=True)
    layer.register_forward_hook(lambda m, args, output: order.append("never"))
    with pytest.raises(ValueError, match="no"):
        layer(1)
    assert order == [None]


def test_a_patched_forward_is_called():
    layer = Double()
    layer.forward = lambda x: x + 100
    assert layer(1) == 101


def test_full_backward_hooks_see_and_replace_gradients():
    seen = []
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 10,))
    x = torch.tensor([[1.0, 1.0]], requires_grad=True)
    layer(x).sum().backward()
    (grad_input,), (grad_output,) = seen[0]
    assert grad_output.tolist() == [[2.0, 2.0]] and grad_input.tolist() == [[8.0, 12.0]]
    assert x.grad.tolist() == [[80.0, 120.0]]
    assert layer.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_full_backward_hook_without_an_input_that_needs_gradients():
    seen = []
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, len(grad_output))))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), 1)]


def test_full_backward_hook_of_several_inputs_and_outputs():
    class Pair(nn.Module):
        def forward(self, a, number, b):
            return a * number, "text", b * 2

    seen = []
    layer = Pair()
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    a = torch.ones(1, requires_grad=True)
    b = torch.ones(1, requires_grad=True)
    first, text, second = layer(a, 3, b)
    (first + second).backward()
    (grad_a, grad_number, grad_b), (grad_first, grad_text, grad_second) = seen[0]
    assert (grad_a.item(), grad_number, grad_b.item()) == (3, None, 2)
    assert (grad_first.item(), grad_text, grad_second.item()) == (1, None, 1)
    assert text == "text"


def test_kinds_of_backward_hooks_do_not_mix():
    layer = Double()
    layer.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        layer.register_backward_hook(lambda *a: None)


def test_global_full_backward_hook():
    seen = []
    handle = module_file.register_module_full_backward_hook(lambda m, grad_input, grad_output: seen.append(type(m)))
    try:
        layer = Double()
        layer(torch.ones(1, requires_grad=True)).backward()
    finally:
        handle.remove()
    assert seen == [Double]


# ---- walking ----


def test_named_walks():
    net = Net()
    net.again = net.first
    net.tied = nn.Linear(3, 4)
    net.tied.weight = net.first.weight
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "first.weight", "first.bias", "second.weight", "tied.bias"]
    every = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert every == [*names[:4], "again.weight", "again.bias", "tied.weight", "tied.bias"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second", "tied"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "first", "second", "again", "tied"]
    assert [name for name, _ in net.named_children()] == ["first", "second", "tied"]
    assert [name for name, _ in net.named_buffers(prefix="p")] == ["p.count", "p.cache"]
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert len(list(net.parameters())) == 5 and len(list(net.modules())) == 4


def test_paths():
    net = nn.Sequential(OrderedDict(a=nn.Sequential(nn.Linear(2, 2)), b=nn.BatchNorm1d(2)))
    assert net.get_submodule("a.0") is net.a[0] and net.get_submodule("") is net
    assert net.get_parameter("a.0.weight") is net.a[0].weight
    assert net.get_buffer("b.running_mean") is net.b.running_mean
    net.set_submodule("a.0", nn.Identity())
    assert isinstance(net.a[0], nn.Identity)
    with pytest.raises(AttributeError, match="has no attribute `new`"):
        net.set_submodule("a.new", nn.Identity(), strict=True)


def test_modes_and_gradients():
    net = Net()
    assert net.eval() is net and not net.first.training
    assert net.train() is net and net.first.training
    net(torch.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad is not None and not p.grad.any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert net.requires_grad_(False) is net and not any(p.requires_grad for p in net.parameters())


def test_apply_visits_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


# ---- conversion ----


@pytest.mark.parametrize(
    "convert",
    [
        lambda m: m.double(),
        lambda m: m.to(torch.float64),
        lambda m: m.to("cpu", torch.float64),
        lambda m: m.to(torch.device("cpu"), torch.float64, True),
        lambda m: m.to(dtype=torch.float64, device="cpu", non_blocking=True),
        lambda m: m.to(torch.zeros(1, dtype=torch.float64)),
    ],
)
def test_to_keeps_parameter_objects_and_integers(convert):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = net[0].weight
    net(torch.ones(3, 2)).sum().backward()
    assert convert(net) is net
    assert net[0].weight is weight and weight.dtype == torch.float64 and weight.grad.dtype == torch.float64
    assert net[1].running_mean.dtype == torch.float64 and net[1].num_batches_tracked.dtype == torch.int64


def test_half_types():
    net = nn.BatchNorm1d(2)
    for convert, dtype in ((net.half, torch.float16), (net.bfloat16, torch.bfloat16), (net.float, torch.float32)):
        convert()
        assert net.weight.dtype == dtype and net.running_var.dtype == dtype
        assert net.num_batches_tracked.dtype == torch.int64


def test_meta_modules():
    net = nn.Linear(2, 3, device="meta")
    assert net.weight.is_meta
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        net.to("cpu")
    assert not net.to_empty(device="cpu").weight.is_meta
    assert nn.utils.skip_init(nn.Linear, 2, 3).weight.shape == (3, 2)


# ---- state dicts ----


def test_state_dict():
    net = Net()
    state = net.state_dict()
    assert list(state) == KEYS
    assert isinstance(state, OrderedDict) and state._metadata["first"] == {"version": 1}
    assert not state["scale"].requires_grad and state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.state_dict(prefix="p."))[0] == "p.scale"


def test_load_state_dict_copies_or_assigns():
    source, target = Net(), Net()
    with torch.no_grad():
        source.scale.fill_(3)
    scale = target.scale
    result = target.load_state_dict(source.state_dict())
    assert str(result) == "<All keys matched successfully>" and target.scale is scale
    assert target.scale.tolist() == [3, 3] and target.scale.data_ptr() != source.scale.data_ptr()
    state = source.state_dict()
    target.scale.requires_grad_(False)
    target.load_state_dict(state, assign=True)
    assert target.scale.data_ptr() == source.scale.data_ptr() and not target.scale.requires_grad
    assert isinstance(target.scale, nn.Parameter) and target.count.data_ptr() == source.count.data_ptr()


def test_load_state_dict_lists_what_does_not_fit():
    net = Net()
    state = net.state_dict()
    del state["first.bias"]
    state["extra"] = torch.zeros(1)
    state["first.extra.more"] = torch.zeros(1)
    state["scale"] = torch.zeros(3)
    state["count"] = "text"
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(state)
    assert str(raised.value).split("\n\t") == [
        "Error(s) in loading state_dict for Net:",
        'Missing key(s) in state_dict: "first.bias". ',
        'Unexpected key(s) in state_dict: "extra", "first.extra.more". ',
        "size mismatch for scale: copying a param with shape torch.Size([3]) from checkpoint, "
        "the shape in current model is torch.Size([2]).",
        'While copying the parameter named "count", expected torch.Tensor or Tensor-like object from checkpoint but '
        "received <class 'str'>",
    ]
    del state["scale"], state["count"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale", "count", "first.bias"]
    assert result.unexpected_keys == ["extra", "first.extra.more"]


def test_state_dict_hooks():
    order = []
    net = Net()
    net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: order.append(("pre", prefix)))
    net.register_state_dict_post_hook(lambda m, state, prefix, metadata: order.append(("post", len(state))))
    net._register_state_dict_hook(lambda m, state, prefix, metadata: {k: v for k, v in state.items() if k != "count"})
    state = net.state_dict()
    assert order == [("pre", ""), ("post", 5)] and "count" not in state

    def restore(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state["count"] = torch.full((1,), 9.0)

    def forgive(module, incompatible):
        order.append(list(incompatible.missing_keys))
        incompatible.missing_keys.clear()

    net.register_load_state_dict_pre_hook(restore)
    net.register_load_state_dict_post_hook(forgive)
    del state["scale"]
    net.load_state_dict(state)
    assert net.count.item() == 9 and order[-1] == ["scale"]


def test_extra_state():
    class Extra(nn.Module):
        def get_extra_state(self):
            return {"epoch": 3}

        def set_extra_state(self, state):
            self.loaded = state

    net = nn.Sequential(Extra())
    state = net.state_dict()
    assert state["0._extra_state"] == {"epoch": 3}
    net.load_state_dict(state)
    assert net[0].loaded == {"epoch": 3}
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
        net.load_state_dict({})


def test_load_from_state_dict_can_be_overridden():
    class Old(nn.Linear):
        _version = 2

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append(local_metadata.get("version"))
            if prefix + "w" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    seen = []
    net = Old(2, 2, bias=False)
    net.load_state_dict({"w": torch.ones(2, 2)})
    net.load_state_dict(net.state_dict())
    assert net.weight.tolist() == [[1, 1], [1, 1]] and seen == [None, 2]


# ---- printing, copying, pickling ----


def test_repr():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.ReLU(inplace=True))
            self.rest = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Dropout(0.2)])

        def extra_repr(self):
            return "key=1"

    assert repr(Named()) == "\n".join(
        [
            "Named(",
            "  key=1",
            "  (part): Sequential(",
            "    (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)",
            "    (1): ReLU(inplace=True)",
            "  )",
            "  (rest): ModuleList(",
            "    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)",
            "    (2): Dropout(p=0.2, inplace=False)",
            "  )",
            ")",
        ]
    )
    assert repr(nn.Identity()) == "Identity()"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_copies_are_whole_and_independent(duplicate):
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    net.tied = net[0]
    net(torch.ones(2, 3))
    other = duplicate(net)
    assert other.tied is other[0] and other[0].weight is not net[0].weight
    assert type(other[0].weight) is nn.Parameter and other[0].weight.requires_grad
    for (name, a), (other_name, b) in zip(net.state_dict().items(), other.state_dict().items()):
        assert name == other_name and torch.equal(a, b)
    with torch.no_grad():
        other[0].weight.zero_()
    assert net[0].weight.any()


def test_shallow_copy_shares_the_registries():
    net = Net()
    other = copy.copy(net)
    assert other is not net and other.scale is net.scale and other._parameters is net._parameters


def test_setstate_fills_in_what_old_pickles_lack():
    net = Net()
    state = net.__getstate__()
    for name in ("_forward_hooks_with_kwargs", "_backward_pre_hooks", "_non_persistent_buffers_set"):
        del state[name]
    other = Net.__new__(Net)
    other.__setstate__(state)
    assert other(torch.ones(1, 3)).shape == (1, 2) and other._backward_pre_hooks == {}


def test_dir_lists_registered_names():
    assert {"first", "scale", "count", "number", "forward"} <= set(dir(Net()))


# ---- parameters ----


def test_parameter():
    data = torch.ones(2)
    parameter = nn.Parameter(data)
    assert isinstance(parameter, torch.Tensor) and parameter.requires_grad and parameter.is_leaf
    assert parameter.data_ptr() == data.data_ptr() and nn.Parameter().shape == (0,)
    assert type(parameter * 2) is torch.Tensor and type(parameter.detach()) is torch.Tensor
    assert repr(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    with torch.no_grad():
        assert nn.Parameter(torch.ones(1)).requires_grad
    assert not nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False).requires_grad
    copied = copy.deepcopy(parameter)
    assert type(copied) is nn.Parameter and copied.data_ptr() != data.data_ptr()
    loaded = pickle.loads(pickle.dumps(parameter))
    assert type(loaded) is nn.Parameter and loaded.tolist() == [1, 1]


def test_lazy_modules_become_their_layer():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert repr(net[0].weight) == "<UninitializedParameter>"
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        net[3].weight + 1
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        net[3].weight.shape
    assert net(torch.ones(2, 1, 4, 4)).shape == (2, 2)
    assert [type(m) for m in net] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert type(net[0].weight) is nn.Parameter and net[0].weight.shape == (4, 1, 3, 3)
    assert net[3].in_features == 16 and not net[3]._forward_pre_hooks
    lazy = nn.LazyLinear(2)
    lazy.load_state_dict(net[3].state_dict())
    assert torch.equal(lazy.weight, net[3].weight)


# ---- containers ----


def test_sequential():
    a, b, c = nn.Identity(), Double(), Double()
    net = nn.Sequential(a, b)
    assert net(1) == 2 and len(net) == 2 and net[-1] is b and list(net) == [a, b]
    net.append(c)
    net.insert(0, nn.ReLU())
    assert [type(m) for m in net] == [nn.ReLU, nn.Identity, Double, Double] and list(net._modules) == list("0123")
    assert isinstance(net[1:3], nn.Sequential) and list(net[1:3]) == [a, b]
    del net[0]
    assert list(net._modules) == list("012") and net.pop(2) is c
    assert len(net + net) == 4 and len(net * 3) == 6 and len(net.extend([c])) == 3
    net[0] = c
    assert net[0] is c
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.second is b and list(named._modules) == ["first", "second"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        net[5]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        nn.Sequential(1)


def test_module_list():
    layers = [nn.Linear(1, 1) for _ in range(4)]
    modules = nn.ModuleList(layers[:2])
    modules += layers[2:3]
    modules.insert(0, layers[3])
    assert list(modules) == [layers[3], *layers[:3]] and modules[-1] is layers[2]
    assert isinstance(modules[1:], nn.ModuleList) and len(modules[1:]) == 3
    del modules[0]
    assert list(modules._modules) == ["0", "1", "2"] and modules.pop(0) is layers[0]
    assert len(modules + modules) == 4 and len(list(modules.parameters())) == 4
    with pytest.raises(NotImplementedError):
        modules(1)
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        modules.extend(1)


def test_module_dict():
    modules = nn.ModuleDict({"a": nn.Identity(), "b": Double()})
    modules.update([("c", nn.ReLU())])
    assert list(modules) == ["a", "b", "c"] and "b" in modules and len(modules) == 3
    assert type(modules.pop("c")) is nn.ReLU and list(modules.keys()) == ["a", "b"]
    del modules["a"]
    assert [type(m) for m in modules.values()] == [Double] and dict(modules.items())["b"] is modules["b"]
    modules.clear()
    assert not len(modules)
    with pytest.raises(ValueError, match="ModuleDict update sequence element #0 has length 1; 2 is required"):
        modules.update([("a",)])


def test_parameter_list():
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "text"])
    assert type(values[0]) is nn.Parameter and values[2] == "text" and len(values) == 3
    assert len(list(values.parameters())) == 2 and list(values.state_dict()) == ["0", "1"]
    values.append(torch.ones(1))
    values[1] = torch.full((1,), 4.0)
    assert values[-3].item() == 4 and len(values[1:]) == 3
    assert repr(nn.ParameterList([torch.ones(2, 3)])) == (
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called."):
        values(1)


def test_parameter_dict():
    values = nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.zeros(1))})
    assert list(values) == ["b", "a"] and type(values["b"]) is nn.Parameter
    values["c"] = 3
    assert values.get("c") == 3 and values.get("d", 5) == 5 and values.setdefault("c", 7) == 3
    assert values.pop("c") == 3 and "c" not in values
    merged = values | {"z": torch.ones(1)}
    assert list(merged) == ["b", "a", "z"] and list(values) == ["b", "a"] and merged["b"] is values["b"]
    assert values.popitem()[0] == "a" and list(values.copy()) == ["b"]
    assert list(values.fromkeys(["x", "y"], 0).items()) == [("x", 0), ("y", 0)]
    values.clear()
    assert not len(values) and not list(values.parameters())
