"""Recurrent layers over sequences, and the cells that make one step."""

from __future__ import annotations

import math
import numbers
import warnings

import rushlight as torch
from rushlight import _C

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

# The gates of each mode, and the operator that runs it.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_number(name, value, kind):
    if not isinstance(value, kind):
        raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")


class RNNBase(Module):
    """What the recurrent layers share: parameters, checks, batched, unbatched and packed inputs."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        _check_number("bias", bias, bool)
        _check_number("batch_first", batch_first, bool)
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            _check_number(name, value, int)
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        gates = _GATES[mode] * hidden_size
        output_size = proj_size or hidden_size
        directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            layer_input = input_size if layer == 0 else output_size * len(directions)
            for direction in directions:
                shapes = {"weight_ih": (gates, layer_input), "weight_hh": (gates, output_size)}
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = {f"{name}_l{layer}{direction}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self):
        """The parameters of each layer and direction, as a list of lists."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Does nothing: the operators take the parameters wherever they lie."""

    def reset_parameters(self):
        """Draws all parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """ValueError where the input's dtype is not the weights', RuntimeError where its shape does not fit."""
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype and not torch.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected_size(self, input, batch_sizes, width):
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the hidden state that goes with an input."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """RuntimeError where a hidden state has another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Checks input and hidden state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The hidden state with the examples of the batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zero_hidden(self, input, batch_sizes):
        return torch.zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    # What differs where the hidden state is a pair: an operation on it, and its numbers of dimensions.

    def _map_hidden(self, hx, fn):
        return fn(hx)

    def _check_hidden_dims(self, hx, batched):
        if hx.dim() != (3 if batched else 2):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {3 if batched else 2}-D but got {hx.dim()}-D tensor"
            )

    def _run(self, hx, *before):
        """The operator over the input, which is `before`: (input,) or (data, batch_sizes)."""
        result = getattr(_C, self.mode.lower())(
            *before,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *([] if len(before) == 2 else [self.batch_first]),
        )
        return result[0], (result[1] if len(result) == 2 else tuple(result[1:]))

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            hx = self._zero_hidden(data, batch_sizes) if hx is None else self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            output, hidden = self._run(self._map_hidden(hx, lambda h: h), data, batch_sizes)
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(hidden, unsorted_indices)
        if input.dim() not in (2, 3):
            name = "LSTM" if self.mode == "LSTM" else "GRU" if self.mode == "GRU" else "RNN"
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        if hx is not None:
            self._check_hidden_dims(hx, batched)
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else self._map_hidden(hx, lambda h: h.unsqueeze(1))
        if hx is None:
            hx = self._zero_hidden(input, None)
        self.check_forward_args(input, hx, None)
        output, hidden = self._run(hx, input)
        if not batched:
            output = output.squeeze(batch_dim)
            hidden = self._map_hidden(hidden, lambda h: h.squeeze(1))
        return output, hidden

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        own = self.__dict__
        own.setdefault("proj_size", 0)
        # Other versions also keep lists of the parameters themselves.
        for name in ("_flat_weights", "_flat_weights_names", "_flat_weight_refs"):
            own.pop(name, None)


class RNN(RNNBase):
    """A plain recurrent network: ``h_t = tanh(x_t W_ih^T + b_ih + h_(t-1) W_hh^T + b_hh)``.

    Arguments:
        input_size, hidden_size: the widths of x and h.
        num_layers: each layer's input is the one before's output.
        nonlinearity: "tanh" or "relu".
        bias: whether there are the two biases.
        batch_first: whether the batch comes before the time in input and output.
        dropout: the probability of dropping elements of each layer's output but the last's, in training.
        bidirectional: whether a second network runs backwards and the outputs are joined.
        device, dtype: of the parameters.

    Called with an input (L, N, input_size), one (L, input_size) or a ``PackedSequence``, and optionally the first hidden
    state (layers * directions, N, hidden_size), it returns the output (L, N, directions * hidden_size) and the last hidden
    state. State: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, ... and with the suffix `_reverse`.
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A long short-term memory network.

    ``i, f, g, o`` are the four rows of ``x_t W_ih^T + b_ih + h_(t-1) W_hh^T + b_hh``, and
    ``c_t = sigmoid(f) * c_(t-1) + sigmoid(i) * tanh(g)``, ``h_t = sigmoid(o) * tanh(c_t)``; with `proj_size`, h_t is
    projected to that width. Arguments otherwise as ``RNN``'s, without `nonlinearity`. The hidden state is a pair (h, c).
    Source: Hochreiter and Schmidhuber 1997; projections: Sak et al. 2014, arXiv:1402.1128.
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cell state that goes with an input."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _zero_hidden(self, input, batch_sizes):
        cell = torch.zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device)
        return super()._zero_hidden(input, batch_sizes), cell

    def _map_hidden(self, hx, fn):
        return fn(hx[0]), fn(hx[1])

    def _check_hidden_dims(self, hx, batched):
        if hx[0].dim() != (3 if batched else 2) or hx[1].dim() != (3 if batched else 2):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {3 if batched else 2}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )


class GRU(RNNBase):
    """A network of gated recurrent units.

    With the rows ``r, z, n`` of the weights: ``r_t = sigmoid(...)``, ``z_t = sigmoid(...)``,
    ``n_t = tanh(W_in x_t + b_in + r_t * (W_hn h_(t-1) + b_hn))``, ``h_t = (1 - z_t) * n_t + z_t * h_(t-1)``.
    Arguments as ``RNN``'s, without `nonlinearity`. Source: Cho et al. 2014, arXiv:1406.1078.
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: their parameters and the handling of inputs without a batch."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        options = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((rows, input_size), **options))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(torch.empty(rows, **options)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws all parameters anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_dims(self, name, tensor, what):
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _check_states(self, input, states):
        """RuntimeError where a hidden state isn't (N, hidden_size) for an input (N, input_size)."""
        for i, state in enumerate(states):
            if state.dim() != 2:
                raise RuntimeError(f"Expected 2D hidden{i} (batch x hidden_size), but got {state.dim()}D tensor")
            if state.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {state.size(0)}"
                )

    def _step(self, name, operator, input, hx):
        """One step of a cell whose hidden state is one tensor."""
        self._check_dims(name, input, "input")
        if hx is not None:
            self._check_dims(name, hx, "hidden")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        self._check_states(input, (hx,))
        result = operator(input, hx, *self._weights())
        return result if batched else result.squeeze(0)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an ``RNN``: input (N, input_size) or (input_size) and hidden state (zeros by default) to the next one.

    Arguments: `input_size`, `hidden_size`, `bias`, `nonlinearity` ("tanh" or "relu"), `device`, `dtype`.
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = _C.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.rnn_relu_cell
        return self._step("RNNCell", operator, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an ``LSTM``: input (N, input_size) or (input_size) and the pair (h, c) (zeros by default) to the next.

    Arguments: `input_size`, `hidden_size`, `bias`, `device`, `dtype`.
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        self._check_dims("LSTMCell", input, "input")
        if hx is not None:
            for i, state in enumerate(hx):
                self._check_dims("LSTMCell", state, f"hx[{i}]")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        self._check_states(input, hx)
        hidden, cell = _C.lstm_cell(input, hx, *self._weights())
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a ``GRU``: input (N, input_size) or (input_size) and hidden state (zeros by default) to the next one.

    Arguments: `input_size`, `hidden_size`, `bias`, `device`, `dtype`.
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step("GRUCell", _C.gru_cell, input, hx)
