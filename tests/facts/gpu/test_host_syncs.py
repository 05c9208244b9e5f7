"""The GPU's idle time after values that were read, where every nanosecond is known."""

from collections.abc import Iterable

import pytest

from tests.builders import Row, Thread, chart, line, marker, trace, v100
from tfdoctor.facts.gpu.host_syncs import HostSyncs

STEPS = 6


def device(*, reads: bool) -> list[Thread]:
    """Kernels from 2 to 8 of 10 ms, and a copy back until 8.1."""
    kernels: list[Row] = [
        ("volta_sgemm", 10.0 * n + 2, 10.0 * n + 8, {"correlation_id": 100 + n}) for n in range(STEPS)
    ]
    copies: list[Row] = [
        ("MemcpyD2H", 10.0 * n + 8, 10.0 * n + 8.1, {"correlation_id": 200 + n}) for n in range(STEPS) if reads
    ]
    return [line("Stream #14(Kernel)", *kernels), line("Stream #18(MemcpyD2H)", *copies)]


def host(launched: float) -> Iterable[Row]:
    """Calls of 9 of 10 ms; kernels are launched at a time of the step, which may lie before it."""
    for n in range(STEPS):
        yield marker(n, 10.0 * n, 10.0 * n + 9)
    for n in range(STEPS):
        at = max(0.0, 10.0 * n + launched)
        yield ("cuLaunchKernel", at, at + 0.1, {"correlation_id": 100 + n})


def syncs(*, reads: bool, launched: float) -> HostSyncs:
    threads = [line("python", *host(launched))]
    return chart(trace(host=threads, gpus=[v100(*device(reads=reads))])).fact(HostSyncs)


def test_what_is_launched_after_the_value_is_read_waits_for_the_host() -> None:
    found = syncs(reads=True, launched=1.0)
    assert found.reads == pytest.approx(1.0)
    assert found.syncs == pytest.approx(5 / 6)  # nothing follows the last
    assert found.host_ms == pytest.approx((0.9 + 2.0) * 5 / 6, rel=0.15)
    assert found.between_ms == pytest.approx(1.0 * 5 / 6, rel=0.15)


def test_a_host_that_has_launched_ahead_waits_for_no_value() -> None:
    """Trap: the loss is copied back at each step's end, and nobody waits for it."""
    found = syncs(reads=True, launched=-5.0)
    assert (found.syncs, found.host_ms, found.between_ms) == (0.0, 0.0, 0.0)


def test_idle_time_after_kernels_is_not_of_reading() -> None:
    found = syncs(reads=False, launched=1.0)
    assert (found.host_ms, found.between_ms) == (0.0, 0.0)
