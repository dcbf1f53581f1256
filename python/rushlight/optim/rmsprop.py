"""RMSprop: the gradient over the root of its running mean square."""

from .optimizer import RuleOptimizer, add_scaled, check_lr, check_nonnegative, counter, ema, ema_of_square, zeros

__all__ = ["RMSprop"]


class RMSprop(RuleOptimizer):
    """RMSprop: ``v = alpha * v + (1 - alpha) * g * g`` and ``p -= lr * g / (sqrt(v) + eps)``.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        alpha (float): decay of the averages.
        eps (float): added to the denominator, outside of the root.
        weight_decay (float): added to the gradient as ``weight_decay * p``.
        momentum (float): gathers the steps in a buffer that decays by it.
        centered (bool): subtracts the square of the gradient's running mean from ``v``, which makes it a variance.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Tieleman and Hinton 2012, lecture 6.5; centered: Graves 2013, arXiv:1308.0850.
    """

    _rule = "RMSprop"

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check_nonnegative(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _begin(self, group, param, grad):
        state = {"step": counter(), "square_avg": zeros(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(param)
        if group["centered"]:
            state["grad_avg"] = zeros(param)
        return state

    def _update(self, group, param, grad, state, lr, step):
        alpha = group["alpha"]
        variance = ema_of_square(state["square_avg"], grad, alpha)
        if group["centered"]:
            mean = ema(state["grad_avg"], grad, alpha)
            variance = variance.addcmul(mean, mean, value=-1)
        update = grad / (variance.sqrt() + group["eps"])
        if group["momentum"] > 0:
            update = state["momentum_buffer"].mul_(group["momentum"]).add_(update)
        add_scaled(param, update, -lr)
