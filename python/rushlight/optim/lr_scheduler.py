"""Schedules that change the learning rate of an optimizer's groups as training goes on.

Most are chainable: the next rate follows from the current one, so several can act on one optimizer. Those that have a
closed form too (`_get_closed_form_lr`) can jump to an epoch.
"""

import math
import warnings
from bisect import bisect_right
from functools import wraps
from types import FunctionType
from weakref import ref

import rushlight as torch

from .optimizer import Optimizer, scalar

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

EPOCH_DEPRECATION_WARNING = (
    "scheduler.step(epoch) is deprecated: call scheduler.step() without an epoch. Until it goes, an epoch selects the "
    "schedule's closed form where there is one."
)


def _copy(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def _format_param(name, optimizer, param):
    """One value of an option for each group: the given ones, or the given one for all."""
    groups = optimizer.param_groups
    if not isinstance(param, (list, tuple)):
        return [_copy(param) for _ in groups]
    if len(param) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} values, "
            f"param_groups has {len(groups)}."
        )
    return [_copy(p) for p in param]


def _values(optimizer, key="lr"):
    return [_copy(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(group, key, value):
    """Sets a group's option; a tensor keeps its identity."""
    if isinstance(group[key], torch.Tensor):
        group[key].fill_(scalar(value))
    else:
        group[key] = value


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _note_steps(optimizer):
    """Lets the optimizer remember that it has stepped, by which a schedule knows that the calls are in order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step, owner = optimizer.step.__func__, ref(optimizer)

    @wraps(step)
    def noted(*args, **kwargs):
        optimizer = owner()
        optimizer._opt_called = True
        return step(optimizer, *args, **kwargs)

    noted._wrapped_by_lr_sched = True
    optimizer.step = noted


class LRScheduler:
    """Base class of the schedules.

    Args:
        optimizer (Optimizer): whose groups' ``"lr"`` is set. Each group gets its ``"initial_lr"``.
        last_epoch (int): where to resume; -1 starts anew.

    A subclass defines ``get_lr``, the rates of epoch ``self.last_epoch``, one for each group; the current rates are in
    the groups. Raises TypeError if ``optimizer`` is none, KeyError when resuming without ``"initial_lr"``.
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _unsaved = ("optimizer",)  # attributes that state_dict leaves out

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0. Load the optimizer's state first, or start with last_epoch=-1."
                )
        self.base_lrs = _values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Returns all attributes but the optimizer, as a dict."""
        return {key: value for key, value in self.__dict__.items() if key not in self._unsaved}

    def load_state_dict(self, state_dict):
        """Takes over what `state_dict` of another schedule of this kind returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """Returns the rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self):
        """Computes the rates for ``self.last_epoch``. For subclasses; users want `get_last_lr`."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Goes to the next epoch, or to ``epoch`` (deprecated), and sets the rates. Call it after ``optimizer.step()``."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order, "
                    "or the first value of the learning rate schedule is skipped.",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        if epoch is None:
            self.last_epoch += 1
            self._set(self._computed(self.get_lr))
        else:
            self.last_epoch = epoch
            self._set(self._computed(getattr(self, "_get_closed_form_lr", self.get_lr)))

    def _computed(self, compute):
        self._get_lr_called_within_step = True
        try:
            return compute()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates):
        for group, lr in zip(self.optimizer.param_groups, rates):
            _update_param_group_val(group, "lr", lr)
        self._last_lr = _values(self.optimizer)

    def _times(self, factor):
        """The current rates times a factor; a factor of None leaves them as they are."""
        if factor is None:
            return _values(self.optimizer)
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


_LRScheduler = LRScheduler  # the name of old


class _FunctionLR(LRScheduler):
    """What LambdaLR and MultiplicativeLR share: a function for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        for function in lr_lambda:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        self.optimizer = optimizer
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Returns the state. Functions are left out; of callable objects their attributes are saved."""
        state = super().state_dict()
        state["lr_lambdas"] = [None if isinstance(f, FunctionType) else f.__dict__.copy() for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        """Takes over a saved state, callable objects' attributes included."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_FunctionLR):
    """The initial rate times ``lr_lambda(epoch)``; one function for all groups, or a list of one for each."""

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_FunctionLR):
    """The current rate times ``lr_lambda(epoch)`` in each epoch."""

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        if self._is_initial:
            return self._times(None)
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(LRScheduler):
    """Multiplies the rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        falls = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma if falls else None)

    def _get_closed_form_lr(self):
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by ``gamma`` at each epoch in ``milestones``, as often as it is listed."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        from collections import Counter

        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        times = self.milestones.get(self.last_epoch, 0)
        return self._times(self.gamma**times if times else None)

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the rate by ``factor`` until epoch ``total_iters``."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1.0 / self.factor if self.last_epoch == self.total_iters else None)

    def _get_closed_form_lr(self):
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [lr * factor for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """Moves the factor on the initial rate from ``start_factor`` to ``end_factor`` in ``total_iters`` equal steps."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._times(None)
        rise = self.end_factor - self.start_factor
        return self._times(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (self.start_factor + (self.end_factor - self.start_factor) * done) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by ``gamma`` every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        return self._times(None if self._is_initial else self.gamma)

    def _get_closed_form_lr(self):
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Lets the rate fall to zero in ``total_iters`` epochs, as ``(1 - epoch / total_iters) ** power``."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._times(None)
        now, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._times((now / before) ** self.power)

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


def _cosine(start, end, fraction):
    """Half a cosine wave from start to end."""
    return end + (start - end) * (1 + math.cos(math.pi * fraction)) / 2


class CosineAnnealingLR(LRScheduler):
    """Lets the rate fall to ``eta_min`` along half a cosine wave of ``T_max`` epochs, and rise again after it.

    Source: Loshchilov and Hutter 2016, SGDR, arXiv:1608.03983, eq. 5, without the restarts.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        if self._is_initial:
            return self._times(None)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # one step up from the bottom
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            groups = self.optimizer.param_groups
            return [group["lr"] + (lr - self.eta_min) * rise for lr, group in zip(self.base_lrs, groups)]
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (group["lr"] - self.eta_min) + self.eta_min for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [_cosine(lr, self.eta_min, self.last_epoch / self.T_max) for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosine waves from the initial rate to ``eta_min``; the first has ``T_0`` epochs, each next ``T_mult`` times more.

    ``step`` takes fractions of epochs too.

    Source: Loshchilov and Hutter 2016, SGDR, arXiv:1608.03983.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        return [_cosine(lr, self.eta_min, self.T_cur / self.T_i) for lr in self.base_lrs]

    def step(self, epoch=None):
        """Goes to the next epoch, or to ``epoch``, which may be a fraction; ValueError if it is negative."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            cycle = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**cycle
            self.T_cur = epoch - self.T_0 * (self.T_mult**cycle - 1) / (self.T_mult - 1)
        self.last_epoch = math.floor(epoch)
        self._set(self._computed(self.get_lr))


class _CompositeLR(LRScheduler):
    """What SequentialLR and ChainedScheduler share: they hold schedules."""

    _unsaved = ("optimizer", "_schedulers")

    def _check(self, schedulers, optimizer):
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self):
        """Returns the state, that of the schedules inside included."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict):
        """Takes over a saved state, that of the schedules inside included."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(saved)


class SequentialLR(_CompositeLR):
    """Runs schedules one after the other; ``milestones`` are the epochs at which the next one takes over."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Constructing the schedules made each take its first step; only the one that starts may have done so.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None):
        """Takes back the first step of the schedules inside."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for inner in scheduler._schedulers:
                self.recursive_undo(inner)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self):
        """Lets the schedule whose turn it is take its step."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_CompositeLR):
    """Lets several chainable schedules act together: each step is a step of all."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, self.optimizer)
        self._schedulers = schedulers
        self._last_lr = _values(self.optimizer)

    def step(self):
        """Lets every schedule take its step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _values(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        optimizer (Optimizer): whose rate to reduce.
        mode (str): "min" if less is better, else "max".
        factor (float): below 1.
        patience (int): epochs without improvement that are borne.
        threshold (float), threshold_mode (str): what counts as improvement: "rel", a fraction of the best, or "abs".
        cooldown (int): epochs after a reduction that do not count.
        min_lr (float or list): the least rate, for all groups or one for each.
        eps (float): smaller changes of the rate are not made.

    Its ``step`` takes the metric. Raises ValueError for a factor of 1 or more and for unknown modes.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _values(optimizer)
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """Whether the last reduction is still too recent to count epochs."""
        return self.cooldown_counter > 0

    def _is_better(self, metric, best):
        sign = 1 if self.mode == "max" else -1
        needed = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return metric > needed if self.mode == "max" else metric < needed

    def step(self, metrics, epoch=None):
        """Takes the metric of an epoch, a number or a tensor of one element, and reduces the rate if it is time."""
        metric = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(metric, self.best):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _values(self.optimizer)

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being "
                    "added to the optimizer. Please modify the `min_lrs` field to match the length of the `optimizer` "
                    "param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _update_param_group_val(group, "lr", new)

    def load_state_dict(self, state_dict):
        """Takes over a saved state."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


class _MomentumCycle(LRScheduler):
    """What CyclicLR and OneCycleLR share: the momentum, or Adam's first beta, runs against the rate."""

    def _begin_momentum(self, cycle_momentum, base_momentum, max_momentum, last_epoch):
        self.cycle_momentum = cycle_momentum
        if not cycle_momentum:
            return
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        lows = _format_param("base_momentum", self.optimizer, base_momentum)
        highs = _format_param("max_momentum", self.optimizer, max_momentum)
        if last_epoch == -1:
            for group, low, high in zip(self.optimizer.param_groups, lows, highs):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return lows, highs

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_MomentumCycle):
    """Lets the rate run up and down between ``base_lr`` and ``max_lr``, step by step; call ``step`` after every batch.

    Args:
        optimizer (Optimizer): whose rate to set.
        base_lr, max_lr (float or list): the bounds, for all groups or one for each.
        step_size_up, step_size_down (int): batches of the rise and of the fall, which are equal by default.
        mode (str): "triangular"; "triangular2", which halves the height each cycle; "exp_range", which scales it by
            ``gamma`` to the power of the batch.
        gamma (float): for "exp_range".
        scale_fn (callable), scale_mode (str): a height of one's own, of the "cycle" or of the "iterations".
        cycle_momentum (bool), base_momentum, max_momentum (float or list): momentum runs the other way.
        last_epoch (int): the last batch, when resuming.

    Source: Smith 2015, arXiv:1506.01186.
    """

    _unsaved = ("_scale_fn_ref", "optimizer")

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                _update_param_group_val(group, "lr", lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        momentums = self._begin_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        if momentums:
            self.base_momentums, self.max_momentums = momentums
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The height of cycle ``x``, or at batch ``x``, as a fraction of the full height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        """Computes the rates, and sets the momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """Returns the state. A function given as ``scale_fn`` is left out; of a callable object, its attributes."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        saved = custom is not None and not isinstance(custom, FunctionType)
        state["_scale_fn_custom"] = custom.__dict__.copy() if saved else None
        return state

    def load_state_dict(self, state_dict):
        """Takes over a saved state."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(_MomentumCycle):
    """One rise of the rate to ``max_lr`` and one fall far below where it began; call ``step`` after every batch.

    Args:
        optimizer (Optimizer): whose rate to set.
        max_lr (float or list): the peak, for all groups or one for each.
        total_steps (int), or epochs and steps_per_epoch (int): the length of the cycle.
        pct_start (float): the fraction of it that the rise takes.
        anneal_strategy (str): "cos" or "linear".
        cycle_momentum (bool), base_momentum, max_momentum (float or list): momentum runs the other way.
        div_factor (float): the first rate is ``max_lr / div_factor``.
        final_div_factor (float): the last is the first over it.
        three_phase (bool): fall as slowly as it rose, then on to the last rate.
        last_epoch (int): the last batch, when resuming.

    Raises ValueError for a length that is not positive, and in ``step`` beyond it.
    Source: Smith and Topin 2017, arXiv:1708.07120.
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        _check_optimizer(optimizer)
        self.optimizer = optimizer

        def positive(name, value):
            if value <= 0 or not isinstance(value, int):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
            return value

        if total_steps is not None:
            self.total_steps = positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")

        def phase(end, lrs, momentums):
            return {
                "end_step": end,
                "start_lr": lrs[0],
                "end_lr": lrs[1],
                "start_momentum": momentums[0],
                "end_momentum": momentums[1],
            }

        rise, last = float(pct_start * self.total_steps), self.total_steps - 1
        falling, rising = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
        phases = [phase(rise - 1, ("initial_lr", "max_lr"), falling)]
        if three_phase:
            phases.append(phase(2 * rise - 2, ("max_lr", "initial_lr"), rising))
            phases.append(phase(last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
        else:
            phases.append(phase(last, ("max_lr", "min_lr"), rising))
        self._schedule_phases = phases
        self._anneal_func_type = anneal_strategy
        max_lrs = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self._begin_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start, end, fraction):
        if self._anneal_func_type == "cos":
            return _cosine(start, end, fraction)
        return (end - start) * fraction + start

    def get_lr(self):
        """Computes the rates, and sets the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                begin = phase["end_step"]
        fraction = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], fraction))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(*ends, fraction))
        return rates
