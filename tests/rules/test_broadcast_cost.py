"""broadcast-cost: repetitions that broadcasting makes unnecessary."""

from typing import Any

import pytest

from tests.builders import all_ran, graph_operation, program_of
from tests.rules.cases.broadcast_cost import TILE, example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.rules import broadcast_cost
from tfdoctor.rules.broadcast_cost import ExpandedProduct, Limits
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Verdict

GPU = Hardware(DeviceKind.GPU, "x")


def check(
    given: Any = (8, 1, 64), ms: float = 20.0, user: str = "Mul", name: str = "tile", hardware: Hardware = GPU
) -> Verdict:
    small, full = ["float32", list(given)], ["float32", [8, 128, 64]]
    rows = [
        graph_operation(name, "Tile", [small], [full], **{"from": [None]}),
        graph_operation("use", user, [full, full], [full], **{"from": [0, None]}),
    ]
    program = program_of(*rows)
    tile = OperationTime(name=name, type="Tile", ms=ms, operation=program.by_name[name])
    facts = [program, Operations.training(100.0, tile), hardware]
    return Chart(facts).call(broadcast_cost.check)


def test_the_whole_repetition_is_a_ceiling() -> None:
    finding = as_finding(check())
    (effect,) = finding.effects
    assert (effect.subject, effect.scales, effect.bound) == ("tile", 0.0, Bound.AT_MOST)


def test_what_reads_the_repetition_reads_the_small_tensor_instead() -> None:
    """Forward and backward: a third of the bytes of a product with two operands."""
    small, full = ["float32", [8, 1, 64]], ["float32", [8, 128, 64]]
    rows = [
        graph_operation("tile", "Tile", [small], [full], **{"from": [None]}),
        graph_operation("use", "Mul", [full, full], [full], **{"from": [None, 0]}),
        graph_operation("gradient_tape/use/Mul", "Mul", [full, full], [full], **{"from": [1, 0]}),
    ]
    program = program_of(*rows)
    size = 8 * 128 * 64 * 4
    times = [
        OperationTime(
            name=operation.name, type=operation.type, ms=3.0, operation=operation,
            nbytes=size * (129 / 128 if operation.type == "Tile" else 3),
        )
        for operation in program.operations
    ]  # fmt: skip
    finding = as_finding(Chart([program, Operations(tuple(times)), GPU]).call(broadcast_cost.check))
    assert {effect.subject: effect.scales for effect in finding.effects} == {
        "tile": 0.0,
        "use": pytest.approx(2 / 3),
        "gradient_tape/use/Mul": pytest.approx(2 / 3),
    }


@pytest.mark.parametrize("user", ["MatMul", "ConcatV2", "Conv2D"])
def test_operations_that_do_not_broadcast_need_it(user: str) -> None:
    assert isinstance(check(user=user), Healthy)


def test_two_rows_repeated_are_no_broadcast() -> None:
    assert isinstance(check((8, 2, 64)), Healthy)


def test_a_gradients_tile_is_tensorflows_own() -> None:
    assert isinstance(check(name="gradient_tape/mean/Tile"), Healthy)


@pytest.mark.parametrize(("ms", "kind"), [(100 * Limits().share, Finding), (1.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(check(ms=ms), kind)


@pytest.mark.parametrize(("given", "kind"), [((2, 128, 1), Healthy), ((8, 128, 1), Finding)])
def test_only_dimensions_of_size_one_broadcast(given: Any, kind: type) -> None:
    assert isinstance(check(given), kind)


def chained(*, last: str = "Mul", kind: DeviceKind = DeviceKind.GPU) -> Verdict:
    """A vector is repeated 128 times before its sigmoid, whose result another operation takes."""
    small, full = ["float32", [8, 1, 64]], ["float32", [8, 128, 64]]
    rows = [
        graph_operation("tile", "Tile", [small], [full], **{"from": [None]}),
        graph_operation("gate", "Sigmoid", [full], [full], **{"from": [0]}),
        graph_operation("use", last, [full, full], [full], **{"from": [1, None]}),
    ]
    program = program_of(*rows)
    facts = [program, Operations(all_ran(program, 10.0)), Hardware(kind, "x")]
    return Chart(facts).call(broadcast_cost.check)


@pytest.mark.parametrize(
    ("last", "kind", "expected"),
    [
        ("Mul", DeviceKind.GPU, {"gate": 1 / 128, "tile": 0.0}),
        ("MatMul", DeviceKind.GPU, {"gate": 1 / 128}),
        ("Mul", DeviceKind.CPU, {"gate": 1 / 128}),
    ],
)
def test_an_activation_belongs_before_the_repetition(
    last: str, kind: DeviceKind, expected: dict[str, float]
) -> None:
    finding = as_finding(chained(last=last, kind=kind))
    assert {effect.subject: effect.scales for effect in finding.effects} == expected


def test_a_cpu_broadcasts_no_faster_than_it_repeats() -> None:
    assert "20.0 ms" in as_healthy(check(hardware=Hardware(DeviceKind.CPU, "x"))).summary


def expanded(ms: float, times: float = 64.0, kind: str = "Sub") -> Verdict:
    """Judge a tensor that is expanded, in a step of 100 ms of compute."""
    row = OperationTime(name="sub", type=kind, ms=ms, at=Location("train.py", 9))
    return example((), (ExpandedProduct(row, (64, 64, 32), times, (row,)),), total_ms=100.0)


@pytest.mark.parametrize(
    ("ms", "times", "kind"),
    [(2.0, 64.0, Finding), (1.9, 64.0, Healthy), (9.0, 15.9, Healthy), (9.0, 16.0, Finding)],
)
def test_expanded_tensors_count_by_their_time_and_size(ms: float, times: float, kind: type) -> None:
    assert isinstance(expanded(ms, times), kind)


@pytest.mark.parametrize(("kind", "words"), [("Sub", "distances"), ("Mul", "einsum")])
def test_what_is_expanded_is_computed_by_a_matmul(kind: str, words: str) -> None:
    finding = as_finding(expanded(20.0, kind=kind))
    (remedy,) = finding.remedies
    assert words in remedy.action
    assert remedy.at == Location("train.py", 9)
    assert [(effect.subject, effect.bound) for effect in finding.effects] == [("sub", Bound.AT_MOST)]


def test_both_faults_are_one_finding() -> None:
    row = OperationTime(name="sub", type="Sub", ms=4.0)
    finding = as_finding(example(expanded=(ExpandedProduct(row, (64, 64, 32), 64.0, (row,)),)))
    assert {effect.subject for effect in finding.effects} == {TILE.name, "sub"}
