"""Stochastic gradient descent."""

from .optimizer import RuleOptimizer, add_scaled, check_fused, check_lr, check_nonnegative

__all__ = ["SGD"]


class SGD(RuleOptimizer):
    """Stochastic gradient descent, with momentum if wanted.

    Without momentum ``p -= lr * g``. With it a buffer ``b`` starts as the first gradient, continues as
    ``b = momentum * b + (1 - dampening) * g``, and ``p -= lr * b``, or ``p -= lr * (g + momentum * b)`` if ``nesterov``.
    ``weight_decay`` adds ``weight_decay * p`` to the gradient; ``maximize`` climbs instead.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        momentum, dampening, weight_decay (float), nesterov, maximize (bool): as above.
        foreach, fused: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Raises ValueError for negative options, and for ``nesterov`` without momentum or with dampening.
    """

    _rule = "SGD"
    _as_real = False
    _takes_sparse = True

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check_nonnegative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _begin(self, group, param, grad):
        return {"momentum_buffer": None} if group["momentum"] != 0 else {}

    def _update(self, group, param, grad, state, lr, step):
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state["momentum_buffer"]
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        add_scaled(param, grad, -lr)
