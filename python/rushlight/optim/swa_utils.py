"""Averages of a model's weights over training: equal (SWA) or exponential (EMA)."""

import itertools
import math
from copy import deepcopy

import rushlight as torch
from rushlight.nn import Module

from .lr_scheduler import LRScheduler, _format_param

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _each(average):
    """Makes of a function of two tensors one that updates a list in place."""

    def update(averaged, current, num_averaged):
        with torch.no_grad():
            for a, c in zip(averaged, current):
                a.copy_(average(a, c, num_averaged))

    return update


def get_ema_avg_fn(decay=0.999):
    """Returns ``f(average, current, count)`` that computes ``decay * average + (1 - decay) * current``."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def ema_update(ema_param, current_param, num_averaged):
        with torch.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """Returns ``f(average, current, count)`` that computes the mean of ``count`` averaged models and the current one."""

    def swa_update(averaged_param, current_param, num_averaged):
        with torch.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """As `get_ema_avg_fn`, on lists of tensors, in place."""
    return _each(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn():
    """As `get_swa_avg_fn`, on lists of tensors, in place."""
    return _each(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model that holds the average of its parameters; `update_parameters` adds the current ones.

    Args:
        model (Module): what to copy.
        device (optional): where the copy lives.
        avg_fn (callable, optional): ``f(average, current, count)`` returns the new average of one tensor.
        multi_avg_fn (callable, optional): ``f(averages, currents, count)`` updates lists in place. With neither, the
            average is the mean of all models.
        use_buffers (bool): average the buffers too; otherwise they are copied from the model.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Calls the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Takes the parameters of ``model`` into the average; the first time they become the average."""

        def tensors(module):
            every = itertools.chain(module.parameters(), module.buffers() if self.use_buffers else ())
            return [t.detach() for t in every]

        averages = tensors(self.module)
        currents = [c.to(a.device) for a, c in zip(averages, tensors(model))]
        count = self.n_averaged
        if count == 0:
            for a, c in zip(averages, currents):
                a.copy_(c)
        elif averages:
            update = self.multi_avg_fn or _each(self.avg_fn or get_swa_avg_fn())
            kinds = {}  # lists of one kind, as a multi-tensor function expects them
            for a, c in zip(averages, currents):
                group = kinds.setdefault((a.device, a.dtype), ([], []))
                group[0].append(a)
                group[1].append(c)
            for (device, _), (some_averages, some_currents) in kinds.items():
                update(some_averages, some_currents, count.to(device))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1


def update_bn(loader, model, device=None):
    """Computes the running statistics of a model's batch norm layers anew, by one pass over the data.

    Args:
        loader (iterable): batches; of a tuple or list the first element is the input.
        model (Module): what to run. Nothing happens if it has no batch norm.
        device (optional): where to move the inputs.
    """
    norms = {m: m.momentum for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average
    with torch.no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for norm, momentum in norms.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the rate to ``swa_lr`` in ``anneal_epochs`` epochs and stays there.

    Args:
        optimizer (Optimizer): whose rate to set.
        swa_lr (float or list): the rate, for all groups or one for each.
        anneal_epochs (int): how long the change takes.
        anneal_strategy (str): "cos" or "linear".
        last_epoch (int): where to resume.
    """

    _unsaved = ("anneal_func", "optimizer")

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t):
        """The fraction of the way at the fraction ``t`` of the time."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        """Computes the rates."""
        self._warn_outside_step()
        step = max(1, self._step_count - 1) if self.anneal_epochs == 0 else self._step_count - 1

        def way(step):
            return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

        before, now = way(step - 1), way(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, target = group["lr"], group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
