"""growing-step: steps that certainly get slower, with what grows along; and what only looks like it."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.applied import applied
from tests.rules.cases.growing_step import example
from tests.rules.run_facts import divided_run, run_line
from tests.rules.verdicts import as_finding
from tfdoctor.facts.machine.samples import GpuClock, GpuClocks
from tfdoctor.facts.phases.run_growth import Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.phases.run_steps import LongSteps, RunSteps
from tfdoctor.rules import growing_step
from tfdoctor.rules.growing_step.longer_times import SlowingCall, StepLine
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Bound, Concern, Finding, Healthy, Location, NotApplicable, Recurrence, Verdict

TRAINS, OTHER = Location("train.py", 48), Location("train.py", 52)

STEP = Trend(
    what=Grows.STEP, first=40.0, last=80.0, slope=1.0, low=0.9, high=1.1, steady=True, points=100, over_steps=300
)  # fmt: skip

STEPS = RunSteps(
    at=TRAINS, source="repeated-call", count=330, total_ms=20_000.0, mean_ms=60.0,
    median_ms=60.0, p10_ms=45.0, p90_ms=75.0,
)  # fmt: skip

PHASES = RunPhases(total_ms=25_000.0, times={Phase.STEPS: 20_000.0, Phase.IMPORTS: 5_000.0})


check = partial(example, steps=STEPS, phases=PHASES)


def grows(what: Grows, first: float, last: float, name: str = "") -> Trend:
    return replace(STEP, what=what, first=first, last=last, name=name)


def at(line: Location, first_ms: float, last_ms: float, samples: int = 50, graph: int = 0) -> StepLine:
    return StepLine(at=line, first_ms=first_ms, last_ms=last_ms, samples=samples, graph_samples=graph)


GRAPH = grows(Grows.GRAPH, 400, 4000)
FILES = grows(Grows.FILES, 4, 400)
LIST = at(OTHER, 5.0, 45.0)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, Finding),
        ({"last": 48.0}, Finding),
        ({"last": 47.9}, Healthy),  # clocks and caches
        ({"low": -0.1, "last": 47.9}, Healthy),  # noise
        ({"steady": False}, Healthy),  # trap: a first epoch that is slow or fast by tracing, then a plateau
        ({"over_steps": 50, "last": 80.0}, Finding),
        ({"over_steps": 49}, NotApplicable),
    ],
)
def test_both_sides_of_each_limit(changes: dict[str, Any], kind: type) -> None:
    assert isinstance(check(replace(STEP, **changes), FILES), kind)


def test_what_is_not_certain_is_not_judged_unless_the_graph_grows() -> None:
    """Other programs on the machine may hide a trend; but each operation that is added slows all later steps."""
    noisy = replace(STEP, low=-0.1)
    assert isinstance(check(noisy, FILES), NotApplicable)
    assert isinstance(check(noisy, GRAPH), Finding)
    assert isinstance(check(replace(noisy, last=47.9), GRAPH), Healthy)


def test_the_cost_is_what_steps_take_beyond_the_first_one() -> None:
    """The trend's values lie at 14.5 and 95.5 % of the 330 steps."""
    finding = as_finding(check(STEP, GRAPH))
    (effect,) = finding.run_effects
    assert effect.of.value == pytest.approx(330 * 40.0 / 0.81 / 2)
    assert (effect.phase, effect.recurs, effect.bound) == (Phase.STEPS, Recurrence.PER_STEP, Bound.AT_MOST)
    assert (finding.severity, finding.concern) == (None, Concern.RUN)
    assert "the default graph grew by 12 operations a step" in finding.summary


def test_growth_that_takes_little_of_the_steps_is_no_fault() -> None:
    short = replace(STEP, first=10.0, last=14.0)  # 810 ms of 20 s
    assert isinstance(check(short, GRAPH), Healthy)


def test_the_line_that_makes_operations_is_the_one_to_change() -> None:
    finding = as_finding(check(STEP, GRAPH, lines=(at(TRAINS, 36.0, 70.0), at(OTHER, 3.0, 3.0, graph=20))))
    assert finding.at == OTHER
    assert "train.py:52 makes operations in each step" in finding.summary


def test_a_line_that_holds_the_growth_is_the_cause() -> None:
    finding = as_finding(check(STEP, lines=(LIST,)))
    assert finding.at == OTHER
    assert finding.severity is None
    assert finding.run_effects[0].subject == "train.py:52"


@pytest.mark.parametrize(
    "lines",
    [
        (at(OTHER, 5.0, 45.0, samples=4),),  # too few samples to name it
        (at(OTHER, 5.0, 24.0),),  # less than half of the growth
        (at(TRAINS, 39.0, 79.0),),  # the training call: its inputs may be longer
        (at(OTHER, 20.0, 40.0),),  # trap: all lines became slower by the same factor, as on a throttled machine
        (),
    ],
)
def test_growth_without_a_cause_has_no_price_and_says_so(lines: tuple[StepLine, ...]) -> None:
    finding = as_finding(check(STEP, lines=lines))
    assert not finding.run_effects
    assert "the cause is unknown" in finding.summary
    assert finding.at is None


def test_a_line_is_compared_only_where_there_is_a_rest() -> None:
    assert as_finding(check(STEP, lines=(at(OTHER, 39.0, 79.0),))).at == OTHER


@pytest.mark.parametrize(
    ("reason", "samples", "kind"),
    [("software-thermal", 10, Healthy), ("software-thermal", 9, Finding), ("power-cap", 90, Finding)],
)
def test_a_throttled_gpu_explains_the_growth(reason: str, samples: int, kind: type) -> None:
    gpu = GpuClock("GPU 0", 0, 100, {reason: samples}, {}, 1500.0)
    assert isinstance(check(STEP, lines=(LIST,), clocks=GpuClocks((gpu,))), kind)


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


@pytest.mark.parametrize("trend", [grows(Grows.OBJECTS, 1_000, 1_499, "dict"), grows(Grows.GRAPH, 5_000, 5_400)])
def test_counts_that_grow_by_little_are_no_cause(trend: Trend) -> None:
    assert not as_finding(check(STEP, trend)).run_effects


def test_nothing_is_judged_of_a_window_or_a_run_without_steps() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    assert applied(growing_step, part, RunGrowth((STEP,), 20.0)) == NotApplicable(
        reason="only its window was traced"
    )
    assert isinstance(check(), NotApplicable)


RUNS = SlowingCall(name="Session.run", at=Location("score.py", 10), calls=350, first_ms=4.0, last_ms=24.0)

SCORES = RunPhases(
    total_ms=20_000.0,
    times={Phase.PREDICTION: 8_000.0, Phase.IMPORTS: 12_000.0},
    lines=(RunLine(phase=Phase.PREDICTION, at=RUNS.at, ms=7_000.0, samples=70),),
    once_ms=12_000.0,
)


def test_calls_of_a_program_that_trains_nothing_get_slower_too() -> None:
    finding = as_finding(check(replace(GRAPH, over_steps=0), phases=SCORES, calls=(RUNS,)))
    assert finding.at == RUNS.at
    (effect,) = finding.run_effects
    assert (effect.phase, effect.recurs) == (Phase.PREDICTION, Recurrence.PER_CALL)
    assert effect.of.value == pytest.approx(3_500.0 / 0.81)
    assert finding.summary == (
        "Session.run at score.py:10 got slower, from 4.00 to 24.0 ms over 350 calls; "
        "the default graph grew from 400 to 4,000 operations"
    )
    assert finding.severity is None


def test_the_line_that_makes_operations_for_calls_is_the_one_to_change() -> None:
    maker = RunLine(phase=Phase.BUILDING, at=Location("score.py", 9), ms=100.0, samples=5, repeats=True)
    made = replace(SCORES, lines=(*SCORES.lines, maker))
    assert as_finding(check(GRAPH, phases=made, calls=(RUNS,))).at == maker.at
    once = replace(SCORES, lines=(*SCORES.lines, replace(maker, repeats=False)))
    assert as_finding(check(GRAPH, phases=once, calls=(RUNS,))).at == RUNS.at


SCRIPT = "<module>"


def test_lines_of_the_scripts_own_level_share_the_growth() -> None:
    """Trap: of two lines that grow, neither has half of it."""
    other = replace(at(OTHER, 5.0, 23.0), function=SCRIPT)
    third = replace(at(Location("train.py", 53), 5.0, 21.0), function=SCRIPT)
    finding = as_finding(check(STEP, FILES, lines=(other, third)))
    assert finding.at == OTHER
    assert finding.severity is None


def test_the_training_call_is_not_joined_with_the_lines_beside_it() -> None:
    """Trap: a machine that gets slower, or inputs that get longer, slow the training call."""
    trains = replace(at(TRAINS, 30.0, 45.0), function=SCRIPT)
    other = replace(at(OTHER, 5.0, 21.0), function=SCRIPT)
    finding = as_finding(check(STEP, FILES, lines=(trains, other)))
    assert finding.at != OTHER
    assert "of it" not in finding.summary


def test_calls_without_a_cause_have_no_price() -> None:
    """Trap: a text that is generated word by word makes the input of predict longer."""
    finding = as_finding(check(phases=SCORES, calls=(RUNS,)))
    assert not finding.run_effects
    assert "longer inputs" in finding.summary


@pytest.mark.parametrize("changes", [{"calls": 49}, {"last_ms": 4.7}, {"calls": 60, "last_ms": 14.0}])
def test_calls_that_lose_little_are_not_told(changes: dict[str, Any]) -> None:
    assert isinstance(check(GRAPH, phases=SCORES, calls=(replace(RUNS, **changes),)), NotApplicable)


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
    assert (making.phase, making.of.value, making.subject) == (
        Phase.BUILDING, 5_000.0, "train.py:52"
    )  # fmt: skip
    assert (longer.phase, longer.of.value) == (Phase.STEPS, 20_000.0 - 330 * 4.0)
    assert finding.summary == (
        "train.py:52 makes operations again and again, which took 5.00 s, and the default graph grew by 12 "
        "operations a step; 66 long steps took 18.7 s beyond the usual time"
    )


def test_operations_that_take_little_are_no_fault() -> None:
    even = replace(LONG, long=None)
    assert isinstance(remade(1_250.0, steps=even), Finding)
    assert isinstance(remade(1_249.0, steps=even), Healthy)


def test_steps_that_get_slower_come_before_calls() -> None:
    assert as_finding(check(STEP, GRAPH, calls=(RUNS,))).summary.startswith("Step time grew")
