"""What names a CUDA device, in all functions of this package."""

import rushlight as torch
from rushlight._C import _cuda


def index_of(device, optional=True):
    """The number of a device given as an int, str, device or None (the current one). ValueError for another type."""
    if device is None and optional:
        return current_index()
    if isinstance(device, int) and not isinstance(device, bool):
        return device if device >= 0 or not optional else current_index()
    device = torch.device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return current_index() if device.index is None else device.index


def current_index():
    """The number of the current device. RuntimeError where there are no devices."""
    _cuda.start()
    return _cuda.current_device()
