"""Layers that extend their input at its borders. `padding` is a number, or for each dimension, the last one first, what to
add before and after; negative numbers cut off."""

from __future__ import annotations

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """What all share; a subclass gives the number of dimensions `_dims`, and its family the mode."""

    __constants__ = ["padding"]

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input):
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues (N, C, L) or (C, L) at each end with what is at the other."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Continues (N, C, H, W) or (C, H, W) at each border with what is at the opposite one."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Continues (N, C, D, H, W) or (C, D, H, W) at each border with what is at the opposite one."""

    _dims = 3


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Surrounds the last dimension with `value`."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Surrounds the last two dimensions with `value`."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Surrounds the last three dimensions with `value`."""

    _dims = 3


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Continues (N, C, L) or (C, L) by its mirror image, the outermost element not repeated."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Continues (N, C, H, W) or (C, H, W) by its mirror image, the outermost elements not repeated."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Continues (N, C, D, H, W) or (C, D, H, W) by its mirror image, the outermost elements not repeated."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the outermost elements of (N, C, L) or (C, L)."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the outermost elements of (N, C, H, W) or (C, H, W)."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the outermost elements of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Surrounds the last dimension with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Surrounds the last two dimensions with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Surrounds the last three dimensions with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"
