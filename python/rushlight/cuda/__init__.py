"""CUDA devices: those of the driver, or simulated ones (see docs/devices.md).

Nothing is opened before a device is first used; `is_available` and `device_count` do not count as use.
"""

import importlib

import rushlight as torch
from rushlight._C import AcceleratorError, OutOfMemoryError, _cuda

from ._device import current_index, index_of
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "AcceleratorError", "CUDAGraph", "Event", "OutOfMemoryError", "Stream", "StreamContext", "can_device_access_peer", "current_device",
    "current_stream", "default_generators", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties",
    "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "graph", "graph_pool_handle", "init", "initial_seed", "ipc_collect",
    "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip


def is_available():
    """Whether there is a CUDA device. Opens none, so that the process may fork afterwards."""
    return _cuda.device_count() > 0


def device_count():
    """The number of CUDA devices. Opens none."""
    return _cuda.device_count()


def init():
    """Opens the devices, which otherwise happens at their first use. RuntimeError where there are none."""
    _cuda.start()


def is_initialized():
    """Whether a CUDA device has been used."""
    return _cuda.started()


def current_device():
    """The number of this thread's current device, which "cuda" stands for."""
    return current_index()


def set_device(device):
    """Makes a device current on this thread; a negative number or None changes nothing."""
    if device is None or (isinstance(device, int) and device < 0):
        return
    _cuda.set_device(index_of(device, optional=False))


class device:
    """Makes a device current in a block: ``with torch.cuda.device(1): ...``. None or a negative number changes nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _cuda.current_device()
        if self.idx >= 0:
            _cuda.set_device(self.idx)

    def __exit__(self, *_):
        if self.idx >= 0:
            _cuda.set_device(self.prev_idx)
        return False


class device_of(device):
    """Makes the device of a tensor or storage current in a block; nothing changes if that is not a CUDA one."""

    def __init__(self, obj):
        super().__init__(obj.device.index if obj.is_cuda else -1)


def get_device_properties(device=None):
    """What a device is: name, major and minor of its compute capability, total_memory, multi_processor_count, ..."""
    index = index_of(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return _cuda.properties(index)


def get_device_name(device=None):
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a device, as (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer_device):
    """Whether a device reaches the other's memory without going through the host's."""
    device, peer_device = index_of(device), index_of(peer_device)
    for index in (device, peer_device):
        if not 0 <= index < device_count():
            raise AssertionError("Invalid device id")
    return device != peer_device and _cuda.can_access_peer(device, peer_device)


def synchronize(device=None):
    """Waits for all work on a device. RuntimeError if something went wrong there since the last time."""
    _cuda.synchronize(index_of(device))


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16; with emulation every one does."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported():
    """Whether the current device multiplies matrices in TensorFloat-32."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list():
    """The architectures that kernels are compiled for ahead of use: none, they are compiled for the device at hand."""
    return []


def ipc_collect():
    """Does nothing: memory is not shared between processes."""


_MISSING = {
    "ExternalStream": "streams of other libraries can't be used",
    "memory_snapshot": "the allocator keeps no history; memory_stats and memory_summary tell its state",
    "utilization": "sensors of the device are not read",
    "temperature": "sensors of the device are not read",
    "power_draw": "sensors of the device are not read",
    "clock_rate": "sensors of the device are not read",
    "memory_usage": "sensors of the device are not read",
    "list_gpu_processes": "sensors of the device are not read",
}


def __getattr__(name):
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    if name not in _MISSING:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def missing(*_, **__):
        raise NotImplementedError(f"torch.cuda.{name}: {_MISSING[name]}")

    missing.__name__ = missing.__qualname__ = name
    return missing
