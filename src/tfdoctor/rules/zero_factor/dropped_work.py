"""What a step computes only to multiply it by zero, in the graphs that the run built."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE, PASSING
from tfdoctor.facts.operations.dependence import VARIABLE, Dependence
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATRIX_TYPES
from tfdoctor.facts.run.program import Operation
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

PRODUCTS = MATRIX_TYPES | {"Mul", "MulNoNan"}
"""Types of operations whose result is zero where one operand is."""

FIRST = PASSING | {
    "RealDiv", "DivNoNan", "ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "Sum", "Mean", "Transpose",
    "BroadcastTo", "Tile", "ZerosLike", "Sqrt", "Square", "Abs", "Neg", "L2Loss", "BiasAddGrad",
}  # fmt: skip
"""Types of operations whose result is zero where the first operand is, such as those whose others are axes."""

SUMS = frozenset(("Add", "AddV2", "AddN", "Sub"))
"""Types of operations whose result is zero where all operands are."""

SEVERAL = "IdentityN"
"""The type of the operation that passes on several values."""

WRITES = ("Assign", "ResourceApply")
"""Beginnings of the types of operations that change the variable that is their first input."""


@dataclass(frozen=True, slots=True)
class DroppedWork:
    """The operations that only lead to zeros.

    ``rows`` are those of gradients and losses whose results nothing else takes, and what is computed of the zeros.
    """

    factors: int = 0  # multiplications by zero
    at: Location | None = None  # the line of the first
    of_gradients: bool = False  # gradients are multiplied, and not a loss
    rows: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dependence: Dependence) -> Self:
        """Follow the zeros forward, and what is multiplied by them back."""
        search = ZeroSearch(dependence)
        factors = search.factors
        if not factors:
            return cls()
        dropped = search.dropped
        rows = [
            row
            for row in operations.rows
            if row.operation and not row.operation.compiled and row.operation.name in dropped
        ]
        program = dependence.flow.program
        lines = filter(None, map(program.line_of, factors))
        return cls(
            len(factors), next(lines, None), any(_is_gradient(dependence, one) for one in factors), tuple(rows)
        )

    @property
    def ms(self) -> float:
        """Their time, in ms per step."""
        return sum(row.ms for row in self.rows)


@dataclass(frozen=True, eq=False)
class ZeroSearch:
    """Finds the operations whose results are zero in every step, and those that only they take."""

    dependence: Dependence

    @cached_property
    def factors(self) -> tuple[Operation, ...]:
        """The multiplications by a constant zero that Python wrote: the tape's own have its scope."""
        return tuple(
            one
            for one in self._operations
            if one.type in {"Mul", "MulNoNan"}
            and not one.name.startswith(GRADIENT_SCOPE)
            and any(map(self._is_constant_zero, one.sources))
        )

    @cached_property
    def dropped(self) -> frozenset[str]:
        """The names of what could be left out: the zeros, writes that add them, and what leads to them alone.

        A result that nothing takes may be one of the step's and stays, but not a gradient: TensorFlow removes that.
        """
        zeros = self._zeros
        writes = {one.name for one in self._operations if self._adds(one, zeros)}
        dropped = {*zeros, *writes} - {one.name for one in self._operations if not one.sources}
        for one in reversed(self._operations):
            users = self.dependence.flow.consumers.get(one.name, ())
            unused = not users and one.name.startswith(GRADIENT_SCOPE)
            if unused or (users and all(user.name in dropped for user in users)):
                dropped.add(one.name)
        return frozenset(dropped)

    @property
    def _operations(self) -> tuple[Operation, ...]:
        return tuple(self.dependence.flow.program.by_name.values())

    @cached_property
    def _zeros(self) -> frozenset[str]:
        """The names of operations whose results are zero.

        An optimizer's averages begin at zero, and stay so where each write adds zeros. All that only the optimizer
        reads are taken for such, and those that another write changes are given up until none is left.
        """
        averages = {one.sources[0] for one in self._written() if self._is_average(one)}
        while True:
            zeros = self._zeros_with(averages)
            changed = {
                one.sources[0]
                for one in self._written()
                if one.sources[0] in averages and not self._adds(one, zeros)
            }
            if not changed:
                return zeros
            averages -= changed

    def _zeros_with(self, averages: set[str]) -> frozenset[str]:
        """Return the zeros where these averages are; of an ``IdentityN`` each result by its number."""
        zeros: set[str] = {one.name for one in self.factors}
        for one in self._operations:
            known = [self._value(one, at) in zeros for at in range(len(one.sources))]
            if one.type == SEVERAL:
                zeros.update(f"{one.name}:{at}" for at, zero in enumerate(known) if zero)
            elif (VARIABLE.search(one.type) and one.sources[:1] and one.sources[0] in averages) or _is_zero(
                one, known
            ):
                zeros.add(one.name)
        return frozenset(zeros)

    def _value(self, one: Operation, at: int) -> str:
        """Return the name of an input of an operation; with the number of its result where it has several."""
        source = one.sources[at]
        made = self.dependence.flow.program.by_name.get(source)
        if made is None or made.type != SEVERAL:
            return source
        return f"{source}:{one.ports[at] if at < len(one.ports) else 0}"

    def _written(self) -> Iterator[Operation]:
        for one in self._operations:
            if one.type.startswith(WRITES) and len(one.sources) > 1:
                yield one

    def _is_average(self, write: Operation) -> bool:
        """Say whether a written variable is no weight: no gradient is computed from it."""
        readers = self.dependence.flow.consumers.get(write.sources[0], ())
        return not any(self.dependence.feeds_gradients(reader.name) for reader in readers)

    def _adds(self, one: Operation, zeros: Iterable[str]) -> bool:
        """Say whether a write leaves its variable as it is; an optimizer's own takes the gradient last."""
        if not one.type.startswith(("AssignAdd", "AssignSub", "ResourceApply")):
            return False
        return len(one.sources) > 1 and self._value(one, len(one.sources) - 1) in zeros

    def _is_constant_zero(self, name: str) -> bool:
        made = self.dependence.flow.program.by_name.get(name)
        return made is not None and made.type == "Const" and made.attrs.scalar == 0.0


def _is_zero(one: Operation, known: list[bool]) -> bool:
    """Say whether a result is zero, by which of its inputs are known to be."""
    if one.type in PRODUCTS:
        return any(known)
    first = known[:1] if one.type in FIRST else known if one.type in SUMS else []
    return bool(first) and all(first)


def _is_gradient(dependence: Dependence, factor: Operation) -> bool:
    sources = (dependence.flow.source(factor, at) for at in range(len(factor.sources)))
    return any(one is not None and bool(GRADIENT.search(one.name)) for one in sources)
