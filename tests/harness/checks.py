"""The checks that run on every row: each is a function of a Case, and returns False where it does not apply."""

import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck

from . import map_tensors, tensors_in, to_numpy

# Relative and absolute tolerance: a few units in the last place of what the dtype computes in.
TOLERANCE = {"float64": (1e-9, 1e-9), "float32": (2e-5, 2e-5), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}
TOLERANCE["complex64"], TOLERANCE["complex128"] = TOLERANCE["float32"], TOLERANCE["float64"]


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_near(actual, expected, dtype, case, what):
    rtol, atol = TOLERANCE.get(dtype, TOLERANCE["float32"])
    actual, expected = as_list(to_numpy(actual)), as_list(expected)
    assert len(actual) == len(expected), f"{what}: {len(actual)} results, not {len(expected)}"
    for a, e in zip(actual, expected):
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape, f"{what}: shape {a.shape}, not {e.shape}"
        np.testing.assert_allclose(a, e, rtol * case.tol, atol * case.tol, err_msg=what)


def describe(args, kwargs):
    shown = map_tensors(lambda t: f"{t.dtype}{list(t.shape)}", [list(args), kwargs])
    return f"{shown[0]} {shown[1] or ''}"


def values(case):
    """Against the reference, for every dtype; without one, the other dtypes against float64."""
    if case.draws:
        return False
    for dtype in case.dtypes:
        for args, kwargs in case.samples(dtype):
            what = f"{case.id} {describe(args, kwargs)}"
            result = case.function(*args, **kwargs)
            if case.ref is not None:
                with np.errstate(all="ignore"):
                    expected = case.ref(*to_numpy(args), **to_numpy(kwargs))
            elif dtype in ("float32", "float16", "bfloat16"):
                wide = lambda t: t.double() if t.is_floating_point() else t  # noqa: E731
                expected = to_numpy(case.function(*map_tensors(wide, args), **map_tensors(wide, kwargs)))
            else:
                continue
            assert_near(result, expected, dtype, case, what)
            if case.gives:
                first = as_list(result)[0]
                given = tensors_in([args, kwargs])[0].dtype
                integral = not (given.is_floating_point or given.is_complex)
                wanted = {
                    "same": given,
                    "float": torch.float32 if integral else given,
                    "sum": torch.int64 if integral else given,
                    "real": given.to_real() if given.is_complex else given,
                }.get(case.gives) or getattr(torch, case.gives)
                assert first.dtype == wanted, f"{what}: {first.dtype}, not {wanted}"
    for args, expected in case.expect:
        args = tuple(torch.tensor(x) if isinstance(x, list) else x for x in args)  # here lists are tensors
        result = case.function(*args)
        expected = expected if isinstance(result, tuple) else [np.asarray(expected)]
        assert_near(result, expected, "float32", case, f"{case.id} {args}")


def _transposed(t):
    return t.transpose(0, -1).clone(memory_format=torch.contiguous_format).transpose(0, -1) if t.dim() > 1 else t


def _sliced(t):
    """The same elements with gaps between them, not at the storage's beginning."""
    if t.dim() == 0:
        return torch.stack([t, t, t])[1]
    wide = torch.zeros(*t.shape[:-1], 2 * t.shape[-1] + 3, dtype=t.dtype)
    inside = wide[..., 3::2]
    inside.copy_(t)
    return inside


def _expanded(t):
    """Other elements: the first of the last dimension, repeated without memory of their own."""
    return t[..., :1].expand(t.shape) if t.dim() and t.shape[-1] else t


def _loose(t):
    """The same tensor with odd strides where the dimension never takes a step."""
    return t.as_strided(t.shape, [step if n > 1 else 7 for n, step in zip(t.shape, t.stride())])


def layouts(case):
    """Transposed, sliced with an offset, expanded and oddly strided arguments give what contiguous ones give."""
    if not case.layouts or case.draws:
        return False
    for dtype in dict.fromkeys((case.dtypes[0], case.dtypes[-1])):
        for args, kwargs in case.samples(dtype):
            for change in (_transposed, _sliced, _expanded, _loose):
                strided = map_tensors(change, args), map_tensors(change, kwargs)
                plain = map_tensors(lambda t: t.clone(memory_format=torch.contiguous_format), strided)
                what = f"{case.id} {change.__name__} {describe(args, kwargs)}"
                expected = to_numpy(case.function(*plain[0], **plain[1]))
                assert_near(case.function(*strided[0], **strided[1]), expected, dtype, case, what)


def _small(case, dtype, most=16):
    for args, kwargs in case.samples(dtype):
        floats = [t for t in tensors_in([args, kwargs]) if t.is_floating_point() or t.is_complex()]
        if floats and 0 < sum(t.numel() for t in floats) <= 2 * most:
            yield args, kwargs


def _as_function(case, args, kwargs):
    """The call as a function of its floating-point tensors, and these, requiring gradients."""
    sources = []

    def varies(t):
        return (t.is_floating_point() or t.is_complex()) and not getattr(t, "constant", False)

    def mark(t):
        if varies(t):
            sources.append(t.detach().clone().requires_grad_())
        return t

    map_tensors(mark, [list(args), kwargs])

    def f(*given):
        given = iter(given)
        filled = map_tensors(lambda t: next(given) if varies(t) else t, [list(args), kwargs])
        result = case.function(*filled[0], **filled[1])
        kept = [r for r in as_list(result) if isinstance(r, torch.Tensor) and r.requires_grad]
        return tuple(kept)

    return f, tuple(sources)


def _checkable(case):
    doubles = [d for d in ("float64", "complex128") if d in case.dtypes]
    if not case.grad or case.draws or not (case.trait("vjp") or case.trait("composite")):
        return []
    return doubles


def gradients(case):
    """Backward agrees with finite differences."""
    checked = False
    for dtype in _checkable(case):
        for count, (args, kwargs) in enumerate(_small(case, dtype)):
            if count >= (8 if dtype == "float64" else 3):
                break
            f, sources = _as_function(case, args, kwargs)
            if f(*sources):
                assert gradcheck(f, sources), f"{case.id} {describe(args, kwargs)}"
                checked = True
    return checked


def single_gradients(case):
    """An argument's gradient is the same where it is the only one that is asked for: each saves what it needs."""
    checked = False
    for dtype in _checkable(case)[:1]:
        for args, kwargs in itertools.islice(_small(case, dtype), 6):
            f, sources = _as_function(case, args, kwargs)
            outputs = f(*sources)
            if len(sources) < 2 or not outputs:
                continue
            ones = [torch.ones_like(o) for o in outputs]
            together = torch.autograd.grad(outputs, sources, ones, allow_unused=True)
            for i, source in enumerate(sources):
                alone = [s if k == i else s.detach() for k, s in enumerate(sources)]
                outputs = f(*alone)
                if outputs:
                    seeds = [torch.ones_like(o) for o in outputs]
                    (one,) = torch.autograd.grad(outputs, source, seeds, allow_unused=True)
                    what = f"{case.id} argument {i} {describe(args, kwargs)}"
                    assert (one is None) == (together[i] is None), what
                    if one is not None:
                        assert_near(one, to_numpy(together[i]), dtype, case, what)
                    checked = True
    return checked


def second_gradients(case):
    """Backward of backward agrees with finite differences of backward."""
    checked = False
    for dtype in _checkable(case) if case.gradgrad else ():
        for count, (args, kwargs) in enumerate(_small(case, dtype, most=8)):
            if count >= (3 if dtype == "float64" else 1):
                break
            f, sources = _as_function(case, args, kwargs)
            outputs = f(*sources)
            if not outputs or not any(o.numel() for o in outputs):
                continue
            seeds = [torch.ones_like(o) for o in outputs]
            first = torch.autograd.grad(outputs, sources, seeds, create_graph=True, allow_unused=True)
            if not any(g is not None and g.requires_grad for g in first):
                continue  # linear: nothing is left to differentiate
            torch.manual_seed(0)
            assert gradgradcheck(f, sources), f"{case.id} {describe(args, kwargs)}"
            checked = True
    return checked


def in_place(case):
    """x.name_(...) writes what x.name(...) returns."""
    method = torch.Tensor.__dict__.get(case.name + "_") or getattr(torch._C, case.name + "_", None)
    if method is None or not case.trait("in_place") or case.call is not None or case.draws:
        return False
    checked = False
    for dtype in dict.fromkeys((case.dtypes[0], case.dtypes[-1])):
        for args, kwargs in case.samples(dtype):
            if not isinstance(args[0], torch.Tensor):
                continue
            expected = case.function(*args, **kwargs)
            target = args[0].clone()
            if tuple(expected.shape) != tuple(target.shape) or not torch.can_cast(expected.dtype, target.dtype):
                continue
            before = target._version
            result = method(target, *args[1:], **kwargs)
            assert result is target, f"{case.id}_ must return its tensor"
            assert target._version > before or case.name in ("t", "detach"), f"{case.id}_ must count the change"
            assert_near(
                target, to_numpy(expected.to(target.dtype)), dtype, case, f"{case.id}_ {describe(args, kwargs)}"
            )
            checked = True
    return checked


def out(case):
    """out= is filled, resized and returned."""
    if case.draws or case.call is not None or case.trait("view") or not hasattr(torch._C, case.name):
        return False
    checked = False
    for args, kwargs in list(case.samples(case.dtypes[0]))[:3]:
        expected = case.function(*args, **kwargs)
        results = as_list(expected)
        if isinstance(expected, list) or not all(isinstance(r, torch.Tensor) for r in results) or "out" in kwargs:
            return checked
        if isinstance(expected, tuple) and not hasattr(expected, "n_fields"):
            return checked  # Tensor[]: no out= form
        for shape in ((0,), None):
            given = [torch.empty(shape or tuple(r.shape), dtype=r.dtype) for r in results]
            target = given[0] if isinstance(expected, torch.Tensor) else tuple(given)
            returned = case.function(*args, **kwargs, out=target)
            what = f"{case.id} out= {describe(args, kwargs)}"
            assert all(a is b for a, b in zip(as_list(returned), given)), what
            assert_near(given, to_numpy(results), case.dtypes[0], case, what)
            checked = True
    return checked


def composite(case):
    """The definition in other operators agrees with the kernel."""
    if not any(o["kernel"] and o["composite"] for o in case.traits) or case.draws or case.call is not None:
        return False
    checked = False
    for dtype in case.dtypes[:2]:
        for args, kwargs in case.samples(dtype):
            try:
                other = torch._C._call_composite(case.operator, *args, **kwargs)
            except NotImplementedError as error:
                if "no composite" not in str(error):
                    raise
                continue
            expected = case.function(*args, **kwargs)
            assert_near(other, to_numpy(expected), dtype, case, f"{case.id} {describe(args, kwargs)}")
            assert [r.dtype for r in as_list(other)] == [r.dtype for r in as_list(expected)]
            checked = True
    return checked


def meta(case):
    """On the meta device shapes and dtypes come out as they do with data."""
    if not case.meta:
        return False
    checked = False
    for dtype in case.dtypes[:1]:
        for args, kwargs in case.samples(dtype):
            if not tensors_in([args, kwargs]):
                continue
            expected = tensors_in(case.function(*args, **kwargs))
            there = map_tensors(lambda t: t.to("meta"), [list(args), kwargs])
            what = f"{case.id} {describe(args, kwargs)}"
            found = tensors_in(case.function(*there[0], **there[1]))
            assert all(t.is_meta for t in found), what
            assert [(t.shape, t.dtype) for t in found] == [(t.shape, t.dtype) for t in expected], what
            checked = True
    return checked


def raises(case):
    """Wrong arguments raise what the row says."""
    for args, kind, message in case.raises:
        rng = np.random.default_rng(0)
        from . import arguments

        with pytest.raises(kind) as caught:
            case.function(*arguments(args, case.dtypes[0], rng, case.domain))
        assert message in str(caught.value), str(caught.value)
    return bool(case.raises)


def seeded(case):
    """Random operators: the same seed gives the same numbers, of the right dtype."""
    if not case.draws:
        return False
    for args, kwargs in case.samples(case.dtypes[0]):
        drawn = []
        for _ in range(2):
            torch.manual_seed(5)
            drawn.append(to_numpy(as_list(case.function(*map_tensors(lambda t: t.clone(), list(args)), **kwargs))))
        for a, b in zip(*drawn):
            np.testing.assert_array_equal(a, b)
        assert case.ref is None or case.ref(*drawn[0], *to_numpy(args), **kwargs), case.id


CHECKS = (
    values,
    layouts,
    gradients,
    single_gradients,
    second_gradients,
    in_place,
    out,
    composite,
    meta,
    raises,
    seeded,
)
