"""All training steps of a run: how long they took, and which of them the traced window is like."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.builders import PS, recording
from tests.run_logs import Run
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines, RunSteps, long_steps
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Step, Steps
from tfdoctor.recording.agent import StepsSeen, UntracedSteps
from tfdoctor.recording.run_log import Bucket, BucketSteps, CallPlace, LongStep, RunLog, RunProcess, SeenStack
from tfdoctor.terms.kinds import RunCall, RunWork, StepSource
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Intervals

LOOP = "train.py:12"


def measured(run: Run) -> RunSteps:
    return RunSteps.measure(run.recording(), None, None, None)


def test_all_steps_of_the_main_loop_are_added_up() -> None:
    run = Run()
    run.steps(30, 2.0, "pretrain.py:3")
    run.steps(300, 4.0, LOOP, between_ms=1.0)
    run.steps(100, 9.0, LOOP, between_ms=1.0)

    found = measured(run)

    assert (found.at, found.source) == (Location("train.py", 12), StepSource.REPEATED_CALL)
    assert found.count == 400
    assert found.total_ms == pytest.approx(2500)
    assert (found.median_ms, found.p10_ms, found.p90_ms) == pytest.approx((5.0, 5.0, 10.0))
    assert found.mean_ms == pytest.approx(6.25)
    assert found.rest_ms == pytest.approx(500)


def test_calls_that_run_a_loop_of_steps_are_no_steps() -> None:
    """Trap: ten calls of 200 steps were "each of ten training steps"."""
    run = Run()
    run.steps(10, 11.0, LOOP)
    each = run.recording()
    assert each.run is not None
    looped = tuple(
        replace(b, steps=tuple(replace(s, source=StepSource.GRAPH_LOOP) for s in b.steps)) for b in each.run.buckets
    )
    with pytest.raises(Unavailable, match="loop inside"):
        RunSteps.measure(replace(each, run=replace(each.run, buckets=looped)), None, None, None)


def binned(log: RunLog) -> RunLog:
    """Have the recorder count steps by bins instead of telling each one."""

    def of(steps: BucketSteps) -> BucketSteps:
        bins: dict[str, int] = {}
        for ms in steps.each:
            key = str(int(math.log(ms * 1000) / math.log(1.02)))
            bins[key] = bins.get(key, 0) + 1
        return replace(steps, each=(), bins=bins)

    return replace(log, buckets=tuple(replace(b, steps=tuple(map(of, b.steps))) for b in log.buckets))


def test_bins_give_the_quantiles_to_two_percent() -> None:
    run = Run()
    run.steps(300, 5.0, LOOP)
    run.steps(100, 10.0, LOOP)
    each = run.recording()
    found = RunSteps.measure(replace(each, run=binned(run.log())), None, None, None)

    exact = RunSteps.measure(each, None, None, None)
    assert found.median_ms == pytest.approx(exact.median_ms, rel=0.02)
    assert found.p90_ms == pytest.approx(exact.p90_ms, rel=0.02)
    assert found.total_ms == pytest.approx(exact.total_ms)


def test_a_call_of_several_steps_is_counted_as_several() -> None:
    run = Run()
    run.steps(100, 50.0, LOOP)
    log = run.log()
    tens = [replace(b, steps=tuple(replace(s, steps=10 * s.calls) for s in b.steps)) for b in log.buckets]
    found = RunSteps.measure(replace(run.recording(), run=replace(log, buckets=tuple(tens))), None, None, None)

    assert found.count == 1000
    assert found.median_ms == pytest.approx(5.0)
    assert found.mean_ms == pytest.approx(5.0)


def test_the_window_stands_for_steps_like_the_traced_ones() -> None:
    run = Run()
    run.steps(200, 5.0, LOOP)
    run.steps(200, 5.0, LOOP, traced=True)
    run.steps(100, 20.0, LOOP)

    found = measured(run)

    assert found.traced_ms == pytest.approx(5.0)
    assert found.window_share == pytest.approx(2000 / 4000)


def test_steps_that_only_the_profiler_slows_stand_for_the_others() -> None:
    run = Run()
    run.steps(400, 5.0, LOOP)
    run.steps(100, 12.0, LOOP, traced=True)
    run.steps(400, 5.0, LOOP)

    found = measured(run)

    assert found.traced_ms == pytest.approx(12.0)
    assert found.window_share == pytest.approx(4000 / 5200)


def test_steps_that_were_only_counted_weigh_as_many() -> None:
    run = Run()
    run.steps(400, 5.0, LOOP)
    run.steps(100, 10.0, LOOP, traced=True)

    found = RunSteps.measure(replace(run.recording(), run=binned(run.log())), None, None, None)

    assert found.window_share == pytest.approx(2000 / 3000, rel=0.02)


def test_a_window_of_slow_and_fast_steps_stands_for_both() -> None:
    """XLA compiles for every second shape: the median says whether more than half of them were compiled."""
    run = Run()
    for traced in (False, True, False):
        for _ in range(10):
            run.steps(2, 5.0, LOOP, traced=traced)
            run.steps(3 if traced else 1, 800.0, LOOP, traced=traced)
    run.steps(10, 100.0, LOOP)

    found = measured(run)

    assert found.traced_ms == pytest.approx(800.0)
    assert found.window_share == pytest.approx(1 - 1000 / found.total_ms)


def test_what_traced_steps_take_is_as_the_agent_timed_it() -> None:
    run = Run()
    run.steps(200, 5.0, LOOP)
    run.steps(100, 5.0, LOOP, traced=True)
    timed = StepsSeen(untraced=UntracedSteps(200, 5.0, "steps", traced_ms=5.5))

    assert RunSteps.measure(run.recording(steps=timed), None, None, None).traced_ms == 5.5


def test_without_a_window_nothing_is_said_about_it() -> None:
    run = Run()
    run.steps(200, 5.0, LOOP)

    assert (measured(run).traced_ms, measured(run).window_share) == (None, None)


def long(number: int, ms: float = 15.0, *, first: bool = False) -> LongStep:
    return LongStep(number, number * 0.005, ms, 5.0, first)


def test_long_steps_say_what_they_cost() -> None:
    found = long_steps([long(0, 100.0, first=True), long(7), long(50, 45.0, first=True)])

    assert found is not None
    assert (found.count, found.ms, found.beyond_ms) == (3, 160.0, 145.0)
    assert (found.first, found.first_beyond_ms, found.first_median_ms) == (2, 135.0, 67.5)
    assert long_steps([]) is None


@pytest.mark.parametrize(
    ("numbers", "every"),
    [
        ([99, 199, 299, 399], 100),
        ([99, 200, 299, 400, 499], 100),
        ([99, 199, 299], None),  # too few
        ([3, 50, 61, 200, 277, 300], None),
        ([10, 11, 12, 13, 14], None),  # all of them
    ],
)
def test_long_steps_at_equal_distances_have_a_period(numbers: list[int], every: int | None) -> None:
    found = long_steps([long(0, first=True), *map(long, numbers)])
    assert found is not None
    assert found.every == every


def test_a_run_without_steps_has_none() -> None:
    run = Run()
    run.python(1.0, "p.py:1")
    with pytest.raises(Unavailable, match="no training step"):
        measured(run)
    with pytest.raises(Unavailable, match="not recorded"):
        RunSteps.measure(recording(), None, None, None)


def test_the_long_steps_of_bursts_are_no_long_steps() -> None:
    """Steps of 2 and 150 ms in turn: all are like the traced ones, and one of 400 ms is long."""
    run = Run()
    for number in range(40):
        run.steps(1, 2.0 if number % 2 else 150.0, LOOP, traced=number < 20)
    edges = [0, *(int(PS * at) for n in range(10) for at in (152 * n + 150, 152 * n + 152))]
    steps = Steps.of(Step(n, a, b, b) for n, (a, b) in enumerate(pairwise(edges)))
    told = (
        LongStep(number=20, start=1.0, ms=150.0, usual_ms=2.0),
        LongStep(number=30, start=2.0, ms=400.0, usual_ms=2.0),
    )
    given = run.recording()
    given = replace(given, run=replace(run.log(), long_steps=told))
    bursts = steps.paying(Intervals([(a, b) for a, b in pairwise(edges) if b - a > 9 * PS]), None)

    found = RunSteps.measure(given, bursts, None, None)

    assert bursts.in_bursts
    assert found.window_share == pytest.approx(1.0)
    assert found.long is not None
    assert (found.long.count, found.long.ms) == (1, 400.0)


def waits(**parts: float) -> RunSteps:
    """200 steps of 5 ms that were traced, and 20 of 50 ms, in which the stack is at the call that trains."""
    run = Run()
    run.steps(200, 5.0, LOOP, traced=True)
    run.steps(20, 50.0, LOOP)
    told = tuple(long(200 + number, 50.0) for number in range(20))
    given = replace(run.recording(), run=replace(run.log(), long_steps=told))
    at = LongLine(at=Location("train.py", 9), ms=800.0, samples=16, trains=True)
    other = LongLine(at=Location("train.py", 3), ms=200.0, samples=4)
    return RunSteps.measure(given, None, Breakdown.of(**parts), RunLongLines((at, other)))


def test_long_steps_are_like_traced_ones_that_wait_for_input_as_well() -> None:
    found = waits(input=3.0, device=2.0)
    assert found.wait_longer
    assert found.window_share == pytest.approx(0.5 + 0.8 * 0.5)


@pytest.mark.parametrize("parts", [{"input": 2.0, "device": 3.0}, {"device": 5.0}])
def test_long_steps_are_unlike_traced_ones_that_do_something_else(parts: dict[str, float]) -> None:
    found = waits(**parts)
    assert not found.wait_longer
    assert found.window_share == pytest.approx(0.5)


SAVES = SeenStack(1, at=("train.py", 30), calls="keras.Model.save", work=RunWork.SAVING, long=True)
AGAIN = replace(SAVES, id=2, runs="h5py.File")
USUAL = SeenStack(3, at=("train.py", 31))


def lines(*buckets: Bucket) -> RunLongLines:
    log = RunLog(RunProcess(), {}, {one.id: one for one in (SAVES, AGAIN, USUAL)}, buckets)
    return RunLongLines.measure(replace(recording(), run=log))


def test_samples_of_a_line_add_up_over_stacks_and_buckets() -> None:
    found = lines(
        Bucket(0, 1, stacks={"1": 200.0, "3": 700.0}, samples={"1": 4, "3": 14}),
        Bucket(1, 2, stacks={"1": 50.0, "2": 100.0}, samples={"1": 1, "2": 2}),
    )
    assert found.lines == (
        LongLine(at=Location("train.py", 30), ms=350.0, samples=7, calls="keras.Model.save", work=RunWork.SAVING),
    )
    assert found.ms == 350.0
    assert found.lines[0].sure
    assert not replace(found.lines[0], samples=4).sure
    assert not replace(found.lines[0], at=None).sure


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (RunWork.OTHER, False),
        (RunWork.MODEL, False),
        (RunWork.SAVING, True),  # a checkpoint of fit's
        (RunWork.INPUT, True),
    ],
)
def test_the_call_that_trains_is_no_cause(work: RunWork, *, names: bool) -> None:
    fit = CallPlace(0, RunCall.FIT, ("train.py", 9), "Model.fit")
    seen = SeenStack(1, at=("train.py", 9), calls="keras.Model.fit", work=work, long=True)
    bucket = Bucket(0, 1, stacks={"1": 400.0}, samples={"1": 8})
    log = RunLog(RunProcess(), {0: fit}, {1: seen}, (bucket,))
    (line,) = RunLongLines.measure(replace(recording(), run=log)).lines
    assert line.sure is names


def test_without_a_sample_of_a_long_step_nothing_is_known() -> None:
    with pytest.raises(Unavailable, match="no step that takes long"):
        lines(Bucket(0, 1, stacks={"3": 700.0}, samples={"3": 14}))
    with pytest.raises(Unavailable, match="not recorded"):
        RunLongLines.measure(recording())
