"""Automatic differentiation."""

import rushlight as torch
from rushlight import _C

from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck  # the function takes the place of its module's name

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name):
    import importlib

    if name in ("functional", "graph", "profiler", "profiler_util"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DeviceType":
        return _C._DeviceType
    if name == "Variable":
        return torch.Tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_one(value):
    """Whether this is a single tensor, or a single edge of the graph."""
    return isinstance(value, torch.Tensor) or hasattr(value, "output_nr")


def _as_inputs(inputs, caller):
    if _is_one(inputs):
        return (inputs,)
    inputs = tuple(inputs.values() if isinstance(inputs, dict) else inputs)
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return inputs


def _make_grads(outputs, grads, batched=False):
    """Checks the gradients of the outputs, and makes those that are left out."""
    if grads is None:
        grads = (None,) * len(outputs)
    elif isinstance(grads, torch.Tensor):
        grads = (grads,)
    grads = tuple(grads)
    if len(grads) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made = []
    for i, (out, grad) in enumerate(zip(outputs, grads)):
        if grad is None:
            if isinstance(out, torch.Tensor) and out.requires_grad:
                if out.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not out.is_floating_point():
                    raise RuntimeError(
                        f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
                    )
                grad = torch.ones_like(out, requires_grad=False)
        elif not isinstance(grad, torch.Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
        elif isinstance(out, torch.Tensor):
            shape = grad.shape[1:] if batched else grad.shape
            if shape != out.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of "
                    f"{out.shape}."
                    + (" With is_grads_batched=True the first dimension of the former is the batch." if batched else "")
                )
            if out.is_complex() != grad.is_complex():
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                    f"dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {out.dtype}."
                )
        made.append(grad)
    return tuple(made)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Adds the gradients of ``tensors`` to ``.grad`` of the leaves they were computed from.

    Args:
        tensors (Tensor or sequence): where to start.
        grad_tensors (Tensor or sequence, optional): the gradients to start with, of the same shapes; may be left out for
            tensors of one element.
        retain_graph (bool, optional): keep what was saved, so that backward can run again; ``create_graph`` if not given.
        create_graph (bool): record this backward too, for higher derivatives.
        inputs (Tensor, sequence or dict, optional): add to these only.

    Raises RuntimeError where a gradient is missing or has another shape, or where the graph was already freed.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    inputs = () if inputs is None else _as_inputs(inputs, "backward")
    tensors = (tensors,) if _is_one(tensors) else tuple(tensors)
    grads = _make_grads(tensors, grad_tensors)
    if retain_graph is None:
        retain_graph = create_graph
    _C._engine_run(tensors, grads, retain_graph, create_graph, inputs, True, True)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Returns the gradients of ``outputs`` with respect to ``inputs``; ``.grad`` is left alone.

    Args:
        outputs (Tensor or sequence): what to differentiate.
        inputs (Tensor, sequence or dict): with respect to what; a dict gives a dict of gradients.
        grad_outputs (Tensor or sequence, optional): the gradients to start with, of the same shapes; may be left out for
            outputs of one element.
        retain_graph (bool, optional): keep what was saved, so that it can run again; ``create_graph`` if not given.
        create_graph (bool): record this too, for higher derivatives.
        only_inputs (bool): deprecated, ignored.
        allow_unused (bool, optional): give None for inputs that took no part, instead of raising RuntimeError; False
            unless ``materialize_grads``.
        is_grads_batched (bool): ``grad_outputs`` have a first dimension more: the result is stacked over it.
        materialize_grads (bool): give zeros instead of None.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs = (outputs,) if _is_one(outputs) else tuple(outputs)
    many = _as_inputs(inputs, "grad")
    grads = _make_grads(outputs, grad_outputs, is_grads_batched)
    if retain_graph is None:
        retain_graph = create_graph
    if is_grads_batched:
        batch = next(len(g) for g in grads if g is not None)
        runs = []
        for i in range(batch):
            some = tuple(None if g is None else g[i] for g in grads)
            keep = retain_graph or i + 1 < batch
            runs.append(_C._engine_run(outputs, some, keep, create_graph, many, allow_unused, False))
        result = tuple(None if column[0] is None else torch.stack(column) for column in zip(*runs))
    else:
        result = _C._engine_run(outputs, grads, retain_graph, create_graph, many, allow_unused, False)
    if materialize_grads:
        result = tuple(
            torch.zeros_like(x, requires_grad=create_graph) if r is None else r for r, x in zip(result, many)
        )
    return dict(zip(inputs, result)) if isinstance(inputs, dict) else result
