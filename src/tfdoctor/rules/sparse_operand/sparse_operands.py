"""Products with captured matrices that are mostly zeros."""

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.operation_types import MATMULS
from tfdoctor.facts.run.program import Zeros


@dataclass(frozen=True, slots=True)
class SparseOperand(OperationRows):
    """A captured matrix, and the products with it, forward and backward; ms per training step."""

    name: str  # of its placeholder
    shape: Shape
    zeros: Zeros
    rows: tuple[OperationTime, ...]

    @property
    def density(self) -> float:
        """The share of values that are not zero, 0 to 1."""
        return 1.0 - self.zeros.share

    @property
    def at(self) -> Location | None:
        """The line of its slowest product, the forward pass first: a gradient has the line of the tape."""
        rows = sorted(self.rows, key=lambda row: ("gradient" in row.name, -row.ms))
        return next((row.operation.at for row in rows if row.operation and row.operation.at), None)


@dataclass(frozen=True, slots=True)
class SparseOperands:
    """The captured matrices that products use, whatever their density; the slowest products first."""

    operands: tuple[SparseOperand, ...]

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow, program: Program) -> Self:
        """Find the products' operands among the captured matrices that the agent looked at.

        Raises:
            Unavailable: the recording does not say what captured matrices hold.
        """
        if not program.zeros_recorded:
            raise Unavailable("the recording does not say how many zeros matrices hold; record again")
        groups: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:
            if row.type in MATMULS and row.operation:
                sources = (dataflow.source(row.operation, position) for position in (0, 1))
                if captured := next((source for source in sources if source and source.zeros), None):
                    groups[captured.name].append(row)
        found = []
        for name, rows in groups.items():
            matrix = program.by_name[name]
            shape = matrix.outputs[0][1] if matrix.outputs else None
            found.append(SparseOperand(name, shape or (), matrix.zeros or Zeros(0.0), tuple(rows)))
        return cls(tuple(sorted(found, key=lambda operand: -operand.ms)))
