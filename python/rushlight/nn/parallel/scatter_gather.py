"""Splitting nested arguments over devices by their batch dimension, and joining nested results."""

from __future__ import annotations

import rushlight as torch
from rushlight._sequences import in_kind_of

__all__ = ["scatter", "scatter_kwargs", "gather"]


def _device(device):
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)


def scatter(inputs, target_gpus, dim=0):
    """A list with `inputs` for each device: tensors are split along `dim` and moved, containers are searched for tensors
    and anything else is repeated. Fewer entries than devices where the batch is too small. Gradients flow back."""
    if isinstance(inputs, torch.Tensor):
        parts = inputs.chunk(len(target_gpus), dim)
        return [part.to(_device(device), non_blocking=True) for part, device in zip(parts, target_gpus)]
    if isinstance(inputs, (tuple, list)) and inputs:
        rows = zip(*(scatter(value, target_gpus, dim) for value in inputs))
        return [in_kind_of(inputs, row) for row in rows]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*(scatter(item, target_gpus, dim) for item in inputs.items()))
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """``scatter`` of positional and keyword arguments, brought to the same number of entries."""
    inputs = scatter(tuple(inputs), target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(inputs), len(kwargs))
    inputs += [()] * (count - len(inputs))
    kwargs += [{} for _ in range(count - len(kwargs))]
    return tuple(inputs), tuple(kwargs)


def gather(outputs, target_device, dim=0):
    """Joins the results of all devices on one: tensors along `dim`, containers entry by entry. Gradients flow back."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        device = _device(target_device)
        parts = [output.to(device) for output in outputs]
        return torch.stack(parts) if first.dim() == 0 else torch.cat(parts, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    rows = (gather(list(row), target_device, dim) for row in zip(*outputs))
    return in_kind_of(first, rows)
