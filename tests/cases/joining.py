"""Joining, splitting, repeating and rearranging."""

import numpy as np

from tests.harness import Case, V

SOME = ("float32", "float64", "int64", "bool", "complex64")
PAIR = [([(2, 3), (2, 3)],), ([(1, 4), (1, 4), (1, 4)],)]


def row(name, f, inputs, **options):
    Case(name, ref=f, inputs=inputs, dtypes=options.pop("dtypes", SOME), gives=options.pop("gives", "same"), **options)


for name in ("cat", "concat", "concatenate"):
    row(name, np.concatenate, [([(2, 3), (4, 3)],), ([(2, 3), (2, 1)], 1), ([(0, 3), (2, 3)],), ([(3,)], -1)],
        raises=[(([(2, 3), (2, 4)], 0), RuntimeError, "")])  # fmt: skip
row("stack", np.stack, [*PAIR, ([(2, 3), (2, 3)], -1), ([(), ()],)])
row("hstack", np.hstack, [*PAIR, ([(2,), (3,)],)])
for name in ("vstack", "row_stack"):
    row(name, np.vstack, [*PAIR, ([(3,), (3,)],)])
row("dstack", np.dstack, [*PAIR, ([(3,), (3,)],)])
row("column_stack", np.column_stack, [*PAIR, ([(3,), (3, 2)],)])
row(
    "block_diag",
    lambda ts: np.block([[ts[0], np.zeros((2, 2))], [np.zeros((1, 3)), ts[1]]]),
    [([(2, 3), (1, 2)],)],
    dtypes=("float32", "float64"),
)
row(
    "cartesian_prod",
    lambda ts: np.stack([g.reshape(-1) for g in np.meshgrid(*ts, indexing="ij")], 1),
    [([(2,), (3,)],)],
)
row("combinations", lambda x, r=2: np.stack([[x[0], x[1]], [x[0], x[2]], [x[1], x[2]]]), [(3,)])
row(
    "meshgrid",
    lambda ts, indexing="ij": np.meshgrid(*ts, indexing=indexing),
    [([(2,), (3,)],)],
    kwargs=[{"indexing": "ij"}, {"indexing": "xy"}],
)
row("broadcast_tensors", lambda ts: np.broadcast_arrays(*ts), [([(2, 1), (3,)],)])
row("broadcast_to", np.broadcast_to, [((2, 1), V((4, 2, 3)))])
for n in (1, 2, 3):
    row(f"atleast_{n}d", getattr(np, f"atleast_{n}d"), [(), (3,), (2, 3)])

NINE = [((9, 2), 3), ((2, 7), 3, 1)]
for name in ("split", "unsafe_split", "split_copy"):
    row(name, lambda x, n, dim=0: np.split(x, range(n, x.shape[dim], n), dim), NINE)
for name in ("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy"):
    row(name, lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim), [((6, 2), V((1, 2, 3)))])
row("split", lambda x, sizes, dim=0: np.split(x, np.cumsum(sizes)[:-1], dim), [((6, 2), V((1, 2, 3)))], suffix="sizes")
for name in ("chunk", "unsafe_chunk"):
    row(
        name,
        lambda x, n, dim=0: np.split(x, range(-(-x.shape[dim] // n), x.shape[dim], -(-x.shape[dim] // n)), dim),
        [((7, 2), 3), ((2, 4), 2, 1)],
    )
row("tensor_split", np.array_split, [((7, 2), 3), ((2, 6), V((1, 3)), 1)])
row("hsplit", np.hsplit, [((2, 6), 3), ((6,), V((1, 3)))])
row("vsplit", np.vsplit, [((6, 2), 3)])
row("dsplit", np.dsplit, [((1, 2, 6), 3)])
for name in ("unbind", "unbind_copy"):
    row(name, lambda x, dim=0: list(np.moveaxis(x, dim, 0)), [((3, 2),), ((3, 2), 1)])
windows = np.lib.stride_tricks.sliding_window_view
for name in ("unfold", "unfold_copy"):
    row(
        name,
        lambda x, d, n, step: np.take(windows(x, n, d), range(0, x.shape[d] - n + 1, step), d),
        [((7,), 0, 3, 2), ((2, 5), 1, 2, 1)],
    )
for name in ("movedim", "moveaxis"):
    row(name, np.moveaxis, [((2, 3, 4), 0, 2), ((2, 3, 4), V((0, 1)), V((2, 0))), ((), V(()), V(()))])
for name in ("swapaxes", "swapdims"):
    row(name, np.swapaxes, [((2, 3, 4), 0, 2)])
row(
    "flatten",
    lambda x, a=0, b=-1: x.reshape(-1) if a == 0 else x.reshape(x.shape[0], -1),
    [((2, 3, 4),), ((2, 3, 4), 1), ((),)],
)
row("unflatten", lambda x, d, s: x.reshape(x.shape[0], *s), [((2, 6), 1, V((2, 3)))])
row("ravel", np.ravel, [(2, 3), ()])
row("numpy_T", np.transpose, [(2, 3), (3, 3)])
for name in ("mT", "adjoint", "mH"):
    row(name, lambda x, c=name != "mT": np.swapaxes(x.conj() if c else x, -1, -2), [(2, 3), (2, 3, 4)])
row("matrix_H", lambda x: x.conj().T, [(2, 3)])
for name, f in (("expand_as", np.broadcast_to), ("view_as", np.reshape), ("reshape_as", np.reshape)):
    row(
        name,
        lambda x, y, f=f: f(x, y.shape),
        [
            ((3, 1), (3, 1)) if f is np.reshape else ((3, 1), (3, 4)),
            ((2, 3), (3, 2)) if f is np.reshape else ((3,), (2, 3)),
        ],
        layouts=name != "view_as",
    )
for name in ("repeat", "tile"):
    row(name, np.tile, [((2, 3), V((2, 1))), ((3,), V((2, 2)))])
row("roll", lambda x, s, d=None: np.roll(x, s, d), [((2, 3), 1), ((4, 5), 2, 1), ((4, 5), V((1, -1)), V((0, 1)))])
row("flip", lambda x, d: np.flip(x, d), [((2, 3), V((0,))), ((2, 3), V((0, 1)))])
row("fliplr", np.fliplr, [(2, 3)])
row("flipud", np.flipud, [(2, 3), (3,)])
row("rot90", np.rot90, [((2, 3),), ((2, 3), 2), ((2, 3, 4), -1, V((1, 2)))])
row("alias_copy", lambda x: x, [(2, 3)])

FLOATS = ("float32", "float64")


def pad(x, pairs, mode="constant", value=None):
    widths = [(0, 0)] * (x.ndim - len(pairs) // 2) + [(pairs[i], pairs[i + 1]) for i in range(len(pairs) - 2, -1, -2)]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    return np.pad(x, widths, kind, **({"constant_values": value or 0} if mode == "constant" else {}))


row(
    "constant_pad_nd",
    lambda x, p, v=0: pad(x, p, "constant", v),
    [((2, 3), V((1, 2)), 4), ((2, 3), V((1, 0, 0, 2)))],
    dtypes=("float32", "float64", "int64"),
)
row("pad", pad, [((2, 3), V((1, 2)))], dtypes=FLOATS, kwargs=[{}, {"value": 2.5}])
row(
    "pad",
    pad,
    [((1, 2, 4), V((2, 1))), ((1, 1, 3, 4), V((1, 2, 2, 1)))],
    dtypes=FLOATS,
    kwargs=[{"mode": m} for m in ("reflect", "replicate", "circular")],
    suffix="modes",
)


def shuffle(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r**2, h * r, w * r)


def unshuffle(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r**2, h // r, w // r)


row("pixel_shuffle", shuffle, [((1, 4, 2, 3), 2)], dtypes=FLOATS)
row("pixel_unshuffle", unshuffle, [((1, 1, 4, 2), 2)], dtypes=FLOATS)
for name in ("channel_shuffle", "native_channel_shuffle"):
    row(
        name,
        lambda x, g: x.reshape(x.shape[0], g, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape),
        [((1, 4, 2), 2)],
        dtypes=FLOATS,
    )


def im2col(x, k, dilation=1, padding=0, stride=1):
    w = windows(x, (k, k), (2, 3))
    return w.transpose(0, 1, 4, 5, 2, 3).reshape(x.shape[0], x.shape[1] * k * k, -1)


row("im2col", im2col, [((1, 2, 3, 4), 2)], dtypes=FLOATS)
Case(
    "col2im",
    inputs=[((1, 4, 4), V((3, 3)), 2)],
    dtypes=FLOATS,
    expect=[(([[[1.0, 2.0], [3.0, 4.0]]], (1, 3), (1, 2)), [[[[1, 5, 4]]]])],
)
