"""What the rows of tests/cases/fft.py don't say of Fourier transforms: accuracy, threads, plans."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rushlight as torch

LENGTHS = [2**16, 3**10, 10007, 100_000, 61**2, 2 * 67]


def signal(n, dtype=torch.complex64):
    torch.manual_seed(n)
    return torch.randn(n, dtype=dtype)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype, eps", [(torch.complex64, 6e-8), (torch.complex128, 1.1e-16)])
def test_errors_grow_as_the_root_of_log_n(n, dtype, eps):
    x = signal(n, dtype)
    wide = x.to(torch.complex128).numpy().astype(np.clongdouble)
    exact = np.fft.fft(wide)
    error = np.linalg.norm(torch.fft.fft(x).numpy() - exact) / np.linalg.norm(exact)
    bluestein = 3 if n in (10007, 2 * 67) else 1  # three transforms of more than twice the length
    assert error < 1.5 * bluestein * eps * np.sqrt(np.log2(n))


@pytest.mark.parametrize("n", LENGTHS)
def test_bits_do_not_depend_on_the_number_of_threads(n):
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(torch.fft.fft(signal(n)))
        assert torch.equal(*results)
    finally:
        torch.set_num_threads(before)


def test_plans_are_shared_by_threads_and_made_again_when_they_were_dropped():
    lengths = [*range(60, 76), 1024, 2**17, 2**17 + 2**15, 99_999]
    expected = {n: torch.fft.fft(signal(n)) for n in lengths}
    torch.fft.fft(signal(3_000_017))  # a prime: its tables alone are more than is kept

    def check(n):
        return torch.equal(torch.fft.fft(signal_of[n]), expected[n])

    signal_of = {n: signal(n) for n in lengths}
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, lengths * 4))


def test_nothing_to_transform_is_an_error():
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        torch._C._fft_r2c(torch.zeros(2, 0), 1, 1.0, True, True)
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        torch._C._fft_c2r(torch.zeros(2, 1, dtype=torch.complex64), 1, 0, 1.0, True)
