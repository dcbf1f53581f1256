"""Ways to fill a tensor with its first values. All work in place, record no gradients and return the tensor; where they
draw random numbers, `generator` is the generator they draw from (None: the default one)."""

from __future__ import annotations

import math
import warnings

import rushlight as torch

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity, param=None):
    """The factor by which to scale weights before a nonlinearity so that activations keep their variance.

    1 for linear maps, convolutions and "sigmoid", 5/3 for "tanh", sqrt(2) for "relu", 3/4 for "selu" and
    sqrt(2 / (1 + slope^2)) for "leaky_relu", whose slope is `param` (0.01). ValueError for another name.
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fills the tensor from the uniform distribution on [a, b)."""
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fills the tensor from the normal distribution."""
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fills the tensor from the normal distribution cut off below `a` and above `b`.

    By rejection: from the normal distribution itself where at least 30 % of it lies within, and else from the uniform
    distribution on [a, b], accepted with the density's ratio to its peak.
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def below(x):
        return (1 + math.erf(x / math.sqrt(2))) / 2

    with torch.no_grad():
        if below((b - mean) / std) - below((a - mean) / std) > 0.3:
            low, high = (torch.tensor(bound, dtype=tensor.dtype).item() for bound in (a, b))
            result = tensor.normal_(mean, std, generator=generator)
            while (outside := (result < low) | (result > high)).any():
                result = torch.where(outside, torch.empty_like(result).normal_(mean, std, generator=generator), result)
        else:
            peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

            def rejected(candidates):
                log_density = candidates.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
                return torch.empty_like(tensor).uniform_(generator=generator).log_().gt(log_density)

            result = tensor.uniform_(a, b, generator=generator)
            pending = rejected(result)
            while pending.any():
                candidates = torch.empty_like(tensor).uniform_(a, b, generator=generator)
                result = torch.where(pending, candidates, result)
                pending = torch.where(pending, rejected(candidates), pending)
        return tensor if result is tensor else tensor.copy_(result)


def constant_(tensor, val):
    """Fills the tensor with `val`."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fills the tensor with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fills the tensor with zeros."""
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Makes a matrix the identity. ValueError for another number of dimensions."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor, groups=1):
    """Makes a convolution's weight pass as many channels of each group through unchanged as there are.

    The tensor has 3, 4 or 5 dimensions and its first is divisible by `groups`; ValueError otherwise.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    per_group = tensor.size(0) // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with torch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs reach one output, and how many outputs one input reaches, for a weight of 2 or more dimensions."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform in ±gain * sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with deviation gain * sqrt(2 / (fan_in + fan_out)). Source: Glorot and Bengio 2010."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform in ±gain * sqrt(3 / fan), with the gain of `nonlinearity` (`a`: leaky_relu's slope) and `mode` saying which
    fan. Source: He et al. 2015, arXiv:1502.01852."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with deviation gain / sqrt(fan), with the gain of `nonlinearity` (`a`: leaky_relu's slope) and `mode` saying
    which fan. Source: He et al. 2015, arXiv:1502.01852."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix times `gain`; dimensions after the first are flattened. ValueError for fewer than 2.

    Source: Saxe et al. 2013, arXiv:1312.6120.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with torch.no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = torch.linalg.qr(drawn.t() if rows < columns else drawn)
        q = q * r.diagonal().sign()  # without it the distribution would not be uniform
        tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Makes each column of a matrix zero in the share `sparsity` of its rows, and normal with deviation `std` elsewhere.

    Source: Martens 2010. ValueError for another number of dimensions.
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor


def _former(function):
    """The function under the name it had before it ended in an underscore, with a warning."""

    def former(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{function.__name__[:-1]}` is now deprecated in favor of `nn.init.{function.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    former.__name__ = former.__qualname__ = function.__name__[:-1]
    former.__doc__ = f"The former name of ``{function.__name__}``."
    return former


uniform = _former(uniform_)
normal = _former(normal_)
constant = _former(constant_)
eye = _former(eye_)
dirac = _former(dirac_)
xavier_uniform = _former(xavier_uniform_)
xavier_normal = _former(xavier_normal_)
kaiming_uniform = _former(kaiming_uniform_)
kaiming_normal = _former(kaiming_normal_)
orthogonal = _former(orthogonal_)
sparse = _former(sparse_)
