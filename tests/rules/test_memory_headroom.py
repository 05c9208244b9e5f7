"""memory-headroom: both sides of each limit, and the memory figures of trace and samples."""

import pytest

from tests.builders import chart, line, recording, trace, v100
from tests.rules.cases.memory_headroom import example
from tests.rules.kit import *
from tfdoctor.facts.input.feeding_datasets import TunedBuffers
from tfdoctor.facts.machine.memory import Allocator, DeviceMemory
from tfdoctor.rules.memory_headroom import Limits

NONE = Unavailable("not there")


def host(share: float, stalled: float | None = 0.0) -> Verdict:
    return example(None, HostMemory(1e9, share * 1e9, stalled=stalled))


@pytest.mark.parametrize(("used", "kind"), [(Limits().device, Finding), (0.94, Healthy)])
def test_a_device_that_is_nearly_full(used: float, kind: type) -> None:
    """Trap: the peak of the whole run is at the limit in both cases, because cuDNN tries algorithms."""
    assert isinstance(example(Allocator("GPU_0_bfc", 1e9, used * 1e9, 1e9), NONE), kind)


def test_a_host_that_is_nearly_full() -> None:
    assert [type(host(share)) for share in (Limits().host, 0.94)] == [Finding, Healthy]


def test_a_host_that_waits_for_memory() -> None:
    assert [type(host(0.5, stalled)) for stalled in (Limits().stalled, 0.019)] == [Finding, Healthy]


def test_waiting_is_a_warning_and_being_full_a_note() -> None:
    full, waiting = host(0.99, None), host(0.5, 0.2)
    assert isinstance(full, Finding)
    assert isinstance(waiting, Finding)
    assert (full.severity, waiting.severity) == (Severity.NOTE, Severity.WARNING)


TUNED = TunedBuffers((dataset_of("Prefetch", at=Location("train.py", 22)),), largest_bytes=38_535_168)


def test_buffers_that_tf_data_sizes_are_named_where_the_hosts_memory_is_full() -> None:
    finding = as_finding(example(None, HostMemory(1e9, 0.99e9), TUNED))
    assert "ram_budget" in finding.remedies[-1].code
    assert finding.remedies[-1].at == Location("train.py", 22)
    assert "largest element" in str(finding.evidence)


def test_buffers_have_no_part_in_a_full_device() -> None:
    finding = as_finding(example(tuned=TUNED))
    assert all("ram_budget" not in remedy.code for remedy in finding.remedies)


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


def test_allocations_without_their_parts_are_not_used() -> None:
    rows = [("MemoryAllocation", 1, 1, {"allocator_name": "GPU_0_bfc", "bytes_available": 60})]
    with pytest.raises(Unavailable):
        chart(trace([line("python", *rows)], gpus=[v100()])).fact(DeviceMemory)


def test_a_run_on_the_cpu_has_no_device_memory() -> None:
    with pytest.raises(Unavailable):
        chart(trace([line("python", allocation(1, 60, 40))])).fact(DeviceMemory)


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
