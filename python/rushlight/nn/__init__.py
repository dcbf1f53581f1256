"""Building blocks of models: ``Module``, ``Parameter``, the layers, ``functional``, ``init`` and ``utils``."""

from __future__ import annotations

from . import functional, init, modules, utils
from .modules import *
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
