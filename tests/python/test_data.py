"""Data sets, samplers and the loader. The orders after a seed were recorded from PyTorch 2.15."""

import collections

import pytest

import rushlight as torch
from rushlight.utils import data

X = torch.arange(20).reshape(10, 2)
Y = torch.arange(10)


class Squares(data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"n": i, "square": float(i * i), "name": str(i), "pair": (i, torch.tensor(i))}


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def seeded(make):
    torch.manual_seed(3)
    return [x.tolist() if isinstance(x, torch.Tensor) else x for x in make()]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: data.RandomSampler(Y), [7, 0, 9, 1, 6, 4, 5, 3, 2, 8]),
        (lambda: data.RandomSampler(Y, num_samples=13), [7, 0, 9, 1, 6, 4, 5, 3, 2, 8, 9, 5, 6]),
        (
            lambda: data.RandomSampler(Y, replacement=True, num_samples=40),
            [
                7,
                8,
                5,
                1,
                8,
                6,
                2,
                2,
                3,
                9,
                8,
                6,
                2,
                5,
                5,
                4,
                2,
                5,
                8,
                4,
                1,
                8,
                5,
                1,
                3,
                1,
                7,
                4,
                2,
                1,
                1,
                5,
                3,
                3,
                7,
                4,
                3,
                6,
                0,
                9,
            ],
        ),
        (lambda: data.RandomSampler(Y, generator=torch.Generator().manual_seed(7)), [5, 0, 3, 4, 1, 7, 9, 6, 8, 2]),
        (lambda: data.SubsetRandomSampler([3, 5, 8]), [5, 3, 8]),
        (lambda: data.WeightedRandomSampler([1, 0, 3, 6], 8), [0, 2, 3, 2, 3, 3, 2, 3]),
        (lambda: data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False), [0, 1, 2]),
        (lambda: data.BatchSampler(data.RandomSampler(Y), 4, True), [[7, 0, 9, 1], [6, 4, 5, 3]]),
        (lambda: data.random_split(Y, [4, 6])[0].indices, [6, 0, 3, 7]),
        (lambda: data.DistributedSampler(Y, 2, 1), [1, 5, 9, 8, 2]),
        (
            lambda: [b[0] for b in data.DataLoader(data.TensorDataset(Y), batch_size=5, shuffle=True)],
            [[6, 2, 0, 1, 8], [3, 5, 4, 7, 9]],
        ),
    ],
)
def test_orders_are_pytorchs(make, expected):
    assert seeded(make) == expected


def test_two_passes_and_what_is_drawn_after_them():
    torch.manual_seed(0)
    loader = data.DataLoader(data.TensorDataset(Y), batch_size=4, shuffle=True)
    passes = [[i for (batch,) in loader for i in batch.tolist()] for _ in range(2)]
    assert passes == [[6, 7, 1, 4, 2, 0, 9, 8, 3, 5], [2, 4, 7, 0, 8, 9, 5, 3, 6, 1]]
    assert torch.rand(1).item() == pytest.approx(0.455627977848053)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_of_tensors_are_what_single_samples_give(shuffle, drop_last):
    class ByHand(data.TensorDataset):
        pass  # any other type takes the general way

    results = []
    for kind in (data.TensorDataset, ByHand):
        torch.manual_seed(1)
        loader = data.DataLoader(kind(X, Y), batch_size=4, shuffle=shuffle, drop_last=drop_last)
        results.append([[t.tolist() for t in batch] for batch in loader])
        assert len(results[-1]) == len(loader) == (2 if drop_last else 3)
        assert all(isinstance(batch, list) for batch in loader)
    assert results[0] == results[1]


def test_batches_of_tensors_are_copies():
    for batch in data.DataLoader(data.TensorDataset(X), batch_size=5):
        batch[0].zero_()
    assert X[9, 1] == 19


def test_subsets_and_odd_indices():
    dataset = data.TensorDataset(X, Y)
    first, second = data.random_split(dataset, [0.75, 0.25], generator=torch.Generator().manual_seed(0))
    assert [len(first), len(second)] == [8, 2]
    rows = [i for _, y in data.DataLoader(first, batch_size=3) for i in y.tolist()]
    assert rows == list(first.indices)
    assert sorted(rows + list(second.indices)) == list(range(10))
    (batch,) = data.DataLoader(dataset, batch_size=3, sampler=[-1, 0, torch.tensor(4)])
    assert batch[1].tolist() == [9, 0, 4]
    with pytest.raises(IndexError):
        list(data.DataLoader(dataset, sampler=[10]))


def test_collating():
    (batch,) = data.DataLoader(Squares(), batch_size=6)
    assert batch["n"].tolist() == list(range(6)) and batch["n"].dtype == torch.int64
    assert batch["square"].dtype == torch.float64 and batch["name"] == list("012345")
    assert isinstance(batch["pair"], list) and batch["pair"][1].tolist() == list(range(6))
    point = collections.namedtuple("point", "x y")
    collated = data.default_collate([point(1, [2, 3]), point(4, [5, 6])])
    assert isinstance(collated, point) and collated.y[1].tolist() == [3, 6]
    assert data.default_collate([True, False]).dtype == torch.bool
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        data.default_collate([object()])


def test_numpy():
    np = pytest.importorskip("numpy")
    assert data.default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)]).tolist() == [[1, 1], [0, 0]]
    assert data.default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    converted = data.default_convert((np.arange(2), {"a": np.int64(3)}, "text"))
    assert converted[0].tolist() == [0, 1] and converted[1]["a"].item() == 3 and converted[2] == "text"
    with pytest.raises(TypeError, match="found"):
        data.default_collate([np.array(["a"]), np.array(["b"])])


def test_without_batching():
    samples = list(data.DataLoader(data.TensorDataset(Y), batch_size=None))
    assert len(samples) == 10 and samples[3][0].item() == 3
    batches = data.DataLoader(
        data.TensorDataset(Y), batch_size=None, sampler=data.BatchSampler(data.SequentialSampler(Y), 4, True)
    )
    assert [b[0].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_streams():
    assert [b.tolist() for b in data.DataLoader(Count(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(Count(5), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Count(3), batch_size=None)) == [0, 1, 2]
    assert len(data.DataLoader(Count(5), batch_size=2)) == 3
    assert list(Count(2) + Count(3)) == [0, 1, 0, 1, 2]
    with pytest.raises(ValueError, match="expected unspecified shuffle option, but got shuffle=True"):
        data.DataLoader(Count(5), shuffle=True)


def test_combining_datasets():
    both = data.TensorDataset(Y) + data.TensorDataset(Y * 10)
    assert len(both) == 20 and both[12][0].item() == 20 and both[-1][0].item() == 90
    stacked = data.StackDataset(x=data.TensorDataset(X), y=data.Subset(Y.tolist(), range(10)))
    assert stacked[2]["y"] == 2
    assert [s["y"] for s in stacked.__getitems__([3, 4])] == [3, 4]
    (batch,) = data.DataLoader(data.StackDataset(data.TensorDataset(X), Y.tolist()), batch_size=10)
    assert batch[0][0].shape == (10, 2)
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        data.StackDataset([1], [1, 2])
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(X, Y[:3])


def test_getitems_is_used():
    class Batched(Squares):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert [b.tolist() for b in data.DataLoader(Batched(), batch_size=4)] == [[0, 10, 20, 30], [40, 50]]


def test_distributed_sampler_covers_everything_once():
    parts = [data.DistributedSampler(Y, 3, rank, seed=1) for rank in range(3)]
    assert [len(p) for p in parts] == [4, 4, 4]
    indices = [i for p in parts for i in p]
    assert sorted(set(indices)) == list(range(10)) and len(indices) == 12
    before = list(parts[0])
    parts[0].set_epoch(1)
    assert list(parts[0]) != before
    assert list(data.DistributedSampler(Y, 3, 1, shuffle=False, drop_last=True)) == [1, 4, 7]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_workers": 2}, NotImplementedError, "worker processes are not there yet"),
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ],
)
def test_messages(options, error, message):
    with pytest.raises(error, match=message):
        data.DataLoader(data.TensorDataset(Y), **options)


def test_fixed_attributes():
    loader = data.DataLoader(data.TensorDataset(Y))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 2


def test_generic_aliases():
    class Numbers(data.Dataset[int]):
        def __getitem__(self, i):
            return i

    assert Numbers()[3] == 3
