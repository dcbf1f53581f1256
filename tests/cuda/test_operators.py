"""Every row of tests/cases on a GPU: values, dtypes, layouts and gradients as on the CPU."""

import importlib
import pathlib
import re

import pytest

import rushlight as torch
from tests.harness import ROWS, map_tensors, tensors_in, to_numpy
from tests.harness.checks import _sliced, _transposed, as_list, assert_near, describe

for file in sorted((pathlib.Path(__file__).parents[1] / "cases").glob("*.py")):
    importlib.import_module(f"tests.cases.{file.stem}")

# Operators that have no kernel on a GPU (see docs/devices.md), by the names in the errors.
NO_KERNEL = re.compile("linalg_|fft_|matrix_solve|triangular|geqrf|lu_permutation|ctc_losses")
# Their results have no values of their own, or lie on the device that they name.
NOT_COMPARED = ("empty_like", "new_empty", "new_empty_strided", "to", "cpu")


def to_gpu(x):
    return map_tensors(lambda t: t.cuda(), x)


def both(case, args, kwargs, dtype, what):
    """Compares the operator's results on the CPU and on a GPU; False where it has no kernel there, as it may have."""
    expected = case.function(*map_tensors(torch.clone, list(args)), **kwargs)
    try:
        found = case.function(*to_gpu(list(args)), **to_gpu(kwargs))
    except NotImplementedError as e:
        assert re.search(f"Could not run '_?({NO_KERNEL.pattern}).*has no kernel", str(e)), str(e)
        return False
    if not tensors_in(expected):
        assert found == expected, what
        return True
    assert all(t.is_cuda for t in tensors_in(found)), what
    assert [t.dtype for t in tensors_in(found)] == [t.dtype for t in tensors_in(expected)], what
    found = map_tensors(lambda t: t.cpu(), as_list(found))
    assert_near(found, as_list(to_numpy(expected)), dtype, case, what)
    return True


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
                assert re.search(f"{NO_KERNEL.pattern}|derivative for", str(e)), str(e)
                break
            results.append([s.grad.cpu() for s in sources if s.grad is not None])
        if len(results) == 2:
            assert_near(results[1], to_numpy(results[0]), "float32", case, f"{case.id} {describe(args, kwargs)}")
