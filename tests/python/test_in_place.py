"""Views changed in place: which changes are recorded, and which are refused since nothing right could be."""

import pytest

import rushlight as torch
from rushlight.autograd import Function

ONE = {
    "view": lambda x: x.view(-1),
    "select": lambda x: x[0],
    "tensor_split": lambda x: x.tensor_split(2)[0],
    "tensor_split_indices": lambda x: x.tensor_split((1,))[0],
    "hsplit": lambda x: x.hsplit(2)[0],
    "vsplit": lambda x: x.vsplit(3)[0],
    "unsafe_split": lambda x: x.unsafe_split(2, 1)[0],
    "unsafe_chunk": lambda x: x.unsafe_chunk(2)[0],
}
MANY = {
    "unbind": lambda x: x.unbind(0)[0],
    "iter": lambda x: list(x)[0],
    "split": lambda x: x.split(2, 1)[0],
    "split_with_sizes": lambda x: x.split([1, 3], 1)[0],
    "chunk": lambda x: x.chunk(2)[0],
    "view of one": lambda x: x.unbind(0)[0].view(-1),
}


def base(needs_grad=True):
    return torch.arange(12.0).reshape(3, 4).requires_grad_(needs_grad) * 1


def needs_grad():
    return torch.ones((), requires_grad=True)


@pytest.mark.parametrize("make", ONE.values(), ids=ONE)
def test_single_views_may_be_changed(make):
    make(base()).mul_(2)
    make(base(False)).mul_(needs_grad())
    x = base()
    view = make(x)
    with torch.no_grad():
        view.mul_(2)
    assert view.grad_fn is not None


def test_sections_pass_gradients_on():
    x = torch.arange(5.0, requires_grad=True)
    first, second, third = (x * 1).tensor_split(3)
    assert [len(t) for t in (first, second, third)] == [2, 2, 1]
    first.mul_(2)
    third.mul_(3)
    torch.cat([first, second, third]).sum().backward()
    assert x.grad.tolist() == [2, 2, 1, 1, 3]


@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_views_of_several_may_not_be_changed_where_that_is_recorded(make):
    with pytest.raises(RuntimeError, match="Output 0 of .* is a view and is being modified inplace. .* several views"):
        make(base()).mul_(2)
    with pytest.raises(RuntimeError, match="is being modified inplace"):
        make(base(False)).mul_(needs_grad())
    make(base(False)).mul_(2)
    make(base()).clone().mul_(2)
    make(base()).detach().mul_(2)
    x = base()
    view = make(x)
    x.mul_(2)
    assert view.requires_grad
    for use in (lambda: view.grad_fn, lambda: view * 2):
        with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
            use()
    assert "grad_fn=<Invalid>" in repr(view)


@pytest.mark.parametrize("mode, word", [(torch.no_grad, "no_grad"), (torch.inference_mode, "inference")])
@pytest.mark.parametrize("make", [ONE["view"], MANY["unbind"]], ids=["one", "many"])
def test_views_made_without_recording(mode, word, make):
    for x in (base(), torch.ones(3, 4, requires_grad=True)):
        with mode():
            view = make(x)
        assert view.requires_grad and view.grad_fn is None and view.is_leaf
        with pytest.raises(RuntimeError, match=f"A view was created in {word} mode and is being modified inplace"):
            view.mul_(2)
        with pytest.raises(RuntimeError, match=f"view of a view which was created in {word} mode"):
            view.view(-1).mul_(2)
        with torch.no_grad():
            view.mul_(2)
        with pytest.raises(RuntimeError, match="its base or another view of its base has been modified"):
            view.grad_fn  # noqa: B018
    plain = torch.ones(3, 4)
    with mode():
        view = make(plain)
    view.mul_(2)
    with pytest.raises(RuntimeError, match=f"created in {word} mode"):
        view.mul_(needs_grad())


def test_views_of_leaves():
    leaf = torch.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        leaf.view(2, 2).mul_(2)
    with pytest.raises(RuntimeError, match="^mul: a leaf Variable that requires grad is being used in an in-place"):
        leaf.mul_(2)


def test_numpy_of_what_needs_no_gradient_now():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"tensor.detach\(\).numpy\(\)"):
        x.numpy()


def function(forward):
    return type("Fn", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, *g: g[0])})


def dirty(results):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return results(x)

    return function(forward)


def test_views_that_a_function_returns():
    x = torch.ones(2, requires_grad=True)
    for forward in (lambda ctx, x: x.view(-1), lambda ctx, x: x):
        with pytest.raises(RuntimeError, match="Output 0 of FnBackward is a view .* inside a custom Function"):
            function(forward).apply(x * 1).mul_(2)
        assert function(forward).apply(torch.ones(2)).mul_(2).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="several views"):
        function(lambda ctx, x: (x[0], x[1])).apply(x * 1)[0].mul_(2)


def test_mark_dirty():
    leaf = torch.ones(2, requires_grad=True)
    in_place = dirty(lambda x: x)
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad has been used in an in-place operation"
    ):
        in_place.apply(leaf.clone().detach().requires_grad_())
    with pytest.raises(
        RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place"
    ):
        in_place.apply(leaf.view(-1))
    with pytest.raises(RuntimeError, match="several views"):
        in_place.apply((leaf * 1).unbind(0)[0])
    with pytest.raises(RuntimeError, match="must all be outputs of the Function"):
        dirty(lambda x: x.clone()).apply(torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        dirty(lambda x: (x, x.clone())).apply((leaf * 1).view(-1))
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument 0 is of type int"):
        function(lambda ctx, x: ctx.mark_dirty(5)).apply(leaf)
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arguments, but got int"):
        function(lambda ctx, x: ctx.mark_non_differentiable(5)).apply(leaf)
    assert "FnBackward" in repr(in_place.apply(leaf * 1)) and in_place.apply(torch.ones(2)).tolist() == [2, 2]

    def constant(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    assert not function(constant).apply(leaf * 1).requires_grad


def test_the_gradients_that_views_retain():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    v, w = y[0:2], y[1:]
    v.retain_grad()
    w.retain_grad()
    v.mul_(3)
    (v.sum() + w.sum()).backward()
    assert v.grad.tolist() == w.grad.tolist() == [1, 1] and x.grad.tolist() == [6, 12, 2]
    y = x * 2
    v = y[0]
    v.retain_grad()
    v.mul_(3)
    y.sum().backward()
    assert v.grad is None


def test_data_of_another_kind():
    p = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        p.data = torch.ones(3, dtype=torch.int64)
    p.data = torch.zeros(2, dtype=torch.float64)
    assert p.dtype == torch.float64


def test_module_hooks_forbid_changing_the_output():
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        torch.nn.Sequential(layer, torch.nn.ReLU(inplace=True))(torch.ones(1, 2))


SHARED = {
    "mul_": lambda y: y.mul_(y.detach()),
    "div_": lambda y: y.div_(y.detach()),
    "mul_ of a view": lambda y: y.mul_(y.detach().view(2, 2)),
    "lerp_": lambda y: y.lerp_(y.detach(), y.detach()),
    "addcmul_": lambda y: y.addcmul_(y, y),
    "addcmul_ of views": lambda y: y.addcmul_(y.view(2, 2), y.view(2, 2)),
    "addcdiv_": lambda y: y.addcdiv_(y, y.detach()),
}


@pytest.mark.parametrize("change", SHARED.values(), ids=SHARED)
def test_operands_that_are_overwritten_are_not_read_by_backward(change):
    y = (torch.arange(4.0).view(2, 2) / 7 + 0.3).requires_grad_() * 1.5
    change(y)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_operators_without_a_derivative_cut_the_history_off():
    for change in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "greater_", "greater_equal_", "less_", "less_equal_"):
        x = torch.arange(3.0, requires_grad=True)
        y = x * 1
        getattr(y, change)(2)
        assert y.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [0, 0, 0]
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            getattr(x, change)(2)
    for view in (lambda y: y, lambda y: y[1:]):
        x = torch.arange(3.0, requires_grad=True)
        y = x * 1
        view(y).floor_divide_(2)
        with pytest.raises(RuntimeError, match="derivative for floor_divide is not implemented"):
            y.sum().backward()
