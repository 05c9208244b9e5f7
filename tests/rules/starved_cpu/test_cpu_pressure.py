"""CpuPressure: what the kernel counted of a run that waited for processors."""

from typing import Any

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.rules.starved_cpu.cpu_pressure import CpuPressure

SECOND = 1_000_000_000


def sample(at: float, **host: Any) -> dict[str, Any]:
    return {"unix_ns": round(at * SECOND), "host": host}


def test_a_counter_that_grew_for_half_of_the_time_is_a_half() -> None:
    rows = [sample(n, throttled_us=500_000 * n, psi_cpu_us=250_000 * n) for n in (1, 2, 3)]
    found = CpuPressure.measure(recording(samples=rows))
    assert found.throttled == pytest.approx(0.5)
    assert found.waiting == pytest.approx(0.25)


def test_only_what_lies_around_the_traced_window_counts() -> None:
    held = [0, 900_000, 900_000, 1_000_000, 5_000_000]
    rows = [sample(n, throttled_us=us) for n, us in enumerate(held, start=1)]
    window = TracedWindow(started_unix_ns=round(2.5 * SECOND), stopped_unix_ns=round(3.5 * SECOND))
    found = CpuPressure.measure(recording(samples=rows, manifest=manifest(window=window)))
    assert found.throttled == pytest.approx(0.05)


def test_what_the_kernel_does_not_tell_is_unknown() -> None:
    found = CpuPressure.measure(recording(samples=[sample(1, quota_cores=1.5), sample(2, quota_cores=1.5)]))
    assert (found.throttled, found.waiting, found.quota) == (None, None, 1.5)


@pytest.mark.parametrize("rows", [[], [sample(1, throttled_us=3)]])
def test_a_difference_needs_two_samples(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(Unavailable, match="sampled less than twice"):
        CpuPressure.measure(recording(samples=rows))
