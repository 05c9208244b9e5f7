"""Slow steps: those of the trace and those that were only timed, and when they take most of the time."""

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.steps.slow_steps import SlowSteps
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.recording.agent import StepsSeen, UntracedSteps


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
    untraced = UntracedSteps(
        count=70, median_ms=3.0, of="steps", total_ms=1200.0, long=((3, 500.0), (40, 480.0))
    )
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
