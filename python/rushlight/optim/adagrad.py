"""Adagrad: steps scaled by all squared gradients so far."""

import rushlight as torch

from .optimizer import RuleOptimizer, add_scaled, check_fused, check_lr, check_nonnegative, counter

__all__ = ["Adagrad"]


class Adagrad(RuleOptimizer):
    """Adagrad: ``s += g * g`` and ``p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)``.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor), lr_decay (float): learning rate, and how it falls with the steps.
        weight_decay (float): added to the gradient as ``weight_decay * p``.
        initial_accumulator_value (float): what ``s`` starts with.
        eps (float): added to the denominator.
        maximize (bool): climb instead of descend.
        foreach, fused: accepted; a step is one multi-tensor call in any case.
        differentiable (bool): lets autograd differentiate through the step.

    Unlike that of other optimizers, the state exists from construction. Sparse gradients touch only their own rows.

    Source: Duchi, Hazan and Singer 2011, JMLR 12.
    """

    _rule = "Adagrad"
    _takes_sparse = True

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check_nonnegative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._begin(group, param, None)

    def share_memory(self):
        """Moves the sums to memory that other processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _begin(self, group, param, grad):
        start = self.defaults["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        total = torch.full_like(param, start, requires_grad=False, memory_format=torch.preserve_format)
        return {"step": counter(), "sum": total}

    def _step_one(self, group, param, grad, state, lr, differentiable):
        if grad.is_sparse and group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        super()._step_one(group, param, grad, state, lr, differentiable)

    def _update(self, group, param, grad, state, lr, step):
        total = state["sum"]
        scale = -lr / (1 + (step - 1) * group["lr_decay"])
        if grad.is_sparse:
            grad = grad.coalesce()
            where, values = tuple(grad.indices()), grad.values()
            total[where] += values * values
            param[where] += scale * values / (total[where].sqrt() + group["eps"])
        else:
            total.addcmul_(grad, grad)
            add_scaled(param, grad / (total.sqrt() + group["eps"]), scale)
