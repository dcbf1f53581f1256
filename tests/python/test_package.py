"""Functions and modules of the package that are Python: limits of dtypes, storages, defaults, devices, switches."""

import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo_agrees_with_numpy(name):
    ours, theirs = torch.finfo(getattr(torch, name)), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert f"{ours.resolution:.0g}" == f"{float(theirs.resolution):.0g}"
    assert ours.dtype == name


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_iinfo_agrees_with_numpy(name):
    ours, theirs = torch.iinfo(getattr(torch, name)), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)


def test_info_of_the_wrong_dtype():
    with pytest.raises(TypeError, match="floating point"):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError, match="integer"):
        torch.iinfo(torch.float32)


def test_types_by_their_old_names():
    x = torch.ones(2, 3)
    assert x.type() == "torch.FloatTensor" and torch.typename(x) == "torch.FloatTensor"
    assert x.type(torch.float64).type() == "torch.DoubleTensor"
    assert x.type("torch.IntTensor").dtype == torch.int32
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert torch.LongTensor([1, 2]).dtype == torch.int64
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.Nonsense")


def test_storage_is_the_tensors_own_memory():
    x = torch.tensor([1.0, 2.0, 3.0])
    view = x[1:]
    storage = x.storage()
    assert storage.data_ptr() == x.data_ptr() == view.untyped_storage().data_ptr()
    assert (storage.size(), storage.nbytes(), storage.tolist()) == (3, 12, [1.0, 2.0, 3.0])
    storage[1] = 5.0
    assert view[0].item() == 5.0
    assert x.untyped_storage() == view.untyped_storage() != torch.ones(3).untyped_storage()
    assert torch.is_storage(storage) and not torch.is_storage(x)
    x.untyped_storage().resize_(24)
    assert x.untyped_storage().nbytes() == 24 and x.tolist() == [1.0, 5.0, 3.0]


def test_promotion():
    assert torch.promote_types(torch.int64, torch.float16) == torch.float16
    assert torch.promote_types(torch.uint8, torch.int8) == torch.int16
    assert torch.result_type(torch.ones(2, dtype=torch.int32), 1.5) == torch.float32
    assert torch.result_type(torch.ones(2, dtype=torch.float16), torch.tensor(1.0)) == torch.float16
    assert not torch.can_cast(torch.float32, torch.int64) and torch.can_cast(torch.int8, torch.float16)


def test_broadcast_shapes():
    assert torch.broadcast_shapes((2, 1), (3,), 1) == torch.Size([2, 3])
    assert torch.broadcast_shapes() == torch.Size([])
    with pytest.raises(RuntimeError, match="broadcast_shapes"):
        torch.broadcast_shapes((2,), (3,))


def test_default_device():
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("meta"):
        assert torch.zeros(3).is_meta and torch.tensor([1.0]).is_meta
        with torch.device("cpu"):
            assert torch.zeros(3).is_cpu
        assert torch.zeros(3).is_meta and torch.zeros(3, device="cpu").is_cpu
    assert torch.zeros(3).is_cpu
    torch.set_default_device("meta")
    try:
        assert torch.ones(2).is_meta and torch.ones_like(torch.ones(2, device="cpu")).is_cpu
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).is_cpu


def test_cuda_is_absent_and_says_so():
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    with pytest.raises(RuntimeError, match="no CUDA device is available"):
        torch.cuda.current_device()
    assert not hasattr(torch.cuda, "no_such_name")
    with pytest.raises(RuntimeError, match="no CUDA device is available"):
        torch.ones(1).cuda()


def test_switches():
    with torch.backends.cudnn.flags(enabled=False):
        assert torch.backends.cudnn.enabled is False
    assert torch.backends.cudnn.enabled is True
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 1
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert not torch.is_autocast_enabled()
    with pytest.raises(NotImplementedError, match="JIT"):
        torch.compile(lambda x: x)


def test_in_place_python_methods():
    x = torch.tensor([1.0, 2.0])
    assert x.apply_(lambda v: v + 1).tolist() == [2.0, 3.0]
    assert x.map_(torch.tensor([10.0, 20.0]), lambda a, b: a * b).tolist() == [20.0, 60.0]
    y = torch.ones(2, requires_grad=True) * 2
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="views"):
        y[0].detach_()
    assert x.new_tensor([1, 2]).dtype == torch.float32 and x.new(2, 3).shape == (2, 3)
    assert x.is_set_to(x.view(2)) and not x.is_set_to(x.clone())


def test_unknown_names():
    for module in (torch, torch.linalg, torch.special, torch.fft, torch.return_types):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name


def test_importing_is_light():
    code = "import sys, rushlight; print(*sorted(m for m in sys.modules if m.startswith(('rushlight', 'numpy'))))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["rushlight", "rushlight._C", "rushlight._C._cuda", "rushlight._tensor"]


def test_gradient():
    x = torch.tensor([1.0, 4.0, 9.0, 16.0, 25.0])
    assert torch.gradient(x)[0].tolist() == [3.0, 4.0, 6.0, 8.0, 9.0]
    assert torch.gradient(x, edge_order=2)[0].tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    places = torch.tensor([0.0, 1.0, 3.0, 4.0, 6.0])
    assert torch.allclose(torch.gradient(2 * places, spacing=[places])[0], torch.full((5,), 2.0))
    with pytest.raises(RuntimeError, match="edge_order"):
        torch.gradient(torch.ones(1))


def test_masked():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = torch.tensor([[True, False], [True, True]])
    assert torch.masked.sum(x, mask=mask).item() == 8 and torch.masked.mean(x, 0, mask=mask).tolist() == [2.0, 4.0]
    assert torch.masked.amax(x, 1, mask=mask).tolist() == [1.0, 4.0]
    assert torch.masked.softmax(x, 1, mask=mask)[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann"])
def test_windows_agree_with_numpy(name):
    of = {"hann": np.hanning}.get(name) or getattr(np, name)
    window = getattr(torch.signal.windows, name)
    np.testing.assert_allclose(window(9).numpy(), of(9), atol=1e-6)
    np.testing.assert_allclose(window(8, sym=False).numpy(), of(9)[:-1], atol=1e-6)
    with pytest.raises(ValueError, match="strided"):
        window(3, layout=torch.sparse_coo)
    with pytest.raises(ValueError, match="non-negative"):
        window(-1)
