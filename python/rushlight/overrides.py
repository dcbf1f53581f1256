"""The protocol by which other classes take part in operators: __torch_function__."""

from . import _C
from ._C import Tensor

__all__ = [
    "get_ignored_functions", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
]  # fmt: skip

_PLAIN = (Tensor, int, float, bool, str, tuple, list, type(None))


def _override(argument):
    if type(argument) in _PLAIN:
        return None
    found = getattr(type(argument), "__torch_function__", None)
    return None if found is _C._disabled_torch_function_impl else found


def has_torch_function(relevant_args):
    """Whether any of these arguments overrides operators (and overriding is not switched off)."""
    return _C._is_torch_function_enabled() and any(_override(argument) is not None for argument in relevant_args)


def has_torch_function_unary(argument):
    """has_torch_function() of one argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments):
    """has_torch_function() of these arguments."""
    return has_torch_function(arguments)


def _overriding(arguments):
    """One argument of each type that overrides, subclasses before their bases, otherwise in order."""
    found = []
    for argument in arguments:
        if _override(argument) is None or any(type(argument) is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(type(argument), type(other))), len(found))
        found.insert(at, argument)
    return found


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """What the arguments' __torch_function__ makes of public_api(*args, **kwargs).

    Each is asked in turn until one returns something else than NotImplemented; TypeError if none does.
    """
    found = _overriding(relevant_args)
    types = tuple(map(type, found))
    for argument in found:
        result = argument.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}")


def is_tensor_like(inp):
    """Whether it is a Tensor or an object that overrides operators."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether it is an attribute of Tensor, rather than a function of the package."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func or getattr(func, "__name__", "") == "__get__"


def resolve_name(f):
    """The public name of a function of the package: "torch.add"."""
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    return f"torch.Tensor.{name}" if is_tensor_method_or_property(f) and not hasattr(_C, name) else f"torch.{name}"


def get_ignored_functions():
    """Functions that never ask an argument's __torch_function__."""
    from . import is_storage, is_tensor

    return {is_tensor, is_storage, _C.tensor, _C.as_tensor, _C.from_numpy, has_torch_function, handle_torch_function}
