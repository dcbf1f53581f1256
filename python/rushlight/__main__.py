"""``python -m rushlight script.py ...`` runs a script in which ``import torch`` gives rushlight.

``python -m rushlight -m package.module ...`` does the same with a module. Processes that the script starts inherit it.
"""

import io
import os
import runpy
import sys
import types
from pathlib import Path


def main():
    arguments = sys.argv[1:]
    as_module = arguments[:1] == ["-m"]
    arguments = arguments[as_module:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit("usage: python -m rushlight (script.py | -m module) [argument ...]")
    alias = str(Path(__file__).with_name("_as_torch"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [alias, os.environ.get("PYTHONPATH")]))
    sys.path.insert(1, alias)
    sys.argv = arguments
    if as_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return

    path = arguments[0]
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        sys.exit(f"python -m rushlight: can't open file '{path}': {error.strerror}")
    sys.path[0] = str(Path(path).resolve().parent)
    # A module of its own in place of this one, as multiprocessing and pickle look things up in __main__. It has no spec, as
    # a script run by Python itself has none.
    script = types.ModuleType("__main__")
    script.__file__ = path
    sys.modules["__main__"] = script
    exec(compile(source, path, "exec"), script.__dict__)


main()
