"""What of Tensor is written in Python: how it is copied, pickled and formatted, and a few methods over operators."""

from __future__ import annotations

from . import _C
from ._C import Tensor


def functions():
    """Functions of the package that are Python over operators, by name; loaded with the first of them."""
    import importlib

    return vars(importlib.import_module("rushlight._functions"))  # `from . import` would ask the package for the name


def _convert(result, cls):
    """Tensors in a nested result as objects of `cls`."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        return (
            type(result)(items)
            if type(result) in (tuple, list) or hasattr(type(result), "n_fields")
            else type(result)(*items)
        )
    return result


@classmethod
def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Runs an operator as on plain tensors and returns its results as objects of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    before = _C._set_torch_function_enabled(False)
    try:
        result = func(*args, **(kwargs or {}))
    finally:
        _C._set_torch_function_enabled(before)
    return _convert(result, cls)


def _copied(x, memo):
    """The tensor over a copy of its whole storage, one for all tensors over it, so that copies of views share memory."""
    storage = _C._storage_bytes(x)
    if x.device.type != "cpu" or storage.numel() % x.element_size():
        return x.clone()
    place = ("storage", _C._storage_identity(x))
    if place not in memo:
        memo[place] = storage.clone(), storage  # the original as well: its address must not come up again
    return memo[place][0].view(x.dtype).as_strided(x.shape, x.stride(), x.storage_offset()).detach()


def __deepcopy__(self, memo):
    """A copy with memory of its own, of the same class with the same attributes. Only leaves can be copied so."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy

    with_grad = self.requires_grad
    data = _copied(self.detach(), memo)
    copied = data if type(self) is Tensor else Tensor._make_subclass(type(self), data, False)
    if with_grad:
        copied.requires_grad_()
    memo[id(self)] = copied
    if self.grad is not None:
        copied.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        setattr(copied, name, copy.deepcopy(value, memo))
    return copied


def __reduce_ex__(self, protocol):
    """Pickles as a window on its storage, without history; tensors that share a storage share it after loading too."""
    storage = None if self.is_meta else untyped_storage(self)
    window = tuple(self.shape), self.stride(), self.storage_offset()
    return _rebuild, (type(self), storage, self.dtype, *window, self.requires_grad, dict(self.__dict__))


def _rebuild(cls, storage, dtype, shape, stride, offset, requires_grad, state):
    if storage is None:
        data = _C.empty_strided(shape, stride, dtype=dtype, device="meta")
    else:
        data = _C._over_storage(_elements(storage, dtype), shape, stride, offset)
    if cls is not Tensor:
        data = Tensor._make_subclass(cls, data, False)
    if requires_grad:
        data.requires_grad_()
    for name, value in state.items():
        setattr(data, name, value)
    return data


def _elements(storage, dtype):
    """All whole elements of `dtype` in a storage."""
    memory = storage._bytes
    return memory[: memory.numel() // dtype.itemsize * dtype.itemsize].view(dtype)


def __array__(self, dtype=None, copy=None):
    """What numpy.asarray() asks for."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def __array_wrap__(self, array, context=None, return_scalar=False):
    """Makes a tensor of what a NumPy function computed from tensors; of bool elements it has dtype uint8."""
    return _C.from_numpy(array.astype("uint8") if array.dtype == bool else array)


def __format__(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def __complex__(self):
    return complex(self.item())


def __contains__(self, element):
    """Whether any element equals `element`, a number or a tensor."""
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


def __dir__(self):
    return sorted({*dir(type(self)), *self.__dict__})


def _type(self, dtype=None, non_blocking=False, **_):
    """The name of its type, "torch.FloatTensor"; given a dtype or such a name, the tensor as that."""
    from . import _legacy

    return _legacy.type_name(self) if dtype is None else self.to(_legacy.dtype_of(dtype))


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **_):
    """torch.tensor(data) with this tensor's dtype and device where none are given."""
    dtype, device = dtype or self.dtype, device or self.device
    if isinstance(data, Tensor):
        return data.detach().to(device=device, dtype=dtype, copy=True).requires_grad_(requires_grad)
    return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def new(self, *args, device=None):
    """A tensor of this dtype and device: of the given sizes, or from data."""
    if not args or all(isinstance(size, int) for size in args):
        return _C.empty(args or (0,), dtype=self.dtype, device=device or self.device)
    if isinstance(args[0], _C.Size):
        return _C.empty(args[0], dtype=self.dtype, device=device or self.device)
    return new_tensor(self, args[0], device=device)


def nonzero(self, *, as_tuple=False):
    """The indices of elements that are not zero, (n, ndim); or one 1-d tensor a dimension."""
    return _C.nonzero_numpy(self) if as_tuple else _C.nonzero(self)


def where(self, condition, other):
    """self where `condition` is true, else `other`."""
    return _C.where(condition, self, other)


def lu(self, pivot=True, get_infos=False):
    """See torch.lu()."""
    return functions()["lu"](self, pivot, get_infos)


def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """See torch.unique()."""
    return functions()["unique"](self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """See torch.unique_consecutive()."""
    return functions()["unique_consecutive"](self, return_inverse, return_counts, dim)


def untyped_storage(self):
    """The bytes under this tensor, which its views share."""
    from . import storage

    return storage.of(self)


def storage(self):
    """The elements under this tensor, which its views share."""
    from . import storage

    return storage.TypedStorage(wrap_storage=storage.of(self), dtype=self.dtype)


def is_set_to(self, tensor):
    """Whether both are the same window on the same memory."""
    return (
        _C._storage_identity(self) == _C._storage_identity(tensor)
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def is_shared(self):
    """Whether other processes see the memory: they do not."""
    return False


def share_memory_(self):
    """Raises NotImplementedError: memory is a process's own."""
    raise NotImplementedError("share_memory_: memory shared between processes is not available")


def record_stream(self, stream):
    """Says that work on another stream uses this tensor: its memory is not given out again before that is done."""
    _C._cuda.record_stream(self, stream)


def apply_(self, callable):
    """Replaces each element x by callable(x): one Python call an element. CPU only."""
    if not self.is_cpu:
        raise TypeError("apply_ is only implemented on CPU tensors")
    values = [callable(value) for value in self.detach().reshape(-1).tolist()]
    self.data.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))
    return self


def map_(self, tensor, callable):
    """Replaces each element x by callable(x, y), where y is the element of `tensor`, which is expanded."""
    if not self.is_cpu or not tensor.is_cpu:
        raise TypeError("map_ is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError("Can't call map_() on Variable that requires grad. Use var.detach().map_() instead.")
    pairs = zip(self.reshape(-1).tolist(), tensor.detach().expand(self.shape).reshape(-1).tolist())
    return self.copy_(_C.tensor([callable(x, y) for x, y in pairs], dtype=self.dtype).reshape(self.shape))


def detach_(self):
    """Cuts the history off in place: the tensor becomes a leaf that requires no gradient. Returns self."""
    if self._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    _C._drop_history(self)
    return self


def fill_diagonal_(self, fill_value, wrap=False):
    """Writes a number on the diagonal of a matrix, or where all indices are equal in a tensor of equal sizes.

    With `wrap` the diagonal of a tall matrix starts again below its end, a row left out between. Returns self.
    """
    if self.dim() < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must be larger than 1, but got {self.dim()}")
    rows, columns = self.shape[:2]
    if self.dim() > 2 and len(set(self.shape)) != 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length, got {tuple(self.shape)}")
    step = sum(self.stride())
    if wrap and self.dim() == 2:
        for first in range(0, rows, columns + 1):
            self[first:].diagonal().fill_(fill_value)
    elif self.numel():
        self.as_strided((min(rows, columns),), (step,), self.storage_offset()).fill_(fill_value)
    return self


def polygamma(self, n):
    """The n-th derivative of the digamma function; see torch.polygamma()."""
    return _C.polygamma(n, self)


def polygamma_(self, n):
    """polygamma() in place."""
    return self.copy_(_C.polygamma(n, self))


def dim_order(self, ambiguity_check=False):
    """Dimensions from the outermost in memory to the innermost."""
    return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))


def module_load(self, other, assign=False):
    """What load_state_dict puts in this tensor's place, made from the tensor in the state dict."""
    return other.detach() if assign else self.copy_(other)


def _install():
    names = (
        "__torch_function__", "__deepcopy__", "__reduce_ex__", "__array__", "__array_wrap__", "__format__", "__complex__", "__contains__",
        "__reversed__", "__dir__", "apply_", "detach_", "dim_order", "fill_diagonal_", "is_set_to", "is_shared", "lu", "map_",
        "module_load", "new", "new_tensor", "nonzero", "polygamma", "polygamma_", "record_stream", "share_memory_", "storage",
        "unique", "unique_consecutive", "untyped_storage", "where",
    )  # fmt: skip
    for name in names:
        setattr(Tensor, name, globals()[name])
    Tensor.__rdiv__, Tensor.__div__, Tensor.__idiv__ = Tensor.__rtruediv__, Tensor.__truediv__, Tensor.__itruediv__
    Tensor.__array_priority__ = 1000
    Tensor.type = _type
    _type.__name__ = "type"
    Tensor.name = property(lambda self: None, doc="None: tensors have no names.")
    for backend in ("xla", "xpu", "mps", "ipu", "hpu", "mtia", "vulkan", "maia"):
        setattr(Tensor, f"is_{backend}", False)


_install()
