"""Copies, casts and what changes a tensor's own memory."""

import numpy as np

import rushlight as torch
from tests.harness import ALL, COMPLEX, FLOATING, NUMERIC, PAIRS, SHAPES, Case, V

SAME = dict(dtypes=ALL, gives="same")


def same(x, *_, **__):
    return x


for name in ("clone", "contiguous", "positive", "resolve_conj", "resolve_neg", "cpu"):
    Case(
        name,
        ref=same,
        dtypes=NUMERIC if name == "positive" else ALL,
        gives="same",
        meta=name != "cpu",
        call=torch.Tensor.cpu if name == "cpu" else None,
    )
for name in ("conj", "conj_physical"):
    Case(name, ref=np.conj, dtypes=("float32", "int64", *COMPLEX), gives="same")
Case(
    "fill",
    ref=lambda x, v: np.full(x.shape, v, x.dtype),
    inputs=[(s, 2) for s in SHAPES] + [((3,), ())],
    dtypes=("float32", "float64", "int64", "complex64"),
)
Case("zero", ref=np.zeros_like, **SAME)
Case(
    "copy",
    ref=lambda x, y, non_blocking=False: np.broadcast_to(y, x.shape),
    inputs=[p for p in PAIRS[2:3]] + [((3, 5), (3, 5)), ((3, 5), (5,))],
    dtypes=ALL,
    gives="same",
)
Case("type_as", ref=same, inputs=PAIRS[:2], dtypes=ALL, gives="same")
for name, dtype in (
    ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("short", "int16"), ("int", "int32"), ("long", "int64"),
    ("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32"), ("double", "float64"),
    ("cfloat", "complex64"), ("cdouble", "complex128"),
):  # fmt: skip
    cast = {"bool": np.bool_, "half": np.float64, "bfloat16": np.float64}.get(name, getattr(np, dtype, None))
    Case(name, ref=lambda x, cast=cast: x.astype(cast), dtypes=("float32", "int64", "bool"), gives=dtype, domain=(0, 5), tol=300,
         grad=False, call=getattr(torch.Tensor, name))  # fmt: skip
Case(
    "to",
    ref=lambda x, *_, **__: x.astype(np.float64),
    inputs=[((3, 5), torch.float64), ((3, 5), "cpu", torch.float64)],
    dtypes=("float32", "int64"),
    gives="float64",
    meta=False,
)
Case(
    "_cast",
    ref=lambda x, _: x.astype(np.float64),
    inputs=[(s, torch.float64) for s in SHAPES],
    dtypes=("float32", "int64", "float64"),
    gives="float64",
)
Case("_to_copy", ref=same, kwargs=[{}, {"dtype": torch.float64}], dtypes=FLOATING)
Case(
    "resize_",
    ref=lambda x, s: x.reshape(s),
    inputs=[((6,), V((2, 3)))],
    dtypes=ALL,
    call=lambda x, s: x.clone().resize_(s),
    meta=False,
    layouts=False,
    grad=False,
)
Case(
    "resize_as_",
    ref=lambda x, y: x.reshape(y.shape),
    inputs=[((6,), (2, 3))],
    dtypes=ALL,
    call=lambda x, y: x.clone().resize_as_(y),
    meta=False,
    layouts=False,
    grad=False,
)
Case(
    "set_",
    ref=lambda x, y: y,
    inputs=[((6,), (2, 3))],
    dtypes=ALL,
    call=lambda x, y: x.clone().set_(y),
    meta=False,
    layouts=False,
    grad=False,
)
