"""One process, several GPUs: each gets a part of the batch."""

from __future__ import annotations

import rushlight as torch

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import _device, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _index(device):
    """A GPU's number; None for another device."""
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "cuda":
        return None
    return torch.cuda.current_device() if device.index is None else device.index


class DataParallel(Module):
    """Splits each batch over GPUs, calls a copy of the module on each at the same time and joins the results.

    Arguments: `module`; `device_ids`: the GPUs (all by default), whose first holds the module's parameters and buffers;
    `output_device`: where results are joined (by default the first); `dim`: the batch dimension. Gradients are summed into
    the module's own parameters. Without a GPU the module is called as it is. RuntimeError where the module is elsewhere.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        if device_ids is None:
            device_ids = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
        self.device_ids = [_index(device) for device in device_ids]
        if self.device_ids:
            self.output_device = _index(self.device_ids[0] if output_device is None else output_device)
            self.src_device_obj = _device(self.device_ids[0])
            if len(self.device_ids) == 1:
                self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but "
                    f"found one of them on device: {tensor.device}"
                )
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        if not inputs:
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = self.replicate(self.module, self.device_ids[: len(inputs)])
        outputs = self.parallel_apply(replicas, inputs, kwargs)
        return self.gather(outputs, self.output_device)

    def replicate(self, module, device_ids):
        """The copies of a module; see ``nn.parallel.replicate``."""
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments for each GPU; see ``nn.parallel.scatter``."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """The results of all copies; see ``nn.parallel.parallel_apply``."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        """The joined results; see ``nn.parallel.gather``."""
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """``DataParallel(module, device_ids, output_device, dim)`` called once with `inputs` (a tuple or one argument)."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
