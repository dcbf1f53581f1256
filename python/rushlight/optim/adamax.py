"""Adamax: Adam with the infinity norm."""

import rushlight as torch

from .optimizer import RuleOptimizer, add_scaled, check_betas, check_lr, check_nonnegative, counter, ema, zeros

__all__ = ["Adamax"]


class Adamax(RuleOptimizer):
    """Adamax: ``u = max(beta2 * u, |g| + eps)`` takes the place of Adam's square root.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        betas (pair of float): decay of the average and of the norm.
        eps (float): added to the gradient's size.
        weight_decay (float): added to the gradient as ``weight_decay * p``.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Kingma and Ba 2014, arXiv:1412.6980, algorithm 2.
    """

    _rule = "Adamax"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check_nonnegative(eps=eps)
        check_betas(betas)
        check_nonnegative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _begin(self, group, param, grad):
        return {"step": counter(), "exp_avg": zeros(param), "exp_inf": zeros(param)}

    def _update(self, group, param, grad, state, lr, step):
        beta1, beta2 = group["betas"]
        average, norm = ema(state["exp_avg"], grad, beta1), state["exp_inf"]
        norm.copy_(torch.maximum(norm * beta2, grad.abs() + group["eps"]))
        add_scaled(param, average / norm, -lr / (1 - beta1**step))
