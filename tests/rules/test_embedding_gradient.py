"""embedding-gradient: one-hot matmuls, and updates of whole tables."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import graph_operation, program_of
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.rules import embedding_gradient
from tfdoctor.rules.embedding_gradient import EmbeddingTables, Limits, WholeTable
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable, Table, Verdict

CPU = Hardware(DeviceKind.CPU, "x")
ENTRIES, WIDTH, LOOKUPS = 6000, 32, 384
F = "float32"
HOT: Any = [F, [64, 6, ENTRIES]]
TABLE: Any = [F, [ENTRIES, WIDTH]]
IDS: Any = ["int32", [64, 6]]


def one_hot(ids: Any = IDS, sources: Any = (0, None), **more: Any) -> Program:
    return program_of(
        graph_operation("hot", "OneHot", [ids], [HOT], **{"from": [None]}),
        graph_operation("m", "BatchMatMulV2", [HOT, TABLE], [], **{"from": list(sources)}),
        *more.get("rows", ()),
    )


def ran(program: Program, **times: float) -> list[OperationTime]:
    sizes = {"OneHot": 9.2e6}
    return [
        OperationTime(
            name=operation.name, type=operation.type, ms=times[operation.name],
            operation=operation, layer=operation.layer, nbytes=sizes.get(operation.type),
        )
        for operation in program.operations
    ]  # fmt: skip


GRADIENT = OperationTime(name="gradient_tape/m/MatMul_1", type="BatchMatMulV2", ms=3.0)


def check(program: Program, *rows: OperationTime, hardware: Hardware = CPU) -> Verdict:
    return Rule.from_module(embedding_gradient).apply(Chart([program, Operations(rows), hardware]))


def test_one_hot_rows_before_a_table_are_found_with_their_gradients() -> None:
    program = one_hot()
    finding = as_finding(check(program, *ran(program, hot=0.5, m=1.0), GRADIENT))
    scales = {effect.subject: effect.scales for effect in finding.effects}
    assert (scales["m"], scales[GRADIENT.name]) == (0.0, 0.0)
    # Its calls, and five passes over 384 x 32 float32 at the rate that wrote the one-hot rows.
    lookup_ms = embedding_gradient.LOOKUP_MS + 5 * LOOKUPS * WIDTH * 4 / (9.2e6 / 0.5)
    assert scales["hot"] == pytest.approx(lookup_ms / 0.5)
    assert all(effect.bound is Bound.EXPECTED for effect in finding.effects)
    (table,) = (one for one in finding.evidence if isinstance(one, Table))
    assert table.rows[0][:3] == ("unknown", "unknown", "one-hot matmul")


def test_a_lookup_that_would_take_as_long_saves_nothing() -> None:
    program = one_hot()
    finding = as_finding(check(program, *ran(program, hot=0.02, m=0.03), GRADIENT_OF_NOTHING))
    assert {effect.scales for effect in finding.effects} == {1.0}


GRADIENT_OF_NOTHING = OperationTime(name="gradient_tape/other/MatMul", type="MatMul", ms=3.0)


def test_an_unknown_number_of_lookups_is_not_guessed() -> None:
    program = one_hot(["int32", [None]])
    finding = as_finding(check(program, *ran(program, hot=0.5, m=1.0), GRADIENT))
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}


def test_on_a_gpu_the_saving_is_a_ceiling() -> None:
    program = one_hot()
    finding = as_finding(
        check(program, *ran(program, hot=0.5, m=1.0), GRADIENT, hardware=Hardware(DeviceKind.GPU, "x"))
    )
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}


def test_on_a_tpu_one_hot_matmuls_are_no_fault() -> None:
    program = one_hot()
    assert isinstance(
        check(program, *ran(program, hot=0.5, m=1.0), GRADIENT, hardware=Hardware(DeviceKind.TPU, "x")),
        NotApplicable,
    )


def test_one_hot_labels_feed_no_matmul() -> None:
    program = one_hot(sources=(None, None))
    assert isinstance(check(program, *ran(program, hot=0.5, m=1.0), GRADIENT), Healthy)


def test_one_hot_rows_that_others_use_too_stay() -> None:
    other = graph_operation("loss", "Sub", [HOT], [], **{"from": [0]})
    program = one_hot(rows=[other])
    finding = as_finding(check(program, *ran(program, hot=0.5, m=1.0, loss=0.1), GRADIENT))
    assert "hot" not in {effect.subject for effect in finding.effects}


def dense(
    lookups: int | None, spent: float, kind: str = "UnsortedSegmentSum", writes: str = "AssignSubVariableOp"
) -> Verdict:
    rows = [
        graph_operation("adam/sum", kind, [[F, [lookups, 8]]], [[F, [1000, 8]]], layer="adam"),
        graph_operation("adam/mul", writes, [[F, [1000, 8]]], [[F, [1000, 8]]], layer="adam"),
        graph_operation("adam/other", "Mul", [[F, [64, 64]]], [[F, [64, 64]]], layer="adam"),
        graph_operation("gradient_tape/m", "MatMul"),
    ]
    program = program_of(*rows)
    parts = {"adam/sum": spent / 2, "adam/mul": spent / 2, "adam/other": 1.0}
    return check(program, *ran(program, **parts, **{"gradient_tape/m": 99.0 - spent}))


def test_an_update_of_all_rows_for_a_few_in_use_is_found() -> None:
    finding = as_finding(dense(100, 20.0))
    (effect,) = finding.effects
    assert effect.of
    assert (effect.scales, effect.of.value, effect.bound) == (0.1, 20.0, Bound.AT_MOST)


def test_rows_that_are_gathered_from_a_result_are_no_table() -> None:
    """Trap: a graph network gathers the logits of its labelled nodes, and no variable has their shape."""
    assert isinstance(dense(100, 20.0, writes="Mul"), Healthy)


@pytest.mark.parametrize(
    ("lookups", "kind"), [(int(1000 * Limits().touched), Finding), (251, Healthy), (None, Healthy)]
)
def test_tables_whose_rows_are_mostly_in_use_are_not(lookups: int | None, kind: type) -> None:
    assert isinstance(dense(lookups, 20.0), kind)


@pytest.mark.parametrize(("spent", "kind"), [(100 * Limits().update, Finding), (9.9, Healthy)])
def test_short_updates_are_not_worth_another_optimizer(spent: float, kind: type) -> None:
    assert isinstance(dense(100, spent), kind)


def test_a_healthy_table_says_which_reason_holds() -> None:
    in_use, short = dense(1000, 20.0), dense(100, 9.9)
    assert isinstance(in_use, Healthy)
    assert isinstance(short, Healthy)
    assert "25 % of their rows in use" in in_use.summary
    assert "only 9.90 ms" in short.summary


def test_scattered_updates_are_healthy() -> None:
    assert "looked up" in as_healthy(dense(100, 20.0, "ResourceScatterSub")).summary


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(check(program_of(), unnamed), NotApplicable)


def test_one_hot_rows_of_an_older_recording_are_not_called_healthy() -> None:
    program = program_of(
        graph_operation("hot", "OneHot", [IDS], [HOT]), graph_operation("m", "BatchMatMulV2", [HOT, TABLE], [])
    )
    assert isinstance(check(program, *ran(program, hot=0.5, m=1.0), GRADIENT), NotApplicable)
    assert isinstance(check(program, GRADIENT), Healthy)


def penalized(time_ms: float, lookups: int = 64, *, dense: bool = True) -> Verdict:
    """Judge a table with a penalty, in a step of 100 ms of compute."""
    update = OperationTime(name="AddN/inputs_1", type="UnsortedSegmentSum", ms=time_ms / 2)
    square = OperationTime(name="Square", type="Square", ms=time_ms / 2)
    rest = OperationTime(name="gradient_tape/m/MatMul", type="MatMul", ms=100.0 - time_ms)
    tables = EmbeddingTables((), (WholeTable("", "table", None, 9000, lookups, (update,)),), 0)
    at, later = Location("train.py", 16), (update,) if dense else ()
    summed = WholeTable("L2 penalty", "e", at, 9000, lookups, (square,), later)
    operations = Operations((square, update, rest))
    return embedding_gradient.check(replace(tables, summed=(summed,)), operations, CPU)


@pytest.mark.parametrize(
    ("time_ms", "lookups", "kind"),
    [(10.0, 64, Finding), (9.9, 64, Healthy), (50.0, 2250, Finding), (50.0, 2251, Healthy)],
)
def test_a_penalty_counts_where_it_is_long_and_few_rows_are_in_use(
    time_ms: float, lookups: int, kind: type
) -> None:
    assert isinstance(penalized(time_ms, lookups), kind)


def test_a_penalty_explains_the_update_of_all_rows() -> None:
    """Not the optimizer: it updates all rows because of the penalty."""
    finding = as_finding(penalized(40.0))
    (remedy,) = finding.remedies
    assert remedy.at == Location("train.py", 16)
    assert {effect.subject: effect.scales for effect in finding.effects} == {
        "Square": 0.0,
        "AddN/inputs_1": pytest.approx(64 / 9000),
    }


def test_an_optimizer_with_moments_is_a_fault_of_its_own() -> None:
    finding = as_finding(penalized(40.0, dense=False))
    assert len(finding.remedies) == 2
    assert {effect.subject for effect in finding.effects} == {"Square", "table (rows in use)"}
