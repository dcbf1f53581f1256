"""A tensor's memory as an object: UntypedStorage counts bytes, TypedStorage elements of a dtype."""

import weakref

from . import _C

__all__ = ["TypedStorage", "UntypedStorage"]


def _bytes_of(source, device):
    if isinstance(source, int):
        return _C.empty(source, dtype=_C.uint8, device=device)
    return _C.tensor(list(source), dtype=_C.uint8, device=device)


class UntypedStorage:
    """The bytes that tensors share. `UntypedStorage(n)` is new memory; Tensor.untyped_storage() is a tensor's.

    Reading and writing an element, a slice or everything (`tolist`, `fill_`, `copy_`) reads and writes the memory of
    every tensor over it. `resize_` changes the number of bytes and keeps the contents.
    """

    def __init__(self, source=0, *, device=None, _tensor=None):
        self._tensor = _bytes_of(source, device) if _tensor is None else _tensor  # keeps the memory alive

    @property
    def _bytes(self):
        return _C._storage_bytes(self._tensor)

    @property
    def device(self):
        """Where the memory lies."""
        return self._tensor.device

    @property
    def is_cuda(self):
        """Whether it is memory of a GPU."""
        return self._tensor.is_cuda

    @property
    def _cdata(self):
        return _C._storage_identity(self._tensor)

    def data_ptr(self):
        """The address of the first byte."""
        return self._bytes.data_ptr()

    def nbytes(self):
        """The number of bytes."""
        return self._bytes.numel()

    size = __len__ = nbytes

    def element_size(self):
        """1: a byte."""
        return 1

    def resize_(self, size):
        """Makes it `size` bytes long; what is there stays. RuntimeError unless it is `resizable`."""
        _C._resize_storage(self._tensor, size)
        return self

    def resizable(self):
        """Whether resize_ may be called: not on memory that another library owns or was shown, as by numpy()."""
        return _C._storage_resizable(self._tensor)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return UntypedStorage(_tensor=self._bytes[index].clone())
        return self._bytes[index].item()

    def __setitem__(self, index, value):
        self._bytes[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self):
        return hash(self._cdata)

    def tolist(self):
        """The bytes as ints."""
        return self._bytes.tolist()

    def fill_(self, value):
        """Sets every byte."""
        self._bytes.fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        """Takes over the bytes of a storage of the same size."""
        self._bytes.copy_(source._bytes)
        return self

    def clone(self):
        """New memory with the same contents."""
        return UntypedStorage(_tensor=self._bytes.clone())

    def cpu(self):
        """This storage if it is on the CPU, else a copy that is."""
        return self if self._tensor.is_cpu else UntypedStorage(_tensor=self._bytes.cpu())

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self):
        return _rebuild, (_C._storage_dump(self._bytes.cpu()), str(self.device))

    def untyped(self):
        """Itself."""
        return self

    def is_shared(self):
        """Whether other processes see the memory: it never is."""
        return False

    def is_pinned(self, device="cuda"):
        """Whether the memory is page-locked."""
        return self._tensor.is_pinned()

    def share_memory_(self):
        """Raises: memory of a tensor is this process's own."""
        raise NotImplementedError("share_memory_: memory shared between processes is not available")

    def __repr__(self):
        lines = "".join(f" {byte}\n" for byte in self.tolist())
        return f"{lines}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def _rebuild(data, device="cpu"):
    size = len(data)
    here = _C.frombuffer(data, dtype=_C.uint8).clone() if size else _C.empty(0, dtype=_C.uint8)
    return UntypedStorage(_tensor=here.to(device))


class TypedStorage:
    """A storage seen as elements of one dtype; Tensor.storage() gives a tensor's."""

    def __init__(self, source=0, *, dtype=None, device=None, wrap_storage=None):
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        else:
            make = _C.empty if isinstance(source, int) else _C.tensor
            self._untyped_storage = UntypedStorage(_tensor=make(source, dtype=self.dtype, device=device))

    @property
    def _elements(self):
        return self._untyped_storage._bytes.view(self.dtype)

    @property
    def device(self):
        """Where the memory lies."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """Whether it is memory of a GPU."""
        return self._untyped_storage.is_cuda

    def untyped(self):
        """The same memory as bytes."""
        return self._untyped_storage

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def nbytes(self):
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    def size(self):
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def resize_(self, size):
        """Makes it `size` elements long; what is there stays."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements[index].item()

    def __setitem__(self, index, value):
        self._elements[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """The elements as numbers."""
        return self._elements.tolist()

    def fill_(self, value):
        """Sets every element."""
        self._elements.fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        """Takes over the elements of a storage of the same size."""
        self._elements.copy_(source._elements)
        return self

    def clone(self):
        """New memory with the same contents."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self):
        """This storage if it is on the CPU, else a copy that is."""
        return self if not self.is_cuda else TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def is_shared(self):
        """Whether other processes see the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        """Raises: memory of a tensor is this process's own."""
        self._untyped_storage.share_memory_()

    def __repr__(self):
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


_shown = weakref.WeakValueDictionary()  # by identity: tensors that share memory have the same object for it


def of(tensor):
    """The bytes under a tensor."""
    identity = _C._storage_identity(tensor)
    storage = _shown.get(identity)
    if storage is None:
        storage = _shown[identity] = UntypedStorage(_tensor=tensor.detach())
    return storage
