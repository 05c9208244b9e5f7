"""padding-waste: sequences that are mostly zeros at their ends, and what only looks like them."""

from typing import Any

import pytest

from tests.builders import chart, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules import padding_waste
from tfdoctor.verdict import Bound, Finding, Healthy, Severity, Verdict


def row(name: str, *shapes: tuple[int, ...], calls: float = 1.0) -> OperationTime:
    graph = Operation(name=name, type="X", inputs=tuple(("float32", shape) for shape in shapes))
    return OperationTime(name=name, type="X", ms=10.0, operation=graph, calls=calls)


def check(used: float, *rows: OperationTime, steps: int = 200) -> Verdict:
    padding = SequencePadding((PaddedInput(steps, ((round(used * steps),) * 8,)),))
    return padding_waste.check(padding, Operations(rows or (row("a", (32, steps, 8)),)), None)


@pytest.mark.parametrize(("used", "kind"), [(0.75, Finding), (0.755, Healthy), (0.95, Healthy)])
def test_a_quarter_of_padding_is_reported(used: float, kind: type) -> None:
    assert isinstance(check(used), kind)


def test_work_scales_with_each_dimension_of_time() -> None:
    rows = [row("dense", (32, 200, 8)), row("scores", (32, 4, 200, 200)), row("head", (32, 8))]
    finding = check(0.5, *rows)
    assert isinstance(finding, Finding)
    assert {e.subject: e.scales for e in finding.effects} == {"dense": 0.5, "scores": 0.25}
    assert all(effect.bound is Bound.AT_MOST for effect in finding.effects)


@pytest.mark.parametrize(("calls", "number"), [(100.0, 1), (99.0, 0)])
def test_a_loop_over_time_scales_too(calls: float, number: int) -> None:
    finding = check(0.5, row("cell", (32, 8), calls=calls))
    assert isinstance(finding, Finding)
    assert len(finding.effects) == number
    assert finding.severity is (None if number else Severity.NOTE)


def measured(**parts: Any) -> SequencePadding:
    entry = {
        "shape": [64, 100], "lengths": [[40] * 9], "dtype": "int64", "begins": 1.0, "gaps": 0.0,
    }  # fmt: skip
    record = {"sequences": [entry | parts]}
    return chart(trace([]), recording(record)).fact(SequencePadding)


def test_the_recorded_lengths_are_what_is_used() -> None:
    (entry,) = measured().inputs
    assert (entry.steps, entry.trimmed) == (100, None)
    assert entry.used == pytest.approx(0.4)
    (entry,) = measured(lengths=[[40] * 9, [20] * 9], batches=True).inputs
    assert [entry.used, entry.trimmed] == pytest.approx([0.3, 0.3])


@pytest.mark.parametrize(
    "parts",
    [
        {
            "begins": 0.97
        },  # trap: images with black borders, and series that are aligned to the right
        {"gaps": 0.06},  # trap: one-hot and sparse features
        {"shape": [64, 15], "lengths": [[4] * 9]},  # trap: columns of a table
        {"lengths": [[40] * 7]},
    ],
)
def test_other_zeros_are_no_padding(parts: Any) -> None:
    with pytest.raises(Unavailable):
        measured(**parts)


@pytest.mark.parametrize("parts", [{"begins": 0.98}, {"gaps": 0.05}, {"lengths": [[40] * 8]}])
def test_the_other_sides_of_these_limits(parts: Any) -> None:
    assert len(measured(**parts).inputs) == 1


def test_an_old_recording_says_what_is_missing() -> None:
    with pytest.raises(Unavailable, match="record the run again"):
        chart(trace([]), recording({"graphs": []})).fact(SequencePadding)
