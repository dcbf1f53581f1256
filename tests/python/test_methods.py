"""Tensor's C++ methods are written by hand, one line each; here they are held against the registry."""

import re

import rushlight as torch
from tests.harness.methods import ROOT, declared_operators, lines


def squeezed(path):
    return re.sub(r"\s+", "", (ROOT / path).read_text())


def expected():
    for _, identifier, name in declared_operators():
        operator = getattr(torch._C, name, None)
        if not isinstance(operator, torch._C.Operator):
            operator = torch.Tensor.__dict__[name]
        yield from lines(identifier, operator.schemas, [overload["in_place"] for overload in operator.traits])


def test_every_method_is_declared_and_defined():
    header, source = squeezed("include/rushlight/methods.h"), squeezed("src/ops/methods.cpp")
    missing = [
        f"{file}: {line}"
        for pair in expected()
        for file, text, line in (("methods.h", header, pair[0]), ("methods.cpp", source, pair[1]))
        if re.sub(r"\s+", "", line) not in text
    ]
    assert not missing, "add these lines:\n" + "\n".join(missing)
