"""Long steps that wait for input: which of them recur, so that the mean step pays for them."""

from itertools import pairwise

import numpy as np
import pytest

from tests.builders import PS
from tfdoctor.facts.steps.steps import Step, Steps
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.trace import Intervals

USUAL, LONG = 10.0, 100.0


def stalled(long: tuple[int, ...], first: int = 0, *, count: int = 20, waited: float = 90.0) -> Steps:
    """Steps of which some are long and wait for input, passes of ten steps."""
    return paying(long, first, count, waited, 10.0)


def paying(
    long: tuple[int, ...],
    first: int,
    count: int,
    waited: float,
    pass_steps: float | None,
    untraced: UntracedSteps | None = None,
) -> Steps:
    times = [LONG if at in long else USUAL for at in range(count)]
    edges = [int(edge) for edge in np.cumsum([0.0, *times]) * PS]
    steps = Steps.of(Step(first + n, a, b, b) for n, (a, b) in enumerate(pairwise(edges)))
    waits = Intervals.union((edges[at], edges[at] + int(waited * PS)) for at in long)
    return steps.paying(waits, pass_steps, untraced)


def test_stalls_on_two_occasions_are_part_of_the_mean_step() -> None:
    steps = paying((4, 15), 0, 20, 90.0, None)
    assert [at for at, is_stall in enumerate(steps.stalled) if is_stall] == [4, 15]
    assert all(steps.steady)
    assert steps.median_ms == USUAL
    assert steps.usual_ms == pytest.approx(19.0)


def test_a_single_stall_of_unknown_cause_may_be_chance() -> None:
    steps = paying((4,), 0, 20, 90.0, None)
    assert not steps.stalled
    assert not steps.steady[4]
    assert steps.usual_ms == USUAL


def test_adjacent_long_steps_are_one_occasion() -> None:
    assert not paying((4, 5), 0, 20, 90.0, None).stalled


@pytest.mark.parametrize("first", [5, 6])
def test_a_single_stall_where_a_pass_ends_recurs(first: int) -> None:
    # step 10 of the run is the first of the second pass, and step 9 the last of the first one
    steps = stalled((4,), first, count=12)
    assert steps.stalled[4]
    assert steps.usual_ms == pytest.approx(17.5)


def test_a_single_stall_within_a_pass_may_be_chance() -> None:
    assert not stalled((4,), 7).stalled


def test_the_first_step_of_the_run_is_not_the_end_of_a_pass() -> None:
    assert not stalled((0,), 0).stalled


def test_a_trace_of_less_than_a_pass_does_not_show_how_often_it_ends() -> None:
    assert not paying((4,), 6, 9, 90.0, 10.0).stalled
    assert paying((4,), 6, 10, 90.0, 10.0).stalled


def test_a_long_step_that_mostly_does_something_else_is_an_outlier() -> None:
    assert not paying((4, 15), 0, 20, 44.0, None).stalled
    assert paying((4, 15), 0, 20, 46.0, None).stalled


def test_stalls_that_take_little_of_the_time_are_left_out() -> None:
    assert paying((50, 150), 0, 330, 90.0, None).stalled
    assert not paying((50, 150), 0, 350, 90.0, None).stalled


@pytest.mark.parametrize(("total_ms", "is_stall"), [(730.0, False), (1500.0, True)])
def test_a_stall_that_the_untraced_epochs_lack_is_none(total_ms: float, *, is_stall: bool) -> None:
    """One long wait among 20 traced steps; 72 untraced ones run at the median of the others, or stall, too."""
    long = tuple((number, 260.0) for number in (40, 60, 80)) if is_stall else ()
    untraced = UntracedSteps(count=72, median_ms=USUAL, of="steps", total_ms=total_ms, long=long)
    steps = paying((10,), 10, 20, 90.0, 20.0, untraced)
    assert any(paying((10,), 10, 20, 90.0, 20.0).stalled)
    assert any(steps.stalled) is is_stall


@pytest.mark.parametrize(
    ("long", "count", "total_ms", "stalls"),
    [
        ((), 200, 30_000.0, False),  # twenty passes begin as usual, and steps are long elsewhere
        (((13, 95.0),), 200, 30_000.0, False),  # a long one within a pass
        (((10, 95.0),), 200, 30_000.0, False),  # one of twenty
        (tuple((10 * n, 95.0) for n in range(1, 11)), 200, 30_000.0, True),
        ((), 19, 3_000.0, True),  # one pass only
        (tuple((10 * n + 3, 95.0) for n in range(40)), 400, 60_000.0, True),  # shorter ones untold
        ((), 200, None, True),
    ],
)
def test_a_stall_where_a_pass_ends_must_be_in_other_passes(
    long: tuple[tuple[int, float], ...], count: int, total_ms: float | None, *, stalls: bool
) -> None:
    untraced = UntracedSteps(count=count, median_ms=USUAL, of="steps", total_ms=total_ms, long=long)
    assert bool(paying((4,), 6, 20, 90.0, 10.0, untraced).stalled) is stalls


def bursts(times: list[float], waited: float = 0.95, untraced: UntracedSteps | None = None) -> Steps:
    edges = [int(edge) for edge in np.cumsum([0.0, *times]) * PS]
    steps = Steps.of(Step(n, a, b, b) for n, (a, b) in enumerate(pairwise(edges)))
    waits = Intervals.union((a, a + int(waited * (b - a))) for a, b in pairwise(edges))
    return steps.paying(waits, None, untraced)


@pytest.mark.parametrize(
    "times", [[150.0, 2.0] * 6, [150.0, 2.0, 2.0] * 5, [150.0, 140.0, 2.0] * 5, [2.0, 160.0] * 3]
)
def test_steps_short_and_long_in_turn_are_judged_by_all_of_their_time(times: list[float]) -> None:
    steps = bursts(times)
    assert any(steps.stalled)
    assert all(steps.steady)
    assert steps.usual_ms == pytest.approx(sum(times) / len(times))


@pytest.mark.parametrize(
    ("times", "waited"),
    [
        ([10.0, 11.0, 12.0, 13.0] * 4, 0.95),  # of one kind
        ([150.0, 2.0] * 6, 0.3),  # long for another reason
        ([2.0] * 8 + [150.0] * 8, 0.95),  # a queue that is empty from then on
    ],
)
def test_other_steps_are_judged_by_their_median(times: list[float], waited: float) -> None:
    assert not bursts(times, waited).in_bursts


def test_bursts_that_the_untraced_steps_lack_are_none() -> None:
    untraced = UntracedSteps(count=40, median_ms=2.0, of="steps", total_ms=100.0)
    assert not bursts([150.0, 2.0] * 6, untraced=untraced).in_bursts
