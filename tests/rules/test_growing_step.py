"""growing-step: steps and calls that certainly get slower, with what grows along; and what only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.kit import *
from tfdoctor.facts.machine.samples import GpuClock, GpuClocks
from tfdoctor.recording.run_log import Bucket, BucketSteps, CallPlace, RunLog, RunProcess, SeenStack, Span
from tfdoctor.rules.run import growing_step
from tfdoctor.rules.run.growing_step.longer_times import LongerTimes, SlowingCall, StepLine

GROWS = Trend(
    what=Grows.STEP, first=41.0, last=96.0, slope=2.7, low=2.5, high=2.9, steady=True, points=200, over_steps=300
)  # fmt: skip
"""The step time of the examples."""

EXAMPLE_STEPS = RunSteps(
    at=Location("train.py", 48), source="session-run", count=330, total_ms=22_600.0,
    mean_ms=68.5, median_ms=68.0, p10_ms=45.0, p90_ms=92.0,
)  # fmt: skip

EXAMPLE_PHASES = RunPhases(total_ms=30e3, times={Phase.STEPS: 22_600.0, Phase.IMPORTS: 7_400.0})


def example(
    *trends: Trend, steps: RunSteps = EXAMPLE_STEPS, phases: RunPhases = EXAMPLE_PHASES,
    lines: tuple[StepLine, ...] = (), calls: tuple[SlowingCall, ...] = (), clocks: GpuClocks | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run of 330 steps with these trends."""
    return growing_step.check(phases, RunGrowth(trends, 20.0), steps, LongerTimes(lines, calls), clocks)


def sick() -> Verdict:
    """The default graph grows by 12 operations a step, and the steps get slower."""
    graph = replace(GROWS, what=Grows.GRAPH, first=400, last=4000, slope=180, low=170, high=190)
    at = Location("train.py", 48)
    line = StepLine(at=at, first_ms=36.0, last_ms=90.0, samples=180, calls="Session.run")
    return example(GROWS, graph, lines=(line,))


def healthy() -> Verdict:
    """The steps take the same time at the end."""
    return example(replace(GROWS, last=41.2, slope=0.01, low=-0.05, high=0.06))


TRAINS, OTHER = Location("train.py", 48), Location("train.py", 52)

STEP = replace(GROWS, first=40.0, last=80.0, slope=1.0, low=0.9, high=1.1, points=100)
STEPS = replace(equal_steps(TRAINS, 330, 60.0), source="repeated-call", total_ms=20_000.0, p10_ms=45.0, p90_ms=75.0)
PHASES = RunPhases(total_ms=25_000.0, times={Phase.STEPS: 20_000.0, Phase.IMPORTS: 5_000.0})
check = partial(example, steps=STEPS, phases=PHASES)


def grows(what: Grows, first: float, last: float, name: str = "") -> Trend:
    return replace(STEP, what=what, first=first, last=last, name=name)


def at(line: Location, first_ms: float, last_ms: float, samples: int = 50, **more: Any) -> StepLine:
    return StepLine(at=line, first_ms=first_ms, last_ms=last_ms, samples=samples, **more)


GRAPH = grows(Grows.GRAPH, 400, 4000)
FILES = grows(Grows.FILES, 4, 400)
LIST = at(OTHER, 5.0, 45.0)


def throttled(reason: str, samples: int) -> GpuClocks:
    return GpuClocks((GpuClock("GPU 0", 0, 100, {reason: samples}, {}, 1500.0),))


test_both_sides_of_each_limit = each_is(
    (check(STEP, FILES), Finding),
    (check(replace(STEP, last=48.0), FILES), Finding),
    (check(replace(STEP, last=47.9), FILES), Healthy),  # clocks and caches
    (check(replace(STEP, low=-0.1, last=47.9), FILES), Healthy),  # noise
    # Trap: a first epoch that is slow or fast by tracing, then a plateau
    (check(replace(STEP, steady=False), FILES), Healthy),
    (check(replace(STEP, over_steps=50), FILES), Finding),
    (check(replace(STEP, over_steps=49), FILES), NotApplicable),
    (check(replace(STEP, first=10.0, last=14.0), GRAPH), Healthy),  # 810 ms of 20 s
    # Other programs may hide a trend; but each operation that is added slows all later steps
    (check(replace(STEP, low=-0.1), FILES), NotApplicable),
    (check(replace(STEP, low=-0.1), GRAPH), Finding),
    (check(replace(STEP, low=-0.1, last=47.9), GRAPH), Healthy),
    # A throttled GPU explains the growth
    (check(STEP, lines=(LIST,), clocks=throttled("software-thermal", 10)), Healthy),
    (check(STEP, lines=(LIST,), clocks=throttled("software-thermal", 9)), Finding),
    (check(STEP, lines=(LIST,), clocks=throttled("power-cap", 90)), Finding),
    (check(), NotApplicable),
)


def test_the_cost_is_what_steps_take_beyond_the_first_one() -> None:
    """The trend's values lie at 14.5 and 95.5 % of the 330 steps."""
    finding = as_finding(check(STEP, GRAPH, calls=(RUNS,)))
    (effect,) = finding.run_effects
    assert effect.of.value == pytest.approx(330 * 40.0 / 0.81 / 2)
    assert (effect.phase, effect.recurs, effect.bound) == (Phase.STEPS, Recurrence.PER_STEP, Bound.AT_MOST)
    assert (finding.severity, finding.concern) == (None, Concern.RUN)
    assert finding.summary.startswith("Step time grew")  # before calls that get slower
    assert "the default graph grew by 12 operations a step" in finding.summary


def test_the_line_that_makes_operations_is_the_one_to_change() -> None:
    lines = at(TRAINS, 36.0, 70.0), at(OTHER, 3.0, 3.0, graph_samples=20)
    finding = as_finding(check(STEP, GRAPH, lines=lines))
    assert finding.at == OTHER
    assert "train.py:52 makes operations in each step" in finding.summary


SCRIPT = "<module>"


@pytest.mark.parametrize(
    "lines",
    [
        (LIST,),
        (at(OTHER, 39.0, 79.0),),  # a line is compared only where there is a rest
        # Trap: of two lines of the script's own level that grow, neither has half of it
        (at(OTHER, 5.0, 23.0, function=SCRIPT), at(Location("train.py", 53), 5.0, 21.0, function=SCRIPT)),
    ],
)
def test_a_line_that_holds_the_growth_is_the_cause(lines: tuple[StepLine, ...]) -> None:
    finding = as_finding(check(STEP, lines=lines))
    assert (finding.at, finding.severity) == (OTHER, None)
    assert finding.run_effects[0].subject == "train.py:52"


@pytest.mark.parametrize(
    ("beside", "lines"),
    [
        ((), (at(OTHER, 5.0, 45.0, samples=4),)),  # too few samples to name it
        ((), (at(OTHER, 5.0, 24.0),)),  # less than half of the growth
        ((), (at(TRAINS, 39.0, 79.0),)),  # the training call: its inputs may be longer
        ((), (at(OTHER, 20.0, 40.0),)),  # trap: all lines became slower by the same factor, as if throttled
        ((), ()),
        # Trap: of two lines one is the training call
        ((), (at(TRAINS, 30.0, 45.0, function=SCRIPT), at(OTHER, 5.0, 21.0, function=SCRIPT))),
        ((grows(Grows.OBJECTS, 1_000, 1_499, "dict"),), ()),  # counts that grow by little
        ((grows(Grows.GRAPH, 5_000, 5_400),), ()),
    ],
)
def test_growth_without_a_cause_has_no_price_and_says_so(
    beside: tuple[Trend, ...], lines: tuple[StepLine, ...]
) -> None:
    finding = as_finding(check(STEP, *beside, lines=lines))
    assert not finding.run_effects
    assert "the cause is unknown" in finding.summary
    assert finding.at is None


@pytest.mark.parametrize(
    ("trend", "words"),
    [
        (grows(Grows.FUNCTIONS, 10, 70), "tf.function"),
        (grows(Grows.OBJECTS, 1_000, 9_000, "Experience"), "live Experience objects"),
    ],
)
def test_the_remedy_follows_what_grows(trend: Trend, words: str) -> None:
    finding = as_finding(check(STEP, trend))
    assert words in finding.remedies[0].action
    assert finding.severity is None


def test_nothing_is_judged_of_a_window() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    assert applied(growing_step, part, RunGrowth((STEP,), 20.0)) == NotApplicable(reason=part.missing)


# Calls of a program that trains nothing


RUNS = SlowingCall(name="Session.run", at=Location("score.py", 10), calls=350, first_ms=4.0, last_ms=24.0)

SCORES = RunPhases(
    total_ms=20_000.0, times={Phase.PREDICTION: 8_000.0, Phase.IMPORTS: 12_000.0}, once_ms=12_000.0,
    lines=(RunLine(phase=Phase.PREDICTION, at=RUNS.at, ms=7_000.0, samples=70),),
)  # fmt: skip


def test_calls_of_a_program_that_trains_nothing_get_slower_too() -> None:
    finding = as_finding(check(replace(GRAPH, over_steps=0), phases=SCORES, calls=(RUNS,)))
    (effect,) = finding.run_effects
    assert (finding.at, finding.severity) == (RUNS.at, None)
    assert (effect.phase, effect.recurs) == (Phase.PREDICTION, Recurrence.PER_CALL)
    assert effect.of.value == pytest.approx(3_500.0 / 0.81)
    assert finding.summary == (
        "Session.run at score.py:10 got slower, from 4.00 to 24.0 ms over 350 calls; "
        "the default graph grew from 400 to 4,000 operations"
    )


@pytest.mark.parametrize("repeats", [True, False])
def test_the_line_that_makes_operations_for_calls_is_the_one_to_change(*, repeats: bool) -> None:
    maker = RunLine(phase=Phase.BUILDING, at=Location("score.py", 9), ms=100.0, samples=5, repeats=repeats)
    made = replace(SCORES, lines=(*SCORES.lines, maker))
    assert as_finding(check(GRAPH, phases=made, calls=(RUNS,))).at == (maker.at if repeats else RUNS.at)


def test_calls_without_a_cause_have_no_price() -> None:
    """Trap: a text that is generated word by word makes the input of predict longer."""
    finding = as_finding(check(phases=SCORES, calls=(RUNS,)))
    assert not finding.run_effects
    assert "longer inputs" in finding.summary


test_calls_that_lose_little_are_not_told = each_is(
    (check(GRAPH, phases=SCORES, calls=(replace(RUNS, calls=49),)), NotApplicable),
    (check(GRAPH, phases=SCORES, calls=(replace(RUNS, last_ms=4.7),)), NotApplicable),
    (check(GRAPH, phases=SCORES, calls=(replace(RUNS, calls=60, last_ms=14.0),)), NotApplicable),
)


# A graph that grows in each epoch


LONG = replace(
    STEPS, source="session-run", median_ms=4.0, long=LongSteps(count=66, ms=18_900.0, beyond_ms=18_700.0)
)
LEVEL = replace(STEP, first=60.0, last=6.0, slope=0.2, low=-20.0, high=12.0, steady=False)


def remade(making_ms: float, steps: RunSteps = LONG) -> Verdict:
    """A line outside of the steps makes operations in each epoch of a run of 25 s."""
    maker = run_line(Phase.BUILDING, OTHER, making_ms, "Optimizer.minimize")
    phases = divided_run(25_000.0, {Phase.BUILDING: making_ms}, maker)
    return check(LEVEL, GRAPH, steps=steps, phases=phases)


def test_a_graph_that_grows_in_each_epoch_needs_no_trend_of_the_steps() -> None:
    """The first step after each addition is long, and the others are as they were."""
    finding = as_finding(remade(5_000.0))
    assert finding.at == OTHER
    assert finding.remedies[0].action.startswith("Make all operations once")
    making, longer = finding.run_effects
    assert (making.phase, making.of.value, making.subject) == (Phase.BUILDING, 5_000.0, "train.py:52")
    assert (longer.phase, longer.of.value) == (Phase.STEPS, 20_000.0 - 330 * 4.0)
    assert finding.summary == (
        "train.py:52 makes operations again and again, which took 5.00 s, and the default graph grew by 12 "
        "operations a step; 66 long steps took 18.7 s beyond the usual time"
    )


test_operations_that_take_little_are_no_fault = each_is(
    (remade(1_250.0, steps=replace(LONG, long=None)), Finding),
    (remade(1_249.0, steps=replace(LONG, long=None)), Healthy),
)


# What is measured: lines per step in the first third of the steps and the last, and calls that certainly get slower


CALLS = {
    0: CallPlace(0, RunCall.SCRIPT),
    1: CallPlace(1, RunCall.STEP, ("train.py", 5), "train_step"),
    2: CallPlace(2, RunCall.BETWEEN),
    3: CallPlace(3, RunCall.EVALUATE),
    4: CallPlace(4, RunCall.FUNCTION, ("score.py", 10), "Session.run"),
    5: CallPlace(5, RunCall.PREDICT, ("score.py", 20), "Model.predict"),
}

STACKS = {
    0: SeenStack(0, call=2, at=("train.py", 52), calls="numpy.append", looped=True),
    1: SeenStack(1, call=1, at=("train.py", 48)),
    2: SeenStack(2, call=3, at=("train.py", 60), looped=True),  # evaluation is no part of a step
    3: SeenStack(3, call=0, at=("train.py", 9)),  # nor is what the script does before
    4: SeenStack(4, call=0, at=("train.py", 50), work=RunWork.BUILDING, looped=True),
    5: SeenStack(5, call=1),
}


def longer(*buckets: Bucket, spans: Sequence[float] = ()) -> LongerTimes:
    alone = tuple(Span(5, float(at), at + each / 1000) for at, each in enumerate(spans))
    run = RunLog(process=RunProcess(), calls=CALLS, stacks=STACKS, buckets=buckets, spans=alone)
    return chart(trace([]), replace(recording(), run=run)).fact(LongerTimes)


def lines(ms: Sequence[dict[str, float]], steps: int = 10) -> tuple[StepLine, ...]:
    each = (BucketSteps(steps=steps),) if steps else ()
    buckets = (
        Bucket(float(at), at + 1.0, stacks=stacks, samples=dict.fromkeys(stacks, 6), steps=each)
        for at, stacks in enumerate(ms)
    )
    return longer(*buckets).lines


def calls(ms: Sequence[float] = (), call: str = "4", spans: Sequence[float] = ()) -> tuple[SlowingCall, ...]:
    buckets = (Bucket(float(at), at + 1.0, {call: each * 5}, {call: 5}) for at, each in enumerate(ms))
    return longer(*buckets, spans=spans).calls


def test_a_line_that_grows_comes_first_with_its_time_at_both_ends() -> None:
    found = lines([{"0": 10.0 * at, "1": 300.0} for at in range(20)])
    assert [line.at for line in found] == [OTHER, TRAINS]
    first, last = found[0].first_ms, found[0].last_ms
    assert first == pytest.approx(sum(range(2, 8)) / 6)  # of buckets 2 to 7, without the first tenth
    assert last == pytest.approx(sum(range(14, 20)) / 6)
    assert (found[0].calls, found[0].samples) == ("numpy.append", 36)
    assert found[1].grown_ms == 0


def test_only_the_loop_of_the_steps_counts_and_samples_that_make_a_graph_are_told() -> None:
    found = lines([{str(number): 10.0 for number in STACKS}] * 20)
    assert {line.at.line: line.graph_samples for line in found} == {48: 0, 50: 36, 52: 0}


@given(st.lists(st.floats(0.0, 1e3), min_size=20, max_size=40))
def test_what_is_constant_does_not_grow_and_no_time_is_negative(ms: list[float]) -> None:
    for line in lines([{"0": one, "1": 5.0} for one in ms]):
        assert line.first_ms >= 0
        assert line.last_ms >= 0
        assert line.at.line != 48 or line.grown_ms == pytest.approx(0)


def test_too_few_steps_are_not_compared() -> None:
    assert lines([]) == lines([{"1": 1.0}]) == lines([{"1": 1.0}] * 20, steps=0) == ()


def test_a_recording_without_the_run_is_not_measured() -> None:
    with pytest.raises(Unavailable, match="as a whole"):
        chart(trace([]), recording()).fact(LongerTimes)


RISING = [2.0 + at for at in range(30)]


def test_calls_that_a_bucket_adds_up_get_slower() -> None:
    (call,) = calls(RISING)
    assert (call.name, call.at, call.calls) == ("Session.run", Location("score.py", 10), 150)
    assert call.first_ms < 10 < call.last_ms
    assert call.beyond_ms == pytest.approx(150 * 14.5, rel=0.07)  # the mean is 16.5 ms, the first 2


def test_calls_that_are_told_alone_get_slower_and_those_that_lose_most_come_first() -> None:
    found = calls(RISING, spans=[50.0 + 100 * at for at in range(30)])
    assert [(call.name, call.calls) for call in found] == [("Model.predict", 30), ("Session.run", 150)]


@pytest.mark.parametrize(
    "ms",
    [
        [5.0] * 30,
        [5.0 + at % 3 for at in range(30)],
        [min(at, 8.0) + 2 for at in range(30)],  # trap: a plateau, as of memory that warms up
        [30.0 - at for at in range(30)],
        [2.0, 9.0],
    ],
)
def test_calls_that_do_not_certainly_get_slower_are_left_out(ms: list[float]) -> None:
    assert calls(ms) == ()


def test_training_steps_are_judged_elsewhere() -> None:
    assert calls(RISING, call="1") == ()
