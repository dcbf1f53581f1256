"""Data sets: by index (`Dataset`) or by iteration (`IterableDataset`), and ways to combine them."""

import math
import warnings
from bisect import bisect_right
from itertools import accumulate
from types import GenericAlias

import rushlight as torch

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """Base class of data sets whose samples have an index.

    A subclass defines ``__getitem__(index)`` and usually ``__len__()``; it may define ``__getitems__(indices)``, which
    returns the list of samples of a batch, where that is quicker. ``a + b`` concatenates.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base class of data sets that are streams: a subclass defines ``__iter__()``. ``a + b`` chains."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors with the same first dimension; sample ``i`` is the tuple of their elements ``i``.

    Raises AssertionError where the first dimensions differ.
    """

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


def _get_items(dataset, indices):
    """The samples of a batch, by ``__getitems__`` if the data set has it."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class StackDataset(Dataset):
    """Data sets of the same length side by side: sample ``i`` is a tuple, or with keywords a dict, of their samples ``i``.

    Raises ValueError where lengths differ, and for none or both kinds of arguments.
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        every = list(args or kwargs.values())
        self._length = len(every[0])
        if any(len(d) != self._length for d in every):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {key: d[index] for key, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices):
        if isinstance(self.datasets, dict):
            rows = zip(*(_get_items(d, indices) for d in self.datasets.values()))
            return [dict(zip(self.datasets, row)) for row in rows]
        return list(zip(*(_get_items(d, indices) for d in self.datasets)))

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Data sets one after the other, under one index. Raises AssertionError for none and for iterable ones."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence):
        """The sums of the lengths up to each element."""
        return list(accumulate(map(len, sequence)))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - self.cumulative_sizes[which - 1] if which else idx]


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _checked(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self):
        for d in self._checked():
            yield from d

    def __len__(self):
        return sum(map(len, self._checked()))


class Subset(Dataset):
    """Those samples of a data set that ``indices`` lists.

    A subclass that overrides ``__getitem__`` must override ``__getitems__`` too, or NotImplementedError is raised.
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__, by which DataLoader gets its batches. "
                "Define it too, for example as: return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        return _get_items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Splits a data set at random into subsets that do not overlap.

    Args:
        dataset (Dataset): what to split.
        lengths (sequence): how many samples each subset gets, or fractions that add up to 1; samples left over by
            rounding down go to the subsets in turn.
        generator (Generator, optional): where the permutation is drawn; the default one if not given.

    Returns a list of `Subset`. Raises ValueError where lengths do not add up to the data set's.
    """
    size = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(lengths)):
            lengths[i % len(lengths)] += 1
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = torch.randperm(size, generator=generator).tolist()
    return [Subset(dataset, indices[end - length : end]) for end, length in zip(accumulate(lengths), lengths)]
