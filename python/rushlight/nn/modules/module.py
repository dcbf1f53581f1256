"""``Module``: the class that layers and models derive from. Calls and attributes are in C++ (python/bind/module_base.cpp),
everything else is here: registration, hooks, conversion, state dicts, walking the tree."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple

import rushlight as torch
from rushlight._C import ModuleBase

from ...utils.hooks import BackwardHook, RemovableHandle
from ..parameter import Buffer, Parameter

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"

_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()

# What an instance keeps besides its parameters, buffers and modules, and what makes each.
_HOOK_DICTS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns: the keys that it missed and those it did not know."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class _WithModule:
    """A hook that is given its module first; pickled with it, and not keeping it alive."""

    def __init__(self, hook, module):
        import weakref

        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state):
        self.__init__(state["hook"], state["module"])


def _add_hook(hooks, hook, prepend=False, flags=()):
    """Puts `hook` into the dict `hooks`, and its id into each of the dicts `flags`."""
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook):
    """Calls ``hook(module, name, buffer)`` whenever any module registers a buffer; what it returns, unless None, is
    registered instead."""
    return _add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Calls ``hook(module, name, submodule)`` whenever any module registers a submodule; what it returns, unless None,
    is registered instead."""
    return _add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Calls ``hook(module, name, parameter)`` whenever any module registers a parameter; what it returns, unless None,
    is registered instead."""
    return _add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Calls ``hook(module, args)`` before ``forward`` of every module; a result other than None replaces the positional
    arguments. Global hooks come before the module's own."""
    return _add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls ``hook(module, args, output)`` (`with_kwargs`: ``hook(module, args, kwargs, output)``) after ``forward`` of
    every module; a result other than None replaces the output. `always_call`: also where ``forward`` raised."""
    flags = [_global_forward_hooks_with_kwargs] * with_kwargs + [_global_forward_hooks_always_called] * always_call
    return _add_hook(_global_forward_hooks, hook, flags=flags)


def register_module_full_backward_pre_hook(hook):
    """Calls ``hook(module, grad_output)`` before the gradients of any module's inputs are computed; a result other than
    None replaces `grad_output`."""
    return _add_hook(_global_backward_pre_hooks, hook)


def _set_global_backward_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full) and _global_backward_hooks:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """The older form of ``register_module_full_backward_hook``: the hook sees only the last operation's gradients."""
    _set_global_backward_kind(False)
    return _add_hook(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook):
    """Calls ``hook(module, grad_input, grad_output)`` whenever the gradients of any module's inputs are known; a result
    other than None replaces `grad_input`."""
    _set_global_backward_kind(True)
    return _add_hook(_global_backward_hooks, hook)


def _typename(value):
    """The name of a value's type in messages: for tensors as ``Tensor.type()`` gives it, else with its module."""
    if isinstance(value, torch.Tensor):
        return value.type()
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _indent_rest(text, spaces):
    """`text` with every line but the first indented."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _merged(own, hook_results):
    return own if hook_results is None else hook_results


class Module(ModuleBase):
    """A part of a model: it owns parameters, buffers and other modules, and computes ``forward`` when it is called.

    A subclass calls ``super().__init__()``, assigns its parts to attributes and defines ``forward``::

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden = nn.Linear(8, 16)
                self.out = nn.Linear(16, 2)

            def forward(self, x):
                return self.out(self.hidden(x).relu())

    What is assigned is registered by its type: ``Parameter`` in ``_parameters``, ``Module`` in ``_modules``; tensors
    that are state but not trained are registered with ``register_buffer``. `training` says whether the module is in
    training mode.
    """

    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for name in _HOOK_DICTS:
            state[name] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super(ModuleBase, self).__init__(*args, **kwargs)

    def forward(self, *input):
        """What calling the module computes; every subclass defines it. Call the module, not ``forward``: hooks run then."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- registration ----

    def _check_name(self, kind, name, own):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if kind == "module" and hasattr(self, name) and name not in own:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in own:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name, tensor, persistent=True):
        """Registers a tensor (or None) as a buffer: state that is moved and saved with the module, but not trained.

        Arguments:
            name: the attribute it can be reached by.
            tensor: the tensor, or None for a buffer that is absent and not in the state dict.
            persistent: whether ``state_dict`` holds it.

        Errors: KeyError for a name that is taken, empty or dotted; TypeError for another type.
        """
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, buffers)
        if not (tensor is None or isinstance(tensor, torch.Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            tensor = _merged(tensor, hook(self, name, tensor))
        buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Registers a ``Parameter`` (or None, for one that is absent) under the attribute `name`.

        Errors: KeyError for a name that is taken, empty or dotted; TypeError for another type; ValueError for a
        parameter that was computed from other tensors.
        """
        parameters = self.__dict__.get("_parameters")
        if parameters is None:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            for hook in _global_parameter_registration_hooks.values():
                param = _merged(param, hook(self, name, param))
        parameters[name] = param

    def add_module(self, name, module):
        """Registers a module (or None) as a child under the attribute `name`.

        Errors: TypeError where it is no module; KeyError for a name that is taken, empty or dotted.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        for hook in _global_module_registration_hooks.values():
            module = _merged(module, hook(self, name, module))
        self._modules[name] = module

    def register_module(self, name, module):
        """Another name of ``add_module``."""
        self.add_module(name, module)

    def _register_attribute(self, name, value):
        """``self.name = value`` where the value or the name may belong in a registry; called by ``ModuleBase``, which
        stores the value as an ordinary attribute where this returns False."""
        state = self.__dict__
        parameters, buffers, modules = state.get("_parameters"), state.get("_buffers"), state.get("_modules")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, state, buffers, modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or (modules is not None and name in modules):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if isinstance(value, Module):
                self._forget(name, state, parameters, buffers)
            elif value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            for hook in _global_module_registration_hooks.values():
                value = _merged(value, hook(self, name, value))
            modules[name] = value
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if not (value is None or isinstance(value, torch.Tensor) or hasattr(value, "__torch_function__")):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                persistent = value.persistent
            else:
                persistent = name not in self._non_persistent_buffers_set
            # A subclass may have overridden register_buffer from before it had `persistent`.
            self.register_buffer(name, value, **({} if persistent else {"persistent": False}))
        else:
            return False
        return True

    def _forget(self, name, *registries):
        for registry in registries:
            if registry is not None:
                registry.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    # ---- access by a dotted path ----

    def get_submodule(self, target):
        """The module at the dotted path `target` (the module itself for ""); AttributeError where there is none."""
        module = self
        for atom in target.split(".") if target else ():
            if not hasattr(module, atom):
                raise AttributeError(f"{module._get_name()} has no attribute `{atom}`")
            module = getattr(module, atom)
            if not isinstance(module, Module):
                raise AttributeError(f"`{atom}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts `module` at the dotted path `target`; with `strict` there must already be one.

        Errors: ValueError for an empty path or something that is no module; AttributeError where the path leads nowhere
        or to something that is no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at the dotted path `target`; AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer at the dotted path `target`; AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def get_extra_state(self):
        """What else belongs in the state dict; overridden together with ``set_extra_state``."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Takes back from a state dict what ``get_extra_state`` returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ---- conversion ----

    def _apply(self, fn, recurse=True):
        """Replaces the data of every parameter and gradient, and every buffer, by ``fn`` of it; the ``Parameter`` objects
        stay. Subclasses that own tensors of other kinds override it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with torch.no_grad():
            for name, param in self._parameters.items():
                if param is None:
                    continue
                grad = param.grad
                param.data = fn(param)
                if grad is not None:
                    new_grad = fn(grad)
                    if new_grad is not grad:
                        param.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn):
        """Calls ``fn(module)`` for every submodule and then for this module; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device=None):
        """Moves parameters and buffers to a GPU, the current one by default; returns the module."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self):
        """Moves parameters and buffers to the CPU; returns the module."""
        return self._apply(lambda tensor: tensor.cpu())

    def type(self, dst_type):
        """Casts all parameters and buffers to `dst_type`; returns the module."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floating_to(self, dtype):
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self):
        """Casts floating-point parameters and buffers to float32; returns the module."""
        return self._floating_to(torch.float32)

    def double(self):
        """Casts floating-point parameters and buffers to float64; returns the module."""
        return self._floating_to(torch.float64)

    def half(self):
        """Casts floating-point parameters and buffers to float16; returns the module."""
        return self._floating_to(torch.float16)

    def bfloat16(self):
        """Casts floating-point parameters and buffers to bfloat16; returns the module."""
        return self._floating_to(torch.bfloat16)

    def to_empty(self, *, device, recurse=True):
        """Gives parameters and buffers new, uninitialized memory on `device`; returns the module."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def to(self, *args, **kwargs):
        """Moves and casts parameters and buffers, in place; returns the module.

        ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype, non_blocking=False)``,
        ``to(tensor, non_blocking=False)`` and ``to(memory_format=...)``. `dtype` is floating or complex and applies to
        tensors of such types only; integers keep theirs. `memory_format` applies to tensors of 4 or 5 dimensions.

        Errors: TypeError for a dtype that is neither floating nor complex; NotImplementedError where a tensor on the
        meta device would need data.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(tensor):
            new_dtype = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            options = {} if memory_format is None or tensor.dim() not in (4, 5) else {"memory_format": memory_format}
            if tensor.is_meta and device is not None and torch.device(device).type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            return tensor.to(device=device, dtype=new_dtype, non_blocking=non_blocking, **options)

        return self._apply(convert)

    def share_memory(self):
        """Puts parameters and buffers into memory that child processes share; returns the module."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def compile(self, *args, **kwargs):
        """Raises NotImplementedError: modules cannot be compiled in place; ``forward`` runs as written."""
        raise NotImplementedError(f"Module.compile: {self._get_name()} cannot be compiled in place")

    # ---- hooks ----

    def _set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls ``hook(module, grad_output)`` before the gradients of the module's inputs are computed; a result other
        than None replaces `grad_output`. `prepend`: before the hooks already there. Returns a handle."""
        return _add_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """The older form of ``register_full_backward_hook``: `grad_input` is that of the last operation only."""
        self._set_backward_kind(False)
        return _add_hook(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls ``hook(module, grad_input, grad_output)`` whenever the gradients of the module's inputs are known.

        Both are tuples; `grad_input` has an entry for each positional argument, None for what has no gradient. A result
        other than None is used in place of `grad_input`. Inputs and outputs must not be changed in place. Returns a
        handle.
        """
        self._set_backward_kind(True)
        return _add_hook(self._backward_hooks, hook, prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls ``hook(module, args)`` before ``forward``; a result other than None replaces `args` (a single value is
        wrapped into a tuple). With `with_kwargs` it is ``hook(module, args, kwargs)``, returning None or both. Returns a
        handle."""
        flags = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return _add_hook(self._forward_pre_hooks, hook, prepend, flags)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls ``hook(module, args, output)`` after ``forward``; a result other than None replaces `output`.

        With `with_kwargs` it is ``hook(module, args, kwargs, output)``. `always_call`: also where ``forward`` or a hook
        raised an exception. Returns a handle.
        """
        flags = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return _add_hook(self._forward_hooks, hook, prepend, flags)

    def _get_backward_hooks(self):
        full, other = [], []
        if _global_is_full_backward_hook is True:
            full += _global_backward_hooks.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        if _global_is_full_backward_hook is False:
            other += _global_backward_hooks.values()
        if self._is_full_backward_hook is False:
            other += self._backward_hooks.values()
        return full, other

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _run_pre_hooks(self, args, kwargs):
        for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _run_forward_hooks(self, args, kwargs, result, done, only_always=False):
        """Runs the forward hooks that are not in `done`, adding to it; returns the result, replaced where one does."""
        for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            always = key in self._forward_hooks_always_called or key in _global_forward_hooks_always_called
            if key in done or (only_always and not always):
                continue
            if always:
                done.add(key)
            try:
                if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
                    result = _merged(result, hook(self, args, kwargs, result))
                else:
                    result = _merged(result, hook(self, args, result))
            except Exception as error:
                if not only_always:
                    raise
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=3,
                )
        return result

    def _call_impl(self, *args, **kwargs):
        """A call of the module with its hooks around ``forward``; ``__call__`` goes here only where there are hooks."""
        done = set()
        result = None
        try:
            pre_hooks = self._get_backward_pre_hooks()
            full_hooks, other_hooks = self._get_backward_hooks()
            args, kwargs = self._run_pre_hooks(args, kwargs)
            boundary = BackwardHook(self, full_hooks, pre_hooks) if full_hooks or pre_hooks else None
            if boundary:
                args = boundary.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            result = self._run_forward_hooks(args, kwargs, result, done)
            if boundary:
                if not isinstance(result, (torch.Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                        f"but received {type(result)}",
                        stacklevel=2,
                    )
                result = boundary.setup_output_hook(result)
            if other_hooks:
                self._hook_last_operation(result, other_hooks)
            return result
        except Exception:
            self._run_forward_hooks(args, kwargs, result, done, only_always=True)
            raise

    _wrapped_call_impl = _call_impl

    def _hook_last_operation(self, result, hooks):
        while not isinstance(result, torch.Tensor):
            if isinstance(result, dict):
                result = next(value for value in result.values() if isinstance(value, torch.Tensor))
            else:
                result = result[0]
        if result.grad_fn is not None:
            for hook in hooks:
                result.grad_fn.register_hook(_WithModule(hook, self))

    # ---- state dicts ----

    def _register_state_dict_hook(self, hook):
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` at the end of ``state_dict``; a result other than
        None replaces the dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` at the end of ``state_dict``, to change the dict in
        place. Returns a handle."""
        hook._from_public_api = True
        return _add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Calls ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects anything. Returns a handle."""
        return _add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """Calls ``hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before
        the module loads; `with_module` puts the module first."""
        return _add_hook(self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before the module loads its part of a state dict. Returns a handle."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Calls ``hook(module, incompatible_keys)`` after ``load_state_dict``; it may change both lists of keys, for
        instance empty them so that ``strict`` passes. Returns a handle."""
        return _add_hook(self._load_state_dict_post_hooks, hook)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Puts this module's own parameters, buffers and extra state into `destination`."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ``OrderedDict`` from dotted names to the parameters and persistent buffers of the whole tree.

        The tensors share memory with the module's; unless `keep_vars` they are detached. `destination` is a dict to
        fill and `prefix` stands before every name. The attribute ``_metadata`` holds the version of each module.
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = _merged(destination, result)
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Loads this module's own parameters and buffers, without its children's; subclasses override it to accept older
        versions. What does not fit is added to the three lists. ``local_metadata["assign_to_params_buffers"]`` says
        that tensors are to be taken over and not copied."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        for name, own in itertools.chain(self._parameters.items(), persistent.items()):
            if own is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            self._load_tensor(name, own, key, state_dict[key], assign, error_msgs)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict.keys():
                if key.startswith(prefix) and key != extra_key:
                    name = key[len(prefix) :].split(".", 1)
                    known = name[0] in self._modules if len(name) > 1 else self._has_state(name[0])
                    if not known:
                        unexpected_keys.append(key)

    def _has_state(self, name):
        """Whether a state dict may have this name of this module's own: a parameter, a persistent buffer, neither None."""
        for registry in (self._parameters, self._buffers):
            if registry.get(name) is not None:
                return name not in self._non_persistent_buffers_set
        return False

    def _load_tensor(self, name, own, key, value, assign, error_msgs):
        if not isinstance(value, torch.Tensor) and not hasattr(type(value), "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        from ..parameter import is_lazy

        lazy = is_lazy(own)
        if not lazy and own.dim() == 0 and value.dim() == 1 and len(value) == 1:
            value = value[0]  # scalars were saved as one element before version 0.4
        if not lazy and value.shape != own.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {own.shape}."
            )
            return
        if own.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=4,
            )
        try:
            with torch.no_grad():
                if not assign:
                    own.copy_(value)
                elif isinstance(own, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=own.requires_grad)
                    else:
                        value.requires_grad_(own.requires_grad)
                    setattr(self, name, value)
                else:
                    setattr(self, name, value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {own.size()} and whose '
                f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies the tensors of a state dict into the parameters and buffers of the same names.

        Arguments:
            state_dict: a mapping as ``state_dict()`` makes it.
            strict: whether missing and unexpected names are errors.
            assign: whether the module takes over the tensors themselves, keeping only ``requires_grad`` of its own.

        Returns a named tuple (`missing_keys`, `unexpected_keys`). Errors: TypeError where `state_dict` is no mapping;
        RuntimeError that lists all names and shapes that do not fit.
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local_state, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata = {**local_metadata, "assign_to_params_buffers": True}
            module._load_from_state_dict(
                local_state, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(below)}, below)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            for kind, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    error_msgs.insert(0, f"{kind} key(s) in state_dict: {names}. ")
        if error_msgs:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(error_msgs))
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    # ---- walking the tree ----

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield f"{module_prefix}.{name}" if module_prefix else name, member

    def parameters(self, recurse=True):
        """Iterates over the parameters, each once; without `recurse` only the module's own."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterates over (dotted name, parameter); a shared one comes once unless `remove_duplicate` is False."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Iterates over the buffers, each once; without `recurse` only the module's own."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterates over (dotted name, buffer); a shared one comes once unless `remove_duplicate` is False."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """Iterates over the modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Iterates over (name, module) of the modules directly below, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """Iterates over the module itself and all below it, each once unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterates over (dotted name, module), this one first; `memo` is the set of those to leave out."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # ---- modes ----

    def train(self, mode=True):
        """Puts the module and all below it in training (or, with False, evaluation) mode; returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Puts the module and all below it in evaluation mode; returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Sets whether gradients are recorded for all parameters; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Removes the gradients of all parameters, or fills them with zeros where `set_to_none` is False."""
        for param in self.parameters():
            grad = param.grad
            if grad is not None:
                if set_to_none:
                    param.grad = None
                else:
                    grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                    grad.zero_()

    # ---- printing and pickling ----

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands in the parentheses of the module's printed form, before its children."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_indent_rest(repr(module), 2)}" for name, module in self._modules.items()]
        lines = extra_lines + child_lines
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        if lines:
            return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"
        return f"{self._get_name()}()"

    def __dir__(self):
        keys = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(key for key in keys if not key[:1].isdigit())

    def __getstate__(self):
        return self.__dict__.copy()

    def __setstate__(self, state):
        own = self.__dict__
        own.update(state)
        # Pickles of earlier versions lack what came later.
        for name in _HOOK_DICTS:
            if name not in own:
                own[name] = OrderedDict()
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        """A shallow copy with registries of its own, for a replica on another device."""
        replica = type(self).__new__(type(self))
        replica.__dict__.update(self.__dict__)
        replica.__dict__["_parameters"] = {}
        replica.__dict__["_buffers"] = self._buffers.copy()
        replica.__dict__["_modules"] = self._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica


def _parse_to(*args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None, tensor=None):
    """The arguments of ``Module.to`` in any of its forms as (device, dtype, non_blocking, memory_format)."""
    args = list(args)
    if args and isinstance(args[0], torch.Tensor):
        tensor = args.pop(0)
    elif args and isinstance(args[0], torch.dtype):
        dtype = args.pop(0)
    elif args:
        device = args.pop(0)
        if args and (args[0] is None or isinstance(args[0], torch.dtype)):
            dtype = args.pop(0)
    if args:
        non_blocking = args.pop(0)
    args = args[1:]  # Tensor.to's `copy`, which a module has no use for
    if args or not isinstance(non_blocking, bool):
        raise TypeError(
            "to() received an invalid combination of arguments: expected (device, dtype, non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking)"
        )
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    return (None if device is None else torch.device(device)), dtype, non_blocking, memory_format


ModuleBase._configure(
    (Module, torch.Tensor),
    (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks),
)
