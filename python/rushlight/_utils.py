"""What pickles refer to by name: functions that rebuild parameters."""

from __future__ import annotations


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A ``Parameter`` over `data`, as pickles of parameters ask for it; hooks are never restored."""
    from rushlight.nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """``_rebuild_parameter`` for a parameter that carried attributes of its own: a dict, or a pair (dict, slots)."""
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(parameter, name, value)
    return parameter
