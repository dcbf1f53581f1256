"""Random tensors for tests."""

import math
from collections.abc import Sequence

import rushlight as torch

__all__ = ["make_tensor"]


def _bounds(low, high, dtype, least, beyond, default_low, default_high):
    """The interval to draw from, cut to what the dtype can hold."""
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low > high or (low == high and not (dtype.is_floating_point or dtype.is_complex)):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= beyond:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {beyond})"
        )
    return min(max(low, least), beyond), min(max(high, least), beyond)


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Makes a tensor of random values in ``[low, high)``.

    Args:
        shape (ints or a sequence): the sizes.
        dtype, device: of the result.
        low, high (number, optional): default to -9 and 10 for integers (0 and 2 for bool), -9 and 9 for the others; for
            complex dtypes they bound both parts.
        requires_grad (bool): floating and complex dtypes only.
        noncontiguous (bool): every other element of a larger tensor; not together with ``memory_format``.
        exclude_zero (bool): replace zeros by the least positive value.

    Raises ValueError for an empty or impossible interval.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    shape = tuple(shape)
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and not inexact:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    noncontiguous = noncontiguous and math.prod(shape) > 1
    if noncontiguous:
        shape = (*shape[:-1], 2 * shape[-1])
    if inexact:
        info = torch.finfo(dtype)
        low, high = _bounds(low, high, dtype, info.min, info.max, -9, 9)
        result = torch.empty(shape, dtype=dtype, device=device)
        parts = torch.view_as_real(result) if dtype.is_complex else result
        if high - low >= info.max:  # wider than what uniform_ can take
            parts.uniform_(low / 2, high / 2).mul_(2)
        else:
            parts.uniform_(low, high)
    else:
        if dtype == torch.bool:
            least, beyond, defaults = 0, 2, (0, 2)
        else:
            info = torch.iinfo(dtype)
            least, beyond, defaults = info.min, info.max + (dtype != torch.int64), (-9, 10)
        low, high = map(math.ceil, _bounds(low, high, dtype, least, beyond, *defaults))
        result = torch.randint(low, high, shape, dtype=dtype, device=device)
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = torch.finfo(dtype).tiny if inexact else 1
    return result.requires_grad_(requires_grad) if inexact else result
