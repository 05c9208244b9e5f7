"""memory-headroom: both sides of each limit, and the memory figures of trace and samples."""

import pytest

from tests.builders import line
from tests.rules.kit import *
from tfdoctor.rules.scale.memory_headroom import Limits, check


def example(
    allocator: Allocator | None = Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),
    host: HostMemory | Unavailable = HostMemory(64e9, 20e9),
    tuned: TunedBuffers | None = None,
) -> Verdict:
    """On a GPU, 15.4 of 15.5 GB are in use."""
    device = DeviceMemory((allocator,)) if allocator else Unavailable("no accelerator")
    return check(device, host, tuned)


sick = example


def healthy() -> Verdict:
    """The host's memory is a third full, and no task waits for memory."""
    return example(None, HostMemory(64e9, 20e9, stalled=0.0))


NONE = Unavailable("not there")


def host(share: float, stalled: float | None = 0.0) -> Verdict:
    return example(None, HostMemory(1e9, share * 1e9, stalled=stalled))


def test_a_device_that_is_nearly_full() -> None:
    """Trap: the peak of the whole run is at the limit in both cases, because cuDNN tries algorithms."""
    allocators = (Allocator("GPU_0_bfc", 1e9, used * 1e9, 1e9) for used in (Limits().device, 0.94))
    assert kinds(*(example(allocator, NONE) for allocator in allocators)) == [Finding, Healthy]


def test_a_host_that_is_nearly_full_or_waits_for_memory() -> None:
    assert kinds(host(Limits().host), host(0.94)) == [Finding, Healthy]
    assert kinds(host(0.5, Limits().stalled), host(0.5, 0.019)) == [Finding, Healthy]
    full, waiting = as_finding(host(0.99, None)), as_finding(host(0.5, 0.2))
    assert (full.severity, waiting.severity) == (Severity.NOTE, Severity.WARNING)


TUNED = TunedBuffers((dataset_of("Prefetch", at=Location("train.py", 22)),), largest_bytes=38_535_168)


def test_buffers_that_tf_data_sizes_are_named_where_the_hosts_memory_is_full() -> None:
    finding = as_finding(example(None, HostMemory(1e9, 0.99e9), TUNED))
    assert "ram_budget" in finding.remedies[-1].code
    assert finding.remedies[-1].at == Location("train.py", 22)
    assert "largest element" in str(finding.evidence)
    assert all(
        "ram_budget" not in remedy.code for remedy in as_finding(example(tuned=TUNED)).remedies
    )  # the device's


def test_without_figures_nothing_is_judged() -> None:
    assert isinstance(example(None, NONE), NotApplicable)


def allocation(at: float, free: int, used: int, name: str = "GPU_0_bfc", **more: Any) -> Any:
    told = {"allocator_name": name, "bytes_available": free, "bytes_allocated": used}
    stats = told | {"bytes_reserved": 0, "peak_bytes_in_use": 95} | more
    return ("MemoryAllocation", at, at, stats)


def test_the_limit_of_an_allocator_is_the_sum_of_its_parts() -> None:
    rows = (allocation(1, 60, 40), allocation(2, 30, 70), allocation(3, 1, 9, "gpu_host_bfc"))
    memory = chart(trace([line("python", *rows)], gpus=[v100()])).fact(DeviceMemory)
    assert memory.allocators == (Allocator("GPU_0_bfc", 100.0, 70.0, 95.0),)


def test_allocations_without_their_parts_or_on_a_cpu_are_not_used() -> None:
    part = ("MemoryAllocation", 1, 1, {"allocator_name": "GPU_0_bfc", "bytes_available": 60})
    for made in (trace([line("python", part)], gpus=[v100()]), trace([line("python", allocation(1, 60, 40))])):
        with pytest.raises(Unavailable):
            chart(made).fact(DeviceMemory)


def sample(second: int, **host: Any) -> Mapping[str, Any]:
    return {"unix_ns": second * 10**9, "host": {"memory_total_bytes": 100, **host}}


def test_time_waiting_for_memory_is_the_growth_of_the_kernels_count() -> None:
    rows = [
        sample(1, memory_used_bytes=40, psi_memory_us=5_000_000, run_rss_bytes=30),
        sample(3, memory_used_bytes=60, psi_memory_us=5_500_000, run_rss_bytes=20),
    ]
    memory = chart(trace(), recording(samples=rows)).fact(HostMemory)
    assert memory == HostMemory(100.0, 60.0, 30.0, stalled=0.25)


def test_without_pressure_figures_waits_are_unknown() -> None:
    memory = chart(trace(), recording(samples=[sample(1, memory_used_bytes=40)])).fact(HostMemory)
    assert memory.stalled is None
