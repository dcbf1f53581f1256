"""Normalization over the batch: ``BatchNorm``, its lazy forms, and the one that spans processes."""

from __future__ import annotations

import rushlight as torch

from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "LazyBatchNorm1d",
    "BatchNorm2d",
    "LazyBatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """The state that batch and instance norm share: scale and shift, running statistics, the number of batches."""

    _version = 2  # from 2 on there is num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        options = {"device": device, "dtype": dtype}
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, used in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(torch.empty(num_features, **options)) if used else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", torch.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", torch.ones(num_features, **options) if tracked else None)
        count = torch.tensor(0, dtype=torch.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self):
        """Sets the running mean to 0, the variance to 1 and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Resets the statistics, the scale to 1 and the shift to 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            usable = own is not None and not own.is_meta
            state_dict[key] = own if usable else torch.tensor(0, dtype=torch.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """``forward`` of the batch norms; a subclass checks the number of dimensions."""

    def _averaging_factor(self):
        """What part the new statistics get in the running ones, counting this batch in training."""
        if not (self.training and self.track_running_stats) or self.num_batches_tracked is None:
            return 0.0 if self.momentum is None else self.momentum
        self.num_batches_tracked.add_(1)
        # Without a momentum the running statistics are the plain mean over all batches.
        return 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum

    def forward(self, input):
        self._check_input_dim(input)
        factor = self._averaging_factor()
        mean, var = self.running_mean, self.running_var
        if self.training and not self.track_running_stats:
            mean = var = None
        training = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, training, factor, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A norm that takes `num_features` from dimension 1 of its first input."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        options = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **options, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.int64, device=device)

    def reset_parameters(self):
        """Resets statistics, scale and shift, once there are any."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Gives scale, shift and statistics the number of channels of the input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            own = [self.weight, self.bias] if self.affine else []
            own += [self.running_mean, self.running_var] if self.track_running_stats else []
            for tensor in own:
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


def _expect_dims(input, dims):
    """ValueError unless the input has one of the numbers of dimensions."""
    if input.dim() not in dims:
        expected = " or ".join(f"{n}D" for n in dims)
        raise ValueError(f"expected {expected} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel over the batch: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    Arguments: `num_features`: the number of channels C; `eps`; `momentum`: the part that a batch's statistics get in the
    running ones (None: their plain mean over all batches); `affine`: whether scale and shift are learned, and `bias`
    whether there is a shift; `track_running_stats`: whether running statistics are kept, which evaluation then uses;
    `device`, `dtype`. The batch is normalized with the biased variance; the running one is unbiased.
    Shape: (N, C) or (N, C, L). ValueError for other numbers of dimensions, and in training where a channel has a single
    value. State: `weight`, `bias`, `running_mean`, `running_var` (C), `num_batches_tracked` ().
    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.
    """

    def _check_input_dim(self, input):
        _expect_dims(input, (2, 3))


class BatchNorm2d(_BatchNorm):
    """``BatchNorm1d`` for images: shape (N, C, H, W)."""

    def _check_input_dim(self, input):
        _expect_dims(input, (4,))


class BatchNorm3d(_BatchNorm):
    """``BatchNorm1d`` for volumes: shape (N, C, D, H, W)."""

    def _check_input_dim(self, input):
        _expect_dims(input, (5,))


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A ``BatchNorm1d`` that takes `num_features` from its first input and then becomes one."""

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input):
        _expect_dims(input, (2, 3))


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A ``BatchNorm2d`` that takes `num_features` from its first input and then becomes one."""

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input):
        _expect_dims(input, (4,))


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A ``BatchNorm3d`` that takes `num_features` from its first input and then becomes one."""

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input):
        _expect_dims(input, (5,))


class SyncBatchNorm(_BatchNorm):
    """Batch norm whose statistics are those of the batches of all processes of a group.

    Arguments: as ``BatchNorm1d``, and `process_group` (None: all processes). Shape: (N, C, ...). In one process, and in
    evaluation, it is batch norm. RuntimeError in training with several processes where no synchronisation is available.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input):
        distributed = getattr(torch, "distributed", None)
        if self.training and distributed is not None and distributed.is_available() and distributed.is_initialized():
            if distributed.get_world_size(self.process_group) > 1:
                raise RuntimeError("SyncBatchNorm: statistics across processes are not supported yet")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every batch norm in it replaced by a ``SyncBatchNorm`` with the same parameters and statistics."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
