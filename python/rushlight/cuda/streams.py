"""Streams and events of CUDA devices."""

import rushlight as torch
from rushlight._C import _cuda

from ._device import index_of


class Stream(_cuda.Stream):
    """A queue of work on a device: what is put on one runs in order, and alongside that on others.

    Args:
        device (device or int, optional): its device; the current one if not given.
        priority (int): 0 or a negative number; the lower, the more urgent.
        stream_id, device_index, device_type: name a stream that exists.

    In a ``with`` block it is the current stream of this thread.
    """

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        if stream_id is not None:
            super().__init__(_cuda.stream_from_id(index_of(device_index), stream_id))
        else:
            super().__init__(index_of(device), min(priority, 0))

    @property
    def device(self):
        """The device it belongs to."""
        return torch.device("cuda", self.device_index)

    @property
    def device_type(self):
        """1, which stands for CUDA."""
        return 1

    @staticmethod
    def priority_range():
        """The least and the most urgent priority."""
        return 0, -3

    def wait_event(self, event):
        """Work put on this stream from now on waits for the event."""
        self._wait_event(event)

    def wait_stream(self, stream):
        """Work put on this stream from now on waits for all that is on the other now."""
        self._wait_stream(stream)

    def record_event(self, event=None):
        """Marks the place this stream has come to, with a new event if none is given. Returns the event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        self.__dict__.setdefault("_contexts", []).append(context := StreamContext(self))
        context.__enter__()
        return self

    def __exit__(self, *error):
        return self._contexts.pop().__exit__(*error)

    def __eq__(self, other):
        return isinstance(other, Stream) and self._same(other)

    def __hash__(self):
        return hash((self.device_index, self.stream_id))

    def __repr__(self):
        return f"torch.cuda.Stream(device={self.device}, stream_id={self.stream_id})"


class Event(_cuda.Event):
    """A mark in a stream that the host and other streams can wait for.

    Args:
        enable_timing (bool): whether `elapsed_time` may be asked.
        blocking (bool): whether `synchronize` sleeps rather than spins.
        interprocess (bool): must be False.
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess or external:
            raise NotImplementedError("Event: events are not shared with other processes or graphs")
        super().__init__(enable_timing, blocking)

    @property
    def device(self):
        """The device it was recorded on, None before."""
        return torch.device("cuda", self._device) if self._device >= 0 else None

    def record(self, stream=None):
        """Marks the place a stream has come to, the current one if none is given."""
        self._record(current_stream() if stream is None else stream)

    def wait(self, stream=None):
        """Work put on the stream (the current one if none is given) from now on waits for this event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def elapsed_time(self, end_event):
        """Milliseconds from this event to `end_event`, both done and made with ``enable_timing=True``."""
        return self._elapsed(end_event)

    def __repr__(self):
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self._device >= 0 else "<torch.cuda.Event uninitialized>"


def _named(stream):
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index)


def current_stream(device=None):
    """The stream that this thread's work on a device goes to."""
    return _named(_cuda.current_stream(index_of(device)))


def default_stream(device=None):
    """The stream that is current at first."""
    return _named(_cuda.default_stream(index_of(device)))


def set_stream(stream):
    """Makes a stream its device's current one on this thread, and does not change the current device. None does nothing."""
    if stream is not None:
        _cuda.set_stream(stream)


class StreamContext:
    """Makes a stream and its device current in a block; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self._device_before = _cuda.current_device()
        self._stream_before = _cuda.current_stream(self.stream.device_index)
        _cuda.set_device(self.stream.device_index)
        _cuda.set_stream(self.stream)

    def __exit__(self, *_):
        if self.stream is not None:
            _cuda.set_stream(self._stream_before)
            _cuda.set_device(self._device_before)
        return False


def stream(stream):
    """A context manager in which a stream and its device are current: ``with torch.cuda.stream(s): ...``."""
    return StreamContext(stream)
