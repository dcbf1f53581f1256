"""`autocast` and what custom autograd functions need to live with it."""

import functools
import warnings

import rushlight as torch
from rushlight import _C
from rushlight._sequences import in_kind_of

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_SHORT = (torch.float16, torch.bfloat16)


def is_autocast_available(device_type):
    """Whether autocast knows the device type: "cpu" and "cuda" are known."""
    return device_type in ("cpu", "cuda")


def _device_type(name):
    if not isinstance(name, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(name)}`")
    if not is_autocast_available(name):
        raise RuntimeError(f"User specified an unsupported autocast device_type '{name}'")
    return name


class autocast:
    """Within the context (or the decorated function), operators choose the type they compute in.

    Products and convolutions get their arguments in `dtype`, operators that need range or precision in float32, most
    take them as they are. Backward passes belong outside: they run in the types that forward chose.

    Args:
        device_type (str): "cuda" or "cpu"; tensors on other devices are left alone.
        dtype (torch.dtype, optional): float16 or bfloat16. Default: float16 on cuda, bfloat16 on cpu.
        enabled (bool): False turns autocast off in this part of a larger context.
        cache_enabled (bool, optional): cast a float32 parameter once for the whole of the outermost context.

    Raises RuntimeError for an unknown device type. With another dtype it warns and is off.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _device_type(device_type)
        self.fast_dtype = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = torch.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled)
        if self._enabled and device_type == "cuda" and not torch.cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling autocast.", stacklevel=2
            )
            self._enabled = False
        if self._enabled and self.fast_dtype not in _SHORT:
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast. "
                f"{device_type.upper()} Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False
        self._before = []  # a context may be entered again within itself

    def __enter__(self):
        device = self.device
        self._before.append(
            (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled())
        )
        _C.set_autocast_enabled(device, self._enabled)
        if self.fast_dtype in _SHORT:
            _C.set_autocast_dtype(device, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *_):
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        enabled, dtype, cache = self._before.pop()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def within(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return within


def _cast(value, device_type, dtype):
    if isinstance(value, torch.Tensor):
        takes_part = value.is_floating_point() and value.device.type == device_type and value.dtype != torch.float64
        return value.to(dtype) if takes_part else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return in_kind_of(value, [_cast(v, device_type, dtype) for v in value])
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates ``forward`` of an autograd Function that may be used under autocast.

    Args:
        device_type (str): whose autocast is meant.
        cast_inputs (torch.dtype, optional): where autocast is on, floating-point tensors among the arguments are cast to
            this type and ``forward`` runs with autocast off. By default it runs in the state around it.

    ``backward`` needs `custom_bwd`.
    """
    _device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        args[0]._dtype = torch.get_autocast_dtype(device_type)
        enabled = torch.is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorates ``backward`` of an autograd Function: it runs in the autocast state that ``forward`` ran in."""
    _device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
