"""Nonlinearities, elementwise or along a dimension, and multi-head attention."""

from __future__ import annotations

import warnings

import rushlight as torch

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = [
    "Threshold",
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GLU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "MultiheadAttention",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Softmin",
    "Softmax",
    "Softmax2d",
    "LogSoftmax",
]


class _Inplace(Module):
    """An activation whose only option is `inplace`: to overwrite its input."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """The input where it is above `threshold`, and `value` elsewhere. `inplace`: overwrites the input. Any shape."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class ReLU(_Inplace):
    """The rectified linear unit, ``max(x, 0)``. `inplace`: overwrites the input. Any shape."""

    def forward(self, input):
        return F.relu(input, self.inplace)


class RReLU(Module):
    """Leaky ReLU with a random slope: drawn from [lower, upper) for each negative element in training, and their mean in
    evaluation. `inplace`: overwrites the input. Any shape. Source: Xu et al. 2015, arXiv:1505.00853."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """The input limited to [min_val, max_val]. `inplace`: overwrites the input. Any shape.

    `min_value` and `max_value` are former names. ValueError unless ``min_val < max_val``.
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        for name, value in (("min_val", min_value), ("max_val", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{name}ue` is deprecated and rename to `{name}`", FutureWarning, stacklevel=2
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``. `inplace`: overwrites the input. Any shape. Source: Howard et al. 2017, arXiv:1704.04861."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``. Any shape."""

    def forward(self, input):
        return F.sigmoid(input)


class Hardsigmoid(_Inplace):
    """``min(max(x + 3, 0), 6) / 6``. `inplace`: overwrites the input. Any shape."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent. Any shape."""

    def forward(self, input):
        return F.tanh(input)


class SiLU(_Inplace):
    """``x * sigmoid(x)``, also called swish. `inplace`: overwrites the input. Any shape.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
    """

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """``x * tanh(log(1 + exp(x)))``. `inplace`: overwrites the input. Any shape. Source: Misra 2019, arXiv:1908.08681."""

    def forward(self, input):
        return F.mish(input, self.inplace)


class Hardswish(_Inplace):
    """``x * min(max(x + 3, 0), 6) / 6``. `inplace`: overwrites the input. Any shape.

    Source: Howard et al. 2019, arXiv:1905.02244.
    """

    def forward(self, input):
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere. `inplace`: overwrites the input. Any shape.

    Source: Clevert et al. 2015, arXiv:1511.07289.
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``. `inplace`: overwrites the input. Any shape.

    Source: Barron 2017, arXiv:1704.07483.
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class SELU(_Inplace):
    """``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))`` with the constants for which activations normalize themselves.
    `inplace`: overwrites the input. Any shape. Source: Klambauer et al. 2017, arXiv:1706.02515."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class GLU(Module):
    """The first half along `dim` times the sigmoid of the second half.

    Shape: the size of `dim` is even, and halved. Source: Dauphin et al. 2016, arXiv:1612.08083.
    """

    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class GELU(Module):
    """``x * Phi(x)``, with the normal distribution function; `approximate` "tanh" computes it by a hyperbolic tangent.
    Any shape. Source: Hendrycks and Gimpel 2016, arXiv:1606.08415."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """``x`` where its absolute value is above `lambd`, zero elsewhere. Any shape."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class LeakyReLU(Module):
    """``max(0, x) + negative_slope * min(0, x)``. `inplace`: overwrites the input. Any shape."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``. Any shape."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above `threshold`. Any shape."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """``x`` moved towards zero by `lambd`, and zero where it is nearer than that. Any shape. `lambd` is not negative."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class PReLU(Module):
    """``max(0, x) + a * min(0, x)`` with a learned slope `a`: one, or one for each channel (dimension 1).

    Arguments: `num_parameters` (1 or the number of channels), `init` (the slope's first value), `device`, `dtype`. Any
    shape. Source: He et al. 2015, arXiv:1502.01852.
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Sets the slopes to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """``x / (1 + |x|)``. Any shape."""

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``. Any shape."""

    def forward(self, input):
        return F.tanhshrink(input)


class _AlongDim(Module):
    """A function along one dimension."""

    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """``exp(-x) / sum(exp(-x))``, with the sum along `dim`. Any shape."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """``exp(x) / sum(exp(x))``, with the sum along `dim`. Any shape."""

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """``log(exp(x) / sum(exp(x)))``, with the sum along `dim`. Any shape."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of an image (N, C, H, W) or (C, H, W); ValueError for another number of dimensions."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class MultiheadAttention(Module):
    """Attention of several heads: ``softmax(q k^T / sqrt(d)) v`` for each, joined and projected.

    Arguments:
        embed_dim: the width of query and result; `num_heads` divides it.
        dropout: the probability of dropping an attention weight in training.
        bias: whether the projections have one.
        add_bias_kv, add_zero_attn: add a learned, or a zero, key and value to each sequence.
        kdim, vdim: the widths of key and value where they differ from `embed_dim`.
        batch_first: whether the batch is the first dimension, and not the second.
        device, dtype: of the parameters.

    State: `in_proj_weight` (3 * embed_dim, embed_dim), or `q_proj_weight`, `k_proj_weight`, `v_proj_weight` where widths
    differ; `in_proj_bias`; `out_proj`. Source: Vaswani et al. 2017, arXiv:1706.03762.
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        options = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim),
        }
        for name, shape in shapes.items():
            used = (name == "in_proj_weight") == self._qkv_same_embed_dim
            self.register_parameter(name, Parameter(torch.empty(shape, **options)) if used else None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, **options))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        if add_bias_kv:
            self.bias_k = Parameter(torch.empty((1, 1, embed_dim), **options))
            self.bias_v = Parameter(torch.empty((1, 1, embed_dim), **options))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Attends from `query` (L, N, E) to `key` and `value` (S, N, E); N comes first with `batch_first` and may lack.

        `key_padding_mask` (N, S) and `attn_mask` (L, S) or (N * num_heads, L, S): positions to leave out where True, or
        numbers to add to the scores. `is_causal` says that `attn_mask` is the causal one. Returns (L, N, E) and the
        attention weights (N, L, S), with a dimension for the heads unless `average_attn_weights`; None unless
        `need_weights`.
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            # The three may be one tensor, and the projection asks whether they are.
            swapped = {id(x): x.transpose(1, 0) for x in (query, key, value)}
            query, key, value = swapped[id(query)], swapped[id(key)], swapped[id(value)]
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swap else output), weights
