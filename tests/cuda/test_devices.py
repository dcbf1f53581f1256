"""Devices, copies between them, streams, events, and what the simulator detects."""

import copy
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool,
          torch.complex64]  # fmt: skip


def run(script, **environment):
    """A fresh process's exit status and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", "import rushlight as torch\n" + script],
        env=os.environ | environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_asking_for_devices_starts_none():
    status, text = run("assert torch.cuda.is_available() and torch.cuda.device_count() == 2\n"
                       "torch.manual_seed(0); torch.cuda.empty_cache(); assert torch.cuda.memory_allocated() == 0\n"
                       "assert not torch.cuda.is_initialized(); torch.cuda.init(); assert torch.cuda.is_initialized()")  # fmt: skip
    assert status == 0, text


def test_simulated_capacity():
    status, text = run("assert torch.cuda.get_device_properties(1).total_memory == 96 << 20 == torch.cuda.mem_get_info(1)[1]",
                       RUSHLIGHT_SIM_GPUS="2", RUSHLIGHT_SIM_GPU_MEMORY="96M")  # fmt: skip
    assert status == 0, text


def test_properties():
    properties = torch.cuda.get_device_properties(1)
    assert properties.total_memory == torch.cuda.mem_get_info(1)[1]
    assert properties.name == torch.cuda.get_device_name("cuda:1")
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    assert torch.cuda.can_device_access_peer(0, 1) and not torch.cuda.can_device_access_peer(1, 1)
    assert "multi_processor_count" in repr(properties)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_name(2)
    with pytest.raises(ValueError, match="cuda"):
        torch.cuda.get_device_name("cpu")


def test_current_device():
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.empty(2, device="cuda").device == torch.device("cuda:1")
        with torch.cuda.device(None):
            assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.empty(2, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:1")
    torch.cuda.set_device(-1)
    assert torch.cuda.current_device() == 1
    torch.cuda.set_device(0)
    with pytest.raises(RuntimeError, match="invalid device ordinal 2"):
        torch.cuda.set_device(2)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(1, device="cuda:7")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype):
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    there = x.to("cuda")
    assert there.device == torch.device("cuda", 0) and there.is_cuda and not there.is_cpu and there.get_device() == 0
    assert there.to("cuda:0") is there and there.cuda() is there and x.cpu() is x
    other = there.cuda(1)
    assert other.device == torch.device("cuda:1") and other.data_ptr() != there.data_ptr()
    assert torch.equal(other.cpu(), x) and torch.equal(there.to("cpu"), x)
    assert there.tolist() == x.tolist() and repr(there).replace(", device='cuda:0'", "") == repr(x)
    assert there[1, 2].item() == x[1, 2].item()


def test_shapes():
    for x in (torch.empty(0, 3), torch.tensor(2.5), torch.zeros(1, 0, 2)):
        y = x.cuda()
        assert y.shape == x.shape and torch.equal(y.cpu(), x)
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(x.t().cuda().cpu(), x.t()) and torch.equal(x[:, ::2].cuda().cpu(), x[:, ::2])
    assert torch.empty_like(x.cuda()).device.type == "cuda"
    assert torch.tensor([1, 2], device="cuda:1").device == torch.device("cuda:1")
    assert torch.arange(5, device="cuda").tolist() == [0, 1, 2, 3, 4]


def test_copy_():
    x = torch.arange(6.0)
    a, b = torch.empty(6, device="cuda:0"), torch.empty(6, device="cuda:1")
    assert b.copy_(a.copy_(x)) is b
    back = torch.empty(6)
    back.copy_(b)
    assert torch.equal(back, x)


def test_numpy_needs_the_cpu():
    x = torch.tensor([1.0, 2.0], device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 2.0]


def test_devices_do_not_mix():
    a, b, c = torch.ones(2), torch.ones(2).cuda(0), torch.ones(2).cuda(1)
    for x, y, names in ((a, b, "cpu and cuda:0"), (b, a, "cuda:0 and cpu"), (b, c, "cuda:0 and cuda:1")):
        with pytest.raises(RuntimeError, match=f"same device, but found at least two devices, {names}"):
            x + y
    with pytest.raises(RuntimeError, match="cuda:0 and cuda:1"):
        b[0] + c


def test_gradients_come_back_from_a_device():
    x = torch.arange(3.0, requires_grad=True)
    w = torch.tensor([1.0, 2.0, 3.0])
    (x.cuda(1).cuda(0).cpu() * w).sum().backward()
    assert torch.equal(x.grad, w)


def test_copies_of_objects():
    x = torch.tensor([1.0, 2.0], device="cuda:1")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == x.device and y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()
    file = io.BytesIO()
    torch.save({"x": x, "same": x}, file)
    for place, device in ((None, "cuda:1"), ("cpu", "cpu"), ({"cuda:1": "cuda:0"}, "cuda:0")):
        loaded = torch.load(io.BytesIO(file.getvalue()), map_location=place)
        assert loaded["x"].device == torch.device(device) and loaded["x"].tolist() == [1.0, 2.0]
        assert loaded["x"].data_ptr() == loaded["same"].data_ptr()


def test_modules_move():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    model.cuda()
    assert all(t.device == torch.device("cuda:0") for t in (*model.parameters(), *model.buffers()))
    model.to("cuda:1")
    assert {name: value.tolist() for name, value in model.state_dict().items()} == before
    assert all(t.is_cpu for t in model.cpu().parameters())


def test_pinned_memory():
    x = torch.arange(4.0)
    pinned = x.pin_memory()
    assert not x.is_pinned() and pinned.is_pinned() and pinned.pin_memory() is pinned and torch.equal(pinned, x)
    assert torch.empty(3, pin_memory=True).is_pinned() and torch.tensor([1.0], pin_memory=True).is_pinned()
    there = pinned.to("cuda", non_blocking=True)
    back = torch.empty(4, pin_memory=True)
    back.copy_(there, non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(back, x)
    large = torch.arange(1e6, device="cuda")
    for _ in range(5):
        large = large + 1
        assert large.to("cpu", non_blocking=True)[-1] == large[-1].item()  # is there: that memory is not pinned
    with pytest.raises(RuntimeError, match="cannot pin"):
        there.pin_memory()
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2, pin_memory=True)
    assert all(batch.is_pinned() for (batch,) in batches)


# ---- streams and events ----


def test_current_stream():
    first, side = torch.cuda.default_stream(), torch.cuda.Stream()
    assert torch.cuda.current_stream() == first and first.stream_id == 0 and side != first
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == side
    with torch.cuda.Stream(device=1) as other:
        assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == other
        assert other.device == torch.device("cuda:1")
    assert torch.cuda.current_stream() == first and torch.cuda.current_device() == 0
    torch.cuda.set_stream(side)
    assert torch.cuda.current_stream() == side and hash(torch.cuda.current_stream()) == hash(side)
    torch.cuda.set_stream(first)
    urgent = torch.cuda.Stream(priority=-1)
    assert urgent.priority == -1 and torch.cuda.Stream(priority=5).priority == 0


def test_streams_order_work():
    side = torch.cuda.Stream()
    x = torch.arange(1000.0).pin_memory()
    with torch.cuda.stream(side):
        there = x.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    there.record_stream(torch.cuda.current_stream())
    assert torch.equal(there.cpu(), x)
    event = side.record_event()
    torch.cuda.current_stream().wait_event(event)
    event.synchronize()
    side.synchronize()
    assert event.query() and side.query() and event.device == torch.device("cuda:0")


def test_events():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert start.query() and start.device is None
    start.record()
    torch.zeros(1000).cuda()
    end.record(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(torch.cuda.Event())
    with pytest.raises(ValueError, match="recorded"):
        start.elapsed_time(torch.cuda.Event(enable_timing=True))
    with pytest.raises(RuntimeError, match="recording stream's device"):
        start.record(torch.cuda.Stream(1))


# ---- random numbers: seeds and states ----


def test_generator_states():
    torch.manual_seed(5)
    assert torch.cuda.initial_seed() == 5 and len(torch.cuda.get_rng_state_all()) == 2
    torch.cuda.manual_seed(6)
    assert torch.cuda.initial_seed() == 6 and torch.cuda.default_generators[1].initial_seed() == 5
    state = torch.cuda.get_rng_state("cuda:1")
    assert state.dtype == torch.uint8 and state.is_cpu
    torch.cuda.set_rng_state(state, 0)
    assert torch.cuda.initial_seed() == 5
    generator = torch.Generator(device="cuda:1").manual_seed(9)
    assert generator.device == torch.device("cuda:1") and generator.initial_seed() == 9
    with pytest.raises(RuntimeError, match="wrong size"):
        generator.set_state(torch.Generator().get_state())


# ---- what the simulator detects ----


def test_host_access_is_reported():
    status, text = run("import ctypes; x = torch.tensor([1.0], device='cuda:1')\n"
                       "ctypes.c_float.from_address(x.data_ptr()).value")  # fmt: skip
    assert status == -11 and "host access to device memory" in text and "cuda:1" in text


@pytest.mark.parametrize("wait", [False, True])
def test_missing_synchronisation_is_reported(wait):
    script = ("x = torch.ones(8).pin_memory(); y = torch.empty(8, device='cuda'); side = torch.cuda.Stream()\n"
              "y.copy_(x, non_blocking=True)\n"
              + ("side.wait_stream(torch.cuda.current_stream())\n" if wait else "")
              + "with torch.cuda.stream(side): y.copy_(x, non_blocking=True)")  # fmt: skip
    status, text = run(script, RUSHLIGHT_SIM_RACES="1")
    if wait:
        assert status == 0, text
    else:
        assert status == 1 and "RuntimeError" in text and "race between streams: copy writes" in text


def test_a_forked_child_says_what_is_wrong():
    script = """
import os
{}
pid = os.fork()
if pid == 0:
    try:
        torch.empty(1, device="cuda")
        os._exit(0)
    except RuntimeError as error:
        os._exit(1 if "spawn" in str(error) else 2)
status = os.waitpid(pid, 0)[1] >> 8
raise SystemExit(status)
"""
    assert run(script.format("torch.cuda.is_available()"))[0] == 0
    assert run(script.format("x = torch.empty(1, device='cuda')"))[0] == 1


def test_bad_settings():
    for name, value in (
        ("RUSHLIGHT_SIM_GPUS", "two"),
        ("RUSHLIGHT_SIM_GPUS", "1000"),
        ("RUSHLIGHT_SIM_GPU_MEMORY", "-1"),
    ):
        status, text = run("torch.cuda.init()", **{name: value})
        assert status == 1 and f"ValueError: {name}" in text


def test_collect_env():
    done = subprocess.run([sys.executable, "-m", "rushlight.collect_env"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "cuda:1: Rushlight simulated GPU" in done.stdout and "RUSHLIGHT_SIM_GPUS: 2" in done.stdout
    for library in ("libnvrtc", "libcublasLt", "libcudnn"):
        assert f"{library}: " in done.stdout


def test_cudnn_is_switched_off_and_on():
    cudnn = torch.backends.cudnn
    assert cudnn.is_available() and cudnn.enabled and not cudnn.benchmark
    x, w, b = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 2), torch.randn(6)
    expected = torch.nn.functional.conv2d(x, w, b, stride=2, padding=1, groups=2)
    with cudnn.flags(enabled=False, benchmark=True, deterministic=True):
        assert not cudnn.enabled and cudnn.benchmark and cudnn.deterministic
        own = torch.nn.functional.conv2d(x.cuda(), w.cuda(), b.cuda(), stride=2, padding=1, groups=2)
    assert cudnn.enabled and not cudnn.benchmark
    stands_in = torch.nn.functional.conv2d(x.cuda(), w.cuda(), b.cuda(), stride=2, padding=1, groups=2)
    for result in (own, stands_in):
        assert torch.allclose(result.cpu(), expected, atol=1e-5)


def test_products_may_be_less_exact():
    matmul = torch.backends.cuda.matmul
    assert not matmul.allow_tf32
    torch.set_float32_matmul_precision("high")
    assert matmul.allow_tf32
    matmul.allow_tf32 = False
    assert not matmul.allow_tf32
    torch.set_float32_matmul_precision("highest")


def test_indices_may_be_on_the_cpu():
    x, rows = torch.arange(12.0).reshape(3, 4), torch.tensor([2, 0])
    there, mask = x.cuda(), x > 4
    assert there[rows].tolist() == x[rows].tolist() and there[mask].tolist() == x[mask].tolist()
    assert torch.masked_select(there, mask).tolist() == x[mask].tolist()
    there[rows, 1] = 7.0
    there[mask] = torch.tensor(0.0)
    x[rows, 1] = 7.0
    x[mask] = 0.0
    assert there.tolist() == x.tolist()
    for wrong in (
        lambda: x[rows.cuda()],
        lambda: x[mask.cuda()],
        lambda: torch.take(x, rows.cuda()),
        lambda: x.index_put_((rows.cuda(),), torch.ones(4)),
    ):
        with pytest.raises(RuntimeError, match=r"indices should be either on cpu or on the same device .*\(cpu\)"):
            wrong()
    with pytest.raises(RuntimeError, match="at least two devices"):
        there[rows] = torch.ones(2, 4)


def test_search_takes_one_device():
    edges = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    assert torch.searchsorted(edges, 2.5).item() == 2
    with pytest.raises(RuntimeError, match="should be on the same device"):
        torch.searchsorted(edges, torch.ones(2))


def fives():
    return torch.ones(5, device="cuda")


OUT_OF_RANGE = {
    "gather": lambda i: fives().gather(0, i),
    "scatter": lambda i: fives().scatter(0, i, fives()),
    "scatter_add": lambda i: fives().scatter_add_(0, i, fives()),
    "index_select": lambda i: fives().index_select(0, i),
    "index_add": lambda i: fives().index_add_(0, i, fives()[:2]),
    "index_fill": lambda i: fives().index_fill(0, i, 1.0),
    "index": lambda i: fives()[i],
    "index_put": lambda i: fives().index_put((i,), fives()[0]),
    "take": lambda i: fives().take(i),
    "embedding": lambda i: torch.nn.functional.embedding(i, torch.ones(5, 3, device="cuda")),
    "nll_loss": lambda i: torch.nn.functional.nll_loss(torch.ones(2, 5, device="cuda"), i),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_out_of_range_is_an_error_of_the_call(name):
    message = "CUDA error: device-side assert triggered: index 7 is out of bounds for dimension . with size 5"
    with pytest.raises(IndexError, match=message) as caught:
        OUT_OF_RANGE[name](torch.tensor([2, 7], device="cuda"))
    assert isinstance(caught.value, torch.AcceleratorError) and isinstance(caught.value, RuntimeError)
    torch.cuda.synchronize()  # it is told once, and the device is as good as before
    OUT_OF_RANGE[name](torch.tensor([2, 4], device="cuda"))
    assert fives().sum().item() == 5


def test_an_index_out_of_range_in_a_graph():
    i, g = torch.tensor([2, 3], device="cuda"), torch.cuda.CUDAGraph()
    x = fives()
    with torch.cuda.graph(g):
        y = x[i]
    g.replay()
    assert y.tolist() == [1, 1]
    i.fill_(9)
    g.replay()
    with pytest.raises(torch.AcceleratorError, match="index 9 is out of bounds"):
        torch.cuda.synchronize()


def test_launches_wait_on_request():
    script = ("x = torch.ones(1 << 20, device='cuda'); side = torch.cuda.Stream()\n"
              "for _ in range(20):\n    x = x + 1; assert torch.cuda.current_stream().query()\n"
              "g = torch.cuda.CUDAGraph()\n"
              "with torch.cuda.graph(g): y = x[:3] * 2\n"
              "g.replay(); print(y.tolist())")  # fmt: skip
    status, text = run(script, CUDA_LAUNCH_BLOCKING="1")
    assert status == 0 and "[42.0, 42.0, 42.0]" in text, text
    script = ("x = torch.ones(8, device='cuda'); side = torch.cuda.Stream()\n"
              "with torch.cuda.stream(side): x += 1")  # fmt: skip
    status, text = run(script, CUDA_LAUNCH_BLOCKING="1", RUSHLIGHT_SIM_RACES="1")
    assert status == 1 and "race between streams: add reads" in text, text


def test_waiting_for_index_checks_hides_no_race():
    script = ("x, i, side = torch.ones(5, device='cuda'), torch.tensor([1, 2], device='cuda'), torch.cuda.Stream()\n"
              "torch.cuda.synchronize(); y = x[i]\n"
              "with torch.cuda.stream(side): y += 1")  # fmt: skip
    status, text = run(script, RUSHLIGHT_SIM_RACES="1")
    assert status == 1 and "race between streams: add" in text and "index" in text, text


def test_numbers_on_the_device_fit():
    x, mask = torch.ones(3, dtype=torch.uint8, device="cuda"), torch.tensor([True, False, True], device="cuda")
    assert x.masked_fill(mask, torch.tensor(7, device="cuda")).tolist() == [7, 1, 7]
    with pytest.raises(RuntimeError, match="cannot be converted to type uint8 without overflow"):
        x.masked_fill(mask, torch.tensor(300, device="cuda"))


def test_short_sums_are_rounded_once():
    torch.manual_seed(0)
    for n in (5, 40, 250):
        for x in torch.randn(50, n):
            for y in (x, x.abs(), x * x):
                assert y.cuda().sum().item() == y.double().sum().float().item()


def test_places_to_split_at_may_be_on_the_device():
    x = torch.arange(6.0, device="cuda")
    assert [p.tolist() for p in x.tensor_split(torch.tensor([2, 5], device="cuda"))] == [[0, 1], [2, 3, 4], [5]]
    assert [p.numel() for p in torch.tensor_split(x, torch.tensor(4, device="cuda"))] == [2, 2, 1, 1]


def test_errors_name_the_operator_around():
    script = ("x = torch.ones(5, device='cuda')\n"
              "try:\n    torch.gather(x, 0, torch.tensor([1, 7, 0], device='cuda')[::2].clone() + 5).cpu()\n"
              "except RuntimeError as e: print(e)")  # fmt: skip
    status, text = run(script)
    assert status == 0 and "is out of bounds for dimension 0 with size 5 in gather" in text, text
