"""A finding about time that few traced steps have, and the run's other steps lack, is none about the run."""

from collections.abc import Sequence

import pytest

from tests.diagnose.run_charts import phases_of, steps_of
from tests.diagnose.test_run_pricing import of, states
from tfdoctor.diagnose import engine
from tfdoctor.diagnose.engine import only_traced
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.facts.step_time.breakdown import PARTS, Breakdown
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.terms.kinds import Phase, StepSource
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, NotApplicable, Stage

STEP_MS = 10.0

WAITS_ONCE = (40.0,) * 5 + (0.0,) * 15
"""Ms of input in the traced steps: the first five wait, as after the start of the profiler."""

WAITS = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)


def untraced(beyond_ms: float, count: int = 200) -> UntracedPace:
    """Steps of 10 ms outside of the window, and what long ones add to each."""
    total = count * (STEP_MS + beyond_ms)
    return UntracedPace(1.0, STEP_MS, UntracedSteps(count=count, median_ms=STEP_MS, of="steps", total_ms=total), 20)


def traced(waits: Sequence[float], *more: object) -> Chart:
    """Traced steps of 10 ms of the device and these waits for input."""
    rows = [dict.fromkeys(map(str, PARTS), 0.0) | {"input": w, "device": STEP_MS} for w in waits]
    steps, start = [], 0
    for number, row in enumerate(rows):
        end = start + round(sum(row.values()) * PS_PER_MS)
        steps.append(Step(number, start, end, end))
        start = end
    mean = {part: sum(row[part] for row in rows) / len(rows) for part in rows[0]}
    whole = Steps(StepSource.KERAS_FIT, tuple(steps), (True,) * len(steps))
    given = [whole, Breakdown(tuple(rows), mean), *more]
    kinds = (UntracedPace, RunSteps, RunPhases)
    known = {type(part) for part in given}
    return Chart(given, {kind: Unavailable("no") for kind in kinds if kind not in known})


def outcome(chart: Chart, *effects: Effect) -> object:
    (result,) = engine.examine(chart, [states("input-bound", *(effects or (WAITS,)))])
    return result.outcome


def test_waits_of_the_first_traced_steps_are_not_the_runs() -> None:
    found = outcome(traced(WAITS_ONCE, untraced(0.2)))
    assert isinstance(found, NotApplicable)
    assert found.reason.startswith("Something is slow, but only the traced steps show it: few of them")
    assert "adds 10.0 ms to each" in found.reason
    assert found.reason.endswith("adds 0.20 ms")


def test_waits_that_the_other_steps_have_as_well_are_the_runs() -> None:
    assert isinstance(outcome(traced(WAITS_ONCE, untraced(6.0))), Finding)


def test_a_wait_of_each_step_is_the_runs_whatever_the_others_vary() -> None:
    assert isinstance(outcome(traced((10.0,) * 20, untraced(0.0))), Finding)


@pytest.mark.parametrize("known", [(), (untraced(0.0, count=30),)])
def test_few_other_steps_contradict_nothing(known: tuple[UntracedPace, ...]) -> None:
    assert isinstance(outcome(traced(WAITS_ONCE, *known)), Finding)


def test_the_steps_of_the_whole_run_contradict_as_well() -> None:
    whole = phases_of({Phase.STEPS: 1.0})
    even = steps_of(500, STEP_MS)
    assert isinstance(outcome(traced(WAITS_ONCE, even, whole)), NotApplicable)
    uneven = steps_of(500, STEP_MS, LongSteps(count=50, ms=4_500.0, beyond_ms=4_000.0))
    assert isinstance(outcome(traced(WAITS_ONCE, uneven, whole)), Finding)
    window = phases_of({Phase.STEPS: 1.0}, whole=False)
    assert isinstance(outcome(traced(WAITS_ONCE, even, window)), Finding)


def test_a_finding_about_more_than_that_stands() -> None:
    both = outcome(traced(WAITS_ONCE, untraced(0.0)), WAITS, Effect(Stage.DEVICE, 0.5, "a", ms(8)))
    assert isinstance(both, Finding)


def test_a_finding_about_the_run_does_not_rest_on_the_window() -> None:
    window = only_traced(traced(WAITS_ONCE, untraced(0.0)))
    found = states("both", WAITS, of(Phase.BOUNDARIES, 100.0)).check()
    assert window.checked(found) is found
