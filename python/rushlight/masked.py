"""Reductions and normalizations over the elements that a boolean mask selects.

`mask` broadcasts with `input`, True where an element counts; None counts all. `dim` is an int, several or None for all.
Where nothing is selected the result is the reduction's neutral value: 0 for a sum, -inf for amax, nan for a mean.
"""

import builtins

import rushlight as torch

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

_inf = float("inf")


def _lowest(dtype):
    if dtype == torch.bool:
        return False
    return -_inf if dtype.is_floating_point or dtype.is_complex else torch.iinfo(dtype).min


def _highest(dtype):
    if dtype == torch.bool:
        return True
    return _inf if dtype.is_floating_point else torch.iinfo(dtype).max


def _filled(input, mask, value, dtype=None):
    """`input` with `value` where the mask is False, of a shape that holds both."""
    if dtype is not None:
        input = input.to(dtype)
    if mask is None:
        return input
    return torch.where(mask, input, torch.tensor(value, dtype=input.dtype, device=input.device))


def _dims(dim, ndim):
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    ndim = builtins.max(ndim, 1)  # a 0-dim tensor has the dimension 0 here
    out = tuple(d + ndim if d < 0 else d for d in dims)
    for d, given in zip(out, dims):
        if not 0 <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {given})"
            )
    if len(set(out)) != len(out):
        raise RuntimeError("dim appears multiple times in the list of dims")
    return out


def _widened(input, dtype):
    """The dtype in which sums and products of small integers are taken."""
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        return torch.int64
    return dtype


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the selected elements."""
    x = _filled(input, mask, 0, _widened(input, dtype))
    dims = _dims(dim, x.dim())
    return x.sum(dims, keepdim) if dims else x.clone()


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the selected elements."""
    x = _filled(input, mask, 1, _widened(input, dtype))
    for d in sorted(_dims(dim, x.dim()), reverse=True):
        x = x.prod(d, keepdim)
    return x


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums of the selected elements along `dim`."""
    return _filled(input, mask, 0, dtype).cumsum(dim, dtype=dtype or input.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products of the selected elements along `dim`."""
    return _filled(input, mask, 1, dtype).cumprod(dim, dtype=dtype or input.dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest selected element."""
    x = _filled(input, mask, _lowest(dtype or input.dtype), dtype)
    return x.amax(_dims(dim, x.dim()), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest selected element."""
    x = _filled(input, mask, _highest(dtype or input.dtype), dtype)
    return x.amin(_dims(dim, x.dim()), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the largest selected element is, along `dim` or in the flattened tensor; in the dtype of `input`."""
    return _filled(input, mask, _lowest(dtype or input.dtype), dtype).argmax(dim, keepdim).to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the smallest selected element is, along `dim` or in the flattened tensor; in the dtype of `input`."""
    return _filled(input, mask, _highest(dtype or input.dtype), dtype).argmin(dim, keepdim).to(dtype or input.dtype)


def _count(input, mask, dim, keepdim):
    selected = torch.ones(input.shape, dtype=torch.int64, device=input.device)
    return sum(selected, dim, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the selected elements."""
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.float32
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, mask, dim, keepdim)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the selected elements along `dim`."""
    dtype = input.dtype if dtype is None else dtype
    if not dtype.is_floating_point:
        dtype = torch.float32
    x = _filled(input, mask, float("nan"), dtype)
    return x.nanmedian(dim, keepdim).values


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the selected elements: squares are divided by their count less `correction` (1 by default)."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of 'unbiased' and 'correction' can be specified")
    correction = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.float32
    centre = mean(input, dim, keepdim=True, dtype=dtype, mask=mask)
    deviation = input.to(dtype) - centre
    squares = (deviation * deviation.conj()).real if dtype.is_complex else deviation * deviation
    total = sum(squares, dim, keepdim=keepdim, mask=mask)
    return (total / torch.clamp_min(_count(input, mask, dim, keepdim) - correction, 0)).to(dtype)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The square root of var()."""
    return torch.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the selected elements."""
    x = _filled(input, mask, _inf if ord < 0 else 0.0, dtype)
    return torch.linalg.vector_norm(x, ord, _dims(dim, x.dim()), keepdim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Divides by the norm of the selected elements along `dim`, or by eps if that is larger."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    x = _filled(input, mask, 0, dtype)
    return x / torch.clamp_min(length, eps)


def softmax(input, dim, *, dtype=None, mask=None):
    """softmax over the selected elements; what is not selected gets 0 (nan where nothing is)."""
    return torch.softmax(_filled(input, mask, -_inf, dtype), dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log_softmax over the selected elements; what is not selected gets -inf."""
    return torch.log_softmax(_filled(input, mask, -_inf, dtype), dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """softmax of -input."""
    return torch.softmax(-_filled(input, mask, _inf, dtype), dim)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log of the sum of exp of the selected elements."""
    dtype = input.dtype if dtype is None else dtype
    x = _filled(input, mask, _lowest(dtype), dtype)
    return torch.logsumexp(x, _dims(dim, x.dim()), keepdim).to(dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), where what a mask does not select counts as exp = 0."""
    return torch.logaddexp(_filled(input, input_mask, -_inf, dtype), _filled(other, other_mask, -_inf, dtype))
