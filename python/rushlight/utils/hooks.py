"""Handles by which hooks are removed, and the boundary through which a module's full backward hooks see its gradients."""

from __future__ import annotations

import weakref

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes a hook from the dict it was registered in; as a context manager, at the end of the block.

    Args:
        hooks_dict (dict): where the hook is kept, under `id`. It is referred to weakly.
        extra_dict (dict or list of dicts, optional): further dicts from which the same key is removed.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = ()
        elif isinstance(extra_dict, dict):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self):
        """Removes the hook; nothing happens if it is gone already."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        from collections import OrderedDict  # a dict that was not saved is replaced by an empty one

        hooks, self.id, extra = state
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def warn_if_has_hooks(tensor):
    """Warns that backward hooks of a tensor are lost when it is pickled."""
    import warnings

    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, mark the function by "
                "unserializable_hook",
                stacklevel=2,
            )


def unserializable_hook(f):
    """Marks a hook that is meant to be lost when its tensor is pickled."""
    f.__torch_unserializable__ = True
    return f


def _boundary():
    """The autograd function that returns its tensors unchanged and shows their gradients to a callback."""
    global _Boundary
    if _Boundary is None:
        import rushlight as torch

        class Boundary(torch.autograd.Function):
            @staticmethod
            def forward(ctx, on_backward, *tensors):
                ctx.on_backward = on_backward
                ctx.set_materialize_grads(False)
                ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
                return tensors

            @staticmethod
            def backward(ctx, *grads):
                return (None, *ctx.on_backward(grads))

        _Boundary = Boundary
    return _Boundary


_Boundary = None


class BackwardHook:
    """Calls a module's full backward hooks with the gradients at the module's inputs and outputs.

    The tensors among the module's arguments pass through one boundary in the graph and those of its result through
    another; the gradients that arrive there are what the hooks see and may replace.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_output = None
        self.input_count = self.output_count = 0
        self.input_at = self.output_at = ()
        self.has_input_boundary = False

    @staticmethod
    def _through_boundary(values, on_backward):
        """`values` with their tensors passed through a boundary, where they are, and whether one was needed."""
        import rushlight as torch

        at = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
        if not (torch.is_grad_enabled() and any(values[i].requires_grad for i in at)):
            return values, at, False
        new = list(values)
        for i, tensor in zip(at, _boundary().apply(on_backward, *(values[i] for i in at))):
            new[i] = tensor
        return tuple(new), at, True

    @staticmethod
    def _spread(grads, at, count):
        full = [None] * count
        for i, grad in zip(at, grads):
            full[i] = grad
        return tuple(full)

    def setup_input_hook(self, args):
        """Passes the module's positional arguments through the boundary; returns what `forward` is to be given."""
        self.input_count = len(args)
        args, self.input_at, self.has_input_boundary = self._through_boundary(args, self._on_grad_input)
        return args

    def setup_output_hook(self, result):
        """Passes the module's result, a tensor or a tuple, through the boundary; anything else is returned as is."""
        import rushlight as torch

        single = isinstance(result, torch.Tensor)
        if not single and not isinstance(result, tuple):
            return result
        values = (result,) if single else tuple(result)
        self.output_count = len(values)
        values, self.output_at, passed = self._through_boundary(values, self._on_grad_output)
        if not passed:
            return result
        if single:
            return values[0]
        return type(result)(*values) if hasattr(result, "_fields") else values

    def _on_grad_output(self, grads):
        self.grad_output = self._spread(grads, self.output_at, self.output_count)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, self.grad_output)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                if len(changed) != self.output_count:
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, "
                        f"got {len(changed)}, but expected {self.output_count}"
                    )
                self.grad_output = changed
        local = self.grad_output
        if not self.has_input_boundary:
            # Nothing that came in needs a gradient, so this is the last that is seen of the module.
            self._run_hooks((None,) * self.input_count)
            self.grad_output = None
        return tuple(local[i] for i in self.output_at)

    def _on_grad_input(self, grads):
        if self.grad_output is None:
            raise RuntimeError(
                f"Module backward hook for grad_input of {type(self.module).__name__} is called before the one for "
                "its grad_output. This happens when an input is used in a way that its gradient does not depend on "
                "the module's output, or when only some of the outputs are differentiated twice."
            )
        grad_input = self._run_hooks(self._spread(grads, self.input_at, self.input_count))
        self.grad_output = None
        return tuple(grad_input[i] for i in self.input_at)

    def _run_hooks(self, grad_input):
        for hook in self.user_hooks:
            changed = hook(self.module, grad_input, self.grad_output)
            if changed is None:
                continue
            if not self.has_input_boundary:
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != self.input_count:
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(changed)}, "
                    f"but expected {self.input_count}"
                )
            grad_input = changed
        return grad_input
