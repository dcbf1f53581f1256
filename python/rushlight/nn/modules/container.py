"""Modules that hold other modules or parameters: in a row, a list or a dict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice

import rushlight as torch

from ..parameter import Parameter
from . import fusion
from .module import Module, _indent_rest, _typename

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """A module with the given modules as children; an old form, use ``ModuleDict`` or plain attributes."""

    def __init__(self, **kwargs):
        super().__init__()
        import warnings

        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that "
            "instead.",
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(container, index):
    """`index` as a non-negative int; IndexError where it is out of range."""
    size = len(container)
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


class Sequential(Module):
    """Calls its modules one after another, each with the result of the one before.

    Arguments: the modules, whose names become "0", "1", ...; or one ``OrderedDict`` from names to modules. It behaves as
    a list of them: indexing, slices, ``append``, ``insert``, ``extend``, ``pop``, ``+`` and ``*``.
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def _renumber(self, modules):
        self._modules = {str(index): module for index, module in enumerate(modules)}

    def _key(self, index):
        return next(islice(self._modules.keys(), _position(self, index), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules.keys())[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        return self.extend(other)

    def __mul__(self, count):
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return Sequential(*(module for _ in range(count) for module in self))

    __rmul__ = __mul__

    def __imul__(self, count):
        own = list(self)
        self * count  # checks the factor
        for _ in range(count - 1):
            self.extend(own)
        return self

    def pop(self, key):
        """Removes the module at an index and returns it; those after it are renumbered."""
        module = self[key]
        del self[key]
        return module

    def append(self, module):
        """Adds a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Puts a module before the one at `index`; returns the container. IndexError where it is out of range."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential):
        """Adds the modules of an iterable at the end; returns the container."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input):
        """The result of the last module."""
        if not torch.is_grad_enabled():
            return fusion.run(list(self._modules.values()), input)
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(Module):
    """A list of modules that are registered as children, named "0", "1", ...; it has no ``forward``.

    Arguments: `modules`, an iterable of modules.
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _key(self, index):
        return str(_position(self, index))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        modules = list(self._modules.values())
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_position(self, index)]
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for index, module in enumerate(chain(self, other)):
            combined.add_module(str(index), module)
        return combined

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __repr__(self):
        lines = [repr(module) for module in self]
        if not lines:
            return self._get_name() + "()"
        # Equal neighbours are printed once, with how many they are.
        groups = [[0, 0, lines[0]]]
        for index, line in enumerate(lines[1:], 1):
            if line == groups[-1][2]:
                groups[-1][1] = index
            else:
                groups.append([index, index, line])
        shown = []
        for first, last, line in groups:
            text = f"({first}): {line}" if first == last else f"({first}-{last}): {last - first + 1} x {line}"
            shown.append(_indent_rest(text, 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(shown) + "\n)"

    def insert(self, index, module):
        """Puts a module before the one at `index`."""
        modules = list(self)
        modules.insert(index, module)
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self, module):
        """Adds a module at the end; returns the list."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Removes the module at an index, or those of a slice, and returns it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules):
        """Adds the modules of an iterable at the end; returns the list. TypeError where it is not iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self


def _pairs(values, what):
    """The (key, value) pairs of a mapping, another dict container or an iterable of pairs; TypeError and ValueError else."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{what}.update should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    pairs = []
    for index, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{what} update sequence element #{index} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{what} update sequence element #{index} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dict of modules, in order of insertion, that are registered as children; it has no ``forward``.

    Arguments: `modules`, a mapping or an iterable of (name, module).
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key):
        """Removes a module and returns it; KeyError where there is none."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The pairs (name, module)."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Adds or replaces modules from a mapping or an iterable of (name, module)."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _describe(value, kind):
    """A parameter or other value as the parameter containers print it, with the tensor's `kind`."""
    if not isinstance(value, torch.Tensor):
        return "Object of type: " + type(value).__name__
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    shape = "x".join(str(size) for size in value.size())
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{name} containing: [{kind} of size {shape}{place}]"


def _as_parameter(value):
    """Tensors become parameters, as the parameter containers have it; other values stay."""
    return Parameter(value) if isinstance(value, torch.Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters, registered under "0", "1", ...; tensors become parameters, other values are kept as they are.

    Arguments: `values`, an iterable.
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            out = type(self)()
            for i in range(*index.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, str(_position(self, index)))

    def __setitem__(self, index, param):
        setattr(self, str(_position(self, index)), _as_parameter(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        """Adds a value at the end; returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Adds the values of an iterable at the end; returns the list. TypeError where it is not iterable."""
        if not isinstance(values, Iterable) or isinstance(values, torch.Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(f"  ({i}): {_describe(value, getattr(value, 'dtype', None))}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, in order of insertion; tensors become parameters, other values are kept as they are.

    Arguments: `parameters`, a mapping or an iterable of (key, value).
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _key_to_attr(key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        attribute = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A container of its own with the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value of `key`, which is set to `default` where it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Removes everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Removes a value and returns it; KeyError where there is none."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Removes the last pair and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new container with `default` under each of the keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """The pairs (key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Adds or replaces values from a mapping or an iterable of (key, value)."""
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self):
        return "\n".join(f"  ({key}): {_describe(value, _typename(value))}" for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = ParameterDict(other)
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self
