"""The Python object of a tensor: identity, life, subclasses, copies, exchange with NumPy and DLPack; what backward keeps."""

import copy
import gc
import itertools
import os
import pickle
import re
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import rushlight as torch

allocated = torch._C._memory_allocated


class Sub(torch.Tensor):
    pass


# ---- one object for a tensor ----


def test_identity():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    y = x * 2
    assert y.grad_fn.next_functions[0][0].variable is x
    assert y.detach() is not y and x.data is not x
    x.grad = g = torch.zeros(3)
    assert x.grad is g


def test_attributes_survive_while_the_tensor_lives():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.grad.label = "mine"
    gc.collect()
    assert x.grad.label == "mine"
    y = x * 2
    x.note = {"a": 1}
    node = y.grad_fn.next_functions[0][0]
    before = id(x)
    del x
    gc.collect()
    assert node.variable.note == {"a": 1} and id(node.variable) == before


def test_subclass_object_survives_in_the_graph():
    x = Sub([1.0, 2.0]).requires_grad_()
    node = (x * 2).grad_fn
    while not hasattr(node, "variable"):
        node = node.next_functions[0][0]
    del x
    gc.collect()
    assert type(node.variable) is Sub and node.variable.tolist() == [1.0, 2.0]


def test_weak_references_and_finalizers():
    x = torch.ones(3)
    ref, died = weakref.ref(x), []
    weakref.finalize(x, died.append, True)
    assert ref() is x
    del x
    assert ref() is None and died == [True]


def test_a_cycle_is_collected():
    x = torch.ones(1000)
    x.me = x
    ref = weakref.ref(x)
    before = allocated()
    del x
    gc.collect()
    assert ref() is None and allocated() < before


def test_no_leak_over_many_objects():
    def work():
        for _ in range(200):
            x = torch.ones(4, requires_grad=True)
            x.tag = 1
            (x * x).sum().backward()

    work()
    gc.collect()
    before = allocated()
    work()
    gc.collect()
    assert allocated() <= before


# ---- subclasses and __torch_function__ ----


def test_subclass_results():
    x = Sub([1.0, 2.0, 3.0])
    assert type(x + 1) is Sub and type(x.exp()) is Sub and type(x[0]) is Sub and type(torch.add(x, x)) is Sub
    values, indices = x.sort()
    assert type(values) is Sub and type(indices) is Sub
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor
    assert isinstance(x, torch.Tensor)


def test_torch_function_of_any_object():
    class Logged:
        def __init__(self):
            self.calls = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls.append((func.__name__, kwargs))
            return "answer"

    x = Logged()
    assert torch.add(torch.ones(2), x) == "answer" and torch.sum(x, dim=0) == "answer"
    assert [name for name, _ in x.calls] == ["add", "sum"] and x.calls[1][1] == {"dim": 0}


def test_torch_function_of_a_subclass_sees_every_operator():
    seen = []

    class Watch(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = Watch([1.0, 2.0])
    y = (x * 2).sum()
    assert type(y) is Watch and seen[:2] == ["mul", "sum"]
    torch.stack([x, x])
    assert "stack" in seen


def test_torch_function_refuses():
    class Refuses:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found|NotImplemented"):
        torch.add(torch.ones(2), Refuses())


def test_overrides_module():
    from rushlight.overrides import handle_torch_function, has_torch_function, is_tensor_like

    class Other:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__, len(types)

    def public(a, b):
        if has_torch_function((a, b)):
            return handle_torch_function(public, (a, b), a, b)
        return a + b

    assert public(1, 2) == 3 and public(1, Other()) == ("public", 1)
    assert is_tensor_like(torch.ones(1)) and is_tensor_like(Other()) and not is_tensor_like(1)


# ---- copies ----


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (3, 4), (0, 2)])
def test_pickle(dtype, shape):
    x = torch.ones(shape, dtype=getattr(torch, dtype))
    x.tag = "kept"
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.shape == x.shape and torch.equal(x, y) and y.tag == "kept"


def test_pickled_views_share_one_storage():
    x = torch.arange(1200.0).reshape(30, 40)
    given = [x, x[1], x.t(), x[::2, 1:], x.view(torch.int32), torch.nn.Parameter(x), x.untyped_storage()]
    data = pickle.dumps(given)
    assert len(data) < 1.5 * x.nbytes
    loaded = pickle.loads(data)
    for a, b in zip(given[:-1], loaded):
        assert (a.shape, a.stride(), a.storage_offset(), a.dtype) == (b.shape, b.stride(), b.storage_offset(), b.dtype)
        assert torch.equal(a, b) and not b._is_view()
    assert len({t.untyped_storage().data_ptr() for t in loaded[:-1]} | {loaded[-1].data_ptr()}) == 1
    loaded[0].zero_()
    assert not any(t.any() for t in loaded[:-1]) and x.any()
    on_meta = pickle.loads(pickle.dumps(torch.empty_strided((2, 3), (1, 2), device="meta")))
    assert on_meta.is_meta and on_meta.stride() == (1, 2)


def test_pickle_keeps_class_and_requires_grad():
    x = torch.nn.Parameter(torch.ones(2))
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is torch.nn.Parameter and y.requires_grad
    for thing in (
        torch.float32,
        torch.device("cpu"),
        torch.Size([2, 3]),
        torch.channels_last,
        torch.strided,
        torch.add,
    ):
        assert pickle.loads(pickle.dumps(thing)) == thing
    z = pickle.loads(pickle.dumps(x * 2))
    assert z.is_leaf and z.requires_grad and z.tolist() == [2.0, 2.0]


def test_deepcopy():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 3.0)
    x.tag = [1]
    pair = copy.deepcopy({"a": x, "b": x})
    y = pair["a"]
    assert pair["b"] is y and y is not x and y.data_ptr() != x.data_ptr()
    assert y.requires_grad and y.grad.tolist() == [3.0, 3.0] and y.tag == [1] and y.tag is not x.tag
    assert copy.copy(x).data_ptr() == x.data_ptr() or torch.equal(copy.copy(x), x)


# ---- NumPy, buffers, DLPack ----


def test_numpy_shares_memory_both_ways():
    x = torch.ones(2, 3)
    a = x.numpy()
    assert a.ctypes.data == x.data_ptr() and a.strides == (12, 4)
    a[0, 0] = 5
    assert x[0, 0].item() == 5
    b = np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::2]
    y = torch.from_numpy(b)
    assert y.data_ptr() == b.ctypes.data and y.tolist() == [[0, 2], [3, 5]] and y.stride() == (3, 2)
    y[0, 0] = 7
    assert b[0, 0] == 7
    assert x.t().numpy().strides == (4, 12) and np.asarray(x).ctypes.data == x.data_ptr()


def test_numpy_memory_outlives_its_owner():
    a = torch.full((1000,), 2.0).numpy()
    gc.collect()
    assert a.sum() == 2000
    x = torch.from_numpy(np.full(1000, 3.0))
    gc.collect()
    assert x.sum().item() == 3000


def test_numpy_functions_and_operators_give_tensors(tmp_path):
    t, a = torch.arange(3.0), np.arange(3.0)
    for result in (t + a, t * a, t - a, np.add(t, a), np.add(a, t), np.maximum(t, a), t + np.array(3.0)):
        assert type(result) is torch.Tensor and result.dtype == torch.float64
    assert (t + a).tolist() == [0, 2, 4] and np.sin(t).dtype == torch.float32
    assert np.isnan(t).dtype == torch.uint8  # as in PyTorch
    assert (t == a).tolist() == (a == t).tolist() == [True, True, True]
    assert (t != a).tolist() == [False, False, False]
    mapped = np.memmap(tmp_path / "numbers", dtype="f4", mode="w+", shape=3)
    mapped[:] = [0, 1, 5]
    assert (t == mapped).tolist() == [True, True, False]
    t += a
    assert type(t) is torch.Tensor and t.tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        a * t
    with pytest.raises(RuntimeError, match="size of tensor a"):
        t == np.arange(2.0)


def test_numpy_scalars_and_arrays_meet_tensors():
    x = torch.ones(2)
    assert (x * np.float32(2)).tolist() == [2.0, 2.0] and (x + np.int64(1)).dtype == torch.float32
    assert torch.tensor(np.float64(1.5)).dtype == torch.float64 and float(np.mean(x.numpy())) == 1.0
    assert torch.ones(np.int64(3)).shape == (3,) and x[np.int64(1)].item() == 1.0


def test_numpy_errors():
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).numpy()
    assert torch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="BFloat16|bfloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    with pytest.raises(TypeError, match="np.ndarray"):
        torch.from_numpy([1, 2])
    with pytest.raises((TypeError, ValueError), match="object|type"):
        torch.from_numpy(np.array([object()]))
    with pytest.raises(ValueError, match="negative|stride"):
        torch.from_numpy(np.arange(3)[::-1])


def test_buffers():
    data = bytearray(8)
    x = torch.frombuffer(data, dtype=torch.int32)
    x[0] = 258
    assert data[:2] == b"\x02\x01"
    assert bytes(memoryview(torch.tensor([1, 2], dtype=torch.uint8))) == b"\x01\x02"
    with pytest.raises(ValueError, match="buffer"):
        torch.frombuffer(bytearray(7), dtype=torch.int32)
    with pytest.raises((ValueError, TypeError)):
        torch.frombuffer(bytearray(8), dtype=torch.int32, offset=9)


def test_dlpack_both_ways():
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    a = np.from_dlpack(x)
    assert a.ctypes.data == x.data_ptr() and a.tolist() == x.tolist()
    b = np.arange(4.0)
    y = torch.from_dlpack(b)
    assert y.data_ptr() == b.ctypes.data
    z = torch.from_dlpack(x.t())
    assert z.data_ptr() == x.data_ptr() and z.stride() == (1, 3)
    assert torch.from_dlpack(torch.to_dlpack(x)).data_ptr() == x.data_ptr()
    with pytest.raises((RuntimeError, BufferError), match="grad"):
        torch.ones(2, requires_grad=True).__dlpack__()
    capsule = x.__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises((RuntimeError, ValueError, BufferError), match="once|consumed|used|dltensor"):
        torch.from_dlpack(capsule)


# ---- what is kept for backward ----


def bytes_kept(f):
    gc.collect()
    before = allocated()
    result = f()
    kept = allocated() - before
    del result
    gc.collect()
    return kept


N = 100_000
SIZE = 4 * N


def test_nothing_is_kept_without_a_gradient():
    x = torch.ones(N)
    assert bytes_kept(lambda: ((x * 2).exp() * x).sum()) < SIZE
    y = torch.ones(N, requires_grad=True)
    with torch.no_grad():
        assert bytes_kept(lambda: ((y * 2).exp() * y).sum()) < SIZE


def test_only_what_the_gradient_reads_is_kept():
    x = torch.ones(N, requires_grad=True)
    assert bytes_kept(lambda: (x + 1 + 2 + 3).sum()) < SIZE
    assert SIZE <= bytes_kept(lambda: x.exp().sum()) < 2 * SIZE
    other = torch.ones(N)
    assert bytes_kept(lambda: ((x * other) * other).sum()) < SIZE


def test_saved_tensors_go_during_backward():
    x = torch.ones(N, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.exp().log()
    loss = y.sum()
    del y
    full = allocated()
    loss.backward()
    assert allocated() < full - 8 * SIZE
    assert torch.allclose(x.grad, torch.ones(N))


def test_deep_graphs_are_freed_without_recursion():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1
    del y
    z = x
    for _ in range(50_000):
        z = z * 1.0
    z.backward()
    assert x.grad.item() == 1.0


# ---- Python around backward ----


def test_exception_from_a_hook_keeps_its_traceback():
    x = torch.ones(1, requires_grad=True)

    def hook(grad):
        raise KeyError("from the hook")

    (x * 2).register_hook(hook)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(KeyError, match="from the hook") as caught:
        y.sum().backward()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "hook" and "test_exception_from_a_hook_keeps_its_traceback" in names


def test_a_tracer_sees_hooks_run():
    """pdb works by such a trace function."""
    x = torch.ones(1, requires_grad=True)
    seen = []

    def hook(grad):
        return grad * 2

    def tracer(frame, event, arg):
        seen.append(frame.f_code.co_name)

    y = x * 3
    y.register_hook(hook)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        y.backward()
    finally:
        sys.settrace(before)
    assert "hook" in seen and x.grad.item() == 6


def test_backward_inside_backward():
    x = torch.ones(1, requires_grad=True)
    inner = torch.ones(1, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (inner * 5).backward()

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert inner.grad.item() == 5 and x.grad.item() == 2


def test_threads_run_backward_at_once():
    shared = torch.ones(1000, requires_grad=True)
    failures = []

    def work(scale):
        try:
            for _ in range(20):
                own = torch.full((1000,), float(scale), requires_grad=True)
                (own * shared).sum().backward(inputs=[own])
                assert own.grad.sum().item() == 1000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_accumulation_from_threads_loses_nothing():
    def work():
        for _ in range(50):
            (x * 1.0).sum().backward()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            x = torch.zeros(100, requires_grad=True)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert x.grad.tolist() == [200.0] * 100
    finally:
        sys.setswitchinterval(interval)


def test_grad_mode_is_of_the_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_fork():
    x = torch.ones(300_000)
    expected = (x * 2).sum().item()  # the pool is running
    child = os.fork()
    if child == 0:
        try:
            y = torch.ones(300_000, requires_grad=True)
            (y * 2).sum().backward()
            ok = (x * 2).sum().item() == expected and y.grad[0].item() == 2
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- small things of the type ----


def test_conversions_to_python():
    x = torch.tensor([[1.5, 2.0]])
    assert x.tolist() == [[1.5, 2.0]] and float(x[0, 0]) == 1.5 and int(x[0, 0]) == 1 and bool(x[0, 1])
    assert [1, 2, 3][torch.tensor(1)] == 2 and f"{torch.tensor(1.234):.2f}" == "1.23"
    assert complex(torch.tensor(1 + 2j)) == 1 + 2j and 2.0 in x and 5 not in x
    assert [row.tolist() for row in torch.ones(2, 1)] == [[1.0], [1.0]] and len(x) == 1
    a, b = torch.tensor([1, 2])
    assert (a.item(), b.item()) == (1, 2)
    assert hash(x) == hash(x) and {x: 1}[x] == 1
    assert list(reversed(torch.tensor([1, 2])))[0].item() == 2


def test_dir_and_docs():
    x = torch.ones(1)
    x.extra = 1
    assert {"add", "add_", "backward", "shape", "extra"} <= set(dir(x))
    assert "add(" in torch.add.__doc__ and torch.add.__name__ == "add" and "alpha" in torch.Tensor.add.__doc__


def test_mutating_views_and_versions():
    x = torch.zeros(2, 3)
    view = x[0]
    version = x._version
    view.add_(1)
    assert x._version == version + 1 == view._version and view._base is x
    x.data[0] = 5
    assert x._version == version + 1 and x[0, 0].item() == 5


def test_in_place_where_elements_share_memory():
    memory = torch.arange(6)
    windows = memory.as_strided((4, 3), (1, 1))
    windows.bitwise_not_()  # once for each window that an element is in: 1, 2, 3, 3, 2, 1
    assert memory.tolist() == [-1, 1, -3, -4, 4, -6]
    windows.add_(torch.tensor([1, 10, 100]))
    assert memory.tolist() == [0, 12, 108, 107, 114, 94]


@pytest.mark.parametrize("size", [0, 1, 5])
def test_sizes(size):
    s = torch.Size([size, 2])
    assert s.numel() == 2 * size and s[0] == size and isinstance(s[:1], torch.Size) and s == (size, 2)
    assert isinstance(s + (3,), torch.Size) and repr(s) == f"torch.Size([{size}, 2])"
    with pytest.raises(TypeError, match="int"):
        torch.Size(["a"])


def test_triangle_indices_are_made_on_their_device():
    assert torch.triu_indices(3, 3, device="meta").is_meta and torch.tril_indices(3, 3, device="meta").is_meta
    assert torch.triu_indices(3, 3, dtype=torch.int32).dtype == torch.int32


def test_deepcopy_keeps_strides_and_shared_memory():
    x = torch.arange(6.0).reshape(2, 3)
    a, b, t = copy.deepcopy([x, x[0], x.t()])
    assert t.stride() == (1, 3) and torch.equal(t, x.t())
    a[0, 1] = 9
    assert b[1] == 9 and t[1, 0] == 9 and x[0, 1] == 1
    assert copy.deepcopy(torch.empty(0)).shape == (0,) and copy.deepcopy(torch.tensor(3)).item() == 3
    whole = copy.deepcopy(x.to(torch.bfloat16)[1:])
    assert whole.storage_offset() == 3 and whole.tolist() == [[3.0, 4.0, 5.0]] and not whole._is_view()


def test_methods_take_a_list_of_integers_as_several():
    x = torch.arange(4).view(2, 2)
    assert x.flip(0, 1).tolist() == [[3, 2], [1, 0]]
    assert torch.ones(1, 2, 1).squeeze(0, 2).shape == (2,)
    assert x.permute(1, 0).tolist() == [[0, 2], [1, 3]] and x.expand(3, 2, 2).shape == (3, 2, 2)
    with pytest.raises(TypeError):
        x.sum(0, 1)


def test_asarray_shares_memory_where_it_can():
    t, a = torch.ones(3), np.arange(3.0)
    assert torch.asarray(t) is t and torch.asarray(t, copy=True).data_ptr() != t.data_ptr()
    assert torch.asarray(a).data_ptr() == a.ctypes.data and torch.asarray(a, dtype=torch.float32).dtype == torch.float32
    assert torch.asarray([1, 2]).tolist() == [1, 2] and torch.asarray(np.array(2.0)).item() == 2
    assert torch.asarray(bytearray(b"ab"), dtype=torch.uint8).tolist() == [97, 98]
    assert torch.asarray(torch.ones(2), requires_grad=True).requires_grad
    for obj, dtype in (([1], None), (a, torch.int32)):
        with pytest.raises(ValueError, match="can't alias"):
            torch.asarray(obj, dtype=dtype, copy=False)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (8, 3), (4, 4, 4), (0, 3), (3, 0)])
def test_fill_diagonal(shape, wrap):
    def on_diagonal(index):
        if wrap and len(shape) == 2:
            return index[0] % (shape[1] + 1) == index[1]
        return len(set(index)) == 1

    for x in (torch.zeros(shape), torch.zeros(shape[::-1]).permute(*reversed(range(len(shape))))):
        assert x.fill_diagonal_(2, wrap=wrap) is x
        assert all(x[index].item() == 2 * on_diagonal(index) for index in itertools.product(*map(range, shape)))


def test_fill_diagonal_gradient():
    x = torch.ones(2, 3, requires_grad=True)
    (x * 1).fill_diagonal_(5).sum().backward()
    assert x.grad.tolist() == [[0, 1, 1], [1, 0, 1]]


def test_polygamma_methods():
    x = torch.tensor([0.5, 2.0, 3.0])
    assert torch.equal(x.polygamma(1), torch.polygamma(1, x))
    expected = torch.polygamma(2, x)
    assert x.polygamma_(2) is x and torch.equal(x, expected)


def test_get_device_of_the_cpu():
    assert torch.get_device(torch.ones(1)) == -1


UNARY = [name for name, method in torch.Tensor.__dict__.items() if isinstance(method, torch._C.Operator)
         and any(re.search(r"\(Tensor \w+\) -> Tensor$", schema) for schema in method.schemas)]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_methods_take_no_out(name):
    with pytest.raises(TypeError, match="out"):
        getattr(torch.ones(2, 2), name)(out=torch.ones(2, 2))


@pytest.mark.parametrize(
    "call, expected",
    [(lambda: torch.add(1, 2), 3), (lambda: torch.add(1, 2, alpha=2), 5), (lambda: torch.sub(1.5, 2), -0.5),
     (lambda: torch.mul(True, 2), 2), (lambda: torch.div(1, 2), 0.5), (lambda: torch.add(1j, 2), 2 + 1j),
     (lambda: torch.div(7, 2, rounding_mode="floor"), 3), (lambda: torch.floor_divide(1.5, 2), 0.0)],
)  # fmt: skip
def test_arithmetic_of_numbers_alone(call, expected):
    result = call()
    assert result.shape == () and result.dtype == torch.tensor(expected).dtype and result.item() == expected
