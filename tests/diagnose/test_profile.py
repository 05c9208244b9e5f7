"""The profile of a step: what takes most of it, the longest first, with its distance from the hardware's rates."""

from typing import Any

import pytest

from tests.diagnose.test_accounts import chart_of
from tfdoctor.diagnose.summary.profile import FEW, LEAST, SHOWN, profile
from tfdoctor.diagnosis.work import Profile, ProfileRow, WorkKind
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown, TracingCost
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.host_time import PartEvent, PartEvents
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Location, Stage

AT, OTHER = Location("train.py", 7), Location("train.py", 9)


def group(kind: str, time: float, at: Location | None = AT, **more: Any) -> OperationGroup:
    row = OperationTime(name=f"{kind}{time}", type=kind, ms=time, at=at)
    given: dict[str, Any] = {"layers": (), "missing": "shapes unknown", **more}
    return OperationGroup(type=kind, at=at, rows=(row,), **given)


def rows(*given: object, **parts: float) -> tuple[ProfileRow, ...]:
    return profile(chart_of(*given, **parts)).rows


def test_operations_of_a_type_and_line_are_one_row() -> None:
    """The facts keep those of a loop and of a part of Keras apart."""
    inner = group("Mul", 10.0, loop="map/while", least_ms=4.0)
    given = OperationGroups((group("Mul", 30.0, least_ms=16.0), inner, group("Mul", 9.0, OTHER)))
    first, second = rows(given, device=100.0)
    assert (first.kind, first.what, first.at) == (WorkKind.OPERATION, "Mul", AT)
    assert (first.ms, first.share, first.attained) == pytest.approx((40.0, 0.4, 0.5))
    assert (second.attained, second.unknown) == (None, "shapes unknown")


def test_a_product_of_unknown_peak_is_compared_with_the_fastest_of_the_run() -> None:
    slow = group("Conv2D", 40.0, gflop_s=20.0, best_gflop_s=80.0)
    unknown = group("Conv2D", 30.0, OTHER)
    first, second = rows(OperationGroups((slow, unknown)), device=100.0)
    assert (first.attained, first.of_fastest) == (None, 0.25)
    assert second.of_fastest is None


def test_python_of_a_part_is_divided_by_line_and_call() -> None:
    """Of ten samples three are in a function that is seen too rarely to be named."""
    line = TimedLine(AT, 10, 5.0, calls={"numpy.histogram": 7, "numpy.sort": 3})
    waits = TimedLine(OTHER, 6, 3.0, calls={"a.b": 6}, work=LineWork.DISPATCHING)
    (part,) = profile(chart_of(HostLines({Stage.HOST: (line, waits)}), host=8.0)).python
    assert (part.part, part.ms) == ("host", 8.0)
    assert [(one.at, one.calls, one.ms, one.samples) for one in part.lines] == [
        (AT, "numpy.histogram", 3.5, 7),
        (OTHER, "between the operations of a compiled function", 3.0, 6),
        (AT, "", 1.5, 3),
    ]


def test_a_line_of_few_samples_is_no_row_but_its_caller_may_be() -> None:
    lines = [TimedLine(Location("help.py", n), 3, 3.0, callers={AT: 3}) for n in range(2)]
    (line,) = rows(HostLines({Stage.HOST: (*lines, TimedLine(OTHER, FEW - 1, 4.0))}), host=100.0)
    assert (line.kind, line.at, line.ms, line.part) == (WorkKind.LINE, AT, 6.0, "host")


def test_a_line_is_named_by_what_it_does() -> None:
    lines = (
        TimedLine(AT, 9, 9.0, "Log.on_train_batch_end"),
        TimedLine(AT, 8, 8.0, work=LineWork.ENTERING),
        TimedLine(AT, 7, 7.0, calls={"numpy.histogram": 7}),
        TimedLine(AT, 6, 6.0, calls={"": 6}),
    )
    assert [row.what for row in rows(HostLines({Stage.HOST: lines}), host=100.0)] == [
        "Log.on_train_batch_end",
        "entering a compiled function",
        "numpy.histogram",
        "Python",
    ]


def test_without_samples_the_events_of_threads_are_shown() -> None:
    events = PartEvents({Stage.HOST: (PartEvent("Execute", "python", 8.0),)})
    (row,) = rows(events, host=100.0)
    assert (row.what, row.ms, row.at) == ("Execute (thread python)", 8.0, None)


def test_events_of_threads_that_overlap_take_no_more_than_their_part() -> None:
    threads = (PartEvent("a", "one", 90.0), PartEvent("b", "two", 30.0))
    found = rows(PartEvents({Stage.HOST: threads}), host=40.0, device=60.0)
    assert [row.ms for row in found] == pytest.approx([30.0, 10.0])


def test_samples_without_a_time_divide_the_time_between_steps() -> None:
    samples = StackSamples((TimedLine(AT, 15), TimedLine(OTHER, 5)))
    first, second = rows(samples, between=40.0, device=60.0)
    assert [(row.at, row.ms) for row in (first, second)] == [(AT, 30.0), (OTHER, 10.0)]


@pytest.mark.parametrize(("wait", "beside"), [(0.0, [True, True]), (30.0, [False, True])])
def test_stages_that_no_step_waits_for_work_beside_it(wait: float, beside: list[bool]) -> None:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    slow = StageTime.of("Root::Prefetch::Map", 40.0)
    other = StageTime.of("Root::Prefetch::ParallelMapV2", 9.0)
    pipeline, breakdown = (InputPipeline.of(ahead, slow, other), Breakdown.of(input=wait, device=45.0))
    model = StepModel(device=DeviceKind.GPU, exposed=breakdown.median, segments=pipeline.segments)
    found = profile(Chart([breakdown, model, pipeline]))
    assert [row.beside for row in found.rows] == beside
    assert [row.what for row in found.rows] == ["Map", "ParallelMapV2"]


def test_shorter_rows_are_counted_with_their_time() -> None:
    many = [group(f"Op{n}", 5.0 - 0.1 * n) for n in range(SHOWN + 3)]
    found = profile(chart_of(OperationGroups(tuple(many)), device=100.0))
    assert len(found.rows) == SHOWN
    assert found.omitted == 3
    assert found.omitted_ms == pytest.approx(sum(5.0 - 0.1 * (SHOWN + more) for more in range(3)))
    little = (group("Mul", 50.0), group("Neg", 100.0 * LEAST - 0.01, OTHER))
    assert len(rows(OperationGroups(little), device=100.0)) == 1


def test_times_are_those_of_the_shown_step() -> None:
    """Of 30 traced ms, the profiler has its part."""
    tracing = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)
    breakdown = Breakdown.of(device=30.0, host=10.0)
    model = StepModel(device=DeviceKind.CPU, exposed=tracing.untraced, tracing=tracing)
    (row,) = profile(Chart([breakdown, model, OperationGroups((group("Mul", 30.0),))])).rows
    assert row.ms == pytest.approx(tracing.untraced["device"])
    assert row.share == pytest.approx(row.ms / model.step_ms)


def test_without_steps_there_is_no_profile() -> None:
    assert profile(Chart([])) == Profile()
