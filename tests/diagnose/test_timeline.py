"""The timeline of a typical step: what it shows is what the breakdown counts, and it stays small;

and which findings are about which work in it, by a stage, a part, an operation or an input's stage.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.diagnose.summary.timeline import NEITHER, TimelineWork, about, few, marks_of, timeline
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.step import PARTS, Timeline
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Stage, StepWork
from tfdoctor.trace import xplane

SAMPLES = Path(__file__).parents[2] / "sample_traces"

ROUNDED = 2e-4  # ms by which two rounded places of a bar may be off
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


def chart_of(name: str) -> Chart:
    recording = Recording.open(SAMPLES / name)
    return Chart([xplane.read(recording.traces[0]), recording])


@pytest.fixture(scope="module", params=NAMES)
def drawn(request: pytest.FixtureRequest) -> tuple[Chart, Timeline]:
    chart = chart_of(request.param)
    found = timeline(chart, ())
    if found is None:
        assert chart.get(Steps) is None or chart.get(Breakdown) is None
        pytest.skip("no steps")
    return chart, found


def test_the_step_lane_covers_the_step_once(drawn: tuple[Chart, Timeline]) -> None:
    _, found = drawn
    bars = found.lanes[0].bars
    assert found.lanes[0].name == "step"
    assert sum(bar.duration_ms for bar in bars) == pytest.approx(found.total_ms, rel=1e-3, abs=ROUNDED * len(bars))


def test_the_step_lane_has_the_parts_of_the_breakdown(drawn: tuple[Chart, Timeline]) -> None:
    chart, found = drawn
    breakdown, steps = chart.get(Breakdown), chart.get(Steps)
    assert breakdown is not None
    assert steps is not None
    at = next(n for n, step in enumerate(steps.steps) if step.number == found.number)
    for part, time in breakdown.steps[at].items():
        shown = sum(bar.duration_ms for bar in found.lanes[0].bars if PARTS[bar.part] == part)
        expected = time * steps.steps[at].calls
        assert shown == pytest.approx(expected, abs=0.02 * found.total_ms + 0.01)


def test_bars_lie_within_the_step_in_order_and_apart(drawn: tuple[Chart, Timeline]) -> None:
    _, found = drawn
    for lane in found.lanes:
        for bar, after in zip(lane.bars, lane.bars[1:], strict=False):
            assert bar.start_ms + bar.duration_ms <= after.start_ms + ROUNDED
        assert lane.bars[0].start_ms >= 0
        assert lane.bars[-1].start_ms + lane.bars[-1].duration_ms <= found.total_ms + ROUNDED


def test_the_wait_for_input_stands_above_the_stage_that_causes_it() -> None:
    found = timeline(chart_of("cpu-input-bound"), ())
    assert found is not None
    names = [lane.name for lane in found.lanes if lane.name]
    assert names == ["step", "input: MapAndBatch(prepare)", "input: Shuffle", "operations"]
    wait = max((bar for bar in found.lanes[0].bars if PARTS[bar.part] == "input"), key=lambda b: b.duration_ms)
    end = wait.start_ms + wait.duration_ms
    work = sum(
        max(0.0, min(bar.start_ms + bar.duration_ms, end) - max(bar.start_ms, wait.start_ms))
        for lane in found.lanes[1:3]
        for bar in lane.bars
    )
    assert work > 0.8 * wait.duration_ms


bars = st.lists(
    st.tuples(st.floats(0, 0.01), st.floats(0, 0.01), st.sampled_from(["device", "host"])), max_size=300
)


@given(bars, st.integers(1, 40))
def test_however_many_there_are_few_are_drawn_and_no_time_is_lost(
    pieces: list[tuple[float, float, str]], most: int
) -> None:
    at, made = 0.0, []
    for gap, time, part in pieces:
        made.append(TimelineWork(at + gap, time, part, part))
        at += gap + time
    ((_, lane),) = few([("a", made)], max(at, 1e-3), most)
    assert len(lane) <= most
    assert sum(bar.pieces for bar in lane) == len(made)
    covered = sum(bar.duration_ms for bar in lane)
    assert covered >= sum(bar.duration_ms for bar in made) - 1e-9


def marked(name: str, *effects: Effect) -> Result:
    finding = Finding(summary="", evidence=(), remedies=(), effects=effects)
    rule = Rule.named(name, Topic.OPERATIONS, name, own=False, general=False)
    return Result(rule=rule, outcome=finding)


def test_a_whole_stage_is_all_of_its_work_and_its_part_of_the_step() -> None:
    marks = marks_of([marked("input-bound", Effect(Stage.INPUT, 0.0))])
    assert about(marks, "input", NEITHER) == about(marks, Stage.INPUT, "Map") == ("input-bound",)
    assert about(marks, "device", NEITHER) == about(marks, Stage.DEVICE, "Map") == ()


def test_an_operation_is_known_by_its_name_or_as_one_of_several() -> None:
    norm = Effect(Stage.DEVICE, 0.5, "bn", ms(2.0), parts=("bn/mul", "bn/sub"))
    marks = marks_of([marked("unfused-batch-norm", norm), marked("hot", Effect(Stage.DEVICE, 0.0))])
    assert about(marks, Stage.DEVICE, "bn/mul") == ("hot", "unfused-batch-norm")
    assert about(marks, Stage.DEVICE, "conv", "kernel") == about(marks, "device", NEITHER) == ("hot",)


def test_what_is_neither_operation_nor_stage_is_its_part_of_the_step_alone() -> None:
    marks = marks_of([marked("retracing", Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(1.0)))])
    assert (about(marks, "host", NEITHER), about(marks, Stage.HOST, "launch")) == (("retracing",), ())


def test_what_gets_longer_by_a_change_is_not_what_is_wrong() -> None:
    slower = marked("float32-matmul", Effect(Stage.DEVICE, 1.2, "bn", ms(2.0)))
    healthy = Result(rule=slower.rule, outcome=Healthy(summary="fine"))
    assert marks_of([slower, healthy]) == {}
