from tfdoctor.facts.run.program import Zeros
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class SparseOperand(Record, OperationRows):
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

    @property
    def remedy(self) -> Remedy:
        """The product without the zeros."""
        if self.zeros.diagonal:
            return Remedy("Multiply by the diagonal as a vector", CODE["diagonal"], self.at)
        if self.zeros.fullest == 1:
            return Remedy("Gather rows instead of multiplying by one-hot rows", CODE["gather"], self.at)
        return Remedy("Keep the matrix sparse and multiply with tf.sparse", CODE["sparse"], self.at)


class SparseOperands(Record):
    """The captured matrices that products use, whatever their density; the slowest products first."""

    rows: tuple[SparseOperand, ...]

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


PRECONDITIONS = (found(SparseOperands, "No large constant matrix is multiplied"),)


class Limits(RuleLimits):
    density: float = share_limit(0.01)
    share: float = share_limit(0.05)


def check(operands: SparseOperands, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Find the matrices of zeros, and add up the products with them."""
    sparse = [one for one in operands.rows if one.zeros.fullest and one.density <= limits.density]
    part = operations.part(sum(one.ms for one in sparse))
    return judged(
        Measure("time in products with matrices of zeros, per step", ms(part.ms)),
        Measure.share("share of the compute time in these products", part.share, limits.share),
        Table.of(
            operands.rows,
            ("matrix", lambda one: " x ".join(map(str, one.shape))),
            ("your line", lambda one: one.at),
            ("values that are not zero", lambda one: ratio(one.density)),
            ("time per step", lambda one: ms(one.ms)),
        ),
        healthy=f"Products with matrices that are mostly zeros take {milliseconds(part.ms)} per step",
        finding=f"Products with {counted(len(sparse), 'matrix', 'matrices')} of almost only zeros take {part}",
        remedies=(one.remedy for one in sparse),
        effects=(row.scaled(one.density, Bound.AT_MOST) for one in sparse for row in one.rows),
        alike=len(sparse) - 1,
    )
