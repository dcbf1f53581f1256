"""What pickles of tensors name: the functions that put them together again, and the classes of storages.

``serialization`` writes these names as PyTorch's (``torch._utils._rebuild_tensor_v2``, ``torch.FloatStorage``) and reads those as
these.
"""

from . import _C


class _Storage:
    """Stands for PyTorch's storage classes in pickles; only the dtype's name matters. There are no instances."""

    dtype = "uint8"


class UntypedStorage(_Storage):
    pass


class FloatStorage(_Storage):
    dtype = "float32"


class DoubleStorage(_Storage):
    dtype = "float64"


class HalfStorage(_Storage):
    dtype = "float16"


class BFloat16Storage(_Storage):
    dtype = "bfloat16"


class LongStorage(_Storage):
    dtype = "int64"


class IntStorage(_Storage):
    dtype = "int32"


class ShortStorage(_Storage):
    dtype = "int16"


class CharStorage(_Storage):
    dtype = "int8"


class ByteStorage(_Storage):
    dtype = "uint8"


class BoolStorage(_Storage):
    dtype = "bool"


class ComplexFloatStorage(_Storage):
    dtype = "complex64"


class ComplexDoubleStorage(_Storage):
    dtype = "complex128"


STORAGES = {kind.__name__: kind for kind in _Storage.__subclasses__()}
STORAGE_OF = {kind.dtype: kind for kind in _Storage.__subclasses__()}  # ByteStorage comes after UntypedStorage


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over ``storage``, a flat tensor of the whole memory."""
    return _C._over_storage(storage, size, stride, storage_offset)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _rebuild_tensor(storage, storage_offset, size, stride).requires_grad_(requires_grad)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor on the meta device."""
    return _C.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A ``Parameter`` over ``data``; hooks are never restored."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """``_rebuild_parameter`` for a parameter that carried attributes of its own."""
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(function, kind, arguments, state):
    tensor = function(*arguments)
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    if hasattr(tensor, "__setstate__") and "__setstate__" in vars(kind):
        tensor.__setstate__(state)
        return tensor
    return _set_state(tensor, state)


def _set_state(tensor, state):
    """``state``: the tensor's own attributes, or a pair of these and the values of its slots."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in [*(attributes or {}).items(), *(slots or {}).items()]:
        setattr(tensor, name, value)
    return tensor
