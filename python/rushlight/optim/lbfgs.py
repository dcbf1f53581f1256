"""L-BFGS, with a line search for the strong Wolfe conditions."""

import rushlight as torch

from .optimizer import Optimizer, check_lr, scalar

__all__ = ["LBFGS"]


class _Point:
    """What is known of one place on the search line: the step `t`, the loss, the flat gradient and the slope there.

    The slope stays a tensor of the parameters' dtype, and so do steps computed from it: near a minimum the search
    depends on how these round, and is to take the same path as in PyTorch.
    """

    __slots__ = ("grad", "loss", "slope", "t")

    def __init__(self, t, loss, grad, direction):
        self.t, self.loss, self.grad = t, loss, grad
        self.slope = grad.dot(direction)


def _cubic_minimum(a, b, bounds=None):
    """The place between two points where the cubic through their losses and slopes is least."""
    if b.t < a.t:
        a, b = b, a
    low, high = bounds or (a.t, b.t)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square.sqrt()
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, low), high)


def _strong_wolfe(evaluate, start, t, reach, limit, c1=1e-4, c2=0.9, tolerance=1e-9):
    """Finds a step that lowers the loss enough and flattens the slope enough.

    Args:
        evaluate: makes the point of a step.
        start: the point of step 0.
        t: the first step to try.
        reach: the largest element of the direction.
        limit: how many more points may be tried after the first.

    Returns the point, and how many were evaluated.
    Source: Nocedal and Wright 2006, Numerical Optimization, algorithms 3.5 and 3.6.
    """

    def too_high(point):
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point):
        return abs(point.slope) <= -c2 * start.slope

    # Walk outwards until two points enclose a good step.
    previous, point, count = start, evaluate(t), 1
    while True:
        if count > limit:
            low, high = start, point
            break
        if too_high(point) or (count > 2 and point.loss >= previous.loss) or (point.slope >= 0 and not flat(point)):
            low, high = previous, point
            break
        if flat(point):
            return point, count
        t = _cubic_minimum(previous, point, (point.t + 0.01 * (point.t - previous.t), point.t * 10))
        previous, point = point, evaluate(t)
        count += 1

    # Narrow the bracket; `low` is the better end.
    if high.loss < low.loss:
        low, high = high, low
    stalled = False
    while count <= limit and abs(high.t - low.t) * reach >= tolerance:
        t = _cubic_minimum(low, high)
        left, right = min(low.t, high.t), max(low.t, high.t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near an end: once is luck, twice is no progress
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = evaluate(t)
        count += 1
        if too_high(point) or point.loss >= low.loss:
            high = point
            if high.loss < low.loss:
                low, high = high, low
            continue
        if flat(point):
            return point, count
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, count


class LBFGS(Optimizer):
    """L-BFGS: a quasi-Newton method that builds its curvature from the last ``history_size`` steps.

    ``step`` needs a closure, which it calls several times: it clears the gradients, computes the loss, calls backward
    and returns the loss. There can be one parameter group only.

    Args:
        params: parameters or named parameters.
        lr (float or Tensor): learning rate, the first step that the line search tries.
        max_iter (int): iterations in one ``step``.
        max_eval (int, optional): evaluations of the closure in one ``step``; ``max_iter * 5 // 4`` if not given.
        tolerance_grad (float): stop where no element of the gradient exceeds it.
        tolerance_change (float): stop where loss or parameters change less.
        history_size (int): remembered steps; each costs twice the memory of the parameters.
        line_search_fn (str, optional): None or "strong_wolfe".
        maximize (bool): climb instead of descend.

    Source: Nocedal 1980, Updating quasi-Newton matrices with limited storage.
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
        *,
        maximize=False,
    ):
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
                "maximize": maximize,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    def _flat_grad(self):
        parts = []
        for p in self._params:
            grad = torch.zeros_like(p) if p.grad is None else p.grad.to_dense() if p.grad.is_sparse else p.grad
            parts.append((torch.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        flat = torch.cat(parts)
        return -flat if self.param_groups[0].get("maximize") else flat

    def _move(self, t, direction):
        offset = 0
        for p in self._params:
            p = torch.view_as_real(p) if p.is_complex() else p
            p.add_(direction[offset : offset + p.numel()].view(p.shape), alpha=t)
            offset += p.numel()

    @staticmethod
    def _direction(grad, state):
        """Multiplies the gradient by the approximate inverse Hessian: the two-loop recursion."""
        old_dirs, old_steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        al = state["al"]
        q = -grad
        for i in reversed(range(len(old_dirs))):
            al[i] = old_steps[i].dot(q) * ro[i]
            q.add_(old_dirs[i], alpha=-al[i].item())
        q = q * state["H_diag"]
        for i in range(len(old_dirs)):
            q.add_(old_steps[i], alpha=(al[i] - old_dirs[i].dot(q) * ro[i]).item())
        return q

    @staticmethod
    def _remember(grad, state, history_size):
        """Adds the last step, and how the gradient changed by it, to the history."""
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature > 1e-10:
            histories = [(state["old_dirs"], change), (state["old_stps"], step), (state["ro"], 1.0 / curvature)]
            for history, newest in histories:
                if len(history) == history_size:
                    history.pop(0)
                history.append(newest)
            state["H_diag"] = curvature / change.dot(change)

    def step(self, closure):
        """Runs up to ``max_iter`` iterations. Returns the loss before the first of them."""
        with torch.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group = self.param_groups[0]
        lr, sign = scalar(group["lr"]), -1 if group.get("maximize") else 1
        line_search = group["line_search_fn"]
        if line_search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        evals = 0

        def evaluate():
            nonlocal evals
            evals += 1
            state["func_evals"] += 1
            with torch.enable_grad():
                return closure()

        def small(flat, tolerance):
            return bool(flat.abs().max() <= tolerance)

        def point_at(t, direction, origin):
            self._move(t, direction)
            loss = sign * float(evaluate())
            point = _Point(t, loss, self._flat_grad(), direction)
            for p, value in zip(self._params, origin):
                p.copy_(value)
            return point

        first_loss = evaluate()
        loss, grad = sign * float(first_loss), self._flat_grad()
        if small(grad, group["tolerance_grad"]):
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=-grad, old_dirs=[], old_stps=[], ro=[], H_diag=1)
                t = min(1.0, 1.0 / grad.abs().sum()) * lr
            else:
                state.setdefault("al", [None] * group["history_size"])
                self._remember(grad, state, group["history_size"])
                state["d"] = self._direction(grad, state)
                t = lr
            direction, previous_loss = state["d"], loss
            state.update(t=t, prev_flat_grad=grad, prev_loss=loss)
            start = _Point(0, loss, grad, direction)
            if start.slope > -group["tolerance_change"]:
                break
            if line_search:
                origin = [p.clone() for p in self._params]
                end, _ = _strong_wolfe(
                    lambda t: point_at(t, direction, origin),  # noqa: B023 - called in this iteration only
                    start,
                    t,
                    direction.abs().max(),
                    group["max_eval"] - evals,
                )
                t, loss, grad = end.t, end.loss, end.grad
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != group["max_iter"]:  # the last iteration's result is evaluated by the next step
                    loss = sign * float(evaluate())
                    grad = self._flat_grad()
            state["t"] = t
            if (
                iteration == group["max_iter"]
                or evals >= group["max_eval"]
                or small(grad, group["tolerance_grad"])
                or small(direction * t, group["tolerance_change"])
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss
