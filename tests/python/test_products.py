"""Products at the edge of what there is to multiply."""

import pytest

import rushlight as torch


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.complex64]
)
@pytest.mark.parametrize("m, n", [(1, 5), (5, 1), (5, 7), (40, 70)])
def test_nothing_to_sum_in_strided_operands(m, n, dtype):
    a, b = torch.ones(m, 10).to(dtype)[:, ::2][:, :0], torch.ones(10, n).to(dtype)[::2][:0]
    turned_a, turned_b = torch.ones(10, m).to(dtype)[:0].t(), torch.ones(n, 10).to(dtype)[:, :0].t()
    for left in (a, turned_a):
        for right in (b, turned_b):
            assert torch.equal(torch.mm(left, right), torch.zeros(m, n).to(dtype))


@pytest.mark.parametrize("factor", ["alpha", "beta"])
@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "baddbmm", "addbmm"])
def test_real_products_refuse_factors_with_an_imaginary_part(name, factor):
    v, a, b = torch.ones(2), torch.ones(2, 2), torch.ones(1, 2, 2)
    args = {"addmm": (a, a, a), "addmv": (v, a, v), "addr": (a, v, v), "baddbmm": (b, b, b), "addbmm": (a, b, b)}[name]
    with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
        getattr(torch, name)(*args, **{factor: 1j})
    assert torch.equal(getattr(torch, name)(*args, **{factor: 1 + 0j}), getattr(torch, name)(*args))
