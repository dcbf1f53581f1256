"""Functions over lists of tensors: each gives what the method gives for one tensor."""

import pytest

import rushlight as torch
from rushlight._foreach import BINARY, UNARY


def lists():
    return [torch.tensor([1.0, 4.0]), torch.full((3,), 2.0)], [torch.tensor([0.5, 0.25]), torch.ones(3)]


def one(name):
    return getattr(torch.Tensor, name)


CASES = {
    "add": [(1,), (2.5,), (lists()[1],), ([1, 2],), (torch.tensor(3.0),)],
    "sub": [(1,), (lists()[1],)],
    "mul": [(2,), (lists()[1],), ([3, 4],)],
    "div": [(2,), (lists()[1],)],
    "pow": [(2,), (lists()[1],), ([2, 3],)],
    "lerp": [(lists()[1], 0.25), (lists()[1], lists()[0])],
    "clamp_min": [(1.5,), (lists()[1],)],
    "clamp_max": [(1.5,), (lists()[1],)],
}


def spread(argument, i):
    return argument[i] if isinstance(argument, list) else argument


@pytest.mark.parametrize("method", UNARY + BINARY)
def test_is_the_method_of_each(method):
    name = f"_foreach_{method}_"
    for arguments in CASES[method] if method in BINARY else [()]:
        xs, _ = lists()
        expected = [one(method)(x, *(spread(a, i) for a in arguments)) for i, x in enumerate(xs)]
        result = getattr(torch, name[:-1])(xs, *arguments)
        assert isinstance(result, tuple)
        torch.testing.assert_close(list(result), expected, equal_nan=True)
        torch.testing.assert_close(xs, lists()[0])
        before = list(xs)
        getattr(torch, name)(xs, *arguments)
        assert all(x is y for x, y in zip(xs, before))
        torch.testing.assert_close(xs, expected, equal_nan=True)


@pytest.mark.parametrize(
    "call, expected",
    [(lambda x, y: torch._foreach_add(x, y, alpha=2), [[2, 4.5], [4, 4, 4]]),
     (lambda x, y: torch._foreach_addcdiv(x, x, y, value=2), [[5, 36], [6, 6, 6]]),
     (lambda x, y: torch._foreach_addcdiv_(x, x, y, [1, 2]), [[3, 20], [6, 6, 6]]),
     (lambda x, y: torch._foreach_addcmul_(x, x, y, value=2), [[2, 6], [6, 6, 6]]),
     (lambda x, y: torch._foreach_maximum(x, 1.5), [[1.5, 4], [2, 2, 2]]),
     (lambda x, y: torch._foreach_minimum(x, y), [[0.5, 0.25], [1, 1, 1]]),
     (lambda x, y: torch._foreach_pow(2.0, x), [[2, 16], [4, 4, 4]]),
     (lambda x, y: torch._foreach_max(x), [4, 2]),
     (lambda x, y: torch._foreach_norm(x, 1), [5, 6]),
     (lambda x, y: torch._foreach_norm([torch.tensor([3.0, 4.0])]), [5]),
     (lambda x, y: torch._foreach_copy_(x, y), [[0.5, 0.25], [1, 1, 1]]),
     (lambda x, y: torch._foreach_zero_(x), [[0, 0], [0, 0, 0]])],
)  # fmt: skip
def test_values(call, expected):
    torch.testing.assert_close(list(call(*lists())), [torch.tensor(value, dtype=torch.float32) for value in expected])


def test_gradients_go_through():
    x = torch.ones(2, requires_grad=True)
    torch._foreach_mul([x, x], [2, 3])[1].sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize(
    "call, kind, message",
    [(lambda x, y: torch._foreach_add(x, y[:1]), RuntimeError, "same number of tensors, got 2 and 1"),
     (lambda x, y: torch._foreach_add_(x, [1]), RuntimeError, "same number of tensors, got 2 and 1"),
     (lambda x, y: torch._foreach_add([], 1), RuntimeError, "at least one tensor"),
     (lambda x, y: torch._foreach_sqrt(x[0]), TypeError, "must be tuple of Tensors, not Tensor")],
)  # fmt: skip
def test_errors(call, kind, message):
    x, y = lists()
    with pytest.raises(kind, match=message):
        call(x, y)
    torch.testing.assert_close(x, lists()[0])
