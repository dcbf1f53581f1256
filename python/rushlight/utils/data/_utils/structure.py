"""Walking through nested containers, keeping their types where they can be made anew."""

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from rushlight._sequences import is_namedtuple


def rebuild_mapping(old, items):
    """A mapping of the kind of ``old`` that holds ``items``; a dict if that kind cannot be made from one."""
    try:
        if isinstance(old, MutableMapping):
            new = copy.copy(old)  # keeps what a subclass holds besides its items
            new.update(items)
            return new
        return type(old)(items)
    except TypeError:
        return items


def rebuild_sequence(old, items):
    """A sequence of the kind of ``old`` that holds the list ``items``; that list if the kind cannot be made from one."""
    try:
        if isinstance(old, MutableSequence):
            new = copy.copy(old)
            for i, item in enumerate(items):
                new[i] = item
            return new
        return type(old)(items)
    except TypeError:
        return items


def convert(data, leaf, plain_tuples=False):
    """Applies ``leaf`` to everything in nested containers that is no container itself.

    With ``plain_tuples`` tuples become lists.
    """
    if isinstance(data, Mapping):
        return rebuild_mapping(data, {key: convert(value, leaf, plain_tuples) for key, value in data.items()})
    if is_namedtuple(data):
        return type(data)(*(convert(d, leaf, plain_tuples) for d in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        items = [convert(d, leaf, plain_tuples) for d in data]
        return items if plain_tuples and isinstance(data, tuple) else rebuild_sequence(data, items)
    return leaf(data)
