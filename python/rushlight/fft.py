"""Discrete Fourier transforms: torch.fft.x is the operator `fft_x`."""

from . import _C


def __getattr__(name):
    value = None if name.startswith("_") else getattr(_C, f"fft_{name}", None)
    if value is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted(name.removeprefix("fft_") for name in _C._operator_names if name.startswith("fft_"))
