"""Samplers: the order in which a loader takes samples. Random ones draw as PyTorch's do, so seeds give its shuffles."""

from itertools import islice
from types import GenericAlias

import rushlight as torch

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler:
    """Base class: a subclass defines ``__iter__()``, which yields indices or lists of them, and usually ``__len__()``."""

    __class_getitem__ = classmethod(GenericAlias)

    def __iter__(self):
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


def _positive(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _seeded():
    """A new generator whose seed is drawn from the default one."""
    return torch.Generator().manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))


class SequentialSampler(Sampler):
    """The indices of ``data_source`` in order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices of ``data_source`` in random order.

    Args:
        data_source (Dataset): what is sampled.
        replacement (bool): draw each index anew instead of permuting.
        num_samples (int, optional): how many to draw; the data source's length if not given.
        generator (Generator, optional): where to draw; if not given, each pass seeds one from the default generator.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self):
        """How many indices a pass has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, samples = len(self.data_source), self.num_samples
        generator = _seeded() if self.generator is None else self.generator
        if self.replacement:
            for _ in range(samples // 32):
                yield from torch.randint(n, (32,), generator=generator).tolist()
            yield from torch.randint(n, (samples % 32,), generator=generator).tolist()
        else:
            for _ in range(samples // n):
                yield from torch.randperm(n, generator=generator).tolist()
            yield from torch.randperm(n, generator=generator).tolist()[: samples % n]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """``num_samples`` indices, each drawn with a probability proportional to its weight.

    Raises ValueError where ``weights`` has not one dimension or ``num_samples`` is not positive.
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = torch.as_tensor(weights, dtype=torch.double)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter, or with ``drop_last`` is left out."""

    def __init__(self, sampler, batch_size, drop_last):
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while True:
            batch = list(islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size
