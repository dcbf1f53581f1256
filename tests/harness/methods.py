"""What a schema looks like as a C++ method of Tensor: the line of include/rushlight/methods.h and that of
src/ops/methods.cpp. The test prints the lines that are missing, to be put there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]

TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const Tensor&", "Tensor|Scalar": "const Tensor&",
    "Tensor|Scalar?": "const Tensor&", "Tensor[]": "Tensors", "Tensor?[]": "Tensors", "int": "int64_t",
    "int?": "OptInt", "int[]": "Ints", "int[]?": "OptInts", "float": "double", "float?": "OptDouble",
    "float[]": "std::span<const double>", "float[]?": "std::optional<std::span<const double>>", "bool": "bool", "bool?": "OptBool", "bool[]": "std::span<const bool>",
    "Scalar": "const Scalar&", "Scalar?": "OptScalar", "Scalar[]": "std::span<const Scalar>", "str": "std::string_view",
    "str?": "OptStr", "ScalarType": "DType", "ScalarType?": "OptDType", "Device?": "OptDevice", "Generator?": "Generator*",
    "MemoryFormat?": "OptMemoryFormat", "Layout?": "OptLayout",
}  # fmt: skip
RESULTS = {
    "Tensor": "Tensor",
    "Tensor[]": "std::vector<Tensor>",
    "bool": "bool",
    "int": "int64_t",
    "float": "double",
    "Scalar": "Scalar",
    "()": "void",
}
# Words of C++, members that tensor.h has itself, and operators that PyTorch has in place only.
KEYWORDS = {"bool", "char", "short", "int", "long", "float", "double", "from", "register", "and", "or", "not"}
MEMBERS = {"detach", "is_floating_point", "is_complex", "numel"}
IN_PLACE_ONLY = {"fill", "copy", "zero", "uniform", "log_normal", "exponential", "cauchy", "geometric"}


def default(kind, text):
    if text == "None":
        return "nullptr" if kind == "Generator?" else "{}"
    if text in ("True", "False"):
        return text.lower()
    if text.endswith("_format"):
        return "MemoryFormat::" + text.removesuffix("_format").capitalize()
    if text.startswith("["):
        return "{" + text[1:-1] + "}" if text != "[]" else "Ints()"
    if kind.startswith("int[") and kind != "int[1]":
        return "{" + ", ".join([text] * int(re.search(r"\d+", kind)[0])) + "}"
    if text in ("int64", "float32"):
        return "k" + text.capitalize()
    return text.replace("'", '"') + ("0" if text.endswith(".") else "")


def split(text):
    return re.findall(r"(?:[^,\[']|\[[^\]]*\]|'[^']*')+", text)


def method(schema):
    """(name, result, arguments): each argument is (type, name, default or None)."""
    name, body, result = re.fullmatch(
        r"(\w+)(?:\.\w+)?\(Tensor(?:\|Scalar)? self(?:, )?(.*)\) -> (.*)", schema
    ).groups()
    arguments = []
    for text in split(body):
        if text.strip() == "*":
            continue
        kind, _, rest = text.strip().partition(" ")
        argument, _, value = rest.partition("=")
        base = re.sub(r"\[\d+\]", "[]", kind)
        argument += "_" * (argument in KEYWORDS)
        kind_here = "Ints" if base == "int[]?" and not value else TYPES[base]  # so that sum({0, 1}) can be written
        arguments.append((kind_here, argument, default(kind, value) if value else None))
    if result not in RESULTS:
        result = f"std::array<Tensor, {result.count('Tensor')}>"
    return name, RESULTS.get(result, result), arguments


def lines(identifier, schemas, in_place):
    """The pairs (declaration, definition) of an operator whose C++ name is `identifier`."""
    for which, schema in enumerate(schemas):
        if not re.match(r"\w+(\.\w+)?\(Tensor(\|Scalar)? self", schema):
            continue
        name, result, arguments = method(schema)
        declared = ", ".join(f"{kind} {a}" + (f" = {d}" if d is not None else "") for kind, a, d in arguments)
        given = ", ".join(f"{kind} {a}" for kind, a, _ in arguments)
        passed = "".join(f", {a}" for _, a, _ in arguments)
        if name not in KEYWORDS | MEMBERS | IN_PLACE_ONLY and not name.startswith("_"):
            yield (
                f"{result} {name}({declared}) const;",
                f"{result} Tensor::{name}({given}) const {{ return rush::{identifier}(*this{passed}); }}",
            )
        if in_place[which] and result == "Tensor" and not name.startswith("_"):
            yield (
                f"Tensor {name}_({declared}) const;",
                f"Tensor Tensor::{name}_({given}) const {{ return write<{which}>(rush::{identifier}, *this{passed}); }}",
            )


def declared_operators():
    """C++ name and Python name of every operator, by index file."""
    for path in sorted((ROOT / "include" / "rushlight" / "ops").glob("*.def")):
        text = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("//"))
        for identifier, name in re.findall(r'OP\((\w+),\s*"(\w+)', text):
            yield path.stem, identifier, name
