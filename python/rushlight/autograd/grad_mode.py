"""Switches for recording: context managers that are decorators too, of generator functions as well.

Each keeps what it must restore in itself, so one object serves one `with` at a time; as a decorator it makes a fresh one
for every call.
"""

from functools import wraps

from rushlight import _C

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

_CO_GENERATOR = 0x20  # of a code object's flags


def _wrap(function, clone):
    """Runs a function inside of the context that `clone()` makes; a generator function, whenever it runs."""
    code = getattr(function, "__code__", None)
    if isinstance(function, type):
        raise TypeError(
            f"{clone().__class__.__name__} does not decorate a class: decorate the methods of {function.__name__}"
        )
    if code is not None and code.co_flags & _CO_GENERATOR:

        @wraps(function)
        def generator(*args, **kwargs):
            return _drive(function(*args, **kwargs), clone)

        return generator

    @wraps(function)
    def inside(*args, **kwargs):
        with clone():
            return function(*args, **kwargs)

    return inside


def _drive(inner, clone):
    """Passes on what a generator yields and receives; the context is on only while the generator runs."""
    try:
        with clone():
            value = inner.send(None)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with clone():
                    inner.close()
                raise
            except BaseException as error:
                with clone():
                    value = inner.throw(error)
            else:
                with clone():
                    value = inner.send(sent)
    except StopIteration as stop:
        return stop.value


class _Switch:
    """What the modes share. A subclass says which grad mode it sets."""

    __slots__ = ("_before",)

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else _wrap(function, cls)

    def __enter__(self):
        self._before = _C.is_grad_enabled()
        _C._set_grad_enabled(self._enables)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self._before)

    def __call__(self, function):
        return _wrap(function, type(self))

    def clone(self):
        """Makes another one of this kind."""
        return type(self)()


class no_grad(_Switch):
    """Turns recording off: results of operations inside do not require grad.

    Use it as ``with no_grad():``, ``@no_grad()`` or ``@no_grad``. The mode is the thread's own.
    """

    __slots__ = ()
    _enables = False


class enable_grad(_Switch):
    """Turns recording on, inside of a `no_grad` block. Use it as ``with enable_grad():`` or ``@enable_grad()``."""

    __slots__ = ()
    _enables = True


class set_grad_enabled:
    """Turns recording on or off by ``mode``: at once when called, until the end of the block when used in ``with``."""

    __slots__ = ("_before", "mode")

    def __init__(self, mode):
        self._before = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exception):
        _C._set_grad_enabled(self._before)

    def __call__(self, function):
        _C._set_grad_enabled(self._before)  # as a decorator it has no effect before the function runs
        return _wrap(function, self.clone)

    def clone(self):
        """Makes another one with the same mode."""
        return set_grad_enabled(self.mode)

    def __str__(self):
        return f"set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode:
    """Turns recording off for good: tensors made inside can never take part in a gradient, and nothing counts versions.

    Use it as ``with inference_mode():``, ``@inference_mode()`` or ``@inference_mode``. ``mode=False`` inside of a block
    turns the mode off again.
    """

    __slots__ = ("_grad", "_inference", "mode")

    def __new__(cls, mode=True):
        if not isinstance(mode, bool):
            return _wrap(mode, cls)
        return object.__new__(cls)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self._inference, self._grad = _C.is_inference_mode_enabled(), _C.is_grad_enabled()
        _C._set_inference_mode(self.mode)
        _C._set_grad_enabled(not self.mode)

    def __exit__(self, *exception):
        _C._set_inference_mode(self._inference)
        _C._set_grad_enabled(self._grad)

    def __call__(self, function):
        return _wrap(function, self.clone)

    def clone(self):
        """Makes another one with the same mode."""
        return inference_mode(self.mode)


class set_multithreading_enabled:
    """Says whether backward may use a thread for each device: at once when called, or for the block."""

    __slots__ = ("_before", "mode")

    def __init__(self, mode):
        self._before = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_multithreading_enabled(self._before)

    def clone(self):
        """Makes another one with the same mode."""
        return set_multithreading_enabled(self.mode)
