"""From the samples of a batch to batched tensors."""

from collections.abc import Mapping, Sequence

import rushlight as torch
from rushlight._sequences import is_namedtuple

from .structure import convert, rebuild_mapping, rebuild_sequence

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]


def _is_numpy(data):
    return type(data).__module__ == "numpy"


def _holds_objects(dtype):
    return any(kind in dtype.str for kind in "SaUO")


def _to_tensor(data):
    if _is_numpy(data):
        name = type(data).__name__
        if name not in ("str_", "string_") and not (name == "ndarray" and _holds_objects(data.dtype)):
            return torch.as_tensor(data)
    return data


def default_convert(data):
    """Turns NumPy arrays and numbers in nested containers into tensors; all else stays. Tuples become lists."""
    return convert(data, _to_tensor, plain_tuples=True)


def _collate_tensors(batch, *, collate_fn_map=None):
    return torch.stack(batch, 0)


def _collate_floats(batch, *, collate_fn_map=None):
    return torch.tensor(batch, dtype=torch.float64)


def _collate_ints(batch, *, collate_fn_map=None):
    return torch.tensor(batch)


def _keep(batch, *, collate_fn_map=None):
    return batch


def _refuse(kind):
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}")


def _collate_numpy(batch, collate_fn_map):
    first = batch[0]
    if type(first).__name__ in ("str_", "bytes_"):
        return batch
    if _holds_objects(first.dtype):
        _refuse(first.dtype)
    if type(first).__name__ == "ndarray":
        return collate([torch.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)
    return torch.as_tensor(batch)


default_collate_fn_map = {
    torch.Tensor: _collate_tensors,
    float: _collate_floats,
    int: _collate_ints,
    str: _keep,
    bytes: _keep,
}


def collate(batch, *, collate_fn_map=None):
    """Collates samples by a table of functions.

    Args:
        batch (list): the samples, all built alike.
        collate_fn_map (dict, optional): for a type, or a tuple of types, ``f(batch, *, collate_fn_map)``. Mappings and
            sequences that it does not have are gone through element by element.

    Raises RuntimeError where sequences differ in length, TypeError for a type that nothing is known about.
    """
    first = batch[0]
    kind = type(first)
    table = collate_fn_map or {}
    function = table.get(kind)
    if function is None and _is_numpy(first):
        return _collate_numpy(batch, collate_fn_map)
    if function is None:
        function = next((f for known, f in table.items() if isinstance(first, known)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        items = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return rebuild_mapping(first, items)
    if isinstance(first, Sequence):
        if not is_namedtuple(first) and any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        if is_namedtuple(first):
            return kind(*columns)
        return columns if isinstance(first, tuple) else rebuild_sequence(first, columns)
    _refuse(kind)


def default_collate(batch):
    """Makes a batch of samples: tensors, arrays and numbers are stacked along a new first dimension.

    Numbers give int64 or float64 tensors, strings stay a list. Of tuples and lists each position is collated, of
    mappings each key; tuples become lists.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
