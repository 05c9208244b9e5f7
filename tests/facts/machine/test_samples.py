"""The sampled load of the machine, with and without a traced window."""

import pytest

from tests.builders import recording
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.run.framework import Framework

READ = ((0.0, 0), (24.0, 90), (42.2, 92), (42.4, 92), (None, 94))
"""Readings of GPM (each the mean of half a second) and NVML's load: an idle GPU, then a busy one."""


def sampled(*readings: tuple[float | None, int]) -> Samples:
    rows = [
        {"unix_ns": at, "host": {"run_cpu_pct": 1.0}, "gpu": [{"gpu_pct": load, "tensor_pct": tensor}]}
        for at, (tensor, load) in enumerate(readings)
    ]
    return Samples.measure(recording(samples=rows), Framework())


def test_idle_time_around_an_unknown_window_does_not_count() -> None:
    taken = sampled(*READ)
    assert taken.tensor_share == pytest.approx(42.2 / 92)


def test_a_gpu_that_was_never_busy_has_no_activity() -> None:
    assert sampled((0.0, 3)).tensor_share is None
