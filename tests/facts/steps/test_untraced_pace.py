"""The steps outside of the traced window: what tracing costs, slow steps, the first ones of a pass."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from tests.builders import manifest, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.steps.untraced_pace import PassStarts, SlowSteps, UntracedPace, slowdown
from tfdoctor.recording.agent import StepsSeen, UntracedSteps
from tfdoctor.recording.run_log import FunctionTrace, RunLog, RunProcess


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


FED = Program(datasets=(Dataset(id=1, kind="_BatchDataset", cardinality=30),), feeds=1)
FILLS = ((30, 400.0), (59, 150.0), (60, 390.0), (89, 150.0), (90, 380.0))


def starts(
    *long: tuple[int, float], source: str = "keras-fit", seen: int = 110, program: Program = FED
) -> PassStarts:
    untraced = UntracedSteps(100, 30.0, "steps", total_ms=5000.0, long=long)
    steps = StepsSeen(source=source, seen=seen, untraced=untraced)
    return PassStarts.measure(recording(manifest=manifest(steps=steps)), program)


def test_the_first_steps_of_passes_are_told_from_the_last() -> None:
    found = starts(*FILLS)
    assert (found.number, found.pass_steps) == (3, 30)
    assert (found.long_ms, found.usual_ms) == (390.0, 30.0)
    assert found.share == pytest.approx(3 * 360.0 / 5000.0)
    assert found.each_step_ms == pytest.approx(10.8)


def test_one_extreme_step_does_not_raise_the_share() -> None:
    """Other programs delay a step now and then."""
    assert starts((30, 3000.0), *FILLS[1:]).share == pytest.approx(3 * 360.0 / 5000.0)


@pytest.mark.parametrize(
    ("long", "seen"),
    [
        ((FILLS[1], FILLS[3]), 110),  # the ends of passes: a validation
        (FILLS[:1], 50),  # once
        ((FILLS[0], FILLS[2]), 121),  # two of four passes
        (((0, 900.0), FILLS[0]), 50),  # the first step of the run
    ],
)
def test_steps_that_do_not_recur_at_the_begin_of_passes_are_none(
    long: tuple[tuple[int, float], ...], seen: int
) -> None:
    with pytest.raises(Unavailable, match="again and again"):
        starts(*long, seen=seen)


def test_loops_whose_step_begins_after_its_batch_are_not_judged() -> None:
    """The wait for a batch is in the step before, as is what the script does at the end of an epoch."""
    with pytest.raises(Unavailable, match="was not recorded"):
        starts(*FILLS, source="repeated-call")


def test_the_steps_of_a_pass_must_be_known() -> None:
    with pytest.raises(Unavailable, match="was not recorded"):
        starts(*FILLS, program=Program(datasets=(Dataset(id=1, kind="_BatchDataset"),), feeds=1))
