"""no_grad and its kin: as context managers, as decorators, on generators, nested, and with exceptions."""

import pytest

import rushlight as torch


def test_contexts_nest_and_restore():
    assert torch.is_grad_enabled()
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()


def test_one_object_in_two_blocks():
    mode = torch.no_grad()
    for _ in range(2):
        with mode:
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad()])
def test_decorators(decorator):
    @decorator
    def inside(depth=0):
        """A docstring."""
        return inside(depth - 1) if depth else torch.is_grad_enabled()

    assert inside(depth=2) is False and torch.is_grad_enabled()
    assert inside.__name__ == "inside" and inside.__doc__ == "A docstring."


def test_decorated_generators_switch_only_while_they_run():
    @torch.no_grad()
    def generator():
        received = []
        try:
            while len(received) < 2:
                received.append((yield torch.is_grad_enabled()))
        except ValueError:
            yield "caught", torch.is_grad_enabled()
        return received

    g = generator()
    assert next(g) is False and torch.is_grad_enabled()
    assert g.send(1) is False and torch.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        g.send(2)
    assert stop.value.value == [1, 2] and torch.is_grad_enabled()
    g = generator()
    next(g)
    assert g.throw(ValueError()) == ("caught", False)
    g.close()
    assert torch.is_grad_enabled()


def test_set_grad_enabled():
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def inside():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled() and inside() is False


def test_nothing_is_recorded():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
        made = torch.ones(1, requires_grad=True)
    assert not y.requires_grad and made.requires_grad
    with torch.enable_grad():
        assert (x * 2).requires_grad


def test_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        assert torch.is_inference_mode_enabled()
    assert y.is_inference() and not torch.is_inference_mode_enabled() and torch.is_grad_enabled()

    @torch.inference_mode()
    def one():
        return torch.is_inference_mode_enabled()

    @torch.inference_mode
    def two():
        return torch.is_inference_mode_enabled()

    assert one() and two() and not torch.is_inference_mode_enabled()


def test_classes_are_not_decorated():
    with pytest.raises(TypeError, match="does not decorate a class"):

        @torch.no_grad()
        class Model:
            pass


def test_fork_rng():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(10)
        torch.manual_seed(5)
    assert torch.equal(torch.rand(3), expected)
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(2), a)
