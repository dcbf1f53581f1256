"""``import torch`` where this folder is on ``sys.path``: makes ``torch`` and ``torch.x.y`` the modules of rushlight.

A file on the path rather than a hook installed by the launcher, because the path is what spawned workers inherit.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import rushlight


class _Alias(MetaPathFinder, Loader):
    """Finds ``torch.x`` by importing ``rushlight.x``: one module object with two names."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.startswith("torch.") else None

    def create_module(self, spec):
        module = importlib.import_module("rushlight" + spec.name.removeprefix("torch"))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        # The module is loaded already; the import system has only written the alias's spec over its own.
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Alias())
sys.modules["torch"] = rushlight
