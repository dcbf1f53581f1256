"""torch.FloatTensor and its kin: old names for a dtype on a device."""

from . import _C
from ._C import Tensor

_NAMES = {
    "BoolTensor": _C.bool, "ByteTensor": _C.uint8, "CharTensor": _C.int8, "ShortTensor": _C.int16,
    "IntTensor": _C.int32, "LongTensor": _C.int64, "HalfTensor": _C.float16, "BFloat16Tensor": _C.bfloat16,
    "FloatTensor": _C.float32, "DoubleTensor": _C.float64, "ComplexFloatTensor": _C.complex64,
    "ComplexDoubleTensor": _C.complex128,
}  # fmt: skip
_STORAGES = {name.replace("Tensor", "Storage"): dtype for name, dtype in _NAMES.items()}
_TEXT = {dtype: name for name, dtype in _NAMES.items()}


class tensortype(type):
    """The type of torch.FloatTensor: isinstance() asks for its dtype on the CPU, a call makes a tensor."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, Tensor) and obj.dtype == cls.dtype and obj.is_cpu

    def __call__(cls, *args, device=None):
        if not args:
            return _C.empty(0, dtype=cls.dtype)
        if all(type(size) is int for size in args):
            return _C.empty(args, dtype=cls.dtype)
        (data,) = args
        if isinstance(data, _C.Size):
            return _C.empty(data, dtype=cls.dtype)
        if isinstance(data, Tensor):
            if data.dtype != cls.dtype:
                raise TypeError(f"expected {_TEXT[cls.dtype]} (got {data.type()})")
            return data.detach()
        return _C.tensor(data, dtype=cls.dtype)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


def find(name):
    """The type or storage class of this name; None if there is none."""
    if name in _NAMES:
        return tensortype(name, (), {"dtype": _NAMES[name], "__module__": "torch", "is_cuda": False})
    if name in _STORAGES:
        from .storage import TypedStorage

        def make(source=0):
            return TypedStorage(source, dtype=_STORAGES[name])

        make.__name__ = make.__qualname__ = name
        return make
    return None


def type_name(tensor):
    """ "torch.FloatTensor": what Tensor.type() says."""
    place = "" if tensor.is_cpu else f"{tensor.device.type}."
    return f"torch.{place}{_TEXT[tensor.dtype]}"


def dtype_of(kind):
    """The dtype that a dtype, a type or a type's name stands for. ValueError for another name."""
    if isinstance(kind, _C.dtype):
        return kind
    if isinstance(kind, tensortype):
        return kind.dtype
    if isinstance(kind, str):
        name = kind.removeprefix("torch.")
        if name.startswith("cuda."):
            raise RuntimeError(f"type {kind} not available: no CUDA device is available")
        if name in _NAMES:
            return _NAMES[name]
        raise ValueError(f"invalid type: '{kind}'")
    raise TypeError(f"expected a dtype, a tensor type or its name, got {type(kind).__name__}")
