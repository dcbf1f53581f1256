"""Writes the type stub of the extension module from its registry of operators: `stubs.py _C.so _C.pyi`.

The build runs it after linking, so that editors and type checkers know every operator's arguments, overloads, in-place
and out= forms.
"""

import importlib.util
import pathlib
import re
import sys

_TYPES = {
    "Tensor": "Tensor", "Tensor?": "Tensor | None", "Tensor|Scalar": "Tensor | _number",
    "Tensor|Scalar?": "Tensor | _number | None", "Tensor[]": "Sequence[Tensor]", "Tensor?[]": "Sequence[Tensor | None]",
    "int": "_int", "int?": "_int | None", "int[]": "_ints", "int[]?": "_ints | None", "float": "_float",
    "float?": "_float | None", "float[]": "Sequence[_float]", "float[]?": "Sequence[_float] | None", "bool": "_bool",
    "bool?": "_bool | None", "bool[]": "Sequence[_bool]", "Scalar": "_number", "Scalar?": "_number | None",
    "Scalar[]": "Sequence[_number]", "str": "_str", "str?": "_str | None", "ScalarType": "_dtype",
    "ScalarType?": "_dtype | None", "Device?": "_device", "Generator?": "Generator | None",
    "MemoryFormat?": "memory_format | None", "Layout?": "layout | None", "()": "None",
}  # fmt: skip
_KEYWORDS = ("from", "is", "in", "lambda", "None", "return", "class", "def", "global")

_HEAD = '''"""The operators and types of the extension module; written by tools/stubs.py."""

import builtins
from collections.abc import Sequence
from typing import Any, overload

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_str = builtins.str
_number = builtins.int | builtins.float | builtins.bool | builtins.complex
_ints = builtins.int | Sequence[builtins.int]

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

class dtype:
    @property
    def is_floating_point(self) -> _bool: ...
    @property
    def is_complex(self) -> _bool: ...
    @property
    def is_signed(self) -> _bool: ...
    @property
    def itemsize(self) -> _int: ...

class device:
    type: _str
    index: _int | None
    def __init__(self, type: _str | device | _int, index: _int | None = None) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *exc: Any) -> None: ...

class layout: ...
class memory_format: ...

class Generator:
    device: device
    def __init__(self, device: _device = None) -> None: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def seed(self) -> _int: ...
    def initial_seed(self) -> _int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, state: Tensor) -> Generator: ...

_dtype = dtype
_device = device | builtins.str | builtins.int | None
'''

_PROPERTIES = {
    "shape": "Size", "dtype": "_dtype", "device": "device", "layout": "layout", "grad": "Tensor | None",
    "requires_grad": "_bool", "ndim": "_int", "itemsize": "_int", "nbytes": "_int", "data": "Tensor", "is_leaf": "_bool",
    **dict.fromkeys(("T", "mT", "H", "mH", "real", "imag"), "Tensor"),
}  # fmt: skip


def _split(text, separator=","):
    """Parts between separators that stand outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == "'":
            quoted = not quoted
        elif not quoted:
            depth += (c in "[(") - (c in "])")
            if c == separator and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _returns(text):
    if text.startswith("(") and text != "()":
        return f"tuple[{', '.join('Tensor' for _ in _split(text[1:-1]))}]"
    return "tuple[Tensor, ...]" if text == "Tensor[]" else _TYPES[text]


def signatures(schema, name, *, method, in_place):
    """The definition that one schema gives, as a line of a stub."""
    body, result = re.fullmatch(r"[\w.]+\((.*)\) -> (.*)", schema).groups()
    arguments, starred = [], False
    for i, text in enumerate(_split(body)):
        if text == "*":
            arguments.append("*")
            starred = True
            continue
        kind, _, rest = text.partition(" ")
        argument, _, default = rest.partition("=")
        if i == 0 and argument == "self":
            argument = "self" if method else "input"
        if argument in _KEYWORDS:
            argument += "_"
        kind = _TYPES[re.sub(r"\[\d+\]", "[]", kind)]
        arguments.append("self" if argument == "self" else f"{argument}: {kind}{' = ...' if default else ''}")
    tensors = result == "Tensor" or (result.startswith("(") and result != "()")
    if not method and not in_place and tensors and " out" not in body:
        arguments += ([] if starred else ["*"]) + [f"out: {_returns(result)} | None = None"]
    return f"def {name}({', '.join(arguments)}) -> {_returns(result)}: ..."


def _definitions(operator, name, *, method, in_place, indent=""):
    lines = [signatures(schema, name, method=method, in_place=in_place) for schema in operator.schemas]
    lines = list(dict.fromkeys(lines))
    mark = [indent + "@overload"] if len(lines) > 1 else []
    return [text for line in lines for text in (*mark, indent + line)]


def write(module):
    """The stub's text."""
    lines = [_HEAD]
    lines += [f"{name}: {type(value).__name__}" for name, value in sorted(vars(module).items())
              if type(value).__name__ in ("dtype", "layout", "memory_format")]  # fmt: skip
    lines += ["default_generator: Generator", "", "class Tensor:"]
    operator_type = module.Operator
    for name, value in sorted(vars(module.Tensor).items()):
        if isinstance(value, operator_type):
            in_place = name.endswith("_") and name not in module._operator_names
            lines += _definitions(value, name, method=True, in_place=in_place, indent="    ")
        elif name in _PROPERTIES:
            lines.append(f"    {name}: {_PROPERTIES[name]}")
        elif type(value).__name__ == "getset_descriptor":
            lines.append(f"    {name}: Any")
        elif callable(value) and name not in ("__class__", "__doc__", "__new__", "__hash__", "__getattribute__"):
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
    lines.append("")
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, operator_type):
            in_place = name.endswith("_") and name not in module._operator_names
            lines += _definitions(value, name, method=False, in_place=in_place)
        elif isinstance(value, type) and name not in (
            "Tensor",
            "Size",
            "dtype",
            "device",
            "layout",
            "memory_format",
            "Generator",
        ):
            base = "(RuntimeError)" if issubclass(value, Exception) else ""
            lines.append(f"class {name}{base}:\n    def __getattr__(self, name: _str) -> Any: ...")
        elif callable(value) and not isinstance(value, type):
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
    return "\n".join(lines) + "\n"


def main(extension, output):
    spec = importlib.util.spec_from_file_location("_C", extension)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pathlib.Path(output).write_text(write(module))


if __name__ == "__main__":
    main(*sys.argv[1:])
