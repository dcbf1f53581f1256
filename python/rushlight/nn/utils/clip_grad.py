"""Limiting gradients."""

from __future__ import annotations

import math
import warnings

import rushlight as torch

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _grads(parameters):
    """The gradients of a parameter or an iterable of them, without those that have none."""
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


@torch.no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The `norm_type`-norm of all elements of the tensors together, as a 0-dimensional tensor.

    RuntimeError where it is not finite and `error_if_nonfinite` is set. `foreach` is accepted and changes no result.
    """
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    device = tensors[0].device
    norms = torch.stack([torch.linalg.vector_norm(tensor, norm_type).to(device) for tensor in tensors])
    total = torch.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@torch.no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients so that a norm of `total_norm` becomes at most `max_norm`, in place."""
    # Always multiplied, by at most 1: no look at the value, which may be on another device.
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _grads(parameters):
        grad.mul_(factor.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their norm, taken over all of them together, is at most `max_norm`; in place.

    Returns the norm before. RuntimeError where it is not finite and `error_if_nonfinite` is set.
    """
    if not isinstance(parameters, torch.Tensor):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The former name of ``clip_grad_norm_``."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@torch.no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of the gradients to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    for grad in _grads(parameters):
        grad.clamp_(-clip_value, clip_value)
