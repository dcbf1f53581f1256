"""Muon: momentum whose update is made orthogonal."""

import math

import rushlight as torch

from .optimizer import RuleOptimizer, check_lr, ema, zeros

__all__ = ["Muon"]

_ADJUST = {
    "original": lambda rows, cols: math.sqrt(max(1, rows / cols)),
    "match_rms_adamw": lambda rows, cols: 0.2 * math.sqrt(max(rows, cols)),
    "spectral_unclamped": lambda rows, cols: math.sqrt(rows / cols),
}


def _orthogonalize(update, coefficients, steps, eps):
    """Pulls all singular values of a matrix towards 1 by the quintic Newton-Schulz iteration, in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = update.size(0) > update.size(1)
    x = update.bfloat16()
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(RuleOptimizer):
    """Muon: the momentum of a weight matrix, orthogonalized, is the step. For matrices of hidden layers only.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`. All must have two dimensions.
        lr (float or Tensor): learning rate.
        weight_decay (float): each step first shrinks the parameter by ``lr * weight_decay``.
        momentum (float), nesterov (bool): decay of the gradient's average, and whether to look one step ahead.
        ns_coefficients (three floats), eps (float), ns_steps (int): of the Newton-Schulz iteration.
        adjust_lr_fn (str, optional): how the shape scales the learning rate: "original" (the default),
            "match_rms_adamw" or "spectral_unclamped".

    Raises ValueError for parameters that are no matrices.

    Source: Jordan 2024, Muon: an optimizer for hidden layers; adjusted rates: Liu et al. 2025, arXiv:2502.16982.
    """

    _decoupled = True

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        check_lr(lr, "Learning rate should be >= 0 but is: ")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUST:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _begin(self, group, param, grad):
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros(grad)}

    def _update(self, group, param, grad, state, lr, step):
        momentum = group["momentum"]
        average = ema(state["momentum_buffer"], grad, momentum)
        update = grad.lerp(average, momentum) if group["nesterov"] else average
        update = _orthogonalize(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        adjust = _ADJUST[group["adjust_lr_fn"] or "original"]
        param.add_(update.to(param.dtype), alpha=-lr * adjust(*param.shape))
