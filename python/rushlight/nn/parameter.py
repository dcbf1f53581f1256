"""Tensors that a module owns: parameters, buffers, and both before their shape is known."""

from __future__ import annotations

from collections import OrderedDict

import rushlight as torch
from rushlight._C import _disabled_torch_function_impl

__all__ = [
    "Parameter",
    "Buffer",
    "UninitializedParameter",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _Flagged(type(torch.Tensor)):
    """Makes ``isinstance`` accept tensors of other classes that carry the class's flag (see ``Parameter.__new__``)."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        flag = cls.__dict__.get("_flag")
        return flag is not None and isinstance(instance, torch.Tensor) and getattr(instance, flag, False)


class Parameter(torch.Tensor, metaclass=_Flagged):
    """A tensor that a module trains: assigned as an attribute of a ``Module``, it is registered in ``parameters()``.

    Arguments:
        data: the tensor whose memory is used; an empty one where it is None.
        requires_grad: whether gradients are recorded; ``no_grad`` does not change that.

    The result of an operation on a parameter is a plain tensor. A tensor of a subclass keeps its class and is only
    marked as a parameter. Errors: RuntimeError where a subclass's ``detach()`` returns another type.
    """

    _flag = "_is_param"
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        if type(data) is torch.Tensor or type(data) is Parameter:
            return torch.Tensor._make_subclass(cls, data, requires_grad)
        result = data.detach().requires_grad_(requires_grad)
        if type(result) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(result).__name__} was found instead."
            )
        result._is_param = True
        return result

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            data = self.data.clone(memory_format=torch.preserve_format)
            memo[id(self)] = type(self)(data, self.requires_grad)
        return memo[id(self)]

    def __repr__(self, **options):
        return "Parameter containing:\n" + torch.Tensor.__repr__(self, **options)

    def __reduce_ex__(self, protocol):
        # Hooks stay behind: they are closures over the program that set them.
        from rushlight import _utils

        state = dict(self.__dict__)
        if state:
            return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


class Buffer(torch.Tensor, metaclass=_Flagged):
    """A tensor that belongs to a module's state but is not trained; assigned as an attribute it is registered.

    Arguments:
        data: the tensor whose memory is used; an empty one where it is None.
        persistent: whether ``state_dict`` holds it.

    The result is an ordinary tensor, marked: ``isinstance(x, Buffer)`` holds for it.
    """

    _flag = "_is_buffer"
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


class UninitializedTensorMixin:
    """What the tensors of lazy modules share: no shape, no data, and errors that say so."""

    # What moving, converting and loading an unfinished module needs.
    _allowed = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long bfloat16 cuda cpu to "
        "get_device __get__ __set__".split()
    )

    def materialize(self, shape, device=None, dtype=None):
        """Gives the tensor memory of `shape` (uninitialized) and makes it an ordinary parameter or buffer, in place.

        `device` and `dtype` are by default those it was made with.
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = torch.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self, **options):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in cls._allowed:
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param):
    """Whether `param` is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize` turns it into a ``Parameter``.

    Arguments: `requires_grad`, and the `device` and `dtype` that it will have.
    """

    _flag = None
    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return torch.Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, torch.Tensor):
    """A buffer whose shape is not known yet; `materialize` turns it into a tensor.

    Arguments: `requires_grad`, the `device` and `dtype` that it will have, and whether it is `persistent`.
    """

    cls_to_become = torch.Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        result = torch.Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
