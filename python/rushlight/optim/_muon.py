"""Muon: momentum whose update is made orthogonal."""

from .optimizer import RuleOptimizer, check_lr, zeros

__all__ = ["Muon"]

_ADJUSTMENTS = ("original", "match_rms_adamw", "spectral_unclamped")


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

    _rule = "Muon"
    _at_once = False

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
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
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
