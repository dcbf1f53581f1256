"""SparseAdam: Adam for embeddings whose gradients have few rows."""

from .optimizer import RuleOptimizer, check_betas, zeros

__all__ = ["SparseAdam"]


class SparseAdam(RuleOptimizer):
    """Adam that moves, and whose averages decay, only where a sparse gradient has entries.

    Args:
        params: dense, real parameters, named parameters or groups, see `Optimizer`.
        lr (float or Tensor): learning rate.
        betas (pair of float): decay of the two averages.
        eps (float): added to the denominator.
        maximize (bool): climb instead of descend.

    Raises RuntimeError in ``step`` for a dense gradient.
    """

    _counters = ()  # the step count is an int
    _takes_sparse = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        every = [(i, j, p) for i, g in enumerate(self.param_groups) for j, p in enumerate(g["params"])]
        sparse = [[i, j] for i, j, p in every if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ = [[i, j] for i, j, p in every if p.is_complex()]
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    def _begin(self, group, param, grad):
        return {"step": 0, "exp_avg": zeros(param), "exp_avg_sq": zeros(param)}

    def _step_one(self, group, param, grad, state, lr, differentiable):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state["step"] += 1
        self._update(group, param, -grad if group["maximize"] else grad, state, lr, state["step"])

    def _update(self, group, param, grad, state, lr, step):
        beta1, beta2 = group["betas"]
        grad = grad.coalesce()
        where, values = tuple(grad.indices()), grad.values()
        if values.numel() == 0:
            return
        average = state["exp_avg"][where].lerp_(values, 1 - beta1)
        square = state["exp_avg_sq"][where].lerp_(values * values, 1 - beta2)
        state["exp_avg"][where] = average
        state["exp_avg_sq"][where] = square
        scale = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param[where] -= scale * average / (square.sqrt() + group["eps"])
