"""The tiled attention against its definition, over several blocks of queries and keys."""

import pytest

import rushlight as torch
from rushlight.nn.functional import scaled_dot_product_attention as attention


def by_definition(q, k, v, mask=None, is_causal=False):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num() @ v


def inputs(sizes, dtype):
    torch.manual_seed(0)
    heads, queries, keys, features, values = sizes
    shapes = ((2, queries, heads, features), (2, keys, heads, features), (2, keys, heads, values))
    return [torch.randn(s, dtype=dtype).transpose(1, 2).requires_grad_() for s in shapes]  # heads lie inside of rows


MASKS = {
    "none": lambda l, s: {},
    "causal": lambda l, s: {"is_causal": True},
    "bool": lambda l, s: {"mask": torch.rand(2, 1, l, s) > torch.rand(2, 1, l, 1)},
    "blind": lambda l, s: {"mask": (torch.arange(l) % 3 > 0)[:, None].expand(l, s)},
    "added": lambda l, s: {"mask": torch.randn(s)},
}


@pytest.mark.parametrize("sizes", [(3, 5, 7, 4, 2), (2, 130, 300, 33, 40), (1, 300, 130, 64, 64)], ids=str)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients(sizes, kind, dtype):
    found = []
    for run in (attention, by_definition):
        leaves = inputs(sizes, dtype)
        mask = MASKS[kind](sizes[1], sizes[2])
        if kind == "added":
            mask = {"mask": mask["mask"].to(dtype)}
        if run is attention and "mask" in mask:
            mask = {"attn_mask": mask["mask"]}
        out = run(*leaves, **mask)
        weigh = torch.linspace(-1, 2, out.numel(), dtype=dtype).reshape(out.shape)
        found.append((out, *torch.autograd.grad((out * weigh).sum(), leaves)))
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-4)


def test_half():
    q, k, v = (x.detach().to(torch.bfloat16) for x in inputs((2, 130, 140, 32, 32), torch.float32))
    exact = by_definition(q.float(), k.float(), v.float())
    torch.testing.assert_close(attention(q, k, v).float(), exact, rtol=1e-2, atol=1e-2)


def test_second_derivatives():
    leaves = inputs((1, 3, 4, 2, 2), torch.float64)
    assert torch.autograd.gradgradcheck(lambda *x: attention(*x, is_causal=True), leaves)


def test_bits_do_not_depend_on_threads():
    leaves = inputs((1, 260, 260, 16, 16), torch.float32)
    results = []
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        out = attention(*leaves, is_causal=True)
        results.append((out, *torch.autograd.grad(out.sum(), leaves)))
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results))
