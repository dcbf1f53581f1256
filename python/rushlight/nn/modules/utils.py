"""Helpers of the layers: sizes given as one number or a tuple."""

from __future__ import annotations

from collections.abc import Iterable


def _ntuple(n):
    def expand(value):
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    return expand


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)


def _reverse_repeat_tuple(values, n):
    """Each value n times, the last first: how ``pad`` wants the padding of each dimension."""
    return tuple(value for value in reversed(values) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strips `prefix` from the keys of a state dict that have it, in place, and from its ``_metadata``."""
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata.keys()):
            # The root's key is "", and the wrapper that the prefix names is gone.
            if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
                metadata[key[len(prefix) :]] = metadata.pop(key)
