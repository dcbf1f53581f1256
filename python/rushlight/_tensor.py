"""What of Tensor is written in Python: how it is copied, pickled and formatted, and a few methods over operators."""

from __future__ import annotations

from . import _C
from ._C import Tensor


def functions():
    """Functions of the package that are Python over operators, by name; loaded with the first of them."""
    import importlib

    return vars(importlib.import_module("rushlight._functions"))  # `from . import` would ask the package for the name


def _convert(result, cls):
    """Tensors in a nested result as objects of `cls`."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        return type(result)(items) if type(result) in (tuple, list) or hasattr(type(result), "n_fields") else type(result)(*items)
    return result


@classmethod
def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Runs an operator as on plain tensors and returns its results as objects of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    before = _C._set_torch_function_enabled(False)
    try:
        result = func(*args, **(kwargs or {}))
    finally:
        _C._set_torch_function_enabled(before)
    return _convert(result, cls)


def __deepcopy__(self, memo):
    """A copy with memory of its own, of the same class with the same attributes. Only leaves can be copied so."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy

    with_grad = self.requires_grad
    data = self.detach().clone()
    copied = data if type(self) is Tensor else Tensor._make_subclass(type(self), data, False)
    if with_grad:
        copied.requires_grad_()
    memo[id(self)] = copied
    if self.grad is not None:
        copied.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        setattr(copied, name, copy.deepcopy(value, memo))
    return copied


def __reduce_ex__(self, protocol):
    """Pickles as bytes, dtype and shape; strides are not kept."""
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) can be pickled: call detach() first")
    data = self.detach().contiguous()
    raw = bytes(memoryview(data.view(_C.uint8))) if data.dim() else bytes(memoryview(data.reshape(1).view(_C.uint8)))
    state = dict(self.__dict__)
    return _rebuild, (type(self), raw, self.dtype, tuple(self.shape), self.requires_grad, state)


def _rebuild(cls, raw, dtype, shape, requires_grad, state):
    if raw:
        data = _C.frombuffer(bytearray(raw), dtype=dtype).reshape(shape).clone()
    else:
        data = _C.empty(shape, dtype=dtype)
    if cls is not Tensor:
        data = Tensor._make_subclass(cls, data, False)
    if requires_grad:
        data.requires_grad_()
    for name, value in state.items():
        setattr(data, name, value)
    return data


def __array__(self, dtype=None, copy=None):
    """What numpy.asarray() asks for."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def __format__(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def __complex__(self):
    return complex(self.item())


def __contains__(self, element):
    """Whether any element equals `element`, a number or a tensor."""
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


def __dir__(self):
    return sorted({*dir(type(self)), *self.__dict__})


def _install():
    names = (
        "__torch_function__", "__deepcopy__", "__reduce_ex__", "__array__", "__format__", "__complex__", "__contains__",
        "__reversed__", "__dir__",
    )  # fmt: skip
    for name in names:
        setattr(Tensor, name, globals()[name])
    Tensor.__rdiv__, Tensor.__div__, Tensor.__idiv__ = Tensor.__rtruediv__, Tensor.__truediv__, Tensor.__itruediv__
    Tensor.__array_priority__ = 1000


_install()
