"""Functions with a backward of one's own.

Note [The context]: what a user's `forward` gets as `ctx` is also the `grad_fn` of its results. The recorded node, in C++,
owns it and calls its `_run_backward`; it does not own the node, so the two are no cycle.
"""

from functools import wraps

import rushlight as torch
from rushlight import _C

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx(_C._FunctionBase):
    """What `forward` leaves for `backward`: saved tensors, marks, and any attributes.

    ``needs_input_grad`` is a tuple of bools, one for each argument of ``apply``; ``saved_tensors`` are the tensors given
    to `save_for_backward`.
    """

    to_save = None
    saved_for_forward = None
    dirty_tensors = None
    non_differentiable = None
    materialize_grads = True
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward, inputs and outputs among them: call it once. Elements may be None.

        Reading them back checks that nothing has changed them in place since.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keeps tensors for ``jvp``."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Says which inputs ``forward`` has changed in place. Each must also be an output."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Says which outputs have no gradient; `backward` still gets an argument for each."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Says whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    def _run_backward(self, *grads):
        """Calls the user's backward and returns one gradient for each argument of ``apply``."""
        function = self._function
        own = function.backward if function.vjp is Function.vjp else function.vjp
        if own is function.vjp and function.backward is not Function.backward:
            raise RuntimeError(
                f"{function.__name__}: implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        result = own(self, *grads)
        if not isinstance(result, tuple):
            result = (result,)
        expected = len(self.needs_input_grad)
        if len(result) > expected and all(r is None for r in result[expected:]):
            result = result[:expected]
        if len(result) != expected:
            raise RuntimeError(
                f"function {type(self).__name__} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(result)})"
            )
        return result


def _bind(forward, skipped, args, kwargs):
    """The arguments of ``apply`` by position, with forward's defaults for those left out."""
    if kwargs:
        import inspect

        bound = inspect.signature(forward).bind(*(None,) * skipped, *args, **kwargs)
        bound.apply_defaults()
        return bound.args[skipped:]
    defaults, code = getattr(forward, "__defaults__", None), getattr(forward, "__code__", None)
    if defaults and code:
        missing = code.co_argcount - skipped - len(args)
        if 0 < missing <= len(defaults):
            return args + defaults[-missing:]
    return args


class Function:
    """Base class of functions that say themselves what their gradient is. Call a subclass by ``Sub.apply(...)``.

    A subclass has static methods: either ``forward(ctx, *args)``, or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)``; and ``backward(ctx, *grad_outputs)``, which returns a gradient, or None, for each
    argument of forward. What ``forward`` does is not recorded; what ``backward`` does is, if it runs with
    ``create_graph=True``, so it can be differentiated again unless it is marked with `once_differentiable`.

    Example::

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad):
                (y,) = ctx.saved_tensors
                return grad * y
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not instantiated; its methods are static: call {type(self).__name__}.apply"
        )

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(
            cls.__name__ + "Backward", (FunctionCtx,), {"_function": cls, "__module__": cls.__module__}
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Computes the result; to be overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Fills in ``ctx`` after forward; to be overridden together with a ``forward`` that has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Computes the gradients; to be overridden."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Computes the tangents of the results; to be overridden."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Calls the function and records it."""
        combined = cls.setup_context is Function.setup_context
        args = _bind(cls.forward, int(combined), args, kwargs)
        ctx = cls._backward_cls()
        ctx.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
        enabled = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            if combined:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        finally:
            _C._set_grad_enabled(enabled)
        if isinstance(output, tuple):
            return _C._apply_function(ctx, cls._backward_cls.__name__, args, output)
        return _C._apply_function(ctx, cls._backward_cls.__name__, args, (output,))[0]


class _Once(Function):
    """Passes gradients on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx, *grads):
        return tuple(None if g is None else g.detach() for g in grads)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn):
    """Marks a ``backward`` that cannot itself be differentiated: it runs unrecorded, and a second derivative is an error."""

    @wraps(fn)
    def wrapper(ctx, *args):
        with torch.no_grad():
            outputs = fn(ctx, *args)
        if not torch.is_grad_enabled() or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
            return outputs
        as_tuple = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = _Once.apply(*(None if o is None else o.detach().requires_grad_() for o in as_tuple))
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper
