"""Folding a batch norm, in evaluation, into the layer before it."""

from __future__ import annotations

import copy

import rushlight as torch

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, scale, shift, channel_dim):
    from ..parameter import Parameter

    bias = torch.zeros_like(mean) if bias is None else bias
    scale = torch.ones_like(mean) if scale is None else scale
    shift = torch.zeros_like(mean) if shift is None else shift
    factor = scale * torch.rsqrt(var + eps)
    shape = [1] * weight.dim()
    shape[channel_dim] = -1
    return (
        Parameter((weight * factor.reshape(shape)).to(weight.dtype), weight.requires_grad),
        Parameter(((bias - mean) * factor + shift).to(bias.dtype), bias.requires_grad),
    )


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of the convolution that does what a convolution and a batch norm do; each bias may be None."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of the linear layer that does what a linear layer and a batch norm do; each bias may be None."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fuse(layer, bn, **options):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs the running statistics of the batch norm")
    fused = copy.deepcopy(layer)
    fuse = fuse_conv_bn_weights if hasattr(layer, "kernel_size") else fuse_linear_bn_weights
    fused.weight, fused.bias = fuse(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, **options
    )
    return fused


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of a convolution with a batch norm folded in. AssertionError where one of the two is in training mode."""
    return _fuse(conv, bn, transpose=transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of a linear layer with a batch norm folded in. AssertionError where one is in training mode or sizes differ."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fuse(linear, bn)
