"""Averaged stochastic gradient descent."""

from .optimizer import RuleOptimizer, check_lr, check_nonnegative, counter, scalar, zeros

__all__ = ["ASGD"]


class ASGD(RuleOptimizer):
    """SGD with a falling learning rate ``eta`` that also keeps the average ``ax`` of the parameters from step ``t0`` on.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate at the start.
        lambd (float): decay of the parameters, and with ``alpha`` of ``eta = lr / (1 + lambd * lr * t) ** alpha``.
        alpha (float): the power above.
        t0 (float): the step at which averaging starts.
        weight_decay (float): added to the gradient as ``weight_decay * p``.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Polyak and Juditsky 1992, Acceleration of stochastic approximation by averaging.
    """

    _rule = "ASGD"
    _counters = ("step", "eta", "mu")

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check_nonnegative(lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _begin(self, group, param, grad):
        device = param.device
        return {
            "step": counter(device=device),
            "eta": counter(float(scalar(group["lr"])), device),
            "mu": counter(1.0, device),
            "ax": zeros(param),
        }

    def _update(self, group, param, grad, state, lr, step):
        lambd, average = group["lambd"], state["ax"]
        eta, mu = state["eta"].item(), state["mu"].item()
        param.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if mu == 1:
            average.copy_(param)
        else:
            average.add_(param - average, alpha=mu)
        state["eta"].fill_(scalar(lr) / (1 + lambd * scalar(lr) * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))
