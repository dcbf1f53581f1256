"""Calling a module with other tensors in place of its parameters and buffers."""

from __future__ import annotations

from contextlib import contextmanager

__all__ = ["functional_call"]


def _owner(module, name):
    """The registry that holds the tensor of a dotted name, and its key there."""
    path, _, key = name.rpartition(".")
    owner = module.get_submodule(path)
    return (owner._parameters if key in owner._parameters else owner._buffers), key


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
    if unexpected:
        raise AttributeError(f"{module._get_name()} has no attribute `{unexpected[0]}`")
    places = [(*_owner(module, name), tensor) for name, tensor in tensors.items()]
    before = [registry[key] for registry, key, _ in places]
    try:
        for registry, key, tensor in places:
            registry[key] = tensor
        yield
    finally:
        for (name, tensor), (registry, key, _), own in zip(tensors.items(), places, before):
            if isinstance(tensors, dict) and registry[key] is not tensor:
                tensors[name] = registry[key]  # a buffer that forward replaced
            registry[key] = own


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with tensors in place of those registered under the same dotted names.

    Arguments: `parameters_and_buffers`: a dict of them; `args`: a tuple or the single argument; `tie_weights`: whether a
    replaced tensor is replaced under all its names; `strict`: whether every name must be given.

    The module is as before afterwards. Errors: AttributeError, or RuntimeError with `strict`, for names that do not fit.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
