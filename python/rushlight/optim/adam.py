"""Adam, and through its last option AdamW."""

import rushlight as torch

from .optimizer import (
    RuleOptimizer,
    add_scaled,
    check_betas,
    check_fused,
    check_lr,
    check_nonnegative,
    counter,
    ema,
    ema_of_square,
    scalar,
    zeros,
)

__all__ = ["Adam"]


class Adam(RuleOptimizer):
    """Adam: steps scaled by running averages of the gradient and of its square.

    ``m = beta1 * m + (1 - beta1) * g``, ``v = beta2 * v + (1 - beta2) * g * g``, and after bias correction
    ``p -= lr * m / (sqrt(v) + eps)``. With ``amsgrad`` the largest ``v`` so far takes the place of ``v``.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        betas (pair of float): decay of the two averages.
        eps (float): added to the denominator.
        weight_decay (float): added to the gradient as ``weight_decay * p``, or, with ``decoupled_weight_decay``, taken
            from the parameter as ``lr * weight_decay * p``, which is AdamW.
        amsgrad, maximize (bool): the variant; climb instead of descend.
        foreach, capturable, fused: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Kingma and Ba 2014, arXiv:1412.6980, algorithm 1; amsgrad: Reddi, Kale and Kumar 2018, arXiv:1904.09237.
    """

    _rule = "Adam"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        if isinstance(lr, torch.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        check_nonnegative(eps=eps)
        check_betas(betas)
        check_nonnegative(weight_decay=weight_decay)
        if not any(isinstance(betas[0], kind) and isinstance(betas[1], kind) for kind in (float, torch.Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in range(2):
            if isinstance(betas[i], torch.Tensor) and betas[i].numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _begin(self, group, param, grad):
        state = {"step": counter(), "exp_avg": zeros(param), "exp_avg_sq": zeros(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros(param)
        return state

    def _update(self, group, param, grad, state, lr, step):
        beta1, beta2 = (scalar(b, group["differentiable"]) for b in group["betas"])
        average = ema(state["exp_avg"], grad, beta1)
        square = ema_of_square(state["exp_avg_sq"], grad, beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(torch.maximum(largest.clone(), square))
        denominator = square.sqrt() / (1 - beta2**step) ** 0.5 + group["eps"]
        add_scaled(param, average / denominator, -lr / (1 - beta1**step))
