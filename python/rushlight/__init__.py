"""Rushlight: tensors, automatic differentiation and neural networks with PyTorch's names.

``import rushlight as torch`` runs PyTorch code. Importing loads one extension module and little else; subpackages and
NumPy are loaded when they are first used.
"""

import importlib

from . import _C, _tensor  # noqa: F401  (_tensor adds methods to Tensor)
from ._C import *  # noqa: F403
from ._C import Tensor

__version__ = "0.1.0"

# Names of the package that live in a module which is loaded on first use.
_LAZY = {
    **dict.fromkeys(("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"), "autograd.grad_mode"),
    **dict.fromkeys(("save", "load"), "serialization"),
    **dict.fromkeys(("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state"), "random"),
    **dict.fromkeys(("set_printoptions", "get_printoptions"), "_tensor_str"),
    **dict.fromkeys(("finfo", "iinfo", "typename", "get_file_path"), "_info"),
    **dict.fromkeys(("asarray", "nonzero", "unique_consecutive"), "_functions"),
    **dict.fromkeys(("TypedStorage", "UntypedStorage"), "storage"),
    "vmap": "func",
    **dict.fromkeys(("autocast", "is_autocast_available"), "amp.autocast_mode"),
    "GradScaler": "amp.grad_scaler",
}
_SUBPACKAGES = frozenset(
    ("__config__", "amp", "ao", "autograd", "backends", "cpu", "cuda", "distributed", "fft", "func", "jit", "linalg", "masked", "nn",
     "onnx", "optim", "overrides", "profiler", "quantization", "random", "return_types", "serialization", "signal",
     "special", "storage", "testing", "types", "utils", "version")
)  # fmt: skip

inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None


def is_tensor(obj):
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def get_device(input):
    """The index of the device that the tensor `input` is on; -1 for the CPU."""
    return input.get_device()


def is_storage(obj):
    """Whether `obj` is a storage object."""
    return type(obj).__name__ in ("TypedStorage", "UntypedStorage")


def __getattr__(name):
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    elif name in _SUBPACKAGES:
        try:
            value = importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None
    elif name.startswith("_") and not name.startswith("__") and hasattr(_C, name):
        value = getattr(_C, name)
    else:
        value = _tensor.functions().get(name)
        if value is None and name.endswith(("Tensor", "Storage")):
            value = importlib.import_module(f"{__name__}._legacy").find(name)
        if value is None and name.startswith("_foreach_"):
            value = importlib.import_module(f"{__name__}._foreach").FUNCTIONS.get(name)
        if value is None:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY, *_SUBPACKAGES})


for _name in _LAZY:  # the package's own stand before an operator of that name
    globals().pop(_name, None)

# Last, since these names hide Python's own: torch.float, torch.int, torch.bool ...
globals().update(_C._dtype_aliases)
