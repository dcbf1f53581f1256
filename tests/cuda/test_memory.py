"""The caching allocator: what it counts, what it keeps, and what it says when there is no more."""

import pytest

import rushlight as torch

MB = 1 << 20


@pytest.fixture(autouse=True)
def fresh():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0


def space(bytes, device="cuda"):
    return torch.empty(bytes, dtype=torch.uint8, device=device)


@pytest.mark.parametrize(
    "asked, allocated, reserved",
    [(0, 0, 0), (1, 512, 2 * MB), (513, 1024, 2 * MB), (MB, MB, 2 * MB), (MB + 1, MB + 512, 20 * MB),
     (9 * MB, 9 * MB, 20 * MB), (10 * MB, 10 * MB, 10 * MB), (31 * MB + 5, 32 * MB, 32 * MB)],
)  # fmt: skip
def test_sizes(asked, allocated, reserved):
    x = space(asked)
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (allocated, reserved)
    del x
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (0, reserved)
    assert torch.cuda.max_memory_allocated() == allocated and torch.cuda.max_memory_reserved() == reserved
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def test_memory_is_used_again():
    x = space(3 * MB)
    address = x.data_ptr()
    del x
    x = space(3 * MB)
    assert x.data_ptr() == address
    parts = [space(3 * MB) for _ in range(5)]
    assert torch.cuda.memory_reserved() == 20 * MB
    addresses = [p.data_ptr() for p in parts]
    del parts[1:4]
    joined = space(9 * MB)  # where three neighbours were
    assert joined.data_ptr() == addresses[1]


def test_each_stream_has_memory_of_its_own():
    side = torch.cuda.Stream()
    x = space(100)
    address = x.data_ptr()
    del x
    with torch.cuda.stream(side):
        assert space(100).data_ptr() != address
    assert space(100).data_ptr() == address


def test_record_stream_holds_memory_back():
    side = torch.cuda.Stream()
    x = space(100)
    address = x.data_ptr()
    x.record_stream(side)
    del x
    torch.cuda.synchronize()
    assert space(100).data_ptr() == address  # the other stream was done


def test_statistics():
    a, b = space(100), space(2 * MB)
    del a
    stats = torch.cuda.memory_stats()
    assert stats["allocation.all.current"] == 1 and stats["allocation.all.peak"] == 2
    assert stats["allocation.small_pool.freed"] == 1 and stats["allocated_bytes.large_pool.current"] == 2 * MB
    assert stats["requested_bytes.all.allocated"] == 100 + 2 * MB and stats["segment.all.current"] == 2
    assert stats["inactive_split.large_pool.current"] == 1
    assert stats["inactive_split_bytes.large_pool.current"] == 18 * MB
    assert stats["num_ooms"] == 0 and stats["num_device_alloc"] == 2
    assert torch.cuda.memory_stats_as_nested_dict()["active"]["large_pool"]["current"] == 1
    assert b.numel() == 2 * MB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 2 * MB
    assert "GPU reserved memory" in torch.cuda.memory_summary() and "small" not in torch.cuda.memory_summary(
        abbreviated=True
    )


def test_devices_count_apart():
    x = space(5 * MB, "cuda:1")
    assert torch.cuda.memory_allocated() == 0 and torch.cuda.memory_allocated(1) == x.numel()
    free, total = torch.cuda.mem_get_info("cuda:1")
    assert total == torch.cuda.get_device_properties(1).total_memory
    assert free == total - torch.cuda.memory_reserved(x.device)


def readable(bytes):
    return f"{bytes / MB:.2f} MiB" if bytes < 1024 * MB else f"{bytes / MB / 1024:.2f} GiB"


def test_out_of_memory():
    free, total = torch.cuda.mem_get_info()
    share = free // (50 * MB) * 2 * MB  # a 25th, in the allocator's steps
    held = [space(5 * share) for _ in range(4)]
    pattern = (
        rf"CUDA out of memory. Tried to allocate {readable(8 * share)}. GPU 0 has a total capacity of {readable(total)} of "
        rf"which {readable(free - 20 * share)} is free. .*Of the allocated memory {readable(20 * share)} is allocated by "
        rf"tensors, and 0 bytes .*largest tensors: {readable(5 * share)}"
    )
    with pytest.raises(torch.OutOfMemoryError, match=pattern):
        space(8 * share)
    assert torch.cuda.memory_stats()["num_ooms"] == 1 and issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    del held[2:]
    assert torch.cuda.memory_reserved() == 20 * share
    big = space(8 * share)  # what was cached is given back for it
    assert torch.cuda.memory_reserved() == 18 * share and torch.cuda.memory_stats()["num_alloc_retries"] >= 1
    assert big.numel() == 8 * share


def test_fraction():
    fraction = 64 * MB / torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(fraction)
    try:
        assert torch.cuda.get_per_process_memory_fraction() == fraction
        with pytest.raises(torch.OutOfMemoryError, match="64.00 MiB allowed"):
            space(65 * MB)
        space(60 * MB)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match="Invalid fraction"):
        torch.cuda.set_per_process_memory_fraction(1.5)
