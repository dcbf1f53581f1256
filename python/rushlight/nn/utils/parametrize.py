"""Parameters that are computed from others: a parametrized tensor is a property of its module's (new) class, and its
originals are parameters of ``module.parametrizations.<name>``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import contextmanager

import rushlight as torch

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "cached",
    "ParametrizationList",
    "register_parametrization",
    "is_parametrized",
    "remove_parametrizations",
    "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]

_cache_depth = 0
_cache = {}


@contextmanager
def cached():
    """Within this context each parametrized tensor is computed once, however often it is used."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(what, before, after):
    """ValueError unless `after` is a tensor of the dtype and shape of `before`."""
    if not isinstance(after, torch.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for attribute in ("dtype", "shape"):
        old, new = getattr(before, attribute), getattr(after, attribute)
        if old != new:
            raise ValueError(
                f"Registering a parametrization may not change the {attribute} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {attribute}: {old}\n{what} {attribute}: {new}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to `original`, or to `original0`, `original1`, ... where the
    first takes several tensors.

    Arguments: `modules`; `original`: the tensor, from which their ``right_inverse`` makes the originals; `unsafe`: whether
    the result may differ from it in dtype and shape. Errors: ValueError where results or inverses do not fit.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach().clone() if not unsafe else None
        with torch.no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass  # it cannot be inverted: the original starts from the tensor as it is
        if not isinstance(new, (torch.Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for attribute in ("dtype", "device"):
                if getattr(original, attribute) != getattr(new, attribute):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {attribute}.\n"
                        f"original.{attribute}: {getattr(original, attribute)}\n"
                        f"right_inverse(original).{attribute}: {getattr(new, attribute)}"
                    )
            # The optimizer may already hold the parameter, so it stays and takes the data.
            original.data = new.detach()
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not unsafe:
            _check_same("parametrized", before, self())

    def right_inverse(self, value):
        """Sets the originals so that the parametrized tensor becomes `value`, as far as the inverses allow it."""
        with torch.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, torch.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                names, values = ["original"], [value]
            else:
                if not isinstance(value, Sequence):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
                if len(value) != self.ntensors:
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                        f"Got a sequence of length {len(value)}."
                    )
                names, values = [f"original{i}" for i in range(self.ntensors)], value
            for name, tensor in zip(names, values):
                own = getattr(self, name)
                if own.dtype != tensor.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {tensor.dtype} while `{name}` has dtype "
                        f"{own.dtype}"
                    )
                own.data = tensor.detach()

    def forward(self):
        first, *rest = self
        if self.is_tensor:
            result = first(self.original)
        else:
            result = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in rest:
            result = module(result)
        return result


def _parametrized_class(cls):
    """A class of its own for one module, so that properties can be put on it."""

    def deepcopy(self, memo):
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return replica

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). Use it instead of pickling "
            "the module."
        )

    methods = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        methods["__deepcopy__"] = deepcopy
    return type(f"Parametrized{cls.__name__}", (cls,), methods)


def _property(name):
    def compute(self):
        parametrization = self.parametrizations[name]
        if not _cache_depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def assign(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(compute, assign)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Makes ``module.<tensor_name>`` the result of a module called with the original tensor; returns `module`.

    Further parametrizations of the same tensor are applied to the result. A method ``right_inverse`` of the
    parametrization lets the tensor be assigned. Unless `unsafe`, it must keep dtype and shape.

    Errors: ValueError where it does not, or the module has no such parameter or buffer.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_same("parametrized", before, after)
            if hasattr(parametrization, "right_inverse"):
                try:
                    _check_same("inverse", before, parametrization.right_inverse(after))
                except NotImplementedError:
                    pass
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the tensor, or any where no name is given, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor an ordinary parameter or buffer again: with its parametrized value, or with the original's where
    `leave_parametrized` is False, which takes a single original. Returns `module`. ValueError otherwise."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives `to_module` the parametrizations of `from_module` and their originals; of one tensor or of all."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for own in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, own, getattr(source, own))
    return to_module
