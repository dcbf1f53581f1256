"""Recurrent networks against their cells, step by step."""

import pytest

import rushlight as torch

CELLS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SIZES = [4, 3, 3, 1]  # sequences that are still running at each step


def network(kind, layers=2):
    """Weights of a bidirectional network of size 5 over inputs of size 3, and first states of a batch of 4."""
    torch.manual_seed(0)
    gates = 5 * CELLS[kind]
    params = []
    for layer in range(layers):
        for _ in range(2):
            shapes = ((gates, 3 if layer == 0 else 10), (gates, 5), (gates,), (gates,))
            params += [torch.randn(shape, dtype=torch.float64) * 0.3 for shape in shapes]
    states = [torch.randn(2 * layers, 4, 5, dtype=torch.float64) for _ in range(2 if kind == "lstm" else 1)]
    return params, states


def by_cells(kind, rows, params, states):
    """Runs each sequence (a list of steps) alone; the last layer's states of each, and the last states."""
    cell = getattr(torch._C, f"{kind}_cell")
    results, lasts = [], []
    for n, steps in enumerate(rows):
        last = []
        for layer in range(len(params) // 8):
            directions = []
            for d in range(2):
                index = 2 * layer + d
                weights = params[4 * index : 4 * index + 4]
                hx = [s[index, n : n + 1] for s in states]
                outputs = []
                for x in reversed(steps) if d else steps:
                    hx = list(cell(x, hx, *weights)) if kind == "lstm" else [cell(x, hx[0], *weights)]
                    outputs.append(hx[0])
                last.append(hx)
                directions.append(outputs[::-1] if d else outputs)
            steps = [torch.cat(pair, 1) for pair in zip(*directions)]
        results.append(steps)
        lasts.append([torch.cat([hx[i] for hx in last]) for i in range(len(states))])
    return results, [torch.stack([last[i] for last in lasts], 1) for i in range(len(states))]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_padded(kind, batch_first):
    params, states = network(kind)
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    hx = states if kind == "lstm" else states[0]
    given = x.transpose(0, 1) if batch_first else x
    out, *last = getattr(torch._C, kind)(given, hx, params, True, 2, 0.0, False, True, batch_first)
    out = out.transpose(0, 1) if batch_first else out
    steps, expected = by_cells(kind, [[x[t, n : n + 1] for t in range(6)] for n in range(4)], params, states)
    for n in range(4):
        torch.testing.assert_close(out[:, n], torch.cat(steps[n]))
    for a, b in zip(last, expected):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", CELLS)
def test_packed(kind):
    params, states = network(kind)
    data = torch.randn(sum(SIZES), 3, dtype=torch.float64)
    starts = [sum(SIZES[:t]) for t in range(len(SIZES))]
    hx = states if kind == "lstm" else states[0]
    out, *last = getattr(torch._C, kind)(data, torch.tensor(SIZES), hx, params, True, 2, 0.0, False, True)
    rows = [[data[start + n : start + n + 1] for start, size in zip(starts, SIZES) if n < size] for n in range(4)]
    steps, expected = by_cells(kind, rows, params, states)
    for n in range(4):
        got = torch.cat([out[start + n : start + n + 1] for start, size in zip(starts, SIZES) if n < size])
        torch.testing.assert_close(got, torch.cat(steps[n]))
    for a, b in zip(last, expected):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("sizes", [[17] * 3, [17, 17, 14, 3], [2, 1]])
@pytest.mark.parametrize("kind", CELLS)
def test_gradients(kind, sizes):
    """The fused steps' against those of the cells, with more rows and units than one block has, for all uses at once."""
    hidden, features, batch = 37, 3, sizes[0]
    torch.manual_seed(1)
    gates = hidden * CELLS[kind]
    shapes = ((gates, features), (gates, hidden), (gates,), (gates,)) * 2
    params = [torch.randn(s, dtype=torch.float64) * 0.2 for s in shapes]
    states = [torch.randn(2, batch, hidden, dtype=torch.float64) for _ in range(2 if kind == "lstm" else 1)]
    data = torch.randn(sum(sizes), features, dtype=torch.float64)
    leaves = [data, *states, *params]
    starts = [sum(sizes[:t]) for t in range(len(sizes))]

    def gradients(run):
        for leaf in leaves:
            leaf.grad = None
            leaf.requires_grad_()
        out, last = run()
        weigh = [torch.linspace(-1, 2, x.numel(), dtype=torch.float64).reshape(x.shape) for x in (out, *last)]
        sum((x * w).sum() for x, w in zip((out, *last), weigh)).backward()
        return [leaf.grad for leaf in leaves]

    def fused():
        hx = states if kind == "lstm" else states[0]
        out, *last = getattr(torch._C, kind)(data, torch.tensor(sizes), hx, params, True, 1, 0.0, True, True)
        return out, last

    def stepwise():
        rows = [[data[i + n : i + n + 1] for i, size in zip(starts, sizes) if n < size] for n in range(batch)]
        steps, last = by_cells(kind, rows, params, states)
        return torch.cat([steps[n][t] for t, size in enumerate(sizes) for n in range(size)]), last

    for a, b in zip(gradients(fused), gradients(stepwise)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", CELLS)
def test_second_derivatives(kind):
    params, states = network(kind, layers=1)
    data = torch.randn(sum(SIZES), 3, dtype=torch.float64)

    def run(x, weight):
        hx = states if kind == "lstm" else states[0]
        sizes = torch.tensor(SIZES)
        return getattr(torch._C, kind)(x, sizes, hx, [params[0], weight, *params[2:]], True, 1, 0.0, True, True)[0]

    assert torch.autograd.gradgradcheck(run, (data.requires_grad_(), params[1].requires_grad_()))


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_an_empty_batch(kind):
    net = kind(2, 3, 2, bidirectional=True)
    x = torch.ones(4, 0, 2, requires_grad=True)
    y, _ = net(x)
    y.sum().backward()
    assert y.shape == (4, 0, 6) and x.grad.shape == x.shape
    assert all(p.grad.abs().sum() == 0 for p in net.parameters())
