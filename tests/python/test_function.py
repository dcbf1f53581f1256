"""autograd.Function, grad and backward's arguments, functional, gradcheck, hooks on the graph, checkpoint."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, functional, gradcheck, gradgradcheck
from rushlight.autograd.function import once_differentiable
from rushlight.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Scale(Function):
    @staticmethod
    def forward(x, y, factor=2.0):
        return x * y * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.factor = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y * ctx.factor, grad * x * ctx.factor, None


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_gradients():
    x, y = double(3), double(3)
    assert gradcheck(Exp.apply, x) and gradgradcheck(Exp.apply, x)
    assert gradcheck(Scale.apply, (x, y)) and gradgradcheck(Scale.apply, (x, y))
    assert gradcheck(lambda a, b: Scale.apply(a, b, factor=3.0), (x, y))
    assert gradcheck(Square.apply, x)


def test_the_context_is_the_grad_fn():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.n, None

    x = double(2)
    y = Keep.apply(x, 3)
    assert y.grad_fn.n == 3 and y.grad_fn.name() == "KeepBackward"
    assert y.grad_fn.needs_input_grad == (True, False)
    assert type(y.grad_fn).__name__ == "KeepBackward"


def test_once_differentiable():
    x = double(3)
    one = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(Square.apply(x), x, one, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        grad.sum().backward()


def test_nothing_is_recorded_without_need():
    y = Exp.apply(torch.ones(2))
    assert not y.requires_grad and y.grad_fn is None
    with torch.no_grad():
        assert Exp.apply(double(2)).grad_fn is None


def test_dirty_and_non_differentiable():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = torch.zeros(2, requires_grad=True)
    y = x * 1
    z = AddOne.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [10, 10]
    with pytest.raises(RuntimeError, match="leaf"):
        AddOne.apply(x)

    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, grad, unused):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(grad).scatter(0, order, grad)

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, order = Sort.apply(x)
    assert values.requires_grad and not order.requires_grad
    (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3, 1, 2]


def test_materialize_grads():
    seen = []

    def make(materialize):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 1, x * 2

            @staticmethod
            def backward(ctx, a, b):
                seen.append(b if b is None else b.tolist())
                return a

        return Two

    for materialize in (True, False):
        make(materialize).apply(double(2))[0].sum().backward()
    assert seen == [[0.0, 0.0], None]


def test_wrong_number_and_shape_of_gradients():
    class Two(Exp):
        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(
        RuntimeError, match=r"TwoBackward returned an incorrect number of gradients \(expected 1, got 2\)"
    ):
        Two.apply(double(2)).sum().backward()

    class Longer(Exp):
        @staticmethod
        def backward(ctx, grad):
            return torch.ones(5)

    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        Longer.apply(double(2)).sum().backward()


def test_saved_tensors_are_watched_and_freed():
    x = double(2)
    y = Exp.apply(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = Exp.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_an_output_that_is_saved_makes_no_cycle():
    y = Exp.apply(double(2))
    gone = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_exceptions_pass_through_backward():
    class Fails(Exp):
        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(double(2)).sum().backward()


def test_functions_are_not_instantiated_and_say_what_lacks():
    with pytest.raises(RuntimeError, match="static"):
        Exp()

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Half.apply(double(1)).sum().backward()
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        type("Empty", (Function,), {}).apply(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.autograd.backward(x * 2), "grad can be implicitly created only for scalar outputs"),
        (lambda x: torch.autograd.backward(x * 2, torch.ones(3)), r"grad_output\[0\] has a shape of"),
        (lambda x: torch.autograd.grad(x.sum(), []), "`inputs` argument to `grad\\(\\)` cannot be empty"),
        (lambda x: torch.autograd.grad(x.sum(), double(2)), "Set allow_unused=True if this is the desired behavior"),
        (lambda x: torch.autograd.backward(torch.ones(1)), "does not require grad"),
    ],
)
def test_messages(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(double(2))


def test_grad_options():
    x, y = double(3), double(3)
    grads = torch.autograd.grad((x * y).sum(), {"x": x, "y": y})
    assert torch.equal(grads["x"], y) and x.grad is None
    batched = torch.autograd.grad(x * x, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)[0]
    assert torch.allclose(batched, torch.diag(2 * x.detach()))
    assert torch.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0, 0, 0]
    torch.autograd.backward((x * y).sum(), inputs=[x])
    assert torch.equal(x.grad, y) and y.grad is None


def test_functional():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0])

    def f(a, b):
        return (a * a * b).sum()

    assert functional.jacobian(lambda a: a**2, a).tolist() == [[2, 0], [0, 4]]
    hessian = functional.hessian(f, (a, b))
    assert hessian[0][0].tolist() == [[6, 0], [0, -2]] and hessian[0][1].tolist() == [[2, 0], [0, 4]]
    v = (torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    assert functional.vjp(f, (a, b), torch.tensor(2.0))[1][0].tolist() == [12, -8]
    assert functional.jvp(f, (a, b), v)[1].item() == 10
    for product in (functional.vhp, functional.hvp):
        assert [p.tolist() for p in product(f, (a, b), v)[1]] == [[6, 4], [2, 0]]
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.jacobian(lambda a, b: a * 2, (a, b), strict=True)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.jvp(lambda a: a, a, torch.ones(3))


def test_gradcheck_finds_errors():
    class Wrong(Exp):
        @staticmethod
        def backward(ctx, grad):
            return grad

    x = double(2)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(Wrong.apply, x)
    assert gradcheck(Wrong.apply, x, raise_exception=False) is False
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(Exp.apply, x.detach())
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, torch.ones(2, requires_grad=True), atol=1)
    assert gradcheck(lambda a, b: (a * b, a.sum()), (x, double(2)), check_batched_grad=True)


def test_gradcheck_gives_undefined_gradients():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return 2 * x, 3 * x

        @staticmethod
        def backward(ctx, a, b):
            seen.add((a is None, b is None))
            if a is None and b is None:
                return None
            return (0 if a is None else 2 * a) + (0 if b is None else 3 * b)

    class Careless(Twice):
        @staticmethod
        def backward(ctx, a, b):
            return 2 * a + 3 * b

    class Wrong(Twice):
        @staticmethod
        def backward(ctx, a, b):
            return torch.ones(2) if a is None and b is None else Twice.backward(ctx, a, b)

    seen, x = set(), double(2)
    assert gradcheck(Twice.apply, x)
    assert {(True, True), (True, False), (False, True)} <= seen
    with pytest.raises(RuntimeError, match="Expected all input grads to be undefined or zero"):
        gradcheck(Wrong.apply, x)
    with pytest.raises(TypeError):  # as any backward that takes None for a tensor
        gradcheck(Careless.apply, x)


def test_functions_behind_an_undefined_gradient_run():
    class Stop(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return None

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            got.append(grad)
            return grad

    got, x = [], double(2)
    Stop.apply(Seen.apply(x)).sum().backward()
    assert got[0].tolist() == x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("inputs", [None, "leaf"])
def test_hooks_after_accumulation(inputs):
    for answer, kind, message in (
        (torch.ones(2), RuntimeError, "Tensor post accumulate grad hooks should return None."),
        (5, TypeError, "expected Variable, but hook returned 'int'"),
    ):
        x = torch.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda leaf, answer=answer: answer)
        with pytest.raises(kind, match=message):
            (x * 2).sum().backward(inputs=inputs and [x])
        assert torch.is_grad_enabled() and x.grad.tolist() == [2, 2]
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf)
    (x * 2).sum().backward(inputs=inputs and [x])


def test_errors_of_grad():
    x, z, plain = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3)
    grad = torch.autograd.grad
    for call, message in (
        (lambda: grad((x * 2).sum(), [x, z]), "Tensor at index 1 appears to not have been used"),
        (lambda: grad((x * 2).sum(), [plain]), "One of the differentiated Tensors does not require grad"),
        (lambda: grad(plain.sum(), x), "element 0 of tensors does not require grad and does not have a grad_fn"),
        (lambda: grad([x * 2, x * 3], [x], [plain]), "got 2 tensors and 1 gradients"),
        (lambda: grad((x * 2).sum(), [x, None]), "all inputs have to be Tensors, but got NoneType"),
        (lambda: grad([None], [x]), "all tensors have to be Tensors, but got NoneType"),
        (lambda: grad((x * 2).sum(), []), "`inputs` argument to `grad\\(\\)` cannot be empty"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    x.register_hook(lambda g: g.double())
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        (x * 2).sum().backward()


def test_gradcheck_of_complex_functions():
    z = torch.randn(2, 2, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z.conj(), z.abs()), z)
    assert gradgradcheck(lambda z: z * z, z)


def test_saved_tensors_hooks():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t.tolist()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, torch.tensor):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 4] and packed
    with torch.autograd.graph.save_on_cpu():
        y = x.exp().sum()
    y.backward()
    assert x.grad.tolist() == pytest.approx([2 + 2.7182818, 4 + 7.3890561])


def test_multi_grad_hook():
    x, y = double(2), double(2)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: seen.append(len(grads)))
    (x * y).sum().backward()
    handle.remove()
    (x * y).sum().backward()
    assert seen == [2]


def test_anomaly_mode():
    with torch.autograd.set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()
        x = torch.zeros(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="returned nan values"), pytest.warns(UserWarning):
            (x.sqrt() * 0).sum().backward()
    assert not torch.is_anomaly_enabled()


def layers():
    torch.manual_seed(1)
    return torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))])


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_gives_the_same_gradients(use_reentrant):
    net, results = layers(), []
    for call in (net, lambda x: checkpoint(net, x, use_reentrant=use_reentrant)):
        torch.manual_seed(0)
        x = torch.ones(2, 4, requires_grad=True)
        net.zero_grad()
        (call(x) ** 2).sum().backward()
        results.append([x.grad, *(p.grad for p in net.parameters())])
    for a, b in zip(*results):
        assert torch.equal(a, b)


def test_checkpoint_nested_sequential_and_twice():
    net = layers()
    x = torch.ones(2, 4, requires_grad=True)
    torch.manual_seed(0)
    (expected,) = torch.autograd.grad(net(x).sum(), x)

    def part(layers):
        return lambda x: checkpoint(layers, x, use_reentrant=False)

    ways = [
        lambda: checkpoint_sequential(net, 2, x, use_reentrant=False),
        lambda: checkpoint(lambda x: part(net[4:])(part(net[:4])(x)), x, use_reentrant=False),
    ]
    for way in ways:
        torch.manual_seed(0)
        out = way().sum()
        for _ in range(2):
            assert torch.equal(torch.autograd.grad(out, x, retain_graph=True)[0], expected)


def test_checkpoint_keeps_nothing_and_counts_runs():
    runs = []

    def f(x):
        runs.append(torch.is_grad_enabled())
        return x.exp().sin()

    x = double(3)
    y = checkpoint(f, x, use_reentrant=False)
    assert runs == [True]
    y.sum().backward()
    assert runs == [True, True]
    assert torch.allclose(x.grad, x.detach().exp().cos() * x.detach().exp())


def test_checkpoint_notices_another_second_run():
    runs = []

    def f(x):
        runs.append(1)
        return x.exp() if len(runs) == 1 else x.exp().exp()

    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        checkpoint(f, double(2), use_reentrant=False, early_stop=False).sum().backward()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        checkpoint(f, double(2), use_reentrant=True, k=1)
