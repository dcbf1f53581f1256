"""nn.utils.parametrize and what is built on it; the older hooks; functional_call."""

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import parametrizations, parametrize
from rushlight.nn.utils.stateless import functional_call


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Negative(nn.Module):
    def forward(self, x):
        return -x

    def right_inverse(self, x):
        return -x


def test_parametrization_is_a_property_with_an_original():
    layer = nn.Linear(3, 3)
    parameter = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert torch.equal(layer.weight, layer.weight.t())
    assert layer.parametrizations.weight.original is parameter
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(torch.ones(2, 3)).sum().backward()
    assert parameter.grad is not None
    value = torch.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    layer.weight = value
    assert torch.equal(layer.weight, value)
    parametrize.register_parametrization(layer, "weight", Negative())
    assert torch.equal(layer.weight, -value) and len(layer.parametrizations.weight) == 2
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    other = copy.deepcopy(layer)
    assert torch.equal(other.weight, layer.weight) and other.parametrizations is not layer.parametrizations
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter) and torch.equal(layer.weight, -value)


def test_cache():
    class Counting(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 2

    calls = []
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Counting(), unsafe=True)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight and len(calls) == 3


def test_errors():
    class Wrong(nn.Module):
        def forward(self, x):
            return x[:1]

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape of the tensor"):
        parametrize.register_parametrization(layer, "weight", Wrong())
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(layer, "never", Negative())
    with pytest.raises(ValueError, match="does not have a parametrization on bias"):
        parametrize.remove_parametrizations(layer, "bias")


@pytest.mark.parametrize("shape, how", [((4, 4), None), ((4, 4), "cayley"), ((5, 3), None), ((3, 5), "matrix_exp")])
def test_orthogonal(shape, how):
    torch.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=how)
    with torch.no_grad():
        original = layer.parametrizations.weight.original
        original.add_(torch.full_like(original, 0.1).tril(-1))
        weight = layer.weight if layer.weight.shape[0] <= layer.weight.shape[1] else layer.weight.t()
    assert torch.allclose(weight @ weight.t(), torch.eye(weight.shape[0]), atol=1e-4)


def test_weight_norm():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    assert torch.allclose(layer.weight, before, atol=1e-6)
    assert layer.parametrizations.weight.original0.shape == (2, 1)
    with pytest.warns(FutureWarning, match="weight_norm` is deprecated"):
        former = nn.utils.weight_norm(nn.Linear(3, 2))
    assert sorted(former.state_dict()) == ["bias", "weight_g", "weight_v"]
    layer.load_state_dict(former.state_dict())
    x = torch.randn(2, 3)
    assert torch.allclose(layer(x), former(x), atol=1e-6)
    nn.utils.remove_weight_norm(former)
    assert isinstance(former.weight, nn.Parameter) and torch.allclose(layer(x), former(x), atol=1e-6)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(former)


def test_spectral_norm():
    torch.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(6, 4))
    assert torch.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, abs=1e-2)
    former = nn.utils.spectral_norm(nn.Linear(6, 4), n_power_iterations=30)
    former(torch.ones(1, 6))
    assert torch.linalg.matrix_norm(former.weight, 2).item() == pytest.approx(1, abs=1e-2)
    assert sorted(former.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    nn.utils.remove_spectral_norm(former)
    assert isinstance(former.weight, nn.Parameter) and not former._state_dict_hooks


def test_functional_call():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    own = net[0].weight
    doubled = 2 * torch.eye(2)
    result = functional_call(net, {"0.weight": doubled}, (torch.ones(1, 2),))
    assert result.tolist() == [[4, 4]] and net[0].weight is own
    assert functional_call(net[0], {"weight": doubled}, torch.ones(1, 2)).tolist() == [[2, 2]]
    functional_call(net, {"never": doubled}, torch.ones(1, 2))  # an attribute for the time of the call
    assert not hasattr(net, "never")
    with pytest.raises(AttributeError, match="has no attribute `2`"):
        functional_call(net, {"2.weight": doubled}, torch.ones(1, 2))
    with pytest.raises(TypeError, match="not an instance of torch.Tensor"):
        functional_call(net, {"0.weight": 5}, torch.ones(1, 2))
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): weight"):
        functional_call(net[0], {}, torch.ones(1, 2), strict=True)
