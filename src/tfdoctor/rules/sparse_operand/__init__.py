from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.sparse_operand.sparse_operands import SparseOperand, SparseOperands

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (
    found(SparseOperands, lambda operands: operands.operands, "No large constant matrix is multiplied"),
)
BY_HAND = "every product with the matrix has to be written for a sparse one"


@dataclass(frozen=True, slots=True)
class Limits:
    density: float = share_limit(0.01)
    share: float = share_limit(0.05)


def check(operands: SparseOperands, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Find the matrices of zeros, and add up the products with them."""
    sparse = [one for one in operands.operands if one.zeros.fullest and one.density <= limits.density]
    part = operations.part(sum(one.ms for one in sparse))
    evidence = (
        Measure("time in products with matrices of zeros, per step", ms(part.ms)),
        Measure.share("share of the compute time in these products", part.share, limits.share),
        Table.of(
            operands.operands,
            ("matrix", lambda one: " x ".join(map(str, one.shape))),
            ("your line", lambda one: one.at),
            ("values that are not zero", lambda one: ratio(one.density)),
            ("time per step", lambda one: ms(one.ms)),
        ),
    )
    if part.share < limits.share:
        summary = f"Products with matrices that are mostly zeros take {milliseconds(part.ms)} per step"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"Products with {counted(len(sparse), 'matrix', 'matrices')} of almost only zeros take {part}",
        evidence=evidence,
        remedies=tuple(map(_remedy, sparse)),
        effects=tuple(row.scaled(one.density, Bound.AT_MOST) for one in sparse for row in one.rows),
        alike=len(sparse) - 1,
    )


def _remedy(one: SparseOperand) -> Remedy:
    if one.zeros.diagonal:
        return Remedy("Multiply by the diagonal as a vector", CODE["diagonal"], one.at)
    if one.zeros.fullest == 1:
        return Remedy("Gather rows instead of multiplying by one-hot rows", CODE["gather"], one.at)
    return Remedy("Keep the matrix sparse and multiply with tf.sparse", CODE["sparse"], one.at)
