"""python -m rushlight: scripts that say ``import torch`` run on rushlight, in this process and in those it starts."""

import subprocess
import sys
import textwrap


def run(tmp_path, source, *arguments, module=False):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    target = ["-m", "script"] if module else [str(script)]
    return subprocess.run(
        [sys.executable, "-m", "rushlight", *target, *arguments], capture_output=True, text=True, cwd=tmp_path
    )


def test_torch_and_its_submodules_are_rushlight(tmp_path):
    result = run(
        tmp_path,
        """
        import sys
        import torch
        import torch.nn.functional as F
        from torch.optim import lr_scheduler
        import rushlight
        import rushlight.optim
        assert torch is rushlight
        assert F is rushlight.nn.functional
        assert sys.modules["torch.optim"] is rushlight.optim
        assert rushlight.optim.__spec__.name == "rushlight.optim"
        print(__name__, sys.argv[1:])
        """,
        "a",
        "-b",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "__main__ ['a', '-b']\n"


def test_a_missing_module_is_an_import_error(tmp_path):
    result = run(tmp_path, "import torch.no_such_module")
    assert result.returncode == 1
    assert "ModuleNotFoundError: No module named 'rushlight.no_such_module'" in result.stderr


def test_spawned_workers_have_it_too(tmp_path):
    result = run(
        tmp_path,
        """
        import multiprocessing
        import torch

        def work(i):
            return torch.__name__ + str(i)

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
        """,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "['rushlight1', 'rushlight2']\n"


def test_modules_and_exit_codes(tmp_path):
    assert run(tmp_path, "import sys, torch; sys.exit(3)", module=True).returncode == 3
    assert (
        "can't open file"
        in subprocess.run(
            [sys.executable, "-m", "rushlight", "none.py"], capture_output=True, text=True, cwd=tmp_path
        ).stderr
    )
