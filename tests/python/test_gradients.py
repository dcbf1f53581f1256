"""Gradients where they are a matter of convention, as PyTorch 2.15 has them: ties, bounds, fills, changed tensors."""

import io

import pytest

import rushlight as torch

NAN = float("nan")


def gradients(f, *values):
    leaves = [torch.tensor(v, requires_grad=True) for v in values]
    f(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


@pytest.mark.parametrize(
    ("f", "values", "expected"),
    [
        (lambda x: x.clamp(0, 1), [[0.0, 1.0, 0.5, -1.0, 2.0, NAN]], [[0, 0, 1, 0, 0, 0]]),
        (lambda x: x.clamp(min=0), [[0.0, 1.0, -1.0]], [[0, 1, 0]]),
        (lambda x: x.clamp(max=0), [[0.0, 1.0, -1.0]], [[0, 0, 1]]),
        (lambda x: x.clamp(1, 0), [[0.0, 0.5, 1.0]], [[0, 0, 0]]),
        (
            torch.clamp,
            [[0.0, 1.0, 0.5, -1, 2, 3, 0], [0.0, 0, 0, 0, 0, 5, 0], [1.0, 1, 1, 1, 1, 4, 0]],
            [[0.5, 0.5, 1, 0, 0, 0, 1], [0.5, 0, 0, 1, 0, 0, 0], [0, 0.5, 0, 0, 1, 1, 0]],
        ),
        (torch.clamp_min, [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]], [[0.5, 1, 0], [0.5, 0, 1]]),
        (torch.clamp_max, [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]], [[0.5, 0, 1], [0.5, 1, 0]]),
        (torch.fmax, [[0.0, 1, NAN, 2, NAN], [0.0, 2, 1, NAN, NAN]], [[0.5, 0, 0, 1, 1], [0.5, 1, 1, 0, 0]]),
        (torch.fmin, [[0.0, 1, NAN, 2, NAN], [0.0, 2, 1, NAN, NAN]], [[0.5, 1, 0, 1, 1], [0.5, 0, 1, 0, 0]]),
        (torch.maximum, [[0.0, 1, NAN, 2], [0.0, 2, 1, NAN]], [[0.5, 0, 1, 1], [0.5, 1, 1, 1]]),
        (torch.minimum, [[0.0, 1, NAN, 2], [0.0, 2, 1, NAN]], [[0.5, 1, 1, 1], [0.5, 0, 1, 1]]),
    ],
)
def test_ties_and_bounds(f, values, expected):
    assert gradients(f, *values) == expected


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.fill_(2), lambda y: y.zero_(), lambda y: y.copy_(torch.ones(3)), lambda y: y.normal_(),
        lambda y: y.uniform_(), lambda y: y.bernoulli_(), lambda y: y.random_(), lambda y: y.__setitem__(slice(None), 1),
    ],
)  # fmt: skip
def test_what_is_written_over_has_a_gradient_of_zeros(write):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    write(y)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_a_retained_gradient_is_that_of_the_changed_tensor():
    for change in (lambda y: y.mul_(3), lambda y: y[0].mul_(3), lambda y: y.mul_(2).mul_(3)):
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.retain_grad()
        seen = []
        y.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        change(y)
        y.sum().backward()
        assert y.grad.tolist() == [1, 1, 1]
        assert seen == [(x.grad / 2).tolist()]  # a hook stays with what the tensor was


def test_inference_tensors_are_changed_in_inference_mode_only():
    with torch.inference_mode():
        z = torch.ones(2)
        z.add_(1)
    for change in (
        lambda: z.add_(1),
        lambda: z.view(2).add_(1),
        lambda: z.__setitem__(0, 1),
        lambda: torch.add(z, 1, out=z),
    ):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            change()
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = z._version
    assert z.detach().add_(1).tolist() == [3, 3] and z.clone().add_(1).tolist() == [4, 4]


def test_heaviside_has_no_derivative():
    z = torch.zeros(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="heaviside"):
        torch.heaviside(z, torch.ones(2)).sum().backward()


def test_meta_tensors_are_saved_without_memory():
    file = io.BytesIO()
    torch.save([torch.ones(2, 3, device="meta").t(), torch.nn.Parameter(torch.ones(1, device="meta"))], file)
    for weights_only in (True, False):
        file.seek(0)
        x, p = torch.load(file, weights_only=weights_only)
        assert x.is_meta and x.shape == (3, 2) and x.stride() == (1, 3)
        assert p.is_meta and p.requires_grad and type(p) is torch.nn.Parameter


def test_seeds_have_64_bits():
    generator = torch.Generator()
    assert generator.manual_seed(-1).initial_seed() == generator.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow"):
            generator.manual_seed(seed)


def test_nodes_have_classes_and_results_print_by_lines():
    y = torch.ones(2, requires_grad=True) * 2
    node = y.grad_fn
    assert type(node).__name__ == "MulBackward0" and type(node.next_functions[0][0]).__name__ == "AccumulateGrad"
    assert isinstance(node, torch.autograd.graph.Node) and type((y * 2).grad_fn) is type(node)
    with pytest.raises(TypeError, match="cannot create"):
        type(node)()
    values = torch.max(torch.ones(2, 2), 1)
    assert repr(values) == "torch.return_types.max(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 0]))"
