"""Layers that sum up windows of their input: by maximum, mean, norm; and that undo the maximum."""

from __future__ import annotations

from .. import functional as F
from .module import Module
from .utils import _ntuple, _single

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
]


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _options(self):
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window.

    Arguments: `kernel_size`; `stride` (by default the kernel's size); `padding`: how far windows reach over the ends, at
    most half a kernel; `dilation`: the step within a window; `return_indices`: also return where each maximum is, for
    ``MaxUnpool1d``; `ceil_mode`: round the number of windows up.
    Shape: (N, C, L) or (C, L); the result's length is
    floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.
    """

    def forward(self, input):
        return F.max_pool1d(input, *self._options())


class MaxPool2d(_MaxPoolNd):
    """``MaxPool1d`` for images, shape (N, C, H, W) or (C, H, W); arguments are numbers or pairs."""

    def forward(self, input):
        return F.max_pool2d(input, *self._options())


class MaxPool3d(_MaxPoolNd):
    """``MaxPool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W); arguments are numbers or triples."""

    def forward(self, input):
        return F.max_pool3d(input, *self._options())


class _MaxUnpoolNd(Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        expand = _ntuple(self._dims)
        self.kernel_size = expand(kernel_size)
        self.stride = expand(kernel_size if stride is None else stride)
        self.padding = expand(padding)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts each value back where ``MaxPool1d`` with `return_indices` took it from, with zeros elsewhere.

    Arguments: those of the pooling. It is called with the values, the indices and, where the pooling rounded, the
    `output_size` wanted. Shape: (N, C, L) or (C, L).
    """

    _dims = 1

    def forward(self, input, indices, output_size=None):
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """``MaxUnpool1d`` for images, shape (N, C, H, W) or (C, H, W)."""

    _dims = 2

    def forward(self, input, indices, output_size=None):
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """``MaxUnpool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3

    def forward(self, input, indices, output_size=None):
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window.

    Arguments: `kernel_size`; `stride` (by default the kernel's size); `padding`: zeros at both ends; `ceil_mode`: round the
    number of windows up; `count_include_pad`: whether the padding counts in the mean.
    Shape: (N, C, L) or (C, L); the result's length is floor((L + 2 * padding - kernel_size) / stride) + 1.
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolDivisor(_AvgPoolNd):
    """The mean pooling of two and three dimensions, whose divisor can be given."""

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _options(self):
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for name, default in (
            ("padding", 0),
            ("ceil_mode", False),
            ("count_include_pad", True),
            ("divisor_override", None),
        ):
            self.__dict__.setdefault(name, default)


class AvgPool2d(_AvgPoolDivisor):
    """``AvgPool1d`` for images, shape (N, C, H, W) or (C, H, W); arguments are numbers or pairs. `divisor_override`: what to
    divide by instead of the window's size."""

    def forward(self, input):
        return F.avg_pool2d(input, *self._options())


class AvgPool3d(_AvgPoolDivisor):
    """``AvgPool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W); arguments are numbers or triples.
    `divisor_override`: what to divide by instead of the window's size."""

    def forward(self, input):
        return F.avg_pool3d(input, *self._options())


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        expand = _ntuple(self._dims)
        if isinstance(kernel_size, int) and kernel_size <= 0 or any(size <= 0 for size in expand(kernel_size)):
            raise ValueError(f"kernel_size must greater than zero for all dimensions, but got {kernel_size}")
        self.kernel_size = expand(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else expand(output_size)
        self.output_ratio = None if output_ratio is None else expand(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _options(self):
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows placed at random so that the result has any wanted size.

    Arguments: `kernel_size`; `output_size` or `output_ratio` (in (0, 1), of the input's size), numbers or pairs;
    `return_indices`: also return where each maximum is. Shape: (N, C, H, W) or (C, H, W). ValueError for other options.
    Source: Graham 2014, arXiv:1412.6071.
    """

    _dims = 2

    def forward(self, input):
        return F.fractional_max_pool2d(input, *self._options())


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """``FractionalMaxPool2d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3

    def forward(self, input):
        return F.fractional_max_pool3d(input, *self._options())


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _options(self):
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm ``(sum x^p)^(1/p)`` of each window, with p `norm_type`: 1 is the sum, infinity the maximum.

    Arguments: `norm_type`, `kernel_size`, `stride` (by default the kernel's size), `ceil_mode`: round the number of windows
    up. Shape: (N, C, L) or (C, L).
    """

    def forward(self, input):
        return F.lp_pool1d(input, *self._options())


class LPPool2d(_LPPoolNd):
    """``LPPool1d`` for images, shape (N, C, H, W) or (C, H, W); sizes are numbers or pairs."""

    def forward(self, input):
        return F.lp_pool2d(input, *self._options())


class LPPool3d(_LPPoolNd):
    """``LPPool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W); sizes are numbers or triples."""

    def forward(self, input):
        return F.lp_pool3d(input, *self._options())


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows chosen so that the result has the length `output_size`, whatever the input's.

    `return_indices`: also return where each maximum is. Shape: (N, C, L) or (C, L).
    """

    def forward(self, input):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """``AdaptiveMaxPool1d`` for images, shape (N, C, H, W) or (C, H, W); `output_size` is a number or a pair, where None is
    the input's own size."""

    def forward(self, input):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """``AdaptiveMaxPool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W); `output_size` is a number or a triple, where
    None is the input's own size."""

    def forward(self, input):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows chosen so that the result has the length `output_size`, whatever the input's.

    Shape: (N, C, L) or (C, L).
    """

    def forward(self, input):
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """``AdaptiveAvgPool1d`` for images, shape (N, C, H, W) or (C, H, W); `output_size` is a number or a pair, where None is
    the input's own size."""

    def forward(self, input):
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """``AdaptiveAvgPool1d`` for volumes, shape (N, C, D, H, W) or (C, D, H, W); `output_size` is a number or a triple, where
    None is the input's own size."""

    def forward(self, input):
        return F.adaptive_avg_pool3d(input, self.output_size)
