"""Random numbers on CUDA devices: seeds and states of their generators."""

import rushlight as torch
from rushlight._C import _cuda

from ._device import current_index, index_of


def _generator(device):
    return _cuda.default_generator(index_of(device))


def manual_seed(seed):
    """Seeds the generator of the current device; nothing happens where there is none."""
    if _cuda.device_count():
        _cuda.default_generator(_cuda.current_device()).manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds the generators of all devices."""
    for index in range(_cuda.device_count()):
        _cuda.default_generator(index).manual_seed(int(seed))


def seed():
    """Seeds the generator of the current device with a number that cannot be foreseen."""
    if _cuda.device_count():
        _cuda.default_generator(_cuda.current_device()).seed()


def seed_all():
    """Seeds the generators of all devices with one number that cannot be foreseen."""
    if _cuda.device_count():
        manual_seed_all(torch.Generator().seed())


def initial_seed():
    """The seed of the current device's generator."""
    return _cuda.default_generator(current_index()).initial_seed()


def get_rng_state(device="cuda"):
    """The state of a device's generator, as a uint8 tensor on the CPU: its seed and how far it has come."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda"):
    """Lets a device's generator go on from a state that `get_rng_state` gave."""
    _generator(device).set_state(new_state)


def get_rng_state_all():
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(_cuda.device_count())]


def set_rng_state_all(new_states):
    """Sets the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


class _Generators:
    """The generators of all devices, by number."""

    def __len__(self):
        return _cuda.device_count()

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"there is no device {index}")
        return _cuda.default_generator(index)


default_generators = _Generators()
