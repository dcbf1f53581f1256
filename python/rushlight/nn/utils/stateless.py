"""Calling a module with other tensors in place of its parameters and buffers."""

from __future__ import annotations

from contextlib import contextmanager

from rushlight import Tensor

__all__ = ["functional_call"]

_NONE = object()  # where no tensor was before


def _owner(module, name):
    """The registry that holds the tensor of a dotted name, or is to hold it, and its key there."""
    path, _, key = name.rpartition(".")
    if not key:
        raise KeyError(f"{name!r} names no tensor of {module._get_name()}")
    owner = module.get_submodule(path)
    registry = next((r for r in (owner._parameters, owner._buffers) if key in r), vars(owner))
    if registry is vars(owner) and not isinstance(getattr(owner, key, _NONE), (Tensor, type(_NONE))):
        raise TypeError(f"attribute `{key}`: {getattr(owner, key)} is not an instance of torch.Tensor")
    return registry, key


def _with_ties(module, tensors):
    """`tensors` with an entry for every other name under which a replaced tensor is registered."""
    names = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            names.setdefault(tensor, []).append(name)
    full = dict(tensors)
    for tied in names.values():
        given = [name for name in tied if name in tensors]
        if len({id(tensors[name]) for name in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {given}, which are tied. Consider using "
                "tie_weights=False"
            )
        for name in tied if given else ():
            full[name] = tensors[given[0]]
    return full


@contextmanager
def _replaced(module, tensors, tie_weights, strict):
    known = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    known |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    if tie_weights:
        tensors = _with_ties(module, tensors)
    unexpected, missing = sorted(set(tensors) - known), sorted(known - set(tensors))
    if strict and (unexpected or missing):
        problems = [
            f"{kind} key(s): {', '.join(keys)}."
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing))
            if keys
        ]
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))
    for tensor in tensors.values():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    places = [(*_owner(module, name), tensor) for name, tensor in tensors.items()]
    before = [registry.get(key, _NONE) for registry, key, _ in places]
    try:
        for registry, key, tensor in places:
            registry[key] = tensor
        yield
    finally:
        for (name, tensor), (registry, key, _), own in zip(tensors.items(), places, before):
            if isinstance(tensors, dict) and registry[key] is not tensor:
                tensors[name] = registry[key]  # a buffer that forward replaced
            if own is _NONE:
                del registry[key]
            else:
                registry[key] = own


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with tensors in place of those registered under the same dotted names.

    Arguments: `parameters_and_buffers`: a dict of them; `args`: a tuple or the single argument; `tie_weights`: whether a
    replaced tensor is replaced under all its names; `strict`: whether the names must be those of the module's tensors.

    Other names are attributes for the time of the call. The module is as before afterwards. Errors: RuntimeError with
    `strict` for names that do not fit, AttributeError for those of submodules that are not there, TypeError for what is no
    tensor.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
