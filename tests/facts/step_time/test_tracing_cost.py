"""TracingCost: what the profiler takes of each part, and what remains."""

import pytest

from tests.builders import chart, executor, line, manifest, marker, recording, trace
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.tracing_cost import MOST_MS, TracingCost
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import StepsSeen, UntracedSteps
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Effect, Stage
from tfdoctor.trace import Trace

PARTS = {"host": 3.0, "device": 1.0, "input": 0.0}


def test_the_cost_belongs_to_the_parts_with_the_events() -> None:
    cost = TracingCost.of(PARTS, {"host": 2000.0, "device": 0.0}, 2.0)
    assert cost.each_ms == pytest.approx(0.001)
    assert cost.untraced == pytest.approx({"host": 1.0, "device": 1.0, "input": 0.0})
    assert cost.kept("host") == pytest.approx(1 / 3)


@pytest.mark.parametrize("slower", [1.1, 1.6, 3.0])
def test_the_parts_sum_to_the_untraced_step(slower: float) -> None:
    cost = TracingCost.of(PARTS, {"host": 700.0, "device": 200.0}, slower)
    assert sum(cost.untraced.values()) == pytest.approx(4.0 / slower)


def test_what_events_cannot_explain_slows_all_parts_alike() -> None:
    """Trap: another program that ran beside the traced steps."""
    cost = TracingCost.of(PARTS, {"host": 100.0}, 2.0)
    assert cost.each_ms == MOST_MS
    assert cost.kept("device") == pytest.approx(2.0 / (4.0 - 100 * MOST_MS))


def test_no_part_disappears() -> None:
    cost = TracingCost.of(PARTS, {"device": 100_000.0}, 1.5)
    assert cost.untraced["device"] > 0


def traced(untraced_ms: float | None) -> Chart:
    """Steps of 2 ms: a hundred events of the host, and an operation of 1 ms."""
    rows, work = [marker(n, 2.0 * n, 2.0 * n + 2.0) for n in range(10)], []
    for n in range(10):
        rows += [("TFE", 2.0 * n + 0.001 * k, 2.0 * n + 0.001 * k) for k in range(100, 200)]
        work += [executor(2.0 * n + 0.5, 2.0 * n + 1.5)]
        work += [("model/MatMul:MatMul", 2.0 * n + 0.5, 2.0 * n + 1.5)]
    seen = StepsSeen(untraced=UntracedSteps(90, untraced_ms, "steps"))
    beside = recording(manifest=manifest(steps=seen))
    end = ("tfdoctor_end", 20.0, 20.0)
    return chart(trace([line("python", *rows, end), line("tf_Compute", *work)]), beside)


def test_the_model_of_distorted_steps_is_that_of_the_untraced_step() -> None:
    facts = traced(1.25)
    model = facts.fact(StepModel)
    assert model.step_ms == pytest.approx(1.25)
    assert (model.distorted, model.trusted) == (False, False)
    cost = facts.fact(TracingCost)
    assert cost.kept("host") < cost.kept("device")
    effect = Effect(Stage.HOST, 0.0, "call", ms(1.0))
    assert model.saving([effect]) == pytest.approx(cost.untraced["host"], rel=0.01)


def test_the_model_of_steps_that_tracing_hardly_slows_is_that_of_the_traced_step() -> None:
    model = traced(1.95).fact(StepModel)
    assert model.step_ms == pytest.approx(2.0)
    assert model.tracing is None


def test_the_model_of_slowed_steps_is_trusted_without_the_cost() -> None:
    model = traced(1.5).fact(StepModel)
    assert model.step_ms == pytest.approx(1.5)
    assert (model.distorted, model.trusted) == (False, True)


def test_nothing_is_predicted_where_the_profiler_took_most_of_the_step() -> None:
    """Trap: an estimate of a cost that is longer than the step itself is not good enough for what remains."""
    model = traced(0.99).fact(StepModel)
    assert model.step_ms == pytest.approx(0.99)
    assert model.distorted


def test_nothing_is_known_without_untraced_steps() -> None:
    with pytest.raises(Unavailable):
        traced(None).fact(TracingCost)


@pytest.mark.parametrize(("untraced_ms", "said"), [(1.9, "each traced step"), (1.95, "each step")])
def test_sentences_about_slowed_steps_say_that_they_were_traced(untraced_ms: float, said: str) -> None:
    assert traced(untraced_ms).fact(Breakdown).each_step == said


def test_a_bound_leaves_what_no_event_explains_to_the_rest() -> None:
    """The step takes half as long untraced, and no event says where: then all of it may be in what remains."""
    cost = TracingCost.of({"host": 12.0, "device": 8.0}, {}, 2.0)
    assert cost.least(10.0) == pytest.approx(10.0)
    assert cost.least(8.0) == pytest.approx(6.0)
    assert cost.least(4.0) == pytest.approx(2.0)


def test_of_a_cost_that_the_events_explain_nothing_is_unknown() -> None:
    cost = TracingCost.of({"host": 12.0, "device": 8.0}, {"host": 10_000.0}, 2.0)
    assert cost.scale == pytest.approx(1.0)
    assert cost.least(4.0) == pytest.approx(4.0)


@pytest.mark.parametrize(("cost_ms", "left"), [(0.0, 1.0), (2.0, 0.5), (4.0, 0.1)])
def test_traced_work_keeps_what_its_events_do_not_take(cost_ms: float, left: float) -> None:
    assert TracingCost.left(4.0, cost_ms) == pytest.approx(left)


def test_no_work_has_no_cost() -> None:
    assert TracingCost.left(0.0, 1.0) == 1.0


def test_the_models_input_is_without_the_profilers_cost() -> None:
    """500 elements a step pass two stages on a thread of the input; each call is an event."""
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    slow = StageTime(path="Root::Prefetch::Map", kind="Map", work_ms=1.5, wall_ms=1.5, calls=500.0)
    source = StageTime(path="Root::Prefetch::Map::Range", kind="Range", wall_ms=0.5, calls=500.0)
    parts = [traced(1.25).fact(part) for part in (Trace, Recording)]
    facts = Chart([*parts, InputPipeline.of(ahead, slow, source)])
    each_ms = facts.fact(TracingCost).each_ms
    (segment,) = facts.fact(StepModel).segments
    assert each_ms > 0
    assert segment.ms == pytest.approx(2.0 - 1000 * each_ms)
