"""The recorded graph: its nodes, what they save, hooks on several gradients."""

from collections import namedtuple
from contextlib import contextmanager

import rushlight as torch
from rushlight import _C
from rushlight._C import Node

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

GradientEdge = namedtuple("GradientEdge", ("node", "output_nr"))
GradientEdge.__doc__ = "Where the gradient of a tensor goes: the node that made it, and which of its results it is."


def _node_of(tensor):
    """The node that a gradient of the tensor goes to; of a leaf, the one that accumulates it."""
    if isinstance(tensor, GradientEdge):
        return tensor.node
    if tensor.grad_fn is None:
        with torch.enable_grad():
            return tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return tensor.grad_fn


def get_gradient_edge(tensor):
    """Returns the `GradientEdge` of a tensor; RuntimeError if it does not require grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_node_of(tensor), tensor.output_nr)


def increment_version(tensor):
    """Counts a change in place that autograd could not see, of a tensor or of several."""
    for t in (tensor,) if isinstance(tensor, torch.Tensor) else tensor:
        _C._increment_version(t)


class saved_tensors_hooks:
    """In a block, keeps for backward not tensors but what ``pack_hook(tensor)`` returns.

    ``unpack_hook(packed)`` must give the tensor again when backward needs it. Hooks must not change tensors in place.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """In a block, keeps what backward needs in main memory and copies it back to its device then.

    Args:
        pin_memory (bool): use pinned memory, from which copies need not be waited for.
        device_type (str): accepted for compatibility.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            if not pin_memory:
                return tensor.device, tensor.cpu()
            packed = torch.empty(tensor.size(), dtype=tensor.dtype, pin_memory=True)
            packed.copy_(tensor, non_blocking=True)
            return tensor.device, packed

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message):
    """In a block, makes the use of saved-tensor hooks an error with this message."""
    before = _C._set_saved_tensors_hooks_disabled(error_message)
    try:
        yield
    finally:
        _C._set_saved_tensors_hooks_disabled(before)


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls a hook once in each backward, for the gradients of several tensors.

    Args:
        tensors (sequence of Tensor): whose gradients.
        fn (callable): with ``mode="all"`` it gets a list with all gradients when the last of them is there, None for tensors that
            take no part in this backward; with ``mode="any"`` the first gradient.

    Returns a handle with ``remove()``.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    gathered = {}  # of each running backward

    def on_any(grad):
        task = _C._current_graph_task_id()
        if task not in gathered:
            gathered.clear()
            gathered[task] = True
            fn(grad)

    def on_one(i):
        def hook(grad):
            task = _C._current_graph_task_id()
            if task not in gathered:
                gathered[task] = [None] * len(tensors)
                _C._queue_callback(lambda: fn(gathered.pop(task)))
            gathered[task][i] = grad

        return hook

    if mode == "any":
        return _Handles(t.register_hook(on_any) for t in tensors)
    return _Handles(t.register_hook(on_one(i)) for i, t in enumerate(tensors))
