"""How the library was built, as text."""

from . import _C, __version__


def show():
    """Names the version and how kernels are chosen."""
    from .backends.cpu import get_cpu_capability

    return (
        f"Rushlight {__version__}\n  - CPU kernels: Google Highway, chosen at run time\n"
        f"  - CPU capability usage: {get_cpu_capability()}\n"
    )


def parallel_info():
    """Names the thread pool and its size."""
    return f"thread pool of the library's own, no OpenMP\n\ttorch.get_num_threads() : {_C.get_num_threads()}\n"
