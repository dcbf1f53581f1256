"""Linear algebra: torch.linalg.x is the operator `linalg_x`."""

from . import _C
from ._C import _LinAlgError as LinAlgError  # noqa: F401


def __getattr__(name):
    value = None if name.startswith("_") else getattr(_C, f"linalg_{name}", None)
    if value is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted(["LinAlgError", *(n.removeprefix("linalg_") for n in _C._operator_names if n.startswith("linalg_"))])
