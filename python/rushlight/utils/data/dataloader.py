"""The loader: samples in an order, in batches, one batch at a time, in the process that asks for them."""

import warnings
from types import GenericAlias

import rushlight as torch

from ._utils.collate import collate as collate
from ._utils.collate import default_collate, default_convert
from ._utils.pin_memory import pin_memory
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler, _seeded

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


def get_worker_info():
    """What a worker process knows of itself; None in the main process."""
    return None


class _DatasetKind:
    Map = 0
    Iterable = 1


class _InfiniteConstantSampler:
    """Nothing, for ever: a stream needs no indices."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Iterates over a data set in batches.

    Args:
        dataset (Dataset): by index, or an `IterableDataset`.
        batch_size (int, optional): samples in a batch; None turns batching off.
        shuffle (bool, optional): a new random order in every pass.
        sampler (iterable, optional): the order of the indices. Not together with ``shuffle``.
        batch_sampler (iterable, optional): the lists of indices. Not together with ``batch_size``, ``shuffle``,
            ``sampler`` and ``drop_last``.
        num_workers (int): only 0 so far: the batches are made in this process.
        collate_fn (callable, optional): makes a batch of a list of samples; `default_collate` if not given, or
            `default_convert` without batching.
        pin_memory (bool): puts the tensors into pinned memory, if there is an accelerator.
        drop_last (bool): leaves out a last batch that is not full.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, in_order: of worker
            processes.
        generator (Generator, optional): where the shuffle is drawn.
        pin_memory_device (str): deprecated, ignored.

    Raises ValueError for options that exclude each other, NotImplementedError for ``num_workers`` above 0.
    """

    __class_getitem__ = classmethod(GenericAlias)
    _FIXED = frozenset(("batch_sampler", "batch_size", "dataset", "drop_last", "persistent_workers", "sampler"))
    _initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader: num_workers={num_workers}: worker processes are not there yet; use num_workers=0"
            )
        if prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={num_workers}"
            )
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        else:
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._reported_length = None
        self._initialized = True

    def __setattr__(self, name, value):
        if self._initialized and name in self._FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self):
        return _SingleProcessDataLoaderIter(self)

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


class _SingleProcessDataLoaderIter:
    """One pass over a loader's data."""

    def __init__(self, loader):
        if loader.timeout != 0:
            raise AssertionError("timeout is for worker processes: a loader with num_workers=0 needs timeout=0")
        self._loader = loader
        self._index_sampler = loader._index_sampler
        self._pin_memory = loader.pin_memory and _has_accelerator()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=3,
            )
        self._num_yielded = 0
        self._sampler_iter = iter(self._index_sampler)
        # What would seed worker processes: drawn here too, so that the shuffles that follow are PyTorch's.
        self._base_seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
        self._batches = self._make_batches()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def __next__(self):
        return next(self._batches)

    def _make_batches(self):
        loader = self._loader
        if loader._dataset_kind == _DatasetKind.Iterable:
            batches = self._from_stream()
        elif _takes_whole_rows(loader):
            batches = _rows(loader.dataset, _index_tensors(loader) or self._sampler_iter)
        else:
            batches = self._from_indices()
        return map(pin_memory, batches) if self._pin_memory else batches

    def _from_indices(self):
        loader = self._loader
        dataset, collate_fn = loader.dataset, loader.collate_fn
        batched = loader._auto_collation
        get_items = getattr(dataset, "__getitems__", None) if batched else None
        for index in self._sampler_iter:
            if get_items:
                samples = get_items(index)
            elif batched:
                samples = [dataset[i] for i in index]
            else:
                samples = dataset[index]
            yield collate_fn(samples)

    def _from_stream(self):
        loader = self._loader
        samples = iter(loader.dataset)
        for index in self._sampler_iter:
            if loader._auto_collation:
                batch = [sample for _, sample in zip(index, samples)]
                if not batch or (loader.drop_last and len(batch) < len(index)):
                    return
            else:
                try:
                    batch = next(samples)
                except StopIteration:
                    return
            self._num_yielded += 1
            limit = loader._reported_length
            if limit is not None and self._num_yielded > limit:
                warnings.warn(
                    f"Length of IterableDataset {loader.dataset} was reported to be {limit} (when accessing "
                    f"len(dataloader)), but {self._num_yielded} samples have been fetched.",
                    stacklevel=2,
                )
            yield loader.collate_fn(batch)


def _has_accelerator():
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and cuda.is_available()


# A batch of a TensorDataset is a selection of rows: the samples need not be made one by one to be stacked again.


def _takes_whole_rows(loader):
    """Whether nobody could tell: no overridden method, no collate function of the user's."""
    dataset = loader.dataset
    while type(dataset) is Subset:
        dataset = dataset.dataset
    ours = type(dataset) is TensorDataset and type(loader.batch_sampler) is BatchSampler
    return ours and loader.collate_fn is default_collate


def _index_tensors(loader):
    """The batches' indices as tensors, where the samplers are ours and draw from nobody's generator; else None."""
    batches, sampler = loader.batch_sampler, loader.batch_sampler.sampler
    if type(loader.dataset) is not TensorDataset or type(sampler) not in (RandomSampler, SequentialSampler):
        return None
    if type(sampler) is SequentialSampler:
        return _split_order(batches, torch.arange)
    if sampler.generator is None and not sampler.replacement and sampler._num_samples is None:
        return _split_order(batches, lambda n: torch.randperm(n, generator=_seeded()))
    return None


def _split_order(batches, order):
    size = batches.batch_size
    for indices in order(len(batches.sampler)).split(size):
        if len(indices) == size or (len(indices) and not batches.drop_last):
            yield indices


def _rows(dataset, batches):
    """Batches of a TensorDataset, or of a subset of one."""
    whole, maps = dataset, []
    while type(dataset) is Subset:
        maps.append(dataset.indices)
        dataset = dataset.dataset
    tensors = dataset.tensors
    for index in batches:
        if isinstance(index, torch.Tensor):
            yield [t.index_select(0, index) for t in tensors]
            continue
        if any(type(i) is not int for i in index):  # a sampler's own idea of an index
            yield default_collate([whole[i] for i in index])
            continue
        for indices in maps:
            index = [indices[i] for i in index]
        yield [t[index] for t in tensors]
