"""Makes `tests.harness` and `tests.cases` importable from wherever pytest is started."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
