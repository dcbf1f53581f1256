"""Adadelta: steps in the parameter's own unit."""

from .optimizer import RuleOptimizer, add_scaled, check_lr, check_nonnegative, counter, ema_of_square, zeros

__all__ = ["Adadelta"]


class Adadelta(RuleOptimizer):
    """Adadelta: the gradient times the ratio of the typical past step to the typical past gradient.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): factor on the step.
        rho (float): decay of both averages of squares.
        eps (float): added under both roots.
        weight_decay (float): added to the gradient as ``weight_decay * p``.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Zeiler 2012, arXiv:1212.5701, algorithm 1.
    """

    _rule = "Adadelta"

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_nonnegative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _begin(self, group, param, grad):
        return {"step": counter(), "square_avg": zeros(param), "acc_delta": zeros(param)}

    def _update(self, group, param, grad, state, lr, step):
        rho, eps, deltas = group["rho"], group["eps"], state["acc_delta"]
        square = ema_of_square(state["square_avg"], grad, rho)
        delta = (deltas + eps).sqrt() / (square + eps).sqrt() * grad
        ema_of_square(deltas, delta, rho)
        add_scaled(param, delta, -lr)
