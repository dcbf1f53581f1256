"""Runs the tests in tests/cuda, which need two GPUs, on simulated ones: each file in a process of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

FILES = sorted((pathlib.Path(__file__).parents[1] / "cuda").glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_on_simulated_gpus(file):
    environment = os.environ | {"RUSHLIGHT_SIM_GPUS": "2"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
