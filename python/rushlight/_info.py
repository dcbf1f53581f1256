"""What dtypes can hold, and what things are called."""

from . import _C
from ._C import Tensor

__all__ = ["finfo", "get_file_path", "iinfo", "typename"]

# bits, digits of the mantissa with the implicit one, largest exponent, decimal digits
_FLOATS = {
    _C.float16: (16, 11, 16, 1e-3),
    _C.bfloat16: (16, 8, 128, 1e-2),
    _C.float32: (32, 24, 128, 1e-6),
    _C.float64: (64, 53, 1024, 1e-15),
}
_FLOATS[_C.complex64] = _FLOATS[_C.float32]
_FLOATS[_C.complex128] = _FLOATS[_C.float64]
_INTEGERS = {_C.uint8: (8, False), _C.int8: (8, True), _C.int16: (16, True), _C.int32: (32, True), _C.int64: (64, True)}


def _name(dtype):
    return str(dtype).removeprefix("torch.")


class finfo:
    """The limits of a floating-point dtype (of a complex one, those of its parts).

    `bits`, `eps` (the step from 1 to the next number), `max`, `min`, `tiny` and `smallest_normal` (the least positive
    number at full precision), `resolution` (decimal), `dtype` (its name). Without an argument: of the default dtype.
    TypeError for an integral dtype.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type=None):
        dtype = _C.get_default_dtype() if type is None else type
        if dtype not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        self.bits, digits, exponent, self.resolution = _FLOATS[dtype]
        self.eps = 2.0 ** (1 - digits)
        self.max = (2.0 - self.eps) * 2.0 ** (exponent - 1)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (2 - exponent)
        self.dtype = _name(dtype)

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash((finfo, self.dtype))

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integral dtype: `bits`, `max`, `min`, `dtype` (its name). TypeError for any other dtype."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type):
        if type not in _INTEGERS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        self.bits, signed = _INTEGERS[type]
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.dtype = _name(type)

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash((iinfo, self.dtype))

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def typename(obj):
    """The name of an object's type: "torch.FloatTensor" for a tensor, "module.Class" otherwise."""
    if isinstance(obj, Tensor):
        return obj.type()
    of = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(of, "__module__", None) or ""
    name = of.__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"


def get_file_path(*parts):
    """The path of a file of the installed package."""
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts[parts[:1] == ("torch",) :])
