"""Arguments that no program means to pass: whatever they are, the answer is a result or a Python exception, never a crash.

A fault here ends the test process, so each test is one: the table names the faults that were there once, and every
operator is called with arguments drawn at random from its schema.
"""

import copy
import gc
import pickle
import random
import re
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C

F = torch.nn.functional
HUGE, TOP, BOTTOM = 2**62, 2**63 - 1, -(2**63)


def ones(*size, **kwargs):
    return torch.ones(size, **kwargs)


def meta(value):
    return torch.tensor(value, device="meta")


class Clearing:
    """An index that empties the list it is read from."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        gc.collect()
        return 1


def clearing_list():
    items = []
    items.extend([Clearing(items), *range(8)] * 4)
    return items


def backward_with_other_indices():
    y, where = F.max_pool2d(ones(1, 1, 4, 4, requires_grad=True), 2, return_indices=True)
    where.data.fill_(10**9)
    y.sum().backward()


RAISES = {
    "windows beyond the storage": [
        lambda: ones(4).as_strided((2**31, 2**31), (2**31, 2**31)),
        lambda: ones(4).as_strided((HUGE + 1,), (4,)),
        lambda: ones(4).as_strided((1,), (1,), TOP),
        lambda: ones(3).narrow(0, 1, TOP),
        lambda: ones(3).unfold(0, 1, TOP),
    ],
    "sizes whose product overflows": [
        lambda: ones(4).resize_(2**32, 2**32),
        lambda: ones(4).resize_(2**61, 8),
        lambda: ones(0).view(2**32, 2**32),
        lambda: ones(1).expand(2**32, 2**32),
        lambda: torch.empty_strided((2, 2), (HUGE, HUGE)),
        lambda: torch.empty_strided((2**32, 2), (2**32, 1)),
        lambda: ones(2).repeat(HUGE, HUGE),
        lambda: torch.tril_indices(HUGE, 1, 0),
        lambda: torch.diag_embed(ones(3), BOTTOM),
    ],
    "numbers whose sum overflows": [
        lambda: torch.repeat_interleave(torch.tensor([HUGE, HUGE, HUGE, HUGE + 5])),
        lambda: torch.bincount(torch.tensor([TOP])),
        lambda: F.pad(ones(3), (TOP, TOP)),
        lambda: F.pad(ones(1, 1, 3), (HUGE, -HUGE), mode="replicate"),
        lambda: F.conv1d(ones(1, 1, 3), ones(1, 1, 2), padding=HUGE),
        lambda: F.conv1d(ones(1, 1, 3), ones(1, 1, 2), dilation=TOP),
        lambda: F.conv_transpose1d(ones(1, 1, 3), ones(1, 1, 2), stride=HUGE),
        lambda: F.max_pool1d(ones(1, 1, 3), 2, 1, 1, HUGE),
        lambda: F.pixel_shuffle(ones(1, 4, 2, 2), 2**32),
        lambda: F.ctc_loss(ones(5, 3, 4), torch.ones(3, dtype=torch.long), (5, 5, 5), (TOP, TOP, 4)),
    ],
    "places outside": [
        lambda: ones(3)[torch.tensor([BOTTOM])],
        lambda: ones(3, 0)[torch.tensor([5])],
        lambda: ones(3).gather(0, torch.tensor([HUGE])),
        lambda: F.embedding(torch.tensor([3]), ones(3, 2)),
        lambda: F.embedding_bag(torch.tensor([0, 1]), ones(3, 2), torch.tensor([0, -5])),
        backward_with_other_indices,
    ],
    "pivots of no factorization": [
        lambda: torch.lu_unpack(ones(3, 3), torch.full((4,), 99, dtype=torch.int32)[::2]),
        lambda: torch.linalg.lu_solve(ones(2, 3, 3), torch.full((3, 4), 99, dtype=torch.int32)[:, ::2], ones(2, 3, 1)),
        lambda: torch.linalg.ldl_solve(ones(3, 3), torch.ones(1, dtype=torch.int32), ones(3, 1)),
        lambda: torch.linalg.ldl_solve(ones(3, 3), torch.tensor([1, 2, 99], dtype=torch.int32), ones(3, 1)),
        lambda: torch.linalg.ldl_solve(ones(3, 3), torch.tensor([1, 2, -3], dtype=torch.int32), ones(3, 1)),
    ],
    "what is no tensor": [
        lambda: torch.cat([ones(2), None]),
        lambda: torch.stack([None]),
        lambda: torch.einsum("ij,jk->ik", [ones(2, 2), None]),
    ],
    "tensors without elements to read": [
        lambda: torch.tensor(1.0).add_(meta(2.0)),
        lambda: torch.tensor(1.0).addcdiv_(torch.tensor(1.0), meta(2.0)),
        lambda: torch.tensor(1.0).copy_(meta(3.0)),
        lambda: torch.add(meta(1.0), torch.tensor(2.0), out=torch.tensor(1.0)),
        lambda: ones(3).copy_(ones(3, device="meta")),
    ],
    "lists that change while they are read": [
        lambda: torch.zeros(clearing_list()),
        lambda: ones(2, 3).permute(clearing_list()),
    ],
    "masks of another shape": [lambda: _C.native_dropout_backward(ones(2, 3), ones(3, 0, dtype=torch.bool), 2.0)],
}


@pytest.mark.parametrize("call", [pytest.param(f, id=f"{k}-{i}") for k, v in RAISES.items() for i, f in enumerate(v)])
def test_raises(call):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
        call()


def test_sequence_that_empties_the_list_it_is_in():
    class Sequence:
        def __len__(self):
            outer.clear()
            return 3

        def __getitem__(self, i):
            return [1.0, 2.0, 3.0][i]

    outer = []
    outer.extend([Sequence(), Sequence(), [1.0, 2.0, 3.0]])
    with pytest.raises((RuntimeError, ValueError)):
        torch.tensor(outer)


def test_extremes_that_mean_something():
    x = torch.arange(9.0).reshape(3, 3)
    assert torch.equal(x.tril(TOP), x) and torch.equal(x.triu(BOTTOM), x)
    assert not x.triu(TOP).any() and not x.tril(BOTTOM).any()
    assert x.diagonal(TOP).shape == x.diagonal(BOTTOM).shape == (0,)
    assert x[:: 2**62].tolist() == [[0.0, 1.0, 2.0]] and x[2**70 :].shape == (0, 3)
    assert len(x.chunk(TOP)) == 3 and torch.tril_indices(HUGE, 0).shape == (2, 0)
    assert torch.triu_indices(HUGE, 2, 1).tolist() == [[0], [1]]
    counts = torch.histc(torch.tensor([1e308, -1e308, 0.0], dtype=torch.float64), 4, -1.7e308, 1.7e308)
    assert counts.sum() == 3
    for sample in (1e18, float("nan"), -7.5):
        chosen = F.fractional_max_pool2d(x[None], 2, output_size=2, _random_samples=torch.full((1, 1, 2), sample))
        assert set(chosen.flatten().tolist()) <= set(x.flatten().tolist())
    assert abs(torch.special.chebyshev_polynomial_t(torch.tensor(0.5), 3 * 2**40).item() - 1) < 1e-3
    assert F.conv2d(ones(2, 0, 3, 3), ones(4, 0, 2, 2), torch.arange(4.0)).sum() == 2 * 4 * 6


def test_views_outlive_a_shrunk_storage():
    for n in (10, 10_000):
        x = torch.arange(float(n))
        tail = x[n // 2 :]
        x.untyped_storage().resize_(0)
        tail += 1
        assert tail[-1] == n
        x.untyped_storage().resize_(8 * n)
        assert x.untyped_storage().nbytes() == 8 * n and x[n - 1] == n


EXPORTS = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "buffer": memoryview,
    "dlpack": np.from_dlpack,
    "capsule": torch.utils.dlpack.to_dlpack,
    "of a view": lambda x: x[1:].numpy(),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_memory_that_another_library_sees_is_not_resized(export):
    for n in (4, 1000):
        x = torch.arange(float(n))
        assert x.untyped_storage().resizable()
        kept = export(x)
        assert not x.untyped_storage().resizable()
        for resize in (lambda: x.resize_(100 * n), lambda: x.untyped_storage().resize_(0)):
            with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
                resize()
        assert x.resize_(2).tolist() == [0, 1] and x.resize_(n)[-1] == n - 1
        del kept
    assert not torch.from_numpy(np.ones(3)).untyped_storage().resizable()
    y = torch.ones(3)
    pickle.dumps(y), copy.deepcopy(y), y.tolist(), repr(y)
    assert y.resize_(100).shape == (100,)


def test_array_outlives_the_tensor_it_was_made_from():
    array = torch.arange(100_000.0).numpy()
    gc.collect()
    assert array[-1] == 99_999
    kept = torch.from_numpy(np.arange(100_000.0))
    gc.collect()
    assert kept[-1] == 99_999


def test_object_with_attributes_comes_back_once_the_graph_gives_it():
    for cycle in (False, True):
        x = ones(3, requires_grad=True)
        x.tag, x.me = [1], x if cycle else None
        y = x * 2
        del x
        gc.collect()
        leaf = y.grad_fn.next_functions[0][0].variable
        assert leaf.tag == [1] and leaf is y.grad_fn.next_functions[0][0].variable


# ---- every operator, with arguments drawn from its schema ----

INTEGERS = [0, 1, 1, 2, 2, 3, -1, -1, -2, 5, 7, 64, 2**40, HUGE, -HUGE, TOP, BOTTOM, 2**64]
FLOATS = [0.0, 1.0, 0.5, -1.0, 2.0, 1e300, -1e300, 1e-300, float("inf"), -float("inf"), float("nan")]
SHAPES = [(), (1,), (3,), (0,), (2, 3), (3, 3), (3, 0), (0, 3), (2, 3, 3), (1, 2, 3, 3), (2, 3, 4, 4), (1, 1, 3, 3, 3)]
DTYPES = [torch.float32] * 4 + [torch.float64, torch.bfloat16, torch.complex64, torch.int32, torch.uint8, torch.bool]
DTYPES += [torch.int64] * 3
WORDS = ["", "sum", "mean", "nearest", "bilinear", "reflect", "replicate", "circular", "add", "prod", "amax"]
WORDS += ["ij,jk->ik", "...i->i", "fro", "floor", "left", "no such"]


def some_tensor(r, shape):
    dtype = r.choice(DTYPES)
    n = int(np.prod(shape))
    if dtype.is_floating_point or dtype.is_complex:
        values = [r.gauss(0, 1) for _ in range(2 * n + 2)]
        values[r.randrange(len(values))] = r.choice(FLOATS)
    else:
        pool = r.choice([[0, 1, 2], [0, 1], [-1, 0, 3, 100], [BOTTOM, -1, 2**31, TOP]])
        values = [r.choice(pool) for _ in range(2 * n + 2)]
    memory = torch.tensor(values).to(dtype)
    layout = r.randrange(5)
    if layout == 0:
        t = memory[2::2].view(shape)
    elif layout == 1:
        t = memory[:n].view(shape[::-1]).permute(list(reversed(range(len(shape)))))
    elif layout == 2:
        t = memory[:1].view([1] * len(shape)).expand(shape)
    elif layout == 3 and n:
        t = memory.as_strided(shape, [r.choice([0, 1]) for _ in shape], 0)
    else:
        t = memory[1 : n + 1].view(shape)
    if r.random() < 0.25 and (dtype.is_floating_point or dtype.is_complex):
        t.requires_grad_()
    return t.detach().to("meta") if r.random() < 0.03 else t


def some_value(r, kind, shape):
    if r.random() < 0.04:
        return r.choice([None, "x", (), [None], 2**64, object(), some_tensor(r, shape)])
    if kind.endswith("?"):
        return None if r.random() < 0.5 else some_value(r, kind[:-1], shape)
    own = shape if r.random() < 0.6 else r.choice(SHAPES)
    match re.sub(r"\d+", "", kind):
        case "Tensor":
            return some_tensor(r, own)
        case "Tensor[]" | "Tensor?[]":
            return [some_tensor(r, own) if r.random() < 0.9 else None for _ in range(r.randrange(4))]
        case "int":
            return r.choice(INTEGERS)
        case "int[]":
            length = int(re.search(r"\d+", kind + "2")[0]) if r.random() < 0.6 else r.randrange(4)
            return [r.choice(INTEGERS if r.random() < 0.3 else INTEGERS[:9]) for _ in range(length)]
        case "float":
            return r.choice(FLOATS)
        case "float[]":
            return [r.choice(FLOATS) for _ in range(r.randrange(4))]
        case "bool":
            return r.random() < 0.5
        case "bool[]":
            return [r.random() < 0.5 for _ in range(3)]
        case "Scalar":
            return r.choice(INTEGERS[:-1] + FLOATS + [True, 1j])
        case "str":
            return r.choice(WORDS)
        case "ScalarType":
            return r.choice(DTYPES)
        case "Device":
            return r.choice(["cpu", "meta", "no such"])
        case "MemoryFormat":
            return r.choice([torch.channels_last, torch.preserve_format])
    return None


def some_call(r, schema):
    """Positional arguments and keywords for a schema, of which some that have a default are left out."""
    shape = r.choice(SHAPES)
    inside = schema[schema.index("(") + 1 : schema.rindex(")", 0, schema.rindex("->"))]
    args, kwargs, by_name = [], {}, False
    for argument in re.split(r", (?![^\[(]*[\])])", inside) if inside else []:
        if argument == "*" or ("=" in argument and r.random() < 0.4):
            by_name = True
            continue
        kind, name = argument.split("=")[0].split(" ")
        value = some_value(r, kind, shape)
        if by_name:
            kwargs["input" if name == "self" else name] = value
        else:
            args.append(value)
    if r.random() < 0.04:
        kwargs["out"] = some_tensor(r, shape)
    return args, kwargs


def use(result):
    """Reads every element and runs the graph behind it."""
    if isinstance(result, torch.Tensor) and not result.is_meta and result.numel() < 5000:
        repr(result)
        if result.grad_fn is not None:
            result.backward(torch.ones_like(result))
    elif isinstance(result, (list, tuple)):
        for item in result[:10]:
            use(item)


OPERATORS = [name for name in dir(_C) if isinstance(getattr(_C, name), _C.Operator)]


@pytest.mark.parametrize("name", OPERATORS)
def test_any_arguments(name):
    operator = getattr(_C, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(8):
            r = random.Random(f"{name} {seed}")
            args, kwargs = some_call(r, r.choice(operator.schemas))
            try:
                use(operator(*args, **kwargs))
            except SystemError:
                raise
            except Exception:  # noqa: BLE001 (which one is for other tests to say)
                pass


def test_a_triangular_solve_of_shapes_that_do_not_fit():
    """Found under AddressSanitizer: the solver wrote beyond its operands."""
    a, b = _C.ones(3, 3), _C.ones(2, 3, 2)
    for wrong in (
        (_C.ones(2, 3), _C.ones(3, 2)),
        (a, _C.ones(4, 2)),
        (a, b),
        (a, _C.ones(3)),
        (a, _C.ones(3, 2).double()),
    ):
        with pytest.raises(RuntimeError, match="triangular"):
            _C._triangular(*wrong, False, True, False)
