"""The C++ frontend's layers are Python's: same first values, results, gradients, state dicts and printed forms.

Each row of tests/frontend/cases.cpp is translated into Python's spelling here and run again.
"""

import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest

import rushlight as torch

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("RUSHLIGHT_BUILD", ROOT / "build" / "release")) / "bin" / "frontend_cases"
SOURCE = (ROOT / "tests" / "frontend" / "cases.cpp").read_text()
NAMES = re.findall(r"^  (?:CASE|INIT)\(\s*nn::([\w:]+)\(", SOURCE, re.MULTILINE)


def to_python(text):
    """``nn::Linear({.in_features = 4})`` as ``nn.Linear(in_features=4)``, and ``{2, 3}`` as ``(2, 3)``."""
    text = re.sub(r"^(nn::\w+)\( ?\{(.*)\}\)$", r"\1(\2)", text)
    text = re.sub(
        r"(randint\(\d+, )\{(\d+)\}", r"\1(\2,)", text
    )  # a list of sizes, where one number isn't taken for it
    text = re.sub(r"\{(\.\w+ = [^{}]*)\}", r"\1", text)
    text = re.sub(r"\.(\w+) = ", r"\1=", text).replace("::", ".").replace("kFloat64", "dtype=float64")
    text = text.replace("dtype=dtype=", "dtype=").replace("{", "(").replace("}", ")")
    return re.sub(r"\b(true|false)\b", lambda word: word[0].title(), text)


def evaluate(text):
    """The value of C++ text, with the package's functions and `nn` as names."""
    return eval(
        to_python(text),
        {name: getattr(torch, name) for name in re.findall(r"[a-z]\w+", to_python(text)) if hasattr(torch, name)},
    )


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    """What the C++ program did: lines of (layer, inputs, printed form) or (filled tensor,), and tensors by name."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    path = tmp_path_factory.mktemp("frontend") / "cases.pt"
    output = subprocess.run([PROGRAM, path], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in output.splitlines()], torch.load(path)


def group(tensors, prefix):
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def expect_same(ours, theirs, what):
    assert list(ours) == list(theirs), what
    for name, tensor in ours.items():
        assert tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]), f"{what} {name}"


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_row_is_the_same(cpp, index):
    rows, tensors = cpp
    assert len(rows) == len(NAMES)
    torch.manual_seed(0)
    if len(rows[index]) == 1:
        expect_same({"filled": evaluate(rows[index][0])}, group(tensors, f"{index}."), "tensor")
        return
    layer_text, inputs_text, printed = rows[index]
    layer = evaluate(layer_text)
    torch.manual_seed(1)
    inputs = evaluate(f"[{inputs_text}]")
    expect_same(layer.state_dict(), group(tensors, f"{index}.first."), "first value of")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = layer(*inputs)
        if trained.requires_grad:
            (trained * trained).sum().backward()
        layer.eval()
        evaluated = layer(*inputs)
    expect_same({"trained": trained, "evaluated": evaluated}, group(tensors, f"{index}.output."), "output")
    expect_same(layer.state_dict(), group(tensors, f"{index}.after."), "state")
    grads = {name: p.grad for name, p in layer.named_parameters() if p.grad is not None}
    expect_same(grads, group(tensors, f"{index}.grad."), "gradient of")
    assert repr(layer).replace("\n", "\\n") == printed
