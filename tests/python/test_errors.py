"""What wrong calls say: PyTorch's exception type, the operator, what was given and what would be right, and the words
that people and programs look for. Each row is one call."""

import re

import pytest

import rushlight as torch

ones = torch.ones


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def twice():
    y = (leaf(3) ** 2).sum()
    y.backward()
    y.backward()


def overwritten():
    x = leaf(3)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def in_place_on_a_view_of_a_leaf():
    leaf(3)[0].fill_(2)


def wrong_gradient():
    torch.autograd.grad(leaf(3) * 2, leaf(3), ones(2))


def unused():
    x, y = leaf(1), leaf(1)
    torch.autograd.grad(x * 2, y)


def grad_of_another_shape():
    leaf(3).grad = ones(4)


def hook_raises():
    x = leaf(1)
    x.register_hook(lambda g: 1 / 0)
    (x * 2).backward()


def wrong_from_hook():
    x = leaf(2)
    x.register_hook(lambda g: ones(5))
    (x * 2).sum().backward()


def inference_in_graph():
    with torch.inference_mode():
        x = ones(3)
    (leaf(3) * x).sum().backward()


def state(cell, shape):
    hidden = ones(shape)
    return (hidden, hidden) if cell is torch.nn.LSTMCell else hidden


ERRORS = [
    # shapes
    (lambda: ones(2, 3) + ones(4, 3), RuntimeError, ["add", "2", "4", "must match the size of tensor"]),
    (lambda: ones(2, 3).mul_(ones(4, 3)), RuntimeError, ["mul", "must match the size of tensor"]),
    (lambda: ones(3).add_(ones(2, 3)), RuntimeError, ["add", "(3,)|[3]", "(2, 3)|[2, 3]", "doesn't match the broadcast shape"]),
    (lambda: torch.mm(ones(2, 3), ones(4, 5)), RuntimeError, ["mm", "mat1 and mat2 shapes cannot be multiplied", "2x3", "4x5"]),
    (lambda: ones(2, 3) @ ones(4, 5), RuntimeError, ["shapes cannot be multiplied", "2x3", "4x5"]),
    (lambda: torch.bmm(ones(2, 3, 4), ones(2, 3, 4)), RuntimeError, ["bmm"]),
    (lambda: torch.nn.functional.linear(ones(2, 3), ones(5, 4)), RuntimeError, ["shapes cannot be multiplied", "2x3", "4x5"]),
    (lambda: torch.mv(ones(2, 3), ones(4)), RuntimeError, ["mv"]),
    (lambda: torch.dot(ones(2), ones(3)), RuntimeError, ["dot", "2", "3"]),
    (lambda: ones(2, 3).view(4, 2), RuntimeError, ["view", "shape '[4, 2]' is invalid for input of size 6"]),
    (lambda: ones(2, 3).reshape(-1, 4), RuntimeError, ["reshape", "invalid for input of size 6"]),
    (lambda: ones(2, 3).reshape(-1, -1), RuntimeError, ["reshape", "only one dimension can be inferred"]),
    (lambda: ones(2, 3).t().view(6), RuntimeError, ["view", "reshape"]),
    (lambda: ones(2, 3).expand(4, 3), RuntimeError, ["expand", "4", "2"]),
    (lambda: ones(2, 3, 4).t(), RuntimeError, ["t", "<= 2", "3"]),
    (lambda: torch.cat([ones(2, 3), ones(2, 4)]), RuntimeError, ["cat", "3", "4"]),
    (lambda: torch.cat([]), (RuntimeError, ValueError), ["cat", "non-empty"]),
    (lambda: torch.stack([ones(2), ones(3)]), RuntimeError, ["stack", "equal size"]),
    (lambda: torch.nn.functional.conv2d(ones(1, 3, 8, 8), ones(4, 2, 3, 3)), RuntimeError, ["conv2d|convolution", "3 channels", "2"]),
    (lambda: torch.nn.functional.cross_entropy(ones(3, 5), torch.zeros(4, dtype=torch.int64)), ValueError, ["batch_size", "3", "4"]),
    (lambda: torch.nn.functional.layer_norm(ones(2, 3), (4,)), RuntimeError, ["layer_norm", "4", "3"]),
    (lambda: ones(4).chunk(0), RuntimeError, ["chunk", "0"]),
    (lambda: ones(4).split([1, 2]), RuntimeError, ["split", "4"]),
    (lambda: torch.zeros(-1), RuntimeError, ["zeros", "-1", "negative dimension"]),
    (lambda: torch.broadcast_shapes((2,), (3,)), RuntimeError, ["broadcast_shapes"]),
    # dimensions and indices
    (lambda: ones(2, 3).sum(2), IndexError, ["sum", "Dimension out of range (expected to be in range of [-2, 1], but got 2)"]),
    (lambda: ones(2, 3).transpose(0, -3), IndexError, ["transpose", "Dimension out of range", "-3"]),
    (lambda: ones(2, 3).sum((0, 0)), RuntimeError, ["sum", "dim 0 appears multiple times|appears multiple times"]),
    (lambda: ones(2, 3).permute(0, 0), RuntimeError, ["permute"]),
    (lambda: ones(2, 3)[5], IndexError, ["5", "out of bounds", "size 2"]),
    (lambda: ones(2)[0, 0], IndexError, ["too many indices for tensor of dimension 1"]),
    (lambda: ones(3)[torch.tensor([5])], IndexError, ["5", "out of bounds", "3"]),
    (lambda: ones(3)[torch.tensor([1.5])], IndexError, ["indices must be long, int, byte or bool tensors|indices"]),
    (lambda: ones(3)[torch.tensor([True, False])], IndexError, ["mask", "[2]", "[3]"]),
    (lambda: torch.index_select(ones(3), 0, torch.tensor([7])), IndexError, ["out of range"]),
    (lambda: torch.gather(ones(3), 0, torch.tensor([7])), RuntimeError, ["gather", "7", "out of bounds"]),
    (lambda: torch.nn.functional.embedding(torch.tensor([9]), ones(4, 2)), IndexError, ["out of range"]),
    (lambda: ones(2, 3).select(0, 2), IndexError, ["select", "2"]),
    (lambda: ones(4).narrow(0, 2, 3), RuntimeError, ["narrow", "2", "3", "4"]),
    (lambda: torch.topk(ones(3), 4), RuntimeError, ["topk", "out of range"]),
    (lambda: iter(torch.tensor(1.0)), TypeError, ["iteration over a 0-d tensor"]),
    (lambda: len(torch.tensor(1.0)), TypeError, ["len() of a 0-d tensor"]),
    (lambda: ones(4).narrow(0, torch.tensor(True), 3), RuntimeError, ["narrow", "0-dim integral Tensor"]),
    (lambda: ones(4).narrow(0, torch.tensor([1]), 3), RuntimeError, ["narrow", "0-dim integral Tensor"]),
    (lambda: torch.narrow_copy(ones(2, 3), 2, 0, 1), RuntimeError, ["narrow_copy", "2"]),
    (lambda: torch.nn.functional.group_norm(ones(1, 2, 0), 1), RuntimeError, ["group_norm", "HxW"]),
    # calls
    (lambda: ones(3).add(1, out=ones(3)), TypeError, ["add", "unexpected keyword argument 'out'"]),
    (lambda: ones(3).max(0, out=(ones(3), ones(3))), TypeError, ["max", "invalid combination|'out'"]),
    (lambda: torch.pow(1, 2), TypeError, ["pow"]),
    (lambda: torch.maximum(1, 2), TypeError, ["maximum", "must be Tensor"]),
    (lambda: torch.einsum(5, ones(2)), TypeError, ["einsum", "'equation'", "must be str, not int"]),
    (lambda: torch.einsum("ij", "a"), TypeError, ["einsum"]),
    (lambda: torch.norm(ones(2, 3), "abc"), RuntimeError, ["norm", "Order abc not supported"]),
    (lambda: torch.norm(ones(2, 3), 1j), RuntimeError, ["norm", "non-complex scalar"]),
    (lambda: torch.norm(ones(1, 2, 3), "fro", dim=(0, 1, 2)), RuntimeError, ["norm", "2-tuple"]),
    # dtypes
    (lambda: torch.bincount(ones(3)), NotImplementedError, ["bincount", "Float"]),
    (lambda: torch.bincount(torch.tensor([True])), NotImplementedError, ["bincount", "Bool"]),
    (lambda: torch.nn.functional.multi_margin_loss(ones(2, 3), ones(2)), RuntimeError, ["expected scalar type Long but found Float"]),
    (lambda: torch.signal.windows.hann(3, dtype=torch.bfloat16), ValueError, ["expects float32 or float64 dtypes"]),
    (lambda: torch.multinomial(ones(3), 2, out=ones(2)), RuntimeError, ["multinomial", "result type Long can't be cast"]),
    (lambda: torch.zeros(3, dtype=torch.int64).add_(1.5), RuntimeError, ["add", "result type Float can't be cast to the desired output type Long"]),
    (lambda: torch.zeros(3, dtype=torch.int64, requires_grad=True), RuntimeError, ["floating point", "require gradients"]),
    (lambda: torch.mm(ones(2, 2), ones(2, 2, dtype=torch.float64)), RuntimeError, ["mm", "same dtype", "float", "double"]),
    (lambda: ones(3).bitwise_and(ones(3)), NotImplementedError, ["bitwise_and", "Float"]),
    (lambda: ones(3).bitwise_not(), NotImplementedError, ["bitwise_not", "Float"]),
    (lambda: torch.gcd(ones(3), ones(3)), NotImplementedError, ["gcd", "Float"]),
    (lambda: torch.clamp(torch.tensor([1j]), 0), NotImplementedError, ["clamp", "complex"]),
    (lambda: torch.heaviside(torch.tensor([1j]), torch.tensor([1j])), NotImplementedError, ["heaviside", "complex"]),
    (lambda: torch.isneginf(torch.tensor([1j])), TypeError, ["isneginf", "complex"]),
    (lambda: ones(2, dtype=torch.bool) - ones(2, dtype=torch.bool), NotImplementedError, ["sub", "bool"]),
    (lambda: torch.mean(torch.ones(3, dtype=torch.int64)), NotImplementedError, ["mean", "Long", "dtype"]),
    (lambda: torch.tensor(["a"]), (TypeError, ValueError), ["str"]),
    (lambda: torch.tensor([[1, 2], [3]]), ValueError, ["length|shape"]),
    (lambda: ones(3, dtype="float"), TypeError, ["ones", "dtype", "str"]),
    # devices
    (lambda: torch.ones(3, device="nowhere"), RuntimeError, ["Expected one of cpu", "nowhere"]),
    (lambda: torch.ones(3, device="meta") + ones(3), RuntimeError, ["add", "Expected all tensors to be on the same device", "meta", "cpu"]),
    (lambda: torch.ones(3, device="meta").tolist(), (RuntimeError, NotImplementedError), ["meta"]),
    (lambda: torch.ones(3, device="cuda"), (RuntimeError, AssertionError), ["CUDA|cuda"]),
    # calls
    (lambda: torch.add(ones(3)), TypeError, ["add", "missing", "other"]),
    (lambda: torch.add(ones(3), 1, 2, 3), TypeError, ["add", "positional"]),
    (lambda: torch.maximum(ones(3), 2), TypeError, ["maximum", "argument 'other' (position 2) must be Tensor, not int"]),
    (lambda: torch.isclose(ones(3), 2), TypeError, ["isclose", "must be Tensor, not int"]),
    (lambda: torch.eq(2, ones(3)), TypeError, ["eq", "must be Tensor, not int"]),
    (lambda: torch.cat([ones(3), None]), TypeError, ["cat", "tuple of Tensors"]),
    (lambda: ones(3).select(0, torch.tensor([1])), TypeError, ["select", "must be int"]),
    (lambda: torch.add(ones(3), ones(3), beta=1), TypeError, ["add", "unexpected keyword argument 'beta'"]),
    *((call, TypeError, ["must be int, not bool"])
      for call in (
          lambda: ones(2, 3).cumsum(True),
          lambda: ones(2, 3).transpose(True, 0),
          lambda: ones(2, 3).size(True),
          lambda: torch.topk(ones(3), True),
          lambda: torch.cat([ones(3)], dim=False),
          lambda: torch.eye(True),
      )),
    *((call, TypeError, ["tuple of ints|invalid combination"])
      for call in (
          lambda: torch.zeros(True),
          lambda: torch.full(3, 2),
          lambda: ones(2, 3).sum(True),
          lambda: torch.nn.functional.pad(ones(2, 3), 1),
          lambda: torch.nn.functional.layer_norm(ones(2, 3), 3),
          lambda: torch.nn.functional.max_pool2d(ones(1, 4, 4), True),
          lambda: torch.randint(0, 10, 3),
      )),
    (lambda: ones(2, 3).size(1.0), TypeError, ["size", "must be int, not float"]),
    (lambda: ones(2).requires_grad_(1), TypeError, ["requires_grad_", "must be bool, not int"]),
    *((lambda value=value: torch.nn.functional.mse_loss(ones(2), ones(2), reduction=value), ValueError, [f"{value} is not a valid value for reduction"])
      for value in (1, None, "abc")),
    *((lambda cell=cell, shape=shape: cell(3, 2)(ones(2, 3), state(cell, shape)), RuntimeError, [words])
      for cell in (torch.nn.RNNCell, torch.nn.GRUCell, torch.nn.LSTMCell)
      for shape, words in (((2,), "Expected 2D hidden0"), ((1, 2), "batch size 2 doesn't match hidden0 batch size 1"))),
    (lambda: ones(3).fill_diagonal_(1), RuntimeError, ["fill_diagonal_", "larger than 1"]),
    (lambda: ones(2, 2, 3).fill_diagonal_(1), RuntimeError, ["fill_diagonal_", "equal length"]),
    (lambda: torch.exp("x"), TypeError, ["exp", "argument 'input' (position 1) must be Tensor, not str"]),
    (lambda: torch.sum(ones(3), dim="x"), TypeError, ["sum", "invalid combination of arguments"]),
    (lambda: ones(2) + "x", TypeError, ["unsupported operand"]),
    (lambda: ones(2).no_such_method, AttributeError, ["no_such_method"]),
    (lambda: bool(ones(2)), RuntimeError, ["Boolean value of Tensor with more than one value is ambiguous"]),
    (lambda: ones(2).item(), RuntimeError, ["2 elements", "cannot be converted to Scalar"]),
    (lambda: ones(3).expand(2, 3).add_(1), RuntimeError, ["add", "single memory location", "clone()"]),
    (lambda: torch.ones(2, 2).numpy(dtype=1), TypeError, ["numpy"]),
    # memory
    (lambda: torch.empty(1 << 46), torch.OutOfMemoryError, ["not enough memory|out of memory", str(4 << 46)]),
    *((lambda call=call: call(ones(4)), RuntimeError, ["some elements of the input tensor and the written-to tensor refer to a single memory location"])
      for call in (
          lambda x: x[1:].add_(x[:-1]),
          lambda x: torch.exp(x[1:], out=x[:-1]),
          lambda x: torch.gather(x, 0, torch.tensor([0, 1]), out=x),
          lambda x: torch.take(x, torch.tensor([0, 1]), out=x),
          lambda x: torch.index_select(x, 0, torch.tensor([0, 1]), out=x),
          lambda x: torch.masked_select(x, x > 0, out=x),
          lambda x: torch.kthvalue(x, 2, out=(x, torch.tensor(0))),
          lambda x: torch.cat([x[:2], x[2:]], out=x),
      )),
    (lambda: torch.as_strided(ones(4), (3, 3), (3, 1)), RuntimeError, ["as_strided", "out of bounds"]),
    # autograd
    (twice, RuntimeError, ["backward through the graph a second time", "retain_graph=True"]),
    (lambda: leaf(3).mul(2).backward(), RuntimeError, ["grad can be implicitly created only for scalar outputs"]),
    (lambda: ones(1).backward(), RuntimeError, ["element 0 of tensors does not require grad and does not have a grad_fn"]),
    (lambda: leaf(3).add_(1), RuntimeError, ["a leaf Variable that requires grad is being used in an in-place operation"]),
    (in_place_on_a_view_of_a_leaf, RuntimeError, ["leaf Variable that requires grad", "in-place"]),
    (overwritten, RuntimeError, ["modified by an inplace operation", "exp|Exp", "version"]),
    (lambda: leaf(3).numpy(), RuntimeError, ["Can't call numpy() on Tensor that requires grad", "detach().numpy()"]),
    (lambda: torch.add(leaf(3), 1, out=ones(3)), RuntimeError, ["add", "out=...", "don't support automatic differentiation"]),
    (wrong_gradient, RuntimeError, ["Mismatch in shape", "grad_output"]),
    (unused, RuntimeError, ["Tensor at index 0 appears to not have been used in the graph", "allow_unused=True"]),
    (grad_of_another_shape, RuntimeError, ["assigned grad has data of a different size|size"]),
    (lambda: setattr(leaf(3), "grad", 1), TypeError, ["assigned grad expected to be a Tensor or None", "int"]),
    (hook_raises, ZeroDivisionError, ["division by zero"]),
    (wrong_from_hook, RuntimeError, ["hook", "size|shape"]),
    (lambda: setattr(leaf(3) * 2, "requires_grad", False), RuntimeError, ["you can only change requires_grad flags of leaf variables"]),
    (inference_in_graph, RuntimeError, ["Inference tensors cannot be saved for backward"]),
    (lambda: __import__("copy").deepcopy(leaf(3) * 2), RuntimeError, ["graph leaves", "deepcopy"]),
]  # fmt: skip


def _name(row):
    return re.sub(r"\W+", " ", " ".join(row[2]))[:60].strip()


@pytest.mark.parametrize("row", ERRORS, ids=_name)
def test_error(row):
    call, kind, words = row
    with pytest.raises(kind) as caught:
        call()
    kinds = kind if isinstance(kind, tuple) else (kind,)
    assert type(caught.value) in kinds, f"raised {type(caught.value).__name__}: {caught.value}"
    for word in words:
        assert any(option in str(caught.value) for option in word.split("|")), f"{word!r} is not in: {caught.value}"
