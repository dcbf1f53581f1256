"""The sampler that gives each process of a distributed run its own part of the data."""

import math

import rushlight as torch

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index from ``rank`` on, after a shuffle that is the same in all processes.

    Args:
        dataset (Dataset): what is sampled.
        num_replicas, rank (int, optional): how many processes there are, and which this is; from
            ``rushlight.distributed`` if not given.
        shuffle (bool), seed (int): whether to permute; the permutation depends on ``seed`` and on the epoch, so call
            `set_epoch` before each.
        drop_last (bool): leave samples out where the length is not divisible; otherwise the first ones are repeated.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            import rushlight.distributed as dist

            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        size = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            indices = torch.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        if self.total_size > size:
            indices *= math.ceil(self.total_size / size)
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Sets the epoch, on which the shuffle depends."""
        self.epoch = epoch
