"""Rprop: only the gradient's sign counts."""

import rushlight as torch

from .optimizer import RuleOptimizer, check_lr, counter, scalar, zeros

__all__ = ["Rprop"]


class Rprop(RuleOptimizer):
    """Resilient propagation: each element has its own step size, which grows while its gradient keeps its sign.

    Where the sign turns, the step size shrinks and the element rests for one step. For full batches only.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): step size at the start.
        etas (pair of float): the factors by which a step size shrinks and grows.
        step_sizes (pair of float): its limits.
        maximize (bool): climb instead of descend.
        foreach, capturable: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Source: Riedmiller and Braun 1993, A direct adaptive method for faster backpropagation learning.
    """

    _rule = "Rprop"

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _begin(self, group, param, grad):
        size = scalar(group["lr"])
        if param.is_complex():
            size = complex(size, size)
        return {"step": counter(), "prev": zeros(param), "step_size": torch.full_like(grad, size, requires_grad=False)}

    def _update(self, group, param, grad, state, lr, step):
        shrink, grow = group["etas"]
        previous, size = state["prev"], state["step_size"]
        agreement = grad * previous
        factor = torch.where(agreement > 0, grow, torch.where(agreement < 0, shrink, 1.0)).to(size.dtype)
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = torch.where(agreement < 0, torch.zeros_like(grad), grad)
        param.sub_(grad.sign() * size)
        previous.copy_(grad)
