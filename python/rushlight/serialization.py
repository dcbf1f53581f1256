"""``save`` and ``load``: PyTorch's ``.pt`` files, each reading what the other wrote."""

import io
import os
import pickle
import pickletools
from collections import OrderedDict

import rushlight as torch

from . import _C, _utils

__all__ = ["load", "save"]


def save(obj, f, pickle_module=pickle, pickle_protocol=2, _use_new_zipfile_serialization=True):
    """Saves an object to a file that PyTorch reads as well.

    Tensors that share memory share it in the file and when they are loaded. A named file appears as a whole when all is
    written, or not at all.

    Args:
        obj: tensors, containers of them, ``state_dict()``; also whole modules and any object that pickle takes, which can then
            only be loaded with ``weights_only=False``.
        f: a path, or an object with ``write``.
        pickle_module, pickle_protocol: only Python's own module and protocol 2, which every PyTorch reads.

    Raises ValueError for another protocol or for the format that PyTorch wrote before 1.6, RuntimeError where the file cannot
    be written, and pickle's errors for objects that cannot be pickled.
    """
    if pickle_module is not pickle or pickle_protocol != 2:
        raise ValueError("save: only Python's pickle module with protocol 2 is supported")
    if not _use_new_zipfile_serialization:
        raise ValueError("save: the format from before PyTorch 1.6 is only read, not written")
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=2)
    pickler.dump(obj)
    data = _rename(stream.getvalue())
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        name = os.path.splitext(os.path.basename(path))[0]
        _C._write_archive(path, name, data, pickler.storages)
    elif hasattr(f, "write"):
        _C._write_archive(f.write, "archive", data, pickler.storages)
    else:
        raise AttributeError(f"save: expected a path or an object with write(), got {type(f).__name__}")


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """Loads what ``save``, or PyTorch, saved.

    Args:
        f: a path, or an object with ``read``.
        map_location: where tensors go: a device or its name for all; a dict from the places they were saved from; a function of
            a storage (given as a flat uint8 tensor) and the place it was saved from, which returns it moved, or None. Without it,
            tensors go to the device they were saved from.
        weights_only: read data only: tensors, parameters, numbers, strings, bytes, containers, dtypes, devices, sizes. Nothing in
            the file is imported or called. With False, Python's pickle builds any object, **and a file can run any code**.
        mmap: tensors use the file's own pages, which are read when first touched; writing to them does not change the file.
            Needs a path.

    Raises FileNotFoundError, pickle.UnpicklingError for a file with more than data in it, and RuntimeError for one that is broken.
    """
    if weights_only is None:
        weights_only = True
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_module not in (None, pickle):
        raise ValueError("load: only Python's own pickle module is supported")
    if isinstance(f, (str, os.PathLike)):
        source = os.fspath(f)
        open(source, "rb").close()  # for the usual exceptions
    elif mmap:
        raise ValueError("f must be a file name in order to use the mmap argument")
    elif hasattr(f, "read"):
        source = f.read()
    else:
        raise AttributeError(f"load: expected a path or an object with read(), got {type(f).__name__}")
    place = _placer(map_location)
    try:
        return _C._load_archive(source, bool(mmap), place)
    except pickle.UnpicklingError:
        if weights_only:
            raise
    stream, storage = _C._open_archive(source, bool(mmap), place)
    return _Unpickler(stream, storage, **pickle_load_args).load()


def _placer(map_location):
    """The function of (storage, location) that ``map_location`` stands for."""
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        return lambda storage, location: _restore(storage, map_location.get(location, location))
    if callable(map_location):

        def place(storage, location):
            moved = map_location(storage, location)
            return _restore(storage, location) if moved is None else moved

        return place
    device = torch.device(map_location)
    return lambda storage, location: _restore(storage, device)


def _restore(storage, location):
    device = torch.device(location)
    if device.type == "cpu":
        return storage
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
            "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    return storage.to(device)


class _StorageId:
    """A storage on its way into a pickle, where it becomes a persistent id."""

    def __init__(self, pid):
        self.pid = pid


class _Pickler(pickle.Pickler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.storages = []  # a tensor of each, which also keeps its memory's address from being used again
        self._known = {}  # address: (key, dtype)

    def persistent_id(self, obj):
        return obj.pid if type(obj) is _StorageId else None

    def reducer_override(self, obj):
        if isinstance(obj, torch.Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, torch.Size):
            return torch.Size, (tuple(obj),)
        if isinstance(obj, torch.device):
            return torch.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, torch.dtype):
            return str(obj).removeprefix("torch.")
        return NotImplemented

    def _reduce_tensor(self, tensor):
        kind, attributes = type(tensor), dict(getattr(tensor, "__dict__", ()))
        if kind not in (torch.Tensor, torch.nn.Parameter) and kind.__reduce_ex__ is not torch.Tensor.__reduce_ex__:
            return NotImplemented
        if isinstance(tensor, torch.nn.Parameter):
            parts = (tensor.detach().as_subclass(torch.Tensor), tensor.requires_grad, OrderedDict())
            if attributes:
                return _utils._rebuild_parameter_with_state, (*parts, attributes)
            return _utils._rebuild_parameter, parts
        shape, strides = tuple(tensor.shape), tensor.stride()
        if tensor.is_meta:
            rebuild, parts = (
                _utils._rebuild_meta_tensor_no_storage,
                (tensor.dtype, shape, strides, tensor.requires_grad),
            )
        else:
            rebuild = _utils._rebuild_tensor_v2
            storage, offset = self._storage(tensor), tensor.storage_offset()
            parts = (storage, offset, shape, strides, tensor.requires_grad, OrderedDict())
        if kind is torch.Tensor and not attributes:
            return rebuild, parts
        return _utils._rebuild_from_type_v2, (rebuild, kind, parts, attributes)

    def _storage(self, tensor):
        dtype = str(tensor.dtype).removeprefix("torch.")
        address, size = _C._storage_of(tensor)
        key, known_dtype = self._known.setdefault(address, (str(len(self.storages)), dtype))
        if known_dtype != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{known_dtype} and {dtype}"
            )
        if int(key) == len(self.storages):
            self.storages.append(tensor)
        return _StorageId(("storage", _utils.STORAGE_OF[dtype], key, str(tensor.device), size // tensor.element_size()))


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream, storage, **kwargs):
        super().__init__(io.BytesIO(stream), **kwargs)
        self._storage = storage

    def find_class(self, module, name):
        if module == "torch" or module.startswith("torch."):
            if name in _utils.STORAGES:
                return _utils.STORAGES[name]
            if name == "_rebuild_from_type_v2":
                return _utils._rebuild_from_type_v2
            module = "rushlight" + module.removeprefix("torch")
        return super().find_class(module, name)

    def persistent_load(self, pid):
        kind, storage, key, location, numel = pid[:5]
        if kind != "storage":
            raise pickle.UnpicklingError(f"load: unknown persistent id {kind!r}")
        return self._storage(key, storage.dtype, location, numel)


def _rename(stream):
    """Gives rushlight's names in a pickle of protocol 2 PyTorch's names, so that PyTorch finds them under its own."""
    if b"crushlight" not in stream:
        return stream
    parts, done = [], 0
    for op, arg, position in pickletools.genops(stream):
        if op.name != "GLOBAL" or not arg.startswith("rushlight"):
            continue
        module, name = arg.split(" ")
        old = f"c{module}\n{name}\n"
        if module == "rushlight._utils" and name in _utils.STORAGES:
            module = "torch.storage" if name == "UntypedStorage" else "torch"
        elif name == "_rebuild_from_type_v2":
            module = "torch._tensor"
        else:
            module = "torch" + module.removeprefix("rushlight")
        parts += [stream[done:position], f"c{module}\n{name}\n".encode()]
        done = position + len(old.encode())
    return b"".join([*parts, stream[done:]])
