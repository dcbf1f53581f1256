"""Weight norm by a hook before ``forward``: the older form of ``parametrizations.weight_norm``."""

from __future__ import annotations

import warnings

import rushlight as torch

from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


def _norm_except(weight, dim):
    """The 2-norm over all dimensions but `dim`, which are kept with size 1; over all of them for -1."""
    if dim == -1:
        return torch.linalg.vector_norm(weight)
    return torch.linalg.vector_norm(weight, 2, [d for d in range(weight.dim()) if d != dim], keepdim=True)


class WeightNorm:
    """The hook: computes the weight `name` from its norm `name`_g and direction `name`_v. `dim`: see ``weight_norm``."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight as a function of norm and direction."""
        direction = getattr(module, self.name + "_v")
        return direction * (getattr(module, self.name + "_g") / _norm_except(direction, self.dim))

    @staticmethod
    def apply(module, name, dim):
        """Puts the hook on a module and returns it."""
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(_norm_except(weight.detach(), hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        """Makes the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Splits a weight into its norm for each index of `dim` (None: of all of it) and its direction; returns `module`.

    Source: Salimans and Kingma 2016, arXiv:1602.07868.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Undoes ``weight_norm`` and returns the module; ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
