"""RAdam: Adam that trusts its variance only once there is enough of it."""

from .optimizer import (
    RuleOptimizer,
    add_scaled,
    check_betas,
    check_lr,
    check_nonnegative,
    counter,
    ema,
    ema_of_square,
    zeros,
)

__all__ = ["RAdam"]


class RAdam(RuleOptimizer):
    """Rectified Adam: momentum alone in the first steps, then Adam with a factor for the variance's own uncertainty.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        betas (pair of float): decay of the two averages.
        eps (float): added to the denominator.
        weight_decay (float): added to the gradient, or with ``decoupled_weight_decay`` taken from the parameter.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Liu et al. 2019, arXiv:1908.03265, algorithm 2.
    """

    _rule = "RAdam"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _begin(self, group, param, grad):
        return {"step": counter(), "exp_avg": zeros(param), "exp_avg_sq": zeros(param)}

    def _update(self, group, param, grad, state, lr, step):
        beta1, beta2 = group["betas"]
        average = ema(state["exp_avg"], grad, beta1)
        square = ema_of_square(state["exp_avg_sq"], grad, beta2)
        remaining2 = 1 - beta2**step
        rho_end = 2 / (1 - beta2) - 1  # the length of the longest simple average that beta2 stands for
        rho = rho_end - 2 * step * beta2**step / remaining2
        scale = -lr / (1 - beta1**step)
        if rho > 5:
            rectify = ((rho - 4) * (rho - 2) * rho_end / ((rho_end - 4) * (rho_end - 2) * rho)) ** 0.5
            average = average / (square.sqrt() + group["eps"])
            scale = scale * rectify * remaining2**0.5
        add_scaled(param, average, scale)
