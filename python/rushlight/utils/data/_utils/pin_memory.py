"""Pinning the tensors of a batch."""

from .structure import convert


def pin_memory(data, device=None):
    """Calls ``pin_memory()`` of everything in nested containers that has it, a batch with such a method included."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    return convert(data, lambda leaf: leaf.pin_memory() if hasattr(leaf, "pin_memory") else leaf)
