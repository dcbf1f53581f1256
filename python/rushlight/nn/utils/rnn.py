"""Sequences of different lengths as one tensor: padded, and packed without the padding."""

from __future__ import annotations

from collections import namedtuple

import rushlight as torch

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]

_Fields = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Sequences sorted by falling length and laid out time step by time step, as ``pack_padded_sequence`` makes it.

    Fields: `data` (total length, *); `batch_sizes`, an int64 tensor on the CPU: how many sequences reach each time step;
    `sorted_indices`: which sequence comes where, and `unsorted_indices`: the reverse; both None where they were sorted.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # an older form: one pair
            if not isinstance(data, (tuple, list)) or len(data) != 2:
                raise AssertionError("Expected data to be a tuple/list of length 2 when batch_sizes is None")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
                f"should be instantiated by functions like pack_sequence and pack_padded_sequences. Got {batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """Moves or casts `data`, and moves the indices with it."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self

        def follow(indices):
            return None if indices is None else indices.to(data.device)

        return type(self)(data, self.batch_sizes, follow(self.sorted_indices), follow(self.unsorted_indices))

    def cuda(self, device=None):
        """Moves to a GPU, the current one by default."""
        return self.to("cuda" if device is None else device)

    def cpu(self):
        """Moves to the CPU."""
        return self.to("cpu")

    def pin_memory(self):
        """Copies `data` into page-locked memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self):
        """Casts `data` to float64."""
        return self.to(dtype=torch.float64)

    def float(self):
        """Casts `data` to float32."""
        return self.to(dtype=torch.float32)

    def half(self):
        """Casts `data` to float16."""
        return self.to(dtype=torch.float16)

    def long(self):
        """Casts `data` to int64."""
        return self.to(dtype=torch.int64)

    def int(self):
        """Casts `data` to int32."""
        return self.to(dtype=torch.int32)

    def short(self):
        """Casts `data` to int16."""
        return self.to(dtype=torch.int16)

    def char(self):
        """Casts `data` to int8."""
        return self.to(dtype=torch.int8)

    def byte(self):
        """Casts `data` to uint8."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self):
        """Whether `data` is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether `data` is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes a permutation (an integer tensor); None for None."""
    if permutation is None:
        return None
    places = torch.arange(0, permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return torch.empty_like(permutation).scatter_(0, permutation, places)


def _reached(lengths, steps, device):
    """A boolean (steps, N): which sequence reaches which time step."""
    return (torch.arange(steps).unsqueeze(1) < lengths.unsqueeze(0)).to(device)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs padded sequences.

    Arguments:
        input: (T, N, *), or (N, T, *) with `batch_first`.
        lengths: of each sequence: a list, or a tensor on the CPU.
        enforce_sorted: whether they must already be sorted by falling length; else they are sorted here.

    Errors: RuntimeError for lengths that are not positive, not sorted, or not as many as there are sequences.
    """
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.tensor(lengths, dtype=torch.int64)
    if lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} tensor"
        )
    lengths = lengths.to(torch.int64)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if enforce_sorted:
        order = None
    else:
        lengths, order = torch.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    if lengths.dim() != 1 or lengths.numel() != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={input.size(1)})"
        )
    if int(lengths.min()) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )
    steps = int(lengths[0])
    if steps > input.size(0):
        raise RuntimeError(f"Expected lengths of at most {input.size(0)}, but got {steps}")
    reached = _reached(lengths, steps, "cpu")
    data = input[:steps][reached.to(input.device)]
    return PackedSequence(data, reached.sum(1), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded sequences (T, N, *), or (N, T, *) with `batch_first`, and their lengths; the reverse of packing.

    `total_length`: the T to pad to; ValueError where it is less than the longest sequence.
    """
    data, batch_sizes, _, unsorted = sequence
    longest = batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps = longest if total_length is None else total_length
    batch = int(batch_sizes[0])
    reached = torch.arange(batch).unsqueeze(0) < batch_sizes.unsqueeze(1)
    lengths = reached.sum(0)
    padded = data.new_full((longest, batch, *data.shape[1:]), padding_value)
    padded[reached.to(data.device)] = data
    if steps > longest:
        padded = torch.cat([padded, data.new_full((steps - longest, batch, *data.shape[1:]), padding_value)])
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted)
        lengths = lengths[unsorted.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stacks sequences (L_i, *) with padding to the longest: (T, N, *), or (N, T, *) with `batch_first`.

    `padding_side`: "right" pads at the end, "left" at the start.
    """
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(sequence.size(0) for sequence in sequences)
    first = sequences[0]
    padded = first.new_full((len(sequences), longest, *first.shape[1:]), padding_value)
    for row, sequence in enumerate(sequences):
        length = sequence.size(0)
        start = 0 if padding_side == "right" else longest - length
        padded[row, start : start + length] = sequence
    return padded if batch_first else padded.transpose(0, 1).contiguous()


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences without their padding, as a list; the reverse of ``pad_sequence``."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences (L_i, *)."""
    lengths = torch.tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
