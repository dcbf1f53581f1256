"""What a bug report should say of the machine: ``python -m rushlight.collect_env``."""

import os
import platform
import sys

import rushlight as torch
from rushlight._C import _cuda

__all__ = ["get_pretty_env_info", "main"]

_LIBRARIES = ("libcuda", "libnvrtc", "libcublasLt", "libcudnn")
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "OMP_NUM_THREADS", "XDG_CACHE_HOME")


def _devices():
    count = torch.cuda.device_count()
    for index in range(count):
        try:
            properties = torch.cuda.get_device_properties(index)
        except RuntimeError as error:
            yield f"cuda:{index}", str(error)
        else:
            capability = f"{properties.major}.{properties.minor}"
            memory = properties.total_memory / (1 << 30)
            yield f"cuda:{index}", f"{properties.name}, capability {capability}, {memory:.2f} GiB"
    if not count:
        yield "CUDA devices", "none"


def _libraries():
    for name in _LIBRARIES:
        path, tried = _cuda.library(name)
        yield name, path if path else "not found in: " + ", ".join(tried)


def get_pretty_env_info():
    """The versions, the devices, NVIDIA's libraries (where each was found or looked for) and the settings, as text."""
    variables = sorted({*_VARIABLES, *(name for name in os.environ if name.startswith("RUSHLIGHT_"))})
    lines = [
        ("rushlight", torch.__version__),
        ("Python", sys.version.split()[0]),
        ("Platform", platform.platform()),
        ("CPU threads", torch.get_num_threads()),
        *_devices(),
        *_libraries(),
        *((name, os.environ[name]) for name in variables if name in os.environ),
    ]
    return "\n".join(f"{name}: {value}" for name, value in lines)


def main():
    """Prints `get_pretty_env_info()`."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
