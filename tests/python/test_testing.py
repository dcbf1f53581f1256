"""assert_close and make_tensor. The messages are those that people search for."""

import pytest

import rushlight as torch
from rushlight.testing import assert_allclose, assert_close, make_tensor

NAN = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-6])),
        (1.0, 1.0 + 1e-9),
        ([1, torch.ones(2)], [1, torch.ones(2)]),
        ({"a": (1.0, None)}, {"a": (1.0, None)}),
        (torch.zeros(0), torch.zeros(0)),
        (torch.tensor([1j]), torch.tensor([1j])),
        (torch.tensor([1.0], dtype=torch.bfloat16), torch.tensor([1.01], dtype=torch.bfloat16)),
    ],
)
def test_close(actual, expected):
    assert_close(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected", "error", "message"),
    [
        (
            torch.tensor([1.0, 2.0, 3.0]),
            torch.tensor([1.0, 2.0, 4.0]),
            AssertionError,
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
            "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
            "Greatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)",
        ),
        (
            torch.tensor([[1, 2]]),
            torch.tensor([[1, 5]]),
            AssertionError,
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
            "Greatest absolute difference: 3 at index (0, 1)\nGreatest relative difference: 0.6000000238418579 at index (0, 1)",
        ),
        (
            2.0,
            1.0,
            AssertionError,
            "Scalars are not close!\n\nExpected 1.0 but got 2.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\n"
            "Relative difference: 1.0 (up to 1e-07 allowed)",
        ),
        (
            [0, {"a": 1}],
            [0, {"a": 2}],
            AssertionError,
            "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5\n\n"
            "The failure occurred for item [1]['a']",
        ),
        (
            torch.ones(2),
            torch.ones(3),
            AssertionError,
            "The values for attribute 'shape' do not match: torch.Size([2])",
        ),
        (
            torch.ones(2),
            torch.ones(2, dtype=torch.float64),
            AssertionError,
            "The values for attribute 'dtype' do not match",
        ),
        ([1], [1, 2], AssertionError, "The length of the sequences mismatch: 1 != 2"),
        (
            {"a": 1},
            {"b": 1},
            AssertionError,
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']",
        ),
        (None, 1, AssertionError, "None mismatch: None is not 1"),
        (True, False, AssertionError, "Booleans mismatch: True is not False"),
        (1, 1.0, AssertionError, "The (d)types do not match: <class 'int'> != <class 'float'>."),
        (torch.tensor(NAN), torch.tensor(NAN), AssertionError, "Scalars are not close!"),
        ("a", "b", TypeError, "No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>."),
    ],
)
def test_messages(actual, expected, error, message):
    with pytest.raises(error) as caught:
        assert_close(actual, expected)
    assert str(caught.value).startswith(message)


def test_options():
    assert_close(torch.tensor(NAN), torch.tensor(NAN), equal_nan=True)
    assert_close(torch.ones(2), torch.ones(2, dtype=torch.float64), check_dtype=False)
    assert_close(1.0, 1.5, rtol=0, atol=1)
    with pytest.raises(AssertionError, match="stride"):
        assert_close(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)
    with pytest.raises(
        ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."
    ):
        assert_close(1.0, 1.0, rtol=1)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^In x: Scalars"):
        assert_close(1, 2, msg=lambda text: f"In x: {text}")
    with pytest.warns(FutureWarning):
        assert_allclose(torch.tensor([1.0]), [1.00001])


def test_numpy():
    np = pytest.importorskip("numpy")
    assert_close(np.ones(2), np.ones(2))
    assert_close(np.float64(1), 1.0)
    with pytest.raises(AssertionError, match="Tensor-likes are not close!"):
        assert_close(np.ones(2), np.zeros(2))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64])
def test_make_tensor(dtype):
    t = make_tensor(3, 40, dtype=dtype, device="cpu", noncontiguous=True)
    assert t.shape == (3, 40) and t.dtype == dtype and not t.is_contiguous()
    parts = torch.view_as_real(t) if dtype.is_complex else t
    low, high = (0, 2) if dtype == torch.bool else (0 if dtype == torch.uint8 else -9, 10)
    assert bool((parts >= low).all()) and bool((parts < high).all())
    assert not bool((make_tensor((50,), dtype=dtype, device="cpu", exclude_zero=True) == 0).any())


def test_make_tensor_options():
    assert make_tensor((), dtype=torch.float32, device="cpu", low=2, high=3, requires_grad=True).item() >= 2
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(2, dtype=torch.int64, device="cpu", low=3, high=2)
    with pytest.raises(ValueError, match="not supported for boolean and integral dtypes"):
        make_tensor(2, dtype=torch.int64, device="cpu", requires_grad=True)
    with pytest.raises(ValueError, match="but torch.uint8 only supports"):
        make_tensor(2, dtype=torch.uint8, device="cpu", low=-5, high=-1)
