"""`assert_close`: are two results equal, up to rounding?"""

import cmath
import warnings
from collections.abc import Mapping, Sequence

import rushlight as torch

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]


def _precisions():
    """Relative and absolute tolerance for each dtype; others must be equal."""
    single, double = (1.3e-6, 1e-5), (1e-7, 1e-7)
    return {
        torch.float16: (1e-3, 1e-5),
        torch.bfloat16: (1.6e-2, 1e-5),
        torch.float32: single,
        torch.float64: double,
        torch.complex64: single,
        torch.complex128: double,
    }


def default_tolerances(*inputs, dtype_precisions=None):
    """Returns the relative and the absolute tolerance for tensors or dtypes: those of the coarsest."""
    table = dtype_precisions or _precisions()
    pairs = [table.get(x.dtype if isinstance(x, torch.Tensor) else x, (0.0, 0.0)) for x in inputs]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


class _Difference(Exception):
    """What differs; ``kind`` is the exception that the user gets."""

    def __init__(self, message, kind=AssertionError):
        super().__init__(message)
        self.kind = kind


class _Comparison:
    """The options of a comparison, and the comparison of two values of any supported kind."""

    def __init__(self, rtol, atol, **options):
        self.rtol, self.atol = rtol, atol
        self.__dict__.update(options)

    def tolerances(self, *inputs):
        if (self.rtol is None) != (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            raise _Difference(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", ValueError
            )
        return (self.rtol, self.atol) if self.rtol is not None else default_tolerances(*inputs)

    def compare(self, actual, expected, path=()):
        """Raises `_Difference` for the first pair that differs; the path to it is put into the message."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            items = self._matching_keys(actual, expected, path)
        elif _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                self._fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
            items = range(len(actual))
        else:
            try:
                self._compare_leaf(actual, expected)
            except _Difference as difference:
                self._fail(str(difference), path, difference.kind)
            return
        for item in items:
            self.compare(actual[item], expected[item], (*path, item))

    @staticmethod
    def _fail(message, path, kind=AssertionError):
        if path:
            message += "\n\nThe failure occurred for item " + "".join(str([item]) for item in path)
        raise _Difference(message, kind) from None

    def _matching_keys(self, actual, expected, path):
        missing, more = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or more:
            self._fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(more)}",
                path,
            )
        try:
            return sorted(actual)
        except TypeError:
            return list(actual)

    def _compare_leaf(self, actual, expected):
        if actual is None or expected is None:
            if actual is not expected:
                raise _Difference(f"None mismatch: {actual} is not {expected}")
            return
        pair = [_number(actual), _number(expected)]
        if all(isinstance(x, bool) for x in pair):
            if pair[0] is not pair[1]:
                raise _Difference(f"Booleans mismatch: {pair[0]} is not {pair[1]}")
        elif all(isinstance(x, (int, float, complex)) and not isinstance(x, bool) for x in pair):
            self._compare_numbers(*pair)
        else:
            related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
            tensors = [_as_tensor(x) for x in (actual, expected)] if related else [None]
            strange = not self.allow_subclasses and type(actual) is not type(expected)
            if strange or any(t is None for t in tensors):
                raise _Difference(
                    f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
                    TypeError,
                )
            self._compare_tensors(*tensors)

    def _compare_numbers(self, actual, expected):
        if self.check_dtype and type(actual) is not type(expected):
            raise _Difference(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        dtypes = {int: torch.int64, float: torch.float64, complex: torch.complex128}
        rtol, atol = self.tolerances(dtypes[type(actual)], dtypes[type(expected)])
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
            raise _Difference(_number_message(actual, expected, rtol, atol))

    def _compare_tensors(self, actual, expected):
        attributes = [("shape", actual.shape, expected.shape)]
        if self.check_layout:
            attributes.append(("layout", actual.layout, expected.layout))
        if self.check_stride:
            attributes.append(("stride()", actual.stride(), expected.stride()))
        if self.check_device:
            attributes.append(("device", actual.device, expected.device))
        if self.check_dtype:
            attributes.append(("dtype", actual.dtype, expected.dtype))
        for name, mine, other in attributes:
            if mine != other:
                raise _Difference(f"The values for attribute '{name}' do not match: {mine} != {other}.")
        rtol, atol = self.tolerances(actual, expected)
        if actual.device.type == "meta" or expected.device.type == "meta":
            return
        actual, expected = actual.detach(), expected.detach()
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            dtype = torch.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(dtype), expected.to(dtype)
        matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if matches.all():
            return
        if actual.dim() == 0:
            raise _Difference(_number_message(actual.item(), expected.item(), rtol, atol))
        raise _Difference(_tensor_message(actual, expected, matches, rtol, atol))


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _number(value):
    """A Python number for a NumPy number; anything else as it is."""
    if type(value).__module__ == "numpy" and not hasattr(value, "__len__") and hasattr(value, "item"):
        return value.item()
    return value


def _as_tensor(value):
    if isinstance(value, torch.Tensor):
        return value
    try:
        return torch.as_tensor(value)
    except (RuntimeError, TypeError, ValueError):
        return None


def _message(kind, extra, rtol, atol, absolute, relative):
    """The text that PyTorch's users know. The differences are pairs of the value and the index, or of it and None."""
    equal = rtol == 0 and atol == 0
    lines = [f"{kind} are not {'equal' if equal else 'close'}!", "", extra]
    for name, (value, index), allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        if index is None:
            line = f"{name.title()} difference: {value}"
        else:
            line = f"Greatest {name} difference: {value} at index {index}"
        lines.append(line if equal else f"{line} (up to {allowed} allowed)")
    return "\n".join(lines)


def _number_message(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected != 0 else float("inf")
    return _message("Scalars", f"Expected {expected} but got {actual}.", rtol, atol, (absolute, None), (relative, None))


def _tensor_message(actual, expected, matches, rtol, atol):
    total, wrong = matches.numel(), matches.numel() - int(matches.sum())
    if not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(torch.int64), expected.to(torch.int64)
    difference = (actual - expected).abs()

    def greatest(values):
        flat = values.masked_fill(matches, 0).flatten()
        place = int(flat.argmax())
        value, index = flat[place].item(), []
        for size in reversed(values.shape):
            place, i = divmod(place, size)
            index.insert(0, i)
        return value, tuple(index)

    extra = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    return _message("Tensor-likes", extra, rtol, atol, greatest(difference), greatest(difference / expected.abs()))


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` holds everywhere.

    Args:
        actual, expected: tensors, what can become one, numbers, None, or sequences and mappings of these, built alike.
        allow_subclasses (bool): let a type be compared with a related one.
        rtol, atol (float): both or none; from the dtype if not given, and zero for integers.
        equal_nan (bool): whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride (bool): which attributes must agree besides the shape.
        msg (str or callable): the message, or what makes it of the one that would be given.
    """
    __tracebackhide__ = True
    comparison = _Comparison(
        rtol,
        atol,
        allow_subclasses=allow_subclasses,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    try:
        comparison.compare(actual, expected)
        return
    except _Difference as difference:
        kind, text = difference.kind, str(difference)
    raise kind(msg(text) if callable(msg) else text if msg is None else msg)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """Deprecated: use `assert_close`, whose tolerances are tighter."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, torch.Tensor):
        actual = torch.tensor(actual)
    if not isinstance(expected, torch.Tensor):
        expected = torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        table = {torch.float16: (1e-3, 1e-3), torch.float32: (1e-4, 1e-5), torch.float64: (1e-5, 1e-8)}
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=table)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
