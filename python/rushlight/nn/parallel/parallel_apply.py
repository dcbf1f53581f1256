"""Calling several modules at once, each in a thread."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import rushlight as torch

from .scatter_gather import _device

__all__ = ["parallel_apply"]


def _first_tensor(value):
    if isinstance(value, torch.Tensor):
        return value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        found = _first_tensor(item)
        if found is not None:
            return found
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The list of ``module(*inputs[i], **kwargs_tup[i])``, computed at the same time, each on its device (by default that
    of its first tensor). An exception in one of them is raised here."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    devices = devices or [None] * len(modules)
    results = [None] * len(modules)
    grad_enabled = torch.is_grad_enabled()
    # A thread begins with default streams and without autocast; its work is to follow what this one has asked for.
    streams = [torch.cuda.current_stream(index) for index in range(torch.cuda.device_count())]
    autocast_type = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None

    def run(i):
        device = devices[i]
        if device is None:
            tensor = _first_tensor(inputs[i])
            device = "cpu" if tensor is None else tensor.device
        device = _device(device)
        arguments = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            autocast = nullcontext() if autocast_type is None else torch.autocast("cuda", dtype=autocast_type)
            with torch.set_grad_enabled(grad_enabled), autocast:
                for stream in streams:
                    torch.cuda.set_stream(stream)
                if device.type == "cuda":
                    with torch.cuda.device(device):
                        results[i] = modules[i](*arguments, **kwargs_tup[i])
                else:
                    results[i] = modules[i](*arguments, **kwargs_tup[i])
        except Exception as error:
            results[i] = error

    if len(modules) == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
