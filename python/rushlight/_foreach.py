"""Functions over lists of tensors, as code that steps optimizers by hand uses them: ``_foreach_add_(xs, ys, alpha=2)`` is
``x.add_(y, alpha=2)`` for each pair. They are derived from the methods of one tensor."""

import itertools

from . import _C
from ._C import Tensor

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add clamp_max clamp_min div lerp mul pow sub".split()


def _rows(name, lists):
    """The arguments of each tensor's call; what is no list is the same in all. Checked before anything is written."""
    tensors = next((x for x in lists if isinstance(x, (list, tuple))), None)
    if tensors is None or (tensors is not lists[0] and isinstance(lists[0], Tensor)):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(lists[0]).__name__}"
        )
    if not tensors:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    for other in lists:
        if isinstance(other, (list, tuple)) and len(other) != len(tensors):
            raise RuntimeError(
                f"{name}: Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )
    return list(zip(*(x if isinstance(x, (list, tuple)) else itertools.repeat(x) for x in lists)))


def _spread(name, operation, in_place):
    def function(self, *args, **options):
        results = tuple([operation(*row, **options) for row in _rows(name, (self, *args))])
        return self if in_place else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``{operation.__name__}`` for each tensor of a list.

    Lists among the further arguments give each call its own, and must be as long; anything else goes to all calls.
    {"The tensors are changed and returned." if in_place else "Returns a tuple."}
    """
    return function


def _derived():
    both = {name: (getattr(Tensor, name), getattr(Tensor, name + "_")) for name in UNARY + BINARY}
    both["pow"] = (_C.pow, Tensor.pow_)  # the base may be a number
    both["maximum"], both["minimum"] = both["clamp_min"], both["clamp_max"]  # of tensors or numbers
    both["addcdiv"], both["addcmul"] = (addcdiv, addcdiv_), (addcmul, addcmul_)
    for name, (new, changed) in both.items():
        yield f"_foreach_{name}", new, False
        yield f"_foreach_{name}_", changed, True
    yield "_foreach_clone", Tensor.clone, False
    yield "_foreach_copy_", Tensor.copy_, True
    yield "_foreach_max", Tensor.max, False
    yield "_foreach_norm", _C.linalg_vector_norm, False
    yield "_foreach_zero_", Tensor.zero_, True


def addcdiv(x, a, b, value=1):
    return x.addcdiv(a, b, value=value)


def addcdiv_(x, a, b, value=1):
    return x.addcdiv_(a, b, value=value)


def addcmul(x, a, b, value=1):
    return x.addcmul(a, b, value=value)


def addcmul_(x, a, b, value=1):
    return x.addcmul_(a, b, value=value)


FUNCTIONS = {name: _spread(name, operation, in_place) for name, operation, in_place in _derived()}
