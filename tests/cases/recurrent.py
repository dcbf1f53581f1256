"""Single steps of recurrent networks; tests/python has the networks."""

import numpy as np

import rushlight as torch
from tests.harness import Case

BOTH = ("float32", "float64")
STEP = ((2, 3), (2, 4))


def row(name, f, gates):
    inputs = [
        (*STEP, (gates * 4, 3), (gates * 4, 4)),
        (*STEP, (gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,)),
    ]
    Case(name, ref=f, inputs=inputs, dtypes=BOTH, gives="same", tol=10)


def plain(f):
    return lambda x, h, w, u, b=0, c=0: f(x @ w.T + b + h @ u.T + c)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, w, u, b=0, c=0):
    (xr, xz, xn), (hr, hz, hn) = np.split(x @ w.T + b, 3, -1), np.split(h @ u.T + c, 3, -1)
    z, n = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * hn)
    return (1 - z) * n + z * h


row("rnn_tanh_cell", plain(np.tanh), 1)
row("rnn_relu_cell", plain(lambda x: np.maximum(x, 0)), 1)
row("gru_cell", gru, 3)


def lstm(x, hx, w, u, b=0, c=0):
    h, state = hx
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + c, 4, -1)
    state = sigmoid(f) * state + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(state), state


Case(
    "lstm_cell",
    ref=lambda x, h, c, w, u: lstm(x, (h, c), w, u)[0],
    inputs=[((2, 3), (2, 4), (2, 4), (16, 3), (16, 4))],
    dtypes=BOTH,
    gives="same",
    tol=10,
    call=lambda x, h, c, w, u: torch._C.lstm_cell(x, [h, c], w, u)[0],
)
