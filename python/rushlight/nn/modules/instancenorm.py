"""Normalization of each channel of each example."""

from __future__ import annotations

import warnings

from .. import functional as F
from .batchnorm import _expect_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """``forward`` of the instance norms; a subclass gives the number of dimensions of an example."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        raise NotImplementedError

    def _check_input_dim(self, input):
        _expect_dims(input, (self._get_no_batch_dim(), self._get_no_batch_dim() + 1))

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            # Before version 0.4 running statistics were always kept.
            keys = [key for key in (prefix + "running_mean", prefix + "running_var") if key in state_dict]
            if keys:
                names = " and ".join(f'"{key}"' for key in keys)
                kind = type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If "
                    f"state_dict is a checkpoint saved before 0.4.0, this may be expected because {kind} does not track "
                    "running stats by default since 0.4.0. Please remove these keys from state_dict. If the running "
                    f"stats are actually needed, instead set track_running_stats=True in {kind} to enable them. See the "
                    f"documentation of {kind} for details."
                )
                for key in keys:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input):
        self._check_input_dim(input)
        example_dims = self._get_no_batch_dim()
        dim = input.dim() - example_dims
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if dim == 0:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each example over its length: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Arguments: as those of ``BatchNorm1d``, with `affine` and `track_running_stats` off by default.
    Shape: (N, C, L) or (C, L). ValueError for other shapes. Source: Ulyanov et al. 2016, arXiv:1607.08022.
    """

    def _get_no_batch_dim(self):
        return 2


class InstanceNorm2d(_InstanceNorm):
    """``InstanceNorm1d`` for images: shape (N, C, H, W) or (C, H, W)."""

    def _get_no_batch_dim(self):
        return 3


class InstanceNorm3d(_InstanceNorm):
    """``InstanceNorm1d`` for volumes: shape (N, C, D, H, W) or (C, D, H, W)."""

    def _get_no_batch_dim(self):
        return 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An ``InstanceNorm1d`` that takes `num_features` from dimension 1 of its first input and then becomes one."""

    cls_to_become = InstanceNorm1d

    def _get_no_batch_dim(self):
        return 2


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An ``InstanceNorm2d`` that takes `num_features` from dimension 1 of its first input and then becomes one."""

    cls_to_become = InstanceNorm2d

    def _get_no_batch_dim(self):
        return 3


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An ``InstanceNorm3d`` that takes `num_features` from dimension 1 of its first input and then becomes one."""

    cls_to_become = InstanceNorm3d

    def _get_no_batch_dim(self):
        return 4
