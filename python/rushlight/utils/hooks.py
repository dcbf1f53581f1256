"""Handles by which hooks are removed."""

import weakref

__all__ = ["RemovableHandle"]


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
