"""The functions behind the layers. Where an operator of the C++ core has the very signature, it *is* the function here
(`_NATIVE`); a Python function stands only where the signature says more than an operator's: `inplace`, `return_indices`,
the older `size_average` and `reduce`. What a function computes is described at its layer in ``nn``."""

from __future__ import annotations

import math
import warnings

import rushlight as torch
from rushlight import _C

# Operators that are reachable here under their own names, resolved when first asked for.
_NATIVE = frozenset(
    """linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
    relu_ elu_ selu_ celu_ leaky_relu_ hardtanh_ rrelu_ threshold_ gelu prelu hardshrink softshrink softplus
    layer_norm rms_norm one_hot
    cosine_similarity pairwise_distance pdist
    pad pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle grid_sample affine_grid
    scaled_dot_product_attention""".split()
)


def __getattr__(name):
    if name == "logsigmoid":
        value = _C.log_sigmoid
    elif name in _NATIVE and hasattr(_C, name):
        value = getattr(_C, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), "logsigmoid", *(name for name in _NATIVE if hasattr(_C, name))})


# ---- activations ----


def relu(input, inplace=False):
    """``max(input, 0)``; see ``nn.ReLU``."""
    return _C.relu_(input) if inplace else _C.relu(input)


def relu6(input, inplace=False):
    """``min(max(input, 0), 6)``; see ``nn.ReLU6``."""
    return _C.relu6_(input) if inplace else _C.relu6(input)


def elu(input, alpha=1.0, inplace=False):
    """The exponential linear unit; see ``nn.ELU``."""
    return _C.elu_(input, alpha) if inplace else _C.elu(input, alpha)


def selu(input, inplace=False):
    """The scaled exponential linear unit; see ``nn.SELU``."""
    return _C.selu_(input) if inplace else _C.selu(input)


def celu(input, alpha=1.0, inplace=False):
    """The continuously differentiable exponential linear unit; see ``nn.CELU``."""
    return _C.celu_(input, alpha) if inplace else _C.celu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``max(input, 0) + negative_slope * min(input, 0)``; see ``nn.LeakyReLU``."""
    return _C.leaky_relu_(input, negative_slope) if inplace else _C.leaky_relu(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU with a slope drawn anew for each negative element when training; see ``nn.RReLU``."""
    return (_C.rrelu_ if inplace else _C.rrelu)(input, lower, upper, training)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """`input` limited to [min_val, max_val]; ValueError where `min_val` is the greater. See ``nn.Hardtanh``."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_C.hardtanh_ if inplace else _C.hardtanh)(input, min_val, max_val)


def hardsigmoid(input, inplace=False):
    """``relu6(input + 3) / 6``; see ``nn.Hardsigmoid``."""
    return _C.hardsigmoid_(input) if inplace else _C.hardsigmoid(input)


def hardswish(input, inplace=False):
    """``input * relu6(input + 3) / 6``; see ``nn.Hardswish``."""
    return _C.hardswish_(input) if inplace else _C.hardswish(input)


def silu(input, inplace=False):
    """``input * sigmoid(input)``; see ``nn.SiLU``."""
    return _C.silu_(input) if inplace else _C.silu(input)


def mish(input, inplace=False):
    """``input * tanh(softplus(input))``; see ``nn.Mish``."""
    return _C.mish_(input) if inplace else _C.mish(input)


def threshold(input, threshold, value, inplace=False):
    """`input` where it is above `threshold`, and `value` elsewhere; see ``nn.Threshold``."""
    return (_C.threshold_ if inplace else _C.threshold)(input, threshold, value)


def glu(input, dim=-1):
    """The first half along `dim` times the sigmoid of the second; RuntimeError for a 0-dimensional tensor. See ``nn.GLU``."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _C.glu(input, dim)


def sigmoid(input):
    """``1 / (1 + exp(-input))``; see ``nn.Sigmoid``."""
    return _C.sigmoid(input)


def tanh(input):
    """The hyperbolic tangent; see ``nn.Tanh``."""
    return _C.tanh(input)


def tanhshrink(input):
    """``input - tanh(input)``; see ``nn.Tanhshrink``."""
    return input - input.tanh()


def softsign(input):
    """``input / (1 + |input|)``; see ``nn.Softsign``."""
    return input / (input.abs() + 1)


def _softmax_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """``exp(input) / sum(exp(input), dim)``, computed in `dtype` where one is given; see ``nn.Softmax``."""
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return _C.softmax(input, dim) if dtype is None else _C.softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """``softmax(-input)``; see ``nn.Softmin``."""
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return _C.softmax(-input, dim) if dtype is None else _C.softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of the softmax, stable for large values; see ``nn.LogSoftmax``."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return _C.log_softmax(input, dim) if dtype is None else _C.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples from the Gumbel-softmax distribution with temperature `tau`, differentiable in `logits`.

    `hard`: the result is one-hot, with the gradient of the soft sample. Shape: that of `logits`, which are unnormalized
    log-probabilities along `dim`. Source: Jang et al. 2016, arXiv:1611.00712.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


# ---- dropout ----


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes each element with probability `p` and divides the others by ``1 - p``; nothing when not `training`.

    ValueError for `p` outside [0, 1]. Source: Hinton et al. 2012, arXiv:1207.0580.
    """
    _check_probability(p)
    return (_C.dropout_ if inplace else _C.dropout)(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps the mean and variance of self-normalizing activations; see ``nn.AlphaDropout``."""
    _check_probability(p)
    return (_C.alpha_dropout_ if inplace else _C.alpha_dropout)(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """``alpha_dropout`` of whole channels; see ``nn.FeatureAlphaDropout``."""
    _check_probability(p)
    return (_C.feature_alpha_dropout_ if inplace else _C.feature_alpha_dropout)(input, p, training)


def _channel_dropout(input, p, training, inplace, batched):
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = (_C.feature_dropout_ if inplace else _C.feature_dropout)(input, p, training)
    if not batched:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def _warn_dropout_dims(name, dims, accepted):
    warnings.warn(
        f"{name}: Received a {dims}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. It provides channel-wise dropout on {accepted} inputs; to silence this warning, use dropout.",
        stacklevel=3,
    )


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of an input (N, C, L) or (C, L); RuntimeError for another number of dimensions."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _channel_dropout(input, p, training, inplace, dims == 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of an input (N, C, H, W); one of 3 dimensions is taken as (N, C, L), with a warning."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (3, 4):
        _warn_dropout_dims("dropout2d", dims, "3D or 4D")
    if dims == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, True)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    dims = input.dim()
    if dims not in (4, 5):
        _warn_dropout_dims("dropout3d", dims, "4D or 5D")
    return _channel_dropout(input, p, training, inplace, dims == 5)


# ---- pooling ----


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool1d`` and the positions of the maxima."""
    return _C.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool2d`` and the positions of the maxima, in the flattened plane."""
    return _C.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool3d`` and the positions of the maxima, in the flattened volume."""
    return _C.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window; with `return_indices` also where it is. See ``nn.MaxPool1d``."""
    pool = _C.max_pool1d_with_indices if return_indices else _C.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window; with `return_indices` also where it is. See ``nn.MaxPool2d``."""
    pool = _C.max_pool2d_with_indices if return_indices else _C.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window; with `return_indices` also where it is. See ``nn.MaxPool3d``."""
    pool = _C.max_pool3d_with_indices if return_indices else _C.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def _tuple(value, n):
    """One value n times, or the n values of a sequence."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _kept_sizes(output_size, input, dims):
    """`output_size` with the input's own size where it says None."""
    if isinstance(output_size, int) or None not in _tuple(output_size, dims):
        return output_size
    if len(input.shape) <= dims:
        raise ValueError(
            f"Input dimension should be at least {dims + 1} for an output size of {dims} elements, "
            f"but got {len(input.shape)}"
        )
    return [own if size is None else size for size, own in zip(_tuple(output_size, dims), input.shape[-dims:])]


def adaptive_avg_pool2d(input, output_size):
    """Averages over windows chosen so that the result has `output_size` (None: the input's). See ``nn.AdaptiveAvgPool2d``."""
    return _C.adaptive_avg_pool2d(input, _kept_sizes(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    """Averages over windows chosen so that the result has `output_size` (None: the input's). See ``nn.AdaptiveAvgPool3d``."""
    return _C.adaptive_avg_pool3d(input, _kept_sizes(output_size, input, 3))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool1d`` and the positions of the maxima."""
    return _C.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool2d`` and the positions of the maxima, in the flattened plane."""
    return _C.adaptive_max_pool2d(input, _kept_sizes(output_size, input, 2))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool3d`` and the positions of the maxima, in the flattened volume."""
    return _C.adaptive_max_pool3d(input, _kept_sizes(output_size, input, 3))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maxima of windows chosen so that the result has `output_size`. See ``nn.AdaptiveMaxPool1d``."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maxima of windows chosen so that the result has `output_size` (None: the input's). See ``nn.AdaptiveMaxPool2d``."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The maxima of windows chosen so that the result has `output_size` (None: the input's). See ``nn.AdaptiveMaxPool3d``."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


def _fractional_max_pool(pool, dims, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = _tuple(output_ratio, dims)
        if len(ratios) != dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-dims:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        samples = torch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    return pool(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """``fractional_max_pool2d`` and the positions of the maxima, in the flattened plane."""
    return _fractional_max_pool(
        _C.fractional_max_pool2d, 2, input, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """``fractional_max_pool3d`` and the positions of the maxima, in the flattened volume."""
    return _fractional_max_pool(
        _C.fractional_max_pool3d, 3, input, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima of randomly placed windows. See ``nn.FractionalMaxPool2d``."""
    result = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
    )
    return result if return_indices else result[0]


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima of randomly placed windows. See ``nn.FractionalMaxPool3d``."""
    result = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
    )
    return result if return_indices else result[0]


def _unpool_arguments(dims, input, kernel_size, stride, padding, output_size):
    """(stride, padding, output size) of an unpooling; ValueError for an output size that no such pooling leads from."""
    kernel_size = _tuple(kernel_size, dims)
    stride = kernel_size if stride is None else _tuple(stride, dims)
    padding = _tuple(padding, dims)
    default = [
        (size - 1) * step + kernel - 2 * pad
        for size, step, kernel, pad in zip(input.shape[-dims:], stride, kernel_size, padding)
    ]
    if output_size is None:
        output_size = default
    else:
        output_size = list(output_size)[2:] if len(output_size) == dims + 2 else list(output_size)
        if len(output_size) != dims:
            raise ValueError(
                f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
                f"'{len(output_size)}'"
            )
        for d in range(dims):
            low, high = default[d] - stride[d], default[d] + stride[d]
            if not low < output_size[d] < high:
                raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    for d in range(dims):
        if output_size[d] < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, "
                f"but got output_size[{d}]={output_size[d]}"
            )
    return stride, padding, output_size


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each value back where `indices` says that ``max_pool1d`` took it from, zeros elsewhere. See ``nn.MaxUnpool1d``."""
    _, _, size = _unpool_arguments(1, input, kernel_size, stride, padding, output_size)
    return _C.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each value back where `indices` says that ``max_pool2d`` took it from, zeros elsewhere. See ``nn.MaxUnpool2d``."""
    _, _, size = _unpool_arguments(2, input, kernel_size, stride, padding, output_size)
    return _C.max_unpool2d(input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each value back where `indices` says that ``max_pool3d`` took it from, zeros elsewhere. See ``nn.MaxUnpool3d``."""
    stride, padding, size = _unpool_arguments(3, input, kernel_size, stride, padding, output_size)
    return _C.max_unpool3d(input, indices, size, stride, padding)


def _lp_pool(dims, avg_pool, max_pool, input, norm_type, kernel_size, stride, ceil_mode):
    if norm_type == 0:
        raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
    if norm_type == math.inf:
        return max_pool(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf:
        return -max_pool(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    mean = avg_pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    # The mean is negative only for odd powers, whose root is not taken: zero, as relu leaves it.
    return (mean.sign() * mean.abs().relu()).mul(math.prod(_tuple(kernel_size, dims))).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The `norm_type`-norm of each window; see ``nn.LPPool1d``."""
    return _lp_pool(1, _C.avg_pool1d, _C.max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The `norm_type`-norm of each window; see ``nn.LPPool2d``."""
    return _lp_pool(2, _C.avg_pool2d, _C.max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The `norm_type`-norm of each window; see ``nn.LPPool3d``."""
    return _lp_pool(3, _C.avg_pool3d, _C.max_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


# ---- normalization ----


def _check_batch(shape):
    """ValueError where a channel has a single value: there is no variance to divide by."""
    if math.prod(shape[2:]) * shape[0] == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Normalizes each channel over the batch, or with the running statistics when not `training`; see
    ``nn.BatchNorm2d``. ValueError where a channel has a single value in training, or for an `eps` out of range."""
    if training:
        _check_batch(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _C.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-05,
):
    """Normalizes each channel of each example; see ``nn.InstanceNorm2d``. ValueError where there is a single element."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _C.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Normalizes groups of channels of each example; see ``nn.GroupNorm``."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _check_batch((input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]))
    return _C.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divides by a power of the mean square of `size` neighbouring channels; see ``nn.LocalResponseNorm``."""
    dims = input.dim()
    if dims < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {dims} dimensions)")
    if input.numel() == 0:
        return input
    square = input.mul(input).reshape(input.size(0), 1, input.size(1), -1)
    square = _C.pad(square, (0, 0, size // 2, (size - 1) // 2))
    mean = _C.avg_pool2d(square, (size, 1), 1).reshape(input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """`input` divided by its `p`-norm along `dim`, or by `eps` where that is greater; `out` is a tensor to fill."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else torch.div(input, norm, out=out)


# ---- embedding ----


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` that the integers `input` name: shape (*input.shape, embedding_dim).

    See ``nn.Embedding``. AssertionError for a `padding_idx` out of range.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        input = input.contiguous()
        with torch.no_grad():
            _C.embedding_renorm_(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima of bags of rows of `weight`, without the rows in between; see ``nn.EmbeddingBag``."""
    if weight.dtype == torch.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
            f"shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with torch.no_grad():
            _C.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    return _C.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


# ---- losses ----


def _reduction(reduction, size_average, reduce):
    """`reduction`, or what the older two arguments say where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    name = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=3
    )
    return name


def _reduced(loss, reduction):
    """A loss for each element, reduced as `reduction` says."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _warn_of_broadcast(input, target):
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted(loss, weight, input, reduction):
    """A loss for each element times `weight`; its mean is divided by the sum of the weights."""
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference; see ``nn.MSELoss``. `weight`: a factor for each element."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_of_broadcast(input, target)
    if weight is None:
        return _C.mse_loss(input, target, reduction)
    return _weighted(_C.mse_loss(input, target, "none"), weight, input, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference; see ``nn.L1Loss``. `weight`: a factor for each element."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_of_broadcast(input, target)
    if weight is None:
        return _C.l1_loss(input, target, reduction)
    return _weighted(_C.l1_loss(input, target, "none"), weight, input, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """The square for differences below `beta` and the absolute difference above; see ``nn.SmoothL1Loss``."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_of_broadcast(input, target)
    return _C.l1_loss(input, target, reduction) if beta == 0.0 else _C.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """The square for differences below `delta` and `delta` times the absolute difference above; see ``nn.HuberLoss``.
    `weight`: a factor for each element; the mean is over their number."""
    _warn_of_broadcast(input, target)
    if weight is None:
        return _C.huber_loss(input, target, reduction, delta)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return _reduced(_C.huber_loss(input, target, "none", delta) * weight, reduction)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """The negative log-probability of the target class; see ``nn.NLLLoss``."""
    return _C.nll_loss(input, target, weight, ignore_index, _reduction(reduction, size_average, reduce))


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """The cross entropy between unnormalized log-probabilities and a target; see ``nn.CrossEntropyLoss``."""
    reduction = _reduction(reduction, size_average, reduce)
    return _C.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``; see ``nn.LinearCrossEntropyLoss``.

    Shape: input (N, in_features) or (in_features), linear_weight (classes, *out_features, in_features). RuntimeError
    where they do not fit.
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    classes, *out_features, in_features = linear_weight.shape
    if input.shape[-1] != in_features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {in_features}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *out_features):
        raise RuntimeError(f"expected linear_bias shape {(classes, *out_features)}, got {tuple(linear_bias.shape)}")
    if out_features and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {in_features}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], classes, *out_features)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _C.linear(input, linear_weight.reshape(-1, in_features), bias).reshape(shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The cross entropy of probabilities; see ``nn.BCELoss``. ValueError where the shapes differ."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(torch.broadcast_shapes(target.shape, weight.shape))
    return _C.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """The cross entropy of the sigmoid of logits; see ``nn.BCEWithLogitsLoss``. ValueError where the shapes differ."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return _C.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of log-probabilities `input` from `target`; see ``nn.KLDivLoss``."""
    old = size_average is not None or reduce is not None
    reduction = _reduction(reduction, size_average, reduce)
    if reduction == "mean" and not old:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if reduction != "batchmean":
        return _C.kl_div(input, target, reduction, log_target=log_target)
    total = _C.kl_div(input, target, "sum", log_target=log_target)
    return total / input.size(0) if input.dim() else total


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """The negative log-likelihood of counts under a Poisson distribution; see ``nn.PoissonNLLLoss``."""
    return _C.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction, size_average, reduce))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative log-likelihood of `target` under normal distributions; see ``nn.GaussianNLLLoss``.

    `var` is a number or has the input's shape, without the last dimension or with one dimension of 1. ValueError for
    another shape or a negative variance.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(v for i, v in zip(input.shape, var.shape) if i != v) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)  # in place: the gradient passes as if nothing was clamped
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """`input` where the target is 1, ``max(0, margin - input)`` where it is -1; see ``nn.HingeEmbeddingLoss``."""
    return _C.hinge_embedding_loss(input, target, margin, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``; see ``nn.MarginRankingLoss``."""
    reduction = _reduction(reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _C.margin_ranking_loss(input1, input2, target, margin, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1; see ``nn.CosineEmbeddingLoss``."""
    return _C.cosine_embedding_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``log(1 + exp(-target * input))``; see ``nn.SoftMarginLoss``."""
    return _C.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss between the target class and the others; see ``nn.MultiMarginLoss``."""
    reduction = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _C.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss between the target classes and the others; see ``nn.MultiLabelMarginLoss``."""
    return _C.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the classes of their binary cross entropies; see ``nn.MultiLabelSoftMarginLoss``."""
    reduction = _reduction(reduction, size_average, reduce)
    loss = -(target * _C.log_sigmoid(input) + (1 - target) * _C.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1), reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``; see ``nn.TripletMarginLoss``."""
    reduction = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _C.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``triplet_margin_loss`` with a distance of the caller's; see ``nn.TripletMarginWithDistanceLoss``."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = _C.pairwise_distance if distance_function is None else distance_function
    to_positive, to_negative = distance(anchor, positive), distance(anchor, negative)
    if swap:
        to_negative = torch.minimum(to_negative, distance(positive, negative))
    return _reduced((margin + to_positive - to_negative).clamp_min(0), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification; see ``nn.CTCLoss``."""
    return _C.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


# ---- images ----

# The number of dimensions of the input for which each mode of interpolation is.
_MODE_DIMS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resizes the dimensions after the first two, to `size` or by `scale_factor`.

    Arguments:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size, scale_factor: a number or one for each of those dimensions; exactly one of the two is given.
        mode: "nearest", "nearest-exact", "area", "linear" (3-D), "bilinear" and "bicubic" (4-D), "trilinear" (5-D).
        align_corners: for the last four: whether the corner elements stay where they are, and not the corners' edges.
        recompute_scale_factor: whether the scale is computed again from the resulting size.
        antialias: for "bilinear" and "bicubic" when shrinking.

    Errors: ValueError for arguments that contradict each other; NotImplementedError for a mode and a number of
    dimensions that do not go together.
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for name, given in (("output size", size), ("scale_factor", scale_factor)):
        if isinstance(given, (list, tuple)) and len(given) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(input.shape[2:])} and {name} of {given}. Please provide input tensor in "
                "(N, C, d1, d2, ...,dK) format and one value for each of d1, ...,dK."
            )
    if size is not None:
        sizes, scales = list(_tuple(size, dims)), None
        if not all(isinstance(value, int) or hasattr(value, "__index__") for value in sizes):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(value) for value in sizes]}"
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    else:
        sizes, scales = None, [float(scale) for scale in _tuple(scale_factor, dims)]
    if recompute_scale_factor or (mode == "area" and sizes is None):
        sizes, scales = [int(own * scale) for own, scale in zip(input.shape[2:], scales)], None
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if input.dim() in (3, 4, 5):
        if mode == "area":
            return getattr(_C, f"adaptive_avg_pool{dims}d")(input, sizes)
        if mode in ("nearest", "nearest-exact") or _MODE_DIMS.get(mode) == input.dim():
            return _C.upsample(input, sizes, scales, mode, bool(align_corners), antialias)
        if mode in _MODE_DIMS:
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_MODE_DIMS[mode]}D input")
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
        f"(got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The former name of ``interpolate``."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """``interpolate`` with mode "nearest", under a former name."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """``interpolate`` with mode "bilinear" and aligned corners, under a former name."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of an image as columns; see ``nn.Unfold``."""
    return _C.im2col(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of columns put back as windows of an image; see ``nn.Fold``."""
    return _C.col2im(input, output_size, kernel_size, dilation, padding, stride)


# ---- attention ----


def _float_mask(mask, name, dtype):
    """A mask that is added to scores: a boolean one becomes -inf where it is True."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """``_float_mask`` that also warns where another mask has another dtype."""
    if mask is not None and check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    return _float_mask(mask, mask_name, target_type)


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, torch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _expect(condition, message):
    if not condition:
        raise AssertionError(message)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the inputs of attention are batched; AssertionError where their shapes do not go together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    _expect(
        key.dim() == value.dim() == query.dim(),
        f"For {kind} `query`, expected `key` and `value` to be {query.dim()}-D but found {key.dim()}-D and "
        f"{value.dim()}-D tensors respectively",
    )
    if key_padding_mask is not None:
        _expect(
            key_padding_mask.dim() == query.dim() - 1,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _expect(
            attn_mask.dim() in (2, 3),
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
            "instead",
        )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            _expect(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return batched


def _in_projection_packed(q, k, v, w, b=None):
    """Query, key and value projected with one stacked weight, in as few products as their identity allows."""
    width = q.size(-1)
    if q is k and k is v:
        return _C.linear(q, w, b).chunk(3, -1)
    if k is v:
        q_weight, kv_weight = w.split([width, 2 * width])
        q_bias, kv_bias = (None, None) if b is None else b.split([width, 2 * width])
        return (_C.linear(q, q_weight, q_bias), *_C.linear(k, kv_weight, kv_bias).chunk(2, -1))
    biases = (None, None, None) if b is None else b.chunk(3)
    return tuple(_C.linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), biases))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Query, key and value projected to the query's width, each with a weight of its own."""
    width = q.size(-1)
    for name, x, weight, bias in (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v)):
        expected = (width, x.size(-1))
        _expect(
            tuple(weight.shape) == expected, f"expecting {name} weights shape of {expected}, but got {weight.shape}"
        )
        _expect(
            bias is None or tuple(bias.shape) == (width,),
            f"expecting {name} bias shape of {(width,)}, but got {None if bias is None else bias.shape}",
        )
    return _C.linear(q, w_q, b_q), _C.linear(k, w_k, b_k), _C.linear(v, w_v, b_v)


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention of `num_heads` heads, as ``nn.MultiheadAttention`` computes it from its parameters.

    Shape: query (L, N, E), key and value (S, N, E); without N for one example. `key_padding_mask` (N, S) and `attn_mask`
    (L, S) or (N * num_heads, L, S) exclude where they are True, or are added where they are floating. The result is
    (L, N, E) and, with `need_weights`, the weights (N, L, S), or (N, num_heads, L, S) where they are not averaged.
    `static_k`, `static_v` (N * num_heads, S, E / num_heads) replace the projected key and value.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # The three may be one tensor, and the projection asks whether they are.
        views = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = views[id(query)], views[id(key)], views[id(value)]
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the fused attention makes its own from the hint
    else:
        attn_mask = _float_mask(attn_mask, "attn_mask", query.dtype)
        if key_padding_mask is not None:
            is_causal = False  # the merged mask no longer is
    _expect(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head = width // num_heads
    _expect(head * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _expect(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            _expect(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases)
    else:
        _expect(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _expect(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        expected = {2: (length, key.size(0)), 3: (batch * num_heads, length, key.size(0))}.get(attn_mask.dim())
        if expected is None:
            raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)

    def one_more_key():
        nonlocal attn_mask, key_padding_mask
        attn_mask = None if attn_mask is None else _C.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else _C.pad(key_padding_mask, (0, 1))

    if bias_k is not None and bias_v is not None:
        _expect(static_k is None, "bias cannot be added to static key.")
        _expect(static_v is None, "bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        one_more_key()
    else:
        _expect(bias_k is None, "bias_k is set but bias_v is None")
        _expect(bias_v is None, "bias_v is set but bias_k is None")

    def to_heads(x, static, name):
        """(S, N, E) as (N * heads, S, E / heads), or the given `static`, checked."""
        if static is None:
            return x.reshape(x.shape[0], batch * num_heads, head).transpose(0, 1)
        _expect(
            static.size(0) == batch * num_heads,
            f"expecting {name}.size(0) of {batch * num_heads}, but got {static.size(0)}",
        )
        _expect(static.size(2) == head, f"expecting {name}.size(2) of {head}, but got {static.size(2)}")
        return static

    q = to_heads(q, None, "q")
    k = to_heads(k, static_k, "static_k")
    v = to_heads(v, static_v, "static_v")
    if add_zero_attn:
        zeros = torch.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        k = torch.cat([k, zeros], dim=1)
        v = torch.cat([v, zeros], dim=1)
        one_more_key()
    source = k.size(1)
    if key_padding_mask is not None:
        _expect(
            tuple(key_padding_mask.shape) == (batch, source),
            f"expecting key_padding_mask shape of {(batch, source)}, but got {key_padding_mask.shape}",
        )
        padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, source)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        q = q * math.sqrt(1.0 / float(head))
        k = k.transpose(-2, -1)
        scores = torch.bmm(q, k) if attn_mask is None else torch.baddbmm(attn_mask, q, k)
        weights = _C.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = dropout(weights, p=dropout_p)
        output = torch.bmm(weights, v).transpose(0, 1).reshape(length * batch, width)
        output = _C.linear(output, out_proj_weight, out_proj_bias)
        output = output.view(length, batch, output.size(1))
        weights = weights.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return (output, weights) if batched else (output.squeeze(1), weights.squeeze(0))

    if attn_mask is not None:
        if attn_mask.size(0) == 1:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, source)
    q, k, v = (x.reshape(batch, num_heads, -1, head) for x in (q, k, v))
    output = _C.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = output.permute(2, 0, 1, 3).reshape(batch * length, width)
    output = _C.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(length, batch, output.size(1))
    return (output if batched else output.squeeze(1)), None
