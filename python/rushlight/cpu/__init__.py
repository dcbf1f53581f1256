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
    "reset_peak_memory_stats",
    "set_device",
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


def empty_cache():
    """Gives memory that is kept to be used again back to the system."""
    _C._empty_cache()
