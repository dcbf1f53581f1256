"""All parameters as one vector, and back."""

from __future__ import annotations

import rushlight as torch

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_devices(tensors):
    devices = {str(tensor.device) for tensor in tensors}
    if len(devices) > 1:
        raise TypeError(
            f"Found two parameters on different devices, this is currently not supported: {sorted(devices)}"
        )


def parameters_to_vector(parameters):
    """The elements of all parameters, one after another. TypeError where they are on several devices."""
    parameters = list(parameters)
    _check_devices(parameters)
    return torch.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """Makes the parameters views of the slices of a vector. TypeError where it is no tensor or they are on several
    devices."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
