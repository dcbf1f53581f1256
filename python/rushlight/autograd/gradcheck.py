"""Comparing what backward says with finite differences."""

import warnings
from itertools import product

import rushlight as torch

from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient is not what finite differences say."""


def _as_tuple(x):
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _differentiable(x):
    return isinstance(x, torch.Tensor) and x.requires_grad


def _outputs(func, inputs):
    return [o for o in _as_tuple(func(*inputs)) if _differentiable(o)]


def _tensors(func, inputs):
    return [o for o in _as_tuple(func(*inputs)) if isinstance(o, torch.Tensor)]


def _check_inputs(inputs):
    for i, x in enumerate(inputs):
        if not _differentiable(x):
            continue
        if x.dtype not in (torch.float64, torch.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping "
                "to be able to compute the numerical gradients correctly. You should call .contiguous on the input "
                "before passing it to gradcheck."
            )
    if not any(map(_differentiable, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _numerical(evaluate, x, eps):
    """The derivative of each output by each element of ``x``: for each output a matrix, one row for an element.

    For a complex element the real and the imaginary part are moved in turn, and the two derivatives are the parts of the
    gradient, which is PyTorch's convention for real functions of complex numbers.
    """
    data, rows = x.data, []  # a change of .data is not counted as one of x

    def slope(index, step):
        middle = data[index].clone()
        data[index] = middle - step
        low = [o.detach().clone() for o in evaluate()]
        data[index] = middle + step
        high = [o.detach().clone() for o in evaluate()]
        data[index] = middle
        for a, b in zip(low, high):
            if a.shape != b.shape or a.dtype != b.dtype:
                raise AssertionError(
                    "Expected `func` to return outputs with the same shape and dtype when inputs are perturbed at "
                    f"index {index} by {eps}, but got: {a.shape}, {a.dtype} and {b.shape}, {b.dtype}."
                )
        return [((b - a) / (2 * eps)).reshape(-1) for a, b in zip(low, high)]

    for index in product(*map(range, x.shape)):
        row = slope(index, eps)
        if x.is_complex():
            row = [torch.complex(re, im) for re, im in zip(row, slope(index, eps * 1j))]
        rows.append(row)
    return [torch.stack(column) for column in zip(*rows)]


def _analytical(output, inputs, check_grad_dtypes):
    """The same by backward from each element of one output: for each input a matrix, one row for an element of it."""
    seed = torch.zeros_like(output, requires_grad=False, memory_format=torch.contiguous_format)
    columns = [[] for _ in inputs]
    for j in range(output.numel()):
        seed.zero_()
        seed.view(-1)[j] = 1
        grads = torch.autograd.grad(output, inputs, seed, retain_graph=True, allow_unused=True)
        for x, grad, column in zip(inputs, grads, columns):
            if grad is None:
                grad = torch.zeros_like(x, requires_grad=False)
            if grad.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if check_grad_dtypes and grad.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            column.append(grad.detach().clone().reshape(-1))
    return [torch.stack(column, 1) if column else torch.zeros(x.numel(), 0) for x, column in zip(inputs, columns)]


def _close(a, b, rtol, atol):
    dtype = torch.promote_types(a.dtype, b.dtype)
    return a.numel() == 0 or torch.allclose(a.to(dtype), b.to(dtype), rtol, atol)


def _check_jacobians(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, prefix=""):
    """Compares both ways for a function with real outputs."""
    sources = [x for x in inputs if _differentiable(x)]
    outputs = _outputs(func, inputs)
    if not outputs:
        for x in sources:
            for jacobian in _numerical(lambda: _tensors(func, inputs), x, eps):
                if (jacobian != 0).any():
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    numerical = [_numerical(lambda: _outputs(func, inputs), x, eps) for x in sources]
    for i, output in enumerate(outputs):
        analytical = _analytical(output, sources, check_grad_dtypes)
        again = _analytical(output, sources, check_grad_dtypes)
        for j, (a, b) in enumerate(zip(analytical, again)):
            if a.numel() and (a - b).abs().max() > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                    f"nondeterminism was {nondet_tol}."
                )
            if sources[j].numel() == 0:
                continue
            n = numerical[j][i]
            if not _close(a, n, rtol, atol):
                raise GradcheckError(
                    f"{prefix}Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )


def _check_zero_grads(func, inputs):
    """A backward from zeros must give zeros of the inputs' dtypes and shapes."""
    outputs = _outputs(func, inputs)
    sources = [x for x in inputs if _differentiable(x)]
    if not outputs:
        return
    zeros = [torch.zeros_like(o, requires_grad=False) for o in outputs]
    for grad, x in zip(torch.autograd.grad(outputs, sources, zeros, allow_unused=True), sources):
        if grad is None:
            continue
        if (grad != 0).any():
            raise GradcheckError("backward not multiplied by grad_output")
        if grad.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if grad.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if grad.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class _Undefined(Function):
    """Lets nothing of a gradient through, not even zeros."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return None


def _check_undefined_grads(func, inputs):
    """Outputs without a gradient must count as zero: all of them together, then each of several alone."""
    sources = [x for x in inputs if _differentiable(x)]
    count = len(_outputs(func, inputs))
    cases = [set(range(count))] + [{i} for i in range(count) if count > 1]
    for undefined in cases if count else ():
        outputs = [_Undefined.apply(o) if i in undefined else o for i, o in enumerate(_outputs(func, inputs))]
        zeros = [torch.zeros_like(o, requires_grad=False) for o in outputs]
        try:
            grads = torch.autograd.grad(outputs, sources, zeros, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(g is not None and (g != 0).any() for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _check_batched_grads(func, inputs):
    """Gradients of a batch must be those of its members."""
    sources = [x for x in inputs if _differentiable(x)]
    for output in _outputs(func, inputs):
        seeds = torch.stack([torch.randn_like(output, requires_grad=False) for _ in range(2)])
        options = {"retain_graph": True, "allow_unused": True}
        batched = torch.autograd.grad(output, sources, seeds, is_grads_batched=True, **options)
        for i in range(2):
            for a, b in zip(batched, torch.autograd.grad(output, sources, seeds[i], **options)):
                if a is not None and not torch.allclose(a[i], b):
                    raise GradcheckError("gradcheck failed while testing batched gradient computation")


def _part(func, part):
    """The same function with the real, or the imaginary, part of its complex outputs."""

    def real(*inputs):
        outputs = _as_tuple(func(*inputs))
        return tuple(getattr(o, part) if isinstance(o, torch.Tensor) and o.is_complex() else o for o in outputs)

    return real


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compares the gradients of a function with finite differences, for every input that requires grad.

    Args:
        func (callable): takes tensors, returns a tensor or a tuple of them.
        inputs (Tensor or tuple): in float64 or complex128; no dimension may have stride 0.
        eps (float): how far elements are moved.
        atol, rtol (float): how close the two must be.
        raise_exception (bool): raise `GradcheckError` on a failure instead of returning False.
        nondet_tol (float): how far two runs of the same backward may differ.
        check_undefined_grad (bool): check that outputs without a gradient count as zero.
        check_grad_dtypes (bool): check that gradients have their input's dtype.
        check_batched_grad (bool): check ``is_grads_batched`` of `grad`.
        check_forward_ad, check_batched_forward_grad (bool): not there yet; NotImplementedError.
        check_backward_ad (bool): False leaves the comparison out.
        fast_mode (bool): accepted; all elements are compared, which finds whatever random directions find.
        masked (bool, optional): of sparse tensors; without effect.

    Complex outputs are checked by real and imaginary parts. Returns True if all is well.
    """
    if check_forward_ad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: forward mode is not there yet; use check_forward_ad=False")
    try:
        inputs = _as_tuple(inputs)
        _check_inputs(inputs)
        if not check_backward_ad:
            return True
        options = (eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if any(o.is_complex() for o in _tensors(func, inputs)):
            for part, name in (("imag", "imaginary"), ("real", "real")):
                prefix = f"While considering the {name} part of complex outputs only, "
                _check_jacobians(_part(func, part), inputs, *options, prefix)
        else:
            _check_jacobians(func, inputs, *options)
        if check_batched_grad:
            _check_batched_grads(func, inputs)
        _check_zero_grads(func, inputs)
        if check_undefined_grad:
            _check_undefined_grads(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Compares second derivatives with finite differences of first ones.

    Args:
        func, inputs: as for `gradcheck`.
        grad_outputs (Tensor or tuple, optional): the gradients of the outputs at which to check; random if not given.
        gen_non_contig_grad_outputs (bool): make the random ones non-contiguous.
        check_fwd_over_rev (bool): not there yet; NotImplementedError.
        check_rev_over_rev (bool): False leaves the comparison out.

    The other options are those of `gradcheck`, which it returns for the function from inputs and ``grad_outputs`` to
    gradients.
    """
    inputs = _as_tuple(inputs)
    outputs = _outputs(func, inputs)
    if grad_outputs is None:

        def random_like(o):
            dtype = o.dtype if o.is_complex() or o.is_floating_point() else torch.float64
            seed = torch.randn(*o.shape, 2, dtype=dtype, device=o.device)
            return (seed[..., 0] if gen_non_contig_grad_outputs else seed[..., 0].contiguous()).requires_grad_()

        grad_outputs = tuple(map(random_like, outputs))
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)

    def first(*arguments):
        points, seeds = arguments[:-count], arguments[-count:]
        sources = [x for x in points if _differentiable(x)]
        grads = torch.autograd.grad(_outputs(func, points), sources, seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        first,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )
