"""busy-workers: both sides of the limit, and processes that take nothing from the step."""

import pytest

from tests.rules.cases.busy_workers import example
from tests.rules.verdicts import as_finding, as_healthy, as_not_applicable
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.busy_workers import Limits
from tfdoctor.rules.busy_workers.job_processes import JobProcesses
from tfdoctor.terms.verdict import Bound, Finding, Healthy


@pytest.mark.parametrize(("helping", "kind"), [(0.21, Finding), (0.19, Healthy)])
def test_a_tenth_of_the_jobs_core_time_is_found(helping: float, kind: type) -> None:
    assert Limits().share == 0.1
    assert isinstance(example(JobProcesses(2.0 - helping, (helping,))), kind)


def test_workers_on_free_cores_cost_the_step_nothing() -> None:
    """Trap: sixteen cores, of which the job uses two."""
    assert "were free" in as_healthy(example(cores=Cores(16.0, 1.95))).summary


def test_workers_that_the_step_waits_for_are_needed() -> None:
    waiting = Breakdown.of(device=60.0, input=20.0)
    assert "waits for its input" in as_not_applicable(example(step=waiting)).reason


def test_the_step_may_get_what_the_others_took() -> None:
    finding = as_finding(example(JobProcesses(1.5, (0.5,)), step=Breakdown.of(device=60.0)))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (0.75, Bound.AT_MOST)


def test_at_most_half_of_the_compute_is_gained() -> None:
    (effect,) = as_finding(example(JobProcesses(0.5, (1.5,)))).effects
    assert effect.scales == 0.5


def test_processes_that_are_no_workers_are_not_called_so() -> None:
    finding = as_finding(example(kind="tf.data"))
    assert finding.summary.startswith("two other processes")
    assert "another machine" in finding.remedies[0].action
