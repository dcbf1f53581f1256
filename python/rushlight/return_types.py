"""The named tuples that operators with several results return: `return_types.max` is the type of torch.max(x, 0)."""

from . import _C


def __getattr__(name):
    kind = None if name.startswith("__") else _C._result_type(name)
    if kind is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return kind
