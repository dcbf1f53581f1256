"""Adafactor: Adam's second moment kept as a row and a column."""

from .optimizer import RuleOptimizer, check_lr, counter, zeros

__all__ = ["Adafactor"]


class Adafactor(RuleOptimizer):
    """Adafactor: for matrices the mean square gradient is kept per row and per column only.

    The step is relative to the parameter's own size and is clipped where the update's root mean square exceeds ``d``.

    Args:
        params: parameters, named parameters or groups, see `Optimizer`. Real only.
        lr (float or Tensor): the largest relative step, ``min(lr, 1 / sqrt(t))``, and the factor of weight decay.
        beta2_decay (float): the averages move by ``t ** beta2_decay``.
        eps (pair of float): what stabilises the divisions (None: the dtype's own eps), and the least parameter scale.
        d (float): the clipping threshold.
        weight_decay (float): the parameter shrinks by ``lr * weight_decay``.
        maximize (bool): climb instead of descend.
        foreach: accepted, without effect.

    Source: Shazeer and Stern 2018, arXiv:1804.04235.
    """

    _rule = "Adafactor"
    _at_once = False

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        check_lr(lr, "Learning rate should be >= 0 but is: ")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _begin(self, group, param, grad):
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if grad.dim() < 2:
            return {"step": counter(), "variance": zeros(grad)}
        *batch, rows, cols = grad.shape
        return {
            "step": counter(),
            "row_var": grad.new_zeros([*batch, rows, 1]),
            "col_var": grad.new_zeros([*batch, 1, cols]),
        }
