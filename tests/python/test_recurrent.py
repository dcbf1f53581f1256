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
