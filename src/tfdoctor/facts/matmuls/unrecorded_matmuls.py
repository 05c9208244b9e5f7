"""Matmuls and convolutions that the program record does not describe, such as those in a loop's body."""

from tfdoctor.facts.operations.operations import MOSTLY_NAMED, Operations
from tfdoctor.terms.humanize import milliseconds, number

WHERE = "in a graph that was not recorded, such as the loop of an LSTM or GRU over time"


def of_unknown_precision(operations: Operations) -> str:
    """Say that their precision is unknown; "" where they take little of the matmuls' time."""
    total = sum(row.ms for row in operations.matrix)
    time = sum(row.ms for row in operations.matrix if row.operation is None and not row.precision)
    if time <= MOSTLY_NAMED * total:
        return ""
    of = f"{milliseconds(time)} of {milliseconds(total)} of matmuls and convolutions per step"
    return f"the precision of {of} is unknown: they run {WHERE}"


def repeated(operations: Operations, calls: float, each_ms: float, share: float) -> str:
    """Describe small matmuls that run repeatedly; "" where they are below a share of the compute."""
    rows = [row for row in operations.matrix if row.calls >= calls and row.ms <= each_ms * row.calls]
    rows = [row for row in rows if row.operation is None]
    time, times = sum(row.ms for row in rows), sum(row.calls for row in rows)
    if time <= share * operations.total_ms:
        return ""
    return f"{number(times)} small matmuls per step ({milliseconds(time)}) run {WHERE}"
