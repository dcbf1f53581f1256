"""Functions of the package that need Python over operators."""

from __future__ import annotations

from collections import namedtuple

from . import _C
from ._C import Tensor

_Histogramdd = namedtuple("histogramdd", ("hist", "bin_edges"))

__all__ = [
    "asarray", "are_deterministic_algorithms_enabled", "compile", "compiled_with_cxx11_abi", "get_autocast_dtype",
    "cdist", "chain_matmul", "einsum", "lu", "tensordot",
    "get_default_device", "get_deterministic_debug_mode", "get_device_module", "get_float32_matmul_precision",
    "get_num_interop_threads", "gradient", "histogramdd", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "nonzero",
    "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_num_interop_threads", "set_warn_always", "to_dlpack", "unique", "unique_consecutive",
    "use_deterministic_algorithms",
]  # fmt: skip


def nonzero(input, *, as_tuple=False, out=None):
    """The indices of elements that are not zero.

    An (n, ndim) int64 tensor, or with `as_tuple` one 1-d tensor for each dimension, as indexing takes them.
    """
    if as_tuple:
        return _C.nonzero_numpy(input)
    return _C.nonzero(input) if out is None else _C.nonzero(input, out=out)


def _shortened(values, inverse, counts, return_inverse, return_counts):
    if return_inverse and return_counts:
        return values, inverse, counts
    return (values, inverse) if return_inverse else (values, counts) if return_counts else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements of a tensor, ascending, or the different slices along `dim`.

    With `return_inverse` also, for each element of `input`, where its value is in the result; with `return_counts` also
    how often each occurs. One tensor, or a tuple of what was asked for.
    """
    if dim is None:
        found = _C._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _C.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _shortened(*found, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Drops each element that equals the one before it (slices along `dim` if given); results as of unique()."""
    found = _C._unique_consecutive(input, return_inverse, return_counts, dim)
    return _shortened(*found, return_inverse, return_counts)


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many of the points (*, D) lie in each bin of a D-dimensional histogram, or the sums of their weights.

    `bins`: a number for all dimensions, one for each (then equal bins over `range`, two numbers for each dimension, or
    from the least to the greatest coordinate), or a tensor of edges for each. Returns (hist, bin_edges).
    """
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    if bins and isinstance(bins[0], _C.Tensor):
        edges = tuple(bins)
    else:
        edges = tuple(_C._histogramdd_bin_edges(input, bins, range=range))
    hist = _C._histogramdd_from_bin_tensors(input, edges, weight=weight, density=density)
    return _Histogramdd(hist, edges)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of `obj`, over the same memory where that is possible.

    obj: a tensor, NumPy array or scalar, object with ``__dlpack__`` or the buffer protocol, number or sequence.
    copy: True always copies; False never does, and raises ValueError where it would be needed; None copies if needed.
    requires_grad: makes the result require grad; a tensor that does keeps its history.
    """
    if isinstance(obj, Tensor):
        source = obj
    elif type(obj).__module__ == "numpy" and hasattr(obj, "__array_interface__"):
        source = _C.from_numpy(obj) if hasattr(obj, "setflags") and obj.ndim else _C.tensor(obj)
        if copy is False and not obj.ndim:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
    elif hasattr(obj, "__dlpack__"):
        source = _C.from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__name__ == "array":
        source = _C.frombuffer(obj, dtype=dtype or _C.get_default_dtype())
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        return _C.tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    result = source.to(device=device or source.device, dtype=dtype or source.dtype)
    if copy is False and result.data_ptr() != source.data_ptr():
        raise ValueError(f"can't alias a tensor of {source.dtype} on {source.device} as one of {dtype} on {device}")
    if copy and result.data_ptr() == source.data_ptr():
        result = result.clone()
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


def _slope(f, spacing, dim, edge_order):
    """The derivative of f along a dimension, whose points are `spacing` apart or at the coordinates `spacing`."""
    n = f.shape[dim]
    at = lambda start, length: f.narrow(dim, start, length)  # noqa: E731
    if isinstance(spacing, Tensor):
        steps = _C.diff(spacing).reshape([-1 if d == dim else 1 for d in range(f.dim())])
        left, right = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
        both = left + right
        middle = -right / (left * both) * at(0, n - 2) + (right - left) / (left * right) * at(1, n - 2)
        middle = middle + left / (right * both) * at(2, n - 2)
        step = lambda k: steps.narrow(dim, k, 1) if 0 <= k < n - 1 else None  # noqa: E731
        ends = [(step(0), step(1)), (step(n - 2), step(n - 3))]
    else:
        middle = (at(2, n - 2) - at(0, n - 2)) / (2 * spacing)
        ends = [(spacing, spacing)] * 2
    edges = []
    for (near, far), sign, points in zip(ends, (1, -1), ((0, 1, 2), (n - 1, n - 2, n - 3))):
        a, b = at(points[0], 1), at(points[1], 1)
        if edge_order == 1:
            edges.append(sign * (b - a) / near)
        else:
            c, both = at(points[2], 1), near + far
            edges.append(
                sign * (-(2 * near + far) / (near * both) * a + both / (near * far) * b - near / (far * both) * c)
            )
    return _C.cat([edges[0], middle, edges[1]], dim)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The derivatives of sampled values by central differences, one tensor for each dimension in `dim` (all if None).

    `spacing` is the distance of neighbours, one for each dimension, or a list of 1-d tensors with their coordinates.
    At the ends, one-sided differences of first or second order. RuntimeError where a dimension has too few points.
    """
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [d + input.dim() if d < 0 else d for d in dims]
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"torch.gradient: a dimension appears multiple times in dim={dim}")
    many = isinstance(spacing, (list, tuple))
    spacings = list(spacing) if many else [1 if spacing is None else spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(dims)}, got {len(spacings)}"
        )
    for d, s in zip(dims, spacings):
        if not 0 <= d < input.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {d})"
            )
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1 ({edge_order + 1}), "
                f"got {input.shape[d]} at dimension {d}"
            )
        if isinstance(s, Tensor) and s.dim() == 1 and s.shape[0] != input.shape[d]:
            raise RuntimeError(
                f"torch.gradient expected {input.shape[d]} coordinates for dimension {d}, got {s.shape[0]}"
            )
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(_C.get_default_dtype())
    plain = [s.item() if isinstance(s, Tensor) and s.dim() == 0 else s for s in spacings]
    return tuple(_slope(input, s, d, edge_order) for d, s in zip(dims, plain))


def compile(model=None, **_):
    """Raises NotImplementedError: torch.compile comes with the JIT."""
    raise NotImplementedError("torch.compile is not available yet: it comes with the JIT. Eager code runs as it is")


def to_dlpack(tensor):
    """A DLPack capsule over a tensor's memory."""
    return tensor.__dlpack__()


# ---- defaults ----


def get_default_device():
    """The device of new tensors that nothing else places."""
    before = _C._set_default_device(None)
    _C._set_default_device(before)
    return _C.device("cpu") if before is None else before


def set_default_device(device):
    """Sets the device of new tensors that nothing else places; None is the CPU."""
    _C._set_default_device(device)


def set_default_tensor_type(t):
    """Sets the default dtype by the name of a tensor type, "torch.DoubleTensor"."""
    from ._legacy import dtype_of

    _C.set_default_dtype(dtype_of(t))


def get_device_module(device=None):
    """The module of a device: torch.cuda for "cuda"."""
    import importlib

    kind = get_default_device().type if device is None else _C.device(device).type
    return importlib.import_module(f"rushlight.{kind}")


# ---- switches that are remembered ----

_state = {"deterministic": False, "warn_only": False, "precision": "highest", "warn_always": False}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Asks for operators whose results do not differ from run to run. All of this library's are so on the CPU."""
    _state.update(deterministic=bool(mode), warn_only=bool(mode) and warn_only)


def are_deterministic_algorithms_enabled():
    """Whether use_deterministic_algorithms(True) is on."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """Whether that is to warn only."""
    return _state["warn_only"]


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode):
    """use_deterministic_algorithms() by a word or number: "default" 0, "warn" 1, "error" 2."""
    mode = _DEBUG_MODES.index(debug_mode) if debug_mode in _DEBUG_MODES else debug_mode
    if not isinstance(mode, int):
        raise RuntimeError(f"invalid value of debug_mode, expected one of {_DEBUG_MODES}, but got {debug_mode!r}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode():
    """0, 1 or 2: see set_deterministic_debug_mode()."""
    return (1 if _state["warn_only"] else 2) if _state["deterministic"] else 0


def get_float32_matmul_precision():
    """How exact float32 matrix products are: "highest", "high" or "medium"."""
    return _state["precision"]


def set_float32_matmul_precision(precision):
    """Allows less exact float32 matrix products on GPUs, in TensorFloat-32; the CPU always computes in float32."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision!r} is not one of 'highest', 'high' and 'medium'")
    _state["precision"] = precision
    _C._cuda.set_products_in_tf32(precision != "highest")


def set_warn_always(b):
    """Whether warnings that come once are to come always."""
    _state["warn_always"] = bool(b)


def is_warn_always_enabled():
    """What set_warn_always() set."""
    return _state["warn_always"]


def get_num_interop_threads():
    """Threads that run independent operators side by side: 1, since operators are split over threads instead."""
    return 1


def set_num_interop_threads(n):
    """Accepted where n > 0; see get_num_interop_threads()."""
    if n <= 0:
        raise RuntimeError(f"expected a positive number of threads, got {n}")


def compiled_with_cxx11_abi():
    """Whether std::string has the C++11 layout: always."""
    return True


def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on: it is not available yet."""
    return False


def is_autocast_cpu_enabled():
    """Whether autocast is on for the CPU: it is not available yet."""
    return False


def is_autocast_cache_enabled():
    """Whether autocast keeps casts of parameters."""
    return True


def get_autocast_dtype(device_type):
    """The dtype that autocast would cast to on a device."""
    return _C.bfloat16 if device_type == "cpu" else _C.float16


def einsum(*args):
    """Sums of products in Einstein's notation: ``einsum("bij,bjk->bik", a, b)``.

    Each letter names a dimension; letters missing from the result are summed over, "..." stands for any dimensions, which
    broadcast. Subscripts may also be lists of numbers below 52 after each operand: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    elif not isinstance(args[0], Tensor) or not all(isinstance(x, (list, tuple)) for x in args[1::2]):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(args[0]).__name__}")
    else:
        operands = args[: len(args) // 2 * 2 : 2]
        parts = [_subscripts(part) for part in args[1::2]]
        equation = ",".join(parts) + ("->" + _subscripts(args[-1]) if len(args) % 2 else "")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _C._einsum(equation, list(operands))


def _subscripts(numbers):
    """The letters of a list of subscripts."""
    text = ""
    for n in numbers:
        if n is Ellipsis:
            text += "..."
        elif 0 <= n < 52:
            text += chr(n + 65) if n < 26 else chr(n + 71)
        else:
            raise ValueError(f"einsum(): subscripts in subscripts list are not within the valid range [0, 52), got {n}")
    return text


def tensordot(a, b, dims=2, out=None):
    """Sums products over pairs of dimensions of `a` and `b`.

    `dims` is a pair of lists of dimensions, or a number n: the last n dimensions of `a` and the first n of `b`.
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        first, second = dims
        first = [first] if isinstance(first, int) else list(first)
        second = [second] if isinstance(second, int) else list(second)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(-dims, 0)), list(range(dims))
    return _C._tensordot(a, b, first, second) if out is None else _C._tensordot(a, b, first, second, out=out)


def chain_matmul(*matrices, out=None):
    """The product of matrices in the order that needs the fewest multiplications: torch.linalg.multi_dot of a list."""
    if len(matrices) == 1:
        if isinstance(matrices[0], (list, tuple)):
            return chain_matmul(*matrices[0], out=out)
        return matrices[0]
    return _C.linalg_multi_dot(matrices) if out is None else _C.linalg_multi_dot(matrices, out=out)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances by the p-norm between all rows of `x1` (..., m, k) and of `x2` (..., n, k): (..., m, n).

    `compute_mode` is accepted for compatibility; distances are always computed from differences.
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _C._cdist(x1, x2, p)


def svd_lowrank(A, q=6, niter=2, M=None):
    """Nearly the first q singular values S and vectors U, V of A (*, m, n), or of A - M: ``A ~ U @ diag(S) @ V.mH``.

    The range of A is found from q random vectors by niter rounds of subspace iteration. For large matrices of low rank; of
    small ones ``linalg.svd`` gives the exact values in less time.
    Returns: U (*, m, k), S (*, k) and V (*, n, k), where k is q but at most m and n.
    Source: Halko, Martinsson and Tropp 2011, arXiv:0909.4061, algorithms 4.4 and 5.1.
    """
    if A.dim() < 2:
        raise ValueError(f"svd_lowrank(): expected a matrix or a batch of them, got a tensor of shape {tuple(A.shape)}")
    if M is not None:
        A = A - M
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A = A.mH
    basis, _ = _C.linalg_qr(A @ _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))
    for _ in range(niter):
        basis, _ = _C.linalg_qr(A.mH @ basis)
        basis, _ = _C.linalg_qr(A @ basis)
    U, S, Vh = _C.linalg_svd(basis.mH @ A, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """The first q principal directions of the rows of A (*, m, n), by `svd_lowrank` of A less its columns' means.

    The columns of V are the directions; ``A @ V[..., :k]`` projects onto the first k, and S ** 2 / (m - 1) are the variances.
    Args:
        q: how many; the default is 6, or as many as there are.
        center: False takes A as it is.
    Returns: U, S and V as `svd_lowrank` does. Errors: ValueError for q or niter out of range.
    """
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def lu(A, pivot=True, get_infos=False, out=None):
    """The LU factors of matrices in one matrix and their pivots; with `get_infos` also which have a zero on U's diagonal."""
    found = _C.linalg_lu_factor_ex(A, pivot=pivot)
    result = found if get_infos else tuple(found)[:2]
    if out is None:
        return result
    for target, value in zip(out, result):
        target.resize_(value.shape).copy_(value)
    return out
