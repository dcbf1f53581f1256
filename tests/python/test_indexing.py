"""Subscripts, gathering, joining and sorting against NumPy, and their gradients against finite differences."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck


def pair(*shape):
    a = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    return a, torch.tensor(a.tolist(), dtype=torch.float64).reshape(shape)


INDICES = [
    0, -1, slice(None), slice(1, None, 2), (slice(None), 1), (..., 0), (None, 1), (0, None, slice(0, 2)),
    [0, 2], ([0, 1], [1, 0]), (slice(None), [0, 2]), ([0, 1], slice(None), [1, 2]), (slice(None), [1], [0]),
    ([[0, 1], [1, 2]],), (..., [0], None), (True, 0), (slice(5, 1),),
]  # fmt: skip


def as_index(i, make):
    if isinstance(i, tuple):
        return tuple(as_index(k, make) for k in i)
    return make(i) if isinstance(i, list) else i


@pytest.mark.parametrize("i", INDICES, ids=str)
def test_subscripts_read_and_write(i):
    a, x = pair(3, 2, 4) if i in ([0, 2], ([[0, 1], [1, 2]],)) else pair(2, 3, 4)
    ai, xi = as_index(i, np.array), as_index(i, torch.tensor)
    assert x[xi].tolist() == a[ai].tolist()
    a[ai] = -1.5
    x[xi] = -1.5
    assert x.tolist() == a.tolist()


def test_masks():
    a, x = pair(3, 4)
    assert x[x > 5].tolist() == a[a > 5].tolist()
    assert x[torch.tensor([True, False, True])].tolist() == a[[0, 2]].tolist()
    x[x > 5] = torch.arange(6, dtype=torch.float64)
    a[a > 5] = np.arange(6)
    assert x.tolist() == a.tolist()
    assert x.masked_fill(x > 2, 0).sum().item() == a[a <= 2].sum()


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: x[3], IndexError),
        (lambda x: x[0, 0, 0], IndexError),
        (lambda x: x[torch.tensor([3])], IndexError),
        (lambda x: x[torch.tensor([0, 1]), torch.tensor([0, 1, 2])], IndexError),
        (lambda x: x[torch.zeros(2, 4, dtype=torch.bool)], IndexError),
        (lambda x: x[::-1], ValueError),
        (lambda x: x.index_select(0, torch.tensor([-1])), IndexError),
        (lambda x: x.gather(0, torch.tensor([[3]])), RuntimeError),
        (lambda x: x.scatter_add(0, torch.tensor([[9]]), x), RuntimeError),
        (lambda x: x.take(torch.tensor([12])), IndexError),
        (lambda x: torch.cat([x, x[:, 1:]]), RuntimeError),
        (lambda x: x.topk(5), RuntimeError),
    ],
)
def test_bad_indices_raise(call, error):
    with pytest.raises(error):
        call(pair(3, 4)[1])


def test_sorting_is_stable_with_nan_last():
    x = torch.tensor([2.0, float("nan"), -0.0, 0.0, 2.0, -1.0])
    values, places = x.sort()
    assert places.tolist() == [5, 2, 3, 0, 4, 1]
    assert x.sort(descending=True)[1].tolist() == [1, 0, 4, 2, 3, 5]
    assert x.topk(2)[1].tolist()[0] == 1


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "kind", ["wide", "clusters", "deep", "equal", "edges", "sign", "double", "denormal", "special"]
)
def test_long_rows_of_wide_keys(kind, descending):
    """Long rows are sorted by the bits that differ, the high ones first: keys that agree in many of those."""
    random, n = np.random.default_rng(0), 70000
    half = random.random(n) < 0.5
    a = {
        "wide": lambda: random.integers(-(2**63), 2**63 - 1, n),
        "clusters": lambda: np.where(half, random.integers(0, 1000, n), 2**62 + random.integers(0, 5, n)),
        "deep": lambda: np.where(half, random.integers(0, 2**20, n), -(2**62)),
        "equal": lambda: np.full(n, 7),
        "edges": lambda: random.choice([-(2**63), 2**63 - 1, 0, -1], n),
        "sign": lambda: random.choice([-(2**63), 0], n),
        "double": lambda: random.standard_normal(n),
        "denormal": lambda: random.standard_normal(n) * 1e-310,
        "special": lambda: random.choice([np.inf, -np.inf, 0.0, -0.0, 1.0], n),
    }[kind]()
    values, places = torch.tensor(a).sort(descending=descending, stable=True)
    order = n - 1 - np.argsort(a[::-1], kind="stable")[::-1] if descending else np.argsort(a, kind="stable")
    assert (places.numpy() == order).all() and (values.numpy() == a[order]).all()


@pytest.mark.parametrize("n", [5, 200, 3000, 20000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int16, torch.uint8])
def test_sort_and_topk_of_any_length(n, dtype):
    torch.manual_seed(0)
    x = (torch.rand(2, n) * 200 - (0 if dtype == torch.uint8 else 100)).to(dtype)
    a = np.array(x.tolist())
    order = np.argsort(a, axis=1, kind="stable")
    values, places = x.sort(1)
    assert places.tolist() == order.tolist()
    assert values.tolist() == np.take_along_axis(a, order, 1).tolist()
    assert x.topk(3)[0].tolist() == np.sort(a, axis=1)[:, :-4:-1].tolist()
    assert x.t().sort(0)[0].t().tolist() == values.tolist()


def test_unique():
    x = torch.tensor([3, 1, 3, 2, 1])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1, 0], [2, 1, 2])
    rows = torch.tensor([[1, 2], [0, 5], [1, 2]])
    assert torch.unique(rows, dim=0).tolist() == [[0, 5], [1, 2]]
    assert torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1])).tolist() == [1, 2, 1]


GRADIENTS = {
    "subscript": (lambda x: x[1:, [0, 2, 0]], (3, 4)),
    "basic": (lambda x: x[..., None, 1], (3, 4)),
    "index_put": (lambda x: x.index_put((torch.tensor([1]),), x[0]), (3, 4)),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 0], [1, 3]])), (3, 4)),
    "scatter_add": (lambda x: x.scatter_add(1, torch.tensor([[0, 0], [1, 3]]), x[:2, :2] ** 2), (3, 4)),
    "scatter_prod": (lambda x: x.scatter_reduce(0, torch.tensor([[0, 1, 0, 2]]), x[:1] * 2, "prod"), (3, 4)),
    "index_mean": (lambda x: x.index_reduce(0, torch.tensor([0, 0]), x[:2] * 3, "mean"), (3, 4)),
    "cat": (lambda x: torch.cat([x, x * 2], 1), (3, 4)),
    "stack": (lambda x: torch.stack([x, x * 2], -1), (3, 4)),
    "split": (lambda x: x.split([1, 3], 1)[1] * 2, (3, 4)),
    "unbind": (lambda x: x.unbind(1)[2], (3, 4)),
    "unfold": (lambda x: x.unfold(1, 3, 1), (3, 5)),
    "reflect": (lambda x: torch.nn.functional.pad(x, (2, 1), mode="reflect"), (2, 3, 4)),
    "im2col": (lambda x: torch.nn.functional.unfold(x, 2, padding=1), (1, 2, 3, 3)),
    "sort": (lambda x: x.sort(0)[0], (3, 4)),
    "diagonal": (lambda x: x.diagonal(1), (3, 4)),
    "masked_scatter": (lambda x: x.masked_scatter(torch.eye(3, dtype=torch.bool), x * 2), (3, 3)),
}


def test_as_strided_scatter_reaches_all_of_the_memory():
    x = torch.arange(8.0)[1::2]
    y = torch.as_strided_scatter(x, torch.tensor([10.0, 20.0]), (2,), (3,), 0)
    assert y.tolist() == [1, 20, 5, 7]  # elements 0 and 3 of the memory; x has the second
    assert x.tolist() == [1, 3, 5, 7]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    f, shape = GRADIENTS[name]
    torch.manual_seed(0)
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


X24 = torch.arange(24).view(2, 3, 4)


@pytest.mark.parametrize(
    ("key", "same"),
    [
        ([[0, 1], [1, 0]], ([0, 1], [1, 0])),
        ([slice(0, 1), slice(1, 2)], (slice(0, 1), slice(1, 2))),
        ([None, 0], (None, 0)),
        ([..., 0], (..., 0)),
        (((0, 1), (1, 2)), ([0, 1], [1, 2])),
        (range(2), ([0, 1],)),
        ((slice(None), range(2)), (slice(None), [0, 1])),
        ([torch.tensor([0, 1]), torch.tensor([1, 1])], ([0, 1], [1, 1])),
        ([0.5, 1.0], ([0, 1],)),
    ],
)
def test_sequences_as_subscripts(key, same):
    """A list that holds more than numbers stands for a tuple; other sequences are positions."""
    assert X24[key].tolist() == X24[same].tolist()


def test_arrays_and_long_lists_are_positions():
    assert X24[np.array([[0, 1], [1, 0]])].shape == (2, 2, 3, 4)
    assert X24[list(range(2)) * 16].shape == (32, 3, 4)
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        X24["a"]
    with pytest.raises(ValueError, match="Overflow"):
        X24[2**63]


def test_one_value_at_the_places_of_a_mask_may_have_any_dtype():
    x = torch.arange(6).view(2, 3)
    x[x > 1] = torch.tensor(1.7)
    assert x.tolist() == [[0, 1, 1], [1, 1, 1]]
    x[torch.tensor([True, False])] = torch.tensor([9.5])
    assert x.tolist() == [[9, 9, 9], [1, 1, 1]]
    with pytest.raises(IndexError, match="mask"):
        x[torch.tensor([True, False, True])] = 1
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[[0]] = torch.tensor(1.7)
    x = torch.arange(6).view(2, 3)
    x[:, torch.tensor([True, False, True])] = torch.tensor(1.7)
    assert x.tolist() == [[1, 1, 1], [1, 4, 1]]
    assert torch.arange(4).index_put_((torch.arange(4) > 1,), torch.tensor([[1.7]])).tolist() == [0, 1, 1, 1]
    with pytest.raises(RuntimeError, match="dtypes match"):
        x.index_put_((x > 1,), torch.tensor(1.7), accumulate=True)
    y = torch.zeros(2, 3, requires_grad=True)
    v = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    z = y * 1
    z[torch.tensor([True, False])] = v
    z.sum().backward()
    assert v.grad.dtype == torch.float64 and v.grad == 3 and y.grad.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_only_tensors_and_numbers_are_assigned():
    x = torch.zeros(2, 3)
    for value in ([1, 2, 3], np.array([1, 2, 3]), None, "a"):
        with pytest.raises(TypeError, match="can't assign a"):
            x[0] = value
    x[0] = np.float64(2)
    assert x[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300), ("int8", -129), ("int8", 128), ("int64", float("inf")), ("int64", 1e30), ("float16", 1e6),
        ("float32", 1e300), ("float32", 1j), ("int64", 1j),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit_are_refused(dtype, value):
    dtype, mask = getattr(torch, dtype), torch.tensor([True, False])
    for write in (
        lambda x: x.fill_(value),
        lambda x: x.__setitem__(0, value),
        lambda x: x.__setitem__(mask, value),
        lambda x: x.__setitem__([0], value),
        lambda x: x.masked_fill(mask, value),
        lambda x: torch.full((2,), value, dtype=dtype),
    ):
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            write(torch.zeros(2, dtype=dtype))


def test_negative_numbers_wrap_into_unsigned_dtypes():
    assert torch.tensor([-1], dtype=torch.uint8).item() == 255
    assert torch.full((1,), -1, dtype=torch.uint8).item() == 255
    assert torch.zeros(1).fill_(float("inf")).item() == float("inf")
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([-256], dtype=torch.uint8)


def test_false_among_subscripts_selects_nothing():
    x = torch.arange(24.0).view(2, 3, 4)
    x[False] = torch.ones(3)
    x[[0], False] = 1.0
    assert x.sum() == 276 and x[..., False].shape == (2, 3, 4, 0)
    with pytest.raises(IndexError, match="could not be broadcast together"):
        x[1, [0, 1], False] = -5.0
    with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result"):
        x[..., False] = torch.ones(4)
