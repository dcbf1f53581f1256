"""Inference of a layer with its batch norm and its ReLU as one operator, where nobody can see the difference."""

from __future__ import annotations

import math

import rushlight as torch

from ..parameter import Parameter
from .activation import ReLU, ReLU6
from .batchnorm import BatchNorm2d
from .conv import Conv2d
from .linear import Linear

_NO_NORM = (None, None, None, None, 0.0)
_NO_BOUNDS = (-math.inf, math.inf)
_FORWARDS = {module: module.forward for module in (Conv2d, Linear, BatchNorm2d, ReLU, ReLU6)}


def _replaced():
    """Whether somebody has given one of the classes another ``forward``."""
    return any(module.forward is not forward for module, forward in _FORWARDS.items())


def _pairs(*sizes):
    """Whether all are pairs: attributes that were set later may be numbers, which the usual way takes as well."""
    return all(type(size) is tuple and len(size) == 2 for size in sizes)


def _plain(tensor):
    return tensor is None or (
        type(tensor) in (torch.Tensor, Parameter) and tensor.dtype is torch.float32 and tensor.is_cpu
    )


def _takes(layer, input):
    """Whether the layer's operator in one pass takes these tensors."""
    return type(input) is torch.Tensor and all(map(_plain, (input, layer.weight, layer.bias)))


def _norm(module):
    """The norm's arguments of the operator, None where it has to run on its own."""
    if not BatchNorm2d._runs_plainly(module) or module.training:
        return None
    norm = (module.running_mean, module.running_var, module.weight, module.bias, module.eps)
    return norm if norm[0] is not None and norm[1] is not None and all(map(_plain, norm[:4])) else None


def _bounds(module):
    if ReLU._runs_plainly(module):
        return (0.0, math.inf)
    if ReLU6._runs_plainly(module) and module.min_val <= module.max_val:
        return (module.min_val, module.max_val)
    return None


def _fused_linear(linear, following, input):
    """How many modules after the linear layer ran with it, and the result; (0, None) where it did not run."""
    bounds = _bounds(following[0]) if following else None
    if bounds is None or not Linear._runs_plainly(linear) or not _takes(linear, input):
        return 0, None
    return 1, torch._C._fused_linear(input, linear.weight, linear.bias, bounds)


def _fused_convolution(conv, following, input):
    """The same for a convolution, after which there may be a norm as well."""
    if not Conv2d._runs_plainly(conv) or conv.padding_mode != "zeros":
        return 0, None
    if not _pairs(conv.stride, conv.padding, conv.dilation):
        return 0, None
    if not _takes(conv, input) or input.dim() != 4:
        return 0, None
    norm = _norm(following[0]) if following else None
    rest = following[norm is not None :]
    bounds = _bounds(rest[0]) if rest else None
    count = (norm is not None) + (bounds is not None)
    if count == 0:
        return 0, None
    shape = (conv.stride, conv.padding, conv.dilation, conv.groups)
    return count, torch._C._fused_convolution(
        input, conv.weight, conv.bias, *shape, *(norm or _NO_NORM), bounds or _NO_BOUNDS
    )


_FUSED = {Conv2d: _fused_convolution, Linear: _fused_linear}


def run(modules, input):
    """Calls the modules one after another while gradients are not recorded."""
    if _FUSED.keys().isdisjoint(map(type, modules)) or torch._C._is_observed() or _replaced():
        for module in modules:
            input = module(input)
        return input
    position = 0
    while position < len(modules):
        module = modules[position]
        position += 1
        count, fused = 0, _FUSED.get(type(module))
        if fused is not None:
            count, result = fused(module, modules[position : position + 2], input)
        input = result if count else module(input)
        position += count
    return input
