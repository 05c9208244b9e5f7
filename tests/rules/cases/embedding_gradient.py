"""The cases of embedding-gradient: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.embedding_gradient import EmbeddingTables, WholeTable, check


def sick() -> Verdict:
    """384 one-hot rows are multiplied by a table of 6000 rows."""
    rows = (_row("OneHot", 0.5, nbytes=9.2e6), _row("BatchMatMulV2", 1.0), _row("MatMul_1", 3.0))
    table = WholeTable("one-hot matmul", "table", Location("train.py", 12), 6000, 384, rows, width=32)
    cpu = Hardware(DeviceKind.CPU, "example")
    return check(EmbeddingTables((table,), (), 0), Operations(rows), cpu)


def healthy() -> Verdict:
    """The same rows are looked up in the table."""
    rows = (_row("GatherV2", 0.05), _row("ResourceScatterSub", 0.03, "gradient_tape/scatter"))
    cpu = Hardware(DeviceKind.CPU, "example")
    return check(EmbeddingTables((), (), 1), Operations(rows), cpu)


def _row(kind: str, ms: float, name: str = "", nbytes: float | None = None) -> OperationTime:
    graph = Operation(name=name or f"model/table/{kind}", type=kind)
    return OperationTime(name=graph.name, type=kind, ms=ms, layer="table", operation=graph, nbytes=nbytes)
