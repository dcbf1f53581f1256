"""Types for annotations."""

import builtins
from collections.abc import Sequence
from typing import Any

from . import _C
from ._C import Size, Tensor, device, dtype, layout  # noqa: F401
from .storage import TypedStorage, UntypedStorage

_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_dtype, _device, _size, _layout = dtype, device, Size | list[_int] | tuple[_int, ...], layout
Number = (_int, _float, _bool)
Device = _C.device | str | _int | None
Storage = UntypedStorage | TypedStorage
_TensorOrTensors = Tensor | Sequence[Tensor]
_Any = Any
