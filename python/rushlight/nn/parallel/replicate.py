"""Copies of a module on several devices, whose gradients flow into the original's parameters."""

from __future__ import annotations

import rushlight as torch

from .scatter_gather import _device

__all__ = ["replicate"]


def replicate(network, devices, detach=False):
    """A list with a copy of `network` for each device. The copies' parameters are computed from the originals (plain
    tensors, in no ``parameters()``) unless `detach`; buffers on the first device are the originals."""
    modules = list(network.modules())
    index = {module: i for i, module in enumerate(modules)}
    moved = {}

    def on(tensor, device):
        key = (id(tensor), str(device))
        if key not in moved:
            copied = tensor.to(device)
            moved[key] = copied.detach() if detach else copied
        return moved[key]

    replicas = []
    for device in map(_device, devices):
        copies = [module._replicate_for_data_parallel() for module in modules]
        for module, copied in zip(modules, copies):
            for name, child in module._modules.items():
                copied._modules[name] = None if child is None else copies[index[child]]
            for name, param in module._parameters.items():
                if param is None:
                    copied._parameters[name] = None
                else:
                    # A plain attribute: what is computed is no parameter.
                    copied.__dict__[name] = on(param, device)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    with torch.no_grad():
                        copied._buffers[name] = on(buffer, device) if buffer.requires_grad else buffer.to(device)
        replicas.append(copies[0])
    return replicas
