"""padding-waste: sequences that are mostly zeros at their ends, and what only looks like them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import chart, recording, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program, RunSettings, Shape
from tfdoctor.facts.savings.length_work import LengthWork
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules import padding_waste
from tfdoctor.units import ms
from tfdoctor.verdict import Bound, Finding, Healthy, Measure, Severity, Stage, StepWork, Verdict


def row(name: str, *shapes: Shape, calls: float = 1.0) -> OperationTime:
    graph = Operation(name=name, type="X", inputs=tuple(("float32", shape) for shape in shapes))
    return OperationTime(name=name, type="X", ms=10.0, operation=graph, calls=calls)


def check(
    used: float,
    *rows: OperationTime,
    steps: int = 200,
    breakdown: Breakdown | None = None,
    loops: LoopWork | None = None,
    program: Program | None = None,
) -> Verdict:
    padding = SequencePadding((PaddedInput(steps, ((round(used * steps),) * 8,)),))
    operations = Operations(rows or (row("a", (32, steps, 8)),))
    parts = breakdown or Breakdown.of(device=30.0)
    work = LengthWork.measure(padding, operations, loops, program)
    return padding_waste.check(padding, work, parts, program)


def scales(verdict: Verdict) -> dict[str, float]:
    assert isinstance(verdict, Finding)
    return {effect.subject: effect.scales for effect in verdict.effects}


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


def test_the_host_starts_a_loop_once_for_each_position() -> None:
    """Of 256 positions 26 are used: the host's time scales as the operations do, so the bound includes it."""
    cell = row("while/body/Mul", (32, 8), calls=90.0)  # some of its calls were not recorded
    loop = GraphLoop("while", 200.0, 90.0, 10.0, (cell,))
    parts = Breakdown.of(host=40.0, device=10.0)
    finding = check(0.1, cell, breakdown=parts, loops=LoopWork((loop,), 30.0, 35.0))
    assert isinstance(finding, Finding)
    device, host = finding.effects
    assert (device.stage, device.scales, device.of) == (Stage.DEVICE, 0.1, ms(10.0))
    assert (host.stage, host.scales, host.of) == (Stage.HOST, 0.1, ms(40.0))
    assert host.subject == StepWork.SCHEDULING


@pytest.mark.parametrize("iterations", [3.0, 99.0])
def test_a_loop_that_is_shorter_than_the_sequences_is_not_over_time(iterations: float) -> None:
    cell = row("while/body/Mul", (32, 8), calls=iterations)
    loops = LoopWork((GraphLoop("while", iterations, 3.0, 10.0, (cell,)),), 30.0, 35.0)
    parts = Breakdown.of(host=40.0, device=20.0)
    assert scales(check(0.1, row("a", (32, 200, 8)), cell, breakdown=parts, loops=loops)) == {
        "a": 0.1
    }


def test_transfers_of_batches_scale() -> None:
    parts = Breakdown.of(transfer=5.0, device=10.0)
    assert scales(check(0.5, breakdown=parts)) == {"a": 0.5, "": 0.5}


@pytest.mark.parametrize(
    ("shape", "times"),
    [
        ((200, None, 8), 1),  # time comes first
        ((200, 300), 0),  # weights
        ((None, 8), 1),  # may be all positions of all sequences
        ((None, 20, 8), 0),
        ((32, None, 8), 1),
        ((32, 8), 0),
    ],
)
def test_what_may_be_as_long_as_the_sequences_counts(shape: Shape, times: int) -> None:
    found = scales(check(0.5, row("a", (32, 200, 8)), row("b", shape)))
    assert found == {"a": 0.5} | ({"b": 0.5} if times else {})


def test_work_of_unknown_length_counts_in_proportion_and_is_shown() -> None:
    unknown = OperationTime(name="b", type="X", ms=7.0)
    finding = check(0.5, row("scores", (32, 4, 200, 200)), unknown)
    assert scales(finding) == {"scores": 0.25, "b": 0.5}
    assert isinstance(finding, Finding)
    assert ms(7.0) in [entry.value for entry in finding.evidence if isinstance(entry, Measure)]


def test_open_sizes_count_by_their_number() -> None:
    rows = row("dense", (None, None, 8)), row("scores", (None, 4, None, None))
    assert scales(check(0.5, *rows)) == {"dense": 0.5, "scores": 0.25}


def test_rows_of_a_layer_are_positions_if_the_layer_has_time() -> None:
    """A dense layer makes rows of all positions; the same shape after pooling has one row for each example."""
    dense, head = (
        replace(row(f"{name}/MatMul", (None, 8)), layer=name) for name in ("dense", "head")
    )
    reshaped = Operation(name="dense/Reshape", type="Reshape", inputs=(("float32", (32, 200, 8)),))
    program = Program((replace(reshaped, layer="dense"),), ())
    found = scales(check(0.5, row("a", (32, 200, 8)), dense, head, program=program))
    assert found == {"a": 0.5, "dense/MatMul": 0.5}


def test_the_host_shrinks_by_the_calls_of_the_loop() -> None:
    cell = row("while/body/Mul", (32, 8), calls=150.0)
    others = row("adam/Mul", (8, 8), calls=50.0)
    parts = Breakdown.of(host=40.0, device=20.0)
    finding = check(0.5, cell, others, breakdown=parts)
    assert isinstance(finding, Finding)
    assert [effect.of for effect in finding.effects if effect.stage is Stage.HOST] == [ms(30.0)]


def padded(*batches: tuple[int, ...], sizes: tuple[int, ...]) -> Verdict:
    entry = PaddedInput(max(sizes), batches, batches=True, sizes=sizes)
    padding = SequencePadding((entry,))
    operations = Operations((row("a", (2, max(sizes), 8)),))
    work = LengthWork.measure(padding, operations, None, None)
    return padding_waste.check(padding, work, Breakdown.of(device=30.0), None)


def test_batches_as_long_as_their_longest_sequence_are_healthy() -> None:
    """Trap: half of them is padding, which only batches of similar lengths avoid."""
    assert isinstance(padded((40, 10), (90, 20), sizes=(40, 100)), Healthy)
    assert isinstance(padded((40, 10), (80, 20), sizes=(40, 120)), Finding)
    assert isinstance(padded((100, 10), (100, 20), sizes=(100, 100)), Finding)  # a fixed length


def test_batches_before_time_are_known_by_their_size() -> None:
    program = Program((), (), settings=RunSettings(batch_size=32))
    found = scales(check(0.5, row("a", (200, 32, 8)), row("b", (200, 30, 8)), program=program))
    assert found == {"a": 0.5}


def test_unknown_work_alone_is_no_work_on_sequences() -> None:
    finding = check(0.5, OperationTime(name="b", type="X", ms=10.0))
    assert isinstance(finding, Finding)
    assert finding.effects == ()


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


def test_lengths_are_shares_of_their_own_batch() -> None:
    (entry,) = measured(lengths=[[40] * 9, [20] * 9], steps=[50, 200], batches=True).inputs
    assert entry.steps == 200
    assert entry.used == pytest.approx(540 / 2250)


def test_padding_at_the_beginning_counts_and_rows_without_any_do_not_count_twice() -> None:
    assert measured(leading=True).inputs[0].leading
    with pytest.raises(Unavailable):
        measured(leading=True, lengths=[[100] * 9])


def test_an_old_recording_says_what_is_missing() -> None:
    with pytest.raises(Unavailable, match="record the run again"):
        chart(trace([]), recording({"graphs": []})).fact(SequencePadding)
