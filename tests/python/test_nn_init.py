"""First values: exactly those of PyTorch for the same seed, and the right distribution."""

import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import init

# With torch.manual_seed(0): the number of parameters' elements, their sum, the sum of absolute values, and the first one,
# as PyTorch 2.15 draws them on a CPU.
LAYERS = [
    ("nn.Linear(4, 4)", 20, -1.403857, 4.298362, -0.0037434),
    ("nn.Bilinear(3, 4, 2)", 26, -0.650655, 6.357456, -0.0043225),
    ("nn.Conv1d(2, 3, 3)", 21, -0.997962, 3.657880, -0.0030565),
    ("nn.Conv2d(4, 6, (3, 2), groups=2)", 78, -0.105904, 11.475688, -0.0021613),
    ("nn.Conv3d(1, 2, 2)", 18, -0.599029, 2.645753, -0.0026470),
    ("nn.ConvTranspose2d(4, 2, 3)", 74, -0.341499, 8.704906, -0.0017647),
    ("nn.Embedding(5, 3, padding_idx=1)", 15, -2.054307, 10.184327, 1.5409961),
    ("nn.EmbeddingBag(4, 5)", 20, 6.940702, 18.661706, -1.1258398),
    ("nn.LSTM(3, 4, num_layers=2, bidirectional=True)", 736, -1.419371, 188.403225, -0.0037434),
    ("nn.GRUCell(3, 5)", 150, -2.288538, 33.583678, -0.0033482),
    ("nn.RNN(2, 3, nonlinearity='relu')", 21, -1.411331, 5.173024, -0.0043225),
    ("nn.MultiheadAttention(4, 2, kdim=3, add_bias_kv=True)", 84, -3.912263, 26.908699, 0.3145553),
    ("nn.TransformerDecoderLayer(4, 2, 8)", 260, 6.733886, 66.303978, 0.2224242),
    ("nn.Transformer(4, 2, 1, 1, 8)", 448, 28.771727, 151.292117, -0.2081010),
    ("nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])", 76, 1.560566, 16.023469, -0.0026470),
    ("nn.LinearCrossEntropyLoss(3, 4, bias=True)", 16, -1.552881, 3.745826, -0.0043225),
]


@pytest.mark.parametrize("layer, count, total, size, first", LAYERS)
def test_layers_start_as_in_pytorch(layer, count, total, size, first):
    torch.manual_seed(0)
    values = [v for p in eval(layer, {"nn": nn}).parameters() for v in p.detach().reshape(-1).tolist()]
    assert len(values) == count
    assert values[0] == pytest.approx(first, abs=1e-6)
    assert sum(values) == pytest.approx(total, abs=1e-4)
    assert sum(map(abs, values)) == pytest.approx(size, abs=1e-4)


def test_linear_bit_for_bit():
    torch.manual_seed(0)
    first = nn.Linear(2, 2).weight.tolist()
    assert first == [[-0.005293981172144413, 0.37932288646698], [-0.5819807648658752, -0.5203874707221985]]


# The same for a (6, 5) tensor: its sum, and the sum of absolute values.
FILLS = [
    ("uniform_(t, -1, 2)", 11.952204, 21.886017),
    ("normal_(t, 1, 2)", 23.626182, 47.335958),
    ("trunc_normal_(t)", -1.313926, 13.841817),
    ("trunc_normal_(t, 0.0, 1.0, 1.0, 1.5)", 35.665596, 35.665596),
    ("xavier_uniform_(t, 2)", -3.001262, 20.276547),
    ("xavier_normal_(t)", -1.358903, 8.506024),
    ("kaiming_uniform_(t, mode='fan_out', nonlinearity='relu')", -2.031864, 13.727287),
    ("kaiming_normal_(t, 0.2)", -1.976437, 12.371469),
    ("sparse_(t, 0.4)", 0.019660, 0.108212),
]


@pytest.mark.parametrize("call, total, size", FILLS)
def test_fills_draw_as_in_pytorch(call, total, size):
    torch.manual_seed(0)
    tensor = torch.empty(6, 5)
    result = eval("init." + call, {"init": init, "t": tensor})
    assert result is tensor
    values = tensor.reshape(-1).tolist()
    assert sum(values) == pytest.approx(total, abs=1e-4)
    assert sum(map(abs, values)) == pytest.approx(size, abs=1e-4)


@pytest.mark.parametrize(
    "fill, mean, std",
    [
        (lambda t: init.uniform_(t, -1, 1), 0, 1 / math.sqrt(3)),
        (lambda t: init.normal_(t, 2, 3), 2, 3),
        (lambda t: init.xavier_uniform_(t), 0, math.sqrt(2 / 400)),
        (lambda t: init.xavier_normal_(t, gain=2), 0, 2 * math.sqrt(2 / 400)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), 0, math.sqrt(2 / 200)),
        (lambda t: init.kaiming_normal_(t, a=1), 0, math.sqrt(1 / 200)),
        (lambda t: init.trunc_normal_(t), 0, 0.88),
    ],
)
def test_moments(fill, mean, std):
    torch.manual_seed(1)
    values = fill(torch.empty(200, 200))
    assert values.mean().item() == pytest.approx(mean, abs=4 * std / 200)
    assert values.std().item() == pytest.approx(std, rel=0.02)


def test_structured_fills():
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.ones_(torch.empty(2)).tolist() == [1, 1] and init.zeros_(torch.empty(2)).tolist() == [0, 0]
    kernel = init.dirac_(torch.empty(4, 2, 3), groups=2)
    assert kernel.nonzero().tolist() == [[0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1]]
    assert (init.sparse_(torch.empty(10, 3), 0.3) == 0).sum(0).tolist() == [3, 3, 3]


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 2, 2)])
def test_orthogonal(shape):
    torch.manual_seed(0)
    weight = init.orthogonal_(torch.empty(*shape, dtype=torch.float64), gain=2).reshape(shape[0], -1)
    product = weight @ weight.t() if weight.shape[0] <= weight.shape[1] else weight.t() @ weight
    assert torch.allclose(product, 4 * torch.eye(product.shape[0], dtype=torch.float64))


@pytest.mark.parametrize(
    "name, param, gain",
    [
        ("linear", None, 1),
        ("conv_transpose3d", None, 1),
        ("sigmoid", None, 1),
        ("tanh", None, 5 / 3),
        ("relu", None, math.sqrt(2)),
        ("leaky_relu", None, math.sqrt(2 / 1.0001)),
        ("leaky_relu", 1, 1),
        ("selu", None, 0.75),
    ],
)
def test_gain(name, param, gain):
    assert init.calculate_gain(name, param) == pytest.approx(gain)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: init.calculate_gain("swish"), "Unsupported nonlinearity swish"),
        (lambda: init.calculate_gain("leaky_relu", True), "negative_slope True not a valid number"),
        (lambda: init.xavier_uniform_(torch.empty(3)), "Fan in and fan out can not be computed"),
        (lambda: init.kaiming_normal_(torch.empty(3, 3), mode="fan"), "Mode fan not supported"),
        (lambda: init.eye_(torch.empty(3)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(torch.empty(3, 3)), "Only tensors with 3, 4, or 5 dimensions are supported"),
        (lambda: init.orthogonal_(torch.empty(3)), "Only tensors with 2 or more dimensions are supported"),
    ],
)
def test_errors(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_fills_record_no_gradient():
    parameter = nn.Parameter(torch.empty(3, 3))
    for fill in (init.uniform_, init.ones_, init.kaiming_uniform_, init.eye_):
        assert fill(parameter) is parameter and parameter.is_leaf and parameter.grad_fn is None


def test_former_names_warn():
    with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated in favor of `nn.init.constant_`"):
        assert init.constant(torch.empty(1), 3).item() == 3
