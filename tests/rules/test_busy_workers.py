"""busy-workers: both sides of the limit, processes that take nothing from the step, and which used the cores."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.manifest import EndedProcess
from tfdoctor.rules.execution.busy_workers import PY_DATASET, JobProcesses, check


def example(
    processes: JobProcesses = JobProcesses(1.4, (0.3, 0.25)),
    cores: Cores = Cores(2.0, 1.95),
    step: Breakdown | None = None,
    kind: str = PY_DATASET,
) -> Verdict:
    """Two workers take 0.55 of two cores that the step would use."""
    parts = step or Breakdown.of(device=60.0, host=2.0)
    return check(processes, cores, parts, Program(input_kind=kind))


sick = example


def healthy() -> Verdict:
    """Workers that only hand over rows."""
    return example(JobProcesses(1.9, (0.02, 0.02)))


test_workers_that_take_nothing_or_are_needed_are_no_fault = each_is(
    (example(JobProcesses(1.79, (0.21,))), Finding),  # a tenth of the job's core time
    (example(JobProcesses(1.81, (0.19,))), Healthy),
    (example(cores=Cores(16.0, 1.95)), Healthy, "were free"),  # trap: sixteen cores, of which the job uses two
    (example(step=Breakdown.of(device=60.0, input=20.0)), NotApplicable, "waits for its input"),
)


@pytest.mark.parametrize(("training", "helping", "left"), [(1.5, 0.5, 0.75), (0.5, 1.5, 0.5)])
def test_the_step_may_get_what_the_others_took_and_at_most_half(
    training: float, helping: float, left: float
) -> None:
    step = Breakdown.of(device=60.0)
    (effect,) = as_finding(example(JobProcesses(training, (helping,)), step=step)).effects
    assert (effect.scales, effect.bound) == (left, Bound.AT_MOST)


def test_processes_that_are_no_workers_are_not_called_so() -> None:
    finding = as_finding(example(kind="tf.data"))
    assert finding.summary.startswith("two other processes")
    assert "another machine" in finding.remedies[0].action


TRAINED = EndedProcess(pid=7, trained=True)


def job(*shares: dict[str, float] | None, trained: tuple[EndedProcess, ...] = (TRAINED,)) -> JobProcesses:
    """Measure one sample a second; None is one of an earlier version."""
    hosts: list[dict[str, Any]] = [{} if one is None else {"processes_pct": one} for one in shares]
    samples = (
        {"unix_ns": at * 10**9, "host": {"run_cpu_pct": 100.0, **host}} for at, host in enumerate(hosts, start=1)
    )
    return JobProcesses.measure(recording(samples=samples, manifest=manifest(processes=trained)))


def test_the_process_that_trains_is_no_helper() -> None:
    found = job({"7": 100.0, "8": 30.0, "9": 50.0}, {"7": 120.0, "9": 50.0})
    assert found.training == pytest.approx(1.1)
    assert found.helpers == pytest.approx((0.5, 0.15))
    assert found.share == pytest.approx(0.65 / 1.75)


@pytest.mark.parametrize("trained", [(), (TRAINED, EndedProcess(pid=8, trained=True))])
def test_without_one_process_that_trains_nobody_helps(trained: tuple[EndedProcess, ...]) -> None:
    with pytest.raises(Unavailable, match="which of the run's processes"):
        job({"7": 100.0, "8": 30.0}, trained=trained)


def test_an_older_recording_does_not_tell_them_apart() -> None:
    with pytest.raises(Unavailable, match="one by one"):
        job(None)
