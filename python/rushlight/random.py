"""Seeds and states of the random number generators."""

from contextlib import contextmanager

import rushlight as torch
from rushlight._C import default_generator

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def _cuda():
    """The CUDA module if there are such devices, else None."""
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_available() else None


def manual_seed(seed):
    """Seeds the generators of all devices. Returns the CPU's.

    Args:
        seed (int): from -2**63 to 2**64 - 1; a negative one counts from 2**64.
    """
    seed = int(seed)
    if _cuda():
        _cuda().manual_seed_all(seed)
    return default_generator.manual_seed(seed)


def seed():
    """Seeds the generators of all devices with a number that cannot be foreseen, and returns it."""
    value = default_generator.seed()
    if _cuda():
        _cuda().manual_seed_all(value)
    return value


def initial_seed():
    """Returns the number with which the CPU's generator was seeded."""
    return default_generator.initial_seed()


def get_rng_state():
    """Returns the state of the CPU's generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Puts the CPU's generator into a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda"):
    """Lets random numbers be drawn in a block without effect on those drawn after it.

    Args:
        devices (iterable, optional): the CUDA devices to restore besides the CPU; all if not given.
        enabled (bool): False makes this do nothing.
        device_type (str): accepted; "cuda" is the only kind of device with states of its own.
    """
    if not enabled:
        yield
        return
    cuda = _cuda()
    devices = (range(cuda.device_count()) if cuda else ()) if devices is None else list(devices)
    state, device_states = get_rng_state(), [cuda.get_rng_state(d) for d in devices]
    try:
        yield
    finally:
        set_rng_state(state)
        for d, s in zip(devices, device_states):
            cuda.set_rng_state(s, d)
