"""Matmuls and convolutions of which the record does not tell what they are, such as those in a loop's body."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.operations import MOSTLY_NAMED, Operations, OperationTime
from tfdoctor.humanize import milliseconds, number

WHERE = (
    "in a graph that was not recorded, such as the body of a loop (an LSTM's or GRU's over time)"
)


@dataclass(frozen=True, slots=True)
class UnrecordedMatmuls:
    """The products of no recorded operation, the heaviest first, and the ms of all products per step."""

    rows: tuple[OperationTime, ...]
    products_ms: float
    compute_ms: float

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Take the products that the program record and the trace's shapes do not hold."""
        rows = tuple(row for row in operations.matrix if row.operation is None)
        return cls(rows, sum(row.ms for row in operations.matrix), operations.total_ms)

    def why_not_judged(self) -> str:
        """Say why their precision is not known; "" where they are little of the products' time."""
        rows = [row for row in self.rows if not row.precision]
        time = sum(row.ms for row in rows)
        if time <= MOSTLY_NAMED * self.products_ms:
            return ""
        return (
            f"{milliseconds(time)} of {milliseconds(self.products_ms)} of matmuls and convolutions per step "
            f"run {WHERE}: in which precision is not known"
        )

    def repeated(self, calls: float, each_ms: float, share: float) -> str:
        """Say what small products run again and again; "" where they are below a share of the compute."""
        rows = [row for row in self.rows if row.calls >= calls and row.ms <= each_ms * row.calls]
        time, times = sum(row.ms for row in rows), sum(row.calls for row in rows)
        if time <= share * self.compute_ms:
            return ""
        return f"{number(times)} small products per step ({milliseconds(time)}) run {WHERE}"
