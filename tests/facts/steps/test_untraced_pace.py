"""How long the steps outside of the traced window took."""

from dataclasses import replace

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import SlowSteps, UntracedPace
from tfdoctor.recording.agent import StepsSeen, UntracedSteps
from tfdoctor.recording.run_log import FunctionTrace, RunLog, RunProcess


def pace(of: str, median_ms: float | None) -> UntracedPace:
    seen = StepsSeen(untraced=UntracedSteps(count=90, median_ms=median_ms, of=of))
    run = recording(manifest=manifest(steps=seen))
    return UntracedPace.measure(run, Steps.uniform(10, 4.0))


def test_untraced_steps_are_compared_with_the_traced_ones() -> None:
    found = pace("steps", 6.0)
    assert (found.ratio, found.step_ms, found.traced) == (1.5, 6.0, 10)


def test_a_median_of_steps_that_are_short_and_long_in_turn_is_not_compared() -> None:
    seen = StepsSeen(untraced=UntracedSteps(count=90, median_ms=10.7, of="steps"))
    run = recording(manifest=manifest(steps=seen))
    with pytest.raises(Unavailable, match="short and long in turn"):
        UntracedPace.measure(run, replace(Steps.uniform(10, 4.0), in_bursts=True))


@pytest.mark.parametrize(
    ("count", "median_ms", "total_ms", "share", "contradicts"),
    [
        (90, 4.0, 400.0, 0.25, True),  # a tenth of their time is beyond the median
        (90, 4.0, 400.0, 0.15, False),
        (9, 4.0, 40.0, 0.25, False),  # fewer than were traced
        (90, 5.1, 510.0, 0.25, False),  # slowed by something else: traced steps take 4 ms
        (90, 4.0, None, 0.25, False),
    ],
)
def test_long_steps_that_the_untraced_ones_lack_are_the_traced_steps_alone(
    count: int, median_ms: float, total_ms: float | None, share: float, *, contradicts: bool
) -> None:
    untraced = UntracedSteps(count=count, median_ms=median_ms, of="steps", total_ms=total_ms)
    run = recording(manifest=manifest(steps=StepsSeen(untraced=untraced)))
    assert UntracedPace.measure(run, Steps.uniform(10, 4.0)).contradicts(share) is contradicts


def test_steps_that_trace_a_function_are_long_for_another_reason() -> None:
    """Each of ten epochs traces anew: that says nothing of other long steps."""
    log = RunLog(RunProcess(), {}, {}, (), traces=(FunctionTrace("train_step", ms=2_000.0),))
    untraced = UntracedSteps(count=90, median_ms=4.0, of="steps", total_ms=2_400.0)
    of_run = recording(manifest=manifest(steps=StepsSeen(untraced=untraced)))
    traced = UntracedPace.measure(replace(of_run, run=log), Steps.uniform(10, 4.0))
    assert traced.contradicts(0.25)
    assert traced.beyond_ms == pytest.approx(40 / 90)
    assert not UntracedPace.measure(of_run, Steps.uniform(10, 4.0)).contradicts(0.25)


@pytest.mark.parametrize(("of", "median_ms"), [("calls", 6.0), ("steps", None)])
def test_calls_are_no_steps(of: str, median_ms: float | None) -> None:
    """The time of a call leaves out what is between two steps."""
    with pytest.raises(Unavailable):
        pace(of, median_ms)


def slow(untraced: UntracedSteps | None = None, long_ms: float = 200.0) -> SlowSteps:
    """Twenty traced steps of 4 ms, the third of which takes longer."""
    times = [long_ms if at == 2 else 4.0 for at in range(20)]
    steps, start = [], 0
    for number, time in enumerate(times):
        end = start + round(time * PS_PER_MS)
        steps.append(Step(number, start, end, end))
        start = end
    run = recording(manifest=manifest(steps=StepsSeen(untraced=untraced)))
    return SlowSteps.measure(Steps.of(steps), run)


def test_traced_and_untraced_steps_add_up() -> None:
    untraced = UntracedSteps(count=70, median_ms=3.0, of="steps", total_ms=1200.0, long=((3, 500.0), (40, 480.0)))
    found = slow(untraced)
    assert (found.number, found.timed) == (3, 90)
    assert found.ms == pytest.approx(1180.0)
    assert found.timed_ms == pytest.approx(1476.0)
    assert found.mean_ms == pytest.approx(1476.0 / 90)
    assert found.prevail


@pytest.mark.parametrize(("long_ms", "prevail"), [(76.0, True), (75.0, False), (4.0, False)])
def test_they_prevail_with_half_of_the_time(long_ms: float, *, prevail: bool) -> None:
    assert slow(long_ms=long_ms).prevail is prevail


def test_untraced_steps_without_their_sum_do_not_count() -> None:
    assert slow(UntracedSteps(count=70, median_ms=3.0, of="steps")) == slow()
