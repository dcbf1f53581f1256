"""Memory of CUDA devices: what tensors use, what the caching allocator holds."""

from collections import OrderedDict

from rushlight._C import _cuda

from ._device import index_of

_fractions = {}


def _stat(name, device):
    """One counter of a device; 0 where no device has been used, and none is then."""
    return _cuda.memory_stats(index_of(device))[name] if _cuda.started() else 0


def memory_allocated(device=None):
    """Bytes of device memory that tensors use."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device=None):
    """The most bytes that tensors have used since the start or `reset_peak_memory_stats`."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device=None):
    """Bytes that the allocator holds, in use or cached."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device=None):
    """The most bytes that the allocator has held since the start or `reset_peak_memory_stats`."""
    return _stat("reserved_bytes.all.peak", device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device=None):
    """The allocator's counters by name, such as "allocated_bytes.all.peak".

    For each of allocation, segment, active and inactive_split (numbers of blocks) and allocated_bytes, reserved_bytes,
    active_bytes, inactive_split_bytes and requested_bytes there are, for all, the small_pool and the large_pool, current,
    peak, allocated and freed. Besides: num_alloc_retries, num_ooms, num_device_alloc, num_device_free.
    """
    return OrderedDict(sorted(_cuda.memory_stats(index_of(device)).items())) if _cuda.started() else OrderedDict()


def memory_stats_as_nested_dict(device=None):
    """`memory_stats` as dicts in dicts."""
    nested = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


def memory_summary(device=None, abbreviated=False):
    """The allocator's counters as a table to print; `abbreviated` leaves out the two pools."""
    index = index_of(device)
    stats = _cuda.memory_stats(index)

    def bytes_text(value):
        unit = 0
        while value >= 10 * 1024 and unit < 4:
            value //= 1024
            unit += 1
        return f"{value} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"

    rows = [
        ("Allocated memory", "allocated_bytes", bytes_text),
        ("Active memory", "active_bytes", bytes_text),
        ("Requested memory", "requested_bytes", bytes_text),
        ("GPU reserved memory", "reserved_bytes", bytes_text),
        ("Non-releasable memory", "inactive_split_bytes", bytes_text),
        ("Allocations", "allocation", str),
        ("Active allocs", "active", str),
        ("GPU reserved segments", "segment", str),
        ("Non-releasable allocs", "inactive_split", str),
    ]
    rule = "|" + "=" * 75 + "|"
    lines = [
        rule,
        f"|{f' CUDA memory of device {index}':<75}|",
        f"|{' OOMs: ' + str(stats['num_ooms']):<37}|{' allocation retries: ' + str(stats['num_alloc_retries']):<37}|",
        rule,
        "| {:<21} | {:>10} | {:>10} | {:>10} | {:>10} |".format("", "Current", "Peak", "Allocated", "Freed"),
    ]
    for title, name, show in rows:
        lines.append("|" + "-" * 75 + "|")
        pools = (
            (("all", title),) if abbreviated else (("all", title), ("large_pool", "  large"), ("small_pool", "  small"))
        )
        for pool, label in pools:
            values = [show(stats[f"{name}.{pool}.{column}"]) for column in ("current", "peak", "allocated", "freed")]
            lines.append("| {:<21} | {:>10} | {:>10} | {:>10} | {:>10} |".format(label, *values))
    return "\n".join([*lines, rule, ""])


def reset_peak_memory_stats(device=None):
    """Starts the peaks over from what is in use now."""
    if _cuda.started():
        _cuda.reset_peak_memory_stats(index_of(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    """Starts the counters that only grow over from 0."""
    if _cuda.started():
        _cuda.reset_accumulated_memory_stats(index_of(device))


def mem_get_info(device=None):
    """Free and total bytes of a device, as the device counts them."""
    return _cuda.memory_info(index_of(device))


def empty_cache():
    """Gives memory that the allocator caches and nobody uses back to the devices."""
    _cuda.empty_cache()


def set_per_process_memory_fraction(fraction, device=None):
    """Bounds this process to a part of a device's memory, from 0 to 1; beyond it is out of memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    index = index_of(device)
    _cuda.set_memory_fraction(fraction, index)
    _fractions[index] = fraction


def get_per_process_memory_fraction(device=None):
    """The part of a device's memory that this process may use."""
    return _fractions.get(index_of(device), 1.0)
