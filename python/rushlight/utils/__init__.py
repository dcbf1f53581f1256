"""Tools around training: data loading, checkpointing, hook handles."""

from .hooks import RemovableHandle

__all__ = ["RemovableHandle", "checkpoint", "data", "dlpack", "hooks"]


def __getattr__(name):
    if name in ("checkpoint", "data", "dlpack"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
