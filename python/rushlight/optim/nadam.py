"""NAdam: Adam with Nesterov momentum."""

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

__all__ = ["NAdam"]


class NAdam(RuleOptimizer):
    """NAdam: Adam that looks one momentum step ahead, with a momentum that warms up over time.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        betas (pair of float): decay of the two averages.
        eps (float): added to the denominator.
        weight_decay (float): added to the gradient, or with ``decoupled_weight_decay`` taken from the parameter.
        momentum_decay (float): how quickly the momentum warms up.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Dozat 2016, Incorporating Nesterov Momentum into Adam.
    """

    _rule = "NAdam"
    _counters = ("step", "mu_product")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check_nonnegative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _begin(self, group, param, grad):
        return {"step": counter(), "mu_product": counter(1.0), "exp_avg": zeros(param), "exp_avg_sq": zeros(param)}

    def _update(self, group, param, grad, state, lr, step):
        beta1, beta2 = group["betas"]
        decay = group["momentum_decay"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        next_mu = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        average = ema(state["exp_avg"], grad, beta1)
        square = ema_of_square(state["exp_avg_sq"], grad, beta2)
        denominator = (square / (1 - beta2**step)).sqrt() + group["eps"]
        add_scaled(param, grad / denominator, -lr * (1 - mu) / (1 - product))
        add_scaled(param, average / denominator, -lr * next_mu / (1 - product * next_mu))
