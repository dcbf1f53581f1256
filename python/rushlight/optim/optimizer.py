"""What all optimizers share: parameter groups, per-parameter state, saving and loading, hooks, and the skeleton of a step.

`Optimizer` is the public base class, for users' own optimizers as well. `RuleOptimizer` is the skeleton of ours: a subclass
says what its state is and how one parameter moves; see Note [A rule].
"""

from collections import OrderedDict, defaultdict
from copy import deepcopy
from functools import wraps
from itertools import chain

import rushlight as torch
from rushlight._C import _optimizer_step as step_natively
from rushlight.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _Required:
    """Marks a group option that has no default."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()

# Options that came to PyTorch's optimizers over the years, with what their absence in an old checkpoint means.
_LATE_OPTIONS = {
    "amsgrad": False,
    "capturable": False,
    "centered": False,
    "decoupled_weight_decay": False,
    "differentiable": False,
    "foreach": None,
    "fused": None,
    "maximize": False,
    "momentum": 0,
    "nesterov": False,
}


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Calls ``hook(optimizer, args, kwargs)`` before each step of every optimizer. Returns a handle with ``remove()``.

    ``args`` begins with the optimizer. The hook may return ``(args, kwargs)`` to replace the arguments of the step.
    """
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Calls ``hook(optimizer, args, kwargs)`` after each step of every optimizer. Returns a handle with ``remove()``."""
    return _register(_global_post_hooks, hook)


def _recorded(optimizer, method):
    """An event of the profiler. Asked for only where there are global hooks: a profiler that runs is among them."""
    from rushlight.autograd.profiler import record_function

    return record_function(f"Optimizer.{method}#{type(optimizer).__name__}.{method}")


def _with_hooks(step):
    """Wraps an optimizer's ``step`` so that it runs the hooks before and after it."""

    @wraps(step)
    def hooked(self, *args, **kwargs):
        pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if not (pre or post or _global_pre_hooks or _global_post_hooks):
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in [*_global_pre_hooks.values(), *pre.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{step.__qualname__}: a step pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {changed}."
                    )
                args, kwargs = changed
        with _recorded(self, "step"):
            result = step(*args, **kwargs)
        for hook in [*post.values(), *_global_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked.hooked = True
    return hooked


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: an iterable of tensors, of ``(name, tensor)`` pairs, or of dicts. Each dict is a parameter group: its
            ``"params"`` and the options that differ from ``defaults``. The order must be the same in every run.
        defaults (dict): the options of groups that do not set them.

    A subclass defines ``step``; it finds the groups in ``self.param_groups`` and keeps what it must remember of a
    parameter in ``self.state[parameter]``, a dict.

    Raises TypeError where ``params`` is a single tensor or has elements that are not tensors, ValueError where it is
    empty, names a parameter twice, or has a tensor that is not a leaf.
    """

    _at_once = True  # a native step moves parameters at the same time, so none may be there twice
    _HOOKS = (
        "step_pre",
        "step_post",
        "state_dict_pre",
        "state_dict_post",
        "load_state_dict_pre",
        "load_state_dict_post",
    )

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__ and not hasattr(cls.step, "hooked"):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + torch.typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hooks(self):
        for kind in self._HOOKS:
            self.__dict__.setdefault(f"_optimizer_{kind}_hooks", OrderedDict())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"] if i == 0 else ["", f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    def register_step_pre_hook(self, hook):
        """Calls ``hook(optimizer, args, kwargs)`` before each step; it may return ``(args, kwargs)`` to replace them."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer)`` before `state_dict` is built; first of all hooks if ``prepend``."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer, state_dict)`` on what `state_dict` returns; it may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer, state_dict)`` before `load_state_dict` reads it; it may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls ``hook(optimizer)`` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self):
        """Returns the state as ``{"state": {index: {...}}, "param_groups": [...]}``.

        Parameters are replaced by their index, counted over all groups. Tensors are not copied.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index = {}
        groups, start = [], 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                index.setdefault(id(p), i)
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
            start += len(group["params"])
        state = {index[id(k)] if isinstance(k, torch.Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """Moves a loaded state tensor to its parameter's device and dtype; a step count keeps its dtype."""
        if key == "step":
            group = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=torch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict):
        """Takes over the state of another optimizer of the same groups, as `state_dict` returned it.

        State tensors are moved to their parameter's device and dtype. The group options of ``state_dict``, the
        learning rate among them, replace those of this optimizer. Raises ValueError where the number of groups or the
        number of parameters of a group differs.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = dict(
            zip(
                chain.from_iterable(s["params"] for s in saved),
                chain.from_iterable(g["params"] for g in groups),
            )
        )

        def cast(param, value, param_id, key=None):
            if isinstance(value, torch.Tensor):
                return self._process_value_according_to_param_policy(
                    param, value, param_id, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: cast(param, v, param_id, k) for k, v in value.items()}
            if isinstance(value, (list, tuple, set)):
                return type(value)(cast(param, v, param_id) for v in value)
            return value

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = cast(params[key], value, key)
            else:
                state[key] = value
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none=True):
        """Clears the gradients of all parameters: removes them, or fills them with zeros if not ``set_to_none``."""
        if _global_pre_hooks:
            with _recorded(self, "zero_grad"):
                self._clear_grads(set_to_none)
        else:
            self._clear_grads(set_to_none)

    def _clear_grads(self, set_to_none):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure=None):
        """Moves the parameters by their gradients. ``closure``, if given, computes the loss anew and returns it."""
        raise NotImplementedError

    def add_param_group(self, param_group):
        """Adds a group: a dict with ``"params"`` and any options; options it lacks come from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, torch.Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        param_group["params"] = params
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, torch.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + torch.typename(p))
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        own = {id(p) for p in params}
        if len(own) != len(params):
            import warnings

            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
            if self._at_once:
                self._rule = None
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if names else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} to the optimizer"
                )
            if not own.isdisjoint(map(id, group["params"])):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


# Note [A rule]
# A RuleOptimizer has three parts to fill in:
#   _rule   the name of its native step, which moves all parameters of a group in one call (src/optim/, where the
#           options and the state are read by their names); None if it has none;
#   _begin(group, param, grad)   the state a parameter starts with, a dict (empty: it has none);
#   _update(group, param, grad, state, lr, step)   the same step for one parameter, in tensor operations: what
#           differentiable=True differentiates through, and what tensors take that the native step refuses. One that
#           goes through parameter by parameter (_at_once is False) and refuses nothing needs none.
# For _update the skeleton has done the rest by then: chosen the parameters that have a gradient, turned the gradient
# for maximize, applied weight decay, counted the step, and viewed complex tensors as pairs of reals.


class RuleOptimizer(Optimizer):
    """The skeleton of Rushlight's own optimizers; see Note [A rule] in the source."""

    _rule = None
    _counters = ("step",)  # state that old checkpoints keep as numbers and new ones as tensors
    _as_real = True  # complex parameters are updated as pairs of reals
    _decays = True  # the skeleton applies group["weight_decay"]
    _decoupled = False  # weight decay shrinks the parameter instead of joining the gradient
    _takes_sparse = False

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name in self.defaults:
                if name in _LATE_OPTIONS:
                    group.setdefault(name, _LATE_OPTIONS[name])
        for values in self.state.values():
            for name in self._counters:
                if name in values and not isinstance(values[name], torch.Tensor):
                    values[name] = counter(float(values[name]))

    def step(self, closure=None):
        """Moves each parameter that has a gradient.

        Args:
            closure (callable, optional): clears the gradients, computes the loss, calls backward and returns the loss.

        Returns the loss that ``closure`` returned, or None.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            differentiable = group.get("differentiable", False)
            if differentiable or not self._rule or not step_natively(self._rule, group, self.state, self._start):
                if not self._at_once:
                    self._refuse(group)
                with torch.set_grad_enabled(self.defaults.get("differentiable", False)):
                    self._step_group(group, differentiable)
        return loss

    def _begin(self, group, param, grad):
        return {}

    def _update(self, group, param, grad, state, lr, step):
        raise NotImplementedError

    def _refuse(self, group):
        """Says why a native step that takes all tensors has taken none: a group or a state is not as it was made."""
        for name in self.defaults:
            if name not in group:
                raise KeyError(name)
        raise RuntimeError(
            f"{type(self).__name__}: params must be a list of Tensors, and the state of each a dict that holds, as "
            "Tensors, what the optimizer began with"
        )

    def _start(self, group, param):
        grad = param.grad
        if grad.is_sparse and not self._takes_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
        state = self._begin(group, param, grad)
        if state:
            self.state[param] = state
        return state

    def _step_group(self, group, differentiable):
        lr = scalar(group["lr"], differentiable)
        for param in group["params"]:
            if param.grad is not None:
                state = self.state.get(param) or self._start(group, param)
                self._step_one(group, param, param.grad, state, lr, differentiable)

    def _step_one(self, group, param, grad, state, lr, differentiable):
        if differentiable:  # what the last step's graph has saved stays as it is
            state.update({k: v.clone() for k, v in state.items() if isinstance(v, torch.Tensor)})
        step = state.get("step")
        if step is not None:
            step += 1
            step = step.item()
        if self._as_real and param.is_complex():
            param, grad = torch.view_as_real(param), torch.view_as_real(grad)
            state = {
                k: torch.view_as_real(v) if isinstance(v, torch.Tensor) and v.is_complex() else v
                for k, v in state.items()
            }
        if group.get("maximize"):
            grad = -grad
        decay = group.get("weight_decay", 0) if self._decays else 0
        if isinstance(decay, torch.Tensor) or decay != 0:
            if group.get("decoupled_weight_decay", self._decoupled):
                param.mul_(1 - lr * decay)
            elif isinstance(decay, torch.Tensor):
                grad = grad + param * decay
            else:
                grad = grad.add(param, alpha=decay)
        self._update(group, param, grad, state, lr, step)


def zeros(param):
    """A state tensor that starts at zero, laid out as its parameter."""
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def counter(value=0.0, device=None):
    """A 0-dim tensor, the form in which PyTorch keeps step counts: float64 where that is the default, else float32."""
    dtype = torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32
    return torch.tensor(value, dtype=dtype, device=device)


def scalar(value, differentiable=False):
    """A one-element tensor as a number, or as a 0-dim tensor where it takes part in differentiation."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.reshape(()) if differentiable and value.requires_grad else value.item()


def add_scaled(param, update, scale):
    """``param += scale * update``, where ``scale`` is a number or a tensor that is differentiated."""
    if isinstance(scale, torch.Tensor):
        param.add_(update * scale)
    else:
        param.add_(update, alpha=scale)


def ema(average, value, beta):
    """Moves a running average towards ``value``: ``average = beta * average + (1 - beta) * value``."""
    return average.lerp_(value, 1 - beta)


def ema_of_square(average, value, beta):
    """Moves a running average of squares: ``average = beta * average + (1 - beta) * value * value``."""
    if isinstance(beta, torch.Tensor):
        return average.lerp_(value * value, 1 - beta)
    return average.mul_(beta).addcmul_(value, value, value=1 - beta)


def check_lr(lr, message="Invalid learning rate: "):
    """Raises ValueError unless ``lr`` is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"{message}{lr}")


def check_nonnegative(**options):
    """Raises ValueError for an option that is negative."""
    for name, value in options.items():
        if not value >= 0.0:
            name = "epsilon" if name == "eps" else name
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas):
    """Raises ValueError unless both betas are in [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(fused, foreach, differentiable):
    """Raises RuntimeError where PyTorch forbids the combination."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
