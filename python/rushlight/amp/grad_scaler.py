"""`GradScaler`: scales the loss so that small gradients do not vanish in float16, and skips steps that overflowed."""

import inspect
import warnings
from collections import defaultdict
from enum import Enum

import rushlight as torch
from rushlight import _C
from rushlight._sequences import in_kind_of

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come since the last `GradScaler.update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses before backward and unscales gradients before the optimizer's step.

    ::

        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    A step whose gradients hold inf or nan is skipped, and the scale shrinks; after `growth_interval` good steps in a
    row it grows.

    Args:
        device (str): where the scale lives.
        init_scale (float): the first scale.
        growth_factor (float): what the scale is multiplied by when it grows, above 1.
        backoff_factor (float): what it is multiplied by when it shrinks, below 1.
        growth_interval (int): good steps until it grows.
        enabled (bool): False makes every method pass through.

    Source: Micikevicius et al., "Mixed Precision Training", 2018.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if enabled and torch.device(device).type == "cuda" and not torch.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise ValueError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise ValueError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # made with the first loss
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = defaultdict(_fresh)

    def _started(self, caller):
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {caller} but _scale is None. This may indicate your script did not use "
                               "scaler.scale(loss or outputs) earlier in the iteration.")  # fmt: skip
        return self._scale, self._growth_tracker

    def _start(self, device):
        self._scale = torch.full((), float(self._init_scale), dtype=torch.float32, device=device)
        self._growth_tracker = torch.full((), self._init_growth_tracker, dtype=torch.int32, device=device)

    def scale(self, outputs):
        """The outputs (a tensor or nested lists and tuples of tensors) times the scale; as they are if not enabled."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            if self._scale is None:
                self._start(outputs.device)
            return outputs * self._scale.to(outputs.device, non_blocking=True)
        if hasattr(outputs, "__iter__"):
            scaled = [self.scale(x) for x in outputs]
            return in_kind_of(outputs, scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiplies gradients by inv_scale; for each device a tensor that is 1 if one of them was inf or nan."""
        grads = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype == torch.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads[p.grad.device, p.grad.dtype].append(p.grad)
        found = {}
        with torch.no_grad():
            for (device, _), list_ in grads.items():
                if device not in found:
                    found[device] = found_inf.to(device, copy=True)
                _C._amp_foreach_non_finite_check_and_unscale_(list_, found[device], inv_scale.to(device))
        return found

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, for clipping between backward and `step`.

        Raises RuntimeError if called twice before `update`, or after `step`.
        """
        if not self._enabled:
            return
        scale, _ = self._started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = scale.double().reciprocal().float()
        found_inf = torch.full((), 0.0, dtype=torch.float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """Unscales gradients unless `unscale_` was called, then ``optimizer.step(*args, **kwargs)`` unless one is inf or
        nan. Returns what that returned, None if skipped.

        Raises RuntimeError if called twice before `update` or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_its_own(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None
        if not sum(v.item() for v in state["found_inf_per_device"].values()):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_its_own(self, optimizer, state, args, kwargs):
        """For an optimizer that unscales by itself: it reads ``grad_scale`` and ``found_inf``."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            device = self._scale.device
            found = [v.to(device, non_blocking=True) for v in state["found_inf_per_device"].values()]
            optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else self._scale
            optimizer.found_inf = sum(found)
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Moves the scale by what the steps since the last call found, or sets it to `new_scale` (float or tensor)."""
        if not self._enabled:
            return
        scale, tracker = self._started("update")
        if new_scale is not None:
            if isinstance(new_scale, torch.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad or not new_scale.is_floating_point():
                    raise AssertionError("new_scale should be a float or a 1-element float tensor without grad.")
                scale.copy_(new_scale.reshape(()))
            else:
                scale.fill_(new_scale)
        else:
            found = [v for s in self._per_optimizer_states.values() for v in s["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if sum(v.item() for v in found):
                scale.mul_(self._backoff_factor)
                tracker.zero_()
            else:
                tracker.add_(1)
                if tracker.item() == self._growth_interval:
                    grown = scale * self._growth_factor
                    if grown.isfinite().item():
                        scale.copy_(grown)
                    tracker.zero_()
        self._per_optimizer_states = defaultdict(_fresh)

    def get_scale(self):
        """The scale as a float; 1.0 if not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Sets `get_growth_factor`."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by when it shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets `get_backoff_factor`."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Good steps in a row until the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Sets `get_growth_interval`."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self):
        """The scale, its factors and how many good steps there were; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Takes over what `state_dict` gave. Raises RuntimeError for an empty one."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled "
                               "instance of GradScaler.")  # fmt: skip
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or "
                                     "at the end after scaler.update().")  # fmt: skip
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(), _scale=None,
                         _growth_tracker=None)  # fmt: skip
            state["_per_optimizer_states"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self._enabled:
            self._per_optimizer_states = defaultdict(_fresh)

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._started("_check_inf_per_device")
        one = torch.full((), 1.0, dtype=torch.float32, device=scale.device)
        found_inf = torch.full((), 0.0, dtype=torch.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
