"""Every row of tests/cases on a GPU: values, dtypes, layouts and gradients as on the CPU."""

import importlib
import pathlib
import re

import numpy as np
import pytest

import rushlight as torch
from tests.harness import ROWS, map_tensors, tensors_in, to_numpy
from tests.harness.checks import _sliced, _transposed, as_list, assert_near, describe

for file in sorted((pathlib.Path(__file__).parents[1] / "cases").glob("*.py")):
    importlib.import_module(f"tests.cases.{file.stem}")

# Their results have no values of their own, or lie on the device that they name.
NOT_COMPARED = ("empty_like", "new_empty", "new_empty_strided", "to", "cpu")


def to_gpu(x):
    return map_tensors(lambda t: t.cuda(), x)


def both(case, args, kwargs, dtype, what):
    """Compares the operator's results on the CPU and on a GPU."""
    expected = case.function(*map_tensors(torch.clone, list(args)), **kwargs)
    found = case.function(*to_gpu(list(args)), **to_gpu(kwargs))
    if not tensors_in(expected):
        assert found == expected, what
        return
    assert all(t.is_cuda for t in tensors_in(found)), what
    assert [t.dtype for t in tensors_in(found)] == [t.dtype for t in tensors_in(expected)], what
    found = map_tensors(lambda t: t.cpu(), as_list(found))
    assert_near(found, as_list(to_numpy(expected)), dtype, case, what)


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_values_and_layouts(case):
    if case.draws or case.name in NOT_COMPARED:
        pytest.skip("gives other values than on the CPU")
    for dtype in case.dtypes:
        for args, kwargs in case.samples(dtype):
            if not tensors_in([args, kwargs]):
                pytest.skip("takes no tensors")
            both(case, args, kwargs, dtype, f"{case.id} {describe(args, kwargs)}")
            for change in (_transposed, _sliced) if case.layouts and dtype == case.dtypes[0] else ():
                strided = map_tensors(change, list(args)), map_tensors(change, kwargs)
                both(case, *strided, dtype, f"{case.id} {change.__name__} {describe(args, kwargs)}")


@pytest.mark.parametrize("case", [c for c in ROWS.values() if c.grad], ids=lambda c: c.id)
def test_gradients(case):
    if case.draws or not {"float32", "float64"} & set(case.dtypes):
        pytest.skip("no gradients to compare")
    for args, kwargs in case.samples("float64" if "float64" in case.dtypes else "float32"):
        results = []
        for move in (torch.clone, torch.Tensor.cuda):
            sources = []

            def source(t, move=move, sources=sources):
                if not t.is_floating_point() or getattr(t, "constant", False):
                    return move(t)
                sources.append(move(t).detach().requires_grad_())
                return sources[-1]

            given = map_tensors(source, [list(args), kwargs])
            try:
                out = [t for t in tensors_in(as_list(case.function(*given[0], **given[1]))) if t.requires_grad]
                if not out or not sources:
                    break
                sum((t * t.conj()).real.sum() for t in out).backward()
            except NotImplementedError as e:
                assert "derivative for" in str(e), str(e)
                break
            results.append([s.grad.cpu() for s in sources if s.grad is not None])
        if len(results) == 2:
            found, expected = to_numpy(results[1]), to_numpy(results[0])
            scales = [max(1, np.abs(e).max(initial=0)) for e in expected]
            found, expected = ([g / scale for g, scale in zip(grads, scales)] for grads in (found, expected))
            assert_near(found, expected, "float32", case, f"{case.id} {describe(args, kwargs)}")


def test_what_runs_on_the_host_is_documented():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "devices.md").read_text()
    section = text.split("## What computes on the host")[1].split("\n## ")[0]
    operators = [getattr(torch._C, name) for name in dir(torch._C)]
    operators = [o for o in operators if isinstance(o, type(torch._C.add))]
    marked = {o.__name__ for o in operators if any(t["on_host"] for t in o.traits)}
    assert set(re.findall(r"`(\w+)`", section)) == marked and marked
