"""embedding-gradient: one-hot matmuls, updates of whole tables, and sums over the rows of a table."""

from tests.rules.kit import *
from tfdoctor.rules.operations import embedding_gradient
from tfdoctor.rules.operations.embedding_gradient import EmbeddingTables, WholeTable

CPU = Hardware(DeviceKind.CPU, "example")
GPU = Hardware(DeviceKind.GPU, "x")
ENTRIES, WIDTH = 6000, 32
F = "float32"
HOT: Any = [F, [64, 6, ENTRIES]]
TABLE: Any = [F, [ENTRIES, WIDTH]]
IDS: Any = ["int32", [64, 6]]
GRADIENT = took("gradient_tape/m/MatMul_1", "BatchMatMulV2", 3.0)


def sick() -> Verdict:
    """384 one-hot rows are multiplied by a table of 6000 rows."""
    rows = (_row("OneHot", 0.5, nbytes=9.2e6), _row("BatchMatMulV2", 1.0), _row("MatMul_1", 3.0))
    table = WholeTable("one-hot matmul", "table", script(12), 6000, 384, rows, width=32)
    return embedding_gradient.check(EmbeddingTables((table,), (), 0), Operations(rows), CPU)


def healthy() -> Verdict:
    """The same rows are looked up in the table."""
    rows = (_row("GatherV2", 0.05), _row("ResourceScatterSub", 0.03, "gradient_tape/scatter"))
    return embedding_gradient.check(EmbeddingTables((), (), 1), Operations(rows), CPU)


def _row(kind: str, ms: float, name: str = "", nbytes: float | None = None) -> OperationTime:
    graph = Operation(name=name or f"model/table/{kind}", type=kind)
    return took(graph.name, kind, ms, layer="table", operation=graph, nbytes=nbytes)


def check(program: Program, *rows: OperationTime, hardware: Hardware = CPU) -> Verdict:
    return rule_of(embedding_gradient).apply(Chart([program, Operations(rows), hardware]))


def ran(program: Program, **times: float) -> list[OperationTime]:
    sizes = {"OneHot": 9.2e6}
    return [
        OperationTime(
            name=operation.name, type=operation.type, ms=times[operation.name],
            operation=operation, layer=operation.layer, nbytes=sizes.get(operation.type),
        )
        for operation in program.operations
    ]  # fmt: skip


def graph(ids: Any = IDS, sources: Any = (0, None), **more: Any) -> Program:
    """One-hot rows before a table; with ``loss`` others use them too, and with no sources none are known."""
    origins: Any = ({"from": [None]}, {"from": list(sources)}) if sources else ({}, {})
    return program_of(
        graph_operation("hot", "OneHot", [ids], [HOT], **origins[0]),
        graph_operation("m", "BatchMatMulV2", [HOT, TABLE], [], **origins[1]),
        *([graph_operation("loss", "Sub", [HOT], [], **{"from": [0]})] if "loss" in more else []),
    )


def one_hot(gradient: OperationTime = GRADIENT, hardware: Hardware = CPU, **more: Any) -> Verdict:
    program = graph(**more)
    times = {name: more.get(name, ms) for name, ms in (("hot", 0.5), ("m", 1.0), ("loss", 0.0))}
    return check(program, *ran(program, **times), gradient, hardware=hardware)


def dense(
    lookups: int | None, spent: float, kind: str = "UnsortedSegmentSum", writes: str = "AssignSubVariableOp"
) -> Verdict:
    rows = [
        graph_operation("adam/sum", kind, [[F, [lookups, 8]]], [[F, [1000, 8]]], layer="adam"),
        graph_operation("adam/mul", writes, [[F, [1000, 8]]], [[F, [1000, 8]]], layer="adam"),
        graph_operation("adam/other", "Mul", [[F, [64, 64]]], [[F, [64, 64]]], layer="adam"),
        graph_operation("gradient_tape/m", "MatMul"),
    ]
    parts = {"adam/sum": spent / 2, "adam/mul": spent / 2, "adam/other": 1.0}
    program = program_of(*rows)
    return check(program, *ran(program, **parts, **{"gradient_tape/m": 99.0 - spent}))


def penalized(time_ms: float, lookups: int = 64, *, dense: bool = True) -> Verdict:
    """Judge a table with a penalty, in a step of 100 ms of compute."""
    update = took("AddN/inputs_1", "UnsortedSegmentSum", time_ms / 2)
    square = took("Square", "Square", time_ms / 2)
    rest = took("gradient_tape/m/MatMul", "MatMul", 100.0 - time_ms)
    tables = EmbeddingTables((), (WholeTable("", "table", None, 9000, lookups, (update,)),), 0)
    at, later = script(16), (update,) if dense else ()
    summed = WholeTable("L2 penalty", "e", at, 9000, lookups, (square,), later)
    return embedding_gradient.check(replace(tables, summed=(summed,)), Operations((square, update, rest)), CPU)


# Sums over the rows of a table: what they lead to, and what else may need all rows
VECTORS, SCALAR = [F, [64, WIDTH]], [F, []]
HANDLE, ROWS = ["resource", []], ["int64", [64]]
LINE = ["/home/user/train.py", 16]


def op(name: str, kind: str, sources: list[int], given: Any, made: Any, **more: Any) -> Any:
    return graph_operation(name, kind, given, [made] if made else [], **{"from": sources}, **more)


def measure(*more: Any, moment: bool = False, summed: bool = True) -> tuple[WholeTable, ...]:
    """A table (0) of which 64 rows are looked up (3), its L2 penalty (4 to 6), and an optimizer."""
    origin = {"origin": ["regularizer", "L2"]}
    total = op("sum", "Sum", [5], [TABLE], SCALAR, **origin)
    program = program_of(
        op("table", "Placeholder", [], [], HANDLE),
        op("ids", "Placeholder", [], [], ROWS),
        op("e/read", "ReadVariableOp", [0], [HANDLE], TABLE, layer="e"),
        op("e/gather", "GatherV2", [2, 1], [TABLE, ROWS], VECTORS, layer="e"),
        op("read", "ReadVariableOp", [0], [HANDLE], TABLE, **origin),
        op("square", "Square", [4], [TABLE], TABLE, **origin),
        total if summed else op("sum", "Identity", [5], [TABLE], TABLE),
        op("gradient_tape/mul", "Mul", [4, 6], [TABLE, SCALAR], TABLE),
        op("add/inputs_1", "UnsortedSegmentSum", [3, 1], [VECTORS, ROWS], TABLE),
        op("AddN", "AddN", [7, 8], [TABLE, TABLE], TABLE),
        op("m", "Placeholder", [], [], HANDLE),
        op("adam/read", "ReadVariableOp", [10 if moment else 0], [HANDLE], TABLE),
        op("adam/mul", "Mul", [9, 11], [TABLE, TABLE], TABLE),
        op("adam/assign", "AssignSubVariableOp", [0, 12], [HANDLE, TABLE], None),
        *more,
        layers=[{"name": "e", "class": "Embedding", "at": LINE}],
    )
    times = all_ran(program, 1.0, "Placeholder", "ReadVariableOp")
    return Chart([program, Operations(times)]).fact(EmbeddingTables).summed


def penalties(*more: Any, **kind: bool) -> list[str]:
    return [
        f"{found.use} of {found.name}, line {found.at and found.at.line}, {found.lookups} of {found.entries} rows: "
        f"{', '.join(row.name for row in found.rows)}, and of the update "
        f"{', '.join(row.name for row in found.update) or 'nothing'}"
        for found in measure(*more, **kind)
    ]


@golden_cases
def test_verdicts(told: Cases) -> None:
    # Its calls, and five passes over 384 x 32 float32 at the rate that wrote the one-hot rows
    told["one-hot rows before a table are found with their gradients"] = one_hot()
    other = took("gradient_tape/other/MatMul", "MatMul", 3.0)
    told["a lookup that would take as long saves nothing"] = one_hot(hot=0.02, m=0.03, gradient=other)
    told["an unknown number of lookups is not guessed"] = one_hot(ids=["int32", [None]])
    told["on a GPU the saving is a ceiling"] = one_hot(hardware=GPU)
    told["one-hot rows that others use too stay"] = one_hot(loss=0.1)
    told["labels feed no matmul"] = one_hot(sources=(None, None))
    told["a TPU"] = one_hot(hardware=Hardware(DeviceKind.TPU, "x"))
    told["older recordings have no sources"] = one_hot(sources=None), check(graph(sources=None), GRADIENT)
    told["a step of unnamed work"] = check(program_of(), UNNAMED)
    told["an update of all rows for a few in use"] = dense(100, 20.0)
    told["a quarter of rows, more, all, unknown"] = [dense(lookups, 20.0) for lookups in (250, 251, 1000, None)]
    told["updates of a tenth of the step, and of less"] = dense(100, 10.0), dense(100, 9.9)
    told["a graph network gathers logits of labelled nodes: no variable's shape"] = dense(100, 20.0, writes="Mul")
    told["an update of the rows in use"] = dense(100, 20.0, "ResourceScatterSub")
    told["a penalty of a tenth of the step, and of less"] = penalized(10.0), penalized(9.9)
    told["a penalty on a table of which a quarter is used, or more"] = penalized(50.0, 2250), penalized(50.0, 2251)
    told["a penalty explains the update of all rows; with moments that is a fault of its own"] = penalized(40.0)
    told[...] = penalized(40.0, dense=False)
    told["a penalty is named at the layer with its gradient and the update that it causes"] = penalties()
    told["an optimizer with moments updates all rows anyway"] = penalties(moment=True)
    tied = op("scores", "MatMul", [3, 4], [VECTORS, TABLE], [F, [64, ENTRIES]])
    told["tied weights need the whole table"] = penalties(tied)
    told["a graph network needs it whole, and an optimizer that decays weights sums nothing"] = [
        penalties(op("user", kind, [6] * used, [TABLE] * used, TABLE), summed=False)
        for kind, used in (("SparseTensorDenseMatMul", 1), ("Mul", 2))
    ]
