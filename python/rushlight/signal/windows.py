"""Window functions.

Each takes the number of points and `sym`: True for a symmetric window, False for a periodic one (one point more is
computed and the last dropped), as filters and spectra want. The result is 1-d, of a floating dtype.
"""

import math

import rushlight as torch

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _options(name, M, dtype, layout, device, requires_grad):
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dict(dtype=dtype, device=device, requires_grad=requires_grad)


def _grid(first, last, M, options):
    return torch.linspace(first, last, M, **options)


def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False
):
    """exp(-|n - center| / tau). `center` is the middle; another one is for periodic windows only."""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return torch.empty(0, **options)
    center = (M - 1 + (not sym and M > 1)) / 2 if center is None else center
    n = _grid(-center / tau, (-center + M - 1) / tau, M, options)
    return torch.exp(-torch.abs(n))


def cosine(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Half a period of the sine, at the middle of M steps."""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return torch.empty(0, **options)
    step = math.pi / (M + (not sym and M > 1))
    return torch.sin(_grid(step / 2, step / 2 + (M - 1) * step, M, options))


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """exp(-(n / std)**2 / 2) about the middle."""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return torch.empty(0, **options)
    start = -(M - 1 + (not sym and M > 1)) / 2
    step = 1 / (std * math.sqrt(2))
    return torch.exp(-(_grid(start * step, (start + M - 1) * step, M, options) ** 2))


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """i0(beta * sqrt(1 - x**2)) / i0(beta) for x from -1 to 1 (Kaiser)."""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return torch.ones(M, **options)
    start = -beta
    step = 2 * beta / (M - 1 + (not sym and M > 1))
    k = _grid(start, min(beta, start + (M - 1) * step), M, options)
    top = torch.tensor(float(beta), dtype=options["dtype"], device=device)
    return torch.i0(torch.sqrt(top * top - k * k)) / torch.i0(top)


def general_cosine(M, *, a, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """The sum of a[k] * (-1)**k * cos(2 pi k n / (M - 1))."""
    options = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    a = list(a)
    if not a:
        raise ValueError("Coefficients cannot be empty")
    if M < 2:
        return torch.ones(M, **options)
    step = 2 * math.pi / (M - 1 + (not sym and M > 1))
    n = _grid(0, (M - 1) * step, M, options)
    signed = torch.tensor([(-1) ** k * value for k, value in enumerate(a)], dtype=options["dtype"], device=device)
    k = torch.arange(len(a), dtype=options["dtype"], device=device)
    return (signed.unsqueeze(-1) * torch.cos(k.unsqueeze(-1) * n)).sum(0)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) * cos(2 pi n / (M - 1))."""
    return general_cosine(
        M, a=[alpha, 1 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """The raised cosine with 0.54 and 0.46."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """The raised cosine with 0.5 and 0.5: it ends at zero."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Three cosine terms: 0.42, 0.5, 0.08."""
    _options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """Four cosine terms, after Nuttall 1981."""
    return general_cosine(
        M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def bartlett(M, *, sym=True, dtype=None, layout=torch.strided, device=None, requires_grad=False):
    """A triangle that begins and ends at zero."""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return torch.ones(M, **options)
    step = 2 / (M - 1 + (not sym and M > 1))
    return 1 - torch.abs(_grid(-1, -1 + (M - 1) * step, M, options))
