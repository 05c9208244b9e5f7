"""Matmuls and convolutions that the program record does not describe, such as those in a loop's body."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import MOSTLY_NAMED, Operations
from tfdoctor.terms.humanize import milliseconds, number

WHERE = "in a graph that was not recorded, such as the loop of an LSTM or GRU over time"


@dataclass(frozen=True, slots=True)
class UnrecordedMatmuls:
    """The matmuls of no recorded operation, the longest first, and the ms per step of all matmuls."""

    rows: tuple[OperationTime, ...]
    matmuls_ms: float
    compute_ms: float

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Collect the matmuls that neither the program record nor the trace's shapes describe."""
        rows = tuple(row for row in operations.matrix if row.operation is None)
        return cls(rows, sum(row.ms for row in operations.matrix), operations.total_ms)

    def why_not_judged(self) -> str:
        """Say that their precision is unknown; "" where they take little of the matmuls' time."""
        rows = [row for row in self.rows if not row.precision]
        time = sum(row.ms for row in rows)
        if time <= MOSTLY_NAMED * self.matmuls_ms:
            return ""
        return (
            f"the precision of {milliseconds(time)} of {milliseconds(self.matmuls_ms)} of matmuls and "
            f"convolutions per step is unknown: they run {WHERE}"
        )

    def repeated(self, calls: float, each_ms: float, share: float) -> str:
        """Describe small matmuls that run repeatedly; "" where they are below a share of the compute."""
        rows = [row for row in self.rows if row.calls >= calls and row.ms <= each_ms * row.calls]
        time, times = sum(row.ms for row in rows), sum(row.calls for row in rows)
        if time <= share * self.compute_ms:
            return ""
        return f"{number(times)} small matmuls per step ({milliseconds(time)}) run {WHERE}"
