"""Layers and nn.utils: shapes, options and errors. Values are compared with PyTorch's by the conformance run."""

import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


def ones(*shape):
    return torch.ones(*shape)


def integers(*shape):
    return torch.zeros(*shape, dtype=torch.int64)


# A layer, its inputs and the shape of its (first) output.
SHAPES = [
    (lambda: nn.Linear(3, 4), (ones(2, 5, 3),), (2, 5, 4)),
    (lambda: nn.Bilinear(3, 4, 5), (ones(2, 3), ones(2, 4)), (2, 5)),
    (lambda: nn.Conv1d(2, 4, 3, padding="same"), (ones(1, 2, 8),), (1, 4, 8)),
    (lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, padding_mode="circular"), (ones(1, 2, 8, 8),), (1, 4, 4, 4)),
    (lambda: nn.Conv2d(2, 4, 3), (ones(2, 8, 8),), (4, 6, 6)),
    (lambda: nn.Conv3d(2, 4, (1, 2, 3), dilation=2), (ones(1, 2, 8, 8, 8),), (1, 4, 8, 6, 4)),
    (lambda: nn.ConvTranspose2d(2, 4, 3, stride=2), (ones(1, 2, 4, 4), [10, 10]), (1, 4, 10, 10)),
    (lambda: nn.MaxPool2d(2, ceil_mode=True), (ones(1, 2, 5, 5),), (1, 2, 3, 3)),
    (lambda: nn.AvgPool1d(2), (ones(1, 2, 5),), (1, 2, 2)),
    (lambda: nn.AdaptiveAvgPool2d((None, 3)), (ones(1, 2, 5, 7),), (1, 2, 5, 3)),
    (lambda: nn.AdaptiveMaxPool3d(1), (ones(1, 2, 5, 5, 5),), (1, 2, 1, 1, 1)),
    (lambda: nn.FractionalMaxPool2d(2, output_ratio=0.5), (ones(1, 2, 8, 8),), (1, 2, 4, 4)),
    (lambda: nn.LPPool2d(2, 2), (ones(1, 2, 8, 8),), (1, 2, 4, 4)),
    (lambda: nn.BatchNorm1d(3), (ones(2, 3),), (2, 3)),
    (lambda: nn.InstanceNorm2d(3), (ones(3, 4, 4),), (3, 4, 4)),
    (lambda: nn.LayerNorm((3, 4)), (ones(2, 3, 4),), (2, 3, 4)),
    (lambda: nn.LayerNorm(3, bias=None), (ones(2, 3),), (2, 3)),
    (lambda: nn.RMSNorm(4), (ones(2, 3, 4),), (2, 3, 4)),
    (lambda: nn.GroupNorm(2, 4), (ones(2, 4, 3),), (2, 4, 3)),
    (lambda: nn.LocalResponseNorm(2), (ones(2, 4, 3),), (2, 4, 3)),
    (lambda: nn.Embedding(5, 3, padding_idx=0), (integers(2, 4),), (2, 4, 3)),
    (lambda: nn.EmbeddingBag(5, 3), (integers(2, 4),), (2, 3)),
    (lambda: nn.ReflectionPad2d(1), (ones(1, 2, 3, 3),), (1, 2, 5, 5)),
    (lambda: nn.ZeroPad1d((1, 2)), (ones(1, 2, 3),), (1, 2, 6)),
    (lambda: nn.PixelShuffle(2), (ones(1, 8, 3, 3),), (1, 2, 6, 6)),
    (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (ones(1, 2, 3, 3),), (1, 2, 6, 6)),
    (lambda: nn.Upsample(size=5, mode="area"), (ones(1, 2, 10),), (1, 2, 5)),
    (lambda: nn.Unfold(2), (ones(1, 2, 4, 4),), (1, 8, 9)),
    (lambda: nn.Fold((4, 4), 2), (ones(1, 8, 9),), (1, 2, 4, 4)),
    (lambda: nn.Flatten(), (ones(2, 3, 4),), (2, 12)),
    (lambda: nn.Unflatten(1, (3, 4)), (ones(2, 12),), (2, 3, 4)),
    (lambda: nn.CosineSimilarity(), (ones(2, 3), ones(2, 3)), (2,)),
    (lambda: nn.GLU(), (ones(2, 6),), (2, 3)),
    (lambda: nn.PReLU(3), (ones(2, 3),), (2, 3)),
    (lambda: nn.RNN(3, 4, batch_first=True), (ones(2, 5, 3),), (2, 5, 4)),
    (lambda: nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), (ones(5, 2, 3),), (5, 2, 4)),
    (lambda: nn.GRU(3, 4), (ones(5, 3),), (5, 4)),
    (lambda: nn.LSTMCell(3, 4), (ones(2, 3),), (2, 4)),
    (lambda: nn.GRUCell(3, 4), (ones(3),), (4,)),
    (lambda: nn.MultiheadAttention(4, 2, batch_first=True), (ones(2, 3, 4), ones(2, 5, 4), ones(2, 5, 4)), (2, 3, 4)),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2), (ones(3, 2, 4),), (3, 2, 4)),
    (lambda: nn.Transformer(4, 2, 1, 1, 8, norm_first=True), (ones(3, 2, 4), ones(5, 2, 4)), (5, 2, 4)),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6]), (ones(5, 4), integers(5)), (5,)),
    (lambda: nn.CrossEntropyLoss(), (ones(3, 5), integers(3)), ()),
    (lambda: nn.TripletMarginWithDistanceLoss(reduction="none"), (ones(2, 3),) * 3, (2,)),
]


@pytest.mark.parametrize("make, inputs, shape", SHAPES, ids=[str(i) for i in range(len(SHAPES))])
def test_shapes(make, inputs, shape):
    layer = make()
    result = layer(*inputs)
    result = result if isinstance(result, torch.Tensor) else result[0]
    assert tuple(result.shape) == shape
    assert type(layer).__name__ in repr(layer)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(2, 4, 3, padding="full"), ValueError, "Invalid padding string 'full'"),
        (lambda: nn.Conv2d(2, 4, 3, 2, padding="same"), ValueError, "padding='same' is not supported for strided"),
        (lambda: nn.Conv2d(2, 4, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(2, 4, 3)(ones(1, 2, 4), [9]), ValueError, "requested an output size of [9]"),
        (lambda: nn.BatchNorm2d(2)(ones(2, 2)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.BatchNorm1d(2)(ones(1, 2)), ValueError, "Expected more than 1 value per channel when training"),
        (lambda: nn.InstanceNorm1d(3, affine=True)(ones(2, 2, 4)), ValueError, "to match num_features (3), but got: 2"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "num_channels (4) must be divisible by num_groups (3)"),
        (lambda: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "Padding_idx must be within num_embeddings"),
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "proj_size argument is only supported for LSTM"),
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
        (lambda: nn.RNN(3, 4)(ones(2, 5, 4)), RuntimeError, "must be equal to input_size. Expected 3, got 4"),
        (lambda: nn.RNN(3, 4)(ones(2, 5, 3), ones(1, 2, 4)), RuntimeError, "Expected hidden size (1, 5, 4)"),
        (lambda: nn.MSELoss(reduction="x")(ones(1), ones(1)), ValueError, "x is not a valid value for reduction"),
        (lambda: nn.BCELoss()(ones(2), ones(3)), ValueError, "that is different to the input size"),
        (lambda: nn.TripletMarginLoss(margin=0), ValueError, "expected margin to be greater than 0"),
        (lambda: nn.Hardtanh(1, -1), AssertionError, "must be greater than min_val"),
        (lambda: nn.Softmax2d()(ones(2)), ValueError, "expected input to be 3D or 4D, got 1D"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size must be a tuple of ints"),
        (lambda: nn.LPPool1d(0, 2), ValueError, "norm_type must be a non-zero value"),
        (lambda: F.interpolate(ones(1, 1, 4)), ValueError, "either size or scale_factor should be defined"),
        (lambda: F.interpolate(ones(1, 1, 4), 2, mode="bilinear"), NotImplementedError, "bilinear mode needs 4D"),
        (lambda: F.interpolate(ones(1, 1, 4), 2, align_corners=True), ValueError, "align_corners option"),
        (lambda: F.embedding_bag(integers(3), ones(2, 2)), ValueError, "offsets has to be a 1D Tensor but got None"),
        (lambda: F.never, AttributeError, "has no attribute 'never'"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error) as raised:
        act()
    assert message in str(raised.value)


def test_former_arguments_of_losses():
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        loss = nn.MSELoss(size_average=False)
    assert loss.reduction == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert F.l1_loss(ones(2), ones(2), reduce=False).shape == (2,)


def test_inplace_activations_overwrite():
    for layer in (nn.ReLU(True), nn.LeakyReLU(inplace=True), nn.ELU(inplace=True), nn.Hardtanh(inplace=True)):
        x = torch.tensor([-3.0, 0.5])
        assert layer(x) is x and x[0] > -3


def test_batch_norm_statistics():
    norm = nn.BatchNorm1d(1, momentum=None)
    for value in (0.0, 4.0):
        norm(torch.tensor([[value], [value + 2]]))
    assert norm.num_batches_tracked.item() == 2 and norm.running_mean.item() == pytest.approx(3)
    state = norm.state_dict()
    del state["num_batches_tracked"], state._metadata
    norm.load_state_dict(state)  # as saved before there was a count
    norm.reset_running_stats()
    assert norm.running_mean.item() == 0 and norm.num_batches_tracked.item() == 0
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(2)))
    assert type(converted[0]) is nn.SyncBatchNorm


def test_from_pretrained():
    table = nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert not table.weight.requires_grad and table(torch.tensor([1])).tolist() == [[3.0, 4.0]]
    assert repr(table) == "Embedding(2, 2)"


def test_dropout_in_training_and_evaluation():
    torch.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = ones(10000)
    kept = layer(x)
    assert {round(value, 4) for value in kept.tolist()} == {0.0, 1.3333}
    assert (kept != 0).sum().item() == pytest.approx(7500, rel=0.03)
    assert torch.equal(layer.eval()(x), x)
    channels = nn.Dropout2d(0.5)(ones(20, 10, 2, 2)).reshape(200, 4)
    assert all(len(set(row)) == 1 for row in channels.tolist())


def test_attention_paths_agree():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2)
    x = torch.randn(5, 3, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True], [False] * 5])
    padding = torch.zeros(3, 5).masked_fill(padding, -math.inf)
    slow, weights = attention(x, x, x, attn_mask=causal, key_padding_mask=padding)
    fast, nothing = attention(x, x, x, attn_mask=causal, key_padding_mask=padding, need_weights=False)
    assert nothing is None and torch.allclose(slow, fast, atol=1e-5)
    assert torch.allclose(weights.sum(-1), ones(3, 5), atol=1e-5) and weights[1, 4, 3].item() == 0
    hinted, _ = attention(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    masked, _ = attention(x, x, x, attn_mask=causal)
    assert torch.allclose(hinted, masked, atol=1e-5)


def test_packed_sequences():
    from rushlight.nn.utils import rnn

    sequences = [torch.arange(n, dtype=torch.float32).reshape(n, 1) + 10 * n for n in (2, 4, 3)]
    padded = rnn.pad_sequence(sequences, padding_value=-1)
    assert padded.shape == (4, 3, 1) and padded[2, 0].item() == -1
    assert rnn.pad_sequence(sequences, batch_first=True, padding_side="left")[0, 0].item() == 0
    packed = rnn.pack_padded_sequence(padded, [2, 4, 3], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1] and packed.sorted_indices.tolist() == [1, 2, 0]
    assert packed.data.reshape(-1).tolist() == [40, 30, 20, 41, 31, 21, 42, 32, 43]
    back, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=5)
    assert lengths.tolist() == [2, 4, 3] and back.shape == (3, 5, 1) and back[0, :3, 0].tolist() == [20, 21, -1]
    for a, b in zip(rnn.unpack_sequence(rnn.pack_sequence(sequences, enforce_sorted=False)), sequences):
        assert torch.equal(a, b)
    with pytest.raises(RuntimeError, match="`lengths` array must be sorted in decreasing order"):
        rnn.pack_padded_sequence(padded, [2, 4, 3])
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        rnn.pack_padded_sequence(padded, [2, 1, 0])


def test_a_packed_lstm_sees_no_padding():
    from rushlight.nn.utils import rnn

    torch.manual_seed(0)
    lstm = nn.LSTM(2, 3)
    sequences = [torch.randn(n, 2) for n in (2, 4)]
    packed, (hidden, _) = lstm(rnn.pack_sequence(sequences, enforce_sorted=False))
    for i, (output, sequence) in enumerate(zip(rnn.unpack_sequence(packed), sequences)):
        alone, (last, _) = lstm(sequence)
        assert torch.allclose(output, alone, atol=1e-6) and torch.allclose(hidden[0, i], last[0], atol=1e-6)


def test_clipping():
    parameters = [nn.Parameter(ones(2)), nn.Parameter(ones(1)), nn.Parameter(ones(1))]
    parameters[0].grad = torch.tensor([3.0, 0.0])
    parameters[1].grad = torch.tensor([4.0])
    assert nn.utils.clip_grad_norm_(parameters, 1.0).item() == 5
    assert parameters[1].grad.item() == pytest.approx(0.8, abs=1e-5)
    assert nn.utils.clip_grad_norm_(parameters, 10.0).item() == pytest.approx(1, abs=1e-5)
    assert parameters[1].grad.item() == pytest.approx(0.8, abs=1e-5)
    assert nn.utils.clip_grad_norm_(parameters[0], 10.0, norm_type=math.inf).item() == pytest.approx(0.6, abs=1e-5)
    nn.utils.clip_grad_value_(parameters, 0.5)
    assert parameters[0].grad.tolist() == [0.5, 0.0]
    parameters[1].grad = torch.tensor([math.inf])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([parameters[2]], 1.0).item() == 0


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(torch.arange(9.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and layer.bias.tolist() == [6, 7, 8]


def test_fusion():
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3)
    x = torch.randn(2, 2, 5, 5)
    for _ in range(3):
        norm(conv(x))
    conv.eval(), norm.eval()
    assert torch.allclose(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        nn.utils.fuse_conv_bn_eval(conv.train(), norm)


def test_data_parallel_parts_on_one_device():
    from rushlight.nn import parallel

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    x = torch.randn(5, 2)
    net.eval()
    expected = net(x)
    expected.sum().backward()
    gradient = net[0].weight.grad
    net.zero_grad()
    parts = parallel.scatter((x, {"a": x, "b": "text"}), ["cpu", "cpu"])
    assert [part[0].shape[0] for part in parts] == [3, 2] and parts[1][1]["b"] == "text"
    replicas = parallel.replicate(net, ["cpu", "cpu"])
    outputs = parallel.parallel_apply(replicas, [part[:1] for part in parts])
    result = parallel.gather(outputs, "cpu")
    assert torch.allclose(result, expected, atol=1e-6) and not list(replicas[0].parameters())
    result.sum().backward()
    assert torch.allclose(net[0].weight.grad, gradient, atol=1e-6)
    with pytest.raises(RuntimeError):
        parallel.parallel_apply(replicas, [(x,), (torch.randn(2, 7),)])
    assert torch.equal(parallel.DataParallel(net, device_ids=[])(x), net(x))


@pytest.mark.parametrize(
    "options", [(2,), (3, 2, 1), (3, 1, 1, 2), (5, 3, 2, 1, True), ((1, 4), (2, 3), 0, (1, 2))], ids=str
)
def test_maxima_are_the_same_without_positions(options):
    x = torch.randn(2, 3, 37, 41)
    x[0, 0, 20, 20] = math.nan
    x[1, 2, 3] = -math.inf
    want, _ = F.max_pool2d(x, *options, return_indices=True)
    torch.testing.assert_close(F.max_pool2d(x, *options), want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (2, 3, 0)])
def test_batch_norm_of_nothing(shape):
    """No batch, no statistics: the running ones stay and the parameters' gradients are zero."""
    layer = nn.BatchNorm1d(3)
    x = torch.zeros(shape, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == x.grad.shape == x.shape and layer.num_batches_tracked == 1
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0, 0, 0]


def test_group_norm_of_nothing_has_gradients():
    layer = nn.GroupNorm(1, 3)
    layer(torch.zeros(0, 3, 2)).sum().backward()
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "mode, padding, lost",
    [("bilinear", "zeros", True), ("bilinear", "border", False), ("nearest", "zeros", False), ("bicubic", "zeros", True),
     ("bicubic", "border", True), ("bicubic", "reflection", True)],
)  # fmt: skip
def test_grid_sample_at_no_place(mode, padding, lost, value):
    image = torch.ones(1, 2, 4, 4)
    grid = torch.tensor([[[[value, 0.3], [0.2, value], [0.1, 0.1]]]])
    result = F.grid_sample(image, grid, mode, padding, False)
    assert result[0, :, 0, :2].isnan().tolist() == [[lost] * 2] * 2
    torch.testing.assert_close(result[0, :, 0, 2], torch.ones(2))
