"""The CPU with the interface that devices have, for code that is written for any of them."""

import contextlib

from rushlight import _C

from . import amp

__all__ = [
    "Event",
    "Stream",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "packed_weights",
    "packed_weights_limit",
    "reset_peak_memory_stats",
    "set_device",
    "set_packed_weights_limit",
    "stream",
    "synchronize",
]


def is_available():
    """Whether there is a CPU: True."""
    return True


def is_initialized():
    """Whether the CPU is ready: True."""
    return True


def device_count():
    """The number of CPU devices: 1, whatever its number of cores."""
    return 1


def current_device():
    """The name of the current CPU device: "cpu"."""
    return "cpu"


def set_device(device):
    """Does nothing: there is one device."""


def synchronize(device=None):
    """Returns at once: work on the CPU is done when the call that asked for it returns."""


class Stream:
    """Stands for the order in which calls are made, the only one the CPU has."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Returns at once."""

    def record_event(self):
        """An event that has happened."""
        return Event()

    def wait_event(self, event):
        """Returns at once."""


class Event:
    """Something that has happened."""

    def query(self):
        """Whether it has: True."""
        return True

    def record(self, stream=None):
        """Returns at once."""

    def synchronize(self):
        """Returns at once."""

    def wait(self, stream=None):
        """Returns at once."""


def current_stream(device=None):
    """The one stream."""
    return Stream()


def stream(stream):
    """A context in which nothing is different."""
    return contextlib.nullcontext()


def memory_allocated():
    """Bytes of CPU memory that tensors and the operators at work hold."""
    return _C._memory_allocated()


def max_memory_allocated():
    """The largest value of `memory_allocated` so far, or since `reset_peak_memory_stats`."""
    return _C._max_memory_allocated()


def reset_peak_memory_stats():
    """Starts `max_memory_allocated` over."""
    _C._reset_peak_memory()


def memory_reserved():
    """Bytes that the caching allocator holds: what is in use, and what is kept to be used again."""
    return _C._memory_allocated() + _C._memory_cached()


def packed_weights():
    """Bytes of weights that layers keep in the order in which they read them, beside the weights themselves.

    A weight that is used again unchanged, as in inference, is packed once. Changing it drops what was packed.
    """
    return _C._kept_bytes()


def packed_weights_limit():
    """The most bytes that `packed_weights` can come to: at first an eighth of the machine's memory, at most 1 GiB."""
    return _C._kept_limit()


def set_packed_weights_limit(limit):
    """Sets `packed_weights_limit`. With 0 nothing more is packed, which saves memory where it is short.

    Raises ValueError for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"set_packed_weights_limit: expected a number of bytes, not below 0, but got {limit}")
    _C._set_kept_limit(limit)


def empty_cache():
    """Gives memory that is kept to be used again back to the system."""
    _C._empty_cache()
