from tfdoctor.facts.run.operation_types import MATRIX_TYPES, PASSING, READS
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


FACTORS = frozenset(["Mul", "MulNoNan"])
PRODUCTS = MATRIX_TYPES | FACTORS  # Types of operations whose result is zero where one operand is
# Types of operations whose result is zero where the first operand is, such as those whose others are axes.
FIRST = PASSING | {
    "RealDiv", "DivNoNan", "ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "Sum", "Mean", "Transpose",
    "BroadcastTo", "Tile", "ZerosLike", "Sqrt", "Square", "Abs", "Neg", "L2Loss", "BiasAddGrad",
}  # fmt: skip
SUMS = frozenset(["Add", "AddV2", "AddN", "Sub"])  # Types of operations whose result is zero where all operands are
SEVERAL = "IdentityN"  # Passes on several values: its results are known by their numbers
# Beginnings of the types of updates that leave a variable as it is for a zero; an optimizer's takes it last.
ADDS = ("AssignAdd", "AssignSub", "ResourceApply")


class DroppedWork(Record, OperationRows):
    """The operations of gradients and losses that only lead to zeros, and those computed of the zeros."""

    factors: int = 0  # multiplications by zero
    at: Location | None = None  # the line of the first
    of_gradients: bool = False  # gradients are multiplied, and not a loss
    rows: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow the zeros forward, and what is multiplied by them back."""
        made = dataflow.operations
        known = {one.name for one in made if one.type == "Const" and one.attrs.scalar == 0.0}
        # Python wrote a multiplication by a constant zero: the tape's own have its scope
        own = (one for one in made if one.type in FACTORS and not one.name.startswith(GRADIENT_SCOPE))
        factors = [one for one in own if not known.isdisjoint(one.sources)]
        if not factors:
            return cls()
        zeros, adding = _zeros(dataflow, {one.name for one in factors})
        without = adding | {one.name for one in made if one.sources and one.name in zeros}
        multiplied = (dataflow.source(one, at) for one in factors for at in range(len(one.sources)))
        return cls(
            len(factors),
            next(filter(None, map(dataflow.program.line_of, factors)), None),
            any(one is not None and is_backward(one.name) for one in multiplied),
            operations.of(dataflow.only_for(without, gradients=True)),
        )


def _zeros(dataflow: Dataflow, factors: set[str]) -> tuple[set[str], set[str]]:
    """Return the operations whose results are zero (``IdentityN:0`` is one result), and the writes that add zeros.

    An optimizer's averages begin at zero, and stay so where each write adds zeros. All that only the optimizer
    reads are taken for such, and those that another write changes are given up until none is left.
    """

    def given(one: Operation, at: int) -> str:
        made = dataflow.program.by_name.get(one.sources[at])
        several = made is not None and made.type == SEVERAL
        return f"{one.sources[at]}:{one.ports[at] if at < len(one.ports) else 0}" if several else one.sources[at]

    writes = [one for one in dataflow.operations if len(one.sources) > 1 and UPDATES.fullmatch(one.type)]
    averages, trains = {one.sources[0] for one in writes}, dataflow.feeds_gradients
    averages -= {name for name in averages for one in dataflow.consumers[name] if trains(one.name)}
    while True:
        zeros = set(factors)
        for one in dataflow.operations:
            inputs = [given(one, at) in zeros for at in range(len(one.sources))]
            if one.type == SEVERAL:
                zeros.update(f"{one.name}:{at}" for at, zero in enumerate(inputs) if zero)
                continue
            decides = inputs[:1] if one.type in FIRST else inputs if one.type in SUMS else []
            zero = any(inputs) if one.type in PRODUCTS else bool(decides) and all(decides)
            if zero or (READS.search(one.type) and not averages.isdisjoint(one.sources[:1])):
                zeros.add(one.name)
        adding = {
            one.name for one in writes if one.type.startswith(ADDS) and given(one, len(one.sources) - 1) in zeros
        }
        changed = {one.sources[0] for one in writes if one.name not in adding}
        if changed.isdisjoint(averages):
            return zeros, adding
        averages -= changed


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(dropped: DroppedWork, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Compare the work for zeros with the compute time."""
    if not dropped.factors:
        return Healthy(summary="No operation of the step multiplies by a constant zero")
    what, code, action = "results", "weighed", "Compute this only where its factor is not zero"
    if dropped.of_gradients:
        what, code, action = "gradients", "trained", "Take gradients only for the weights that train"
    part = operations.part(dropped.ms)
    factors = counted(dropped.factors, "multiplication by zero drops", "multiplications by zero drop")
    return spared(
        part, limits.share, "for results that are multiplied by zero",
        [(row, 0.0) for row in dropped.rows if row.ms],
        bound=Bound.EXPECTED, healthy=f"Work for {what} times zero takes {part}",
        finding=f"{factors} {what}, which take {part}",
        remedies=[Remedy(action, CODE[code], dropped.at)],
        more=[Measure("multiplications by zero", count(dropped.factors)),
              Measure("operations for them per step", count(dropped.calls))],
    )  # fmt: skip
