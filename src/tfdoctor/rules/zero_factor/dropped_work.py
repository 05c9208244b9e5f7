"""What a step computes only to multiply it by zero, in the graphs that the run built."""

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.run.operation_types import MATRIX_TYPES, PASSING, READS, UPDATES
from tfdoctor.trace.names import GRADIENT

FACTORS = frozenset(["Mul", "MulNoNan"])

PRODUCTS = MATRIX_TYPES | FACTORS  # Types of operations whose result is zero where one operand is

# Types of operations whose result is zero where the first operand is, such as those whose others are axes.
FIRST = PASSING | {
    "RealDiv", "DivNoNan", "ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "Sum", "Mean", "Transpose",
    "BroadcastTo", "Tile", "ZerosLike", "Sqrt", "Square", "Abs", "Neg", "L2Loss", "BiasAddGrad",
}  # fmt: skip

SUMS = frozenset(["Add", "AddV2", "AddN", "Sub"])  # Types of operations whose result is zero where all operands are
# The type of the operation that passes on several values: its results are known by their numbers.
SEVERAL = "IdentityN"
# Beginnings of the types of updates that leave a variable as it is for a zero; an optimizer's takes it last.
ADDS = ("AssignAdd", "AssignSub", "ResourceApply")


@dataclass(frozen=True, slots=True)
class DroppedWork(OperationRows):
    """The operations that only lead to zeros.

    ``rows`` are those of gradients and losses whose results nothing else takes, and what is computed of the zeros.
    """

    factors: int = 0  # multiplications by zero
    at: Location | None = None  # the line of the first
    of_gradients: bool = False  # gradients are multiplied, and not a loss
    rows: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow the zeros forward, and what is multiplied by them back.

        Python wrote a multiplication by a constant zero: the tape's own have its scope.
        """
        constants = (one for one in dataflow.operations if one.type == "Const" and one.attrs.scalar == 0.0)
        known = {one.name for one in constants}
        factors = [
            one
            for one in dataflow.operations
            if one.type in FACTORS and not one.name.startswith(GRADIENT_SCOPE) and not known.isdisjoint(one.sources)
        ]
        if not factors:
            return cls()
        zeros = _zeros(dataflow, {one.name for one in factors})
        without = {one.name for one in dataflow.operations if one.sources and _adds(dataflow, one, zeros)}
        without |= {one.name for one in dataflow.operations if one.sources and one.name in zeros}
        multiplied = (dataflow.source(one, at) for one in factors for at in range(len(one.sources)))
        return cls(
            len(factors),
            next(filter(None, map(dataflow.program.line_of, factors)), None),
            any(one is not None and GRADIENT.search(one.name) for one in multiplied),
            operations.of(dataflow.only_for(without, gradients=True)),
        )


def _zeros(dataflow: Dataflow, factors: set[str]) -> set[str]:
    """Return the names of operations whose results are zero; of an ``IdentityN`` each result by its number.

    An optimizer's averages begin at zero, and stay so where each write adds zeros. All that only the optimizer
    reads are taken for such, and those that another write changes are given up until none is left.
    """
    writes = [one for one in dataflow.operations if len(one.sources) > 1 and UPDATES.fullmatch(one.type)]
    written = {one.sources[0] for one in writes}
    weights = {name for name in written for one in dataflow.consumers[name] if dataflow.feeds_gradients(one.name)}
    averages = written - weights
    while True:
        zeros = set(factors)
        for one in dataflow.operations:
            inputs = [_value(dataflow, one, at) in zeros for at in range(len(one.sources))]
            if one.type == SEVERAL:
                zeros.update(f"{one.name}:{at}" for at, zero in enumerate(inputs) if zero)
            elif _is_zero(one, inputs) or (READS.search(one.type) and not averages.isdisjoint(one.sources[:1])):
                zeros.add(one.name)
        changed = {one.sources[0] for one in writes if not _adds(dataflow, one, zeros)}
        if changed.isdisjoint(averages):
            return zeros
        averages -= changed


def _is_zero(one: Operation, inputs: list[bool]) -> bool:
    if one.type in PRODUCTS:
        return any(inputs)
    first = inputs[:1] if one.type in FIRST else inputs if one.type in SUMS else []
    return bool(first) and all(first)


def _value(dataflow: Dataflow, one: Operation, at: int) -> str:
    """Return the name of an input of an operation; with the number of its result where it has several."""
    made = dataflow.program.by_name.get(one.sources[at])
    if made is None or made.type != SEVERAL:
        return one.sources[at]
    return f"{made.name}:{one.ports[at] if at < len(one.ports) else 0}"


def _adds(dataflow: Dataflow, one: Operation, zeros: set[str]) -> bool:
    last = len(one.sources) - 1
    return last > 0 and one.type.startswith(ADDS) and _value(dataflow, one, last) in zeros
