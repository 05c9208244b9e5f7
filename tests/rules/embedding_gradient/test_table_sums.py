"""Sums over the rows of an embedding table: what they lead to, and what else may need all rows."""

from typing import Any

from tests.builders import all_ran, graph_operation, program_of
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.embedding_gradient import EmbeddingTables, WholeTable

TABLE, VECTORS, SCALAR = ["float32", [9000, 32]], ["float32", [64, 32]], ["float32", []]
HANDLE, IDS = ["resource", []], ["int64", [64]]
LINE = ["/home/user/train.py", 16]


def op(name: str, kind: str, sources: list[int], given: Any, made: Any, **more: Any) -> Any:
    return graph_operation(name, kind, given, [made] if made else [], **{"from": sources}, **more)


def measure(*more: Any, moment: bool = False, summed: bool = True) -> tuple[WholeTable, ...]:
    """A table (0) of which 64 rows are looked up (3), its L2 penalty (4 to 6), and an optimizer."""
    rows = [
        op("table", "Placeholder", [], [], HANDLE),
        op("ids", "Placeholder", [], [], IDS),
        op("e/read", "ReadVariableOp", [0], [HANDLE], TABLE, layer="e"),
        op("e/gather", "GatherV2", [2, 1], [TABLE, IDS], VECTORS, layer="e"),
        op("read", "ReadVariableOp", [0], [HANDLE], TABLE, origin=["regularizer", "L2"]),
        op("square", "Square", [4], [TABLE], TABLE, origin=["regularizer", "L2"]),
        op("sum", "Sum", [5], [TABLE], SCALAR, origin=["regularizer", "L2"]),
        op("gradient_tape/mul", "Mul", [4, 6], [TABLE, SCALAR], TABLE),
        op("add/inputs_1", "UnsortedSegmentSum", [3, 1], [VECTORS, IDS], TABLE),
        op("AddN", "AddN", [7, 8], [TABLE, TABLE], TABLE),
        op("m", "Placeholder", [], [], HANDLE),
        op("adam/read", "ReadVariableOp", [10 if moment else 0], [HANDLE], TABLE),
        op("adam/mul", "Mul", [9, 11], [TABLE, TABLE], TABLE),
        op("adam/assign", "AssignSubVariableOp", [0, 12], [HANDLE, TABLE], None),
        *more,
    ]
    if not summed:
        rows[6] = op("sum", "Identity", [5], [TABLE], TABLE)
    layers = [{"name": "e", "class": "Embedding", "at": LINE}]
    program = program_of(*rows, layers=layers)
    times = all_ran(program, 1.0, "Placeholder", "ReadVariableOp")
    return Chart([program, Operations(times)]).fact(EmbeddingTables).summed


def names(rows: tuple[OperationTime, ...]) -> set[str]:
    return {row.name for row in rows}


def test_a_penalty_is_named_at_the_layer_with_its_gradient_and_the_update_that_it_causes() -> None:
    (found,) = measure()
    assert names(found.rows) == {"square", "sum", "gradient_tape/mul", "AddN"}
    assert names(found.update) == {"add/inputs_1", "adam/mul", "adam/assign"}
    assert (found.name, found.use, found.entries, found.lookups) == ("e", "L2 penalty", 9000, 64)
    assert found.at
    assert found.at.line == LINE[1]


def test_an_optimizer_with_moments_updates_all_rows_anyway() -> None:
    (found,) = measure(moment=True)
    assert found.update == ()
    assert names(found.rows) == {"square", "sum", "gradient_tape/mul", "AddN"}


def test_trap_a_table_that_is_multiplied_is_needed_whole() -> None:
    """Tied weights: the scores of all entries."""
    assert not measure(op("scores", "MatMul", [3, 4], [VECTORS, TABLE], ["float32", [64, 9000]]))


def test_trap_a_table_without_a_sum_is_not_judged() -> None:
    assert not measure(op("graph", "SparseTensorDenseMatMul", [6], [TABLE], TABLE), summed=False)


def test_trap_an_optimizer_that_decays_weights_does_not_sum_them() -> None:
    assert not measure(op("all", "Mul", [6, 6], [TABLE, TABLE], TABLE), summed=False)
