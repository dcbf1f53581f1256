"""Layers that drop elements or channels at random in training, and do nothing in evaluation."""

from __future__ import annotations

from .. import functional as F
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """What they share: the probability `p` and whether to overwrite the input. ValueError for `p` outside [0, 1]."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p` and divides the others by ``1 - p``. Any shape.

    Source: Hinton et al. 2012, arXiv:1207.0580.
    """

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of an input (N, C, L) or (C, L). Source: Tompson et al. 2014, arXiv:1411.4280."""

    def forward(self, input):
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of an input (N, C, H, W) or (N, C, L). Source: Tompson et al. 2014, arXiv:1411.4280."""

    def forward(self, input):
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of an input (N, C, D, H, W) or (C, D, H, W). Source: Tompson et al. 2014, arXiv:1411.4280."""

    def forward(self, input):
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout to SELU's negative saturation value, rescaled so that mean and variance stay. Any shape.

    Source: Klambauer et al. 2017, arXiv:1706.02515.
    """

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels: the dimensions after the first two. Shape: (N, C, ...)."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
