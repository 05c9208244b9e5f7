"""Tensors that the forward pass repeats in memory, for operations that would repeat them by themselves."""

from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.dataflow import Dataflow
from tfdoctor.facts.operations import Operations, OperationTime
from tfdoctor.facts.program import Operation, Program

REPEATS = frozenset(("Tile", "BroadcastTo"))

ELEMENTWISE = frozenset(
    (
        "AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Pow",
        "SelectV2", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "LogicalAnd",
    )
)  # fmt: skip
"""Operations that broadcast their operands."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A repetition, and its gradient's operations."""

    row: OperationTime
    times: float  # the size of its result over that of its input
    rows: tuple[OperationTime, ...]

    @property
    def ms(self) -> float:
        """The time of it all per step."""
        return sum(row.ms for row in self.rows)


@dataclass(frozen=True, slots=True)
class Broadcasts:
    """Those of the forward pass that only operations use which broadcast by themselves."""

    found: tuple[Broadcast, ...]

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow each repetition to what uses it."""
        rows = [row for row in operations.rows if row.type in REPEATS and row.operation]
        return cls(
            tuple(
                Broadcast(row, times, _with_gradient(operations, row, dataflow))
                for row in rows
                if row.operation
                and (times := _times(row.operation, program))
                and _needless(row.operation, dataflow)
            )
        )


def _with_gradient(
    operations: Operations, row: OperationTime, dataflow: Dataflow
) -> tuple[OperationTime, ...]:
    forward = row.operation
    return tuple(
        one
        for one in operations.rows
        if one is row or (forward and dataflow.is_gradient_of(one.name, forward))
    )


def _needless(operation: Operation, dataflow: Dataflow) -> bool:
    """Say whether it is the forward pass's, and all its direct users there broadcast."""
    users = dataflow.consumers.get(operation.name, ())
    forward = [user for user in users if not user.name.startswith("gradient")]
    return (
        not operation.name.startswith("gradient")
        and bool(forward)
        and all(user.type in ELEMENTWISE for user in forward)
    )


def _times(operation: Operation, program: Program) -> float | None:
    """Return how many times as large the result is; None when a shape is not known, or ranks differ."""
    if not operation.inputs or not operation.outputs:
        return None
    given, made = program.shape(operation.inputs[0][1]), program.shape(operation.outputs[0][1])
    if given is None or made is None or not prod(given):
        return None
    # Only dimensions of size 1 can be left to broadcasting: 2 repeated to 4 cannot.
    padded = (1,) * (len(made) - len(given)) + given
    if any(before not in (1, after) for before, after in zip(padded, made, strict=True)):
        return None
    return prod(made) / prod(given)
