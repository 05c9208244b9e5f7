"""JobProcesses: which of a job's processes used the cores."""

from typing import Any

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording.manifest import EndedProcess
from tfdoctor.rules.busy_workers.job_processes import JobProcesses

TRAINED = EndedProcess(pid=7, trained=True)


def samples(*shares: dict[str, float] | None) -> list[dict[str, Any]]:
    """One sample a second; None is one of an earlier version."""
    hosts = ({} if one is None else {"processes_pct": one} for one in shares)
    return [
        {"unix_ns": at * 10**9, "host": {"run_cpu_pct": 100.0, **host}} for at, host in enumerate(hosts, start=1)
    ]


def measured(*shares: dict[str, float] | None, trained: tuple[EndedProcess, ...] = (TRAINED,)) -> JobProcesses:
    return JobProcesses.measure(recording(samples=samples(*shares), manifest=manifest(processes=trained)))


def test_the_process_that_trains_is_no_helper() -> None:
    found = measured({"7": 100.0, "8": 30.0, "9": 50.0}, {"7": 120.0, "9": 50.0})
    assert found.training == pytest.approx(1.1)
    assert found.helpers == pytest.approx((0.5, 0.15))
    assert found.share == pytest.approx(0.65 / 1.75)


@pytest.mark.parametrize("trained", [(), (TRAINED, EndedProcess(pid=8, trained=True))])
def test_without_one_process_that_trains_nobody_helps(trained: tuple[EndedProcess, ...]) -> None:
    with pytest.raises(Unavailable, match="which of the run's processes"):
        measured({"7": 100.0, "8": 30.0}, trained=trained)


def test_an_older_recording_does_not_tell_them_apart() -> None:
    with pytest.raises(Unavailable, match="one by one"):
        measured(None)
