"""Convolutions, their transposes, and the lazy forms of both."""

from __future__ import annotations

import math

import rushlight as torch

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share; a subclass gives the number of dimensions and the function."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_for_pad(self):
        """The padding as ``F.pad`` takes it: before and after each dimension, the last dimension first."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        if self.padding == "valid":
            return [0, 0] * len(self.kernel_size)
        both = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = dilation * (size - 1)
            both += [total // 2, total - total // 2]
        return both

    def reset_parameters(self):
        """Draws weight and bias anew, uniform in ±1/sqrt(fan_in)."""
        with torch.no_grad():
            if self.weight.is_contiguous():
                init.kaiming_uniform_(self.weight, a=math.sqrt(5))
            else:
                # The numbers go to the same places whatever the memory format.
                drawn = torch.empty_like(self.weight, memory_format=torch.contiguous_format)
                self.weight.copy_(init.kaiming_uniform_(drawn, a=math.sqrt(5)))
            if self.bias is not None:
                fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """The constructor and ``forward`` of the three convolutions; they give `_dims` and `_function`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        expand = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            padding if isinstance(padding, str) else expand(padding),
            expand(dilation),
            False,
            expand(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        convolve = getattr(F, self._function)
        if self.padding_mode == "zeros":
            return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return convolve(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Cross-correlates a signal of several channels with learned kernels.

    Arguments: `in_channels`, `out_channels`, `kernel_size`; `stride`, `padding` (a number for both ends, "same" or
    "valid") and `dilation` of the kernel; `groups`: channels are split into so many groups that do not see each other;
    `bias`; `padding_mode`: "zeros", "reflect", "replicate" or "circular"; `device`, `dtype`.
    Shape: input (N, C_in, L) or (C_in, L); the output's length is
    floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.
    State: `weight` (out_channels, in_channels / groups, kernel_size) and `bias` (out_channels), both uniform in
    ±sqrt(groups / (in_channels * kernel_size)).
    """

    _dims = 1
    _function = "conv1d"


class Conv2d(_Conv):
    """Cross-correlates an image of several channels with learned kernels; sizes are numbers or pairs (height, width).

    Arguments and formulas are those of ``Conv1d``, for each dimension.
    Shape: input (N, C_in, H, W) or (C_in, H, W); `weight` is (out_channels, in_channels / groups, *kernel_size).
    """

    _dims = 2
    _function = "conv2d"


class Conv3d(_Conv):
    """Cross-correlates a volume of several channels with learned kernels; sizes are numbers or triples.

    Arguments and formulas are those of ``Conv1d``, for each dimension.
    Shape: input (N, C_in, D, H, W) or (C_in, D, H, W); `weight` is (out_channels, in_channels / groups, *kernel_size).
    """

    _dims = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """The constructor and ``forward`` of the three transposed convolutions."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        expand = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            expand(padding),
            expand(dilation),
            True,
            expand(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """What to add to the smallest possible output to get `output_size`; ValueError where that is out of reach."""
        if output_size is None:
            return self.output_padding
        leading = input.dim() - num_spatial_dims
        wanted = list(output_size)[leading:] if len(output_size) == input.dim() else list(output_size)
        if len(wanted) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have {num_spatial_dims} "
                f"or {leading + num_spatial_dims} elements (got {len(output_size)})"
            )
        dilation = dilation or (1,) * num_spatial_dims
        smallest = [
            (input.size(leading + d) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
            for d in range(num_spatial_dims)
        ]
        largest = [size + step - 1 for size, step in zip(smallest, stride)]
        if any(not low <= size <= high for low, size, high in zip(smallest, wanted, largest)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(wanted, smallest)]

    def forward(self, input, output_size=None):
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._dims, self.dilation
        )
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of ``Conv1d``: the gradient of a convolution with respect to its input, as a layer of its own.

    Arguments: as for ``Conv1d``, and `output_padding`: what is added to the output's length on one side. Calling it with
    `output_size` chooses that for you.
    Shape: input (N, C_in, L) or (C_in, L); the output's length is
    (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1.
    State: `weight` (in_channels, out_channels / groups, kernel_size) and `bias` (out_channels).
    """

    _dims = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of ``Conv2d``; arguments and formulas are those of ``ConvTranspose1d``, for each dimension."""

    _dims = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of ``Conv3d``; arguments and formulas are those of ``ConvTranspose1d``, for each dimension."""

    _dims = 3
    _function = "conv_transpose3d"


class _LazyConv(LazyModuleMixin):
    """A convolution that takes `in_channels` from its first input."""

    _bias_at = 5  # among the arguments after out_channels, in all of them

    def __init__(self, out_channels, *args, bias=True, device=None, dtype=None, **kwargs):
        args = list(args)
        if len(args) > self._bias_at:  # given by position
            bias, args[self._bias_at] = args[self._bias_at], False
        else:
            kwargs["bias"] = False
        super().__init__(0, 0, *args, device=device, dtype=dtype, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draws weight and bias anew, once there are any."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Gives weight and bias their shapes from the input's."""
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            channels = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConv, Conv1d):
    """A ``Conv1d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A ``Conv2d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A ``Conv3d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A ``ConvTranspose1d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A ``ConvTranspose2d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A ``ConvTranspose3d`` that takes `in_channels` from its first input and then becomes one."""

    cls_to_become = ConvTranspose3d
