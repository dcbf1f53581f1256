"""A row says what an operator is, the checks are derived from it.

tests/cases/FAMILY.py holds rows:

    Case("silu", ref=lambda x: x / (1 + np.exp(-x)), dtypes=FLOATING)
    Case("gather", ref=..., inputs=[((3, 5), 1, I((3, 2), 5))])

tests/python/test_operators.py runs every check of checks.py on every row. Begin reading with Case.
"""

import zlib
from dataclasses import dataclass

import numpy as np

import rushlight as torch

FLOATING = ("float32", "float64", "float16", "bfloat16")
INTEGRAL = ("int64", "uint8", "int8", "int16", "int32")
COMPLEX = ("complex64", "complex128")
BOOL = ("bool",)
REAL = FLOATING + INTEGRAL
ALL = REAL + COMPLEX + BOOL
NUMERIC = REAL + COMPLEX

SHAPES = [(), (7,), (2, 0), (3, 5)]
PAIRS = [((3, 5), (3, 5)), ((3, 1), (1, 4)), ((2,), ()), ((0, 3), (3,)), ((), ())]


class Spec:
    """A tensor that an argument stands for. `at` is the dtype under test, or fixed by `dtype`."""

    def __init__(self, shape, *, low=None, high=None, dtype=None, values=None, constant=False):
        self.shape, self.low, self.high, self.dtype, self.values = shape, low, high, dtype, values
        self.constant = constant  # gradients do not pass it

    def make(self, dtype, rng, domain):
        made = self._make(dtype, rng, domain)
        made.constant = self.constant
        return made

    def _make(self, dtype, rng, domain):
        dtype = self.dtype or dtype
        low = domain[0] if self.low is None else self.low
        high = domain[1] if self.high is None else self.high
        if self.values is not None:
            return torch.tensor(self.values, dtype=getattr(torch, dtype))
        return torch.tensor(random_array(self.shape, dtype, rng, low, high), dtype=getattr(torch, dtype))


def T(shape, **options):
    """A tensor of this shape; options of Spec."""
    return Spec(shape, **options)


def I(shape, high, low=0):  # noqa: E743
    """An int64 tensor with elements from low to high - 1."""
    return Spec(shape, low=low, high=high, dtype="int64")


def B(shape):
    """A bool tensor."""
    return Spec(shape, dtype="bool")


class V:
    """A value that is passed as it is: V((1, 2)) is a tuple of ints and not a tensor's shape."""

    def __init__(self, value):
        self.value = value


def random_array(shape, dtype, rng, low, high):
    """Elements from low to high; of floats no two are equal, so that orders are clear."""
    n = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        low = max(low, 0) if dtype == "uint8" else low
        return rng.integers(int(np.ceil(low)), max(int(np.ceil(high)), int(np.ceil(low)) + 1), shape)
    if dtype.startswith("complex"):
        return random_array(shape, "float64", rng, low, high) + 1j * random_array(shape, "float64", rng, low, high)
    grid = low + (high - low) * (np.arange(n) + 0.25 + 0.5 * rng.random(n)) / max(n, 1)
    return rng.permutation(grid).reshape(shape)


@dataclass
class Case:
    """One row. It is registered by being made."""

    name: str
    ref: object = None  # a function of NumPy arrays with the operator's arguments
    inputs: tuple = tuple(SHAPES)  # each: a shape, or a tuple of arguments in which shapes stand for tensors
    kwargs: tuple = ({},)
    dtypes: tuple = FLOATING
    domain: tuple = (-3.0, 3.0)
    gives: str = None  # the result's dtype: "same", "float" (floats for integers), or a dtype's name
    expect: tuple = ()  # instead of ref: pairs (arguments, result) of nested lists and numbers
    raises: tuple = ()  # triples (arguments, exception, text in its message)
    grad: bool = True  # False: the gradient cannot be checked by finite differences
    gradgrad: bool = True
    meta: bool = True  # False: the result's shape depends on data
    layouts: bool = True  # False: the result says something of the memory itself
    tol: float = 1.0  # times the usual tolerance
    random: bool = None  # draws random numbers, also through operators inside; None: as it says itself
    call: object = None  # how it is called, if not simply by its name
    suffix: str = ""  # tells several rows of one operator apart

    def __post_init__(self):
        self.id = self.name + (f"-{self.suffix}" if self.suffix else "")
        if self.id in ROWS:
            raise ValueError(f"two rows are called {self.id}")
        ROWS[self.id] = self

    @property
    def draws(self):
        return self.trait("random") if self.random is None else self.random

    @property
    def operator(self):
        found = getattr(torch._C, self.name, None)
        return found if isinstance(found, torch._C.Operator) else torch.Tensor.__dict__[self.name]

    @property
    def traits(self):
        return self.operator.traits

    def trait(self, name):
        return any(overload[name] for overload in self.traits)

    def function(self, *args, **kwargs):
        return (self.call or self.operator)(*args, **kwargs)

    def samples(self, dtype):
        """Yields (arguments, keywords) with tensors of a dtype."""
        for i, given in enumerate(self.inputs):
            rng = np.random.default_rng(zlib.crc32(f"{self.id} {i}".encode()))
            args = arguments(given, dtype, rng, self.domain)
            for keywords in self.kwargs:
                yield args, {k: build(v, dtype, rng, self.domain) for k, v in keywords.items()}


ROWS = {}


def is_shape(x):
    return isinstance(x, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in x)


def arguments(given, dtype, rng, domain):
    """The positional arguments that a row's input stands for."""
    given = (given,) if is_shape(given) or isinstance(given, (Spec, list, V)) else given
    return tuple(build(T(x) if is_shape(x) else x, dtype, rng, domain) for x in given)


def build(x, dtype, rng, domain):
    if isinstance(x, Spec):
        return x.make(dtype, rng, domain)
    if isinstance(x, V):
        return x.value
    if isinstance(x, list):
        return [build(T(item) if is_shape(item) else item, dtype, rng, domain) for item in x]
    return x


def map_tensors(f, x):
    """Applies f to every tensor in nested lists, tuples and dicts."""
    if isinstance(x, torch.Tensor):
        return f(x)
    if isinstance(x, (list, tuple)):
        return type(x)([map_tensors(f, item) for item in x])
    if isinstance(x, dict):
        return {key: map_tensors(f, value) for key, value in x.items()}
    return x


def tensors_in(x):
    found = []
    map_tensors(found.append, x)
    return found


def to_numpy(x):
    """Tensors as arrays in double precision, so that references are exact."""

    def convert(t):
        t = t.detach()
        if t.is_complex():
            return t.to(torch.complex128).numpy()
        return t.double().numpy() if t.is_floating_point() else t.numpy()

    return map_tensors(convert, x)
