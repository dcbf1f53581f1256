"""Building blocks of models: ``Module``, ``Parameter``, the layers, ``functional``, ``init`` and ``utils``."""

from __future__ import annotations

from . import functional, init, modules, parallel, utils
from .modules import *
from .modules.module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
