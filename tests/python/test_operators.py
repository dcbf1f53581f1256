"""Every check of tests/harness on every row of tests/cases, and that every operator has a row."""

import importlib
import pathlib

import pytest

import rushlight as torch
from tests.cases import TESTED_ELSEWHERE
from tests.harness import ROWS, checks

for file in sorted((pathlib.Path(__file__).parents[1] / "cases").glob("*.py")):
    importlib.import_module(f"tests.cases.{file.stem}")


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", ROWS.values(), ids=lambda case: case.id)
def test(case, check):
    check(case)


def test_every_operator_has_a_row():
    tested = {case.name for case in ROWS.values()} | set(TESTED_ELSEWHERE)
    assert sorted(set(torch._C._operator_names) - tested) == []


def test_rows_name_operators():
    assert sorted({case.name for case in ROWS.values()} - set(torch._C._operator_names)) == []
    assert sorted(set(TESTED_ELSEWHERE) - set(torch._C._operator_names)) == []
