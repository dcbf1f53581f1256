"""Products with Jacobians and Hessians, and the matrices themselves, of functions of tensors."""

import rushlight as torch

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value, what, caller):
    """The value as a tuple of tensors, and whether it was one."""
    is_tuple = isinstance(value, tuple)
    for i, element in enumerate(value if is_tuple else (value,)):
        if not isinstance(element, torch.Tensor):
            where = f"the value at index {i}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but {where} has type "
                f"{type(element)}."
            )
    return is_tuple, value if is_tuple else (value,)


def _leaves(tensors, create_graph, require):
    """Tensors to differentiate with respect to: still connected to their history if that is to be differentiated too."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(require) for t in tensors
    )


def _finish(values, create_graph, is_tuple):
    if not create_graph:
        values = tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


def _outputs_of(func, inputs, caller, strict):
    is_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", caller)
    if strict:
        for i, output in enumerate(outputs):
            if not output.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be computed "
                    "in a differentiable manner from the input when running in strict mode."
                )
    return is_tuple, outputs


def _vector(v, like, is_tuple, create_graph, caller, missing):
    """Checks the vector of a product; None stands for the only possible one."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {missing}.")
        return None
    v = _leaves(_as_tuple(v, "v", caller)[1], create_graph, False)
    if len(v) != len(like):
        if not is_tuple:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (mine, other) in enumerate(zip(v, like)):
        if mine.shape != other.shape:
            entry = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.size()} but got {mine.size()}.")
    return v


def _grad(outputs, inputs, grads=None, create_graph=False, retain_graph=None):
    """As `autograd.grad`, with None where nothing depends on an input, and outputs that need no gradient left out."""
    grads = (None,) * len(outputs) if grads is None else grads
    pairs = [(o, g) for o, g in zip(outputs, grads) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outputs, grads = zip(*pairs)
    return torch.autograd.grad(
        outputs, inputs, grads, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True
    )


def _zeros_for_none(grads, like, strict, create_graph, what, of="input"):
    """Zeros where there is no gradient; with ``strict`` that is an error, as is one that cannot be differentiated."""
    filled = []
    for i, (grad, x) in enumerate(zip(grads, like)):
        if strict and grad is None:
            raise RuntimeError(f"{what} is independent of {of} {i}. This is not allowed in strict mode.")
        if strict and create_graph and not grad.requires_grad:
            raise RuntimeError(
                f"{what} is independent of {of} {i}. This is not allowed in strict mode when create_graph=True."
            )
        filled.append(torch.zeros_like(x, requires_grad=False) if grad is None else grad)
    return tuple(filled)


_THE_OUTPUT = "The output of the user-provided function"
_ONE_OUTPUT = "the user-provided function returns a single Tensor with a single element"
_ONE_INPUT = "the input to the user-provided function is a single Tensor with a single element"


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of a vector with the Jacobian.

    Args:
        func (callable): takes tensors, returns a tensor or a tuple of them.
        inputs (Tensor or tuple): where.
        v (Tensor or tuple, optional): shaped as the outputs; may be left out for one output of one element.
        create_graph (bool): let the result be differentiated.
        strict (bool): raise RuntimeError where an output does not depend on an input, instead of giving zeros.

    Returns the outputs and the product, which is shaped as the inputs.
    """
    with torch.enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _leaves(inputs, create_graph, True)
        outputs_tuple, outputs = _outputs_of(func, inputs, "vjp", strict)
        v = _vector(v, outputs, outputs_tuple, create_graph, "vjp", _ONE_OUTPUT)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        product = _grad(outputs, inputs, v, create_graph)
        product = _zeros_for_none(product, inputs, strict, create_graph, _THE_OUTPUT)
    return _finish(outputs, create_graph, outputs_tuple), _finish(product, create_graph, inputs_tuple)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of the Jacobian with a vector, by differentiating the other product by its vector.

    Args:
        v (Tensor or tuple, optional): shaped as the inputs; may be left out for one input of one element.
        func, inputs, create_graph, strict: as for `vjp`.

    Returns the outputs and the product, which is shaped as the outputs.
    """
    with torch.enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _leaves(inputs, create_graph, True)
        v = _vector(v, inputs, inputs_tuple, create_graph, "jvp", _ONE_INPUT)
        outputs_tuple, outputs = _outputs_of(func, inputs, "jvp", strict)
        weights = tuple(torch.zeros_like(o, requires_grad=True) for o in outputs)
        back = _zeros_for_none(_grad(outputs, inputs, weights, True), inputs, strict, False, _THE_OUTPUT)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        product = _grad(back, weights, v, create_graph)
        product = _zeros_for_none(
            product, outputs, strict, create_graph, "The gradient with respect to the input", "output"
        )
    return _finish(outputs, create_graph, outputs_tuple), _finish(product, create_graph, outputs_tuple)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: for each output and each input a tensor of the output's shape followed by the input's.

    Args:
        func, inputs, create_graph, strict: as for `vjp`.
        vectorize (bool): accepted; not together with ``strict``.
        strategy (str): "reverse-mode"; "forward-mode" raises NotImplementedError.

    Returns a tensor, a tuple, or a tuple of tuples (outputs first), as outputs and inputs are tuples.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode":
        raise NotImplementedError('jacobian: strategy="forward-mode" is not there yet; use "reverse-mode"')
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    with torch.enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _leaves(inputs, create_graph, True)
        outputs_tuple, outputs = _outputs_of(func, inputs, "jacobian", strict)
        result = []
        for i, output in enumerate(outputs):
            rows = []
            for element in output.reshape(-1):
                grads = _grad((element,), inputs, None, create_graph, True)
                what = f"Output {i} of the user-provided function"
                rows.append(_zeros_for_none(grads, inputs, strict, create_graph, what))
            columns = zip(*rows) if rows else [()] * len(inputs)
            blocks = [
                (torch.stack(column) if column else x.new_zeros((0, *x.shape))).view(output.shape + x.shape)
                for column, x in zip(columns, inputs)
            ]
            result.append(_finish(tuple(blocks), create_graph, inputs_tuple))
    return tuple(result) if outputs_tuple else result[0]


def _scalar_output(func, inputs, caller, strict):
    is_tuple, outputs = _outputs_of(func, inputs, caller, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {caller} should contain a single element")
    return outputs[0]


def _gradient(output, inputs, strict):
    """The gradient of a scalar, itself to be differentiated."""
    grads = _grad((output,), inputs, None, True)
    if strict:
        _zeros_for_none(grads, inputs, True, True, "The jacobian of the user-provided function")
    return grads


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function with one output of one element: for each two inputs a tensor of both shapes.

    The options are those of `jacobian`, of which it is two.
    """
    inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*points):
        return jacobian(
            lambda *x: _scalar_output(func, x, "hessian", strict).reshape(()), points, create_graph=True, strict=strict
        )

    result = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if inputs_tuple else result[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of a vector with the Hessian of a function with one output of one element.

    Args:
        v (Tensor or tuple, optional): shaped as the inputs; may be left out for one input of one element.
        func, inputs, create_graph, strict: as for `vjp`.

    Returns the output and the product, which is shaped as the inputs.
    """
    with torch.enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vhp")
        inputs = _leaves(inputs, create_graph, True)
        v = _vector(v, inputs, inputs_tuple, create_graph, "vhp", _ONE_INPUT)
        output = _scalar_output(func, inputs, "vhp", strict)
        gradient = _gradient(output, inputs, strict)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        product = _grad(gradient, inputs, v, create_graph)
        product = _zeros_for_none(product, inputs, strict, create_graph, "The jacobian of the user-provided function")
    return _finish((output,), create_graph, False), _finish(product, create_graph, inputs_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of the Hessian with a vector. It is `vhp` by another way, slower; the arguments are the same."""
    with torch.enable_grad():
        inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hvp")
        inputs = _leaves(inputs, create_graph, True)
        v = _vector(v, inputs, inputs_tuple, create_graph, "hvp", _ONE_INPUT)
        output = _scalar_output(func, inputs, "hvp", strict)
        gradient = _gradient(output, inputs, strict)
        weights = tuple(torch.zeros_like(x, requires_grad=True) for x in inputs)
        back = _grad(gradient, inputs, weights, True)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        product = _grad(back, weights, v, create_graph)
        product = _zeros_for_none(
            product, inputs, strict, create_graph, "The hessian of the user-provided function", "entry"
        )
    return _finish((output,), create_graph, False), _finish(product, create_graph, inputs_tuple)
