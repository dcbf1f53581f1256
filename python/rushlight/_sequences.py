"""Tuples and lists made anew in the kind of another: what walks through nested arguments needs."""


def is_namedtuple(value):
    """Whether value is a tuple with named fields."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def in_kind_of(old, items):
    """A tuple, named tuple or list of the kind of ``old`` that holds ``items``."""
    return type(old)(*items) if is_namedtuple(old) else type(old)(items)
