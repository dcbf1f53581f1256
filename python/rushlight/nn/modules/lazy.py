"""Layers that learn their sizes from the first input."""

from __future__ import annotations

import rushlight as torch

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module wait for its first input before its parameters have shapes.

    A class that derives from it and from the layer gives ``cls_to_become``, the class that the module becomes after its
    first call (None to stay), has ``UninitializedParameter``s where shapes are not known, and defines
    ``initialize_parameters(*args, **kwargs)``, which is called with the first input and materializes them.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Tensors without a shape cannot be detached; they are saved as they are.
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Gives what has no shape yet the shape of what is going to be loaded into it."""
        for registry in (self._parameters, self._buffers):
            for name, own in registry.items():
                loaded = state_dict.get(prefix + name)
                if own is not None and loaded is not None and is_lazy(own) and not is_lazy(loaded):
                    with torch.no_grad():
                        own.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Gives parameters and buffers their shapes from the first input; every lazy class defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether any parameter or buffer of this module still has no shape."""
        return any(is_lazy(own) for registry in (self._parameters, self._buffers) for own in registry.values())

    def _infer_parameters(self, module, args, kwargs=None):
        """The hook before the first ``forward``: initializes, removes itself, and lets the module become its class."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
