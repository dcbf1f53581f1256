"""CUDA devices. There are none yet: everything that asks for one says so."""

__all__ = ["device_count", "is_available", "is_bf16_supported", "is_initialized", "memory_allocated"]


def is_available():
    """Whether there is a CUDA device: False."""
    return False


def device_count():
    """The number of CUDA devices: 0."""
    return 0


def is_initialized():
    """Whether a CUDA device was used: False."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16: False without one."""
    return False


def memory_allocated(device=None):
    """Bytes of device memory in use: 0 without a device."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def _nothing(*_, **__):
    """Without a device there is nothing to do: what scripts call unconditionally."""


manual_seed = manual_seed_all = seed = seed_all = empty_cache = ipc_collect = _nothing
reset_peak_memory_stats = reset_max_memory_allocated = _nothing


_NEED_DEVICE = frozenset(
    ("init", "current_device", "set_device", "current_stream", "default_stream", "set_stream", "get_device_name",
     "get_device_properties", "get_device_capability", "stream", "device", "Stream", "Event", "get_rng_state",
     "get_rng_state_all", "set_rng_state", "set_rng_state_all", "mem_get_info", "memory_stats", "memory_summary",
     "synchronize", "utilization", "temperature", "initial_seed", "can_device_access_peer")
)  # fmt: skip


def __getattr__(name):
    if name not in _NEED_DEVICE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def raise_no_device(*_, **__):
        raise RuntimeError(f"torch.cuda.{name}: no CUDA device is available")

    raise_no_device.__name__ = raise_no_device.__qualname__ = name
    return raise_no_device
