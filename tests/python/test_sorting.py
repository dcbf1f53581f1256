"""Sorting rows that are long enough to be cut into parts for the threads."""

import numpy as np
import pytest

import rushlight as torch

LONG = 3 * (1 << 18) + 7


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def row(dtype, values=1000):
    x = np.random.default_rng(0).integers(-values, values, LONG).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        x[::1001] = np.nan
        x[5::997] = -0.0
        x[7::1009] = np.inf
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.uint8])
def test_long_rows_are_sorted_stably(dtype, threads):
    x = row(dtype, 100)
    expected = np.argsort(x, kind="stable")  # NumPy too puts NaN last
    values, indices = torch.sort(torch.from_numpy(x), stable=True)
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), x[expected])


def test_long_rows_are_sorted_downwards(threads):
    x = row(np.int64)
    values, indices = torch.sort(torch.from_numpy(x), descending=True, stable=True)
    expected = np.argsort(-x, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), x[expected])


@pytest.mark.parametrize("k", [1, 100, 5000])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows(k, largest, threads):
    x = np.random.default_rng(1).permutation(LONG).astype(np.float32)
    values, indices = torch.topk(torch.from_numpy(x), k, largest=largest)
    expected = np.argsort(-x if largest else x)[:k]
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), x[expected])
