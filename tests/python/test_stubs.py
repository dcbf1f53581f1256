"""The type stub that the build writes: it parses, and knows every operator."""

import ast
import importlib.util
import pathlib

import rushlight as torch

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "stubs.py"
spec = importlib.util.spec_from_file_location("stubs", TOOL)
stubs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stubs)


def test_stub_parses_and_is_complete():
    tree = ast.parse(stubs.write(torch._C))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    (tensor,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor"]
    methods = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    for name in torch._C._operator_names:
        operator = getattr(torch._C, name, None)
        assert not isinstance(operator, torch._C.Operator) or name in functions
        assert name in methods or not isinstance(torch.Tensor.__dict__.get(name), torch._C.Operator)
    assert {"add", "add_", "backward", "numpy"} <= methods


def test_signatures():
    of = stubs.signatures
    assert (
        of("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "max", method=False, in_place=False)
        == "def max(input: Tensor, dim: _int, keepdim: _bool = ..., *, out: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]: ..."
    )  # fmt: skip
    assert (
        of("add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", "add_", method=True, in_place=True)
        == "def add_(self, other: Tensor | _number, *, alpha: _number = ...) -> Tensor: ..."
    )
    assert (
        of("pad(Tensor input, int[2] pad, str mode='a, b') -> Tensor[]", "pad", method=False, in_place=False)
        == "def pad(input: Tensor, pad: _ints, mode: _str = ...) -> tuple[Tensor, ...]: ..."
    )
