"""Numbers that meet narrow integers, and what such tensors give, as PyTorch 2.15 does (recorded)."""

import pytest

import rushlight as torch

F = torch.nn.functional


def u8(*values):
    return torch.tensor(values, dtype=torch.uint8)


def image(*values):
    side = round(len(values) ** 0.5)
    return u8(*values).view(1, 1, side, side)


# A number takes the dtype of the tensor that it meets, and wraps around where it does not fit.
VALUES = [
    (lambda: u8(255, 1) == -1, torch.bool, [True, False]),
    (lambda: u8(255, 1) > -1, torch.bool, [False, False]),
    (lambda: u8(0, 1) == 256, torch.bool, [True, False]),
    (lambda: u8(44) == torch.tensor(300), torch.bool, [True]),
    (lambda: u8(44) == torch.tensor([300]), torch.bool, [False]),
    (lambda: u8(44) == 300.0, torch.bool, [False]),
    (lambda: torch.tensor([1, 2], dtype=torch.int32) == 2**33 + 1, torch.bool, [True, False]),
    (lambda: torch.maximum(u8(3), torch.tensor(-1)), torch.uint8, [255]),
    (lambda: torch.remainder(u8(7), -3), torch.uint8, [7]),
    (lambda: torch.tensor([1], dtype=torch.int8).remainder(200), torch.int8, [-55]),
    (lambda: u8(7) // -3, torch.uint8, [0]),
    (lambda: u8(3, 200).clamp(-1, 300), torch.uint8, [3, 200]),
    (lambda: torch.where(u8(1, 0) > 0, u8(1, 2), -1), torch.uint8, [1, 255]),
    (lambda: F.hardtanh(u8(3, 4), -0.5, 0.5), torch.uint8, [0, 0]),
    (lambda: torch.logspace(4.3, 4, 4, 2.0, dtype=torch.uint8), torch.uint8, [16, 16, 16, 16]),
    (lambda: torch.logspace(0.5, 2.9, 5, 2.5, dtype=torch.int32), torch.int32, [1, 1, 2, 3, 6]),
    (lambda: torch.unravel_index(u8(3, 4), (2, 3))[0], torch.int64, [1, 1]),
    (lambda: torch.masked.cumsum(u8(3, 4), 0), torch.uint8, [3, 7]),
    (lambda: torch.masked.cumprod(torch.tensor([3, 4], dtype=torch.int32), 0), torch.int32, [3, 12]),
    (lambda: F.bilinear(u8(1, 1), u8(1, 1), u8(1, 2, 3, 4).view(1, 2, 2)), torch.uint8, [10]),
    (lambda: torch.histc(torch.tensor([0, 5e-6]), 1000, 0.0, 1e-5).nonzero().flatten(), torch.int64, [0, 500]),
    (lambda: torch.histc(torch.tensor([0, 5e-6]).double(), 1000, 0.0, 1e-5).nonzero()[1], torch.int64, [499]),
    (lambda: torch.histc(torch.tensor([0, 3e37, 3e38]), 100, 0.0, 3e38).nonzero().flatten(), torch.int64, [0, 10, 99]),
]


@pytest.mark.parametrize(("call", "dtype", "values"), VALUES)
def test_values(call, dtype, values):
    result = call()
    assert result.dtype == dtype and result.tolist() == values


@pytest.mark.parametrize(
    "call",
    [
        lambda: u8(3).clamp(max=-1),
        lambda: u8(3).clamp(min=300),
        lambda: torch.where(u8(1) > 0, u8(1), 300),
        lambda: torch.add(u8(7), u8(3), alpha=300),
        lambda: F.threshold(u8(3), 5, 300),
        lambda: u8(5).masked_fill(u8(1) > 0, 300),
    ],
)
def test_what_would_lose_its_value_is_refused(call):
    with pytest.raises(RuntimeError):
        call()


# Images of bytes are rounded after each dimension, the last one first, with weights of 16 bits.
RESIZED = [
    (image(0, 10, 20, 35), 3, {"mode": "bilinear", "align_corners": True}, [0, 5, 10, 10, 17, 23, 20, 28, 35]),
    (
        image(0, 10, 21, 35), 5, {"mode": "bicubic"},
        [0, 0, 2, 6, 8, 2, 3, 7, 11, 13, 10, 12, 17, 22, 24, 17, 20, 26, 32, 35, 21, 24, 31, 37, 40],
    ),
    (
        image(0, 10, 21, 255), 5, {"mode": "bicubic", "antialias": True},
        [0, 0, 0, 0, 0, 0, 3, 14, 24, 27, 0, 19, 72, 125, 133, 0, 34, 129, 225, 239, 0, 39, 151, 255, 255],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("x", "size", "options", "values"), RESIZED)
def test_resized_bytes(x, size, options, values):
    assert F.interpolate(x, (size, size), **options).flatten().tolist() == values


def test_three_matrices_of_equal_cost_are_multiplied_from_the_left():
    a, b, c = (torch.randn(2, 2, dtype=torch.bfloat16) for _ in range(3))
    assert torch.equal(torch.linalg.multi_dot([a, b, c]), (a @ b) @ c)


def test_residuals_of_least_squares_depend_on_the_driver():
    a, b = torch.randn(5, 3), torch.randn(5, 2)
    shapes = {
        driver: torch.linalg.lstsq(a, b, driver=driver).residuals.shape for driver in ("gels", "gelsd", "gelsy", None)
    }
    assert shapes == {"gels": (2,), "gelsd": (2,), "gelsy": (0,), None: (0,)}
