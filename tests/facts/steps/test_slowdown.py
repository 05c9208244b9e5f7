"""How much tracing slowed the steps, by their medians, unless slow and fast steps are mixed."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import slowdown
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.recording.manifest import StepsSeen


def slowed(traced_ms: Sequence[float], untraced: UntracedSteps | None) -> float:
    ends = [0, *accumulate(round(time * PS_PER_MS) for time in traced_ms)]
    steps = Steps.of(Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends)))
    beside = recording(manifest=manifest(steps=StepsSeen(untraced=untraced)))
    return slowdown(beside, steps)


def test_all_steps_are_slower_while_traced() -> None:
    assert slowed([9.0, 10.0, 11.0, 10.0], UntracedSteps(100, 5.0, "steps")) == pytest.approx(2.0)


def test_slow_steps_among_fast_ones_are_not_the_profilers_cost() -> None:
    """XLA compiles in 11 of 20 traced steps, and in a third of the others."""
    traced = [800.0] * 11 + [5.0] * 9
    assert slowed(traced, UntracedSteps(100, 8.4, "steps")) == 1.0


def test_a_little_slower_is_as_measured_however_the_steps_vary() -> None:
    assert slowed([6.0, 7.0, 4.0, 4.0], UntracedSteps(100, 4.0, "steps")) == pytest.approx(1.25)


def test_calls_of_several_steps_are_compared_as_the_recorder_timed_them() -> None:
    untraced = UntracedSteps(100, 10.0, "calls", traced_ms=20.0)
    assert slowed([5.0, 5.0, 5.0], untraced) == pytest.approx(2.0)


@pytest.mark.parametrize("untraced", [None, UntracedSteps(0, None, "steps")])
def test_without_untraced_steps_it_is_unknown(untraced: UntracedSteps | None) -> None:
    assert slowed([5.0, 6.0], untraced) == 1.0
