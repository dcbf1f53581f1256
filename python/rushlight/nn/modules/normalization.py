"""Normalization within an example: over trailing dimensions, groups of channels, neighbouring channels."""

from __future__ import annotations

import rushlight as torch

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides each element by ``(k + alpha * mean of squares over size neighbouring channels) ** beta``.

    Shape: (N, C, ...). Source: Krizhevsky et al. 2012.
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """``LocalResponseNorm`` for images (N, C, H, W), under the name it has in older models."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)


class _TrailingNorm(Module):
    """What layer norm and RMS norm share: the shape that they normalize over."""

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps, elementwise_affine, bias, device, dtype):
        super().__init__()
        if hasattr(normalized_shape, "__index__"):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, used in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            if name == "weight" or bias is not None:
                own = Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype)) if used else None
                self.register_parameter(name, own)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets the scale to 1 and the shift to 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if getattr(self, "bias", None) is not None:
                init.zeros_(self.bias)


class LayerNorm(_TrailingNorm):
    """Normalizes over the trailing dimensions: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Arguments: `normalized_shape`: the sizes of those dimensions, or of the last one; `eps`; `elementwise_affine`: whether
    scale and shift are learned, and `bias` whether there is a shift; `device`, `dtype`.
    Shape: (*, normalized_shape); RuntimeError otherwise. State: `weight`, `bias` (normalized_shape).
    Source: Ba et al. 2016, arXiv:1607.06450.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine, bool(bias), device, dtype)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_TrailingNorm):
    """Divides by the root of the mean square over the trailing dimensions: ``x / sqrt(mean(x^2) + eps) * weight``.

    Arguments: as ``LayerNorm``; `eps` None is the dtype's epsilon. Shape: (*, normalized_shape); RuntimeError otherwise.
    State: `weight` (normalized_shape). Source: Zhang and Sennrich 2019, arXiv:1910.07467.
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine, None, device, dtype)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalizes each group of channels of each example, with a scale and shift for each channel.

    Arguments: `num_groups`, which divides `num_channels` (ValueError otherwise); `eps`; `affine`, `bias`: whether there are
    scale and shift; `device`, `dtype`. Shape: (N, C, ...). State: `weight`, `bias` (C).
    Source: Wu and He 2018, arXiv:1803.08494.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, used in (("weight", affine), ("bias", affine and bias)):
            own = Parameter(torch.empty(num_channels, device=device, dtype=dtype)) if used else None
            self.register_parameter(name, own)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets the scale to 1 and the shift to 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
